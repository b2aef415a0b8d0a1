"""Lower triangles, row by row, against the full matrices that they stand for."""

import numpy as np
import pytest

from lgmd.linalg.packed import doubled, pack, pack_products, packed_diagonal, packed_order, packed_size, unpack

ORDERS = [1, 2, 3, 8]


def symmetric(rng, order, count=4, dtype=np.float64):
    matrices = rng.standard_normal((count, order, order))
    return (matrices + matrices.transpose(0, 2, 1)).astype(dtype)


def test_the_triangle_lies_row_by_row():
    matrix = np.array([[[0.0, 1.0, 3.0], [1.0, 2.0, 4.0], [3.0, 4.0, 5.0]]])
    np.testing.assert_array_equal(pack(matrix), [[0, 1, 2, 3, 4, 5]])
    np.testing.assert_array_equal(packed_diagonal(3), [0, 2, 5])


def test_orders_and_sizes_are_each_others_inverse():
    orders = np.arange(2001)
    sizes = [packed_size(int(order)) for order in orders]
    np.testing.assert_array_equal(sizes, np.concatenate([[0], np.cumsum(orders[1:])]))
    np.testing.assert_array_equal([packed_order(size) for size in sizes], orders)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ORDERS)
def test_what_is_packed_unpacks_to_the_same(rng, order, dtype):
    matrices = symmetric(rng, order, dtype=dtype)
    packed = pack(matrices)
    assert packed.shape == (4, packed_size(order))
    assert packed.dtype == dtype
    assert packed.flags.c_contiguous
    full = unpack(packed)
    assert full.dtype == dtype
    np.testing.assert_array_equal(full, matrices)
    np.testing.assert_array_equal(pack(full), packed)
    np.testing.assert_array_equal(packed[:, packed_diagonal(order)], np.diagonal(matrices, axis1=1, axis2=2))


def test_the_upper_triangle_is_nobodys_business(rng):
    matrices = symmetric(rng, 5)
    np.testing.assert_array_equal(pack(np.tril(matrices)), pack(matrices))


def test_a_single_matrix_and_a_stack_of_stacks_go_too(rng):
    matrices = symmetric(rng, 4, count=6)
    np.testing.assert_array_equal(pack(matrices[0]), pack(matrices)[0])
    np.testing.assert_array_equal(unpack(pack(matrices[0])), matrices[0])
    stacked = matrices.reshape(2, 3, 4, 4)
    np.testing.assert_array_equal(unpack(pack(stacked)), stacked)


def test_unpacking_gives_an_array_of_its_own(rng):
    packed = pack(symmetric(rng, 3))
    given = packed.copy()
    unpack(packed)[...] = 0.0
    pack(unpack(packed))[...] = 0.0
    doubled(packed)[...] = 0.0
    np.testing.assert_array_equal(packed, given)


@pytest.mark.parametrize("order", ORDERS)
def test_products_are_packed_outer_products(rng, order):
    vectors = rng.standard_normal((5, order))
    np.testing.assert_array_equal(pack_products(vectors), pack(vectors[:, :, None] * vectors[:, None, :]))


@pytest.mark.parametrize("order", ORDERS)
def test_the_product_with_a_doubled_matrix_is_the_sum_over_the_full_ones(rng, order):
    first, second = symmetric(rng, order), symmetric(rng, order)
    expected = np.einsum("mab,mab->m", first, second)
    found = np.einsum("ma,ma->m", doubled(pack(first)), pack(second))
    # Sums of at most 64 products of numbers of size one, in another order.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(doubled(pack(first[0])), doubled(pack(first))[0])

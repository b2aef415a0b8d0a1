"""Nearest rows of some rows only, and by the size of the inner product, against a full sort."""

import numpy as np
import pytest

from lgmd.linalg.nearest_vectors import nearest_vectors


def by_sorting(vectors, m, rows=None, absolute=False):
    products = vectors @ vectors.T
    if absolute:
        products = np.abs(products)
    np.fill_diagonal(products, -np.inf)
    order = np.argsort(-products, axis=1, kind="stable")[:, :m]
    return order if rows is None else order[rows]


# More rows than one block of rows, and than one of columns.
@pytest.mark.parametrize(("n", "m"), [(2, 1), (40, 39), (300, 4), (1500, 9)])
@pytest.mark.parametrize("absolute", [False, True])
def test_some_rows_have_the_neighbours_that_they_have_among_all(rng, n, m, absolute):
    vectors = rng.standard_normal((n, 7))
    for rows in (np.array([n - 1]), rng.permutation(n)[: max(1, n // 3)], np.arange(n), rng.integers(0, n, 2 * n)):
        found = nearest_vectors(vectors, m, rows=rows, absolute=absolute)
        np.testing.assert_array_equal(found, by_sorting(vectors, m, rows, absolute))


@pytest.mark.parametrize(("n", "m"), [(2, 1), (40, 39), (700, 5), (1500, 12)])
def test_sizes_count_where_asked(rng, n, m):
    vectors = rng.standard_normal((n, 5))
    np.testing.assert_array_equal(nearest_vectors(vectors, m, absolute=True), by_sorting(vectors, m, absolute=True))


def test_an_opposite_row_is_near_by_size_only():
    vectors = np.array([[1.0, 0.0], [-1.0, 0.1], [0.5, 0.2], [0.1, 1.0]])
    assert nearest_vectors(vectors, 1)[0, 0] == 2
    assert nearest_vectors(vectors, 1, absolute=True)[0, 0] == 1


def test_flipping_rows_does_not_change_sizes(rng):
    vectors, signs = rng.standard_normal((200, 4)), rng.choice([-1.0, 1.0], (200, 1))
    found = nearest_vectors(signs * vectors, 6, absolute=True)
    np.testing.assert_array_equal(found, nearest_vectors(vectors, 6, absolute=True))


def test_ties_go_to_the_lower_row_among_some_rows_and_by_size():
    vectors = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    np.testing.assert_array_equal(nearest_vectors(vectors, 2, rows=np.array([3, 1])), [[1, 0], [3, 0]])
    np.testing.assert_array_equal(nearest_vectors(vectors, 2, absolute=True), [[1, 2], [0, 2], [0, 1], [0, 1]])


def test_no_row_is_its_own_neighbour(rng):
    # A long row is nearest to itself by far, and nearer to many than these to each other.
    vectors = rng.standard_normal((30, 3))
    vectors[4] *= 100
    rows = np.array([4, 4, 7])
    for absolute in (False, True):
        found = nearest_vectors(vectors, 29, rows=rows, absolute=absolute)
        for row, neighbors in zip(rows, found, strict=True):
            np.testing.assert_array_equal(np.sort(neighbors), np.delete(np.arange(30), row))


def test_single_precision_is_close_to_double(rng):
    vectors = rng.standard_normal((500, 8)).astype(np.float32)
    found = nearest_vectors(vectors, 3, rows=np.arange(0, 500, 7), absolute=True)
    products = np.abs(vectors.astype(float) @ vectors.T.astype(float))
    np.fill_diagonal(products, -1)
    best = np.sort(products, axis=1)[::7, :-4:-1]
    np.testing.assert_allclose(np.take_along_axis(products[::7], found, axis=1), best, rtol=1e-5)


def test_no_rows_and_no_neighbours_are_empty(rng):
    vectors = rng.standard_normal((10, 2))
    assert nearest_vectors(vectors, 3, rows=np.empty(0, dtype=np.int64)).shape == (0, 3)
    assert nearest_vectors(vectors, 0, rows=np.array([1, 2])).shape == (2, 0)


def test_vectors_that_are_not_contiguous_will_do(rng):
    vectors = rng.standard_normal((6, 80)).T
    found = nearest_vectors(vectors, 4, rows=np.array([9, 2]), absolute=True)
    np.testing.assert_array_equal(found, by_sorting(vectors, 4, np.array([9, 2]), absolute=True))

import tracemalloc

import numpy as np
import pytest

from lgmd.linalg import pairs as pairs_module
from lgmd.linalg import threads
from lgmd.linalg.pairs import Pairs, block_products, pair_products, pairs_above, strongest_pairs

SIZES = [1, 2, 255, 256, 257, 1500]


def small_integers(n, k=4, dtype=np.float64, seed=0):
    """Vectors whose products are exact in any precision, with many ties; every fifth one is zero."""
    vectors = np.random.default_rng(seed).integers(-3, 4, (n, k)).astype(dtype)
    vectors[::5] = 0
    return vectors


def all_pairs(vectors):
    rows, columns = np.triu_indices(len(vectors), k=1)
    return Pairs(rows, columns, (vectors @ vectors.T)[rows, columns])


def by_position(pairs):
    return pairs.take(np.lexsort((pairs.columns, pairs.rows)))


def strongest_of_all(vectors, count):
    everything = all_pairs(vectors)
    order = np.lexsort((everything.columns, everything.rows, -np.abs(everything.values)))
    return everything.take(order[:count])


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def n_threads(request, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: request.param)


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_the_pairs_above_are_those_of_the_full_product(n, dtype):
    vectors = small_integers(n, dtype=dtype)
    everything = all_pairs(vectors)
    for threshold in (0.0, 6.0, 6.5, 20.0):
        expected = everything.take(np.flatnonzero(np.abs(everything.values) > threshold))
        found = by_position(pairs_above(vectors, threshold))
        assert found.values.dtype == dtype
        assert_same(found, expected)


@pytest.mark.parametrize("n", SIZES)
def test_a_threshold_may_let_nothing_or_everything_pass(n):
    vectors = small_integers(n)
    assert len(pairs_above(vectors, 1e6)) == 0
    assert_same(by_position(pairs_above(vectors, -1.0)), all_pairs(vectors))


def test_products_of_real_numbers_are_found_too():
    vectors = np.random.default_rng(1).standard_normal((700, 20))
    everything = all_pairs(vectors)
    ordered = np.sort(np.abs(everything.values))
    threshold = ordered[-2000:-1998].mean()
    expected = everything.take(np.flatnonzero(np.abs(everything.values) > threshold))
    found = by_position(pairs_above(vectors, threshold))
    assert len(found) == 1999
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.columns, expected.columns)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


def test_vectors_that_are_not_numbers_pair_with_nothing():
    vectors = small_integers(300)
    vectors[17] = np.nan
    expected = all_pairs(vectors)
    expected = expected.take(np.flatnonzero(np.abs(expected.values) > 5))
    assert_same(by_position(pairs_above(vectors, 5)), expected)
    assert len(strongest_pairs(vectors, 300 * 299 // 2)) == 299 * 298 // 2


def test_any_memory_layout_will_do():
    vectors = small_integers(300, k=8)
    expected = by_position(pairs_above(vectors[:, ::2].copy(), 6))
    frozen = np.asfortranarray(vectors[:, ::2])
    frozen.setflags(write=False)
    assert_same(by_position(pairs_above(vectors[:, ::2], 6)), expected)
    assert_same(by_position(pairs_above(frozen, 6)), expected)
    assert_same(strongest_pairs(frozen, 50), strongest_of_all(frozen, 50))


def test_no_vectors_and_vectors_without_entries_have_products_of_zero():
    assert len(pairs_above(np.empty((0, 3)), 0.5)) == 0
    assert len(strongest_pairs(np.empty((0, 3)), 5)) == 0
    assert len(pairs_above(np.empty((4, 0)), 0.0)) == 0
    assert_same(strongest_pairs(np.empty((4, 0)), 2), ([0, 0], [1, 2], [0.0, 0.0]))


def test_blocks_of_products_cover_the_upper_triangle():
    vectors = small_integers(2300)
    product = vectors @ vectors.T
    seen = np.zeros(product.shape, dtype=int)
    for start, stop in ((0, 256), (256, 512), (512, 2300)):
        for column, block in block_products(vectors, start, stop):
            place = (slice(start, stop), slice(column, column + block.shape[1]))
            np.testing.assert_array_equal(block, product[place])
            seen[place] += 1
    assert np.all(seen[np.triu_indices(2300)] == 1)


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_the_strongest_pairs_come_in_order_with_ties_by_position(n, dtype):
    vectors = small_integers(n, dtype=dtype)
    n_pairs = n * (n - 1) // 2
    for count in (1, 7, 300, n_pairs // 2, n_pairs, n_pairs + 1):
        found = strongest_pairs(vectors, count)
        assert found.values.dtype == dtype
        assert len(found) == min(count, n_pairs)
        assert_same(found, strongest_of_all(vectors, count))


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("count", [1, 40, 5000])
@pytest.mark.parametrize("kind", ["ties", "no ties", "zeros"])
def test_dropping_weak_pairs_on_the_way_loses_none_of_the_strongest(count, kind, monkeypatch):
    monkeypatch.setattr(pairs_module, "_SLACK", 0)
    monkeypatch.setattr(pairs_module, "_starting_threshold", lambda vectors, count: -1.0)
    monkeypatch.setattr(pairs_module, "BLOCK_COLUMNS", 64)
    vectors = small_integers(600)
    if kind == "no ties":
        vectors = np.random.default_rng(2).standard_normal((600, 5))
    elif kind == "zeros":
        vectors[10:] = 0
    found, expected = strongest_pairs(vectors, count), strongest_of_all(vectors, count)
    assert_same(found[:2], expected[:2])
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-13)


def test_a_starting_threshold_that_is_too_high_is_corrected(monkeypatch):
    vectors = small_integers(300)
    monkeypatch.setattr(pairs_module, "_starting_threshold", lambda vectors, count: 1e9)
    assert_same(strongest_pairs(vectors, 100), strongest_of_all(vectors, 100))


@pytest.mark.parametrize("count", [0, -3])
def test_no_pair_is_asked_for(count):
    found = strongest_pairs(small_integers(50, dtype=np.float32), count)
    assert len(found) == 0
    assert found.values.dtype == np.float32


def test_zero_vectors_are_the_last_to_be_paired():
    vectors = small_integers(40)
    n_nonzero = int(np.count_nonzero(all_pairs(vectors).values))
    found = strongest_pairs(vectors, n_nonzero + 3)
    assert np.all(found.values[:n_nonzero] != 0)
    assert found.rows[n_nonzero:].tolist() == [0, 0, 0]
    assert found.columns[n_nonzero:].tolist() == [1, 2, 3]


def test_the_number_of_threads_does_not_change_a_digit(monkeypatch):
    vectors = np.random.default_rng(3).standard_normal((1500, 20)).astype(np.float32)
    results = []
    for count in (1, 4):
        monkeypatch.setattr(threads, "available_threads", lambda count=count: count)
        results.append((pairs_above(vectors, 12.0), strongest_pairs(vectors, 5000)))
    for alone, together in zip(*results, strict=True):
        assert len(alone) > 0
        assert_same(alone, together)


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [0, 1, 100, 300_000])
def test_products_of_given_pairs_are_entries_of_the_full_product(count, dtype):
    vectors = small_integers(300, k=12, dtype=dtype)
    rng = np.random.default_rng(5)
    rows, columns = rng.integers(0, 300, count), rng.integers(0, 300, count)
    found = pair_products(vectors, rows, columns)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, (vectors @ vectors.T)[rows, columns])
    np.testing.assert_array_equal(pair_products(vectors, columns.astype(np.int32), rows), found)


def test_products_of_given_pairs_are_summed_in_double_precision():
    vectors = np.random.default_rng(6).standard_normal((50, 1000)).astype(np.float32)
    rows, columns = np.triu_indices(50)
    exact = (vectors.astype(np.float64) @ vectors.T.astype(np.float64))[rows, columns]
    # A thousand terms of size one: rounding in double precision leaves 1e-13, in single precision 1e-5.
    np.testing.assert_allclose(pair_products(vectors, rows, columns), exact, rtol=0, atol=1e-11)


def test_given_pairs_of_vectors_in_any_layout():
    vectors = np.asfortranarray(small_integers(30, k=8))[:, ::2]
    rows, columns = np.arange(30)[::-2], np.arange(30)[::2]
    np.testing.assert_array_equal(pair_products(vectors, rows, columns), (vectors @ vectors.T)[rows, columns])
    np.testing.assert_array_equal(pair_products(np.empty((3, 0)), np.array([0, 2]), np.array([1, 1])), [0, 0])
    unknown = np.array([[1.0, np.nan], [1.0, 1.0]])
    np.testing.assert_array_equal(pair_products(unknown, np.array([0, 1]), np.array([1, 1])), [np.nan, 2.0])


@pytest.mark.parametrize("wrong", [-1, 4])
def test_given_pairs_of_vectors_that_do_not_exist_are_refused(wrong):
    vectors = np.ones((4, 2))
    for rows, columns in (([0, wrong], [1, 2]), ([1, 2], [0, wrong])):
        with pytest.raises(IndexError, match="but there are 4"):
            pair_products(vectors, np.array(rows), np.array(columns))
    with pytest.raises(ValueError, match=r"have shapes \(2,\) and \(1,\)"):
        pair_products(vectors, np.array([0, 1]), np.array([0]))


def peak_memory(function, *arguments):
    function(*arguments)  # compiled code is not what is measured
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_products_of_given_pairs_need_no_copies_of_the_vectors():
    vectors = np.random.default_rng(7).standard_normal((500, 100))
    rows = np.arange(200_000) % 500
    # Eight bytes a pair for the result; vectors[rows] would be 160 MB.
    assert peak_memory(pair_products, vectors, rows, rows[::-1].copy()) < 3e6


def test_memory_is_that_of_the_pairs_and_never_of_the_square(monkeypatch):
    n = 6000
    square = 4 * n**2
    vectors = np.random.default_rng(4).standard_normal((n, 8)).astype(np.float32)
    assert peak_memory(pairs_above, vectors, 40.0) < square / 10
    assert peak_memory(strongest_pairs, vectors, 1000) < square / 4
    # All products tie: the threshold cannot tell them apart, but the pool stays small.
    monkeypatch.setattr(pairs_module, "_SLACK", 100_000)
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    ones = np.ones((n, 2), dtype=np.float32)
    assert peak_memory(strongest_pairs, ones, 1000) < square / 2
    assert_same(strongest_pairs(ones, 3), ([0, 0, 0], [1, 2, 3], [2.0, 2.0, 2.0]))

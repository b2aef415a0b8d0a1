from typing import NamedTuple

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from lgmd.linalg import threads
from lgmd.linalg.row_systems import (
    Entries,
    factor_rows,
    multiply_upper,
    residual_sums,
    solve_lower,
    solve_rows,
    solve_upper,
)
from lgmd.linalg.threads import balanced_blocks

N_COLUMNS = 40


class Case(NamedTuple):
    entries: Entries
    offsets: np.ndarray
    design: np.ndarray
    ridge: np.ndarray

    @property
    def n_rows(self):
        return len(self.entries.indptr) - 1

    def row(self, i):
        """Design vectors and offset-free values of one row, in double precision."""
        entries = self.entries
        chosen = slice(entries.indptr[i], entries.indptr[i + 1])
        columns = entries.indices[chosen]
        values = entries.values[chosen].astype(float) - self.offsets[columns].astype(float)
        return self.design[columns].astype(float), values


def make_case(k, dtype=np.float64, index_type=np.int32, counts=None, seed=0):
    """Rows with 0, 1, ..., 9 entries, twice over, unless told otherwise."""
    rng = np.random.default_rng(seed)
    counts = np.tile(np.arange(10), 2) if counts is None else np.asarray(counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([np.sort(rng.choice(N_COLUMNS, count, replace=False)) for count in counts])
    entries = Entries(
        indptr.astype(np.int64),
        indices.astype(index_type),
        (2 + rng.standard_normal(indptr[-1])).astype(dtype),
        balanced_blocks(indptr),
    )
    return Case(
        entries,
        rng.standard_normal(N_COLUMNS).astype(dtype),
        rng.standard_normal((N_COLUMNS, k)).astype(dtype),
        rng.uniform(0.5, 2.0, len(counts)).astype(dtype),
    )


def brute_force(case, intercept_ridge):
    """Row by row: ridge regression on the design vectors and, with an intercept, on a column of ones."""
    k = case.design.shape[1]
    solution, intercept = np.zeros((case.n_rows, k)), np.zeros(case.n_rows)
    for i in range(case.n_rows):
        vectors, values = case.row(i)
        penalties = np.full(k, float(case.ridge[i]))
        if intercept_ridge is not None:
            vectors = np.column_stack([vectors, np.ones(len(values))])
            penalties = np.append(penalties, intercept_ridge)
        coefficients = np.linalg.solve(vectors.T @ vectors + np.diag(penalties), vectors.T @ values)
        solution[i] = coefficients[:k]
        if intercept_ridge is not None:
            intercept[i] = coefficients[k]
    return solution, intercept


def solve_all(case, intercept_ridge, rows=None):
    rows = np.arange(case.n_rows) if rows is None else rows
    dtype = case.design.dtype
    out = np.full((case.n_rows, case.design.shape[1]), 7.0, dtype)
    intercept = np.full(case.n_rows, 7.0, dtype)
    solve_rows(rows, *case, intercept_ridge, out, intercept)
    return out, intercept


def solve_by_factors(case, intercept_ridge):
    factors = factor_rows(np.arange(case.n_rows), *case, intercept_ridge)
    return factors, solve_upper(factors.lower, solve_lower(factors.lower, factors.right))


def read_only(case):
    for array in (*case.entries, *case[1:]):
        array.setflags(write=False)
    return case


def tolerance(dtype):
    return {"rtol": 2e-3, "atol": 2e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-11}


@pytest.mark.parametrize("intercept_ridge", [None, 0.3])
@pytest.mark.parametrize("k", [0, 1, 5, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_row_solves_its_own_ridge_regression(dtype, k, intercept_ridge):
    case = make_case(k, dtype)
    expected, expected_intercept = brute_force(case, intercept_ridge)
    out, intercept = solve_all(case, intercept_ridge)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, expected, **tolerance(dtype))
    np.testing.assert_allclose(intercept, expected_intercept, **tolerance(dtype))


@pytest.mark.parametrize("intercept_ridge", [None, 0.3])
@pytest.mark.parametrize("k", [0, 1, 5, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_factors_of_each_row_solve_it_too(dtype, k, intercept_ridge):
    case = make_case(k, dtype)
    expected, _ = brute_force(case, intercept_ridge)
    factors, solution = solve_by_factors(case, intercept_ridge)
    np.testing.assert_allclose(solution, expected, **tolerance(dtype))
    for i in range(case.n_rows):
        vectors, values = case.row(i)
        system = vectors.T @ vectors + case.ridge[i] * np.eye(k)
        right = vectors.T @ values
        if intercept_ridge is not None:
            sums = vectors.sum(axis=0)
            system -= np.outer(sums, sums) / (len(values) + intercept_ridge)
            right -= sums * values.sum() / (len(values) + intercept_ridge)
        lower = np.tril(factors.lower[i])
        np.testing.assert_allclose(lower @ lower.T, system, **tolerance(dtype))
        np.testing.assert_allclose(factors.right[i], right, **tolerance(dtype))
        np.testing.assert_allclose(factors.design_sums[i], vectors.sum(axis=0), **tolerance(dtype))
        np.testing.assert_allclose(factors.value_sums[i], values.sum(), **tolerance(dtype))
        assert factors.counts[i] == len(values)


@pytest.mark.slow  # compiles everything anew
def test_64_bit_indices_and_read_only_arrays_change_nothing():
    case = make_case(5)
    wide = make_case(5, index_type=np.int64)
    frozen = read_only(make_case(5))
    assert wide.entries.indices.dtype == np.int64
    expected = solve_all(case, 0.3)
    factors = factor_rows(np.arange(case.n_rows), *case, 0.3)
    for other in (wide, frozen):
        for found, wanted in zip(solve_all(other, 0.3), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
        others = factor_rows(np.arange(case.n_rows), *other, 0.3)
        np.testing.assert_allclose(np.tril(others.lower), np.tril(factors.lower), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(others.right, factors.right, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("intercept_ridge", [None, 0.3])
def test_only_the_chosen_rows_are_written(intercept_ridge):
    case = make_case(5)
    rows = np.array([1, 4, 5, 13, 19])
    expected, expected_intercept = brute_force(case, intercept_ridge)
    out, intercept = solve_all(case, intercept_ridge, rows)
    np.testing.assert_allclose(out[rows], expected[rows], rtol=1e-9)
    np.testing.assert_allclose(intercept[rows], expected_intercept[rows], rtol=1e-9)
    others = np.setdiff1d(np.arange(case.n_rows), rows)
    assert np.all(out[others] == 7.0)
    assert np.all(intercept[others] == 7.0)
    everything = factor_rows(np.arange(case.n_rows), *case, intercept_ridge)
    some = factor_rows(rows, *case, intercept_ridge)
    for found, wanted in zip(some, everything, strict=True):
        np.testing.assert_array_equal(found, wanted[rows])


def test_no_row_at_all_is_fine():
    case = make_case(5)
    nothing = np.empty(0, dtype=np.int64)
    out, _ = solve_all(case, None, nothing)
    assert np.all(out == 7.0)
    factors = factor_rows(nothing, *case, None)
    assert factors.lower.shape == (0, 5, 5)
    assert solve_lower(factors.lower, factors.right).shape == (0, 5)


def test_an_intercept_without_ridge_is_the_mean_of_what_is_left():
    case = make_case(5)
    out, intercept = solve_all(case, 0.0)
    assert intercept[0] == 0.0  # a row without entries
    assert np.all(out[0] == 0.0)
    for i in range(1, 10):
        vectors, values = case.row(i)
        assert intercept[i] == pytest.approx(np.mean(values - vectors @ out[i]), rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("intercept_ridge", [None, 0.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_with_fewer_entries_than_factors_are_solved_with_next_to_no_ridge(dtype, intercept_ridge, scale):
    rounding = np.finfo(dtype).eps
    case = make_case(20, dtype, counts=np.tile(np.arange(1, 8), 60), seed=3)
    case = case._replace(
        design=case.design * dtype(scale), ridge=np.full(case.n_rows, 10 * rounding, dtype), offsets=0 * case.offsets
    )
    out, intercept = solve_all(case, intercept_ridge)
    _, by_factors = solve_by_factors(case, intercept_ridge)
    for solution in (out, by_factors):
        for i in range(case.n_rows):
            vectors, values = case.row(i)
            if intercept_ridge is not None:
                vectors, values = vectors - vectors.mean(axis=0), values - values.mean()
            shortest = np.linalg.lstsq(vectors, values, rcond=100 * rounding)[0]
            # All values are met, and what no value determines has not run away.
            np.testing.assert_allclose(vectors @ solution[i], values, atol=1000 * rounding * np.abs(values).max())
            assert np.linalg.norm(solution[i]) <= 2 * np.linalg.norm(shortest) + 0.1 / scale
    assert np.all(np.isfinite(intercept))


def test_a_design_of_zeros_gives_zeros_even_without_a_ridge():
    case = make_case(5)
    case = case._replace(design=0 * case.design, ridge=0 * case.ridge)
    out, _ = solve_all(case, None)
    assert np.all(out == 0.0)


def test_what_is_not_a_number_stays_in_its_row():
    case = make_case(5)
    case.entries.values[case.entries.indptr[14]] = np.nan
    expected, _ = brute_force(case, None)
    out, _ = solve_all(case, None)
    np.testing.assert_array_equal(np.isnan(out).any(axis=1), np.arange(case.n_rows) == 14)
    np.testing.assert_allclose(out, expected, rtol=1e-9)


@pytest.mark.parametrize("k", [0, 1, 5, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_triangular_operations_agree_with_numpy(dtype, k):
    rng = np.random.default_rng(k)
    m = 30
    lower = (0.2 * rng.standard_normal((m, k, k)) + 2 * np.eye(k)).astype(dtype)
    vectors = rng.standard_normal((m, k)).astype(dtype)
    given = vectors.copy()
    # What is above the diagonal is nobody's business.
    triangle = np.tril(lower).astype(float)
    transposed = np.swapaxes(triangle, 1, 2)
    columns = vectors[:, :, None].astype(float)
    tight = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-12}
    for function, expected in (
        (solve_lower, np.linalg.solve(triangle, columns)),
        (solve_upper, np.linalg.solve(transposed, columns)),
        (multiply_upper, transposed @ columns),
    ):
        found = function(lower, vectors)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected[:, :, 0], **tight)
    np.testing.assert_array_equal(vectors, given)
    np.testing.assert_allclose(solve_upper(lower, multiply_upper(lower, vectors)), vectors, **tight)


@pytest.mark.parametrize("k", [0, 1, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_residual_sums_agree_with_numpy(dtype, k):
    case = make_case(k, dtype)
    rng = np.random.default_rng(9)
    X = rng.standard_normal((case.n_rows, k)).astype(dtype)
    row_offsets = rng.standard_normal(case.n_rows).astype(dtype)
    residuals = np.concatenate(
        [values - row_offsets[i] - vectors @ X[i] for i in range(case.n_rows) for vectors, values in [case.row(i)]]
    )
    squares, total = residual_sums(case.entries, row_offsets, case.offsets, X, case.design)
    precision = 1e-5 if dtype == np.float32 else 1e-12
    assert squares == pytest.approx(np.sum(residuals**2), rel=precision)
    assert total == pytest.approx(np.sum(residuals), rel=precision, abs=precision * np.abs(residuals).sum())


@pytest.fixture(scope="module")
def large_case():
    case = make_case(20, counts=np.random.default_rng(5).integers(0, 40, 6000))
    assert len(case.entries.values) * 20 > threads._WORTH_A_THREAD
    return case


def test_the_number_of_threads_does_not_change_a_digit(large_case, monkeypatch):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((large_case.n_rows, 20))
    row_offsets = rng.standard_normal(large_case.n_rows)

    def everything():
        out, intercept = solve_all(large_case, 0.3)
        factors, solution = solve_by_factors(large_case, 0.3)
        sums = residual_sums(large_case.entries, row_offsets, large_case.offsets, X, large_case.design)
        return [out, intercept, np.tril(factors.lower), *factors[1:], solution, np.array(sums)]

    with threadpool_limits(1):
        assert threads.available_threads() == 1
        alone = everything()
    free = everything()
    monkeypatch.setattr(threads, "available_threads", lambda: 5)
    crowded = everything()
    for one, some, many in zip(alone, free, crowded, strict=True):
        np.testing.assert_array_equal(one, some)
        np.testing.assert_array_equal(one, many)


def test_many_rows_are_solved_right_in_threads(large_case, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    expected, expected_intercept = brute_force(large_case, 0.3)
    rows = np.flatnonzero(np.arange(large_case.n_rows) % 7)
    for chosen in (np.arange(large_case.n_rows), rows):
        out, intercept = solve_all(large_case, 0.3, chosen)
        np.testing.assert_allclose(out[chosen], expected[chosen], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(intercept[chosen], expected_intercept[chosen], rtol=1e-8, atol=1e-10)
    _, solution = solve_by_factors(large_case, 0.3)
    np.testing.assert_allclose(solution, expected, rtol=1e-8, atol=1e-10)

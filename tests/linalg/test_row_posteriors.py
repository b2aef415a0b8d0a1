"""Posteriors of rows against dense systems, and expected squares against an average over points."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from lgmd.linalg import row_kernels, row_posteriors, threads
from lgmd.linalg.packed import pack, packed_size, unpack
from lgmd.linalg.row_posteriors import (
    RowPosteriors,
    RowPrior,
    RowSums,
    accumulate_rows,
    diagonal_moments,
    entry_squares,
    expected_squares,
    posteriors_of_rows,
    posteriors_of_sums,
    second_moments,
)
from lgmd.linalg.row_systems import Entries
from lgmd.linalg.threads import balanced_blocks, even_blocks

N_COLUMNS = 150
SHIFT = 0.75
NO_WEIGHTS = np.empty(0)

# The kernel sums 32 entries at a time in the precision of the storage and solves eight rows side by side: counts around
# multiples of each, and a number of rows that is no multiple of eight.
COUNTS = (0, 1, 3, 4, 5, 9, 2, 8, 64, 69, 131)


class Case(NamedTuple):
    entries: Entries
    weights: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    """Of the columns, full, (p, k + 1, k + 1)."""
    column_weights: np.ndarray
    tau: np.ndarray
    prior: RowPrior

    @property
    def n_rows(self):
        return len(self.entries.indptr) - 1

    @property
    def d(self):
        return self.mean.shape[1]

    @property
    def dtype(self):
        return self.mean.dtype

    def row(self, i):
        """Columns, values without the shift and weights of the entries of one row, in double precision."""
        chosen = slice(self.entries.indptr[i], self.entries.indptr[i + 1])
        columns = self.entries.indices[chosen]
        weights = self.weights[chosen].astype(float) if len(self.weights) else np.ones(len(columns))
        return columns, self.entries.values[chosen].astype(float) - SHIFT, weights * self.column_weights[columns]

    def second_moments(self):
        return second_moments(self.mean, pack(self.covariance), self.column_weights)

    def diagonal_moments(self):
        variances = np.diagonal(self.covariance, axis1=1, axis2=2)
        return diagonal_moments(self.mean, np.ascontiguousarray(variances), self.column_weights)


def covariances(rng, count, d, scale=0.3):
    roots = scale * rng.standard_normal((count, d, d))
    return roots @ roots.transpose(0, 2, 1)


def make_case(k, *, dtype=np.float64, weighted=True, intercept=0.6, independent=False, counts=COUNTS, seed=0):
    rng = np.random.default_rng(seed)
    counts = np.asarray(counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([np.sort(rng.choice(N_COLUMNS, count, replace=False)) for count in counts])
    values = 2 + rng.standard_normal(indptr[-1])
    entries = Entries(indptr.astype(np.int64), indices.astype(np.int32), values.astype(dtype), balanced_blocks(indptr))
    covariance = covariances(rng, N_COLUMNS, k + 1).astype(dtype)
    if independent:
        covariance = covariance * np.eye(k + 1, dtype=dtype)
    return Case(
        entries,
        (rng.uniform(0.2, 2.0, indptr[-1]) if weighted else NO_WEIGHTS).astype(dtype),
        rng.standard_normal((N_COLUMNS, k + 1)).astype(dtype),
        covariance,
        rng.uniform(0.5, 2.0, N_COLUMNS),
        rng.uniform(0.5, 3.0, len(counts)),
        RowPrior(rng.uniform(0.5, 2.0, len(counts)), rng.uniform(0.5, 2.0, k), intercept),
    )


def moment(mean, covariance):
    """``E[h h']`` of ``h = (w, 1, b)`` from the mean and the covariance of ``(w, b)``, written out."""
    k = len(mean) - 1
    full, spread = np.insert(mean, k, 1.0), np.zeros((k + 2, k + 2))
    numbers = np.append(np.arange(k), k + 1)
    spread[np.ix_(numbers, numbers)] = covariance
    return np.outer(full, full) + spread


def points(mean, covariance):
    """Points over which the plain average of a quadratic is its expectation under a Gaussian, (..., 2 d, d)."""
    values, vectors = np.linalg.eigh(covariance)
    root = np.swapaxes(vectors * np.sqrt(mean.shape[-1] * np.maximum(values, 0.0))[..., None, :], -1, -2)
    return np.concatenate([mean[..., None, :] + root, mean[..., None, :] - root], axis=-2)


def mean_square(values, rows, columns):
    """Of ``y - a - b - x'w`` for entries of one row: a quadratic of either side while the other is held.

    ``rows`` (2 d, d) and ``columns`` (entries, 2 d, d) are points.
    """
    predicted = np.einsum("ra,jca->jrc", rows[:, :-1], columns[:, :, :-1]) + rows[:, -1:] + columns[:, None, :, -1]
    return np.mean((values[:, None, None] - predicted) ** 2, axis=(1, 2))


def joined(slabs):
    """The numbers of each row side by side."""
    return np.hstack(list(slabs))


class Expected(NamedTuple):
    precision: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    logdet: np.ndarray
    squares: np.ndarray
    residual: np.ndarray
    weight: np.ndarray
    size: np.ndarray
    """What the expected squares are the rest of."""
    condition: np.ndarray
    """Of the precisions."""


def brute_force(case, diagonal=False):
    """Row by row and entry by entry."""
    n, d = case.n_rows, case.d
    found = Expected(np.zeros((n, d, d)), np.zeros((n, d)), np.zeros((n, d, d)), *np.zeros((6, n)))
    active = np.arange(d - (case.prior.intercept < 0))
    block = np.ix_(active, active)
    means, spreads = case.mean.astype(float), case.covariance.astype(float)
    column_points = points(means, spreads)
    for i in range(n):
        columns, values, weights = case.row(i)
        prior = np.append(case.prior.scale[i] * case.prior.factors, max(case.prior.intercept, 0.0))
        precision, right = np.diag(prior), np.zeros(d)
        for j, y, weight in zip(columns, values, weights, strict=True):
            h = moment(means[j], spreads[j])
            precision += case.tau[i] * weight * h[:d, :d]
            right += case.tau[i] * weight * (y * h[d - 1, :d] - h[d, :d])
        found.precision[i] = precision
        found.mean[i, active] = np.linalg.solve(precision[block], right[active])
        inverse = np.diag(1.0 / np.diag(precision)[active]) if diagonal else np.linalg.inv(precision[block])
        found.covariance[i][block] = inverse
        found.logdet[i] = np.linalg.slogdet(inverse)[1]
        found.condition[i] = np.linalg.cond(precision[block])
        own = points(found.mean[i], found.covariance[i])
        found.squares[i] = weights @ mean_square(values, own, column_points[columns])
        found.size[i] = weights @ (values**2 + mean_square(0 * values, own, column_points[columns]))
        predicted = means[columns, :-1] @ found.mean[i, :-1] + found.mean[i, -1] + means[columns, -1]
        found.residual[i] = weights @ (values - predicted)
        found.weight[i] = weights.sum()
    return found


def empty_posteriors(case, diagonal=False, fill=7.0):
    size = case.d if diagonal else packed_size(case.d)
    shapes = ((case.n_rows, case.d), (case.n_rows, size))
    return RowPosteriors(
        *(np.full(shape, fill, case.dtype) for shape in shapes), *(np.full(case.n_rows, fill) for _ in range(4))
    )


def posteriors(case, rows=None, *, independent=False, diagonal=False):
    rows = np.arange(case.n_rows) if rows is None else rows
    moments = case.diagonal_moments() if independent else case.second_moments()
    out = empty_posteriors(case, diagonal)
    posteriors_of_rows(rows, case.entries, case.weights, SHIFT, moments, case.tau, case.prior, out)
    return out


def posteriors_by_sums(case, rows=None, *, independent=False, diagonal=False):
    rows = np.arange(case.n_rows) if rows is None else rows
    moments = case.diagonal_moments() if independent else case.second_moments()
    sums = accumulate_rows(rows, case.entries, case.weights, SHIFT, moments, case.d - 1)
    prior = case.prior._replace(scale=case.prior.scale[rows])
    mean, covariance, logdet, lower = posteriors_of_sums(sums, case.tau[rows], prior, diagonal=diagonal)
    return RowPosteriors(mean, covariance, logdet, *expected_squares(sums, mean, covariance)), lower


def assert_agrees(found, expected, dtype, diagonal=False):
    """Agreement to what rounding allows.

    Moments are rounded to the storage, as are sums of at most 32 of them, so that a row's system is off by some units
    in the last place; its solution by as many times its condition, and squares by as much of what they are the rest of.
    """
    rounding, condition = 64 * float(np.finfo(dtype).eps), expected.condition.max()
    assert condition < 100
    spread = found.covariance if diagonal else unpack(found.covariance)
    wanted = np.diagonal(expected.covariance, axis1=1, axis2=2) if diagonal else expected.covariance
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=rounding * condition * np.ptp(expected.mean))
    np.testing.assert_allclose(spread, wanted, rtol=0, atol=rounding * condition * wanted.max())
    np.testing.assert_allclose(found.logdet, expected.logdet, rtol=0, atol=rounding * condition)
    tolerance = rounding * (1.0 + expected.size)
    assert np.all(np.abs(found.squares - expected.squares) <= tolerance)
    assert np.all(np.abs(found.residual - expected.residual) <= condition * tolerance)
    np.testing.assert_allclose(found.weight, expected.weight, rtol=rounding)


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_second_moments_are_those_of_factors_a_constant_and_the_intercept(dtype, k):
    case = make_case(k, dtype=dtype)
    expected = np.stack(
        [
            weight * moment(mean, covariance)
            for weight, mean, covariance in zip(
                case.column_weights, case.mean.astype(float), case.covariance.astype(float), strict=True
            )
        ]
    )
    found = joined(case.second_moments())
    assert found.dtype == dtype
    assert np.all(found[:, packed_size(k + 2) :] == 0)
    # A product, a sum and another product, rounded each: numbers here are below ten.
    tolerance = 32 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(unpack(found[:, : packed_size(k + 2)]), expected, rtol=0, atol=tolerance)
    shared = second_moments(case.mean, pack(case.covariance[:1]), case.column_weights)
    repeated = second_moments(case.mean, pack(np.repeat(case.covariance[:1], N_COLUMNS, axis=0)), case.column_weights)
    np.testing.assert_array_equal(shared, repeated)


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_diagonal_moments_multiply_out_to_the_second_moments(dtype, k):
    case = make_case(k, dtype=dtype, independent=True)
    found = case.diagonal_moments()
    assert found.dtype == dtype
    assert found.shape == (N_COLUMNS, 2 * (k + 2))
    means, variances = found[:, : k + 2].astype(float), found[:, k + 2 :].astype(float)
    products = means[:, :, None] * means[:, None, :] + variances[:, :, None] * np.eye(k + 2)
    tolerance = 64 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(
        products, unpack(joined(case.second_moments())[:, : packed_size(k + 2)]), rtol=0, atol=tolerance
    )


@pytest.mark.parametrize("intercept", [0.6, -1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 7, 12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_row_has_the_posterior_of_its_own_entries(dtype, k, weighted, intercept):
    case = make_case(k, dtype=dtype, weighted=weighted, intercept=intercept)
    expected = brute_force(case)
    found = posteriors(case)
    assert found.mean.dtype == found.covariance.dtype == dtype
    assert_agrees(found, expected, dtype)
    by_sums, lower = posteriors_by_sums(case)
    assert_agrees(by_sums, expected, dtype)
    triangle = np.tril(lower)
    precision = triangle @ triangle.transpose(0, 2, 1)
    if intercept < 0:
        assert np.all(found.mean[:, -1] == 0.0)
        assert np.all(unpack(found.covariance)[:, -1] == 0.0)
        precision, wanted = precision[:, :-1, :-1], expected.precision[:, :-1, :-1]
    else:
        wanted = expected.precision
    np.testing.assert_allclose(precision, wanted, rtol=0, atol=256 * np.finfo(dtype).eps * wanted.max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_independent_columns_may_be_given_by_their_variances(dtype, k, weighted):
    case = make_case(k, dtype=dtype, weighted=weighted, independent=True)
    expected = brute_force(case)
    assert_agrees(posteriors(case, independent=True), expected, dtype)
    assert_agrees(posteriors_by_sums(case, independent=True)[0], expected, dtype)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("intercept", [0.6, -1.0])
@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_independent_rows_keep_the_mean_and_have_the_inverse_of_the_diagonal(dtype, k, intercept, independent):
    case = make_case(k, dtype=dtype, intercept=intercept, independent=independent)
    expected = brute_force(case, diagonal=True)
    full = brute_force(case)
    if k > 1 or intercept > 0:  # the test says nothing where there is but one unknown
        assert np.abs(expected.covariance - full.covariance).max() > 0.01
    np.testing.assert_array_equal(expected.mean, full.mean)
    assert_agrees(posteriors(case, independent=independent, diagonal=True), expected, dtype, diagonal=True)
    by_sums, _ = posteriors_by_sums(case, independent=independent, diagonal=True)
    assert_agrees(by_sums, expected, dtype, diagonal=True)


def test_a_row_without_entries_is_as_the_prior_says():
    case = make_case(2)
    found = posteriors(case)
    assert COUNTS[0] == 0
    assert np.all(found.mean[0] == 0.0)
    variances = 1.0 / np.append(case.prior.scale[0] * case.prior.factors, case.prior.intercept)
    np.testing.assert_allclose(unpack(found.covariance)[0], np.diag(variances), rtol=1e-14)
    assert found.logdet[0] == pytest.approx(np.log(variances).sum(), rel=1e-14)
    assert found.squares[0] == found.residual[0] == found.weight[0] == 0.0


@pytest.mark.parametrize("count", COUNTS[1:])
def test_an_entry_of_no_weight_is_as_good_as_none(count):
    case = make_case(2, counts=(count,))
    for position in range(count):
        weights = case.weights.copy()
        weights[position] = 0.0
        kept = np.arange(count) != position
        without = case._replace(
            weights=case.weights[kept],
            entries=case.entries._replace(
                indptr=np.array([0, count - 1]),
                indices=case.entries.indices[kept],
                values=case.entries.values[kept],
            ),
        )
        for some, wanted in zip(posteriors(case._replace(weights=weights)), posteriors(without), strict=True):
            np.testing.assert_allclose(some, wanted, rtol=0, atol=1e-12)


def test_weights_of_entries_and_of_columns_are_the_same_where_they_agree():
    case = make_case(2)
    swapped = case._replace(
        weights=case.weights * case.column_weights[case.entries.indices], column_weights=np.ones(N_COLUMNS)
    )
    for some, wanted in zip(posteriors(swapped), posteriors(case), strict=True):
        np.testing.assert_allclose(some, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True])
def test_only_the_asked_rows_are_written(diagonal):
    case = make_case(2)
    rows = np.array([1, 2, 5])
    others = np.setdiff1d(np.arange(case.n_rows), rows)
    everything, some = posteriors(case, diagonal=diagonal), posteriors(case, rows, diagonal=diagonal)
    for found, wanted in zip(some, everything, strict=True):
        np.testing.assert_array_equal(found[rows], wanted[rows])
        assert np.all(found[others] == 7.0)
    all_sums, _ = posteriors_by_sums(case, diagonal=diagonal)
    some_sums, _ = posteriors_by_sums(case, rows, diagonal=diagonal)
    for found, wanted in zip(some_sums, all_sums, strict=True):
        np.testing.assert_array_equal(found, wanted[rows])


def test_no_row_at_all_is_fine():
    case = make_case(2)
    nothing = np.empty(0, dtype=np.int64)
    assert all(np.all(field == 7.0) for field in posteriors(case, nothing))
    by_sums, lower = posteriors_by_sums(case, nothing)
    assert by_sums.mean.shape == (0, 3)
    assert lower.shape == (0, 3, 3)


def test_one_sum_may_serve_all_rows():
    case = make_case(2)
    rng = np.random.default_rng(1)
    own = accumulate_rows(np.array([5]), case.entries, case.weights, SHIFT, case.second_moments(), 2)
    n = case.n_rows
    right = rng.standard_normal((n, 4))
    shared = posteriors_of_sums(RowSums(own.moments, right, np.zeros(n)), case.tau, case.prior)
    repeated = posteriors_of_sums(RowSums(np.repeat(own.moments, n, axis=0), right, np.zeros(n)), case.tau, case.prior)
    for some, wanted in zip(shared[:3], repeated[:3], strict=True):
        np.testing.assert_array_equal(some, wanted)
    np.testing.assert_array_equal(np.tril(shared[3]), np.tril(repeated[3]))


@pytest.mark.parametrize("diagonal", [False, True])
def test_expected_squares_hold_for_any_mean_and_covariance(diagonal):
    case = make_case(2)
    rng = np.random.default_rng(2)
    mean, covariance = rng.standard_normal((case.n_rows, 3)), covariances(rng, case.n_rows, 3)
    if diagonal:
        covariance *= np.eye(3)
    sums = accumulate_rows(np.arange(case.n_rows), case.entries, case.weights, SHIFT, case.second_moments(), 2)
    packed = np.ascontiguousarray(np.diagonal(covariance, axis1=1, axis2=2)) if diagonal else pack(covariance)
    squares, residual, weight = expected_squares(sums, mean, packed)
    column_points = points(case.mean, case.covariance)
    for i in range(case.n_rows):
        columns, values, weights = case.row(i)
        expected = mean_square(values, points(mean[i], covariance[i]), column_points[columns])
        predicted = mean[i, :-1] @ case.mean[columns, :-1].T + mean[i, -1] + case.mean[columns, -1]
        # Numbers of the size of a hundred, less the rounding of their sums.
        assert squares[i] == pytest.approx(weights @ expected, rel=1e-12, abs=1e-12)
        assert residual[i] == pytest.approx(weights @ (values - predicted), rel=1e-12, abs=1e-12)
        assert weight[i] == pytest.approx(weights.sum(), rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_the_expected_square_of_each_entry_is_its_residual_and_its_variance(dtype, k):
    case = make_case(k, dtype=dtype)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((case.n_rows, k + 1)).astype(dtype)
    by_rows = rng.uniform(0, 1, (case.n_rows, 5)).astype(dtype)
    by_columns = rng.uniform(0, 1, (N_COLUMNS, 5)).astype(dtype)
    found = entry_squares(case.entries, SHIFT, X, by_rows, case.mean, by_columns)
    assert found.dtype == np.float64
    assert len(found) == sum(COUNTS)
    expected, sizes = [], []
    for i in range(case.n_rows):
        columns, values, _ = case.row(i)
        x, w = X[i].astype(float), case.mean[columns].astype(float)
        residual = values - w[:, :-1] @ x[:-1] - w[:, -1] - x[-1]
        expected.extend(residual**2 + by_columns[columns].astype(float) @ by_rows[i].astype(float))
        sizes.extend((np.abs(values) + np.abs(w[:, :-1]) @ np.abs(x[:-1]) + np.abs(w[:, -1]) + abs(x[-1])) ** 2 + 5)
    # A residual is off by a few units in the last place of its largest term, its square by twice as many.
    tolerance = 2 * (k + 4) * float(np.finfo(dtype).eps) * np.array(sizes)
    assert np.all(np.abs(found - expected) <= tolerance)


@pytest.mark.parametrize("intercept", [1.0, -1.0])
def test_next_to_no_noise_leaves_to_the_prior_what_no_entry_says(intercept):
    case = make_case(7, weighted=False, intercept=intercept, counts=(1, 2, 3, 4, 5, 5, 4, 3, 2, 1))
    case = case._replace(
        covariance=0 * case.covariance,
        prior=RowPrior(np.ones(case.n_rows), np.ones(7), intercept),
        tau=np.full(case.n_rows, 1e12),
        column_weights=np.ones(N_COLUMNS),
    )
    found = posteriors(case)
    for i in range(case.n_rows):
        columns, values, _ = case.row(i)
        design = np.column_stack([case.mean[columns, :-1], np.full(len(columns), float(intercept > 0))])
        # The same posterior in as many unknowns as there are entries, where it is well conditioned.
        gain = design.T @ np.linalg.inv(design @ design.T + 1e-12 * np.eye(len(columns)))
        covariance = np.diag([1.0] * 7 + [float(intercept > 0)]) - gain @ design
        # A prior of one beside entries of 1e13 has three digits left, and four more where the entries speak.
        np.testing.assert_allclose(found.mean[i], gain @ (values - case.mean[columns, -1]), atol=0.05)
        np.testing.assert_allclose(unpack(found.covariance)[i], covariance, atol=0.05)
        predicted = design @ found.mean[i] + case.mean[columns, -1]
        np.testing.assert_allclose(predicted, values, atol=1e-7)


@pytest.mark.parametrize("intercept", [1e-30, -1.0])
def test_next_to_no_prior_still_gives_numbers(intercept):
    case = make_case(7, weighted=False, intercept=intercept)
    case = case._replace(
        covariance=0 * case.covariance, prior=RowPrior(np.ones(case.n_rows), np.full(7, 1e-30), intercept)
    )
    found = posteriors(case)
    assert all(np.all(np.isfinite(field)) for field in found)
    for i in range(case.n_rows):
        columns, values, _ = case.row(i)
        if len(columns) <= 5:  # few enough to be met by seven factors
            predicted = case.mean[columns, :-1] @ found.mean[i, :-1] + found.mean[i, -1] + case.mean[columns, -1]
            np.testing.assert_allclose(predicted, values, atol=1e-6)


@pytest.mark.parametrize("tau", [1e12, 1e18])
def test_an_intercept_that_is_not_there_does_not_count_however_small_the_noise(tau):
    case = make_case(2, intercept=-1.0, weighted=False)
    certain = case._replace(tau=np.full(case.n_rows, tau))
    found, expected = posteriors(certain), brute_force(certain)
    rows = np.array(COUNTS) >= 3
    # With more entries than factors the prior is nothing here, and the condition is that of the entries.
    np.testing.assert_allclose(found.mean[rows], expected.mean[rows], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.logdet[rows], expected.logdet[rows], rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_residuals_are_not_lost_beside_large_entries(dtype):
    case = make_case(2, dtype=dtype, weighted=False, counts=(131,) * 9)
    rng = np.random.default_rng(8)
    X = rng.standard_normal((9, 3))
    rows = np.repeat(np.arange(9), 131)
    w = case.mean[case.entries.indices].astype(float)
    exact = np.einsum("ea,ea->e", X[rows, :2], w[:, :2]) + X[rows, 2] + w[:, 2] + SHIFT
    # A small share of what the factors explain is left. Squares are differences of sums of large terms, which single
    # precision holds to some 1e-7 each: it resolves less, and the noise is kept above that.
    size = 1e-3 if dtype == np.float64 else 2e-2
    case.entries.values[:] = exact + size * rng.standard_normal(len(exact))
    case = case._replace(covariance=0 * case.covariance, tau=np.full(9, 1 / size**2))
    found, expected = posteriors(case), brute_force(case)
    np.testing.assert_allclose(expected.squares, 131 * size**2 * case.column_weights.mean(), rtol=0.5)
    np.testing.assert_allclose(found.squares, expected.squares, rtol=0.02)


def test_what_is_not_a_number_stays_in_its_row():
    case = make_case(2)
    for row, offset in ((3, 0), (5, 8)):
        case.entries.values[case.entries.indptr[row] + offset] = np.nan
    found = posteriors(case)
    broken = np.isin(np.arange(case.n_rows), [3, 5])
    np.testing.assert_array_equal(np.isnan(found.mean).all(axis=1), broken)
    np.testing.assert_array_equal(np.isnan(found.squares), broken)
    # What is known of a row does not depend on what its entries say.
    assert np.all(np.isfinite(found.covariance))


@pytest.mark.slow  # compiles everything anew
def test_64_bit_indices_and_read_only_arrays_change_nothing():
    case = make_case(2)
    wide = case._replace(entries=case.entries._replace(indices=case.entries.indices.astype(np.int64)))
    frozen = make_case(2)
    for array in (*frozen.entries, *frozen[1:-1], frozen.prior.scale, frozen.prior.factors):
        array.setflags(write=False)
    expected = posteriors(case)
    for other in (wide, frozen):
        for found, wanted in zip(posteriors(other), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


def test_the_number_of_threads_does_not_change_a_digit(monkeypatch):
    case = make_case(7, counts=np.random.default_rng(5).integers(0, N_COLUMNS + 1, 6000))
    assert case.n_rows * case.d**3 > threads._WORTH_A_THREAD
    assert case.n_rows * packed_size(case.d) < threads._WORTH_A_THREAD < len(case.entries.values) * 72
    some_rows = np.flatnonzero(np.arange(case.n_rows) % 7)
    X = np.random.default_rng(6).standard_normal((case.n_rows, 8))
    by_rows = np.random.default_rng(7).uniform(0, 1, (case.n_rows, 72))

    def everything():
        by_sums, lower = posteriors_by_sums(case)
        squares = entry_squares(case.entries, SHIFT, X, by_rows, case.mean, by_rows[:N_COLUMNS])
        many = second_moments(X, pack(np.eye(8)[None]), np.ones(len(X)))
        return [*posteriors(case), *posteriors(case, some_rows), *by_sums, np.tril(lower), squares, many]

    with threadpool_limits(1):
        assert threads.available_threads() == 1
        alone = everything()
    free = everything()
    monkeypatch.setattr(threads, "available_threads", lambda: 5)
    crowded = everything()
    for one, some, many in zip(alone, free, crowded, strict=True):
        np.testing.assert_array_equal(one, some)
        np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("n_rows", [1, 7, 8, 63, 64, 65, 150, 669, 5000])
def test_blocks_may_begin_at_full_lanes(n_rows):
    blocks = row_posteriors._in_lanes(even_blocks(n_rows))
    assert (blocks[0], blocks[-1]) == (0, n_rows)
    assert np.all(np.diff(blocks) > 0)
    assert np.all(blocks[:-1] % row_kernels.LANES == 0)


def blocks_of(case, monkeypatch):
    """Blocks in which the posteriors of all rows are found."""
    seen = []
    monkeypatch.setattr(row_posteriors, "map_blocks", lambda function, blocks, work: seen.append(blocks))
    posteriors(case)
    return seen[-1]


def test_lanes_are_filled_where_solving_is_most_of_the_work(monkeypatch):
    short, long = (make_case(7, counts=np.full(100, count)) for count in (5, N_COLUMNS))
    assert np.all(blocks_of(short, monkeypatch)[:-1] % row_kernels.LANES == 0)
    # Summing 150 entries takes ten times as long as a system of eight: every row may have its thread.
    monkeypatch.setattr(row_posteriors, "_WORTH_FILLING", 1)
    monkeypatch.setattr(row_posteriors, "available_threads", lambda: 64)
    np.testing.assert_array_equal(blocks_of(long, monkeypatch), long.entries.blocks)


@pytest.mark.parametrize("n_threads", [1, 2, 5, 64])
def test_a_thread_has_a_few_blocks(n_threads, monkeypatch):
    monkeypatch.setattr(row_posteriors, "available_threads", lambda: n_threads)
    case = make_case(2, counts=np.full(1000, 3))
    for rows in (np.arange(1000), np.arange(500)):
        blocks = row_posteriors._blocks(rows, case.entries)
        assert (blocks[0], blocks[-1]) == (0, len(rows))
        assert np.all(np.diff(blocks) > 0)
        assert min(4 * n_threads, 64) <= len(blocks) - 1 <= 64


@pytest.mark.parametrize("weighted", [False, True])
def test_more_rows_and_columns_than_are_looked_at_at_a_time_have_the_sums_of_their_entries(weighted):
    rng = np.random.default_rng(9)
    k, n_columns = 1, 2 * row_kernels._RUN + 5
    size, width = packed_size(k + 2), row_kernels.SLAB_BYTES // 8
    n_rows = row_kernels._MOST_ROOM // width + 13
    indptr = np.append(0, np.cumsum(rng.integers(0, 10, n_rows)))
    # In no order within a row.
    indices = rng.integers(0, n_columns, indptr[-1]).astype(np.int32)
    values = rng.standard_normal(indptr[-1])
    entries = Entries(indptr, indices, values, balanced_blocks(indptr))
    weights = rng.uniform(0.5, 2.0, indptr[-1]) if weighted else NO_WEIGHTS
    moments = second_moments(
        rng.standard_normal((n_columns, k + 1)), pack(0.3 * np.eye(k + 1)[None]), rng.uniform(0.5, 2.0, n_columns)
    )
    sums = accumulate_rows(np.arange(n_rows), entries, weights, SHIFT, moments, k)

    def summed(scale):
        weighted = scale * (weights if len(weights) else 1.0)
        table = scipy.sparse.csr_array((weighted, indices, indptr), shape=(n_rows, n_columns))
        return table @ joined(moments)[:, :size]

    y = values - SHIFT
    np.testing.assert_allclose(sums.moments, summed(np.ones_like(y)), rtol=1e-12, atol=1e-12)
    # Products with the constant: those of the factor and of itself, and that of the intercept.
    np.testing.assert_allclose(sums.right, summed(y)[:, [1, 2, 4]], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums.squares, summed(y**2)[:, 2], rtol=1e-12, atol=1e-12)

    prior, tau = RowPrior(np.ones(n_rows), np.ones(k), 1.0), np.ones(n_rows)
    found = RowPosteriors(np.empty((n_rows, 2)), np.empty((n_rows, 3)), *(np.empty(n_rows) for _ in range(4)))
    posteriors_of_rows(np.arange(n_rows), entries, weights, SHIFT, moments, tau, prior, found)
    mean, covariance, logdet, _ = posteriors_of_sums(sums, tau, prior)
    expected = (mean, covariance, logdet, *expected_squares(sums, mean, covariance))
    for own, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-10, atol=1e-12)


def test_rows_of_filled_lanes_have_the_posterior_of_their_own_entries(monkeypatch):
    case = make_case(2, counts=np.random.default_rng(8).integers(0, 9, 150))
    monkeypatch.setattr(row_posteriors, "available_threads", lambda: 64)
    with monkeypatch.context() as while_looking:
        assert len(blocks_of(case, while_looking)) > 10
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 0.0)
    monkeypatch.setattr(threads, "_WORTH_A_BLOCK", 0.0)
    expected = brute_force(case)
    assert_agrees(posteriors(case), expected, np.float64)
    assert_agrees(posteriors_by_sums(case)[0], expected, np.float64)

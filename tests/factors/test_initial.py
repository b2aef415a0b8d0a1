"""Where the alternation starts."""

import numpy as np
import pytest
import scipy.sparse

from lgmd.factors import Intercepts, InterceptTerms, initial_factors, initial_intercepts
from lgmd.factors import initial as initial_module
from lgmd.observed import as_observed


def test_means_without_shrinkage_are_those_of_the_two_way_table(make_table):
    complete, _ = make_table(missing=0)
    intercepts, mean_square = initial_intercepts(as_observed(complete), InterceptTerms.parse("both"), 0.0)
    fitted = intercepts.overall + intercepts.rows[:, None] + intercepts.columns
    expected = complete.mean(axis=1, keepdims=True) + complete.mean(axis=0) - complete.mean()
    np.testing.assert_allclose(fitted, expected, atol=1e-12)
    assert mean_square == pytest.approx(np.mean((complete - expected) ** 2))


@pytest.mark.parametrize(("name", "axis"), [("samples", 1), ("features", 0)])
def test_one_sided_means_are_shrunk_towards_the_overall_mean(make_table, name, axis):
    _, gappy = make_table()
    intercepts, _ = initial_intercepts(as_observed(gappy), InterceptTerms.parse(name), 2.0)
    side = intercepts.rows if name == "samples" else intercepts.columns
    counts = (~np.isnan(gappy)).sum(axis=axis)
    expected = np.nansum(gappy - np.nanmean(gappy), axis=axis) / (counts + 2.0)
    # What all rows have in common belongs to the overall mean.
    np.testing.assert_allclose(side, expected - expected.mean(), atol=1e-12)
    assert not np.any(intercepts.columns if name == "samples" else intercepts.rows)


def test_two_sided_means_minimise_the_ridge_objective(make_table):
    _, gappy = make_table()
    intercepts, _ = initial_intercepts(as_observed(gappy), InterceptTerms.parse("both"), 1.0, max_sweeps=500)
    residual = np.where(np.isnan(gappy), 0, gappy - intercepts.overall - intercepts.rows[:, None] - intercepts.columns)
    # The sweeps end when the mean square changes by 1e-10; its gradient is then good to the root of that.
    np.testing.assert_allclose(residual.sum(axis=1), intercepts.rows, atol=1e-4)
    np.testing.assert_allclose(residual.sum(axis=0), intercepts.columns, atol=1e-4)
    assert residual.sum() == pytest.approx(0, abs=1e-10)


def test_global_and_none(make_table):
    _, gappy = make_table()
    intercepts, _ = initial_intercepts(as_observed(gappy), InterceptTerms.parse("global"), 1.0)
    assert intercepts.overall == pytest.approx(np.nanmean(gappy))
    intercepts, mean_square = initial_intercepts(as_observed(gappy), InterceptTerms.parse("none"), 1.0)
    assert intercepts.overall == 0
    assert mean_square == pytest.approx(np.nanmean(gappy**2))


def test_factors_start_from_the_truncated_decomposition(make_table):
    complete, _ = make_table()
    data = as_observed(complete)
    X, W = initial_factors(data, Intercepts.zero(data.shape, data.dtype), 3, 0)
    U, values, Vt = np.linalg.svd(complete)
    np.testing.assert_allclose(X @ W.T, (U[:, :3] * values[:3]) @ Vt[:3], atol=1e-10)
    # Singular values are split evenly between the two sides.
    np.testing.assert_allclose(X.T @ X, W.T @ W, atol=1e-10)


@pytest.mark.parametrize("with_gaps", [False, True])
def test_the_randomised_start_agrees_with_the_exact_one(make_table, monkeypatch, with_gaps):
    table = make_table(n=60, p=50, noise=0.01)[int(with_gaps)]
    data = as_observed(table)
    intercepts, _ = initial_intercepts(data, InterceptTerms.parse("both"), 1.0)
    exact = initial_factors(data, intercepts, 3, 0)
    monkeypatch.setattr(initial_module, "_EXACT_ENTRIES", 10)
    randomised = initial_factors(data, intercepts, 3, 0)
    np.testing.assert_allclose(randomised[0] @ randomised[1].T, exact[0] @ exact[1].T, atol=1e-3)


def test_gaps_are_filled_by_the_intercepts(make_table):
    _, gappy = make_table()
    data = as_observed(gappy)
    intercepts, _ = initial_intercepts(data, InterceptTerms.parse("both"), 1.0)
    means = intercepts.overall + intercepts.rows[:, None] + intercepts.columns
    filled = np.where(np.isnan(gappy), 0.0, gappy - means)
    X, W = initial_factors(data, intercepts, 2, 0)
    U, values, Vt = np.linalg.svd(filled)
    share = np.mean(~np.isnan(gappy))
    np.testing.assert_allclose(X @ W.T, (U[:, :2] * values[:2]) @ Vt[:2] / share, atol=1e-10)
    assert scipy.sparse.issparse(data.residual_matrix(intercepts.rows, intercepts.column_offsets))

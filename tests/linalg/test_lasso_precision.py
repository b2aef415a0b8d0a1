"""Newton steps for the graphical lasso on one component: optimality conditions, limits, symmetries."""

import numpy as np
import pytest

from lgmd.linalg.lasso_precision import UnboundedError, _point, _Support, _walk, duality_gap, lasso_precision

KINDS = ["random", "block", "chain", "dense", "full rank", "uneven", "equal rows"]


def covariance_of(kind, n, k=8, seed=0):
    """A covariance from few columns (but for full rank), and a penalty that leaves the kind's share of pairs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 10 * n if kind == "full rank" else k))
    if kind == "block":
        X = rng.standard_normal((n // 5 + 1, k))[np.arange(n) // 5] + X
    elif kind == "chain":
        for i in range(1, n):
            X[i] = 0.8 * X[i - 1] + 0.6 * X[i]
    elif kind == "uneven":
        X *= np.exp(rng.uniform(-2, 2, (n, 1)))
    elif kind == "equal rows":
        X[n // 2 :] = X[: n - n // 2]
    S = X @ X.T / X.shape[1]
    share = 0.6 if kind == "dense" else 0.15
    return S, float(np.quantile(np.abs(S[np.triu_indices(n, 1)]), 1 - share))


def kkt_residual(S, eta, A, allowed=None):
    """Largest violation of the optimality conditions, in units of sqrt(S_ii S_jj), from the definition."""
    gradient = S - np.linalg.inv(A)
    off = ~np.eye(len(S), dtype=bool)
    on, zero = off & (A != 0), off & (A == 0)
    violation = np.abs(np.where(on, gradient + eta * np.sign(A), gradient))
    violation[zero] = np.maximum(violation[zero] - eta, 0)
    if allowed is not None:
        violation[off & ~allowed] = 0
    scale = np.sqrt(np.diag(S))
    return float((violation / np.outer(scale, scale)).max())


def objective(S, eta, A):
    sign, logdet = np.linalg.slogdet(A)
    assert sign > 0
    return np.sum(S * A) - logdet + eta * (np.abs(A).sum() - np.abs(np.diag(A)).sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [12, 61])
def test_optimality_conditions_hold(kind, n):
    S, eta = covariance_of(kind, n)
    found = lasso_precision(S, eta)
    np.testing.assert_array_equal(found.precision, found.precision.T)
    # Both residuals are of the same matrix; they differ by the rounding of its inverse.
    assert found.residual < 1e-6
    assert kkt_residual(S, eta, found.precision) == pytest.approx(found.residual, abs=1e-9)
    assert found.objective == pytest.approx(objective(S, eta, found.precision), rel=1e-12, abs=1e-10)
    assert found.logdet == pytest.approx(np.linalg.slogdet(found.precision)[1], abs=1e-9)
    np.testing.assert_allclose(found.covariance @ found.precision, np.eye(n), atol=1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_the_tolerance_is_what_it_says(tol):
    S, eta = covariance_of("random", 40)
    assert kkt_residual(S, eta, lasso_precision(S, eta, tol=tol).precision) < tol + 1e-11


def test_a_small_penalty_on_a_singular_covariance_is_solved():
    S, _ = covariance_of("random", 30)
    found = lasso_precision(S, 0.005)
    assert np.linalg.cond(found.precision) > 1e3
    assert kkt_residual(S, 0.005, found.precision) < 1.001e-6


def unit_rows(n, k, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, k))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T


@pytest.mark.parametrize(
    ("n", "k", "eta"), [(30, 6, 1e-3), (30, 2, 1e-3), (30, 6, 1e-5), (40, 3, 1e-4), (60, 20, 1e-3), (40, 30, 1e-3)]
)
def test_few_columns_and_a_tiny_penalty_are_solved_in_few_steps(n, k, eta):
    S = unit_rows(n, k)
    found = lasso_precision(S, eta)
    assert found.n_iter < 60
    assert kkt_residual(S, eta, found.precision) < 1.01e-6
    assert found.objective == pytest.approx(objective(S, eta, found.precision), abs=1e-6)
    gap = duality_gap(S, eta, found.precision, found.covariance)
    assert abs(gap) < 1e-3 * n


def test_a_start_for_a_larger_penalty_leads_to_a_tiny_one_too():
    S = unit_rows(30, 6)
    cold = lasso_precision(S, 1e-3)
    for eta in (0.2, 1.2e-3):
        warm = lasso_precision(S, 1e-3, start=lasso_precision(S, eta).precision)
        assert warm.residual < 1e-6
        assert warm.objective == pytest.approx(cold.objective, abs=1e-5)


def curvature_on(support, W):
    """``D -> (W D W)`` between the entries of a support, column by column from the definition."""
    columns = []
    for entry in range(len(support.values)):
        D = support.matrix(np.eye(len(support.values))[entry])
        columns.append((W @ D @ W)[support.rows, support.columns])
    return np.array(columns).T


@pytest.mark.parametrize("density", [0.1, 0.5, 0.9, 1.0])
def test_directions_between_the_edges_are_solved_for_by_edges_or_by_pairs_without_one(rng, density):
    A = np.triu(rng.standard_normal((9, 9)) * (rng.random((9, 9)) < density), 1)
    A = A + A.T + 10 * np.eye(9)
    support = _Support.of(A, _point(A))
    assert (support.others is None) == (len(support.values) <= 45 / 2)
    slopes = rng.standard_normal(len(support.values))
    expected = np.linalg.solve(curvature_on(support, np.linalg.inv(A)), slopes)
    np.testing.assert_allclose(support.solve(slopes), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(5))
def test_walking_ends_at_the_minimum_among_the_edges(seed):
    # All pairs have an entry, of a random sign: many change it or end at zero.
    rng = np.random.default_rng(seed)
    S, eta = unit_rows(10, 3, seed), 0.05
    point = _point(lasso_precision(S, 0.1).precision)
    X = point.A + 0.3 * rng.standard_normal((10, 10))
    X = (X + X.T) / 2
    np.fill_diagonal(X, np.diag(point.A))
    support = _Support.of(X, point)
    A, W = point.A, point.W

    def slope(X):
        return (S - W + W @ (X - A) @ W)[support.rows, support.columns]

    values = _walk(support, support.solve(-slope(X) - eta * support.signs), eta)
    assert np.count_nonzero(values == 0) > 3
    end = slope(support.matrix(values))
    diagonal = support.rows == support.columns
    np.testing.assert_allclose(end[diagonal], 0, atol=1e-9)
    moved = ~diagonal & (values != 0)
    np.testing.assert_allclose(end[moved], -eta * np.sign(values[moved]), atol=1e-9)
    assert np.all(np.abs(end[values == 0]) <= eta + 1e-9)


def test_steps_lower_the_objective_and_bound_the_distance_to_the_minimum():
    S, eta = covariance_of("dense", 40)
    minimum = lasso_precision(S, eta, tol=1e-10).objective
    values = []
    for max_iter in range(1, 12):
        found = lasso_precision(S, eta, max_iter=max_iter)
        assert found.n_iter <= max_iter
        assert found.objective - minimum <= duality_gap(S, eta, found.precision, found.covariance) + 1e-9
        values.append(found.objective)
    assert np.all(np.diff(values) <= 1e-12 * abs(minimum))
    assert values[0] > values[-1] + 1


@pytest.mark.parametrize("restricted", [False, True])
def test_the_duality_gap_of_any_precision_is_finite_and_a_bound(restricted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((15, 2))
    S = X @ X.T / 2
    allowed = np.abs(np.subtract.outer(np.arange(15), np.arange(15))) < 5 if restricted else None
    minimum = lasso_precision(S, 0.1, allowed=allowed, max_iter=1000).objective
    for max_iter in (1, 2, 4, 8):
        found = lasso_precision(S, 0.1, allowed=allowed, max_iter=max_iter)
        gap = duality_gap(S, 0.1, found.precision, found.covariance, allowed)
        assert found.objective - minimum <= gap < 100


def test_what_is_no_covariance_has_no_duality_gap():
    S = np.array([[1.0, -2.0], [-2.0, 1.0]])
    assert duality_gap(S, 0.5, np.eye(2), np.eye(2)) == np.inf


def test_the_duality_gap_closes():
    S, eta = covariance_of("block", 40)
    found = lasso_precision(S, eta, tol=1e-8)
    assert abs(duality_gap(S, eta, found.precision, found.covariance)) < 1e-6
    assert duality_gap(S, eta, np.diag(1 / np.diag(S)), np.diag(np.diag(S))) > 0.1


def test_held_entries_stay_zero_and_the_rest_is_optimal(rng):
    S, eta = covariance_of("random", 40)
    allowed = rng.random((40, 40)) < 0.5
    allowed = np.triu(allowed, 1)
    allowed |= allowed.T
    found = lasso_precision(S, eta, allowed=allowed)
    off = ~np.eye(40, dtype=bool)
    assert np.all(found.precision[off & ~allowed] == 0)
    assert np.any(lasso_precision(S, eta).precision[off & ~allowed] != 0)
    assert kkt_residual(S, eta, found.precision, allowed) < 1.001e-6
    assert abs(duality_gap(S, eta, found.precision, found.covariance, allowed)) < 1e-4


@pytest.mark.parametrize("kind", ["random", "chain"])
def test_a_start_changes_the_way_but_not_the_end(kind, rng):
    S, eta = covariance_of(kind, 40)
    cold = lasso_precision(S, eta, tol=1e-8)
    near = lasso_precision(S, 1.05 * eta)
    warm = lasso_precision(S, eta, tol=1e-8, start=near.precision)
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.precision, cold.precision, atol=1e-6 * np.abs(cold.precision).max())
    again = lasso_precision(S, eta, tol=1e-8, start=cold.precision)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.precision, cold.precision)
    useless = -np.eye(40) + rng.standard_normal((40, 40))
    start = useless + useless.T
    np.testing.assert_array_equal(lasso_precision(S, eta, tol=1e-8, start=start).precision, cold.precision)


def test_a_penalty_above_every_entry_leaves_the_diagonal():
    S, _ = covariance_of("uneven", 12)
    off = S - np.diag(np.diag(S))
    found = lasso_precision(S, np.abs(off).max())
    np.testing.assert_allclose(found.precision, np.diag(1 / np.diag(S)))
    assert found.n_iter == 0


def test_two_nodes_have_a_closed_form():
    S = np.array([[2.0, -0.9], [-0.9, 1.0]])
    found = lasso_precision(S, 0.4, tol=1e-12)
    np.testing.assert_allclose(found.precision, np.linalg.inv([[2.0, -0.5], [-0.5, 1.0]]), rtol=1e-10)


def test_permuting_the_nodes_permutes_the_result(rng):
    S, eta = covariance_of("block", 40)
    order = rng.permutation(40)
    first = lasso_precision(S, eta, tol=1e-9).precision
    second = lasso_precision(S[np.ix_(order, order)], eta, tol=1e-9).precision
    np.testing.assert_allclose(second, first[np.ix_(order, order)], atol=1e-7 * np.abs(first).max())


def test_the_units_do_not_matter():
    S, eta = covariance_of("random", 40)
    first, second = lasso_precision(S, eta), lasso_precision(1e6 * S, 1e6 * eta)
    assert first.n_iter == second.n_iter
    np.testing.assert_allclose(1e6 * second.precision, first.precision, atol=1e-8)


def test_what_is_no_covariance_is_noticed():
    S = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    assert np.linalg.eigvalsh(S)[0] < -0.5
    with pytest.raises(UnboundedError):
        lasso_precision(S, 0.1)
    # A penalty that brings the dual's bounds back to positive definite matrices makes the problem bounded.
    assert kkt_residual(S, 0.5, lasso_precision(S, 0.5).precision) < 1e-6

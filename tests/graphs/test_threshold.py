"""The closed form: exact on forests, positive definite everywhere."""

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs import FactorMoments, GraphEstimate, Side, ThresholdGraph, threshold_precision
from lgmd.graphs.candidates import chain, nearest
from lgmd.graphs.threshold import closed_form
from lgmd.observed import as_observed


def graphical_lasso_by_cvxpy(S, eta, allowed=None):
    n = len(S)
    A = cvxpy.Variable((n, n), PSD=True)
    off = cvxpy.sum(cvxpy.abs(cvxpy.multiply(1 - np.eye(n), A)))
    limits = [] if allowed is None else [cvxpy.multiply(1 - allowed - np.eye(n), A) == 0]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(S @ A) - cvxpy.log_det(A) + eta * off), limits)
    problem.solve(solver="CLARABEL")
    return A.value, problem.value


def tree_covariance(edges, n, rng):
    """A covariance whose entries above the threshold form the given tree."""
    S = 0.05 * rng.uniform(-1, 1, (n, n))
    S = (S + S.T) / 2
    for i, j in edges:
        S[i, j] = S[j, i] = rng.choice([-1, 1]) * rng.uniform(0.3, 0.5)
    np.fill_diagonal(S, 1.0)
    scale = rng.uniform(0.9, 1.1, n)
    return scale[:, None] * S * scale


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1), (0, 2), (0, 3)], [(0, 1), (2, 3)], []])
def test_on_a_forest_the_closed_form_is_the_graphical_lasso(rng, edges):
    S = tree_covariance(edges, 6, rng)
    estimate = threshold_precision(S, 0.2)
    reference, value = graphical_lasso_by_cvxpy(S, 0.2)
    assert estimate.converged
    assert estimate.n_edges == len(edges)
    # The reference stops at a gap of about 1e-7 in the objective, which is flat: entries are good to its root.
    np.testing.assert_allclose(estimate.precision.toarray(), reference, atol=1e-3)
    assert estimate.objective == pytest.approx(value, abs=1e-6)


def test_optimality_conditions_hold_on_a_forest(rng):
    S = tree_covariance([(0, 1), (1, 2), (1, 3), (4, 5)], 7, rng)
    estimate = threshold_precision(S, 0.2)
    A = estimate.precision.toarray()
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(np.diag(inverse), np.diag(S), atol=1e-12)
    on = (A != 0) & ~np.eye(7, dtype=bool)
    np.testing.assert_allclose((S - inverse)[on], -0.2 * np.sign(A[on]), atol=1e-12)
    off = (A == 0) & ~np.eye(7, dtype=bool)
    assert np.all(np.abs((S - inverse)[off]) <= 0.2 + 1e-12)


def test_the_closed_form_entry_by_entry_is_the_papers_equation(rng):
    S = tree_covariance([(0, 1), (1, 2)], 4, rng)
    eta = 0.2
    estimate = threshold_precision(S, eta)
    residual = np.where(np.abs(S) > eta, S - eta * np.sign(S), 0)
    np.fill_diagonal(residual, 0)
    expected = np.zeros((4, 4))
    for i in range(4):
        extra = sum(
            residual[i, m] ** 2 / (S[i, i] * S[m, m] - residual[i, m] ** 2) for m in range(4) if residual[i, m] != 0
        )
        expected[i, i] = (1 + extra) / S[i, i]
        for j in range(4):
            if i != j and residual[i, j] != 0:
                expected[i, j] = -residual[i, j] / (S[i, i] * S[j, j] - residual[i, j] ** 2)
    np.testing.assert_allclose(estimate.precision.toarray(), expected, atol=1e-13)


def printed_form(n, rows, columns, r):
    """The closed form without any repair."""
    A = np.eye(n)
    for i, j, value in zip(rows, columns, r, strict=True):
        A[i, j] = A[j, i] = -value / (1 - value**2)
        A[i, i] += value**2 / (1 - value**2)
        A[j, j] += value**2 / (1 - value**2)
    return A


def test_a_clique_that_the_printed_form_makes_indefinite_is_repaired():
    rows, columns = np.triu_indices(6, 1)
    r = np.full(len(rows), 0.6)
    assert np.linalg.eigvalsh(printed_form(6, rows, columns, r))[0] < 0
    precision, untouched = closed_form(6, rows, columns, r)
    assert not untouched
    assert np.linalg.eigvalsh(precision.toarray())[0] > 0
    assert np.all(precision.toarray()[rows, columns] < 0)


def test_repair_weakens_the_hub_and_leaves_the_rest(rng):
    # A hub that closes a triangle, and a far tail on the same component.
    rows = np.array([0, 0, 0, 0, 0, 1, 5, 6, 7])
    columns = np.array([1, 2, 3, 4, 5, 2, 6, 7, 8])
    precision, untouched = closed_form(9, rows, columns, np.full(9, 0.5))
    assert not untouched
    dense = precision.toarray()
    assert dense[7, 8] == pytest.approx(-0.5 / 0.75)
    assert -0.5 / 0.75 < dense[0, 1] < 0


def test_a_dominant_cycle_is_left_as_printed():
    rows, columns = np.array([0, 1, 2]), np.array([1, 2, 0])
    r = np.full(3, 0.3)
    precision, untouched = closed_form(3, rows, columns, r)
    assert untouched
    np.testing.assert_allclose(precision.toarray(), printed_form(3, rows, columns, r))


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 12), st.floats(0.05, 1.0), st.integers(0, 10_000))
def test_the_closed_form_is_always_positive_definite(n, density, seed):
    rng = np.random.default_rng(seed)
    rows, columns = np.triu_indices(n, 1)
    chosen = rng.random(len(rows)) < density
    rows, columns = rows[chosen], columns[chosen]
    precision, _ = closed_form(n, rows, columns, rng.uniform(-1.0, 1.0, len(rows)))
    assert np.linalg.eigvalsh(precision.toarray())[0] > 0


def test_threshold_precision_accepts_a_singular_covariance(rng):
    X = rng.standard_normal((30, 5))
    estimate = threshold_precision(X @ X.T / 5, 0.4)
    dense = estimate.precision.toarray()
    assert np.linalg.eigvalsh(dense)[0] > 0
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(dense)[1])
    off = np.abs(dense).sum() - np.abs(np.diag(dense)).sum()
    S = X @ X.T / 5
    assert estimate.objective == pytest.approx(np.trace(S @ dense) - estimate.logdet + 0.4 * off)


@pytest.mark.parametrize(
    ("S", "eta", "error", "message"),
    [
        (np.ones((2, 3)), 0.1, InvalidGraphError, "S is 2 x 3"),
        (np.array([[1, 0.5], [0.2, 1]]), 0.1, InvalidGraphError, "S is not symmetric"),
        (np.array([[1, 0], [0, 0.0]]), 0.1, InvalidGraphError, "S has a diagonal entry that is not positive: 0 at 1"),
        (np.array([[1, np.nan], [np.nan, 1]]), 0.1, InvalidGraphError, "NaN"),
        (np.eye(2), -0.1, InvalidParameterError, "eta must be positive, but is -0.1: every pair would be an edge"),
        (np.eye(2), 0, InvalidParameterError, "eta must be positive, but is 0: every pair would be an edge"),
        (np.eye(2), np.nan, InvalidParameterError, "^eta must be a finite number, but is nan"),
        (np.ma.masked_greater(np.eye(3), 0.5), 0.1, InvalidGraphError, "S has 3 masked entries"),
    ],
)
def test_threshold_precision_refuses_what_is_no_covariance(S, eta, error, message):
    with pytest.raises(error, match=message):
        threshold_precision(S, eta)


def learn(learner, factor):
    return learner.learn(FactorMoments(factor), GraphEstimate.identity(len(factor)))


def test_the_learner_is_the_function_on_the_correlations_of_rows(rng):
    factor = rng.standard_normal((40, 6)) * rng.uniform(0.5, 2, (40, 1))
    unit = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    correlations = unit @ unit.T
    np.fill_diagonal(correlations, 1.0)
    expected = threshold_precision(correlations, 0.6)
    estimate = learn(ThresholdGraph(eta=0.6), factor)
    np.testing.assert_allclose(estimate.precision.toarray(), expected.precision.toarray(), atol=1e-10)
    assert estimate.objective == pytest.approx(expected.objective)
    assert estimate.penalty == pytest.approx(expected.penalty)
    assert estimate.converged == expected.converged


@pytest.mark.parametrize(("density", "n_edges"), [(0.0, 0), (0.1, 78), (0.5, 390), (1.0, 780)])
def test_density_is_the_share_of_pairs_that_become_edges(rng, density, n_edges):
    assert learn(ThresholdGraph(density=density), rng.standard_normal((40, 6))).n_edges == n_edges


def test_by_default_six_percent_of_the_pairs_but_at_most_five_a_node(rng):
    assert learn(ThresholdGraph(), rng.standard_normal((50, 6))).n_edges == round(0.06 * 50 * 49 / 2)
    assert learn(ThresholdGraph(), rng.standard_normal((200, 6))).n_edges == 500


def test_marginal_variances_are_one_on_forests(rng):
    factor = np.repeat(rng.standard_normal((5, 8)), 2, axis=0) + 0.3 * rng.standard_normal((10, 8))
    estimate = learn(ThresholdGraph(eta=0.75), factor)
    assert estimate.converged
    assert estimate.n_edges == 5
    np.testing.assert_allclose(np.diag(np.linalg.inv(estimate.precision.toarray())), 1.0, atol=1e-12)


def test_zero_rows_have_no_edges(rng):
    factor = rng.standard_normal((10, 3))
    factor[4] = 0
    precision = learn(ThresholdGraph(density=0.9), factor).precision.toarray()
    np.testing.assert_array_equal(precision[4], np.eye(10)[4])


def test_the_graph_does_not_depend_on_scale_or_rotation_of_the_factor(rng):
    factor = rng.standard_normal((20, 4))
    turn, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    first = learn(ThresholdGraph(eta=0.5), factor).precision.toarray()
    second = learn(ThresholdGraph(eta=0.5), 7.0 * factor @ turn).precision.toarray()
    np.testing.assert_allclose(first, second, atol=1e-10)


def test_the_posterior_variance_weakens_correlations(rng):
    factor = rng.standard_normal((20, 4))
    certain = FactorMoments(factor).correlation_vectors()
    unsure = FactorMoments(factor, variance=np.full(20, 2.0)).correlation_vectors()
    np.testing.assert_allclose(np.linalg.norm(certain, axis=1), 1.0)
    squares = np.sum(factor**2, axis=1)
    np.testing.assert_allclose(np.linalg.norm(unsure, axis=1) ** 2, squares / (squares + 2.0))


def test_candidates_cut_a_cycle_into_a_forest_which_is_exact(rng):
    # Five nodes in a ring: without one of its edges a path.
    S = tree_covariance([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], 5, rng)
    allowed = chain(5).toarray().astype(float)
    estimate = threshold_precision(S, 0.2, candidates=allowed)
    reference, value = graphical_lasso_by_cvxpy(S, 0.2, allowed)
    assert estimate.n_edges == 4
    assert estimate.converged
    # As above: the reference stops at a gap of about 1e-7 in an objective that is flat.
    np.testing.assert_allclose(estimate.precision.toarray(), reference, atol=1e-3)
    assert estimate.objective == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_array, np.triu, lambda allowed: lambda n: allowed])
def test_the_function_keeps_the_candidates_above_the_threshold(rng, form):
    X = rng.standard_normal((15, 4))
    S = X @ X.T / 4
    allowed = rng.random((15, 15)) < 0.3
    allowed |= allowed.T
    estimate = threshold_precision(S, 0.3, candidates=form(allowed))
    dense = estimate.precision.toarray()
    expected = allowed & (np.abs(S) > 0.3) & ~np.eye(15, dtype=bool)
    np.testing.assert_array_equal((dense != 0) & ~np.eye(15, dtype=bool), expected)
    alone = threshold_precision(np.where(allowed | np.eye(15, dtype=bool), S, 0), 0.3)
    np.testing.assert_allclose(dense, alone.precision.toarray())
    off = np.abs(dense).sum() - np.abs(np.diag(dense)).sum()
    assert estimate.objective == pytest.approx(np.trace(S @ dense) - np.linalg.slogdet(dense)[1] + 0.3 * off)


def test_candidates_of_the_function_fit_its_matrix():
    with pytest.raises(InvalidGraphError, match="candidates is 4 x 4, but there are 3 nodes"):
        threshold_precision(np.eye(3), 0.1, candidates=chain(4))


@pytest.mark.parametrize("learner", [{}, {"eta": 0.5}, {"density": 0.2}, {"density": 0.0}, {"density": 1.0}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_with_all_pairs_as_candidates_the_learner_is_the_same(rng, learner, dtype):
    factor = rng.standard_normal((40, 6)).astype(dtype)
    factor[5] = 0
    free = learn(ThresholdGraph(**learner), factor)
    limited = learn(ThresholdGraph(**learner, candidates=lambda n: np.ones((n, n))), factor)
    # The search multiplies in the factor's own precision, the candidates are multiplied in double.
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(limited.precision.toarray(), free.precision.toarray(), atol=tolerance)
    assert limited.n_edges == free.n_edges
    assert limited.objective == pytest.approx(free.objective, rel=tolerance, abs=tolerance)
    assert limited.penalty == pytest.approx(free.penalty, rel=tolerance, abs=tolerance)


def test_the_objective_of_the_learner_is_that_of_its_precision(rng):
    factor = rng.standard_normal((30, 5))
    factor[4] = 0
    candidates = nearest(rng.standard_normal((30, 2)), 4)
    unit = factor / np.maximum(np.linalg.norm(factor, axis=1, keepdims=True), 1e-300)
    for learner in (ThresholdGraph(eta=0.4), ThresholdGraph(eta=0.4, candidates=candidates)):
        estimate = learn(learner, factor)
        dense = estimate.precision.toarray()
        penalty = 0.4 * (np.abs(dense).sum() - np.abs(np.diag(dense)).sum())
        expected = np.trace(unit @ unit.T @ dense) - np.linalg.slogdet(dense)[1] + penalty
        assert estimate.objective == pytest.approx(expected)


@pytest.mark.parametrize(("density", "n_edges"), [(0.0, 0), (0.25, 10), (0.5, 20), (1.0, 39)])
def test_with_candidates_density_is_their_share(rng, density, n_edges):
    factor = rng.standard_normal((40, 6))
    estimate = learn(ThresholdGraph(density=density, candidates=chain), factor)
    assert estimate.n_edges == n_edges
    # The strongest are kept, and the next one is the threshold.
    unit = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    strength = np.sort(np.abs(np.sum(unit[1:] * unit[:-1], axis=1)))[::-1]
    eta = strength[n_edges] if n_edges < 39 else 0.0
    expected = learn(ThresholdGraph(eta=eta, candidates=chain), factor)
    np.testing.assert_allclose(estimate.precision.toarray(), expected.precision.toarray(), atol=1e-9)


def test_by_default_no_more_than_half_of_the_candidates(rng):
    assert learn(ThresholdGraph(candidates=chain), rng.standard_normal((101, 6))).n_edges == 50
    wide = lambda n: chain(n, 20)  # noqa: E731
    assert learn(ThresholdGraph(candidates=wide), rng.standard_normal((200, 6))).n_edges == 500


def test_correlations_of_candidates_hold_the_posterior_covariance(rng):
    factor, variance = rng.standard_normal((6, 4)), rng.uniform(1, 2, 6)
    cross = np.diag(variance) + 0.5 * (np.eye(6, k=1) + np.eye(6, k=-1))
    moments = FactorMoments(factor, variance, cross=lambda rows, others: cross[rows, others])
    second = factor @ factor.T + cross
    scale = np.sqrt(np.diag(second))
    expected = threshold_precision(second / scale / scale[:, None], 0.05, candidates=chain(6))
    estimate = ThresholdGraph(eta=0.05, candidates=chain).learn(moments, GraphEstimate.identity(6))
    np.testing.assert_allclose(estimate.precision.toarray(), expected.precision.toarray(), atol=1e-12)
    assert estimate.objective == pytest.approx(expected.objective)


def test_no_candidates_and_zero_rows_leave_no_edges(rng):
    factor = rng.standard_normal((5, 3))
    for learner in (ThresholdGraph(), ThresholdGraph(eta=0.0), ThresholdGraph(density=1.0)):
        none = ThresholdGraph(learner.eta, learner.density, candidates=np.zeros((5, 5)))
        np.testing.assert_array_equal(learn(none, factor).precision.toarray(), np.eye(5))
    limited = ThresholdGraph(density=1.0, candidates=chain)
    np.testing.assert_array_equal(learn(limited, np.zeros((5, 3))).precision.toarray(), np.eye(5))


def test_before_a_factor_is_known_candidates_are_checked_and_there_is_no_edge():
    side = Side("sample_graph", "rows")
    estimate = ThresholdGraph(candidates=chain(6)).start(as_observed(np.eye(6)), side)
    np.testing.assert_array_equal(estimate.precision.toarray(), np.eye(6))
    with pytest.raises(InvalidGraphError, match="candidates of sample_graph is 5 x 5 but the data has 6 rows"):
        ThresholdGraph(candidates=chain(5)).start(as_observed(np.eye(6)), side)


def test_two_hundred_thousand_nodes_with_few_candidates_are_quick(rng):
    n = 200_000
    factor = rng.standard_normal((n, 5)).astype(np.float32)
    estimate = learn(ThresholdGraph(eta=0.9, candidates=lambda n: chain(n, 3)), factor)
    assert 0 < estimate.n_edges < n
    rows, columns = estimate.precision.tocoo().coords
    assert np.abs(rows - columns).max() <= 3

"""The graphical lasso: optimal, by components, as function and as learner."""

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from sklearn.covariance import graphical_lasso as by_scikit_learn

from lgmd.exceptions import ConvergenceWarning, InvalidGraphError, InvalidParameterError
from lgmd.graphs import FactorMoments, GraphEstimate, Side, lasso_components
from lgmd.graphs.glasso import GraphicalLassoGraph, graphical_lasso
from lgmd.linalg.lasso_precision import lasso_precision
from lgmd.observed import as_observed


def rank_deficient(n=30, k=6, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, k))
    return X @ X.T / k


def blocks(seed=0):
    """Three groups without covariance between them, and a node alone."""
    S = scipy.sparse.block_diag([rank_deficient(n, 4, seed + n) for n in (8, 11, 5)] + [np.array([[2.0]])]).toarray()
    return S, 0.3


def kkt_residual(S, eta, A, allowed=None, penalize_diagonal=False):
    gradient = S - np.linalg.inv(A)
    diagonal = np.eye(len(S), dtype=bool)
    on, zero = (A != 0) & (penalize_diagonal | ~diagonal), (A == 0) & ~diagonal
    violation = np.abs(np.where(on, gradient + eta * np.sign(A), gradient))
    violation[zero] = np.maximum(violation[zero] - eta, 0)
    if allowed is not None:
        violation[~diagonal & ~allowed] = 0
    scale = np.sqrt(np.diag(S) + eta * penalize_diagonal)
    return float((violation / np.outer(scale, scale)).max())


def value(S, eta, A, penalize_diagonal=False):
    sign, logdet = np.linalg.slogdet(A)
    assert sign > 0
    return np.sum(S * A) - logdet + eta * (np.abs(A).sum() - (not penalize_diagonal) * np.diag(A).sum())


@pytest.mark.parametrize("penalize_diagonal", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_cvxpy_finds_the_same(rng, penalize_diagonal, limited):
    n, eta = 9, 0.25
    S = rank_deficient(n, 4)
    allowed = np.triu(rng.random((n, n)) < (0.6 if limited else 2.0), 1)
    allowed = allowed | allowed.T
    A = cvxpy.Variable((n, n), PSD=True)
    weights = np.where(np.eye(n, dtype=bool), float(penalize_diagonal), 1.0)
    loss = cvxpy.trace(S @ A) - cvxpy.log_det(A) + eta * cvxpy.sum(cvxpy.abs(cvxpy.multiply(weights, A)))
    held = (~allowed & ~np.eye(n, dtype=bool)).astype(float)
    problem = cvxpy.Problem(cvxpy.Minimize(loss), [cvxpy.multiply(held, A) == 0])
    problem.solve(solver="CLARABEL")
    candidates = allowed if limited else None
    estimate = graphical_lasso(S, eta, penalize_diagonal=penalize_diagonal, candidates=candidates)
    assert estimate.converged
    # The reference stops at a gap of about 1e-7 in the objective, which is flat: entries are good to its root.
    assert estimate.objective == pytest.approx(problem.value, abs=1e-6)
    np.testing.assert_allclose(estimate.precision.toarray(), A.value, atol=3e-3)


def test_scikit_learn_finds_the_same():
    S = rank_deficient(25, 60)
    estimate = graphical_lasso(S, 0.15)
    _, reference = by_scikit_learn(S, 0.15, tol=1e-8, enet_tol=1e-10, max_iter=500)
    np.testing.assert_allclose(estimate.precision.toarray(), reference, atol=1e-5)


@pytest.mark.parametrize("penalize_diagonal", [False, True])
@pytest.mark.parametrize("make", [lambda: (rank_deficient(), 0.45), lambda: (rank_deficient(40, 3), 0.9), blocks])
def test_the_estimate_is_optimal_and_says_so(make, penalize_diagonal):
    S, eta = make()
    estimate = graphical_lasso(S, eta, penalize_diagonal=penalize_diagonal)
    A = estimate.precision.toarray()
    assert estimate.converged
    assert estimate.n_edges > 5
    assert isinstance(estimate.precision, scipy.sparse.csr_array)
    assert kkt_residual(S, eta, A, penalize_diagonal=penalize_diagonal) < 1.001e-6
    assert estimate.objective == pytest.approx(value(S, eta, A, penalize_diagonal))
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(A)[1])
    penalised = np.abs(A).sum() - (not penalize_diagonal) * np.diag(A).sum()
    assert estimate.penalty == pytest.approx(eta * penalised)


@pytest.mark.parametrize("seed", range(3))
def test_components_together_are_the_whole(seed):
    S, eta = blocks(seed)
    estimate = graphical_lasso(S, eta, tol=1e-9)
    whole = lasso_precision(S, eta, tol=1e-9)
    np.testing.assert_allclose(estimate.precision.toarray(), whole.precision, atol=1e-7)
    assert estimate.objective == pytest.approx(whole.objective)


def test_weak_links_between_components_do_not_matter(rng):
    S, eta = blocks()
    noise = 0.2 * rng.uniform(-1, 1, S.shape)
    weak = np.where(S == 0, (noise + noise.T) / 2, S)
    between = graphical_lasso(weak, eta, tol=1e-9)
    np.testing.assert_allclose(between.precision.toarray(), graphical_lasso(S, eta, tol=1e-9).precision.toarray())
    assert kkt_residual(weak, eta, between.precision.toarray()) < 1e-8


def test_a_tree_that_the_closed_form_gets_wrong_is_still_solved():
    # The path 0 - 1 - 2 implies a positive covariance of 0 and 2, but theirs is negative and just below the threshold.
    S = np.array([[1.1, 0.6, -0.29], [0.6, 1.1, 0.6], [-0.29, 0.6, 1.1]])
    assert np.linalg.eigvalsh(S)[0] > 0
    estimate = graphical_lasso(S, 0.3)
    assert kkt_residual(S, 0.3, estimate.precision.toarray()) < 1e-6
    assert estimate.n_edges == 3


def test_from_the_largest_entry_on_there_is_no_edge():
    S = rank_deficient()
    largest = np.abs(S - np.diag(np.diag(S))).max()
    np.testing.assert_allclose(graphical_lasso(S, largest).precision.toarray(), np.diag(1 / np.diag(S)))
    assert graphical_lasso(S, 0.99 * largest).n_edges == 1


def test_permuting_and_scaling_the_variables_carry_over(rng):
    S = rank_deficient()
    order = rng.permutation(len(S))
    first = graphical_lasso(S, 0.45, tol=1e-9).precision.toarray()
    permuted = graphical_lasso(S[np.ix_(order, order)], 0.45, tol=1e-9).precision.toarray()
    np.testing.assert_allclose(permuted, first[np.ix_(order, order)], atol=1e-7)
    scaled = graphical_lasso(100.0 * S, 45.0, tol=1e-9).precision.toarray()
    np.testing.assert_allclose(100.0 * scaled, first, atol=1e-7)


def few_samples(n=20):
    return np.cov(np.random.default_rng(0).normal(size=(8, n)), rowvar=False)


@pytest.mark.parametrize("penalize_diagonal", [False, True])
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e-20, 1e160, 1e300])
def test_any_unit_of_the_covariance_gives_the_same_graph(unit, penalize_diagonal):
    S = few_samples()
    plain = graphical_lasso(S, 0.1, penalize_diagonal=penalize_diagonal, tol=1e-9)
    scaled = graphical_lasso(S * unit, 0.1 * unit, penalize_diagonal=penalize_diagonal, tol=1e-9)
    assert scaled.converged
    assert scaled.n_edges == plain.n_edges > 90
    A = plain.precision.toarray()
    np.testing.assert_allclose(scaled.precision.toarray() * unit, A, atol=1e-7 * np.abs(A).max())
    assert scaled.logdet == pytest.approx(plain.logdet - 20 * np.log(unit))
    assert scaled.objective == pytest.approx(plain.objective + 20 * np.log(unit))
    assert scaled.penalty == pytest.approx(plain.penalty)
    again = graphical_lasso(S * unit, 0.1 * unit, penalize_diagonal=penalize_diagonal, start=scaled)
    np.testing.assert_array_equal(again.precision.toarray(), scaled.precision.toarray())


def test_a_penalty_far_from_the_variances_is_no_trouble():
    S = few_samples()
    assert graphical_lasso(1e-200 * S, 1e200).n_edges == 0
    assert graphical_lasso(1e-200 * np.eye(3), 1e200, penalize_diagonal=True).precision.toarray()[0, 0] == 1e-200
    assert graphical_lasso(1e200 * np.cov(np.random.default_rng(0).normal(size=(5, 50))), 1e-200).converged


@pytest.mark.parametrize("exponent", [2, 4, 5])
def test_variables_of_very_different_units_are_solved(exponent):
    D = np.diag(10.0 ** np.linspace(-exponent, exponent, 20))
    S = D @ few_samples() @ D
    estimate = graphical_lasso(S, 0.1)
    assert estimate.converged
    # The inverse of the reference is less exact than that of the solver.
    assert kkt_residual(S, 0.1, estimate.precision.toarray()) < 1e-4


@pytest.mark.parametrize("exponent", [8, 30, 75])
def test_units_beyond_the_conditioning_end_with_a_warning(exponent):
    D = np.diag(10.0 ** np.linspace(-exponent, exponent, 20))
    with pytest.warns(ConvergenceWarning, match="or bring variables of very different variance to similar units"):
        estimate = graphical_lasso(D @ few_samples() @ D, 0.1)
    assert not estimate.converged


def test_a_precision_too_large_for_a_number_is_refused():
    with pytest.raises(
        InvalidGraphError, match="S has a variance of 1e-310, and its precision is too large for a numb"
    ):
        graphical_lasso(1e-310 * np.eye(3), 1e-311)


def test_few_columns_and_a_tiny_penalty_converge():
    unit = np.random.default_rng(0).normal(size=(30, 6))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    S = unit @ unit.T
    for eta in (0.002, 0.001):
        estimate = graphical_lasso(S, eta)
        assert estimate.converged
        assert kkt_residual(S, eta, estimate.precision.toarray()) < 1.01e-6


def test_sparse_and_dense_input_give_the_same():
    S, eta = blocks()
    np.testing.assert_array_equal(
        graphical_lasso(scipy.sparse.coo_array(S), eta).precision.toarray(), graphical_lasso(S, eta).precision.toarray()
    )


def test_a_penalised_diagonal_bounds_the_precision():
    S = rank_deficient(20, 3)
    S[0] = S[:, 0] = 0  # a variable without variance
    for eta in (0.1, 0.01):
        largest = np.linalg.eigvalsh(graphical_lasso(S, eta, penalize_diagonal=True).precision.toarray())[-1]
        assert largest == pytest.approx(1 / eta)


def test_only_candidates_become_edges(rng):
    S = rank_deficient()
    candidates = scipy.sparse.csr_array(np.triu(rng.random(S.shape) < 0.3, 1))
    allowed = candidates.toarray() | candidates.toarray().T
    estimate = graphical_lasso(S, 0.3, candidates=candidates)
    A = estimate.precision.toarray()
    assert np.all(A[~allowed & ~np.eye(30, dtype=bool)] == 0)
    assert kkt_residual(S, 0.3, A, allowed) < 1.001e-6
    every = graphical_lasso(S, 0.3, candidates=lambda n: np.ones((n, n)))
    np.testing.assert_array_equal(every.precision.toarray(), graphical_lasso(S, 0.3).precision.toarray())
    nothing = graphical_lasso(S, 0.3, candidates=scipy.sparse.csr_array(S.shape))
    np.testing.assert_allclose(nothing.precision.toarray(), np.diag(1 / np.diag(S)))


def test_on_a_chain_of_candidates_the_closed_form_serves_at_any_size(monkeypatch):
    S = rank_deficient(50, 4)
    chain = scipy.sparse.diags_array([np.ones(49)], offsets=[1], shape=(50, 50))
    expected = graphical_lasso(S, 0.1, candidates=chain)
    allowed = (chain + chain.T).toarray() != 0
    assert kkt_residual(S, 0.1, expected.precision.toarray(), allowed) < 1e-6
    monkeypatch.setattr(lasso_components, "LARGEST_EXACT", 1)
    estimate = graphical_lasso(S, 0.1, candidates=chain)
    assert estimate.converged
    np.testing.assert_array_equal(estimate.precision.toarray(), expected.precision.toarray())


@pytest.mark.parametrize("form", [lambda estimate: estimate, lambda estimate: estimate.precision.toarray()])
def test_a_start_leads_to_the_same_solution(form):
    S = rank_deficient()
    cold = graphical_lasso(S, 0.4, tol=1e-9)
    warm = graphical_lasso(S, 0.4, tol=1e-9, start=form(graphical_lasso(S, 0.5)))
    np.testing.assert_allclose(warm.precision.toarray(), cold.precision.toarray(), atol=1e-7)
    again = graphical_lasso(S, 0.4, tol=1e-9, start=form(cold))
    np.testing.assert_array_equal(again.precision.toarray(), cold.precision.toarray())


def test_too_few_steps_give_a_warning_with_the_gap():
    S = rank_deficient()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 steps .* residual 0\.\d+ is above tol=1e-06") as caught:
        estimate = graphical_lasso(S, 0.3, max_iter=1)
    assert not estimate.converged
    assert len(caught) == 1
    gap = float(str(caught[0].message).split("at most ")[1].split()[0])
    above = estimate.objective - graphical_lasso(S, 0.3).objective
    assert 0 < above <= gap * 1.01  # the message has three digits


@pytest.mark.parametrize(("k", "eta"), [(2, 0.3), (4, 0.1), (6, 0.02)])
@pytest.mark.parametrize("max_iter", [1, 3])
@pytest.mark.parametrize("penalize_diagonal", [False, True])
def test_the_gap_is_finite_after_however_few_steps(k, eta, max_iter, penalize_diagonal):
    S = rank_deficient(12, k)
    with pytest.warns(ConvergenceWarning, match="objective is at most") as caught:
        estimate = graphical_lasso(S, eta, max_iter=max_iter, penalize_diagonal=penalize_diagonal)
    gap = float(str(caught[0].message).split("at most ")[1].split()[0])
    above = estimate.objective - graphical_lasso(S, eta, max_iter=1000, penalize_diagonal=penalize_diagonal).objective
    assert 0 < above <= gap * 1.01 < 10 * above


def test_where_no_bound_is_known_the_warning_says_so():
    # Not a covariance, and after one step nobody has noticed.
    S = rank_deficient(12, 3) - 0.5 * np.eye(12) + 0.6 * np.diag(np.arange(12) == 0)
    S[np.diag_indices(12)] = np.maximum(np.diag(S), 0.2)
    with pytest.warns(ConvergenceWarning, match="how far the objective is from its minimum is not known yet") as caught:
        graphical_lasso(S, 0.01, max_iter=1)
    assert "inf" not in str(caught[0].message)


@pytest.mark.parametrize("penalize_diagonal", [False, True])
def test_components_too_large_get_the_closed_form_and_a_bound_on_its_error(monkeypatch, penalize_diagonal):
    X = np.random.default_rng(0).standard_normal((60, 8))
    learner = GraphicalLassoGraph(eta=0.6, penalize_diagonal=penalize_diagonal)
    exact = learn(learner, X)
    monkeypatch.setattr(lasso_components, "LARGEST_EXACT", 20)
    with pytest.warns(ConvergenceWarning, match=r"largest of \d+ nodes, are larger than the 5,000") as caught:
        estimate = learn(learner, X)
    assert not estimate.converged
    assert len(caught) == 1
    A = estimate.precision.toarray()
    assert np.linalg.eigvalsh(A)[0] > 0
    S = correlations(X) if not penalize_diagonal else X @ X.T / 8
    assert estimate.objective == pytest.approx(value(S, 0.6, A, penalize_diagonal))
    bound = float(str(caught[0].message).split("at most ")[1].split()[0])
    nodes = int(str(caught[0].message).split("largest of ")[1].split()[0])
    assert 0 < estimate.objective - exact.objective <= 1.01 * bound * nodes


@pytest.mark.parametrize(
    ("S", "eta", "error", "message"),
    [
        (np.ones((2, 3)), 0.1, InvalidGraphError, "S is 2 x 3"),
        (np.array([[1, 0.5], [0.2, 1]]), 0.1, InvalidGraphError, "S is not symmetric"),
        (np.array([[1, np.nan], [np.nan, 1]]), 0.1, InvalidGraphError, "NaN"),
        (np.array([[1, 0], [0, 0.0]]), 0.1, InvalidGraphError, "S has a diagonal entry that is not positive: 0 at 1"),
        (np.diag([1.0, -2.0]), 0.1, InvalidGraphError, "S has a diagonal entry that is not positive: -2 at 1"),
        (np.empty((0, 0)), 0.1, InvalidGraphError, "S is 0 x 0"),
        (np.eye(2), 0.0, InvalidParameterError, "eta must be positive, but is 0.0"),
        (np.eye(2), -0.1, InvalidParameterError, "eta must be positive, but is -0.1"),
        (np.eye(2), np.nan, InvalidParameterError, "^eta must be a finite number, but is nan"),
        (np.eye(2), -np.inf, InvalidParameterError, "^eta must be a finite number, but is -inf"),
        ([[1, 0.5], [0.5]], 0.1, InvalidGraphError, "S has rows of different length"),
        (np.ma.masked_greater(np.eye(3), 0.5), 0.1, InvalidGraphError, "S has 3 masked entries"),
        (np.eye(2), "0.1", InvalidParameterError, "eta must be a number"),
        (np.array([[1.0, -2.0], [-2.0, 1.0]]), 0.5, InvalidGraphError, "not a covariance matrix.*eigenvalue -1"),
    ],
)
def test_what_is_no_covariance_is_refused(S, eta, error, message):
    with pytest.raises(error, match=message):
        graphical_lasso(S, eta)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tol": 0.0}, InvalidParameterError, "tol must be positive"),
        ({"max_iter": 0}, InvalidParameterError, "max_iter must be at least 1"),
        ({"start": np.eye(3)}, InvalidGraphError, "start is 3 x 3 but S is 30 x 30"),
        ({"candidates": np.ones((4, 4))}, InvalidGraphError, "candidates is 4 x 4, but there are 30 nodes"),
        ({"penalize_diagonal": "no"}, InvalidParameterError, "penalize_diagonal must be True or False, but is 'no'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        graphical_lasso(rank_deficient(), 0.3, **options)


def test_a_mask_that_hides_nothing_changes_nothing():
    S = rank_deficient()
    plain, masked = (graphical_lasso(covariance, 0.3) for covariance in (S, np.ma.masked_array(S)))
    np.testing.assert_array_equal(masked.precision.toarray(), plain.precision.toarray())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["eta", "density"])
def test_parameters_are_finite_numbers(name, value):
    with pytest.raises(InvalidParameterError, match=f"^{name} must be a finite number, but is {value}"):
        GraphicalLassoGraph(**{name: value}).validate()


def test_a_negative_variance_is_refused_with_a_penalised_diagonal_too():
    with pytest.raises(InvalidGraphError, match="diagonal entry that is negative: -1 at 0"):
        graphical_lasso(np.diag([-1.0, 1.0]), 0.5, penalize_diagonal=True)


def learn(learner, factor, previous=None, **moments):
    return learner.learn(FactorMoments(factor, **moments), previous or GraphEstimate.identity(len(factor)))


def correlations(factor):
    unit = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    S = unit @ unit.T
    np.fill_diagonal(S, 1.0)
    return S


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_learner_is_the_function_on_the_correlations_of_rows(rng, dtype):
    factor = (rng.standard_normal((40, 6)) * rng.uniform(0.5, 2, (40, 1))).astype(dtype)
    S = correlations(factor.astype(np.float64))
    estimate = learn(GraphicalLassoGraph(eta=0.5), factor)
    expected = graphical_lasso(S, 0.5)
    assert estimate.converged
    np.testing.assert_allclose(estimate.precision.toarray(), expected.precision.toarray(), atol=1e-5)
    assert estimate.objective == pytest.approx(expected.objective)
    assert estimate.penalty == pytest.approx(expected.penalty)
    np.testing.assert_allclose(np.diag(np.linalg.inv(estimate.precision.toarray())), 1.0, atol=1e-5)


@pytest.mark.parametrize("eta", [0.5, 3.0])
def test_with_a_penalised_diagonal_it_learns_from_the_second_moments(rng, eta):
    factor = rng.standard_normal((40, 6)) * rng.uniform(0.5, 3, (40, 1))
    factor[7] = 0
    estimate = learn(GraphicalLassoGraph(eta=eta, penalize_diagonal=True), factor)
    expected = graphical_lasso(factor @ factor.T / 6, eta, penalize_diagonal=True)
    np.testing.assert_allclose(estimate.precision.toarray(), expected.precision.toarray(), atol=1e-6)
    assert estimate.objective == pytest.approx(expected.objective)
    assert estimate.penalty == pytest.approx(eta * np.abs(estimate.precision.toarray()).sum())


@pytest.mark.parametrize("limited", [False, True])
def test_with_a_penalised_diagonal_no_graph_step_raises_the_objective(rng, limited):
    factor, eta = rng.standard_normal((40, 6)), 0.4
    candidates = rng.random((40, 40)) < 0.5 if limited else None
    learner = GraphicalLassoGraph(eta=eta, penalize_diagonal=True, candidates=candidates)
    graph = learner.start(as_observed(factor), Side("sample_graph", "rows"))
    assert graph.penalty == pytest.approx(eta * 40)
    for _ in range(4):
        before = value(factor @ factor.T / 6, eta, graph.precision.toarray(), True)
        graph = learner.learn(FactorMoments(factor), graph)
        after = value(factor @ factor.T / 6, eta, graph.precision.toarray(), True)
        assert after <= before
        assert after == pytest.approx(graph.objective)
        factor = factor + 0.1 * rng.standard_normal(factor.shape)
    settled = learner.learn(FactorMoments(factor), learner.learn(FactorMoments(factor), graph))
    again = learner.learn(FactorMoments(factor), settled)
    assert again.objective <= settled.objective


def test_an_approximation_does_not_replace_a_better_graph(rng, monkeypatch):
    factor = rng.standard_normal((60, 8))
    learner = GraphicalLassoGraph(eta=0.6, penalize_diagonal=True)
    exact = learn(learner, factor)
    monkeypatch.setattr(lasso_components, "LARGEST_EXACT", 20)
    with pytest.warns(ConvergenceWarning):
        kept = learn(learner, factor, exact)
    np.testing.assert_array_equal(kept.precision.toarray(), exact.precision.toarray())
    assert kept.objective == pytest.approx(exact.objective)
    assert kept.penalty == pytest.approx(exact.penalty)
    assert not kept.converged


def joined_pairs(n):
    """A posterior covariance of two rows that no graph of their means would join."""

    def cross(rows, others):
        low, high = np.minimum(rows, others), np.maximum(rows, others)
        return np.where((low == 0) & (high == 1), 5.0, 0.0)

    return cross


def test_posterior_covariances_count(rng):
    factor = rng.standard_normal((12, 5))
    variance = np.full(12, 6.0)
    unit = np.sqrt(np.sum(factor**2, axis=1) + variance)
    products = factor @ factor.T
    products[0, 1] += 5.0
    products[1, 0] += 5.0
    S = products / np.outer(unit, unit)
    np.fill_diagonal(S, 1.0)
    edge = scipy.sparse.lil_array(scipy.sparse.eye_array(12))
    edge[0, 1] = edge[1, 0] = 0.5
    previous = GraphEstimate(edge.tocsr(), np.log(0.75))
    moments = {"variance": variance, "cross": joined_pairs(12)}
    estimate = learn(GraphicalLassoGraph(eta=0.25), factor, previous, **moments)
    np.testing.assert_allclose(estimate.precision.toarray(), graphical_lasso(S, 0.25).precision.toarray(), atol=1e-5)
    raw = learn(GraphicalLassoGraph(eta=0.6, penalize_diagonal=True), factor, previous, **moments)
    second_moments = (products + np.diag(variance)) / 5
    expected = graphical_lasso(second_moments, 0.6, penalize_diagonal=True)
    np.testing.assert_allclose(raw.precision.toarray(), expected.precision.toarray(), atol=1e-5)


def test_the_density_is_that_of_the_pairs_above_the_threshold(rng):
    factor = rng.standard_normal((50, 6))
    S = np.abs(correlations(factor)[np.triu_indices(50, 1)])
    for density, count in ((0.1, 122), (None, 74), (0.0, 0)):
        eta = np.sort(S)[::-1][count]
        expected = graphical_lasso(correlations(factor), eta)
        estimate = learn(GraphicalLassoGraph(density=density), factor)
        assert estimate.n_edges <= count
        np.testing.assert_allclose(estimate.precision.toarray(), expected.precision.toarray(), atol=1e-5)
    # Five edges a node at most.
    factor = rng.standard_normal((200, 6))
    S = correlations(factor)
    eta = np.sort(np.abs(S[np.triu_indices(200, 1)]))[::-1][500]
    assert learn(GraphicalLassoGraph(), factor).n_edges == graphical_lasso(S, eta).n_edges


def test_the_learner_keeps_to_its_candidates(rng):
    factor = rng.standard_normal((40, 6))
    candidates = np.triu(rng.random((40, 40)) < 0.3, 1)
    allowed = candidates | candidates.T
    estimate = learn(GraphicalLassoGraph(eta=0.4, candidates=candidates), factor)
    A = estimate.precision.toarray()
    assert estimate.n_edges > 10
    assert np.all(A[~allowed & ~np.eye(40, dtype=bool)] == 0)
    assert kkt_residual(correlations(factor), 0.4, A, allowed) < 1.001e-6
    by_density = learn(GraphicalLassoGraph(density=0.05, candidates=candidates), factor)
    values = np.sort(np.abs(correlations(factor)[candidates]))[::-1]
    expected = graphical_lasso(correlations(factor), values[39], candidates=candidates)
    np.testing.assert_allclose(by_density.precision.toarray(), expected.precision.toarray(), atol=1e-5)


def test_zero_and_equal_rows_are_no_trouble(rng):
    factor = rng.standard_normal((10, 3))
    factor[4] = 0
    factor[6] = factor[5]
    estimate = learn(GraphicalLassoGraph(density=0.9), factor)
    precision = estimate.precision.toarray()
    assert estimate.converged
    np.testing.assert_array_equal(precision[4], np.eye(10)[4])
    assert precision[5, 6] < 0
    assert np.linalg.eigvalsh(precision)[0] > 0


def test_the_previous_graph_is_the_start_but_not_the_result(rng):
    factor = rng.standard_normal((40, 6))
    learner = GraphicalLassoGraph(eta=0.45)
    expected = learn(learner, factor).precision.toarray()
    previous = learn(learner, factor + 0.1 * rng.standard_normal(factor.shape))
    other = GraphEstimate(scipy.sparse.csr_array(np.eye(40) + 0.9 * np.ones((40, 40))), np.log(37.0))
    for start in (previous, other):
        np.testing.assert_allclose(learn(learner, factor, start).precision.toarray(), expected, atol=1e-5)


def test_moments_that_are_no_covariance_fall_back_to_the_closed_form():
    factor = np.eye(3)

    def cross(rows, others):
        signs = np.array([[0, 1, -1], [1, 0, 1], [-1, 1, 0]])
        return 1.8 * signs[rows, others]

    dense = GraphEstimate(scipy.sparse.csr_array(np.eye(3) + 0.1), np.log(1.3))
    with pytest.warns(ConvergenceWarning, match="3 nodes are not those of a covariance matrix"):
        estimate = learn(GraphicalLassoGraph(eta=0.1), factor, dense, variance=np.ones(3), cross=cross)
    assert not estimate.converged
    assert np.linalg.eigvalsh(estimate.precision.toarray())[0] > 0


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (GraphicalLassoGraph(eta=0.1, density=0.1), "Give eta or density, not both"),
        (GraphicalLassoGraph(eta=0.0), "must be between 0 and 1, but is 0.0"),
        (GraphicalLassoGraph(eta=1.0), "must be between 0 and 1, but is 1.0"),
        (GraphicalLassoGraph(density=1.5), r"must be in \[0, 1\], but is 1.5"),
        (GraphicalLassoGraph(penalize_diagonal=True), "penalize_diagonal=True needs eta"),
        (GraphicalLassoGraph(eta=0.1, penalize_diagonal="no"), "penalize_diagonal must be True or False, but is 'no'"),
        (GraphicalLassoGraph(eta=-1.0, penalize_diagonal=True), "eta must be positive, but is -1.0"),
    ],
)
def test_learners_refuse_parameters_that_make_no_sense(learner, message):
    with pytest.raises(InvalidParameterError, match=message):
        learner.validate()


def test_candidates_of_another_size_are_refused_at_the_start(rng):
    with pytest.raises(InvalidGraphError, match="4 x 4 but the data has 10 rows"):
        GraphicalLassoGraph(candidates=np.ones((4, 4))).start(
            as_observed(rng.standard_normal((10, 3))), Side("sample_graph", "rows")
        )


@pytest.mark.slow
def test_a_giant_component_finishes_in_bounded_memory():
    factor = np.random.default_rng(0).standard_normal((50_000, 20)).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="at most 0.0"):
        estimate = learn(GraphicalLassoGraph(), factor)
    assert not estimate.converged
    assert estimate.n_edges == 125_000


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.filterwarnings("error")
def test_a_penalty_may_have_any_precision(rng, kind):
    S = np.cov(rng.standard_normal((4, 9)), rowvar=False)
    exact, rough = graphical_lasso(S, 0.25), graphical_lasso(S, kind(0.25))
    np.testing.assert_array_equal(rough.precision.toarray(), exact.precision.toarray())
    moments = FactorMoments(rng.standard_normal((9, 4)), np.zeros(9))
    found, expected = (
        GraphicalLassoGraph(eta=eta).learn(moments, GraphEstimate.identity(9)) for eta in (kind(0.25), 0.25)
    )
    np.testing.assert_array_equal(found.precision.toarray(), expected.precision.toarray())


def test_a_penalty_in_single_precision_is_not_lost_beside_a_huge_covariance():
    S = (np.eye(3) + 0.3) * 1e39
    rough, exact = (graphical_lasso(S, eta).precision.toarray() for eta in (np.float32(1e38), 1e38))
    np.testing.assert_allclose(rough, exact, rtol=1e-6)

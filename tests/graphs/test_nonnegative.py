"""The graph of LGMD+: optimal by its conditions and by its gap, a valid Laplacian, sparse where asked."""

from dataclasses import replace

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import brentq

from lgmd.exceptions import ConvergenceWarning, InvalidGraphError, InvalidParameterError
from lgmd.graphs import FactorMoments, GraphEstimate, KNNGraph, Side
from lgmd.graphs import candidates as candidate_graphs
from lgmd.graphs.nonnegative import LaplacianGraph, laplacian_precision
from lgmd.linalg.cholesky import factorize
from lgmd.observed import as_observed

SIDE = Side("sample_graph", "rows")


def correlations(X):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T


def autoregressive(n, k, rng, neighbor=0.9):
    X = rng.standard_normal((n, k))
    for i in range(1, n):
        X[i] = neighbor * X[i - 1] + np.sqrt(1 - neighbor**2) * X[i]
    return X


def in_blocks(n, k, rng, size=8):
    shared = rng.standard_normal((-(-n // size), k))
    return np.sqrt(0.7) * np.repeat(shared, size, axis=0)[:n] + np.sqrt(0.3) * rng.standard_normal((n, k))


def problem(kind, n, rng):
    """Singular covariances but for the dense one."""
    if kind == "chain":
        return correlations(autoregressive(n, 12, rng))
    if kind == "blocks":
        return correlations(in_blocks(n, 12, rng))
    if kind == "random":
        return correlations(rng.standard_normal((n, 12)))
    if kind == "repeated rows":
        return np.repeat(np.repeat(correlations(rng.standard_normal((n // 2, 12))), 2, axis=0), 2, axis=1)
    scale = rng.uniform(0.3, 3.0, n)
    return np.cov(scale[:, None] * (rng.standard_normal((n, 200)) + rng.standard_normal(200)))


def costs(S, rho):
    z = np.diag(S)[:, None] + np.diag(S)[None, :] - 2 * S
    return z + 4 * rho, np.trace(S) + len(S) * rho


def violation(S, rho, estimate, allowed=None):
    """Largest violation of the optimality conditions, relative to the costs, from nothing but S and the precision."""
    n = len(S)
    T = estimate.precision.toarray()
    inverse = np.linalg.inv(T)
    resistances = np.diag(inverse)[:, None] + np.diag(inverse)[None, :] - 2 * inverse
    edge_costs, ridge_cost = costs(S, rho)
    pairs = np.triu(np.ones((n, n), dtype=bool) if allowed is None else allowed, 1)
    slack = (1 - resistances / edge_costs)[pairs]
    joined = (T != 0)[pairs]
    return max(np.max(-slack), np.max(np.abs(slack[joined]), initial=0.0), abs(np.trace(inverse) / ridge_cost - 1))


def objective(S, rho, T):
    return np.trace(S @ T) - np.linalg.slogdet(T)[1] + rho * np.abs(T).sum()


def by_cvxpy(S, rho):
    n = len(S)
    i, j = np.triu_indices(n, 1)
    incidence = np.zeros((n, len(i)))
    incidence[i, range(len(i))], incidence[j, range(len(i))] = 1, -1
    w, c = cvxpy.Variable(len(i), nonneg=True), cvxpy.Variable(nonneg=True)
    T = incidence @ cvxpy.diag(w) @ incidence.T + c * np.eye(n)
    edge_costs, ridge_cost = costs(S, rho)
    task = cvxpy.Problem(cvxpy.Minimize(-cvxpy.log_det(T) + edge_costs[i, j] @ w + ridge_cost * c))
    task.solve(solver="CLARABEL")
    return T.value, task.value


@pytest.mark.parametrize("kind", ["random", "blocks", "chain", "dense", "repeated rows"])
@pytest.mark.parametrize("rho", [0.01, 0.2])
def test_the_optimality_conditions_hold(rng, kind, rho):
    S = problem(kind, 60, rng)
    estimate = laplacian_precision(S, rho)
    assert estimate.converged
    assert violation(S, rho, estimate) < 1e-6
    assert 0 <= estimate.gap <= 1e-6 * 60


@pytest.mark.parametrize("kind", ["random", "blocks", "chain", "dense"])
def test_it_agrees_with_a_general_convex_solver(rng, kind):
    S = problem(kind, 9, rng)
    estimate = laplacian_precision(S, 0.1, tol=1e-9)
    T, value = by_cvxpy(S, 0.1)
    # The reference stops at a gap of about 1e-8; entries are good to its root.
    assert estimate.objective == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(estimate.precision.toarray(), T, atol=1e-3)


def test_objective_penalty_and_log_determinant_are_what_they_say(rng):
    S = problem("blocks", 30, rng)
    estimate = laplacian_precision(S, 0.1)
    T = estimate.precision.toarray()
    assert estimate.objective == pytest.approx(objective(S, 0.1, T), rel=1e-12)
    assert estimate.penalty == pytest.approx(0.1 * np.abs(T).sum(), rel=1e-12)
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(T)[1], rel=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["random", "dense"])
def test_the_laplacian_is_valid(rng, kind, sparse):
    estimate = laplacian_precision(problem(kind, 40, rng), 0.05, sparse=sparse)
    L = estimate.laplacian.toarray()
    np.testing.assert_array_equal(L, L.T)
    np.testing.assert_allclose(L.sum(axis=1), 0, atol=1e-12 * np.abs(L).max())
    assert np.all(L[~np.eye(40, dtype=bool)] <= 0)
    assert estimate.ridge > 0
    np.testing.assert_allclose(estimate.precision.toarray(), L + estimate.ridge * np.eye(40), rtol=1e-14)


@pytest.mark.parametrize("correlation", [0.8, 0.1, -0.2, -1.0])
def test_two_nodes_have_a_closed_form(correlation):
    S, rho = np.array([[1.0, correlation], [correlation, 2.0]]), 0.05
    # The eigenvalues of T are c and c + 2 w, with costs that the two directions share.
    edge_costs, ridge_cost = costs(S, rho)
    edge_cost = edge_costs[0, 1]
    ridge = 1 / (ridge_cost - edge_cost / 2)
    weight = 1 / edge_cost - ridge / 2
    if weight <= 0:
        weight, ridge = 0.0, 2 / ridge_cost
    estimate = laplacian_precision(S, rho, tol=1e-10)
    assert estimate.ridge == pytest.approx(ridge, rel=1e-8)
    assert -estimate.laplacian[0, 1] == pytest.approx(weight, rel=1e-8, abs=1e-12)
    assert estimate.n_edges == (1 if correlation > 0 else 0)


def test_a_large_penalty_leaves_no_edge(rng):
    S = problem("blocks", 20, rng)
    estimate = laplacian_precision(S, 5.0)
    assert estimate.n_edges == 0
    assert estimate.ridge == pytest.approx(1 / (np.trace(S) / 20 + 5.0), rel=1e-12)


def test_one_node_is_a_ridge():
    estimate = laplacian_precision([[2.0]], 0.5)
    assert estimate.ridge == pytest.approx(1 / 2.5)
    assert estimate.n_edges == 0


def test_permuting_the_variables_permutes_the_graph(rng):
    S = problem("chain", 30, rng)
    order = rng.permutation(30)
    T = laplacian_precision(S, 0.1, tol=1e-10).precision.toarray()
    permuted = laplacian_precision(S[np.ix_(order, order)], 0.1, tol=1e-10).precision.toarray()
    np.testing.assert_allclose(permuted, T[np.ix_(order, order)], atol=1e-7 * np.abs(T).max())


def test_units_of_the_covariance_are_units_of_the_precision(rng):
    S = problem("blocks", 25, rng)
    T = laplacian_precision(S, 0.1, tol=1e-10).precision.toarray()
    scaled = laplacian_precision(1e6 * S, 1e5, tol=1e-10).precision.toarray()
    np.testing.assert_allclose(1e6 * scaled, T, atol=1e-7 * np.abs(T).max())


def mixed_units(exponent):
    """Twenty variables of which eight samples are known, in units that span twice the exponent."""
    D = np.diag(10.0 ** np.linspace(-exponent, exponent, 20))
    return D @ np.cov(np.random.default_rng(0).normal(size=(8, 20)), rowvar=False) @ D


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e160, 1e307])
def test_any_unit_of_the_covariance_gives_the_same_graph(unit, sparse):
    S = mixed_units(0)
    plain = laplacian_precision(S, 0.1, sparse=sparse)
    scaled = laplacian_precision(S * unit, 0.1 * unit, sparse=sparse)
    assert scaled.converged
    assert scaled.n_edges == plain.n_edges > 10
    for name in ("precision", "laplacian"):
        T = getattr(plain, name).toarray()
        np.testing.assert_allclose(getattr(scaled, name).toarray() * unit, T, atol=1e-6 * np.abs(T).max())
    assert scaled.ridge * unit == pytest.approx(plain.ridge)
    assert scaled.logdet == pytest.approx(plain.logdet - 20 * np.log(unit))
    assert scaled.objective == pytest.approx(plain.objective + 20 * np.log(unit))
    assert scaled.penalty == pytest.approx(plain.penalty)


@pytest.mark.parametrize("exponent", [2, 3, 4])
def test_variables_of_very_different_units_are_solved(exponent):
    estimate = laplacian_precision(mixed_units(exponent), 0.1)
    assert estimate.converged
    assert estimate.gap <= 1e-6 * 20


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("exponent", [6, 30, 75])
def test_units_beyond_the_conditioning_end_with_a_warning(exponent, sparse):
    with pytest.warns(ConvergenceWarning, match="or bring variables of very different variance to similar units"):
        estimate = laplacian_precision(mixed_units(exponent), 0.1, sparse=sparse)
    assert not estimate.converged


@pytest.mark.parametrize("max_iter", [1, 3, 5])
def test_the_gap_bounds_how_far_the_optimum_is(rng, max_iter):
    S = problem("random", 40, rng)
    best = laplacian_precision(S, 0.05, tol=1e-10).objective
    with pytest.warns(ConvergenceWarning, match="duality gap is") as caught:
        estimate = laplacian_precision(S, 0.05, max_iter=max_iter)
    assert not estimate.converged
    assert f"{estimate.gap:.3g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert 0 < estimate.objective - best <= estimate.gap


def test_a_start_changes_the_time_and_not_the_solution(rng):
    X = in_blocks(50, 12, rng)
    before = laplacian_precision(correlations(X), 0.1)
    S = correlations(X + 0.01 * rng.standard_normal(X.shape))
    cold = laplacian_precision(S, 0.1, tol=1e-9)
    warm = laplacian_precision(S, 0.1, tol=1e-9, start=before)
    largest = np.abs(cold.precision.toarray()).max()
    np.testing.assert_allclose(warm.precision.toarray(), cold.precision.toarray(), atol=1e-6 * largest)
    # From the solution itself not a single step is needed.
    again = laplacian_precision(S, 0.1, start=cold, max_iter=1)
    np.testing.assert_allclose(again.precision.toarray(), cold.precision.toarray(), rtol=1e-9)


@pytest.mark.parametrize("kind", ["random", "blocks", "chain", "dense"])
@pytest.mark.parametrize("share", [1e-5, 1e-3, 1e-2])
@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_the_optimality_conditions_hold_from_a_start_nearby(rng, kind, share, tol):
    before = problem(kind, 60, rng)
    scale = 1 + share * rng.uniform(-1, 1, 60)
    S = before * scale[:, None] * scale + share * np.diag(rng.uniform(0, 1, 60))
    estimate = laplacian_precision(S, 0.1, tol=tol, start=laplacian_precision(before, 0.1, tol=tol))
    assert estimate.converged
    assert violation(S, 0.1, estimate) < tol
    assert 0 <= estimate.gap <= tol * 60
    best = laplacian_precision(S, 0.1, tol=1e-9).objective
    assert -1e-7 <= estimate.objective - best <= estimate.gap + 1e-7
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(estimate.precision.toarray())[1], rel=1e-12)


@pytest.mark.parametrize("seed", [10, 44, 45])
def test_rows_that_stop_being_equal_are_solved_from_where_they_were(seed):
    # Where round-off ends a patient search, the step must not end with it.
    rng = np.random.default_rng(seed)
    n, rho, tol = int(rng.choice([30, 60, 100])), 10 ** rng.uniform(-3, -2.5), 10 ** rng.uniform(-8, -6)
    before, share = problem("repeated rows", n, rng), 10 ** rng.uniform(-3, -2)
    scale = 1 + share * rng.uniform(-0.5, 0.5, n)
    S = before * scale[:, None] * scale + share * np.diag(rng.uniform(0, 1, n))
    estimate = laplacian_precision(S, rho, tol=tol, start=laplacian_precision(before, rho, tol=tol))
    assert estimate.converged
    assert violation(S, rho, estimate) < 1.01 * tol


def test_any_graph_will_do_as_a_start(rng):
    S = problem("random", 20, rng)
    cold = laplacian_precision(S, 0.1, tol=1e-9)
    signed = np.eye(20) + 0.04 * (lambda noise: noise + noise.T)(rng.standard_normal((20, 20)))
    for precision in (np.eye(20), signed, 1e6 * cold.precision.toarray()):
        start = GraphEstimate(scipy.sparse.csr_array(precision), 0.0)
        warm = laplacian_precision(S, 0.1, tol=1e-9, start=start)
        np.testing.assert_allclose(warm.precision.toarray(), cold.precision.toarray(), atol=1e-5)


def test_candidates_are_respected_and_optimal_among_themselves(rng):
    S = problem("random", 40, rng)
    allowed = rng.random((40, 40)) < 0.2
    allowed |= allowed.T
    estimate = laplacian_precision(S, 0.05, candidates=allowed)
    off = ~np.eye(40, dtype=bool)
    assert np.all(estimate.precision.toarray()[off & ~allowed] == 0)
    assert violation(S, 0.05, estimate, allowed) < 1e-6
    assert estimate.objective > laplacian_precision(S, 0.05).objective
    by_function = laplacian_precision(S, 0.05, candidates=lambda n: scipy.sparse.csr_array(allowed))
    assert by_function.objective == estimate.objective


def test_candidates_without_a_pair_leave_a_ridge(rng):
    S = problem("random", 10, rng)
    estimate = laplacian_precision(S, 0.05, candidates=np.zeros((10, 10)))
    assert estimate.n_edges == 0
    assert estimate.ridge == pytest.approx(1 / 1.05)


def concave_objective(S, rho, estimate):
    """The formula of the docstring, written again."""
    n, T = len(S), estimate.precision.toarray()
    w = -T[np.triu_indices(n, 1)]
    unit = n / (np.trace(S) + n * rho)
    penalty = 4 * rho * 0.55 * unit * np.log(1 + w / (0.05 * unit)).sum() + n * rho * estimate.ridge
    return np.trace(S @ T) - np.linalg.slogdet(T)[1] + penalty


@pytest.mark.parametrize("kind", ["random", "blocks", "chain"])
def test_sparse_leaves_out_edges_and_is_lower_in_its_own_objective(rng, kind):
    S = problem(kind, 50, rng)
    plain = laplacian_precision(S, 0.1)
    sparse = laplacian_precision(S, 0.1, sparse=True)
    assert sparse.converged
    assert sparse.n_edges < 0.6 * plain.n_edges
    assert sparse.objective == pytest.approx(concave_objective(S, 0.1, sparse), rel=1e-10)
    assert sparse.objective < concave_objective(S, 0.1, plain)


def test_sparse_is_stationary_in_its_own_objective(rng):
    S, rho = problem("chain", 40, rng), 0.1
    estimate = laplacian_precision(S, rho, sparse=True, tol=1e-8)
    T = estimate.precision.toarray()
    inverse = np.linalg.inv(T)
    i, j = np.triu_indices(40, 1)
    resistances = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
    unit = 40 / (np.trace(S) + 40 * rho)
    slopes = S[i, i] + S[j, j] - 2 * S[i, j] + 4 * rho * 0.55 * unit / (-T[i, j] + 0.05 * unit) - resistances
    joined = T[i, j] < 0
    # The last reweighting moves the weights by about the root of the fall that it stops at, 4e-6.
    assert np.abs(slopes[joined]).max() < 5e-3
    assert slopes[~joined].min() > -5e-3


def test_a_larger_linear_penalty_does_not_make_the_graph_sparse_but_the_concave_one_does(rng):
    S = problem("random", 60, rng)
    plain = [laplacian_precision(S, rho).n_edges for rho in (0.02, 0.1)]
    sparse = [laplacian_precision(S, rho, sparse=True).n_edges for rho in (0.02, 0.1)]
    assert plain[1] > plain[0]
    assert sparse[1] < sparse[0]


def test_sparse_recovers_a_chain_from_many_samples(rng):
    n = 40
    # A chain of the model's own kind: the ends of an autoregressive one have a larger ridge than the rest.
    path = np.diag(np.full(n - 1, -1.0), 1)
    path = path + path.T
    T = path - np.diag(path.sum(axis=1)) + 0.05 * np.eye(n)
    S = np.cov(np.linalg.solve(np.linalg.cholesky(T).T, rng.standard_normal((n, 4000))))
    estimate = laplacian_precision(S, 0.02, sparse=True)
    assert laplacian_precision(S, 0.02).n_edges > n
    rows, columns = np.nonzero(np.triu(estimate.precision.toarray(), 1))
    np.testing.assert_array_equal(rows, np.arange(n - 1))
    np.testing.assert_array_equal(columns, np.arange(1, n))


def one_and_itself(excess):
    return np.array([[1.0, 1.0 + excess], [1.0 + excess, 1.0]])


@pytest.mark.parametrize("rho", [1e-12, 0.01, 0.1, 0.3])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "S",
    [
        *(one_and_itself(excess) for excess in (0.0, 1e-9, -1e-8)),
        np.kron(np.ones((2, 2)), problem("random", 5, np.random.default_rng(0))),
        np.kron(problem("random", 6, np.random.default_rng(1)), np.ones((8, 8))),
        np.ones((30, 30)),
    ],
    ids=["same", "beyond", "nearly", "twice", "eight times", "all the same"],
)
def test_nearly_equal_variables_get_a_bounded_weight_and_a_precision_that_can_be_factorised(S, sparse, rho):
    estimate = laplacian_precision(S, rho, sparse=sparse)
    T = estimate.precision.toarray()
    assert estimate.converged
    assert -T.min() <= 0.51e6  # the inverse of the smallest z
    # Weights of 1e6 leave ten digits, of a sum over the nodes.
    digits = 1e-9 * len(S)
    assert estimate.logdet == pytest.approx(factorize(estimate.precision).logdet, abs=digits)
    assert estimate.objective == pytest.approx(np.sum(S * T) - estimate.logdet + estimate.penalty, abs=digits)


@pytest.mark.parametrize("rho", [0.01, 0.1, 0.3])
def test_the_edge_of_two_equal_variables_is_where_its_docstring_says(rho):
    estimate = laplacian_precision(np.ones((2, 2)), rho, sparse=True, tol=1e-10)
    unit = 1 / (1 + rho)
    # Slope in the weight, which the eigenvalue c + 2 w alone depends on; z is taken to be 2e-6.
    weight = brentq(
        lambda w: 2e-6 + 4 * rho * 0.55 * unit / (0.05 * unit + w) - 2 / (estimate.ridge + 2 * w), 1e3, 1e7, rtol=1e-12
    )
    # Reweighting stops where the objective, which is flat there, falls by no more than 2e-9.
    assert -estimate.precision[0, 1] == pytest.approx(weight, rel=1e-4)
    assert estimate.penalty == pytest.approx(
        4 * rho * 0.55 * unit * np.log1p(weight / (0.05 * unit)) + 2e-6 * weight + 2 * rho * estimate.ridge, rel=1e-4
    )


def test_variables_that_can_be_told_apart_cost_nothing_more():
    S = one_and_itself(-1.1e-6)
    estimate = laplacian_precision(S, 0.1, sparse=True)
    assert estimate.converged
    assert estimate.objective == pytest.approx(concave_objective(S, 0.1, estimate), abs=1e-9)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("rho", [None, 1e-12])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_learner_makes_a_precision_of_repeated_rows_that_can_be_factorised(rng, sparse, rho, exact, monkeypatch):
    X = np.repeat(rng.standard_normal((20, 6)), 4, axis=0)
    if not exact:
        monkeypatch.setattr("lgmd.graphs.nonnegative.EXACT_NODES", 10)
    learner = LaplacianGraph(rho=rho, sparse=sparse, order=False)
    estimate = GraphEstimate.identity(len(X))
    for _ in range(2):
        estimate = learner.learn(FactorMoments(X), estimate)
    assert estimate.converged
    assert factorize(estimate.precision).logdet == pytest.approx(estimate.logdet, abs=1e-6)


@pytest.mark.parametrize("rho", [0, -0.1])
def test_rho_must_be_positive(rho):
    with pytest.raises(InvalidParameterError, match=f"rho must be positive, but is {rho}"):
        laplacian_precision(np.eye(3), rho)
    with pytest.raises(InvalidParameterError, match=f"rho must be positive, but is {rho}"):
        LaplacianGraph(rho=rho).validate()


@pytest.mark.parametrize("rho", [np.nan, np.inf, -np.inf])
def test_rho_is_a_finite_number(rho):
    with pytest.raises(InvalidParameterError, match=f"^rho must be a finite number, but is {rho}"):
        laplacian_precision(np.eye(3), rho)
    with pytest.raises(InvalidParameterError, match=f"^rho must be a finite number, but is {rho}"):
        LaplacianGraph(rho=rho).validate()


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.ones((2, 3)), "S is 2 x 3"),
        ([[1.0, 0.5], [0.2, 1.0]], "S is not symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "NaN or infinite"),
        (np.diag([1.0, 0.0]), "not positive: 0 at 1"),
        (np.diag([1.0, -2.0]), "not positive: -2 at 1"),
        ([[1.0, 3.0], [3.0, 1.0]], "not positive semidefinite: the variance of variable 0 minus variable 1"),
        ([[1.0, -3.0], [-3.0, 1.0]], "not positive semidefinite: it has the eigenvalue -2"),
        (np.full((4, 4), -0.5) + 1.5 * np.eye(4), "not positive semidefinite: it has the eigenvalue -0.5"),
        ([[1e-60, -1.0], [-1.0, 1e-60]], "not positive semidefinite: it has the eigenvalue -1"),
        ([[1e-60, 0, -1.0], [0, 1.0, 0], [-1.0, 0, 1e-60]], "not positive semidefinite: it has the eigenvalue -1"),
        (np.ma.masked_greater(np.eye(3), 0.5), "S has 3 masked entries"),
    ],
)
def test_what_is_no_covariance_is_refused(S, message):
    with pytest.raises(InvalidGraphError, match=message):
        laplacian_precision(S, 0.1)


def opposed(n, excess):
    """Equal negative correlations between all, beyond the most that a covariance can have."""
    return np.full((n, n), -(1 + excess) / (n - 1)) + (1 + (1 + excess) / (n - 1)) * np.eye(n)


def test_variables_of_any_unit_may_be_indefinite():
    units = 10.0 ** np.arange(-4, 4)
    S = opposed(8, 0.01) * units[:, None] * units
    with pytest.raises(InvalidGraphError, match="not positive semidefinite"):
        laplacian_precision(S, 0.1)


@pytest.mark.parametrize("n", [2, 30, 200])
def test_round_off_is_not_taken_for_a_negative_eigenvalue(rng, n):
    for S in (opposed(n, 0), opposed(n, 0.2e-6), problem("random", n, rng).astype(np.float32), np.ones((n, n))):
        assert laplacian_precision(S, 0.1, tol=1e-4).converged


def test_with_candidates_only_their_covariances_matter():
    chain = candidate_graphs.chain(6)
    known = np.where(chain.toarray() | np.eye(6, dtype=bool), 0.8 ** np.abs(np.subtract.outer(range(6), range(6))), 0.0)
    assert np.linalg.eigvalsh(known)[0] < -0.1
    whole = 0.8 ** np.abs(np.subtract.outer(range(6), range(6)))
    partial, complete = (laplacian_precision(S, 0.1, candidates=chain).precision for S in (known, whole))
    np.testing.assert_array_equal(partial.toarray(), complete.toarray())


def test_other_bad_input_is_refused(rng):
    S = problem("random", 6, rng)
    with pytest.raises(InvalidGraphError, match="candidates is 5 x 5, but there are 6 nodes"):
        laplacian_precision(S, 0.1, candidates=np.ones((5, 5)))
    with pytest.raises(InvalidGraphError, match="start is 5 x 5, but S is 6 x 6"):
        laplacian_precision(S, 0.1, start=GraphEstimate.identity(5))
    for start in (np.eye(6), scipy.sparse.eye_array(6), "cold"):
        with pytest.raises(InvalidParameterError, match=f"start must be a GraphEstimate.*is a {type(start).__name__}"):
            laplacian_precision(S, 0.1, start=start)
    with pytest.raises(InvalidGraphError, match="stops at 5,000 nodes"):
        laplacian_precision(scipy.sparse.eye_array(5001), 0.1)
    with pytest.raises(InvalidParameterError, match="max_iter"):
        laplacian_precision(S, 0.1, max_iter=0)
    with pytest.raises(InvalidParameterError, match="n_neighbors"):
        LaplacianGraph(n_neighbors=0).validate()
    with pytest.raises(InvalidParameterError, match="sparse must be True or False"):
        LaplacianGraph(sparse="yes").validate()
    with pytest.raises(InvalidParameterError, match="sparse must be True or False, but is 'no'"):
        laplacian_precision(S, 0.1, sparse="no")


@pytest.mark.parametrize("sparse", [False, True])
def test_the_learner_solves_the_problem_of_the_correlations_at_unit_scale(rng, sparse):
    X = in_blocks(40, 12, rng)
    learned = LaplacianGraph(rho=0.1, sparse=sparse, order=False).learn(FactorMoments(X), GraphEstimate.identity(40))
    direct = laplacian_precision(correlations(X), 0.1, sparse=sparse, tol=1e-4)
    A = learned.precision.toarray()
    T = direct.precision.toarray()
    assert np.diag(A).mean() == pytest.approx(1.0)
    np.testing.assert_allclose(A, T / np.diag(T).mean(), atol=1e-9)
    assert learned.logdet == pytest.approx(np.linalg.slogdet(A)[1])
    np.testing.assert_allclose(learned.laplacian.toarray() + learned.ridge * np.eye(40), A, atol=1e-14)
    if not sparse:
        assert learned.objective == pytest.approx(objective(correlations(X), 0.1, A))


def test_the_learner_takes_posterior_variances_and_zero_rows(rng):
    X = in_blocks(24, 12, rng)
    X[5] = 0
    exact = LaplacianGraph().learn(FactorMoments(X), GraphEstimate.identity(24))
    assert exact.precision[5, 5] > 0
    unsure = LaplacianGraph().learn(FactorMoments(X, variance=np.full(24, 12.0)), GraphEstimate.identity(24))
    # Rows that are known with less certainty correlate less.
    weights = [-scipy.sparse.triu(each.precision, k=1).sum() for each in (unsure, exact)]
    assert weights[0] < weights[1]


def test_the_learner_starts_without_edges_and_checks_its_candidates(rng):
    data = as_observed(rng.standard_normal((6, 4)))
    assert LaplacianGraph().start(data, SIDE).n_edges == 0
    with pytest.raises(InvalidGraphError, match="candidates of sample_graph is 5 x 5 but the data has 6 rows"):
        LaplacianGraph(candidates=np.ones((5, 5))).start(data, SIDE)


def test_the_learner_goes_on_from_any_graph(rng):
    X = autoregressive(30, 12, rng)
    moments = FactorMoments(X)
    learner = LaplacianGraph(order=False)
    first = learner.learn(moments, GraphEstimate.identity(30))
    neighbors = KNNGraph().start(as_observed(X), SIDE)
    for previous in (first, neighbors):
        again = learner.learn(moments, previous)
        np.testing.assert_allclose(again.precision.toarray(), first.precision.toarray(), atol=1e-3)


def test_learned_candidates_are_respected(rng):
    X = autoregressive(30, 12, rng)
    learner = LaplacianGraph(candidates=candidate_graphs.chain(30, lag=2))
    A = learner.learn(FactorMoments(X), GraphEstimate.identity(30)).precision.toarray()
    i, j = np.nonzero(A)
    assert np.abs(i - j).max() <= 2
    assert np.all(np.diag(A, 1) < 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_large_graph_is_close_to_the_exact_one_on_its_candidates(rng, sparse, monkeypatch):
    n = 500
    moments = FactorMoments(np.vstack([autoregressive(n // 2, 20, rng), in_blocks(n // 2, 20, rng)]))
    learner = LaplacianGraph(rho=0.1, sparse=sparse, candidates=candidate_graphs.chain(n, lag=6))
    exact = learner.learn(moments, GraphEstimate.identity(n))
    monkeypatch.setattr("lgmd.graphs.nonnegative.EXACT_NODES", 100)
    sampled = learner.learn(moments, GraphEstimate.identity(n))
    # A concave penalty has many local minima, and the two ways end in different ones, a little apart.
    assert abs(sampled.objective - exact.objective) / n < (0.02 if sparse else 0.003)
    L = sampled.laplacian.toarray()
    np.testing.assert_allclose(L.sum(axis=1), 0, atol=1e-12)
    assert np.all(L[~np.eye(n, dtype=bool)] <= 0)
    warm = learner.learn(moments, sampled)
    assert abs(warm.objective - exact.objective) / n < (0.02 if sparse else 0.003)


def test_neighbours_as_candidates_cost_little(rng, monkeypatch):
    n = 400
    moments = FactorMoments(in_blocks(n, 20, rng))
    exact = LaplacianGraph().learn(moments, GraphEstimate.identity(n))
    monkeypatch.setattr("lgmd.graphs.nonnegative.EXACT_NODES", 100)
    sampled = LaplacianGraph().learn(moments, GraphEstimate.identity(n))
    assert sampled.n_edges < exact.n_edges * 1.5
    # Both at unit scale, so that the objectives are of the same family of graphs.
    assert abs(sampled.objective - exact.objective) / n < 0.03


@pytest.mark.slow
def test_a_giant_component_of_fifty_thousand_nodes_finishes(rng):
    n = 50_000
    learner = LaplacianGraph(n_neighbors=5)
    estimate = learner.learn(FactorMoments(autoregressive(n, 20, rng)), GraphEstimate.identity(n))
    _, labels = scipy.sparse.csgraph.connected_components(estimate.precision)
    assert np.bincount(labels).max() > 0.99 * n
    assert estimate.n_edges < 5 * n


@pytest.mark.parametrize(("columns", "rho"), [(1, 0.5), (4, 0.12), (8, 0.03), (30, 0.03)])
def test_the_penalty_of_few_columns_is_larger(columns, rho):
    X = np.random.default_rng(0).standard_normal((20, columns))
    learner, identity = LaplacianGraph(order=False), GraphEstimate.identity(20)
    moments = FactorMoments(X)
    for given, expected in ((None, rho), (candidate_graphs.chain(20), 0.03)):
        by_default = replace(learner, candidates=given).learn(moments, identity)
        stated = replace(learner, candidates=given, rho=expected).learn(moments, identity)
        np.testing.assert_array_equal(by_default.precision.toarray(), stated.precision.toarray())
    # What counts is what columns say, not how many there are.
    uncertain = learner.learn(FactorMoments(X, effective_columns=columns / 2), identity)
    stated = replace(learner, rho=min(0.5, 0.03 * max(1.0, 16 / columns) ** 2)).learn(moments, identity)
    np.testing.assert_array_equal(uncertain.precision.toarray(), stated.precision.toarray())


@pytest.mark.filterwarnings("error")
def test_a_penalty_in_single_precision_is_the_same_number():
    for size in (1.0, 1e39):
        S = (np.eye(3) + 0.3) * size
        rough, exact = (
            laplacian_precision(S, rho) for rho in (np.float32(0.125 * size), float(np.float32(0.125 * size)))
        )
        np.testing.assert_array_equal(rough.precision.toarray(), exact.precision.toarray())
        assert rough.ridge == exact.ridge > 0
        assert type(rough.objective) is type(exact.objective)

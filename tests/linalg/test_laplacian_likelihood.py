"""The pieces of the solver for Laplacian precisions."""

import numpy as np
import pytest

from lgmd.linalg.laplacian_kernels import bounded_quadratic, hessian_product
from lgmd.linalg.laplacian_likelihood import (
    _conditions,
    _foreseen,
    _State,
    _Step,
    _working_set,
    effective_resistances,
    fit_laplacian,
    laplacian_with_ridge,
)
from lgmd.linalg.sampled_laplacian_likelihood import _Pattern, fit_laplacian_by_sampling


@pytest.fixture
def graph(rng):
    """Pairs, weights, ridge and the inverse of the precision of a random graph of 25 nodes."""
    n = 25
    rows, columns = np.nonzero(np.triu(rng.random((n, n)) < 0.3, 1))
    weights = rng.uniform(0.1, 2.0, len(rows))
    inverse = np.linalg.inv(laplacian_with_ridge(n, rows, columns, weights, 0.3))
    return rows, columns, weights, inverse


def hessian(rows, columns, inverse):
    incidence = np.zeros((len(inverse), len(rows)))
    incidence[rows, range(len(rows))], incidence[columns, range(len(rows))] = 1, -1
    directions = [*(np.outer(b, b) for b in incidence.T), np.eye(len(inverse))]
    halves = [inverse @ direction for direction in directions]
    return np.array([[np.sum(one * other.T) for other in halves] for one in halves])


def test_products_with_the_hessian_are_those_of_the_full_matrix(rng, graph):
    rows, columns, _, inverse = graph
    units = rng.uniform(0.5, 2.0, len(rows) + 1)
    vector = rng.standard_normal(len(rows) + 1)
    out = np.empty_like(vector)
    hessian_product(inverse, rows, columns, units, vector, np.empty_like(inverse), out)
    expected = (hessian(rows, columns, inverse) @ (vector / units)) / units
    np.testing.assert_allclose(out, expected, rtol=1e-10)


@pytest.mark.parametrize("patient", [False, True])
def test_bounded_quadratic_problems_are_solved(rng, graph, patient):
    rows, columns, weights, inverse = graph
    H = hessian(rows, columns, inverse)
    units = np.sqrt(np.diag(H))
    linear = rng.standard_normal(len(units))
    lower = -np.append(weights, 0.3) * units * rng.uniform(0, 1, len(units))
    tolerances = np.full(len(units), 1e-9)
    x, product = bounded_quadratic(inverse, rows, columns, units, linear, lower, tolerances, 10_000, patient)
    slopes = linear + H / np.outer(units, units) @ x
    np.testing.assert_allclose(product, slopes - linear, atol=1e-8)
    at_bound = x <= lower
    assert at_bound.any()
    assert np.all(x >= lower)
    assert np.abs(slopes[~at_bound]).max() < 1e-8
    assert slopes[at_bound].min() > -1e-8


def test_a_patient_search_that_runs_out_of_products_stays_within_the_bounds(rng, graph):
    rows, columns, weights, inverse = graph
    units = np.append(effective_resistances(inverse, rows, columns), np.linalg.norm(inverse))
    linear = rng.standard_normal(len(units))
    lower = -0.01 * np.append(weights, 0.3) * units
    for most_products in range(1, 12):
        tolerances = np.full(len(units), 1e-9)
        x, product = bounded_quadratic(inverse, rows, columns, units, linear, lower, tolerances, most_products, True)
        assert np.all(x >= lower)
        assert linear @ x + x @ product / 2 <= 0
    assert linear @ x + x @ product / 2 < 0


def test_resistances_are_variances_of_differences(graph):
    rows, columns, _, inverse = graph
    differences = np.eye(25)[rows] - np.eye(25)[columns]
    expected = np.einsum("ei,ij,ej->e", differences, inverse, differences)
    np.testing.assert_allclose(effective_resistances(inverse, rows, columns), expected)
    np.testing.assert_allclose(effective_resistances(1e307 * inverse, rows, columns, unit=1e307), expected)


def test_sampled_resistances_agree_within_their_noise(rng, graph):
    rows, columns, weights, inverse = graph
    resistances, trace = _Pattern(25, rows, columns).resistances(weights, 0.3, 4096, rng)
    # The sampled part has a relative standard error of sqrt(2 / 4096) = 2 %, and is at most all of it.
    np.testing.assert_allclose(resistances, effective_resistances(inverse, rows, columns), rtol=0.1)
    assert trace == pytest.approx(np.trace(inverse), rel=0.05)


def test_sampling_comes_close_to_the_exact_solution(rng):
    n = 200
    X = rng.standard_normal((n, 15))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    rows, columns = np.nonzero(np.triu(X @ X.T > 0.3, 1))
    costs = 2.2 - 2 * np.einsum("ij,ij->i", X[rows], X[columns])
    exact = fit_laplacian(n, rows, columns, costs, 1.05 * n)
    sampled = fit_laplacian_by_sampling(n, rows, columns, costs, 1.05 * n)
    T = laplacian_with_ridge(n, rows, columns, sampled.weights, sampled.ridge)
    objective = costs @ sampled.weights + 1.05 * n * sampled.ridge - np.linalg.slogdet(T)[1]
    assert 0 <= (objective - exact.objective) / n < 2e-3


def test_a_start_whose_ridge_is_lost_to_round_off_is_mended():
    rows, columns = np.triu_indices(4, 1)
    costs = np.full(6, 0.5)
    cold = fit_laplacian(4, rows, columns, costs, 4.0)
    found = fit_laplacian(4, rows, columns, costs, 4.0, start=(np.full(6, 1e9), 1e-12))
    assert found.converged
    np.testing.assert_allclose(found.weights, cold.weights, atol=1e-5)
    assert found.ridge == pytest.approx(cold.ridge)


def unit_rows(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def moving_problem(share, n=80, k=15):
    """Pairs, and their costs before and after the rows of a factor moved by a share of their length."""
    rng = np.random.default_rng(3)
    rows, columns = np.triu_indices(n, 1)
    blocks = np.repeat(rng.standard_normal((n // 8, k)), 8, axis=0)
    X, noise = (unit_rows(Y) for Y in (blocks + rng.standard_normal((n, k)), rng.standard_normal((n, k))))
    moved = unit_rows(X + share * noise)
    costs = (2.4 - 2 * np.einsum("ij,ij->i", Y[rows], Y[columns]) for Y in (X, moved))
    return n, rows, columns, *costs


def state_of(n, rows, columns, solution):
    edges = np.flatnonzero(solution.weights)
    weights = solution.weights[edges]
    T = laplacian_with_ridge(n, rows[edges], columns[edges], weights, solution.ridge)
    return _State(edges, weights, solution.ridge, np.linalg.slogdet(T)[1], np.linalg.inv(T))


@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-6])
def test_what_is_foreseen_bounds_what_an_inverse_says(size):
    n, rows, columns, costs, _ = moving_problem(0.0)
    rng = np.random.default_rng(1)
    state = state_of(n, rows, columns, fit_laplacian(n, rows, columns, costs, 1.0 * n))
    now = _conditions(state, rows, columns, costs)
    near = np.argsort(-now.ratios)[: len(state.edges) + 30]
    working = np.union1d(state.edges, near)
    before = np.zeros(len(working))
    before[np.searchsorted(working, state.edges)] = state.weights
    # Weights shrink, grow, vanish and appear.
    change = np.where(before > 0, size * before * rng.uniform(-1, 1, len(before)), 0.01 * size)
    change[np.argmin(np.where(before > 0, before, np.inf))] = -before[before > 0].min() if size > 1e-5 else 0.0
    inverse = state.covariance
    directions = laplacian_with_ridge(n, rows[working], columns[working], change, -size * state.ridge)
    decrement = np.sqrt(np.trace(inverse @ directions @ inverse @ directions))
    step = _Step(change, -size * state.ridge, 0.0, decrement)
    point, bounds = _foreseen(state, now, rows, columns, costs, working, before, step)
    T = laplacian_with_ridge(n, rows[point.edges], columns[point.edges], point.weights, point.ridge)
    assert point.logdet == pytest.approx(np.linalg.slogdet(T)[1], rel=1e-13)
    exact = _conditions(point._replace(covariance=np.linalg.inv(T)), rows, columns, costs)
    assert exact.residual <= bounds.residual <= exact.residual + 2 * decrement**2 + 1e-12
    assert exact.gap <= bounds.gap <= exact.gap + 2 * n * decrement**2 + 1e-10
    assert exact.residual > 0.1 * size


def test_what_is_foreseen_looks_at_pairs_that_the_step_leaves_out():
    n, rows, columns, costs, _ = moving_problem(0.0)
    state = state_of(n, rows, columns, fit_laplacian(n, rows, columns, costs, 1.0 * n))
    resistances = effective_resistances(state.covariance, rows, columns)
    left_out = np.setdiff1d(np.arange(len(costs)), state.edges)[7]
    costs[left_out] = resistances[left_out] / 1.002
    now = _conditions(state, rows, columns, costs)
    step = _Step(-1e-3 * state.weights, -1e-3 * state.ridge, 0.0, 1e-3 * np.sqrt(n))
    point, bounds = _foreseen(state, now, rows, columns, costs, state.edges, state.weights, step)
    exact = _conditions(point._replace(covariance=state.covariance / (1 - 1e-3)), rows, columns, costs)
    assert exact.residual == pytest.approx(1.002 / (1 - 1e-3) - 1)
    assert exact.residual <= bounds.residual
    assert exact.gap <= bounds.gap


def test_pairs_that_are_about_to_ask_are_worked_on_near_the_optimum():
    n, rows, columns, costs, moved = moving_problem(1e-3)
    state = state_of(n, rows, columns, fit_laplacian(n, rows, columns, costs, 1.0 * n))
    now = _conditions(state, rows, columns, moved)
    working = _working_set(n, state.edges, now)
    expected = np.union1d(state.edges, np.flatnonzero(now.ratios > 1 - now.residual))
    np.testing.assert_array_equal(working, expected)
    assert np.any(now.ratios[working] < 1 - now.residual / 2)
    far = now._replace(residual=0.5)
    np.testing.assert_array_equal(
        _working_set(n, state.edges, far), np.union1d(state.edges, np.flatnonzero(now.ratios > 1))
    )


@pytest.mark.parametrize(("share", "tol", "most_steps"), [(1e-4, 1e-6, 1), (1e-3, 1e-4, 1), (1e-2, 1e-4, 2)])
def test_a_start_nearby_takes_few_steps(share, tol, most_steps):
    n, rows, columns, before, costs = moving_problem(share)
    start = fit_laplacian(n, rows, columns, before, 1.0 * n, tol=tol)
    warm = fit_laplacian(n, rows, columns, costs, 1.0 * n, tol=tol, start=(start.weights, start.ridge))
    assert warm.converged
    assert 1 <= warm.n_iter <= most_steps
    exact = _conditions(state_of(n, rows, columns, warm), rows, columns, costs)
    assert exact.residual <= min(warm.residual, tol) + 1e-12
    assert exact.gap <= min(warm.gap, tol * n) + 1e-10

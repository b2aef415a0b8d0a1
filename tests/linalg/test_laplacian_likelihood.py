"""The pieces of the solver for Laplacian precisions."""

import numpy as np
import pytest

from lgmd.linalg.laplacian_likelihood import (
    _bounded_quadratic,
    _hessian_product,
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
    _hessian_product(inverse, rows, columns, units, vector, np.empty_like(inverse), out)
    expected = (hessian(rows, columns, inverse) @ (vector / units)) / units
    np.testing.assert_allclose(out, expected, rtol=1e-10)


def test_bounded_quadratic_problems_are_solved(rng, graph):
    rows, columns, weights, inverse = graph
    H = hessian(rows, columns, inverse)
    units = np.sqrt(np.diag(H))
    linear = rng.standard_normal(len(units))
    lower = -np.append(weights, 0.3) * units * rng.uniform(0, 1, len(units))
    x, product = _bounded_quadratic(inverse, rows, columns, units, linear, lower, np.full(len(units), 1e-9), 10_000)
    slopes = linear + H / np.outer(units, units) @ x
    np.testing.assert_allclose(product, slopes - linear, atol=1e-8)
    at_bound = x <= lower
    assert at_bound.any()
    assert np.all(x >= lower)
    assert np.abs(slopes[~at_bound]).max() < 1e-8
    assert slopes[at_bound].min() > -1e-8


def test_resistances_are_variances_of_differences(graph):
    rows, columns, _, inverse = graph
    differences = np.eye(25)[rows] - np.eye(25)[columns]
    expected = np.einsum("ei,ij,ej->e", differences, inverse, differences)
    np.testing.assert_allclose(effective_resistances(inverse, rows, columns), expected)


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

"""The solution of a complete table whose columns share one prior variance a side."""

import numpy as np
import pytest

from lgmd.factors import Intercepts, InterceptTerms, NoiseModel
from lgmd.graphs import GraphEstimate, NoGraph
from lgmd.linalg.shared_factorization import shared_factorization
from lgmd.observed import DenseObserved
from lgmd.solver.variational import VariationalInference
from lgmd.solver.variational_starter import Starter


def table(n, p, rank, noise, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) + noise * rng.standard_normal((n, p))
    return values / values.std()


def solution(values, most=20):
    kept = np.linalg.svd(values, compute_uv=False)[:most]
    return shared_factorization(kept, values.shape, np.sum(values**2), noise_variance=0.1, floor=1e-12)


def free_energy(found, values, noise, scale):
    """Direct: with the noise and the product of the prior variances changed by factors, the posterior as it is."""
    n, p = values.shape
    X, W = found.sample_scales**2 + n * found.sample_variances, found.feature_scales**2 + p * found.feature_variances
    singular = np.linalg.svd(values, compute_uv=False)[: found.rank]
    squares = np.sum(values**2) - 2 * singular @ found.singular_values + X @ W
    loss = n * p * np.log(noise * found.noise_variance) + squares / (noise * found.noise_variance)
    for size, moments, variances, prior in (
        (n, X, found.sample_variances, found.sample_prior_variances * np.sqrt(scale)),
        (p, W, found.feature_variances, found.feature_prior_variances * np.sqrt(scale)),
    ):
        loss += np.sum(size * np.log(prior / variances) - size + moments / prior)
    return loss / 2


SHAPES = [(100, 80, 5, 0.5), (10, 1000, 2, 2.0), (5000, 6, 1, 0.5), (30, 30, 3, 1.0), (300, 12, 3, 1.0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_other_noise_or_prior_variance_suits_the_posterior_better(shape):
    values = table(*shape, seed=0)
    found = solution(values)
    least = free_energy(found, values, 1.0, 1.0)
    for step in (1.001, 1 / 1.001):
        assert free_energy(found, values, step, 1.0) > least
        assert free_energy(found, values, 1.0, step) > least


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_iterations_have_nothing_to_add(shape):
    """The half-steps of the solver, which know nothing of singular values, stay where the solution is."""
    values = table(*shape, seed=1)
    n, p = values.shape
    problem = VariationalInference(
        DenseObserved(values),
        min(20, n, p),
        InterceptTerms.parse("none"),
        NoGraph(),
        NoGraph(),
        NoiseModel("homoscedastic"),
    )
    graphs = (GraphEstimate.identity(n), GraphEstimate.identity(p))
    starter = Starter(problem, Intercepts(0.0, np.zeros(n), np.zeros(p)), graphs, 0)
    found = solution(values)
    state = starter._starts()("shared")
    iterate, losses = problem.prepare(state), []
    for _ in range(2000 if not starter._is_narrow else 5):
        state, terms = iterate(state)
        losses.append(sum(terms.values()))
    assert state.noise.level == pytest.approx(found.noise_variance, rel=1e-4)
    assert state.samples.rank == found.rank
    if starter._is_narrow:
        assert losses[0] - losses[-1] < 1e-6 * values.size


def test_transposing_swaps_the_sides():
    values = table(40, 9, 3, 1.0, seed=2)
    found, other = solution(values), solution(values.T)
    assert found.noise_variance == pytest.approx(other.noise_variance, rel=1e-9)
    np.testing.assert_allclose(found.singular_values, other.singular_values, rtol=1e-8)
    np.testing.assert_allclose(found.sample_scales, other.feature_scales, rtol=1e-8)
    np.testing.assert_allclose(found.sample_variances, other.feature_variances, rtol=1e-8)


def test_noise_alone_leaves_no_component():
    values = np.random.default_rng(0).standard_normal((200, 150))
    found = solution(values)
    assert found.rank <= 1
    assert found.noise_variance == pytest.approx(1.0, rel=0.02)


def test_noise_has_a_floor():
    values = table(20, 6, 2, 0.0, seed=3)
    kept = np.linalg.svd(values, compute_uv=False)
    found = shared_factorization(kept[kept > 1e-9], values.shape, np.sum(values**2), noise_variance=0.1, floor=1e-6)
    assert found.noise_variance >= 1e-6
    assert np.isfinite(found.sample_scales).all()

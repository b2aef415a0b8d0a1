"""Complete tables with few rows or columns: what tells noise from factors there is little, but it is enough."""

import numpy as np
import pytest
import scipy.sparse

from lgmd import LGMD

NONE = {"sample_graph": "none", "feature_graph": "none"}


def tables(n, p, rank, noise, seed=0):
    """A noisy table, the truth, and another noisy table of the same truth."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    return truth + noise * rng.standard_normal((n, p)), truth, truth + noise * rng.standard_normal((n, p))


def inside(model, replicate):
    mean, std = model.reconstruct(return_std=True)
    return np.mean(np.abs(replicate - mean) <= 1.645 * std)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("settings", [NONE, {}, {**NONE, "likelihood": "student"}], ids=["none", "default", "student"])
@pytest.mark.parametrize(
    "shape",
    [(10, 1000, 2, 2.0), (10, 1000, 2, 2.0, 10), (6, 300, 1, 0.5), (2000, 6, 1, 0.5), (1500, 8, 3, 0.5)],
    ids=str,
)
def test_noise_is_not_taken_for_factors(shape, settings, transposed):
    noisy, truth, replicate = (table.T if transposed else table for table in tables(*shape))
    model = LGMD(**settings).fit(noisy)
    assert model.noise_std_ == pytest.approx(shape[3], rel=0.12)
    assert 0.87 < inside(model, replicate) < 0.93
    error = np.sqrt(np.mean((model.reconstruct() - truth) ** 2))
    oracle = shape[3] * np.sqrt((shape[2] + 1) * (shape[0] + shape[1]) / (shape[0] * shape[1]))
    assert error < 1.2 * oracle


@pytest.mark.parametrize("likelihood", ["gaussian", "student"])
def test_how_a_table_is_stored_changes_nothing(likelihood):
    noisy, _, _ = tables(300, 6, 1, 0.5)
    settings = {**NONE, "likelihood": likelihood}
    models = [LGMD(**settings).fit(table) for table in (noisy, scipy.sparse.csr_array(noisy))]
    np.testing.assert_allclose(models[0].reconstruct(), models[1].reconstruct(), atol=1e-8)


def test_a_table_and_its_transpose_are_fitted_alike():
    noisy, _, _ = tables(2000, 6, 1, 0.5)
    model, other = LGMD(**NONE).fit(noisy), LGMD(**NONE).fit(noisy.T)
    assert model.rank_ == other.rank_
    np.testing.assert_allclose(model.reconstruct(), other.reconstruct().T, atol=1e-3)

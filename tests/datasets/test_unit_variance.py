"""Draws from precision matrices, and precision matrices at unit scale."""

import numpy as np
import pytest
from scipy import sparse

from lgmd.datasets import (
    block_precision,
    chain_precision,
    geometric_precision,
    make_matrix_normal,
    random_precision,
)
from lgmd.datasets._precision import to_unit_variance

GRAPHS = {
    "chain": chain_precision(30),
    "blocks": block_precision(30, 0.2, random_state=0),
    "random": random_precision(30, 0.2, random_state=0),
    "geometric": geometric_precision(30, 0.2, random_state=0),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_factors_have_the_covariance_of_the_model(graph):
    precision = GRAPHS[graph]
    n_tables = 400
    rows = np.hstack(
        [
            make_matrix_normal(
                30, 30, 30, sample_graph=precision, feature_graph="none", random_state=seed
            ).sample_factors
            for seed in range(n_tables)
        ]
    )
    n_draws = rows.shape[1]
    # Var of an entry of the sample covariance is (s_ii s_jj + s_ij^2) / N <= 2 / N; 900 entries rarely pass 5 of these.
    error = rows @ rows.T / n_draws - np.linalg.inv(precision.toarray())
    assert np.abs(error).max() < 5 * np.sqrt(2 / n_draws)


def test_a_long_chain_is_drawn_without_a_dense_matrix():
    n_nodes = 100_000  # dense, this would be 80 GB
    data = make_matrix_normal(n_nodes, 2, 2, sample_graph="chain", feature_graph="none", random_state=0)
    draws = data.sample_factors
    # Averages over an AR(1) path of length N vary by sqrt(2 (1 + 0.81) / (1 - 0.81) / N), here 0.014.
    np.testing.assert_allclose(np.mean(draws**2, axis=0), 1.0, atol=0.07)
    np.testing.assert_allclose(np.mean(draws[1:] * draws[:-1], axis=0), 0.9, atol=0.07)


def test_unit_variance_keeps_partial_correlations():
    rng = np.random.default_rng(0)
    scale = sparse.diags_array(rng.uniform(0.1, 10, 30))
    stretched = (scale @ GRAPHS["random"] @ scale).tocsr()
    np.testing.assert_allclose(to_unit_variance(stretched).toarray(), GRAPHS["random"].toarray(), atol=1e-12)

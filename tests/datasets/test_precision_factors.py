import numpy as np
import pytest
from scipy import sparse

from lgmd.datasets import _precision, block_precision, chain_precision, geometric_precision, random_precision
from lgmd.datasets._precision import DenseFactor, SparseFactor, factorise, to_unit_variance
from lgmd.exceptions import InvalidGraphError

GRAPHS = {
    "chain": chain_precision(30),
    "blocks": block_precision(30, 0.2, random_state=0),
    "random": random_precision(30, 0.2, random_state=0),
    "geometric": geometric_precision(30, 0.2, random_state=0),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_both_factors_colour_white_noise_with_the_inverse_of_the_precision(graph, kind):
    precision = GRAPHS[graph]
    factor = DenseFactor(precision.toarray()) if kind == "dense" else SparseFactor(precision)
    # The covariance of M z is M M' for white z.
    mixing = factor.colour(np.eye(30))
    np.testing.assert_allclose(mixing @ mixing.T, np.linalg.inv(precision.toarray()), atol=1e-12)


def test_draws_have_the_covariance_of_the_model():
    precision = GRAPHS["blocks"]
    n_draws = 40_000
    draws = factorise(precision).colour(np.random.default_rng(0).standard_normal((30, n_draws)))
    # Var of an entry of the sample covariance is (s_ii s_jj + s_ij^2) / N <= 2 / N: 5 deviations are 0.035.
    error = draws @ draws.T / n_draws - np.linalg.inv(precision.toarray())
    assert np.abs(error).max() < 5 * np.sqrt(2 / n_draws)


def test_small_and_dense_graphs_get_a_dense_factor_and_large_sparse_ones_a_sparse_one(monkeypatch):
    monkeypatch.setattr(_precision, "_DENSE_NODES", 100)
    monkeypatch.setattr(_precision, "_INVERTIBLE_NODES", 500)
    assert isinstance(factorise(chain_precision(100)), DenseFactor)
    assert isinstance(factorise(chain_precision(400)), SparseFactor)
    assert isinstance(factorise(block_precision(400, 0.1, random_state=0)), DenseFactor)
    assert isinstance(factorise(block_precision(600, 0.1, random_state=0)), SparseFactor)


def test_a_long_chain_is_drawn_without_a_dense_matrix():
    n_nodes = 200_000  # dense, this would be 320 GB
    draws = factorise(chain_precision(n_nodes, correlation=0.9)).colour(
        np.random.default_rng(0).standard_normal((n_nodes, 2))
    )
    # Averages over an AR(1) path of length N vary by sqrt(2 (1 + 0.81) / (1 - 0.81) / N), here 0.01.
    np.testing.assert_allclose(np.mean(draws**2, axis=0), 1.0, atol=0.05)
    np.testing.assert_allclose(np.mean(draws[1:] * draws[:-1], axis=0), 0.9, atol=0.05)


def test_unit_variance_keeps_partial_correlations():
    rng = np.random.default_rng(0)
    scale = sparse.diags_array(rng.uniform(0.1, 10, 30))
    stretched = (scale @ GRAPHS["random"] @ scale).tocsr()
    np.testing.assert_allclose(to_unit_variance(stretched).toarray(), GRAPHS["random"].toarray(), atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[1.0, -1.0], [-1.0, 1.0]]),
        np.array([[-1.0, 0.0], [0.0, 1.0]]),
        np.zeros((2, 2)),
    ],
    ids=["indefinite", "no diagonal", "laplacian", "negative", "zero"],
)
def test_matrices_that_are_not_positive_definite_have_no_factor(kind, matrix):
    with pytest.raises(InvalidGraphError, match="not positive definite"):
        DenseFactor(matrix) if kind == "dense" else SparseFactor(sparse.csr_array(matrix))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_large_laplacian_is_singular_in_spite_of_rounding(kind):
    chain = chain_precision(300)
    edges = -sparse.triu(chain, k=1)
    edges = (edges + edges.T) * 0.1
    laplacian = (sparse.diags_array(edges.sum(axis=1)) - edges).tocsr()
    with pytest.raises(InvalidGraphError, match="not positive definite"):
        DenseFactor(laplacian.toarray()) if kind == "dense" else SparseFactor(laplacian)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_nodes_of_very_different_scales_are_no_reason_to_refuse(kind):
    scale = 10.0 ** np.random.default_rng(0).permutation(np.linspace(-8, 8, 30))
    stretched = (sparse.diags_array(scale) @ GRAPHS["random"] @ sparse.diags_array(scale)).tocsr()
    factor = DenseFactor(stretched.toarray()) if kind == "dense" else SparseFactor(stretched)
    mixing = scale[:, np.newaxis] * factor.colour(np.eye(30))
    np.testing.assert_allclose(mixing @ mixing.T, np.linalg.inv(GRAPHS["random"].toarray()), atol=1e-10)

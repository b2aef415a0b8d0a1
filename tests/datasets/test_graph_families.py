import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from lgmd.datasets import (
    block_precision,
    chain_precision,
    geometric_precision,
    identity_precision,
    random_precision,
)
from lgmd.datasets.graphs import FAMILIES
from lgmd.exceptions import InvalidParameterError


def build(family, n_nodes, density=0.06, seed=0):
    return FAMILIES[family](n_nodes, density, np.random.default_rng(seed))


def edges_of(precision):
    return sparse.triu(precision, k=1, format="coo")


def correlations_on_edges(precision):
    edges = edges_of(precision)
    return np.linalg.inv(precision.toarray())[edges.row, edges.col]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_nodes", [1, 2, 3, 10, 100])
def test_every_family_is_a_positive_definite_precision_with_unit_variances(family, n_nodes):
    precision = build(family, n_nodes)
    assert isinstance(precision, sparse.csr_array)
    assert precision.shape == (n_nodes, n_nodes)
    assert precision.dtype == np.float64
    dense = precision.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    assert np.linalg.eigvalsh(dense)[0] > 1e-3
    np.testing.assert_allclose(np.linalg.inv(dense).diagonal(), 1.0, rtol=1e-10)


@pytest.mark.parametrize("family", ["random", "blocks", "geometric"])
def test_a_seed_gives_one_graph_and_another_seed_another(family):
    first, again, other = build(family, 50), build(family, 50), build(family, 50, seed=1)
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


@pytest.mark.parametrize("family", ["random", "blocks", "geometric"])
@pytest.mark.parametrize("density", [0.03, 0.06, 0.2])
def test_the_edge_density_is_about_what_was_asked_for(family, density):
    precision = build(family, 200, density)
    assert edges_of(precision).nnz / (200 * 199 / 2) == pytest.approx(density, rel=0.15)


def test_random_graphs_have_exactly_the_share_of_edges_with_both_signs():
    edges = edges_of(random_precision(100, random_state=0))
    assert edges.nnz == 297  # 6 % of 4,950
    # A fair coin tossed 297 times stays within 5 standard deviations, 5 * sqrt(297) / 2 = 43.
    assert abs(np.count_nonzero(edges.data > 0) - 297 / 2) < 43


@threadpool_limits.wrap(limits=1)
def test_random_graphs_choose_all_pairs_alike():
    counts = sum((edges_of(random_precision(6, 0.4, random_state=seed)) != 0).toarray() for seed in range(200))
    # 6 of 15 pairs in each of 200 graphs: 80 expected, standard deviation sqrt(200 * 0.4 * 0.6) = 6.9.
    assert np.abs(counts[np.triu_indices(6, k=1)] - 80).max() < 5 * 6.9


def test_random_graphs_are_diagonally_dominant_in_some_scale_by_the_strength():
    strength = 0.7
    dense = random_precision(80, strength=strength, random_state=0).toarray()
    # Row sums of |offdiag| equal strength * diag before scaling: the Perron root of D^-1 |offdiag| is the strength.
    share = np.abs(dense) / dense.diagonal()[:, np.newaxis] - np.eye(80)
    assert np.abs(np.linalg.eigvals(share)).max() == pytest.approx(strength, rel=1e-10)


def test_a_complete_and_an_empty_random_graph_are_allowed():
    assert edges_of(random_precision(8, 1.0, random_state=0)).nnz == 28
    np.testing.assert_array_equal(random_precision(8, 0.0, random_state=0).toarray(), np.eye(8))


def test_blocks_are_cliques_of_about_seven_of_a_hundred_nodes():
    precision = block_precision(100, random_state=0)
    n_blocks, labels = connected_components(precision, directed=False)
    sizes = np.bincount(labels)
    assert n_blocks == 14
    assert set(sizes) == {7, 8}
    assert edges_of(precision).nnz == sum(size * (size - 1) // 2 for size in sizes)
    assert np.all(np.diff(labels) >= 0)


def test_correlations_inside_blocks_are_near_the_one_asked_for():
    correlations = correlations_on_edges(block_precision(100, random_state=0))
    assert correlations.min() > 0.6
    assert correlations.max() < 0.8
    assert correlations.mean() == pytest.approx(0.7, abs=0.02)
    assert len(np.unique(correlations.round(6))) > 100
    assert correlations_on_edges(block_precision(100, correlation=0.3, random_state=0)).mean() == pytest.approx(
        0.3, abs=0.02
    )


def test_geometric_graphs_are_laplacians_with_a_ridge_before_scaling():
    precision = geometric_precision(60, ridge=0.1, random_state=0)
    assert edges_of(precision).data.max() < 0
    # (L + c I) 1 = c 1, so D (L + c I) D applied to 1 / d is c d: solve for d from the diagonal of the covariance.
    scale = find_laplacian_scale(precision)
    np.testing.assert_allclose(precision @ (1 / scale), 0.1 * scale, rtol=1e-6)


def find_laplacian_scale(precision):
    """The positive d with ``precision @ (1 / d) = 0.1 d``, by damped fixed-point iteration on ``1 / d``."""
    covariance = np.linalg.inv(precision.toarray())
    scale = np.ones(len(covariance))
    for _ in range(500):
        scale = np.sqrt(scale / (0.1 * covariance @ scale))
    return scale


def test_geometric_factors_are_smoother_over_edges_the_smaller_the_ridge():
    smooth = correlations_on_edges(geometric_precision(100, ridge=0.01, random_state=0)).mean()
    rough = correlations_on_edges(geometric_precision(100, ridge=1.0, random_state=0)).mean()
    assert smooth > 0.8 > 0.3 > rough > 0


def test_a_chain_has_the_covariance_of_an_autoregression():
    covariance = np.linalg.inv(chain_precision(12, correlation=0.8).toarray())
    lags = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    np.testing.assert_allclose(covariance, 0.8**lags, rtol=1e-10)
    assert edges_of(chain_precision(12)).nnz == 11


def test_a_chain_without_correlation_and_no_graph_are_the_identity():
    np.testing.assert_array_equal(chain_precision(5, correlation=0.0).toarray(), np.eye(5))
    np.testing.assert_array_equal(identity_precision(5).toarray(), np.eye(5))


def test_large_graphs_with_known_variances_stay_sparse():
    assert chain_precision(20_000).nnz == 3 * 20_000 - 2
    assert block_precision(20_000, 3e-4, random_state=0).nnz < 20_000 * 10


@pytest.mark.parametrize("family", ["random", "geometric"])
def test_graphs_too_large_to_invert_are_refused_with_a_way_out(family):
    with pytest.raises(InvalidParameterError, match=rf"{family}_precision with 20,000 nodes .* limit is 5,000.*chain"):
        build(family, 20_000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_precision(0), r"n_nodes must be a whole number of at least 1, but n_nodes=0 was given"),
        (lambda: identity_precision(2.5), r"n_nodes=2\.5"),
        (lambda: chain_precision(True), r"n_nodes=True"),
        (lambda: random_precision(5, 1.5), r"edge_density must be a number in \[0, 1\], but edge_density=1\.5"),
        (lambda: block_precision(5, "many"), r"edge_density='many'"),
        (lambda: random_precision(5, strength=1.0), r"strength must be a number in \(0, 1\)"),
        (lambda: block_precision(5, correlation=1), r"correlation must be a number in \(0, 1\)"),
        (lambda: chain_precision(5, correlation=-1.0), r"correlation must be a number in \(-1, 1\)"),
        (lambda: geometric_precision(5, ridge=0.0), r"ridge must be .*Without it a Laplacian is singular"),
        (lambda: geometric_precision(5, ridge=np.inf), r"ridge=inf"),
        (lambda: random_precision(5, random_state=-1), r"random_state=-1 is not a seed"),
        (lambda: random_precision(5, random_state="dice"), r"random_state='dice' is not a seed"),
    ],
)
def test_parameters_out_of_range_are_refused(call, message):
    with pytest.raises(InvalidParameterError, match=message):
        call()

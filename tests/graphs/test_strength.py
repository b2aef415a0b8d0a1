"""Signed Laplacians, how rough a factor is on them, and the strength of largest likelihood."""

import numpy as np
import pytest
import scipy.sparse

from lgmd.graphs import FactorMoments, GraphEstimate
from lgmd.graphs.strength import WeightedGraph, best_ratio
from lgmd.linalg.logdet import Spectrum


def random_graph(n, m, seed=0, signed=True):
    rng = np.random.default_rng(seed)
    rows, columns = np.triu_indices(n, 1)
    chosen = np.sort(rng.choice(len(rows), m, replace=False))
    weights = rng.uniform(0.2, 2.0, m) * (rng.choice([-1.0, 1.0], m) if signed else 1.0)
    return WeightedGraph(n, rows[chosen], columns[chosen], weights)


def dense_laplacian(graph):
    """Edge by edge, from what an edge adds."""
    laplacian = np.zeros((graph.n, graph.n))
    for i, j, w in zip(graph.rows, graph.columns, graph.weights, strict=True):
        edge = np.zeros(graph.n)
        edge[i], edge[j] = 1.0, -np.sign(w)
        laplacian += abs(w) * np.outer(edge, edge)
    return laplacian


# Laplacians


@pytest.mark.parametrize("seed", range(4))
def test_an_edge_adds_the_square_of_what_its_ends_differ_by_given_its_sign(seed):
    graph = random_graph(20, 40, seed)
    laplacian = graph.laplacian()
    assert isinstance(laplacian, scipy.sparse.csr_array)
    np.testing.assert_allclose(laplacian.toarray(), dense_laplacian(graph), atol=1e-13)
    x = np.random.default_rng(seed).standard_normal(20)
    signs = np.sign(graph.weights)
    expected = np.sum(np.abs(graph.weights) * (x[graph.rows] - signs * x[graph.columns]) ** 2)
    assert x @ (laplacian @ x) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_signed_laplacians_are_positive_semi_definite(seed):
    laplacian = random_graph(25, 80, seed).laplacian().toarray()
    np.testing.assert_array_equal(laplacian, laplacian.T)
    assert np.linalg.eigvalsh(laplacian)[0] > -1e-12


def test_flipping_a_node_flips_the_signs_of_its_edges():
    graph, signs = random_graph(15, 40), np.random.default_rng(1).choice([-1.0, 1.0], 15)
    flipped = WeightedGraph(15, graph.rows, graph.columns, graph.weights * signs[graph.rows] * signs[graph.columns])
    expected = signs[:, None] * graph.laplacian().toarray() * signs
    np.testing.assert_allclose(flipped.laplacian().toarray(), expected)


def test_without_signs_it_is_the_usual_laplacian():
    graph = random_graph(12, 30, signed=False)
    laplacian = graph.laplacian().toarray()
    np.testing.assert_allclose(laplacian.sum(axis=1), 0, atol=1e-13)
    np.testing.assert_allclose(np.diag(laplacian), graph.degrees)


def test_the_edges_of_a_matrix_are_those_above_its_diagonal():
    graph = random_graph(10, 14)
    adjacency = scipy.sparse.csr_array((graph.weights, (graph.rows, graph.columns)), shape=(10, 10))
    found = WeightedGraph.of_adjacency(scipy.sparse.csr_array(adjacency + adjacency.T + 5 * scipy.sparse.eye_array(10)))
    assert (found.n, len(found)) == (10, 14)
    np.testing.assert_allclose(found.laplacian().toarray(), graph.laplacian().toarray())
    assert np.all(found.rows < found.columns)


def test_a_graph_without_edges_has_a_laplacian_of_zeros():
    graph = WeightedGraph.of_adjacency(scipy.sparse.csr_array((4, 4)))
    assert len(graph) == 0
    assert graph.laplacian().count_nonzero() == 0
    np.testing.assert_array_equal(graph.degrees, np.zeros(4))
    assert best_ratio(4, graph.spectrum(), 0.0) == (0.0, 0.0)


# Precisions


@pytest.mark.parametrize("ratio", [1e-3, 0.7, 50.0])
@pytest.mark.parametrize("signed", [False, True])
def test_the_precision_gives_unit_variances_and_knows_its_determinant(ratio, signed):
    graph = random_graph(30, 60, signed=signed)
    estimate = graph.precision(ratio, graph.spectrum())
    dense = estimate.precision.toarray()
    unscaled = np.eye(30) + ratio * dense_laplacian(graph)
    deviations = np.sqrt(np.diag(np.linalg.inv(unscaled)))
    np.testing.assert_allclose(dense, deviations[:, None] * unscaled * deviations, atol=1e-12)
    np.testing.assert_allclose(np.diag(np.linalg.inv(dense)), 1.0)
    assert isinstance(estimate, GraphEstimate)
    assert isinstance(estimate.precision, scipy.sparse.csr_array)
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(dense)[1])
    assert estimate.strength == ratio
    assert estimate.n_edges == 60
    assert np.linalg.eigvalsh(dense)[0] > 0


def test_nodes_without_edges_stay_as_they_are():
    graph = WeightedGraph(5, np.array([0, 1]), np.array([1, 2]), np.array([1.0, -2.0]))
    dense = graph.precision(3.0, graph.spectrum()).precision.toarray()
    np.testing.assert_array_equal(dense[3:], np.eye(5)[3:])


def test_a_rough_look_at_a_spectrum_is_nearly_the_precise_one():
    graph = random_graph(400, 900, signed=False)
    rough, precise = graph.spectrum(rough=True), graph.spectrum()
    assert len(rough.nodes) < 400 == len(precise.nodes)
    for ratio in (0.1, 1.0, 10.0):
        expected = precise.sum(np.log1p(ratio * precise.nodes))
        # Six probes of about 400 numbers: sqrt(2 / (6 * 400)) times the size of an off-diagonal part below one.
        assert rough.sum(np.log1p(ratio * rough.nodes)) == pytest.approx(expected, rel=0.06)


# Roughness


@pytest.fixture
def posterior(rng):
    """A factor of twelve rows with a posterior covariance, and its second moments."""
    mean, root = rng.standard_normal((12, 5)), rng.standard_normal((12, 12))
    covariance = root @ root.T / 10
    moments = FactorMoments(mean, np.diag(covariance).copy(), cross=lambda rows, others: covariance[rows, others])
    return moments, mean @ mean.T + covariance


@pytest.mark.parametrize("signed", [False, True])
def test_roughness_is_that_of_the_dense_second_moments(posterior, signed):
    moments, S = posterior
    graph = random_graph(12, 25, signed=signed)
    laplacian = dense_laplacian(graph)
    assert graph.roughness(moments) == pytest.approx(np.trace(S @ laplacian) / np.trace(S))
    mean = moments.mean @ moments.mean.T
    point = graph.roughness(FactorMoments(moments.mean))
    assert point == pytest.approx(np.trace(mean @ laplacian) / np.trace(mean))
    assert point != pytest.approx(graph.roughness(moments))


def test_roughness_without_covariances_between_rows_has_those_of_the_rows(rng):
    mean, variance = rng.standard_normal((12, 5)), rng.uniform(0.1, 2.0, 12)
    graph = random_graph(12, 25)
    S = mean @ mean.T + np.diag(variance)
    expected = np.trace(S @ dense_laplacian(graph)) / np.trace(S)
    assert graph.roughness(FactorMoments(mean, variance)) == pytest.approx(expected)


def test_roughness_does_not_depend_on_the_scale_or_the_precision_of_the_factor(rng):
    graph, mean = random_graph(12, 25), rng.standard_normal((12, 5))
    expected = graph.roughness(FactorMoments(mean))
    assert graph.roughness(FactorMoments(1e-9 * mean)) == pytest.approx(expected)
    assert graph.roughness(FactorMoments(mean.astype(np.float32))) == pytest.approx(expected, rel=1e-6)


def test_a_factor_of_zeros_is_as_rough_as_noise():
    graph = random_graph(12, 25)
    nothing = graph.roughness(FactorMoments(np.zeros((12, 3))))
    assert nothing == pytest.approx(graph.roughness(FactorMoments(np.eye(12))))
    assert best_ratio(12, graph.spectrum(), nothing) == (0.0, 0.0)


# Strength


def log_likelihood(ratio, n, eigenvalues, roughness):
    return (np.sum(np.log1p(ratio * eigenvalues)) - n * np.log1p(ratio * roughness)) / 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("signed", [False, True])
def test_no_ratio_on_a_grid_is_better(seed, signed):
    n = 25
    graph = random_graph(n, 50, seed, signed)
    values, vectors = np.linalg.eigh(dense_laplacian(graph))
    values = np.maximum(values, 0.0)
    # From rows that hardly depend on each other to rows that nearly are one.
    rng = np.random.default_rng(seed)
    X = vectors @ (rng.standard_normal((n, 8)) / np.sqrt(1 + 10 ** rng.uniform(-2, 3) * values)[:, None])
    roughness = graph.roughness(FactorMoments(X))
    ratio, gain = best_ratio(n, graph.spectrum(), roughness)
    grid = 10 ** np.linspace(-4, 4, 4000) / values.mean()
    gains = np.array([log_likelihood(each, n, values, roughness) for each in grid])
    assert gain >= max(gains.max(), 0.0) - 1e-5
    if ratio > 0:
        assert gain == pytest.approx(log_likelihood(ratio, n, values, roughness), abs=1e-10)
        assert np.log(ratio) == pytest.approx(np.log(grid[gains.argmax()]), abs=0.02)


@pytest.mark.parametrize("correlation", [0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("weight", [1.0, 7.0, -2.0])
def test_a_single_edge_gets_the_correlation_of_its_ends(correlation, weight):
    # The inverse of I + r L has the correlation r w / (1 + r w) between the two ends.
    graph = WeightedGraph(2, np.array([0]), np.array([1]), np.array([weight]))
    S = np.array([[1.0, np.sign(weight) * correlation], [np.sign(weight) * correlation, 1.0]])
    roughness = np.trace(S @ dense_laplacian(graph)) / 2
    ratio, gain = best_ratio(2, graph.spectrum(), roughness)
    # The search stops within a thousandth of the logarithm of the ratio.
    assert ratio * abs(weight) == pytest.approx(correlation / (1 - correlation), rel=2e-3)
    # Two rows that are correlated gain -ln(1 - c^2) / 2 over two that are not.
    assert gain == pytest.approx(-np.log(1 - correlation**2) / 2, abs=1e-5)


@pytest.mark.parametrize("n", [5, 40])
def test_an_edge_among_many_nodes_has_a_closed_form(n):
    # n ln(1 + r q) - ln(1 + 2 r) is smallest at r = (2 - n q) / (2 q (n - 1)).
    graph = WeightedGraph(n, np.array([1]), np.array([3]), np.array([1.0]))
    for roughness in (0.1 / n, 1.0 / n, 1.9 / n):
        ratio, _ = best_ratio(n, graph.spectrum(), roughness)
        assert ratio == pytest.approx((2 - n * roughness) / (2 * roughness * (n - 1)), rel=2e-3)


@pytest.mark.parametrize("signed", [False, True])
def test_rows_that_are_independent_have_no_graph(signed):
    graph = random_graph(30, 60, signed=signed)
    roughness = graph.roughness(FactorMoments(np.eye(30)))
    assert roughness == pytest.approx(graph.degrees.mean())
    assert best_ratio(30, graph.spectrum(), roughness) == (0.0, 0.0)


@pytest.mark.parametrize("factor", [1.001, 2.0, 1e6])
def test_rows_that_are_further_apart_than_chance_have_no_graph(factor):
    graph = random_graph(30, 60)
    assert best_ratio(30, graph.spectrum(), factor * graph.degrees.mean()) == (0.0, 0.0)


def test_the_smoother_the_factor_the_stronger_the_graph():
    graph = random_graph(30, 60, signed=False)
    found = [best_ratio(30, graph.spectrum(), share * graph.degrees.mean()) for share in (0.9, 0.5, 0.1, 0.01)]
    assert np.all(np.diff([ratio for ratio, _ in found]) > 0)
    assert np.all(np.diff([gain for _, gain in found]) > 0)


def test_rows_that_are_one_have_a_strength_that_is_finite():
    graph = random_graph(30, 100, signed=False)
    ratio, gain = best_ratio(30, graph.spectrum(), graph.roughness(FactorMoments(np.ones((30, 2)))))
    assert 1e3 / graph.degrees.mean() < ratio <= 1.001e4 / graph.degrees.mean()
    assert np.isfinite(gain)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e3, 1e9])
def test_the_unit_of_the_weights_does_not_matter(unit):
    graph = random_graph(30, 60)
    roughness = 0.3 * graph.degrees.mean()
    ratio, gain = best_ratio(30, graph.spectrum(), roughness)
    other = WeightedGraph(30, graph.rows, graph.columns, unit * graph.weights)
    found = best_ratio(30, other.spectrum(), unit * roughness)
    assert found == pytest.approx((ratio / unit, gain), rel=1e-6)
    np.testing.assert_allclose(
        other.precision(found[0], other.spectrum()).precision.toarray(),
        graph.precision(ratio, graph.spectrum()).precision.toarray(),
        atol=1e-6,
    )


def test_weights_of_a_quadrature_count():
    # Three eigenvalues of two nodes' weight each are six eigenvalues.
    nodes = np.array([0.0, 1.0, 3.0])
    twice = best_ratio(6, Spectrum(nodes, np.full(3, 2.0)), 0.5)
    assert twice == pytest.approx(best_ratio(6, Spectrum(np.repeat(nodes, 2), np.ones(6)), 0.5))
    once = best_ratio(3, Spectrum(nodes, np.ones(3)), 0.5)
    assert twice == pytest.approx((once[0], 2 * once[1]), rel=1e-6)

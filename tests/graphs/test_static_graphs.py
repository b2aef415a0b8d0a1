"""Graphs that do not depend on the factors: none, fixed, nearest neighbours."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.neighbors import kneighbors_graph

from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs import (
    FactorMoments,
    FixedGraph,
    KNNGraph,
    NoGraph,
    Side,
    ThresholdGraph,
    as_learner,
    threshold_precision,
)
from lgmd.graphs import candidates as candidate_graphs
from lgmd.graphs.knn import nearest_rows
from lgmd.graphs.laplacians import laplacian
from lgmd.observed import as_observed

ROWS = Side("sample_graph", "rows")


@pytest.fixture
def data(make_table):
    return as_observed(make_table(missing=0)[0])


def test_no_graph_is_the_identity(data):
    estimate = NoGraph().start(data, ROWS)
    np.testing.assert_array_equal(estimate.precision.toarray(), np.eye(14))
    assert estimate.logdet == 0
    assert estimate.n_edges == 0


def test_a_precision_is_used_as_it_is(data, make_precision):
    precision = make_precision(14)
    before = precision.copy()
    estimate = FixedGraph(precision).start(data, ROWS)
    np.testing.assert_allclose(estimate.precision.toarray(), precision.toarray())
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(precision.toarray())[1])
    assert (precision != before).nnz == 0
    assert FixedGraph(precision).learn(FactorMoments(np.ones((14, 2))), estimate) is estimate


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csr_matrix])
def test_the_laplacian_of_any_kind_of_adjacency_is_its_degrees_minus_its_edges(dtype, form):
    adjacency = candidate_graphs.chain(5).toarray().astype(dtype)
    adjacency[0, 0] = 1  # ignored
    found = laplacian(form(adjacency))
    np.testing.assert_array_equal(found.toarray(), np.diag([1.0, 2, 2, 2, 1]) - chain(5))
    assert found.dtype == np.float64


def test_candidates_have_a_laplacian():
    points = np.random.default_rng(0).standard_normal((8, 2))
    for graph in (candidate_graphs.chain(8), candidate_graphs.nearest(points, 2), candidate_graphs.within(points, 1.0)):
        weights = graph.toarray().astype(float)
        np.testing.assert_array_equal(laplacian(graph).toarray(), np.diag(weights.sum(axis=1)) - weights)


def chain(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_an_adjacency_and_its_laplacian_become_the_same_precision(data, form):
    adjacency = chain(14)
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency
    expected = laplacian + 0.1 * np.eye(14)
    for matrix in (adjacency, laplacian):
        np.testing.assert_allclose(FixedGraph(form(matrix)).start(data, ROWS).precision.toarray(), expected)
    estimate = FixedGraph(form(adjacency), kind="adjacency", ridge=0.5).start(data, ROWS)
    np.testing.assert_allclose(estimate.precision.toarray(), laplacian + 0.5 * np.eye(14))


def test_self_loops_of_an_adjacency_do_not_count(data):
    adjacency = chain(14)
    adjacency[3, 3] = 1
    np.testing.assert_allclose(
        FixedGraph(adjacency).start(data, ROWS).precision.toarray(),
        FixedGraph(chain(14)).start(data, ROWS).precision.toarray(),
    )


def test_graphs_that_do_not_fit_say_what_to_do(data, make_precision):
    with pytest.raises(
        InvalidGraphError, match=r"sample_graph is 5 x 5 but the data has 14 rows. A graph over rows must"
    ):
        FixedGraph(np.eye(5)).start(data, ROWS)
    with pytest.raises(InvalidGraphError, match="sample_graph is 3 x 4, but a graph over n nodes"):
        FixedGraph(np.ones((3, 4))).start(data, ROWS)
    crooked = make_precision(14).toarray()
    crooked[2, 5] += 0.5
    with pytest.raises(InvalidGraphError, match=r"not symmetric: entry \((2, 5|5, 2)\)"):
        FixedGraph(crooked).start(data, ROWS)
    indefinite = np.eye(14)
    indefinite[0, 1] = indefinite[1, 0] = -2
    with pytest.raises(InvalidGraphError, match="sample_graph is not positive definite"):
        FixedGraph(indefinite).start(data, ROWS)
    with pytest.raises(InvalidGraphError, match="sample_graph has 1 entries that are NaN"):
        FixedGraph(np.where(np.arange(196).reshape(14, 14) == 0, np.nan, np.eye(14))).start(data, ROWS)
    with pytest.raises(InvalidGraphError, match="holds complex128 values"):
        FixedGraph(np.eye(14) * 1j).start(data, ROWS)
    with pytest.raises(InvalidGraphError, match="negative weights"):
        FixedGraph(-chain(14), kind="adjacency").start(data, ROWS)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (FixedGraph(np.eye(3), kind="wrong"), "kind must be one of"),
        (FixedGraph(np.eye(3), ridge=0.0), "ridge must be positive, but is 0.0"),
        (KNNGraph(0), "n_neighbors must be at least 1, but is 0"),
        (KNNGraph(3, ridge=-1), "ridge must be positive"),
        (ThresholdGraph(eta=0.1, density=0.1), "Give eta or density, not both"),
        (ThresholdGraph(eta=1.0), r"must be in \[0, 1\), but is 1.0"),
        (ThresholdGraph(density=1.5), r"must be in \[0, 1\], but is 1.5"),
        ("sparse", "sample_graph must be one of 'none', 'knn', 'threshold', .*a learner or a matrix, but is 'sparse'"),
        ("prior", "sample_graph must be one of .*, a learner or a matrix, but is 'prior'"),
        (3.5, "must be a name, a learner or a matrix, but is a float"),
    ],
)
def test_learners_refuse_parameters_that_make_no_sense(learner, message):
    with pytest.raises(InvalidParameterError, match=message):
        as_learner(learner, "sample_graph")


def test_names_objects_and_matrices_become_learners():
    assert as_learner(np.eye(3), "sample_graph") == FixedGraph(np.eye(3)) != FixedGraph(2 * np.eye(3))
    assert as_learner("none", "sample_graph") == NoGraph() != KNNGraph()
    assert as_learner(None, "sample_graph") == NoGraph()
    assert as_learner("knn", "sample_graph") == KNNGraph()
    assert as_learner(ThresholdGraph(eta=0.2), "sample_graph") == ThresholdGraph(eta=0.2)
    assert isinstance(as_learner(np.eye(3), "sample_graph"), FixedGraph)


def test_neighbours_of_a_complete_table_are_euclidean(data):
    joined = kneighbors_graph(data.values, 3).toarray()
    adjacency = np.maximum(joined, joined.T)
    raw = np.diag(adjacency.sum(axis=1)) - adjacency + 0.1 * np.eye(14)
    estimate = KNNGraph(n_neighbors=3).start(data, ROWS)
    np.testing.assert_allclose(estimate.precision.toarray(), raw / np.diag(raw).mean(), atol=1e-12)
    assert estimate.precision.diagonal().mean() == pytest.approx(1)
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(estimate.precision.toarray())[1])


def distances_by_hand(gappy):
    """Squared Euclidean without gaps; with gaps the mean over what both rows have, pulled towards that of all."""
    n = len(gappy)
    seen = ~np.isnan(gappy)
    centred = np.where(seen, gappy - np.nanmean(gappy, axis=0), 0)
    prior = 2 * np.mean(centred[seen] ** 2)
    distances = np.full((n, n), np.inf)
    for i in range(n):
        for j in range(n):
            both = seen[i] & seen[j]
            if i != j:
                squares = np.sum((gappy[i, both] - gappy[j, both]) ** 2)
                distances[i, j] = squares if seen.all() else (squares + 5 * prior) / (both.sum() + 5)
    return distances


@pytest.mark.parametrize("missing", [0.3, 0.7, 0.95])
def test_neighbours_with_gaps_compare_what_both_rows_have(make_table, missing):
    _, gappy = make_table(n=20, p=15, missing=missing)
    expected = np.argsort(distances_by_hand(gappy), axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(nearest_rows(as_observed(gappy), 4), expected)


def test_more_neighbours_than_rows_joins_all(data):
    estimate = KNNGraph(n_neighbors=50).start(data, ROWS)
    assert estimate.n_edges == 14 * 13 // 2


def knn_precision(joined, ridge=0.1):
    adjacency = np.maximum(joined, joined.T)
    raw = np.diag(adjacency.sum(axis=1)) - adjacency + ridge * np.eye(len(joined))
    return raw / np.diag(raw).mean()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.9])
def test_neighbours_among_candidates_are_the_nearest_of_these(make_table, rng, missing, dtype):
    _, gappy = make_table(n=30, p=15, missing=missing)
    gappy = gappy.astype(dtype)
    allowed = np.triu(rng.random((30, 30)) < 0.2, 1)
    allowed[:, 7] = allowed[7] = False  # nobody to choose from
    allowed[3] = allowed[:, 3] = False
    allowed[3, 12] = True  # one
    joined = np.zeros((30, 30))
    distances = np.where(allowed | allowed.T, distances_by_hand(gappy), np.inf)
    for i in range(30):
        order = np.argsort(distances[i], kind="stable")[:3]
        joined[i, order[np.isfinite(distances[i, order])]] = 1
    estimate = KNNGraph(3, candidates=allowed).start(as_observed(gappy), ROWS)
    np.testing.assert_allclose(estimate.precision.toarray(), knn_precision(joined), atol=1e-12)
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(estimate.precision.toarray())[1])
    assert np.flatnonzero(estimate.precision.toarray()[7]).tolist() == [7]
    assert np.flatnonzero(estimate.precision.toarray()[3]).tolist() == [3, 12]


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_neighbours_among_all_pairs_are_those_without_candidates(make_table, missing):
    table = as_observed(make_table(missing=missing)[1])
    free = KNNGraph(4).start(table, ROWS)
    limited = KNNGraph(4, candidates=np.ones((14, 14))).start(table, ROWS)
    np.testing.assert_allclose(limited.precision.toarray(), free.precision.toarray(), atol=1e-14)
    assert limited.logdet == pytest.approx(free.logdet)


def test_neighbours_among_no_candidates_is_no_graph(data):
    estimate = KNNGraph(candidates=scipy.sparse.csr_array((14, 14))).start(data, ROWS)
    np.testing.assert_allclose(estimate.precision.toarray(), np.eye(14))


def test_candidates_of_neighbours_may_be_a_function_or_a_builder(data):
    expected = np.zeros((14, 14))
    expected[np.arange(13), np.arange(1, 14)] = 1
    for candidates in (candidate_graphs.chain, lambda n: candidate_graphs.chain(n), candidate_graphs.chain(14)):
        estimate = KNNGraph(2, candidates=candidates).start(data, ROWS)
        np.testing.assert_allclose(estimate.precision.toarray(), knn_precision(expected), atol=1e-14)


@pytest.mark.parametrize("learner", [KNNGraph(candidates=chain(5)), ThresholdGraph(candidates=chain(5))])
def test_candidates_that_do_not_fit_the_table_name_the_side(data, learner):
    with pytest.raises(InvalidGraphError, match=r"candidates of sample_graph is 5 x 5 but the data has 14 rows"):
        learner.start(data, ROWS)
    with pytest.raises(InvalidGraphError, match=r"candidates of feature_graph is 5 x 5 but the data has 11 columns"):
        learner.start(data.T, Side("feature_graph", "columns"))


def test_many_rows_with_few_candidates_have_neighbours_without_comparing_all(rng):
    n = 100_000
    columns = (7 * np.arange(n)[:, None] + np.arange(0, 20, 2)) % 200  # ten entries a row, shared with rows near by
    entries = (rng.standard_normal(columns.size), (np.repeat(np.arange(n), 10), columns.ravel()))
    table = scipy.sparse.csr_array(entries, shape=(n, 200))
    estimate = KNNGraph(2, candidates=candidate_graphs.chain(n, 4)).start(as_observed(table), ROWS)
    assert n <= estimate.n_edges <= 2 * n
    rows, columns = estimate.precision.tocoo().coords
    assert np.abs(rows - columns).max() <= 4


def test_a_learned_graph_is_a_graph_as_its_precision_is(make_precision):
    precision = make_precision(6)
    estimate = threshold_precision(np.linalg.inv(precision.toarray()), 0.1)
    for learner in (as_learner(estimate, "sample_graph"), FixedGraph(estimate)):
        start = learner.start(as_observed(np.ones((6, 3))), Side("sample_graph", "rows"))
        np.testing.assert_allclose(
            start.precision.toarray(),
            FixedGraph(estimate.precision).start(as_observed(np.ones((6, 3))), Side("a", "b")).precision.toarray(),
        )

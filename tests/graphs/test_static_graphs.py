"""Graphs that do not depend on the factors: none, fixed, nearest neighbours."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.neighbors import kneighbors_graph

from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs import FactorMoments, FixedGraph, KNNGraph, NoGraph, Side, ThresholdGraph, as_learner
from lgmd.graphs.knn import nearest_rows
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
        ("sparse", "sample_graph must be one of 'none', 'knn', 'threshold', a learner or a matrix, but is 'sparse'"),
        (3.5, "must be a name, a learner or a matrix, but is a float"),
    ],
)
def test_learners_refuse_parameters_that_make_no_sense(learner, message):
    with pytest.raises(InvalidParameterError, match=message):
        as_learner(learner, "sample_graph")


def test_names_objects_and_matrices_become_learners():
    assert as_learner("none", "sample_graph") == NoGraph()
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


@pytest.mark.parametrize("missing", [0.3, 0.7, 0.95])
def test_neighbours_with_gaps_compare_what_both_rows_have(make_table, missing):
    _, gappy = make_table(n=20, p=15, missing=missing)
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
                distances[i, j] = (squares + 5 * prior) / (both.sum() + 5)
    expected = np.argsort(distances, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(nearest_rows(as_observed(gappy), 4), expected)


def test_more_neighbours_than_rows_joins_all(data):
    estimate = KNNGraph(n_neighbors=50).start(data, ROWS)
    assert estimate.n_edges == 14 * 13 // 2

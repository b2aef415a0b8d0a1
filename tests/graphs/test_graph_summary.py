"""Partial correlations, lists of edges, degrees and components of a precision."""

import dataclasses
import doctest
import subprocess
import sys
import tracemalloc

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs import GraphEstimate, summary
from lgmd.graphs.summary import components, degrees, describe, edge_list, partial_correlations, to_networkx

HELPERS = [partial_correlations, edge_list, to_networkx, degrees, components, describe]


def random_precision(n, density, seed):
    """Diagonally dominant, with edges of both signs."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < density), 1)
    weights += weights.T
    return np.diag(np.abs(weights).sum(axis=1) + rng.uniform(0.5, 1.5, n)) + weights


graphs = st.builds(random_precision, st.integers(1, 14), st.floats(0, 0.6), st.integers(0, 10_000))


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_partial_correlations_are_those_of_residuals(precision):
    found = partial_correlations(precision)
    assert isinstance(found, scipy.sparse.csr_array)
    dense = found.toarray()
    covariance = np.linalg.inv(precision)
    n = len(precision)
    for i in range(n):
        assert dense[i, i] == 0
        for j in range(i + 1, n):
            rest = [node for node in range(n) if node not in (i, j)]
            pair = covariance[np.ix_([i, j], [i, j])]
            if rest:
                onto = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[np.ix_(rest, [i, j])])
                pair = pair - covariance[np.ix_([i, j], rest)] @ onto
            # Inverses of well-conditioned matrices of this size are good to a few hundred roundings.
            expected = pair[0, 1] / np.sqrt(pair[0, 0] * pair[1, 1])
            assert dense[i, j] == dense[j, i] == pytest.approx(expected, abs=1e-12)
    assert found.nnz == np.count_nonzero(precision) - n


def test_partial_correlations_do_not_depend_on_the_scale_of_the_nodes(make_precision):
    precision = make_precision(20)
    scale = scipy.sparse.diags_array(10.0 ** np.linspace(-150, 150, 20))
    np.testing.assert_allclose(
        partial_correlations(scale @ precision @ scale).toarray(), partial_correlations(precision).toarray(), rtol=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_the_list_has_each_edge_once_and_the_strongest_first(precision):
    edges = edge_list(precision)
    assert edges.columns.tolist() == ["source", "target", "weight", "partial_correlation"]
    n = len(precision)
    expected = {(i, j) for i in range(n) for j in range(i + 1, n) if precision[i, j] != 0}
    assert len(edges) == len(expected)
    assert set(zip(edges["source"], edges["target"], strict=True)) == expected
    assert edges.index.tolist() == list(range(len(expected)))
    source, target = edges["source"].to_numpy(dtype=int), edges["target"].to_numpy(dtype=int)
    np.testing.assert_array_equal(edges["weight"], -precision[source, target])
    np.testing.assert_array_equal(
        edges["partial_correlation"], partial_correlations(precision).toarray()[source, target]
    )
    assert np.all(np.diff(np.abs(edges["partial_correlation"])) <= 0)


def test_edges_of_equal_strength_are_in_the_order_of_their_nodes():
    n = 30
    ring = 3 * np.eye(n) - np.roll(np.eye(n), 1, axis=0) - np.roll(np.eye(n), -1, axis=0)
    ring[4, 5] = ring[5, 4] = 1.0  # as strong, but negative
    edges = edge_list(ring)
    assert edges["source"].tolist() == [0, 0, *range(1, n - 1)]
    assert edges["target"].tolist() == [1, n - 1, *range(2, n)]


@pytest.mark.parametrize(
    ("names", "plain"),
    [
        (("a", "b", "c"), ["a", "b", "c"]),
        (np.array(["a", "b", "c"], dtype=object), ["a", "b", "c"]),
        (np.array(["a", "b", "c"]), ["a", "b", "c"]),
        (pd.Index(["a", "b", "c"]), ["a", "b", "c"]),
        (pd.Series(["a", "b", "c"], index=[5, 5, 5]), ["a", "b", "c"]),
        ([("x", 1), ("x", 2), ("y", 1)], [("x", 1), ("x", 2), ("y", 1)]),
        (np.array([10, 20, 30]), [10, 20, 30]),
        (pd.date_range("2020-01-01", periods=3), [pd.Timestamp(2020, 1, day) for day in (1, 2, 3)]),
    ],
    ids=["tuple", "objects", "strings", "index", "series", "tuples", "numbers", "dates"],
)
def test_names_stand_for_nodes(names, plain):
    # The edge (1, 2) is the stronger one.
    precision = np.array([[2.0, -0.5, 0.0], [-0.5, 2.0, -1.0], [0.0, -1.0, 2.0]])
    edges = edge_list(precision, names)
    assert edges["source"].tolist() == [plain[1], plain[0]]
    assert edges["target"].tolist() == [plain[2], plain[1]]
    graph = to_networkx(precision, names)
    assert list(graph) == plain
    assert graph.edges[plain[1], plain[2]]["weight"] == 1.0


def test_dates_stay_dates():
    dates = pd.date_range("2020-01-01", periods=2)
    precision = np.array([[2.0, -0.5], [-0.5, 2.0]])
    for names in (dates, dates.to_numpy(), dates.to_series()):
        assert edge_list(precision, names)["source"].dtype.kind == "M"


@pytest.mark.parametrize("helper", [edge_list, to_networkx])
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "names has 2 entries but the graph has 3 nodes. Give one name a node"),
        ([], "names has 0 entries but the graph has 3 nodes"),
        ("abc", "names must be a list with a name for each node, but is 'abc'"),
        ({"a": 1, "b": 2, "c": 3}, "names must be a list"),
        ({"a", "b", "c"}, "names must be a list"),
        (3, "names must be a list with a name for each node, but is 3"),
        (np.ones((3, 2)), "names must be a list"),
    ],
)
def test_names_that_do_not_fit_are_refused(helper, names, message):
    with pytest.raises(InvalidParameterError, match=message):
        helper(np.eye(3), names)


def test_a_graph_in_networkx_has_the_same_edges_and_all_nodes(make_precision):
    precision = make_precision(25, density=0.1)
    graph = to_networkx(precision, [f"node {i}" for i in range(25)])
    assert list(graph) == [f"node {i}" for i in range(25)]
    correlations = partial_correlations(precision).toarray()
    assert graph.number_of_edges() == np.count_nonzero(np.triu(precision.toarray(), 1))
    for one, other, attributes in graph.edges(data=True):
        i, j = int(one.split()[1]), int(other.split()[1])
        assert attributes == {"weight": -precision[i, j], "partial_correlation": correlations[i, j]}
        assert type(attributes["weight"]) is float
    assert list(to_networkx(precision)) == list(range(25))


def test_networkx_nodes_have_names_of_their_own():
    with pytest.raises(InvalidParameterError, match="Only 2 of the 3 names are different"):
        to_networkx(np.eye(3), ["a", "b", "a"])


def test_without_networkx_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"to_networkx needs networkx, which is not installed. Try: pip install"):
        to_networkx(np.eye(3))


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_degrees_and_components_are_those_of_networkx(precision):
    graph = to_networkx(precision)
    np.testing.assert_array_equal(degrees(precision), [graph.degree(node) for node in graph])
    parts = sorted(networkx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    expected = np.empty(len(precision), dtype=int)
    for label, part in enumerate(parts):
        expected[list(part)] = label
    np.testing.assert_array_equal(components(precision), expected)
    found = describe(precision)
    assert found.n_nodes == len(precision)
    assert found.n_edges == graph.number_of_edges()
    assert found.n_components == len(parts)
    assert found.n_isolated == networkx.number_of_isolates(graph)
    assert found.largest_component == len(parts[0])
    assert found.max_degree == max(degree for _, degree in graph.degree)
    assert found.mean_degree == pytest.approx(np.mean([degree for _, degree in graph.degree]))
    assert found.density == pytest.approx(networkx.density(graph))
    if found.n_edges:
        strengths = np.abs([data["partial_correlation"] for *_, data in graph.edges(data=True)])
        assert found.positive_share == np.mean([data["weight"] > 0 for *_, data in graph.edges(data=True)])
        assert found.median_strength == np.median(strengths)
        assert found.max_strength == strengths.max()
    else:
        assert np.isnan([found.positive_share, found.median_strength, found.max_strength]).all()


def test_a_summary_reads_as_text():
    precision = scipy.sparse.block_diag([2 * np.eye(3) + 0.5 * (1 - np.eye(3)), np.eye(2)]).tolil()
    precision[0, 1] = precision[1, 0] = -0.6
    assert str(describe(precision)).splitlines() == [
        "5 nodes, 3 edges (30 % of all pairs)",
        "3 components, the largest of 3 nodes; 2 nodes without an edge",
        "degree 1.2 on average, 2 at most",
        "33.3 % of the edges are positive; partial correlations up to 0.300, median 0.250",
    ]
    assert str(describe(np.eye(1))) == "1 node, no edges"
    assert str(describe(GraphEstimate.identity(2000))) == "2,000 nodes, no edges"
    with pytest.raises(dataclasses.FrozenInstanceError):
        describe(np.eye(2)).n_nodes = 3


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_array, scipy.sparse.coo_matrix, pd.DataFrame])
def test_any_storage_and_estimates_will_do(make_precision, form):
    precision = make_precision(12)
    given = form(precision.toarray())
    estimate = GraphEstimate(precision, 0.0)
    for graph in (given, estimate):
        pd.testing.assert_frame_equal(edge_list(graph), edge_list(precision))
        assert describe(graph) == describe(precision)
        np.testing.assert_array_equal(degrees(graph), degrees(precision))
        np.testing.assert_array_equal(components(graph), components(precision))
        assert (partial_correlations(graph) != partial_correlations(precision)).nnz == 0


def test_stored_zeros_are_no_edges():
    stored = scipy.sparse.csr_array(([1.0, 0.0, 0.0, 1.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    assert partial_correlations(stored).nnz == 0
    assert len(edge_list(stored)) == 0
    assert describe(stored).n_components == 2
    assert stored.nnz == 4


def test_numbering_the_nodes_otherwise_changes_nothing_else(make_precision, rng):
    precision, order = make_precision(15), rng.permutation(15)
    moved = precision[order][:, order]
    np.testing.assert_array_equal(degrees(moved), degrees(precision)[order])
    assert dataclasses.astuple(describe(moved)) == pytest.approx(dataclasses.astuple(describe(precision)))
    named, plain = edge_list(moved, order), edge_list(precision)
    ends = [{frozenset(pair) for pair in zip(e["source"], e["target"], strict=True)} for e in (named, plain)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones((2, 3)), "The precision is 2 x 3, but a graph over n nodes is an n x n matrix"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "The precision has 2 entries that are NaN"),
        (np.array([[1.0, 0.2], [0.3, 1.0]]), "The precision is not symmetric"),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), "diagonal entry that is not positive: 0 at 0. An adjacency or a Laplac"),
        (np.array([[1.0, 0.0], [0.0, -2.0]]), "diagonal entry that is not positive: -2 at 1"),
        (np.array([[1.0, -2.0], [-2.0, 1.0]]), "not positive definite: nodes 0 and 1 have a partial correlation of 2"),
        (np.eye(2) * 1j, "The precision holds complex128 values"),
    ],
)
def test_what_is_no_precision_is_refused(helper, wrong, message):
    with pytest.raises(InvalidGraphError, match=message):
        helper(wrong)


def test_a_million_edges_take_memory_for_the_edges_alone():
    n = 200_000
    edges = [np.full(n, -0.1)] * 5
    offsets = [1, 7, 50, 400, 3000]
    upper = scipy.sparse.diags_array(edges, offsets=offsets, shape=(n, n), format="csr")
    precision = scipy.sparse.csr_array(upper + upper.T + 2.0 * scipy.sparse.eye_array(n))
    tracemalloc.start()
    try:
        found, table, correlations = describe(precision), edge_list(precision), partial_correlations(precision)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.n_edges == len(table) == correlations.nnz // 2 == sum(n - offset for offset in offsets)
    assert found.n_components == 1
    assert peak < 400e6  # a bit for each pair of nodes would be 5 GB


def test_pandas_and_networkx_load_with_the_functions_that_need_them():
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['networkx'] = None; import lgmd.graphs.summary as summary; "
        "print(summary.describe([[2.0, 1.0], [1.0, 2.0]]).n_edges)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "1"


def test_the_example_of_the_module_runs():
    result = doctest.testmod(summary)
    assert result.attempted > 0
    assert result.failed == 0

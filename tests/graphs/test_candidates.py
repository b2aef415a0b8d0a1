"""Candidate edges: what may be passed, what the builders make, and that nothing is n x n."""

import datetime
import doctest
import tracemalloc

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import haversine_distances

from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs import GraphEstimate, Side, ThresholdGraph, as_learner, candidates
from lgmd.graphs.candidates import candidate_pairs, chain, check_candidates, nearest, union, within
from lgmd.observed import as_observed

EARTH = 6371.0088
COLUMNS = Side("feature_graph", "columns")


def pairs_of(adjacency):
    """The pairs of a dense pattern, in either direction, the slow way."""
    n = len(adjacency)
    return [(i, j) for i in range(n) for j in range(i + 1, n) if adjacency[i, j] != 0 or adjacency[j, i] != 0]


def as_list(pairs):
    rows, columns = pairs
    assert rows.dtype == columns.dtype == np.int64
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def assert_adjacency(graph, expected):
    assert isinstance(graph, scipy.sparse.csr_array)
    assert graph.dtype == bool
    assert graph.has_canonical_format
    assert graph.data.all()
    np.testing.assert_array_equal(graph.toarray(), expected)


def distances(points):
    points = np.asarray(points, dtype=float).reshape(len(points), -1)
    return np.linalg.norm(points[:, None] - points[None], axis=2)


# What may be passed


def test_none_allows_every_pair():
    assert candidate_pairs(None, 5) is None
    assert check_candidates(None, 5, COLUMNS) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.floats(0, 1), st.integers(0, 10_000), st.sampled_from(["bool", "int8", "float64"]))
def test_an_entry_in_either_direction_allows_the_edge(n, density, seed, dtype):
    rng = np.random.default_rng(seed)
    dense = ((rng.random((n, n)) < density) * rng.choice([-1, 1, 2], (n, n))).astype(dtype)
    expected = pairs_of(dense)
    assert as_list(candidate_pairs(dense, n)) == expected
    assert as_list(candidate_pairs(dense.tolist(), n) if n else candidate_pairs(dense, n)) == expected
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array, scipy.sparse.lil_array):
        assert as_list(candidate_pairs(form(dense), n)) == expected
    assert as_list(candidate_pairs(lambda size: dense if size == n else None, n)) == expected
    assert as_list(check_candidates(dense.T, n, COLUMNS)) == expected


def test_stored_zeros_and_entries_that_cancel_allow_nothing():
    zeros = scipy.sparse.coo_array(([0.0, 1.0, -1.0, 2.0], ([0, 1, 1, 2], [1, 2, 2, 0])), shape=(3, 3))
    assert as_list(candidate_pairs(zeros, 3)) == [(0, 2)]
    stored = scipy.sparse.csr_array(([1.0, 0.0, 3.0], [1, 2, 1], [0, 2, 2, 3]), shape=(3, 3))
    assert as_list(candidate_pairs(stored, 3)) == [(0, 1), (1, 2)]


def test_what_was_passed_stays_as_it_was():
    # Indices out of order and a duplicate: what a conversion in place would tidy up.
    given_matrix = scipy.sparse.csr_array((np.ones(4), np.array([2, 1, 1, 0]), np.array([0, 3, 3, 4])), shape=(3, 3))
    before = (given_matrix.data.copy(), given_matrix.indices.copy(), given_matrix.indptr.copy())
    assert as_list(candidate_pairs(given_matrix, 3)) == [(0, 1), (0, 2)]
    for array, expected in zip((given_matrix.data, given_matrix.indices, given_matrix.indptr), before, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_the_builder_of_a_chain_is_itself_a_function_of_the_number_of_nodes():
    assert as_list(candidate_pairs(chain, 4)) == [(0, 1), (1, 2), (2, 3)]


def test_a_data_frame_will_do():
    frame = pd.DataFrame([[0, 1, 0], [0, 0, 0], [1, 0, 0]], index=list("abc"), columns=list("abc"))
    assert as_list(candidate_pairs(frame, 3)) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones((3, 4)), "^candidates is 3 x 4; candidates for edges between n nodes are an n x n matrix"),
        (scipy.sparse.csr_array(np.ones((3, 4))), "^candidates is 3 x 4; "),
        (np.ones((3, 3, 3)), "^candidates is 3 x 3 x 3; "),
        (np.ones(5), "^candidates is of length 5; "),
        (np.ones((3, 3)), "^candidates is 3 x 3, but there are 5 nodes. Candidates for 5 nodes are 5 x 5"),
        (scipy.sparse.eye_array(6), "^candidates is 6 x 6, but there are 5 nodes"),
        (np.full((5, 5), np.nan), "^candidates has 25 entries that are NaN or infinite. Write zero where"),
        (scipy.sparse.csr_array(np.diag([np.inf, 1, 1, 1, 1])), "has 1 entries that are NaN or infinite"),
        (np.eye(5) * 1j, "^candidates holds complex128 values; "),
        (np.full((5, 5), "a"), "^candidates holds <U1 values; "),
        ([[0, 1], [1]], "^candidates is a list of rows that differ in length; "),
        ("chain", "^candidates is 'chain'; "),
        (3, "^candidates is 3; "),
        (lambda n: None, "^What the function for candidates returned for 5 nodes is None; "),
        (lambda n: np.ones((2, 2)), "^What the function for candidates returned for 5 nodes is 2 x 2, but there are 5"),
    ],
)
def test_what_is_no_adjacency_of_these_nodes_is_refused(wrong, message):
    with pytest.raises(InvalidGraphError, match=message):
        candidate_pairs(wrong, 5)


def test_errors_use_the_name_they_are_given_and_name_the_side():
    with pytest.raises(InvalidGraphError, match=r"^allowed is 3 x 3, but there are 5 nodes"):
        candidate_pairs(np.ones((3, 3)), 5, "allowed")
    message = (
        "^candidates of feature_graph is 3 x 3 but the data has 5 columns. "
        "Candidates for edges between columns must be 5 x 5.$"
    )
    with pytest.raises(InvalidGraphError, match=message):
        check_candidates(np.ones((3, 3)), 5, COLUMNS)
    with pytest.raises(InvalidGraphError, match=r"^candidates of feature_graph is 2 x 3; "):
        check_candidates(np.ones((2, 3)), 5, COLUMNS)


# Chains


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=15), st.integers(1, 20))
def test_a_chain_joins_what_is_at_most_lag_steps_apart(values, lag):
    place = {node: step for step, node in enumerate(sorted(range(len(values)), key=lambda node: values[node]))}
    expected = [[0 < abs(place[i] - place[j]) <= lag for j in range(len(values))] for i in range(len(values))]
    assert_adjacency(chain(values, lag), expected)


def test_an_integer_is_that_many_nodes_in_order():
    for n in (4, np.int32(4)):
        assert_adjacency(chain(n), chain([0, 1, 2, 3]).toarray())


@pytest.mark.parametrize(
    "order",
    [
        ["2021-03-01", "2020-01-01", "2020-07-01"],
        np.array(["2021-03-01", "2020-01-01", "2020-07-01"], dtype="datetime64[D]"),
        pd.to_datetime(["2021-03-01", "2020-01-01", "2020-07-01"]),
        pd.Series(pd.to_datetime(["2021-03-01", "2020-01-01", "2020-07-01"], utc=True), index=[7, 7, 7]),
        [datetime.date(2021, 3, 1), datetime.date(2020, 1, 1), datetime.date(2020, 7, 1)],
        pd.period_range("2020", periods=3, freq="M")[[2, 0, 1]],
        (2.5, -np.inf, 0.0),
    ],
    ids=["strings", "numpy dates", "index", "series with zone", "dates", "periods", "numbers"],
)
def test_anything_that_can_be_sorted_is_an_order(order):
    assert as_list(candidate_pairs(chain(order), 3)) == [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("order", "lag", "message"),
    [
        (5, 0, "lag must be at least 1, but is 0"),
        (5, 1.5, "lag must be an integer, but is 1.5"),
        (1, 1, "order must be at least 2, but is 1"),
        (True, 1, "order is a number of nodes or a list of values, one a node, but is True"),
        (3.5, 1, "but is 3.5"),
        ("2020-01-01", 1, "but is '2020-01-01'"),
        (np.ones((3, 2)), 1, r"but is an array of shape \(3, 2\)"),
        ([7], 1, r"order has 1 value\(s\), but a chain has at least 2 nodes"),
        ([], 1, r"order has 0 value\(s\)"),
        ([0.0, np.nan, 1.0], 1, r"order has 1 missing value\(s\), the first at node 1. Every node needs a place"),
        (pd.to_datetime(["2020", None, None]), 1, r"order has 2 missing value\(s\), the first at node 1"),
        ([1j, 2j], 1, "complex"),
        ([datetime.date(2020, 1, 1), 3], 1, "order has values that cannot be sorted: '<' not supported"),
        ([10, 9, "x"], 1, "order mixes values of the types int and str, which have no common order"),
        (["a", b"b"], 1, "order mixes values of the types bytes and str"),
    ],
)
def test_what_is_no_order_is_refused(order, lag, message):
    with pytest.raises(InvalidParameterError, match=message):
        chain(order, lag)


# Neighbours in space


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 20), st.integers(1, 3), st.integers(0, 10_000), st.sampled_from([0.5, 1.0, 1.5, 2.0, 2.5, 6.0]))
def test_within_is_all_pairs_at_most_the_radius_apart(n, d, seed, radius):
    points = np.random.default_rng(seed).integers(-2, 3, (n, d))  # exact distances, some pairs at the same place
    assert_adjacency(within(points, radius), (distances(points) <= radius) & ~np.eye(n, dtype=bool))


def test_the_radius_itself_is_within():
    assert as_list(candidate_pairs(within([0.0, 2.0, 5.0], 2.0), 3)) == [(0, 1)]
    assert within([0.0, 2.0, 5.0], 1.0).nnz == 0
    assert within([0.0, 2.0, 5.0], 5).nnz == 6


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 25), st.integers(1, 3), st.integers(0, 10_000), st.data())
def test_nearest_joins_each_node_with_its_nearest_and_no_other(n, d, seed, data):
    m = data.draw(st.integers(1, n - 1))
    points = np.random.default_rng(seed).standard_normal((n, d))
    order = np.argsort(distances(points) - np.eye(n), axis=1)[:, 1 : m + 1]
    expected = np.zeros((n, n), dtype=bool)
    np.put_along_axis(expected, order, values=True, axis=1)
    assert_adjacency(nearest(points, m), expected | expected.T)


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 30), st.integers(0, 10_000), st.data())
def test_nodes_at_the_same_place_are_no_neighbours_of_themselves(n, seed, data):
    m = data.draw(st.integers(1, n - 1))
    points = np.random.default_rng(seed).integers(0, 3, (n, 1))
    graph = nearest(points, m)
    assert graph.diagonal().sum() == 0
    assert (graph != graph.T).nnz == 0
    assert graph.sum(axis=1).min() >= m
    # With ties the choice is free, but nobody nearer than a node's m-th neighbour is left out.
    apart = distances(points)
    np.fill_diagonal(apart, np.inf)
    reach = np.sort(apart, axis=1)[:, m - 1]
    assert np.all(graph.toarray()[apart < reach[:, None]])
    assert np.all(apart[graph.toarray()] <= np.maximum(reach[:, None], reach)[graph.toarray()])


def random_places(n, seed):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.degrees(np.arcsin(rng.uniform(-1, 1, n))), rng.uniform(-180, 180, n)])


@pytest.mark.parametrize("radius", [500.0, 3000.0, 12_000.0, 30_000.0])
def test_geographic_distances_are_those_along_great_circles(radius):
    places = random_places(120, seed=1)
    # Both poles, both sides of the date line, and two places a hundred metres apart.
    places[:6] = [[90, 0], [-90, 50], [0, 179.9], [0, -179.9], [52.5, 13.4], [52.5009, 13.4]]
    kilometres = EARTH * haversine_distances(np.radians(places))
    assert_adjacency(within(places, radius, geographic=True), (kilometres <= radius) & ~np.eye(120, dtype=bool))
    order = np.argsort(kilometres - np.eye(120), axis=1)[:, 1:6]
    expected = np.zeros((120, 120), dtype=bool)
    np.put_along_axis(expected, order, values=True, axis=1)
    assert_adjacency(nearest(places, 5, geographic=True), expected | expected.T)


def test_kilometres_are_kilometres():
    berlin, hamburg, munich = [52.520, 13.405], [53.551, 9.994], [48.137, 11.575]
    frame = pd.DataFrame([berlin, hamburg, munich], columns=["latitude", "longitude"])  # 255, 504 and 612 km apart
    for radius, expected in ((250, []), (260, [(0, 1)]), (510, [(0, 1), (0, 2)]), (620, [(0, 1), (0, 2), (1, 2)])):
        assert as_list(candidate_pairs(within(frame, radius, geographic=True), 3)) == expected


def test_longitudes_may_count_from_zero():
    places = random_places(50, seed=2)
    eastward = np.column_stack([places[:, 0], places[:, 1] % 360])
    expected = within(places, 3000.0, geographic=True).toarray()
    assert_adjacency(within(eastward, 3000.0, geographic=True), expected)


def test_neighbours_move_with_their_nodes(rng):
    points, order = rng.standard_normal((40, 2)), rng.permutation(40)
    for graph, moved in (
        (within(points, 0.8), within(points[order], 0.8)),
        (nearest(points, 4), nearest(points[order], 4)),
        (chain(points[:, 0], 2), chain(points[order, 0], 2)),
    ):
        np.testing.assert_array_equal(moved.toarray(), graph.toarray()[np.ix_(order, order)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 0], [1, np.nan]],), r"coordinates of 1 node\(s\) are NaN or infinite, the first at node 1"),
        (([0.0, np.inf],), "NaN or infinite, the first at node 1"),
        (([[0, 0]],), r"coordinates has 1 node\(s\), but neighbours need at least 2"),
        ((np.empty((0, 2)),), r"coordinates has 0 node\(s\)"),
        ((np.ones((3, 2, 2)),), r"shape \(nodes, dimensions\), but its shape is \(3, 2, 2\)"),
        ((np.empty((3, 0)),), r"its shape is \(3, 0\)"),
        ((5.0,), r"its shape is \(\)"),
        (([["here", "there"]] * 3,), "coordinates must be an array of real numbers: could not convert"),
        (([[0, 1], [2]],), "coordinates must be an array of real numbers"),
    ],
)
def test_what_are_no_coordinates_is_refused(arguments, message):
    for build in (within, nearest):
        with pytest.raises(InvalidParameterError, match=message):
            build(*arguments, 1)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([[0.0, 1.0, 2.0]] * 2, r"Geographic coordinates are latitude and longitude, but these have 3 column\(s\)"),
        ([0.0, 1.0], r"these have 1 column\(s\)"),
        (
            [[0, 0], [95, 0]],
            "Column 0 of geographic coordinates is the latitude in degrees, at most 90, but that of nod",
        ),
        ([[0, 0], [10, -400]], "longitude in degrees, at most 360, but that of node 1 is -400. Latitude comes first"),
    ],
)
def test_what_are_no_places_on_earth_is_refused(places, message):
    for build in (within, nearest):
        with pytest.raises(InvalidParameterError, match=message):
            build(places, 1, geographic=True)


@pytest.mark.parametrize("radius", [0, 0.0, -1.0])
def test_a_radius_is_positive(radius):
    with pytest.raises(InvalidParameterError, match=f"radius must be positive, but is {radius}"):
        within([0.0, 1.0], radius)


@pytest.mark.parametrize("radius", [np.nan, np.inf, "1", None])
def test_a_radius_is_a_number(radius):
    with pytest.raises(InvalidParameterError, match=r"radius must be a (finite )?number, but is"):
        within([0.0, 1.0], radius)


def test_a_radius_that_joins_too_much_is_refused_before_memory_is_used():
    points = np.random.default_rng(0).random((20_000, 2))
    with pytest.raises(InvalidParameterError, match=r"radius=2 joins 199,990,000 of the 199,990,000 pairs of 20,000"):
        within(points, 2.0)


def test_a_node_has_fewer_neighbours_than_there_are_nodes():
    assert nearest([0.0, 1.0, 3.0], 2).nnz == 6
    for m in (3, 10):
        with pytest.raises(InvalidParameterError, match=f"m={m} neighbours were asked for, but each of the 3 nodes"):
            nearest([0.0, 1.0, 3.0], m)
    with pytest.raises(InvalidParameterError, match="m must be at least 1, but is 0"):
        nearest([0.0, 1.0, 3.0], 0)


# Unions


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 10_000))
def test_a_union_allows_what_any_of_its_graphs_does(n, count, seed):
    rng = np.random.default_rng(seed)
    graphs = [rng.integers(-1, 2, (n, n)) * (rng.random((n, n)) < 0.4) for _ in range(count)]
    allowed = np.any([graph != 0 for graph in graphs], axis=0)
    expected = (allowed | allowed.T) & ~np.eye(n, dtype=bool)
    mixed = [scipy.sparse.coo_array(graph) if i % 2 else graph for i, graph in enumerate(graphs)]
    assert_adjacency(union(*mixed), expected)


def test_unions_refuse_what_does_not_fit():
    with pytest.raises(InvalidGraphError, match="Graphs of a union have the same nodes, but these are 3 x 3, 4 x 4"):
        union(chain(3), chain(4))
    with pytest.raises(InvalidGraphError, match="Graph 2 of the union is 2 x 3; "):
        union(chain(3), np.ones((2, 3)))
    with pytest.raises(InvalidGraphError, match="at least one graph"):
        union()


# Size


def test_two_hundred_thousand_nodes_take_memory_for_their_edges_alone():
    n = 200_000
    points = np.random.default_rng(0).random((n, 2))
    tracemalloc.start()
    try:
        graph = union(chain(n, 2), nearest(points, 5), within(points, 0.003))
        rows, columns = candidate_pairs(graph, n)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(rows) == graph.nnz // 2
    assert 5 * n < graph.nnz < 25 * n
    assert peak < 500e6  # a bit for each pair of nodes would be 5 GB
    assert np.all(rows < columns)
    assert np.all(np.diff(rows * n + columns) > 0)


# Learners as values


def test_learners_with_equal_candidates_are_equal():
    sparse, dense = chain(4), chain(4).toarray()
    assert ThresholdGraph(candidates=sparse) == ThresholdGraph(candidates=chain(4))
    assert hash(ThresholdGraph(0.3, candidates=sparse)) == hash(ThresholdGraph(0.3, candidates=chain(4)))
    assert ThresholdGraph(candidates=dense) == ThresholdGraph(candidates=dense.copy())
    assert ThresholdGraph(candidates=chain) == ThresholdGraph(candidates=chain)
    different = [None, sparse, dense, chain, chain(4, 2), chain(5), dense[:3, :3]]
    for i, one in enumerate(different):
        for other in different[i + 1 :]:
            assert ThresholdGraph(candidates=one) != ThresholdGraph(candidates=other)
    assert ThresholdGraph(0.3, candidates=sparse) != ThresholdGraph(0.4, candidates=sparse)
    assert ThresholdGraph() != 3


def test_the_module_is_documented_by_an_example_that_runs():
    assert doctest.testmod(candidates).attempted > 0
    assert doctest.testmod(candidates).failed == 0


@pytest.mark.parametrize("wrap", [lambda months: months, pd.Series, pd.CategoricalIndex])
def test_ordered_categories_stand_in_their_own_order(wrap):
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]
    months = pd.Categorical(["Mar", "Jan", "Feb", "Jun", "Apr", "May"], categories=names, ordered=True)
    rows, columns = candidate_pairs(chain(wrap(months)), 6)
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 2), (0, 4), (1, 2), (3, 5), (4, 5)]


def test_a_category_that_is_missing_has_no_place():
    with pytest.raises(InvalidParameterError, match=r"1 missing value\(s\), the first at node 1"):
        chain(pd.Categorical(["a", None, "b"], categories=["b", "a"], ordered=True))


def test_a_graph_of_networkx_is_no_adjacency():
    with pytest.raises(InvalidGraphError, match=r"is a Graph of networkx.*to_scipy_sparse_array"):
        candidate_pairs(networkx.path_graph(4), 4)


def test_labels_that_are_called_ordered_are_labels():
    rows, columns = candidate_pairs(chain(pd.Series([3.0, 1.0, 2.0], index=["ordered", "cat", "codes"])), 3)
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 2), (1, 2)]


MASKED = np.ma.array([[0.0, 1.0], [1.0, 9e36]], mask=[[False, False], [False, True]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: candidates.candidate_pairs(MASKED, 2), r"has 1 masked entries. Write zero"),
        (lambda: candidates.chain(MASKED[:, 1]), r"order has 1 masked entries. Every node"),
        (lambda: candidates.within(MASKED, 1.0), r"coordinates has 1 masked entries. Every node"),
        (
            lambda: as_learner(MASKED, "sample_graph").start(
                as_observed(np.ones((2, 3))), Side("sample_graph", "rows")
            ),
            r"has 1 masked entries. Write zero",
        ),
    ],
)
def test_what_lies_under_a_mask_is_no_value(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make()


def test_none_among_values_that_have_an_order_is_missing():
    with pytest.raises(InvalidParameterError, match=r"1 missing value\(s\), the first at node 1"):
        candidates.chain([1, None, 2])


def test_the_edges_of_a_learned_graph_are_candidates(make_precision):
    precision = make_precision(6)
    np.testing.assert_array_equal(candidate_pairs(GraphEstimate(precision, 0.0), 6), candidate_pairs(precision, 6))

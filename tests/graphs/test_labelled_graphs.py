"""Graphs that are DataFrames, whose labels are to be in the order of the table."""

import numpy as np
import pandas as pd
import pytest

from lgmd import GPCA, LGMD
from lgmd.exceptions import InvalidGraphError
from lgmd.graphs import (
    EvidenceGraph,
    FixedGraph,
    GraphicalLassoGraph,
    KNNGraph,
    LaplacianGraph,
    PriorGraph,
    Side,
    ThresholdGraph,
    candidates,
)
from lgmd.observed import as_observed

N = 8
SIDE = Side("sample_graph", "rows")
NAMES = pd.Index([f"station {i}" for i in range(N)])
KINDS = {
    "names": NAMES,
    "numbers": pd.Index([7, 3, 12, 5, 1, 30, 2, 8]),
    "days": pd.date_range("2020-01-01", periods=N),
    "pairs": pd.MultiIndex.from_product([["north", "south"], range(N // 2)]),
}
LEARNERS = {
    "fixed": FixedGraph,
    "prior": PriorGraph,
    "prior of evidence": lambda graph: EvidenceGraph(prior=graph),
    "evidence": lambda graph: EvidenceGraph(candidates=graph),
    "function": lambda graph: EvidenceGraph(candidates=lambda n: graph),
    "threshold": lambda graph: ThresholdGraph(candidates=graph),
    "glasso": lambda graph: GraphicalLassoGraph(candidates=graph),
    "laplacian": lambda graph: LaplacianGraph(candidates=graph),
    "knn": lambda graph: KNNGraph(1, candidates=graph),
}


def table_of(names):
    return pd.DataFrame(np.random.default_rng(0).standard_normal((N, 6)), index=names)


def chain_of(names, columns=None):
    adjacency = candidates.chain(N).toarray().astype(float)
    return pd.DataFrame(adjacency, index=names, columns=names if columns is None else columns)


def shuffled(graph):
    order = np.random.default_rng(1).permutation(N)
    return graph.iloc[order, order]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_in_another_order_than_the_table_is_refused(learner, kind):
    names, make = KINDS[kind], LEARNERS[learner]
    data, graph = as_observed(table_of(names)), chain_of(names)
    with pytest.raises(
        InvalidGraphError,
        match=r"sample_graph.* has the rows of the table in another order: .* Pass graph\.loc\[names, names\]",
    ):
        make(shuffled(graph)).start(data, SIDE)
    found = make(shuffled(graph).loc[names, names]).start(data, SIDE)
    assert (found.precision != make(graph.to_numpy()).start(data, SIDE).precision).nnz == 0


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_graph_whose_columns_are_not_its_rows_is_refused(learner):
    data, graph = as_observed(table_of(NAMES)), chain_of(NAMES)
    others = chain_of(NAMES, [f"node {i}" for i in range(N)])
    for wrong in (graph.iloc[:, ::-1], others, others.set_axis([f"a{i}" for i in range(N)])):
        with pytest.raises(InvalidGraphError, match=r"sample_graph.* has other labels on its columns than on its rows"):
            LEARNERS[learner](wrong).start(data, SIDE)


def test_the_first_label_out_of_order_is_named():
    data, graph = as_observed(table_of(NAMES)), chain_of(NAMES)
    with pytest.raises(InvalidGraphError, match="number 0 is 'station 7', where the table has 'station 0'"):
        FixedGraph(graph.iloc[::-1, ::-1]).start(data, SIDE)
    with pytest.raises(InvalidGraphError, match="number 0 is 'station 7' and 'station 0'"):
        FixedGraph(graph.iloc[:, ::-1]).start(data, SIDE)


@pytest.mark.parametrize(
    "graph",
    [
        chain_of(pd.RangeIndex(N)),
        chain_of(pd.RangeIndex(N, 0, -1)),
        chain_of([f"node {i}" for i in range(N)]),
        chain_of(NAMES, pd.RangeIndex(N)),
        chain_of(pd.date_range("2020-01-01", periods=N), [f"2020-01-0{i}" for i in range(1, N + 1)]),
        chain_of([1, 2, 3, 4, 5, 6, 7, 8], list("12345678")),
    ],
    ids=["numbered", "numbered backwards", "other names", "rows alone", "dates and text", "numbers and text"],
)
def test_labels_that_have_nothing_to_do_with_the_table_say_nothing(graph):
    data = as_observed(table_of(NAMES))
    expected = FixedGraph(graph.to_numpy()).start(data, SIDE).precision
    assert (FixedGraph(graph).start(data, SIDE).precision != expected).nnz == 0


def test_labels_say_nothing_of_a_table_that_has_none():
    graph = shuffled(chain_of(NAMES))
    for table in (table_of(NAMES).to_numpy(), table_of(pd.RangeIndex(N))):
        FixedGraph(graph).start(as_observed(table), SIDE)
    FixedGraph(chain_of(pd.RangeIndex(N))).start(as_observed(table_of([4, 1, 0, 7, 6, 2, 3, 5])), SIDE)


@pytest.mark.parametrize("inference", ["map", "variational"])
def test_models_compare_graphs_of_both_sides_with_the_table(inference):
    graph, table = chain_of(NAMES), table_of(NAMES)
    model = LGMD(2, inference=inference, sample_graph=shuffled(graph), feature_graph="none")
    with pytest.raises(InvalidGraphError, match="sample_graph has the rows of the table in another order"):
        model.fit(table)
    model = LGMD(2, inference=inference, sample_graph="none", feature_graph=shuffled(graph))
    with pytest.raises(InvalidGraphError, match="feature_graph has the columns of the table in another order"):
        model.fit(table.T)


def test_principal_components_compare_graphs_with_the_table():
    with pytest.raises(InvalidGraphError, match="sample_graph has the rows of the table in another order"):
        GPCA(2, sample_graph=shuffled(chain_of(NAMES))).fit(table_of(NAMES))


def test_a_model_with_a_labelled_graph_is_that_with_its_array(tmp_path):
    graph, table = chain_of(NAMES), table_of(NAMES)
    fits = [LGMD(2, sample_graph=given, feature_graph="none").fit(table) for given in (graph, graph.to_numpy())]
    np.testing.assert_array_equal(fits[0].reconstruct(), fits[1].reconstruct())
    checkpoint = tmp_path / "run.npz"
    LGMD(2, sample_graph=graph, feature_graph="none", max_iter=300).fit(table, checkpoint=checkpoint)
    fits[1].set_params(max_iter=300).fit(table, checkpoint=checkpoint)  # the same settings
    fits[0].save(tmp_path / "model.npz")
    assert (LGMD.load(tmp_path / "model.npz").sample_graph_ != fits[0].sample_graph_).nnz == 0


def test_candidates_on_their_own_have_the_same_labels_on_both_sides():
    graph = chain_of(NAMES)
    assert candidates.candidate_pairs(graph, N) is not None
    with pytest.raises(InvalidGraphError, match="candidates has other labels on its columns than on its rows"):
        candidates.candidate_pairs(graph.iloc[:, ::-1], N)


def test_a_node_may_be_called_as_an_attribute():
    names = ["precision", "index", "data", "T", "shape", "dtype", "columns", "values"]
    data, graph = as_observed(table_of(names)), chain_of(names)
    expected = FixedGraph(graph.to_numpy()).start(data, SIDE).precision
    assert (FixedGraph(graph).start(data, SIDE).precision != expected).nnz == 0


def test_columns_that_just_count_say_nothing_beside_numbered_rows():
    graph = pd.DataFrame(np.ones((4, 4)), index=[71, 85, 12, 40], columns=[1, 2, 3, 4])
    start = PriorGraph(graph).start(as_observed(np.ones((4, 3))), Side("sample_graph", "rows"))
    assert start.precision.shape == (4, 4)

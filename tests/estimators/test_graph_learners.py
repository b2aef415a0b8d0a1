"""What every learner of graphs keeps to inside a model, under either inference, with gaps and without."""

import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from lgmd import LGMD, PMF, LGMDPlus, metrics
from lgmd.datasets import make_matrix_normal
from lgmd.exceptions import ConvergenceWarning, InvalidGraphError
from lgmd.graphs import (
    LEARNERS,
    EvidenceGraph,
    FactorMoments,
    FixedGraph,
    GraphEstimate,
    GraphicalLassoGraph,
    KNNGraph,
    LaplacianGraph,
    PriorGraph,
    ThresholdGraph,
    candidates,
)
from lgmd.graphs import summary as graph_summary
from lgmd.linalg.cholesky import factorize

SHAPE = (30, 20)


def chain(n):
    return candidates.chain(n).astype(float)


# A learner for a side of n nodes, by name: every one of the registry, and those that need a matrix.
BY_NAME = {name: (lambda n, learner=learner: learner()) for name, learner in LEARNERS.items()}
BY_NAME |= {
    "fixed": lambda n: FixedGraph(chain(n)),
    "prior": lambda n: PriorGraph(chain(n)),
    "evidence beside a prior": lambda n: EvidenceGraph(prior=chain(n)),
    "evidence among candidates": lambda n: EvidenceGraph(candidates=candidates.chain(n, 3)),
}
NAMES = list(BY_NAME)
INFERENCES = ["variational", "map"]
WITH_CANDIDATES = [EvidenceGraph, GraphicalLassoGraph, KNNGraph, LaplacianGraph, ThresholdGraph]


@cache
def table(with_gaps):
    return make_matrix_normal(
        *SHAPE, rank=3, sample_graph="chain", feature_graph="blocks", missing=0.25 * with_gaps, random_state=0
    ).observed


def model_of(name, inference):
    learners = {"sample_graph": BY_NAME[name](SHAPE[0]), "feature_graph": BY_NAME[name](SHAPE[1])}
    return LGMD(3, inference=inference, max_iter=500, tol=1e-3, random_state=0, **learners)


@cache
def fitted(name, inference, with_gaps):
    return model_of(name, inference).fit(table(with_gaps))


every_learner = pytest.mark.parametrize("name", NAMES)
both_inferences = pytest.mark.parametrize("inference", INFERENCES)
with_and_without_gaps = pytest.mark.parametrize("with_gaps", [False, True], ids=["complete", "gaps"])


def test_no_learner_is_left_out():
    assert set(LEARNERS) <= set(NAMES)
    assert {type(build(5)) for build in BY_NAME.values()} == set(LEARNERS.values())


@every_learner
@both_inferences
@with_and_without_gaps
def test_graphs_are_sparse_symmetric_and_positive_definite(name, inference, with_gaps):
    model = fitted(name, inference, with_gaps)
    for graph, n in ((model.sample_graph_, SHAPE[0]), (model.feature_graph_, SHAPE[1])):
        assert isinstance(graph, scipy.sparse.csr_array)
        assert graph.shape == (n, n)
        assert graph.dtype == np.float64
        dense = graph.toarray()
        assert np.all(np.isfinite(dense))
        np.testing.assert_allclose(dense, dense.T, atol=1e-12 * np.abs(dense).max())
        assert np.linalg.eigvalsh(dense)[0] > 0


@both_inferences
@pytest.mark.parametrize("model", [LGMD(5, feature_graph="none"), LGMDPlus(5)], ids=["one side", "both sides"])
def test_a_sparse_graph_of_rows_that_are_repeated_can_be_learned(model, inference):
    repeated = np.repeat(np.random.default_rng(0).standard_normal((8, 12)), 5, axis=0)
    learner = LaplacianGraph(sparse=True)
    model = clone(model).set_params(inference=inference, sample_graph=learner)
    if isinstance(model, LGMDPlus):
        model.set_params(feature_graph=learner)
    model.fit(repeated)
    factorize(model.sample_graph_)
    assert np.isfinite(model.sample_prior_variance_)
    np.testing.assert_allclose(model.reconstruct(), np.repeat(model.reconstruct()[::5], 5, axis=0), atol=1e-2)


@every_learner
@both_inferences
@with_and_without_gaps
def test_what_comes_out_is_finite_and_fits_the_table(name, inference, with_gaps):
    model, observed = fitted(name, inference, with_gaps), table(with_gaps)
    rebuilt = model.reconstruct()
    assert rebuilt.shape == SHAPE
    for values in (rebuilt, model.sample_factors_, model.feature_factors_, model.history_.objective):
        assert np.all(np.isfinite(values))
    assert model.converged_
    assert model.history_.always_fell()
    seen = ~np.isnan(observed)
    assert metrics.rmse(observed[seen], rebuilt[seen]) < 0.8 * np.std(observed[seen])
    np.testing.assert_allclose(model.predict([2, 3], [5, 6]), rebuilt[[2, 3], [5, 6]], rtol=1e-12)
    assert np.all(np.isfinite(model.transform(observed[:4])))


@every_learner
@both_inferences
@with_and_without_gaps
def test_a_fit_can_be_repeated_and_leaves_what_it_was_given(name, inference, with_gaps):
    first, observed = fitted(name, inference, with_gaps), table(with_gaps).copy()
    before = observed.copy()
    model = clone(model_of(name, inference))
    parameters = {side: getattr(model, side) for side in ("sample_graph", "feature_graph")}
    matrices = {side: scipy.sparse.csr_array(chain(n)) for side, n in zip(parameters, SHAPE, strict=True)}
    again = model.fit(observed)
    np.testing.assert_array_equal(observed, before)
    np.testing.assert_array_equal(again.reconstruct(), first.reconstruct())
    np.testing.assert_array_equal(again.sample_graph_.toarray(), first.sample_graph_.toarray())
    np.testing.assert_array_equal(again.feature_graph_.toarray(), first.feature_graph_.toarray())
    for side, learner in parameters.items():
        assert getattr(model, side) is learner
        for given in learner.parameters().values():
            if scipy.sparse.issparse(given) and given.dtype == float:
                assert (scipy.sparse.csr_array(given) != matrices[side]).nnz == 0


@every_learner
@both_inferences
@with_and_without_gaps
def test_a_saved_model_comes_back_as_it_was(name, inference, with_gaps, tmp_path):
    model = fitted(name, inference, with_gaps)
    model.save(tmp_path / "model.npz")
    loaded = LGMD.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.reconstruct(), model.reconstruct())
    for side in ("sample_graph", "feature_graph"):
        np.testing.assert_array_equal(
            getattr(loaded, f"{side}_").toarray(), getattr(model, f"{side}_").toarray(), strict=True
        )
        assert type(getattr(loaded, side)) is type(getattr(model, side))
    for side in ("sample", "feature"):
        np.testing.assert_array_equal(getattr(loaded, f"{side}_strength_"), getattr(model, f"{side}_strength_"))


@both_inferences
@with_and_without_gaps
def test_strengths_are_those_of_the_graphs(inference, with_gaps):
    for name in ("prior", "evidence"):
        model = fitted(name, inference, with_gaps)
        for graph, strength in (
            (model.sample_graph_, model.sample_strength_),
            (model.feature_graph_, model.feature_strength_),
        ):
            # I + r L, with rows and columns scaled: partial correlations are r / sqrt((1 + r d_i) (1 + r d_j)).
            rows, columns = np.nonzero(np.triu(graph.toarray(), 1))
            sizes = np.abs(graph_summary.partial_correlations(graph).toarray()[rows, columns])
            spread = 1 + strength * graph_summary.degrees(graph)
            np.testing.assert_allclose(sizes, strength / np.sqrt(spread[rows] * spread[columns]), rtol=1e-6)
            assert (len(rows) > 0) == (strength > 0)
    assert np.isnan(fitted("knn", inference, with_gaps).sample_strength_)


# LGMD+


@both_inferences
@with_and_without_gaps
def test_the_graphs_of_lgmd_plus_have_no_negative_weights(inference, with_gaps):
    model = LGMDPlus(3, inference=inference, max_iter=500, tol=1e-3, random_state=0).fit(table(with_gaps))
    for graph in (model.sample_graph_, model.feature_graph_):
        dense = graph.toarray()
        off = dense - np.diag(np.diag(dense))
        assert off.max() <= 0
        assert off.min() < 0
        # precision = L + c I: every row sums to c.
        sums = dense.sum(axis=1)
        assert sums[0] > 0
        np.testing.assert_allclose(sums, sums[0], atol=1e-9 * np.abs(dense).max())


def test_lgmd_plus_is_lgmd_with_that_learner():
    plus = LGMDPlus(3, max_iter=500, tol=1e-3, random_state=0).fit(table(True))
    np.testing.assert_array_equal(plus.reconstruct(), fitted("laplacian", "variational", True).reconstruct())


# Candidates


@pytest.mark.parametrize("learner", WITH_CANDIDATES)
@both_inferences
@pytest.mark.parametrize(("side", "nodes", "n"), [("sample_graph", "rows", 30), ("feature_graph", "columns", 20)])
def test_candidates_of_another_shape_are_refused_with_the_side_they_are_for(learner, inference, side, nodes, n):
    message = f"^candidates of {side} is 7 x 7 but the data has {n} {nodes}"
    with pytest.raises(InvalidGraphError, match=message):
        LGMD(3, inference=inference, **{side: learner(candidates=np.ones((7, 7)))}).fit(table(True))


@pytest.mark.parametrize("learner", WITH_CANDIDATES)
@both_inferences
def test_no_learner_goes_beyond_its_candidates(learner, inference):
    allowed = candidates.chain(30, 2)
    model = LGMD(3, inference=inference, sample_graph=learner(candidates=allowed), feature_graph="none", tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        graph = model.fit(table(False)).sample_graph_.toarray()
    assert not np.any((graph != 0) & ~(allowed.toarray() | np.eye(30, dtype=bool)))


def test_every_learner_with_candidates_is_asked():
    assert {learner for learner in LEARNERS.values() if hasattr(learner, "candidates")} == set(WITH_CANDIDATES)


# One objective for factors and graphs


@pytest.mark.parametrize("eta", [0.03, 0.3, 2.0])
@with_and_without_gaps
def test_with_the_diagonal_penalised_graph_steps_lower_the_objective_too(eta, with_gaps):
    learner = GraphicalLassoGraph(eta, penalize_diagonal=True)
    model = LGMD(3, inference="map", sample_graph=learner, feature_graph=learner, graph_updates=8, max_iter=60, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table(with_gaps))
    objective, steps = model.history_.objective, model.history_.graph_steps
    assert steps.sum() > 1
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))
    # And the graph steps are worth something.
    assert objective[np.flatnonzero(steps)[0]] < objective[np.flatnonzero(steps)[0] - 1]


# No harm


@pytest.mark.parametrize("seed", range(3))
def test_where_there_is_no_structure_evidence_graphs_change_nothing(seed):
    data = make_matrix_normal(
        100, 100, rank=20, sample_graph="none", feature_graph="none", noise=1.0, random_state=seed
    )
    without = LGMD(20, sample_graph="none", feature_graph="none").fit(data.observed)
    default = LGMD(20).fit(data.observed)
    expected = metrics.rmse(data.truth, without.reconstruct())
    assert metrics.rmse(data.truth, default.reconstruct()) == pytest.approx(expected, rel=0.005)
    # And without graphs the model is better than nothing.
    assert expected < np.std(data.truth)


def test_no_graphs_found_is_the_model_without_graphs():
    noise = np.random.default_rng(1).standard_normal((40, 30))
    model, without = LGMD(3, inference="map", tol=1e-6), PMF(3, tol=1e-6)
    model.fit(noise)
    assert (model.sample_strength_, model.feature_strength_) == (0.0, 0.0)
    np.testing.assert_allclose(model.reconstruct(), without.fit(noise).reconstruct(), atol=1e-3)


@pytest.mark.parametrize("inference", ["map", "variational"])
@pytest.mark.parametrize(
    "learner",
    [
        ThresholdGraph(),
        GraphicalLassoGraph(),
        EvidenceGraph(order=False),
        LaplacianGraph(order=False, ask_entries=False),
        LaplacianGraph(order=False, ask_entries=False, sparse=True),
        KNNGraph(),
    ],
    ids=["threshold", "glasso", "evidence", "laplacian", "sparse laplacian", "knn"],
)
def test_rows_without_entries_have_no_edges(learner, inference):
    empty = [3, 10, 20]
    data = make_matrix_normal(60, 60, 20, sample_graph="blocks", feature_graph="none", edge_density=0.1, random_state=1)
    table = data.observed.copy()
    table[empty] = np.nan
    model = LGMD(20, inference=inference, sample_graph=learner, feature_graph="none", allow_empty=True, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        graph = model.fit(table).sample_graph_
    joined = (graph != 0).sum(axis=1) > 1
    assert joined.any()
    assert not joined[empty].any()


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_which_nothing_is_known_leave_the_graph_of_the_others_alone(sparse):
    X = make_matrix_normal(40, 30, 12, sample_graph="blocks", feature_graph="none", random_state=1).sample_factors
    learner = LaplacianGraph(sparse=sparse, order=False)
    among, alone = (
        learner.learn(FactorMoments(factor), GraphEstimate.identity(len(factor)))
        for factor in (np.insert(X, [0, 10, 10, 40], 0.0, axis=0), X)
    )
    nothing = np.array([0, 11, 12, 43])
    known = np.setdiff1d(np.arange(44), nothing)
    graph = among.precision.toarray()
    np.testing.assert_allclose(graph[np.ix_(known, known)], alone.precision.toarray(), rtol=1e-12)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(graph[nothing, nothing], np.sum(unit * (alone.precision @ unit)) / 40, rtol=1e-9)
    assert among.logdet == pytest.approx(np.linalg.slogdet(graph)[1])


def test_neighbours_of_rows_with_entries_are_the_same_beside_rows_without():
    table = make_matrix_normal(40, 30, 4, sample_graph="blocks", missing=0.1, random_state=1).observed
    more = np.vstack([table, np.full((15, 30), np.nan)])
    alone, among = (
        LGMD(4, sample_graph="knn", feature_graph="none", allow_empty=True).fit(each) for each in (table, more)
    )
    graph = among.sample_graph_.toarray()
    np.testing.assert_allclose(graph[:40, :40], alone.sample_graph_.toarray(), rtol=1e-12)
    _, std = among.reconstruct(return_std=True)
    assert 0.8 < std[40:].mean() / table[~np.isnan(table)].std() < 1.5


def test_rows_without_entries_follow_a_graph_that_is_given():
    data = make_matrix_normal(60, 40, 4, sample_graph="chain", feature_graph="none", missing=0.2, random_state=0)
    table = data.observed.copy()
    empty = np.arange(5, 60, 10)
    table[empty] = np.nan
    with_order, without = (
        LGMD(6, sample_graph=graph, feature_graph="none", allow_empty=True).fit(table)
        for graph in (PriorGraph(candidates.chain(60)), "none")
    )
    errors = [metrics.rmse(data.truth[empty], model.reconstruct()[empty]) for model in (with_order, without)]
    assert errors[0] < 0.7 * errors[1]

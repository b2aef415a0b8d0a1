"""Graphs that the factors do not prove: taken where entries speak for them, left out where they speak against them."""

from dataclasses import replace

import numpy as np
import pytest

from lgmd import LGMD, LGMDPlus
from lgmd.datasets import make_matrix_normal
from lgmd.exceptions import InvalidParameterError
from lgmd.factors import Intercepts, InterceptTerms, NoiseModel
from lgmd.graphs import EvidenceGraph, GraphEstimate, GraphLearner, LaplacianGraph, NoGraph
from lgmd.metrics import rmse
from lgmd.observed import as_observed
from lgmd.solver import graph_contest
from lgmd.solver.prior_choice import n_parts
from lgmd.solver.variational import VariationalInference

NONE = {"sample_graph": "none", "feature_graph": "none"}


def n_edges(model):
    return [int(graph.nnz - graph.shape[0]) // 2 for graph in (model.sample_graph_, model.feature_graph_)]


def tables(family, seed, **settings):
    return make_matrix_normal(120, 90, 12, sample_graph=family, feature_graph=family, random_state=seed, **settings)


@pytest.mark.slow
def test_a_map_that_no_column_can_prove_lowers_the_error():
    data = tables("geometric", 0, noise=0.5, missing=0.5)
    plain, model = LGMD(20, **NONE).fit(data.observed), LGMD(20).fit(data.observed)
    # Learned edges are those of LGMD+ from factors that have not seen them.
    assert min(n_edges(model)) > 200
    assert np.isnan(model.sample_strength_)
    assert model.sample_graph_.toarray()[~np.eye(120, dtype=bool)].max() <= 0
    assert rmse(data.truth, model.reconstruct()) < 0.97 * rmse(data.truth, plain.reconstruct())


@pytest.mark.slow
def test_a_complete_table_is_better_for_it_too():
    """Held-out entries were against the graphs of these tables, on which factors lose half of their columns."""
    for seed in (1, 2):
        data = make_matrix_normal(
            100,
            100,
            20,
            sample_graph="geometric",
            feature_graph="geometric",
            noise=1.0,
            shuffle=True,
            random_state=seed,
        )
        plain, model = LGMD(20, **NONE).fit(data.noisy), LGMD(20).fit(data.noisy)
        assert max(n_edges(model)) > 200
        assert rmse(data.truth, model.reconstruct()) < 0.97 * rmse(data.truth, plain.reconstruct())


@pytest.mark.parametrize("axis", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_side_without_a_graph_does_not_share_in_what_the_other_gains(axis):
    data = make_matrix_normal(
        120, 90, 12, sample_graph="geometric", feature_graph="none", noise=0.5, missing=0.5, random_state=0
    )
    found = n_edges(LGMD(20).fit(data.observed.T if axis else data.observed))
    assert found[axis] > 200
    assert found[1 - axis] == 0


def test_nobody_is_asked_who_does_not_want_to_be():
    data = tables("geometric", 0, noise=0.5, missing=0.5)
    for learner in (EvidenceGraph(ask_entries=False), EvidenceGraph(neighbors=5)):
        assert n_edges(LGMD(20, sample_graph=learner, feature_graph=learner).fit(data.observed)) == [0, 0]
    with pytest.raises(InvalidParameterError, match="ask_entries must be True or False, but is None"):
        EvidenceGraph(ask_entries=None).validate()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_independent_rows_and_columns_get_none(seed, missing):
    data = tables("none", seed, noise=1.0, missing=missing)
    plain, model = LGMD(20, **NONE).fit(data.observed), LGMD(20).fit(data.observed)
    assert n_edges(model) == [0, 0]
    np.testing.assert_allclose(model.reconstruct(), plain.reconstruct(), atol=1e-10)


def test_small_and_large_tables_are_not_asked(monkeypatch):
    def never(*arguments):
        raise AssertionError

    monkeypatch.setattr(graph_contest, "_Contest", never)
    small = make_matrix_normal(30, 30, 8, sample_graph="geometric", noise=0.5, random_state=0)
    LGMD(8).fit(small.observed)
    monkeypatch.setattr(graph_contest, "TIED_ENTRIES", 5000)
    large = make_matrix_normal(80, 80, 8, sample_graph="none", feature_graph="none", noise=1.0, random_state=0)
    LGMD(8).fit(large.observed)


@pytest.mark.slow
def test_a_table_and_its_transpose_get_the_same_graphs():
    data = tables("geometric", 0, noise=0.5, missing=0.5)
    # Graphs that are learned again and again let small differences grow: one side is half a step ahead of the other.
    model, transposed = (LGMD(20, graph_updates=1).fit(table) for table in (data.observed, data.observed.T))
    assert min(n_edges(model)) > 0
    # Weights near zero may end on either side of it.
    assert n_edges(transposed) == pytest.approx(n_edges(model)[::-1], rel=0.02)
    assert rmse(transposed.reconstruct().T, model.reconstruct()) < 0.01 * data.truth.std()


@pytest.mark.parametrize("missing", [0.0, pytest.param(0.5, marks=pytest.mark.slow)])
def test_the_graphs_of_lgmd_plus_are_left_out_where_they_do_harm(missing):
    data = tables("none", 0, noise=0.5, missing=missing)
    unasked = LaplacianGraph(ask_entries=False)
    plain, model, stubborn = (
        estimator.fit(data.observed)
        for estimator in (LGMD(20, **NONE), LGMDPlus(20), LGMDPlus(20, sample_graph=unasked, feature_graph=unasked))
    )
    assert n_edges(model) == [0, 0]
    np.testing.assert_allclose(model.reconstruct(), plain.reconstruct(), atol=1e-10)
    assert min(n_edges(stubborn)) > 200
    assert rmse(data.truth, stubborn.reconstruct()) > 1.01 * rmse(data.truth, plain.reconstruct())


@pytest.mark.parametrize(
    ("family", "missing"),
    [
        ("chain", 0.0),
        ("chain", 0.5),
        ("blocks", 0.0),
        pytest.param("blocks", 0.5, marks=pytest.mark.slow),
        pytest.param("geometric", 0.5, marks=pytest.mark.slow),
    ],
)
def test_the_graphs_of_lgmd_plus_stay_where_they_help(family, missing):
    data = tables(family, 0, noise=0.5, missing=missing)
    plain, model = LGMD(20, **NONE).fit(data.observed), LGMDPlus(20).fit(data.observed)
    assert min(n_edges(model)) > 80
    assert rmse(data.truth, model.reconstruct()) < rmse(data.truth, plain.reconstruct())


@pytest.mark.parametrize("axis", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_lgmd_plus_keeps_the_graph_of_the_side_that_has_one(axis):
    data = make_matrix_normal(
        120, 90, 12, sample_graph="none", feature_graph="blocks", noise=0.5, missing=0.5, shuffle=True, random_state=0
    )
    found = n_edges(LGMDPlus(20).fit(data.observed.T if axis else data.observed))
    assert found[axis] == 0
    assert found[1 - axis] > 100


# The contest itself


def problem_of(data, sample_learner, feature_learner):
    table = as_observed(data / np.nanstd(data))
    problem = VariationalInference(
        table,
        12,
        InterceptTerms.parse("none"),
        sample_learner,
        feature_learner,
        NoiseModel("homoscedastic", "gaussian", 1e-10),
    )
    return problem, problem.start(Intercepts(0.0, *(np.zeros(n) for n in data.shape)), 0)


class Offering(GraphLearner):
    """Finds nothing and offers a graph."""

    def __init__(self, graph):
        self.graph = graph

    def start(self, data, side):
        return GraphEstimate.identity(data.shape[0])

    def unproven(self, moments, previous):
        return self.graph


def test_true_graphs_that_are_offered_are_taken_and_wrong_ones_are_not():
    data = make_matrix_normal(100, 80, 10, sample_graph="chain", feature_graph="none", noise=1.0, random_state=0)
    right = GraphEstimate(data.sample_precision, float(np.linalg.slogdet(data.sample_precision.toarray())[1]))
    order = np.random.default_rng(0).permutation(100)
    wrong = replace(right, precision=right.precision[order][:, order])
    for graph, is_taken in ((right, True), (wrong, False)):
        problem, state = problem_of(data.noisy, Offering(graph), NoGraph())
        none = (state.sample_graph, state.feature_graph)
        taken, other = graph_contest.as_entries_say(problem, state, none)
        assert (taken.n_edges > 0, not taken.proven) == (is_taken, is_taken)
        assert other is none[1]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_that_is_soon_at_its_end_is_not_judged_before_it(seed):
    """Little noise, few columns: without graphs four iterations were taken for enough, and false graphs won."""
    data = make_matrix_normal(300, 150, 4, sample_graph="none", feature_graph="none", noise=0.3, random_state=seed)
    model = LGMD(20).fit(data.noisy)
    assert n_edges(model) == [0, 0]
    assert model.rank_ == 4


@pytest.mark.parametrize(
    ("leads", "is_taken"), [((-2.5,), False), ((-1.5, -1.5), False), ((9.0, 9.0), True), ((0.5, 2.0, 3.5), True)]
)
def test_one_draw_of_signs_can_end_a_contest_but_not_win_it(monkeypatch, leads, is_taken):
    data = make_matrix_normal(60, 50, 5, sample_graph="chain", feature_graph="none", noise=1.0, random_state=0)
    graph = GraphEstimate(data.sample_precision, float(np.linalg.slogdet(data.sample_precision.toarray())[1]))
    problem, state = problem_of(data.noisy, Offering(graph), NoGraph())
    left = iter(leads)
    monkeypatch.setattr(graph_contest, "_lead", lambda gains: next(left))
    taken, _ = graph_contest.as_entries_say(problem, state, (state.sample_graph, state.feature_graph))
    assert (taken.n_edges > 0) == is_taken
    assert not list(left)


class Learning(Offering):
    """Learns a graph that entries may judge, and offers none."""

    may_be_left_out = True

    def learn(self, moments, previous):
        return self.graph

    def unproven(self, moments, previous):
        return previous


@pytest.mark.parametrize(
    ("leads", "is_kept"),
    [
        ((-2.5, -2.5), False),  # together beyond three standard errors: nobody asks further
        ((2.5, 2.5), True),
        ((-3.0, 2.0, -1.2, -0.1), False),  # -1.15 of all four
        ((-3.0, 2.0, -1.2, 0.5), True),  # -0.85
        ((0.0,) * 4, True),
    ],
)
def test_a_graph_that_was_learned_stays_unless_it_does_harm(monkeypatch, leads, is_kept):
    """Where nothing is clear, all draws of signs are asked that tables of this size have; each counts alike."""
    data = make_matrix_normal(120, 100, 5, sample_graph="chain", feature_graph="none", noise=1.0, random_state=0)
    graph = GraphEstimate(data.sample_precision, float(np.linalg.slogdet(data.sample_precision.toarray())[1]))
    problem, state = problem_of(data.noisy, Learning(graph), NoGraph())
    assert n_parts(data.noisy.size) == 4
    known, asked = {}, []

    def lead(gains):
        if not gains.any():  # of the side that is not judged
            return 0.0
        if gains.sum() not in known:
            known[gains.sum()] = leads[len(known)]
        asked.append(known[gains.sum()])
        return known[gains.sum()]

    monkeypatch.setattr(graph_contest, "_lead", lead)
    found, _ = graph_contest.as_entries_say(problem, state, (graph, state.feature_graph))
    assert found is (graph if is_kept else state.sample_graph)
    assert found.proven
    assert len(known) == len(leads)


@pytest.mark.parametrize(("lead", "is_held", "is_kept"), [(0.5, False, True), (0.5, True, False), (2.0, True, True)])
def test_where_noise_is_held_a_graph_that_was_learned_has_to_be_worth_it(monkeypatch, lead, is_held, is_kept):
    data = make_matrix_normal(60, 50, 5, sample_graph="chain", feature_graph="none", missing=0.5, random_state=0)
    graph = GraphEstimate(data.sample_precision, float(np.linalg.slogdet(data.sample_precision.toarray())[1]))
    problem, state = problem_of(data.observed, Learning(graph), NoGraph())
    monkeypatch.setattr(graph_contest, "_lead", lambda gains: lead if gains.any() else 0.0)
    monkeypatch.setattr(
        graph_contest._Contest, "_foreseen", lambda *_: lambda sides, parts: [np.full(3, float(any(sides)))] * parts
    )
    state = replace(state, holds_noise=is_held)
    found, _ = graph_contest.as_entries_say(problem, state, (graph, state.feature_graph))
    assert found is (graph if is_kept else state.sample_graph)


def test_runs_on_the_entries_of_a_large_table_do_not_end_at_once(monkeypatch):
    """Little changes an entry after three iterations, when columns that will die are still alive."""
    lengths, short_run = [], graph_contest.Starter.short_run

    def seen(*arguments, **settings):
        run = short_run(*arguments, **settings)
        lengths.append(run.n_iter)
        return run

    monkeypatch.setattr(graph_contest.Starter, "short_run", seen)
    data = make_matrix_normal(
        300, 200, 4, sample_graph="blocks", feature_graph="none", noise=0.3, missing=0.1, random_state=0
    )
    LGMDPlus(8).fit(data.observed)
    assert min(lengths) >= 10


def test_where_noise_is_held_one_side_does_not_pay_for_the_other(monkeypatch):
    """Together the two are not worth it: one does harm, which must not cost the other its graph."""
    leads = {(True, True): 1.0, (True, False): -2.0, (False, True): 3.5, (False, False): 0.0}
    data = make_matrix_normal(60, 50, 5, sample_graph="chain", feature_graph="none", missing=0.5, random_state=0)
    problem, state = problem_of(data.observed, NoGraph(), NoGraph())
    contest = graph_contest._Contest(problem, None, None, replace(state, holds_noise=True), are_learned=True)
    monkeypatch.setattr(graph_contest, "_lead", lambda gains: float(gains[0]))
    monkeypatch.setattr(
        graph_contest._Contest, "_foreseen", lambda *_: lambda sides, parts: [np.full(3, leads[sides])] * parts
    )
    assert contest.winner((True, True)) == (False, True)


@pytest.mark.parametrize("offer_is_true", [True, False])
def test_what_is_offered_beside_a_learned_graph_has_to_be_worth_it_alone(offer_is_true):
    """However much the learned graph of the other side gains."""
    data = make_matrix_normal(100, 90, 10, sample_graph="chain", feature_graph="chain", noise=1.0, random_state=0)
    graphs = [
        GraphEstimate(precision, float(np.linalg.slogdet(precision.toarray())[1]))
        for precision in (data.sample_precision, data.feature_precision)
    ]
    if not offer_is_true:
        order = np.random.default_rng(0).permutation(90)
        graphs[1] = replace(graphs[1], precision=graphs[1].precision[order][:, order])
    problem, state = problem_of(data.noisy, Learning(graphs[0]), Offering(graphs[1]))
    found = graph_contest.as_entries_say(problem, state, (graphs[0], state.feature_graph))
    assert found[0] is graphs[0]
    assert (found[1].n_edges > 0) == offer_is_true


def test_a_side_that_has_edges_keeps_them():
    data = make_matrix_normal(100, 80, 10, sample_graph="geometric", feature_graph="none", noise=1.0, random_state=0)
    problem, state = problem_of(data.noisy, EvidenceGraph(order=False), EvidenceGraph(order=False))
    found = LaplacianGraph(order=False).learn(problem.sample_moments(state), state.sample_graph)
    sides = (found, state.feature_graph)
    assert graph_contest.as_entries_say(problem, state, sides)[0] is found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "seed", "estimator", "has_edges"),
    [("blocks", 3, LGMD, True), ("blocks", 0, LGMDPlus, True), ("none", 0, LGMD, False), ("none", 1, LGMDPlus, False)],
)
def test_tables_so_thin_that_their_noise_is_held_are_asked_too(family, seed, estimator, has_edges, monkeypatch):
    """Half as many entries as numbers to learn."""
    data = make_matrix_normal(
        100,
        100,
        20,
        sample_graph=family,
        feature_graph=family,
        noise=0.3,
        missing=0.8,
        shuffle=True,
        random_state=seed,
    )
    held, contest = [], graph_contest._Contest

    def seen(problem, intercepts, graphs, like, are_learned):
        held.append(like.holds_noise)
        return contest(problem, intercepts, graphs, like, are_learned)

    monkeypatch.setattr(graph_contest, "_Contest", seen)
    plain, model = LGMD(20, **NONE).fit(data.observed), estimator(20).fit(data.observed)
    assert any(held)
    assert (max(n_edges(model)) > 200) == has_edges
    errors = [rmse(data.truth[~data.mask], each.reconstruct()[~data.mask]) for each in (model, plain)]
    if has_edges:
        assert errors[0] < 0.97 * errors[1]
    else:
        assert errors[0] == pytest.approx(errors[1], rel=1e-8)


@pytest.mark.parametrize(
    ("both", "samples", "features", "kept"),
    [
        (-3.0, -2.5, 1.0, (False, True)),
        (-4.0, -3.0, 2.0, (False, False)),
        (4.0, 3.0, 3.5, (True, True)),
        (-0.5, 0.0, 0.0, (True, True)),  # no harm beyond doubt
        (-3.0, -3.0, -3.0, (False, False)),  # no harm beside the other, which does the same
        (-6.0, -7.0, -4.0, (False, False)),  # no harm beside one that does more
    ],
)
def test_each_side_is_judged_beside_the_other_and_what_stays_without_any(both, samples, features, kept, monkeypatch):
    leads = {(True, True): both, (True, False): samples, (False, True): features, (False, False): 0.0}
    monkeypatch.setattr(graph_contest, "_lead", lambda gains: float(gains.sum()))
    found = graph_contest._harmless(lambda sides, parts: [np.full(1, leads[sides])] * parts, (True, True), range(1, 2))
    assert found == kept


def test_a_learner_offers_nothing_unless_it_says_so():
    moments, previous = object(), GraphEstimate.identity(5)
    assert NoGraph().unproven(moments, previous) is previous
    assert LaplacianGraph().unproven(moments, previous) is previous

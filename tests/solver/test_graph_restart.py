"""The factors start anew under the first graphs that are found, once."""

import numpy as np
import pytest

from lgmd import LGMD, PMF, datasets, metrics
from lgmd.factors import Intercepts, InterceptTerms, NoiseModel
from lgmd.graphs import GraphEstimate, NoGraph, PriorGraph
from lgmd.observed import as_observed
from lgmd.solver import variational_starter
from lgmd.solver.prior_choice import NoiseBelief
from lgmd.solver.variational import VariationalInference
from lgmd.solver.variational_starter import Starter

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def chain(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def chain_table(seed=0, missing=0.6, n=80, p=40):
    """Rows in order, each like the one before it."""
    return datasets.make_matrix_normal(n, p, 4, sample_graph="chain", noise=0.5, missing=missing, random_state=seed)


def model_of_chain(n_components=10, n=80, **parameters):
    return LGMD(n_components, sample_graph=PriorGraph(chain(n)), feature_graph="none", **parameters)


def traced(model, table, **arguments):
    """The records and the ranks of all iterations."""
    records = []
    model.fit(
        table, callback=lambda progress: records.append((progress.record, progress.state.X.shape[1])), **arguments
    )
    return [record for record, _ in records], [rank for _, rank in records]


@quiet
@pytest.mark.parametrize("prior", ["auto", "columns", "shared"])
@pytest.mark.parametrize("missing", [0.0, 0.6])
def test_the_history_marks_the_step_and_the_bound_rises_on_both_sides_of_it(prior, missing):
    model, table = model_of_chain(prior=prior, tol=1e-6), chain_table(missing=missing).observed
    records, _ = traced(model, table)
    history = model.history_
    steps = np.flatnonzero(history.graph_steps)
    assert len(steps) >= 1
    first = steps[0]
    assert first > 0
    assert [record.sample_edges for record in records[:first]] == [0] * first
    assert all(record.sample_edges == 79 for record in records[first:])
    assert np.isnan(history.change[steps]).all()
    assert np.isfinite(np.delete(history.change, [0, *steps])).all()
    held = ~history.graph_steps[1:]
    size = np.maximum(np.abs(history.objective[:-1]), np.isfinite(table).sum())
    assert np.all(np.diff(history.objective)[held] <= 1e-10 * size[held])
    assert model.sample_strength_ > 0


@quiet
@pytest.mark.parametrize("graph", ["chain", "threshold"])
def test_columns_that_had_died_without_the_graph_may_live_under_it(graph):
    model = model_of_chain(prior="columns", tol=1e-6)
    if graph == "threshold":  # learned three times
        model.set_params(sample_graph="threshold")
    # Of a table with gaps a start has had a short run, in which columns die again that should.
    records, ranks = traced(model, chain_table(missing=0.0).observed)
    steps = [position for position, record in enumerate(records) if record.graph_step]
    assert len(steps) == (3 if graph == "threshold" else 1)
    first = steps[0]
    assert ranks[first] == 10 > ranks[first - 1]
    # Later graphs find the factors where they are.
    for step in steps[1:]:
        assert ranks[step] <= ranks[step - 1]
    assert ranks[-1] < 10


@quiet
def test_the_start_under_a_graph_is_that_of_a_model_which_is_given_it():
    table = chain_table().observed
    settings = {"prior": "columns", "tol": 1e-6, "max_iter": 500}
    found = model_of_chain(graph_updates=1, **settings).fit(table)
    given = LGMD(10, sample_graph=found.sample_graph_, feature_graph="none", **settings).fit(table)
    # Nothing is left of the factors from which the graph was learned but the means, from which both find their own.
    assert found.rank_ == given.rank_
    # Runs that stop at a change of 1e-6 an entry have at most some hundred such changes left.
    size = np.isfinite(table).sum()
    assert found.history_.objective[-1] == pytest.approx(given.history_.objective[-1], abs=1e-4 * size)
    np.testing.assert_allclose(found.reconstruct(), given.reconstruct(), atol=0.05)


def test_where_no_edge_is_found_the_run_goes_on():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 30)) + 0.3 * rng.standard_normal((80, 30))
    table[rng.random(table.shape) < 0.3] = np.nan
    model = model_of_chain(tol=1e-7, max_iter=500).fit(table)
    assert model.history_.graph_steps.any()
    assert model.sample_strength_ == 0
    # A start anew would raise the objective by far more than round-off.
    assert np.all(np.diff(model.history_.objective) <= 1e-10 * np.isfinite(table).sum())
    without = PMF(10, inference="variational", tol=1e-7, max_iter=500).fit(table)
    assert model.history_.objective[-1] == pytest.approx(without.history_.objective[-1], abs=1e-3)


@quiet
@pytest.mark.slow
@pytest.mark.parametrize(("missing", "share"), [(0.5, 0.95), (0.7, 0.85)])
def test_a_chain_of_rows_lowers_the_error_of_completion(missing, share):
    error = []
    for seed in range(3):
        data = chain_table(seed, missing)
        models = (model_of_chain(), LGMD(10, sample_graph="none", feature_graph="none"))
        error.append([metrics.rmse(data.truth, model.fit(data.observed).reconstruct()) for model in models])
    with_graph, without = np.transpose(error)
    assert np.all(with_graph < without)
    # The less is seen, the more a row learns from its neighbours.
    assert with_graph.mean() < share * without.mean()


@quiet
@pytest.mark.parametrize(
    ("missing", "covariance", "prior"),
    [(0.5, "full", "auto"), (0.0, "full", "columns"), (0.5, "full", "shared"), (0.5, "diagonal", "shared")],
)
def test_a_run_resumed_around_the_graph_step_ends_where_an_uninterrupted_one_does(tmp_path, missing, covariance, prior):
    table = chain_table(missing=missing, n=40, p=20).observed
    model = model_of_chain(5, 40, prior=prior, covariance=covariance, tol=0.0, max_iter=16)
    whole = model.fit(table)
    objective, expected = whole.history_.objective, whole.reconstruct(return_std=True)
    graph, strength = whole.sample_graph_.toarray(), whole.sample_strength_
    assert strength > 0
    step = int(np.flatnonzero(whole.history_.graph_steps)[0]) + 1  # iterations count from one
    for stop in {max(step - 1, 1), step, step + 2}:  # before it, just after it, under way
        path = tmp_path / f"{stop}.npz"

        def interrupt(progress, stop=stop):
            if progress.iteration == stop:
                raise KeyboardInterrupt

        assert model.fit(table, checkpoint=path, callback=interrupt).n_iter_ == stop
        resumed = model.fit(table, checkpoint=path)
        np.testing.assert_allclose(resumed.history_.objective, objective, rtol=1e-9)
        np.testing.assert_array_equal(resumed.history_.graph_steps, whole.history_.graph_steps)
        np.testing.assert_allclose(resumed.sample_graph_.toarray(), graph, rtol=1e-7)
        assert resumed.sample_strength_ == pytest.approx(strength)
        for found, value in zip(resumed.reconstruct(return_std=True), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-8)


@quiet
def test_each_side_is_learned_as_often_as_its_learner_wants():
    table = chain_table(missing=0.4, n=40, p=30).observed
    alone, beside = (
        LGMD(5, sample_graph=PriorGraph(chain(40)), feature_graph=graph, max_iter=60).fit(table)
        for graph in ("none", "threshold")
    )
    assert alone.history_.graph_steps.sum() == 1
    assert beside.history_.graph_steps.sum() == 3
    assert beside.sample_strength_ == alone.sample_strength_ > 0


RANK = 10


def groups_of_ten(n_rows, rng):
    """Rows of a group are alike, so that a chain joins what goes together, and groups that do not."""
    shared = np.repeat(rng.standard_normal((n_rows // 10, RANK)), 10, axis=0)
    truth = (0.8 * shared + 0.6 * rng.standard_normal((n_rows, RANK))) @ rng.standard_normal((RANK, 50))
    observed = truth + truth.std() * rng.standard_normal(truth.shape)
    observed[rng.random(truth.shape) < 0.5] = np.nan
    return truth, observed


@pytest.mark.parametrize("too_large", [pytest.param(1_000_000, marks=pytest.mark.slow), 10_000])
def test_columns_that_had_died_do_not_live_on_noise(rng, monkeypatch, too_large):
    """All 20 did, with errors above those without a graph: found with the default, which takes the chain here too."""
    monkeypatch.setattr(variational_starter, "TIED_ENTRIES", too_large)
    truth, observed = groups_of_ten(1500, rng)
    graph = PriorGraph(chain(1500))
    plain, model = (LGMD(20, sample_graph=g, feature_graph="none").fit(observed) for g in ("none", graph))
    assert model.sample_strength_ > 0.1
    assert model.rank_ <= plain.rank_ + 2
    assert metrics.rmse(truth, model.reconstruct()) < 0.98 * metrics.rmse(truth, plain.reconstruct())


@pytest.mark.slow
def test_columns_that_a_graph_saves_are_asked_for_again():
    """Of 20 columns 20 % of the entries show a few; joined by the graph they show more, and errors fall by a third."""
    data = datasets.make_matrix_normal(
        100, 100, 20, sample_graph="chain", feature_graph="chain", noise=0.3, missing=0.8, random_state=1
    )
    plain = LGMD(20, sample_graph="none", feature_graph="none").fit(data.observed)
    model = LGMD(20, sample_graph=PriorGraph(chain(100)), feature_graph=PriorGraph(chain(100))).fit(data.observed)
    assert plain.rank_ <= 12
    assert model.rank_ > plain.rank_ + 2
    assert metrics.rmse(data.truth, model.reconstruct()) < 0.8 * metrics.rmse(data.truth, plain.reconstruct())


def test_a_large_table_that_is_thin_gets_all_its_columns_back(monkeypatch):
    monkeypatch.setattr(variational_starter, "TIED_ENTRIES", 1000)
    data = datasets.make_matrix_normal(
        100, 100, 20, sample_graph="chain", feature_graph="chain", noise=0.3, missing=0.8, random_state=0
    )
    plain = LGMD(20, sample_graph="none", feature_graph="none").fit(data.observed)
    model = LGMD(20, sample_graph=PriorGraph(chain(100)), feature_graph=PriorGraph(chain(100))).fit(data.observed)
    assert model.rank_ > plain.rank_ + 2


@pytest.mark.parametrize("prior", ["auto", "shared"])
def test_no_short_run_is_done_twice(monkeypatch, prior):
    """Fewer columns are tried before a start is chosen, and the chosen one is asked about its bars."""
    runs, asked = [], []
    tried, should_yield = Starter._tried, Starter.should_yield_to

    def spy(self, start, *rest):
        factors = start.samples.mean.tobytes() + start.features.mean.tobytes()
        noise = start.noise.level, start.noise.optimism, start.holds_noise
        runs.append((self.problem.data.n_observed, start.sample_graph.n_edges, start.law, noise, factors))
        return tried(self, start, *rest)

    monkeypatch.setattr(Starter, "_tried", spy)
    monkeypatch.setattr(Starter, "should_yield_to", lambda *given: asked.append(given) or should_yield(*given))
    data = datasets.make_matrix_normal(
        120, 100, 5, sample_graph="chain", feature_graph="none", noise=0.3, missing=0.6, random_state=0
    )
    LGMD(20, prior=prior, sample_graph=PriorGraph(chain(120)), feature_graph="none").fit(data.observed)
    assert asked
    assert len(runs) == len(set(runs)) > 4


def test_nobody_is_asked_where_all_columns_live(rng, monkeypatch):
    monkeypatch.setattr(Starter, "should_yield_to", None)
    _, observed = groups_of_ten(300, rng)
    model = LGMD(3, sample_graph=PriorGraph(chain(300)), feature_graph="none").fit(observed)
    assert model.sample_strength_ > 0
    assert model.rank_ == 3


@pytest.mark.parametrize(("falls", "law"), [(False, "shared"), (True, "falling")])
def test_variances_that_fell_without_a_graph_go_on_under_it_only_if_entries_say_so(falls, law):
    data = datasets.make_matrix_normal(100, 100, 10, sample_graph="chain", noise=0.3, random_state=0)
    strength = 1 / np.arange(1, 11) if falls else np.ones(10)
    rng = np.random.default_rng(0)
    table = (data.sample_factors * strength) @ data.feature_factors.T + 0.3 * rng.standard_normal((100, 100))
    table[rng.random(table.shape) < 0.6] = np.nan
    logdet = np.linalg.slogdet(data.sample_precision.toarray())[1]
    graphs = (GraphEstimate(data.sample_precision, logdet), GraphEstimate.identity(100))

    def start(prior):
        problem = VariationalInference(
            as_observed(table), 10, InterceptTerms.parse("none"), NoGraph(), NoGraph(), NoiseModel("homoscedastic"),
            prior=prior,
        )  # fmt: skip
        return Starter(problem, Intercepts(0.0, np.zeros(100), np.zeros(100)), graphs, 0)

    assert start("auto").under_graphs(NoiseBelief(law="falling")) == NoiseBelief(law=law)
    # What was found to be shared, or asked for, is not in question, and what has no tie gets none.
    assert start("auto").under_graphs(NoiseBelief(law="shared")) == NoiseBelief(law="shared")
    assert start("falling").under_graphs(NoiseBelief(law="falling")) == NoiseBelief(law="falling")
    assert start("auto").under_graphs(None) is None

"""Prior variances of the factors of a side, each its own or all tied: they are at their best, and no step loses."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lgmd import LGMD
from lgmd.exceptions import CheckpointError
from lgmd.factors import LAWS, InterceptTerms, NoiseModel, SidePosterior
from lgmd.factors.covariance import RowCovariances
from lgmd.factors.noise import Noise
from lgmd.factors.tails import Tails
from lgmd.graphs import as_learner
from lgmd.linalg.packed import packed_size
from lgmd.observed import as_observed
from lgmd.solver import VariationalInference, VariationalState
from lgmd.solver.prior_choice import NoiseBelief
from lgmd.solver.problem import FEATURES, SAMPLES

TIED = ("shared", "falling")
tied = pytest.mark.parametrize("prior", TIED)
any_prior = pytest.mark.parametrize("prior", ["columns", *TIED])
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def given_graphs(make_precision, with_graphs, n, p):
    graphs = (make_precision(n, seed=1), make_precision(p, seed=2)) if with_graphs else ("none", "none")
    return dict(zip(("sample_graph", "feature_graph"), graphs, strict=True))


def problem_of(
    table,
    k,
    graphs,
    *,
    prior="shared",
    diagonal=False,
    noise="homoscedastic",
    likelihood="gaussian",
    intercept="both",
):
    learners = (as_learner(graph, name) for name, graph in graphs.items())
    terms, model = InterceptTerms.parse(intercept), NoiseModel(noise, likelihood, 1e-10)
    return VariationalInference(as_observed(table), k, terms, *learners, model, diagonal, prior)


def random_start(problem, seed):
    """Normal numbers for all means, and prior variances that do not fit them."""
    rng = np.random.default_rng(seed)
    k, data = problem.n_components, problem.data

    def side(n, has_intercepts, variance):
        mean = rng.standard_normal((n, k + 1)) * rng.uniform(0.3, 2.0)
        mean[:, -1] *= has_intercepts
        certain = RowCovariances(np.zeros((1, packed_size(k + 1))), n)
        found = SidePosterior(mean, certain, float("nan"), np.full(k, variance), 1.0 if has_intercepts else None)
        return found.independent() if problem.diagonal else found

    n, p = data.shape
    by_columns = problem.noise.kind == "features"
    noise = Noise(np.full(n, 1.0 if by_columns else 0.5), np.full(p, 0.5 if by_columns else 1.0))
    if problem.noise.by_entries:
        noise = Noise(noise.samples, noise.features, Tails(4.0), np.ones(data.n_observed), np.ones(data.n_observed))
    return VariationalState(
        side(n, problem.intercepts.rows, 0.3),
        side(p, problem.intercepts.columns, 2.0),
        0.0,
        noise,
        problem.sample_learner.start(data, SAMPLES),
        problem.feature_learner.start(data.T, FEATURES),
        law=LAWS[problem.prior],
    )


def run(problem, state, n_iter):
    iterate, objectives = problem.prepare(state), []
    for _ in range(n_iter):
        state, terms = iterate(state)
        objectives.append(sum(terms.values()))
    return np.array(objectives), state


def assert_never_rises(objective, n_observed):
    # Sums of n_observed numbers of size one are exact to some 1e-14 of their size; 1e-10 leaves room for the solves.
    assert np.all(np.diff(objective) <= 1e-10 * np.maximum(np.abs(objective[:-1]), n_observed))


def assert_follow(variances, prior):
    """That variances are tied as they should be."""
    if prior == "shared":
        assert len(set(variances)) <= 1
        return
    np.testing.assert_allclose(variances * np.arange(1, len(variances) + 1), variances.max(initial=0.0), rtol=1e-12)


def column_variances(side, precision):
    """``E[x'Ax] / n`` of each column, from the covariances of all pairs of rows."""
    n, k = side.mean.shape[0], side.rank
    i, j = np.divmod(np.arange(n * n), n)
    spread = side.covariance.between(i, j)[:, np.arange(k), np.arange(k)]
    moments = side.factors[i] * side.factors[j] + spread
    return np.einsum("m,mk->k", precision.toarray().ravel(), moments) / n


@pytest.mark.parametrize("with_graphs", [False, True])
@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"intercept": "none"},
        {"noise": "samples", "intercept": "features"},
        {"likelihood": "student", "noise": "features"},
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(19, 14), (14, 19), (16, 16)], ids=str)
@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
@tied
def test_the_bound_never_falls(make_table, make_precision, prior, index, shape, settings, diagonal, with_graphs):
    table = make_table(*shape, noise=0.5)[index] / 2
    graphs = given_graphs(make_precision, with_graphs, *shape)
    problem = problem_of(table, 5, graphs, prior=prior, diagonal=diagonal, **settings)
    objective, state = run(problem, random_start(problem, 0), 12)
    assert objective[0] - objective[-1] > 1.0  # there was something to climb
    assert_never_rises(objective, problem.data.n_observed)
    for side in (state.samples, state.features):
        assert_follow(side.prior_variance, prior)


@pytest.mark.parametrize("belief", [NoiseBelief(0.02), NoiseBelief(0.2), NoiseBelief(level=0.3)], ids=str)
@pytest.mark.parametrize(
    "settings", [{}, {"noise": "samples"}, {"likelihood": "student"}, {"likelihood": "student", "noise": "features"}]
)
@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
@tied
def test_the_bound_never_falls_whatever_is_believed_of_the_noise(make_table, prior, index, settings, belief):
    table = make_table(19, 14, noise=0.5)[index] / 2
    problem = problem_of(table, 5, {"sample_graph": "none", "feature_graph": "none"}, prior=prior, **settings)
    start = belief.imposed_on(random_start(problem, 0))
    objective, state = run(problem, start, 12)
    assert objective[0] - objective[-1] > 1.0
    assert_never_rises(objective, problem.data.n_observed)
    held = np.array_equal(_variances(state), _variances(start))
    assert held == (belief.level is not None)


def _variances(state):
    return np.outer(state.noise.samples, state.noise.features)


@quiet
@pytest.mark.parametrize("with_graphs", [False, True])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@any_prior
@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
def test_prior_variances_are_those_of_the_posterior(make_table, make_precision, index, prior, covariance, with_graphs):
    table = make_table(n=18, p=13, noise=0.3)[index]
    states = []
    model = LGMD(4, prior=prior, covariance=covariance, tol=0.0, max_iter=12)
    model.set_params(**given_graphs(make_precision, with_graphs, 18, 13))
    model.fit(table, callback=lambda progress: states.append(progress.state))
    # A column that has just been dropped counts in what the others' variances follow from.
    state = [after for before, after in pairwise(states) if before.X.shape == after.X.shape][-1]
    for side, graph in ((state.samples, state.sample_graph), (state.features, state.feature_graph)):
        found, expected = side.prior_variance, column_variances(side, graph.precision)
        np.testing.assert_allclose(found, LAWS[prior].variances(expected), rtol=1e-9)
        if prior == "columns":
            assert np.ptp(found) > 0.05 * found.mean()
        else:
            assert_follow(found, prior)


@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
def test_variances_that_fall_find_factors_in_their_order_where_the_basis_cannot_change(make_table, index):
    table = make_table(n=40, p=30, rank=6, noise=0.5)[index]
    problem = problem_of(table, 6, {"sample_graph": "none", "feature_graph": "none"}, prior="falling", diagonal=True)
    _, state = run(problem, random_start(problem, 3), 8)
    moments = sum(
        np.diag(side.graph_moments(graph.precision)) / side.prior_variance[0]
        for side, graph in ((state.samples, state.sample_graph), (state.features, state.feature_graph))
    )
    assert np.all(np.diff(moments) <= 0)


@pytest.mark.parametrize("settings", [{}, {"noise": "samples"}], ids=str)
@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
@tied
def test_no_random_start_finds_a_higher_bound_on_an_easy_problem(make_table, prior, index, settings):
    table = make_table(n=40, p=30, rank=2, noise=0.3, seed=1)[index]
    graphs = {"sample_graph": "none", "feature_graph": "none"}
    model = LGMD(2, prior=prior, **graphs, **settings, tol=1e-9, max_iter=2000).fit(table)
    problem = problem_of(table / model.scale_, 2, graphs, prior=prior, **settings)
    others = [run(problem, random_start(problem, seed), 300)[0][-1] for seed in range(2)]
    # What one stops short of at 1e-9 nats an entry and iteration is far below 1e-5.
    assert model.history_.objective[-1] <= min(others) + 1e-5 * problem.data.n_observed


@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
def test_a_variance_for_each_column_has_the_higher_bound(make_table, index):
    table = make_table(n=40, p=30, rank=3, noise=0.3)[index]
    settings = {"sample_graph": "none", "feature_graph": "none", "tol": 1e-9, "max_iter": 2000}
    columns, shared, falling = (LGMD(3, prior=prior, **settings).fit(table) for prior in ("columns", *TIED))
    # Ties are special cases of no tie, and with three columns of about one size no bad ones.
    size = np.isfinite(table).sum()
    for tied_model in (shared, falling):
        assert 0 < tied_model.history_.objective[-1] - columns.history_.objective[-1] < 0.05 * size
        np.testing.assert_allclose(tied_model.reconstruct(), columns.reconstruct(), atol=0.2)


@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
def test_with_one_column_all_priors_are_the_same(make_table, make_precision, index):
    table = make_table(n=20, p=14, rank=1)[index]
    graphs = given_graphs(make_precision, True, 20, 14)
    columns, *others = (
        LGMD(1, prior=prior, **graphs, tol=1e-12, max_iter=3000).fit(table) for prior in ("columns", *TIED)
    )
    for other in others:
        for found, expected in zip(*(model.reconstruct(return_std=True) for model in (other, columns)), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-4)
        assert other.history_.objective[-1] == pytest.approx(columns.history_.objective[-1], abs=1e-6)


@pytest.mark.parametrize(("index", "with_graphs"), [(0, False), (0, True), (1, False), (1, True)])
@tied
def test_transposing_the_table_swaps_the_sides(make_table, make_precision, prior, index, with_graphs):
    table = make_table(n=18, p=13, noise=0.3)[index]
    graphs = given_graphs(make_precision, with_graphs, 18, 13)
    settings = {"n_components": 3, "prior": prior, "tol": 1e-13, "max_iter": 5000}
    model = LGMD(**graphs, **settings).fit(table)
    swapped = {"sample_graph": graphs["feature_graph"], "feature_graph": graphs["sample_graph"]}
    other = LGMD(**swapped, **settings).fit(table.T)
    # The two runs update the sides in opposite order and meet at the same optimum, to the root of tol; with gaps and
    # graphs equations are solved to 1e-6 of their right-hand sides.
    np.testing.assert_allclose(other.reconstruct().T, model.reconstruct(), atol=1e-4)
    np.testing.assert_allclose(np.abs(other.sample_factors_), np.abs(model.feature_factors_), atol=1e-3)
    np.testing.assert_allclose(np.abs(other.feature_factors_), np.abs(model.sample_factors_), atol=1e-3)


@quiet
@any_prior
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(
    ("index", "graphs"), [(0, {}), (1, {}), (1, {"sample_graph": "threshold", "feature_graph": "knn"})], ids=str
)
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(make_table, tmp_path, index, graphs, covariance, prior):
    table = make_table(n=30, p=20, noise=0.5)[index]
    path = tmp_path / "run.npz"
    model = LGMD(5, prior=prior, covariance=covariance, **graphs, tol=0.0, max_iter=10)
    whole = model.fit(table)
    objective, expected = whole.history_.objective, whole.reconstruct(return_std=True)

    def interrupt(progress):
        if progress.iteration == 5:
            raise KeyboardInterrupt

    assert model.fit(table, checkpoint=path, callback=interrupt).n_iter_ == 5
    resumed = model.fit(table, checkpoint=path)
    assert resumed.n_iter_ == len(objective)
    np.testing.assert_allclose(resumed.history_.objective, objective, rtol=1e-9)
    for found, value in zip(resumed.reconstruct(return_std=True), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-7)
    for side in (resumed.posterior_.samples, resumed.posterior_.features):
        if prior != "columns":
            assert_follow(side.prior_variance, prior)
    other = {"columns": "shared", "shared": "falling", "falling": "columns"}[prior]
    with pytest.raises(CheckpointError, match="other data or other settings"):
        model.set_params(prior=other).fit(table, checkpoint=path)


@any_prior
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("index", [0, 1], ids=["complete", "gaps"])
def test_a_loaded_model_is_the_saved_one(make_table, tmp_path, index, covariance, prior):
    table = make_table(n=20, p=16)[index]
    model = LGMD(3, prior=prior, covariance=covariance).fit(table)
    model.save(tmp_path / "model.npz")
    loaded = LGMD.load(tmp_path / "model.npz")
    assert loaded.prior == prior
    for side in ("samples", "features"):
        found, expected = (getattr(each.posterior_, side).prior_variance for each in (loaded, model))
        np.testing.assert_array_equal(found, expected)
        if prior != "columns":
            assert_follow(found, prior)
    for found, expected in zip(*(each.reconstruct(return_std=True) for each in (loaded, model)), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(loaded.transform(table), model.transform(table))


@any_prior
def test_fitted_rows_come_back_as_new_ones(make_table, prior):
    _, gappy = make_table(n=20, p=16, noise=0.5)
    graphs = {"sample_graph": "none", "feature_graph": "none"}
    model = LGMD(3, prior=prior, **graphs, tol=1e-12, max_iter=3000).fit(gappy)
    np.testing.assert_allclose(model.transform(gappy), model.sample_factors_, atol=1e-4)
    for found, expected in zip(
        model.reconstruct(gappy, return_std=True), model.reconstruct(return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_a_start_keeps_the_prior_it_was_asked_for(make_table):
    _, gappy = make_table()
    for prior in ("columns", *TIED):
        problem = replace(problem_of(gappy, 3, {"sample_graph": "none", "feature_graph": "none"}), prior=prior)
        states = []
        LGMD(3, prior=prior).fit(gappy, callback=lambda progress, kept=states: kept.append(progress.state))
        assert {state.law.name for state in states} == {prior}
        assert problem.T.prior == prior

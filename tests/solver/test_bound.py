"""Variational inference as a run: its bound is the stated one and never falls, it can be stopped and resumed."""

from dataclasses import astuple, dataclass, field
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from scipy.special import digamma, entr, expit, gammaln

from lgmd import DGRMD, LGMD, PMF
from lgmd.exceptions import CheckpointError, ConvergenceWarning
from lgmd.factors import InterceptTerms, NoiseModel, SidePosterior
from lgmd.factors.covariance import RowCovariances
from lgmd.factors.noise import Noise
from lgmd.factors.tails import Tails
from lgmd.graphs import ThresholdGraph, as_learner
from lgmd.linalg.packed import packed_size
from lgmd.observed import as_observed
from lgmd.solver import VariationalInference, VariationalState, variational_starter
from lgmd.solver.problem import FEATURES, SAMPLES

INTERCEPTS = ("none", "global", "samples", "features", "both")

NO_GRAPHS = {"sample_graph": "none", "feature_graph": "none"}

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def given_graphs(make_precision, sides, n, p):
    """Parameters of a model with fixed graphs on the named sides."""
    graphs = {"none": (), "samples": ("samples",), "features": ("features",), "both": ("samples", "features")}[sides]
    made = {"samples": make_precision(n, seed=1), "features": make_precision(p, seed=2)}
    return {f"{side[:-1]}_graph": made[side] for side in graphs}


def spoilt(table, parameters):
    """With gross errors for the likelihood that is made for them."""
    if parameters.get("likelihood") != "student":
        return table
    rng = np.random.default_rng(3)
    gross = 40 * np.nanstd(table) * rng.choice([-1.0, 1.0], table.shape)
    return np.where((rng.random(table.shape) < 0.04) & np.isfinite(table), gross, table)


def inference(table, k, *, intercept="both", noise="homoscedastic", likelihood="gaussian", diagonal=False, **graphs):
    """The problem below the estimators."""
    return VariationalInference(
        as_observed(table),
        k,
        InterceptTerms.parse(intercept),
        as_learner(graphs.get("sample_graph", "none"), "sample_graph"),
        as_learner(graphs.get("feature_graph", "none"), "feature_graph"),
        NoiseModel(noise, likelihood, 1e-10),
        diagonal,
    )


def random_start(problem, seed):
    """Normal numbers for all means: as far from any optimum as a start can be."""
    rng = np.random.default_rng(seed)
    k, data = problem.n_components, problem.data

    def side(n, has_intercepts):
        mean = rng.standard_normal((n, k + 1))
        mean[:, -1] *= has_intercepts
        certain = RowCovariances(np.zeros((1, packed_size(k + 1))), n)
        found = SidePosterior(mean, certain, float("nan"), np.ones(k), 1.0 if has_intercepts else None)
        return found.independent() if problem.diagonal else found

    n, p = data.shape
    by_rows = problem.noise.kind != "features"
    noise = Noise(np.full(n, 0.5 if by_rows else 1.0), np.full(p, 1.0 if by_rows else 0.5))
    if problem.noise.by_entries:
        noise = Noise(noise.samples, noise.features, Tails(4.0), np.ones(data.n_observed), np.ones(data.n_observed))
    return VariationalState(
        side(n, problem.intercepts.rows),
        side(p, problem.intercepts.columns),
        0.0,
        noise,
        problem.sample_learner.start(data, SAMPLES),
        problem.feature_learner.start(data.T, FEATURES),
    )


def run(problem, state, n_iter):
    """Objectives of so many iterations, and the last state."""
    iterate, objectives = problem.prepare(state), []
    for _ in range(n_iter):
        state, terms = iterate(state)
        objectives.append(sum(terms.values()))
    return np.array(objectives), state


def assert_never_rises(objective, n_observed):
    # Sums of n_observed numbers of size one are exact to some 1e-14 of their size; 1e-10 leaves room for the solves.
    size = np.maximum(np.abs(objective[:-1]), n_observed)
    assert np.all(np.diff(objective) <= 1e-10 * size)


@pytest.mark.parametrize("sides", ["none", "samples", "features", "both"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("likelihood", ["gaussian", "student"])
@pytest.mark.parametrize("noise", ["homoscedastic", "samples", "features"])
@pytest.mark.parametrize("with_gaps", [False, True])
def test_the_bound_never_falls_from_a_random_start(
    make_table, make_precision, with_gaps, noise, likelihood, covariance, sides
):
    table = make_table(n=19, p=14, noise=0.5)[int(with_gaps)] / 2
    graphs = given_graphs(make_precision, sides, 19, 14)
    for seed, intercept in enumerate(INTERCEPTS if sides in ("none", "both") else INTERCEPTS[2:]):
        settings = {"intercept": intercept, "noise": noise, "likelihood": likelihood}
        problem = inference(table, 5, diagonal=covariance == "diagonal", **settings, **graphs)
        objective, state = run(problem, random_start(problem, seed), 8)
        assert objective[0] - objective[-1] > 1.0  # there was something to climb
        assert_never_rises(objective, problem.data.n_observed)
        assert 1 <= state.samples.rank <= 5


@quiet
@pytest.mark.parametrize(
    ("index", "parameters"),
    [
        (0, {}),
        (1, {}),
        (0, {"noise": "features", "intercept": "global"}),
        (1, {"noise": "samples", "likelihood": "student"}),
        (1, {"covariance": "diagonal", "noise": "features"}),
        (0, {"prior": "shared"}),
        (1, {"prior": "shared", "noise": "samples"}),
        (1, {"prior": "columns"}),
    ],
)
def test_the_history_of_a_fit_never_rises(make_table, make_precision, index, parameters):
    table = spoilt(make_table(n=30, p=22, noise=0.5)[index], parameters)
    graphs = given_graphs(make_precision, "both", 30, 22)
    for given in ({}, graphs):
        model = LGMD(8, tol=0.0, max_iter=30, **parameters, **given).fit(table)
        assert (model.posterior_.noise.tails.gross_share > 0) == ("likelihood" in parameters)
        assert len(model.history_) > 2
        assert_never_rises(model.history_.objective, np.isfinite(table).sum())


@quiet
@pytest.mark.parametrize("noise", ["samples", "features"])
def test_a_diagonal_covariance_is_diagonal_from_the_first_iteration_on(make_table, noise):
    complete, _ = make_table(n=22, p=16, noise=0.5)
    model = LGMD(5, covariance="diagonal", noise=noise, intercept="both", tol=0.0, max_iter=20).fit(complete)
    # A wider family at first would show as a bound that falls when it is left.
    assert_never_rises(model.history_.objective, complete.size)


@quiet
def test_columns_that_die_on_the_way_do_not_lower_the_bound(make_table):
    _, gappy = make_table(n=40, p=30, rank=2, noise=0.5)
    problem = inference(gappy / np.nanstd(gappy), 12)
    objective, state = run(problem, random_start(problem, 0), 150)
    assert state.samples.rank < 12
    assert_never_rises(objective, problem.data.n_observed)


# The bound once more, from dense matrices.


def joint_covariance(side):
    """Of all rows' numbers, (n, d, n, d)."""
    n, d = side.mean.shape
    i, j = np.divmod(np.arange(n * n), n)
    return side.covariance.between(i, j).reshape(n, n, d, d).transpose(0, 2, 1, 3)


def dense_divergence(side, precision):
    """From the textbook's formula for two Gaussians, factors and intercepts together."""
    n, d = side.mean.shape
    prior = np.einsum("ij,ab->iajb", np.linalg.inv(precision.toarray()), np.diag(np.append(side.prior_variance, 0.0)))
    if side.intercept_variance is not None:
        prior[:, -1, :, -1] = side.intercept_variance * np.eye(n)
    present = np.tile(np.append(np.ones(d - 1, bool), side.intercept_variance is not None), n)
    prior = prior.reshape(n * d, n * d)[np.ix_(present, present)]
    posterior = joint_covariance(side).reshape(n * d, n * d)[np.ix_(present, present)]
    mean = side.mean.ravel()[present]
    inverse = np.linalg.inv(prior)
    logdets = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(posterior)[1]
    return 0.5 * (np.trace(inverse @ posterior) + mean @ inverse @ mean - len(mean) + logdets)


def expected_squares(table, state):
    """``E (y_ij - overall - u_i'v_j)^2`` with ``u = (x, a, 1)`` and ``v = (w, 1, b)``."""

    def moments(side, order):
        n, d = side.mean.shape
        mean = np.column_stack([side.mean, np.ones(n)])
        second = np.einsum("ia,ib->iab", mean, mean)
        rows = np.arange(n)
        second[:, :d, :d] += joint_covariance(side)[rows, :, rows, :]
        return mean[:, order], second[:, order][:, :, order]

    k = state.samples.rank
    u, uu = moments(state.samples, np.arange(k + 2))
    v, vv = moments(state.features, np.append(np.arange(k), [k + 1, k]))
    left = table - state.overall
    return left**2 - 2 * left * (u @ v.T) + np.einsum("iab,jab->ij", uu, vv)


def dense_loss(table, state):
    """Negative expected log-likelihood; for Student's, the divergence is added of what is known of the entries.

    These are weights with a Gamma posterior, and whether they are gross errors.
    """
    seen = ~np.isnan(table)
    variances = np.outer(state.noise.samples, state.noise.features)[seen]
    squares = expected_squares(table, state)[seen] / variances
    variances = variances * log_inflation(table, state.noise)[seen]
    nu, share, gross_variance = astuple(state.noise.tails)
    if np.isinf(nu):
        return 0.5 * np.sum(squares + np.log(2 * np.pi * variances))
    shape, rate = (nu + 1) / 2, (nu + squares) / 2
    weight, log_weight = shape / rate, digamma(shape) - np.log(rate)
    density = 0.5 * (log_weight - np.log(2 * np.pi * variances) - weight * squares)
    prior = nu / 2 * np.log(nu / 2) - gammaln(nu / 2) + (nu / 2 - 1) * log_weight - nu / 2 * weight
    entropy = shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape)
    good = density + prior + entropy + np.log1p(-share)
    if share == 0:
        return -np.sum(good)
    gross = np.log(share) - 0.5 * (np.log(2 * np.pi * gross_variance * variances) + squares / gross_variance)
    are_gross = expit(gross - good)
    entropy = entr(are_gross) + entr(1 - are_gross)
    return -np.sum((1 - are_gross) * good + are_gross * gross + entropy)


def gamma_posteriors(table, noise):
    """Shapes and rates of the precisions of rows, or of columns, whose expectations the noise holds; and which."""
    of_samples = np.ptp(noise.features) == 0
    counts = np.sum(~np.isnan(table), axis=int(of_samples))
    shapes = (counts + noise.prior.entries) / 2
    return shapes, shapes * (noise.samples if of_samples else noise.features), of_samples


def log_inflation(table, noise):
    """What turns variances, the inverses of expected precisions, into what has the expected logarithm."""
    if noise.prior is None:
        return np.ones(table.shape)
    shapes, _, of_samples = gamma_posteriors(table, noise)
    factor = np.exp(np.log(shapes) - digamma(shapes))
    return np.broadcast_to(factor[:, None] if of_samples else factor, table.shape)


def divergence_of_variances(table, noise):
    shapes, rates, _ = gamma_posteriors(table, noise)
    own = noise.prior.entries / 2
    rate = own * noise.prior.level
    logs = digamma(shapes) - np.log(rates)
    prior = own * np.log(rate) - gammaln(own) + (own - 1) * logs - rate * shapes / rates
    return float(np.sum(-scipy.stats.gamma.entropy(shapes, scale=1 / rates) - prior))


@quiet
@pytest.mark.parametrize("intercept", ["none", "both"])
@pytest.mark.parametrize("sides", ["none", "samples", "both"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"likelihood": "student"},
        {"noise": "samples"},
        {"noise": "features", "likelihood": "student"},
        {"covariance": "diagonal"},
        {"prior": "shared"},
        {"prior": "shared", "covariance": "diagonal", "noise": "features"},
    ],
)
@pytest.mark.parametrize("index", [0, 1])
def test_the_objective_is_the_negative_bound_with_dense_gaussians(
    make_table, make_precision, index, parameters, sides, intercept
):
    table = spoilt(make_table(n=12, p=10, rank=2, noise=0.1)[index], parameters)
    caught = []
    model = LGMD(2, intercept=intercept, tol=0.0, max_iter=4, **parameters)
    model.set_params(**given_graphs(make_precision, sides, 12, 10))
    model.fit(table, callback=lambda progress: caught.append((progress.record, progress.state)))
    # A column that has just been dropped counts in the terms and is missing from the state.
    whole = [now for before, now in pairwise(caught) if now[1].X.shape == before[1].X.shape]
    assert len(whole) >= 2
    assert all((state.noise.tails.gross_share > 0) == ("likelihood" in parameters) for _, state in whole)
    for record, state in whole:
        unit = table / model.scale_
        expected = {
            "fit": dense_loss(unit, state),
            "sample_divergence": dense_divergence(state.samples, state.sample_graph.precision),
            "feature_divergence": dense_divergence(state.features, state.feature_graph.precision),
            "noise_prior": 0.0,
        }
        if "noise" in parameters:
            expected["noise_prior"] = divergence_of_variances(table, state.noise)
        # No term is far larger than one an entry, so that double precision leaves ten digits after all the products.
        for name, value in expected.items():
            assert record.terms[name] == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert record.objective == pytest.approx(sum(expected.values()), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("prior", ["columns", "shared"])
@pytest.mark.parametrize(("index", "sides"), [(0, "none"), (0, "samples"), (1, "none"), (1, "samples")])
def test_at_convergence_the_rows_posterior_is_bayes_rule(make_table, make_precision, index, sides, prior):
    table = make_table(n=12, p=10, rank=2, noise=0.1)[index]
    states = []
    graphs = {**NO_GRAPHS, **given_graphs(make_precision, sides, 12, 10)}
    model = LGMD(2, prior=prior, tol=1e-13, max_iter=3000, **graphs)
    model.fit(table, callback=lambda progress: states.append(progress.state))
    state, unit, d = states[-1], table / model.scale_, 3
    samples, features = state.samples, state.features
    seen = ~np.isnan(table)
    design = np.column_stack([features.factors, np.ones(10)])
    spread = joint_covariance(features)[np.arange(10), :, np.arange(10), :]
    weights = 1 / np.outer(state.noise.samples, state.noise.features)
    precision = np.einsum(
        "ij,ab->iajb", state.sample_graph.precision.toarray(), np.diag(np.append(1 / samples.prior_variance, 0.0))
    )
    precision[:, -1, :, -1] += np.eye(12) / samples.intercept_variance
    right = np.zeros((12, d))
    for i, j in np.argwhere(seen):
        # What multiplies a row's unknowns is (w_j, 1), of which only w_j is uncertain, together with b_j.
        second, cross = np.outer(design[j], design[j]), features.intercepts[j] * design[j]
        second[:2, :2] += spread[j][:2, :2]
        cross[:2] += spread[j][:2, 2]
        precision[i, :, i, :] += weights[i, j] * second
        right[i] += weights[i, j] * ((unit[i, j] - state.overall) * design[j] - cross)
    full = precision.reshape(12 * d, 12 * d)
    # The last iteration moved the bound by less than 1e-13 an entry, hence the posterior by the root of that.
    np.testing.assert_allclose(samples.mean.ravel(), np.linalg.solve(full, right.ravel()), atol=1e-5)
    found = joint_covariance(samples)
    if index == 0:
        np.testing.assert_allclose(found.reshape(12 * d, 12 * d), np.linalg.inv(full), atol=1e-5)
    else:
        # With gaps rows are taken as independent; the best such posterior has the precision's own blocks.
        for i in range(12):
            np.testing.assert_allclose(found[i, :, i, :], np.linalg.inv(precision[i, :, i, :]), atol=1e-5)


# Graphs that are learned.


@dataclass(frozen=True)
class RecordingGraph(ThresholdGraph):
    """Keeps what it is shown."""

    shown: list = field(default_factory=list, compare=False, repr=False)

    def learn(self, moments, previous):
        self.shown.append((moments, previous))
        return super().learn(moments, previous)


@quiet
@pytest.mark.parametrize("parameters", [{}, {"likelihood": "student"}, {"noise": "features"}])
@pytest.mark.parametrize("index", [0, 1])
def test_the_bound_never_falls_between_steps_of_the_graphs(make_table, index, parameters):
    table = make_table(n=30, p=25, noise=0.5)[index]
    model = LGMD(4, sample_graph="threshold", feature_graph="threshold", tol=1e-9, max_iter=60, **parameters)
    history = model.fit(table).history_
    assert history.graph_steps.sum() == 3
    assert history.records[-1].sample_edges > 0
    starts = np.flatnonzero(history.graph_steps)
    for piece in np.split(history.objective, starts):
        assert_never_rises(piece, np.isfinite(table).sum())
    assert np.all(np.isnan(history.change[starts]))


@quiet
@pytest.mark.parametrize("parameters", [{}, {"covariance": "diagonal"}, {"likelihood": "student"}])
@pytest.mark.parametrize("index", [0, 1])
def test_learners_are_shown_factors_at_unit_prior_variance(make_table, index, parameters):
    table = make_table(n=30, p=25, noise=0.5)[index]
    for_rows, for_columns = RecordingGraph(density=0.1), RecordingGraph(density=0.1)
    ranks = []
    LGMD(6, sample_graph=for_rows, feature_graph=for_columns, **parameters).fit(
        table, callback=lambda progress: ranks.append(progress.state.samples.rank)
    )
    for learner, n in ((for_rows, 30), (for_columns, 25)):
        assert len(learner.shown) == 3
        for moments, previous in learner.shown:
            k = moments.mean.shape[1]
            assert moments.mean.shape == (n, k)
            assert k in ranks
            assert moments.variance.shape == (n,)
            assert np.all(moments.variance > 0)
            assert 0 < moments.effective_columns <= k
            assert moments.sample_size == moments.effective_columns
            i, j = np.triu_indices(n, 1)
            cross = moments.cross_covariance(i, j)
            np.testing.assert_allclose(moments.cross_covariance(j, i), cross, atol=1e-10)
            # Cauchy and Schwarz.
            assert np.all(np.abs(cross) <= np.sqrt(moments.variance[i] * moments.variance[j]) * (1 + 1e-6))
            assert moments.cross_covariance(i[:0], j[:0]).shape == (0,)
            if previous.n_edges == 0:
                assert not np.any(cross)
                # Without edges a prior variance is the mean of a column's expected squares.
                total = np.sum(moments.mean**2) + np.sum(moments.variance)
                assert total == pytest.approx(n * k, rel=1e-9)
            else:
                assert np.any(cross)


@quiet
@pytest.mark.parametrize("index", [0, 1])
def test_learners_can_ask_for_the_covariance_of_rows_that_a_graph_joins(make_table, index):
    table = make_table(n=20, p=15, missing=0.5, noise=1.0)[index]
    learner, states = RecordingGraph(density=0.1), []
    model = LGMD(3, sample_graph=learner, prior="shared", tol=1e-9)
    model.fit(table, callback=lambda progress: states.append((progress.record.graph_step, progress.state)))
    steps = [position for position, (graph_step, _) in enumerate(states) if graph_step]
    moments, previous = learner.shown[-1]
    state = states[steps[-1] - 1][1]  # what was there when the graph was last learned
    assert previous.n_edges > 0
    samples, features = state.samples, state.features
    k = samples.rank
    second = np.einsum("ja,jb->jab", *(2 * [np.column_stack([features.factors, np.ones(15)])]))
    second[:, :k, :k] += joint_covariance(features)[np.arange(15), :k, np.arange(15), :k]
    weights = (~np.isnan(table)) / np.outer(state.noise.samples, state.noise.features)
    scales = np.append(1 / samples.prior_variance, 0.0)
    precision = np.einsum("ij,ab->iajb", previous.precision.toarray(), np.diag(scales))
    rows = np.arange(20)
    precision[rows, :, rows, :] += np.einsum("ij,jab->iab", weights, second)
    precision[:, -1, :, -1] += np.eye(20) / samples.intercept_variance
    d = k + 1
    covariance = np.linalg.inv(precision.reshape(20 * d, 20 * d)).reshape(20, d, 20, d)
    expected = np.einsum("iaja,a->ij", covariance, scales)
    i, j = np.triu_indices(20, 1)
    largest = np.abs(expected[i, j]).max()
    assert largest > 1e-3
    # With gaps the question is answered for the state at hand; a complete table answers from its last update, which
    # is a step behind where the factors have settled to 1e-3 only.
    np.testing.assert_allclose(moments.cross_covariance(i, j), expected[i, j], atol=(1e-9 if index else 0.02) * largest)


# Ends of a run.


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_convergence_is_by_change_an_entry(make_table, tol):
    _, gappy = make_table(n=30, p=20, noise=0.5)
    model = LGMD(2, **NO_GRAPHS, tol=tol).fit(gappy)
    assert model.converged_
    changes = -np.diff(model.history_.objective) / np.isfinite(gappy).sum()
    np.testing.assert_allclose(model.history_.change[1:], changes, atol=1e-15)
    assert abs(changes[-1]) <= tol
    assert np.all(np.abs(changes[:-1]) > tol)
    with pytest.warns(ConvergenceWarning, match=r"stopped by max_iter after 2 iterations; the change per entry"):
        LGMD(8, **NO_GRAPHS, tol=0.0, max_iter=2).fit(gappy)


def interrupt_at(iteration):
    def callback(progress):
        if progress.iteration == iteration:
            raise KeyboardInterrupt

    return callback


@quiet
@pytest.mark.parametrize(
    ("index", "parameters"),
    [
        (1, {}),
        (0, {}),
        (1, {"likelihood": "student"}),
        (0, {"likelihood": "student", "noise": "features"}),
        (1, {"covariance": "diagonal", "noise": "samples"}),
        (1, {"sample_graph": "threshold", "feature_graph": "knn"}),
        (0, {"sample_graph": "threshold", "feature_graph": "knn"}),
    ],
)
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(make_table, tmp_path, index, parameters):
    table = spoilt(make_table(n=30, p=20, noise=0.5)[index], parameters)
    path = tmp_path / "run.npz"
    model = LGMD(5, tol=0.0, max_iter=12, **parameters)
    whole = model.fit(table)
    objective = whole.history_.objective
    assert (whole.posterior_.noise.tails.gross_share > 0) == ("likelihood" in parameters)
    expected = (*whole.reconstruct(return_std=True), astuple(whole.posterior_.noise.tails))
    for iteration in (2, 6):
        model.fit(table, checkpoint=path, callback=interrupt_at(iteration))
        assert model.n_iter_ == iteration
        assert model.status_ == "interrupted"
    resumed = model.fit(table, checkpoint=path)
    assert resumed.n_iter_ == 12
    np.testing.assert_allclose(resumed.history_.objective, objective, rtol=1e-9)
    for found, value in zip(
        (*resumed.reconstruct(return_std=True), astuple(resumed.posterior_.noise.tails)), expected, strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=1e-7)


@quiet
def test_a_checkpoint_of_another_inference_is_refused(make_table, tmp_path):
    _, gappy = make_table()
    path = tmp_path / "run.npz"
    LGMD(3, max_iter=3).fit(gappy, checkpoint=path)
    for parameters in (
        {"noise": "samples"},
        {"likelihood": "student"},
        {"covariance": "diagonal"},
        {"prior": "shared"},
        {"inference": "map"},
        {"intercept": "global"},
    ):
        with pytest.raises(CheckpointError, match="other data or other settings"):
            LGMD(3, max_iter=3, **parameters).fit(gappy, checkpoint=path)
    assert LGMD(3, max_iter=5, tol=0.0).fit(gappy, checkpoint=path).n_iter_ == 5


@pytest.mark.parametrize("parameters", [{}, {"likelihood": "student", "noise": "features"}])
@pytest.mark.parametrize("index", [0, 1])
def test_ctrl_c_leaves_a_usable_model_with_error_bars(make_table, index, parameters):
    table = make_table()[index]
    with pytest.warns(ConvergenceWarning, match=r"was interrupted after 3 iterations.*can be used"):
        model = LGMD(3, tol=0.0, **parameters).fit(table, callback=interrupt_at(3))
    assert model.status_ == "interrupted"
    assert model.n_iter_ == 3
    mean, std = model.reconstruct(return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    assert np.mean((np.abs(table - mean) < 3 * std)[~np.isnan(table)]) > 0.9
    assert model.sample_posterior(2, random_state=0).shape == (2, 14, 11)
    assert np.isfinite(model.score(table))


def test_a_callback_sees_the_posterior_and_can_stop(make_table):
    _, gappy = make_table()
    seen = []

    def stop_at_two(progress):
        state = progress.state
        seen.append((progress.record.objective, state.X.shape, state.W.shape, state.overall))
        return progress.iteration == 2

    model = LGMD(3, tol=0.0).fit(gappy, callback=stop_at_two)
    assert model.status_ == "stopped"
    np.testing.assert_array_equal([entry[0] for entry in seen], model.history_.objective)
    assert seen[-1][1:3] == ((14, model.rank_), (11, model.rank_))
    assert seen[-1][3] * model.scale_ == pytest.approx(model.intercept_)


# Where a run starts.


@quiet
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_complete_table_without_graphs_starts_at_its_solution(make_table, intercept):
    complete, _ = make_table(n=40, p=30, noise=0.5)
    # It is the solution for a prior variance a column; that for a variance that columns share is found by iterations.
    model = LGMD(8, **NO_GRAPHS, prior="columns", intercept=intercept, tol=0.0, max_iter=300).fit(complete)
    objective = model.history_.objective
    # Means and factors are found one after the other, which leaves them a little to settle between them.
    assert objective[0] - objective[-1] < (1e-8 if intercept == "none" else 2e-2) * complete.size
    # A start that is not analytic, from all variance as noise, has far more before it.
    problem = inference(complete / model.scale_, 8, intercept=intercept)
    far, _ = run(problem, random_start(problem, 0), 1)
    assert far[0] - objective[-1] > 0.1 * complete.size


def converged(problem, state):
    iterate, before = problem.prepare(state), np.inf
    for _ in range(2000):
        state, terms = iterate(state)
        objective = sum(terms.values())
        if before - objective < 1e-9 * problem.data.n_observed:
            break
        before = objective
    return objective


@pytest.mark.parametrize("parameters", [{}, {"likelihood": "student"}, {"noise": "samples"}])
@pytest.mark.parametrize("index", [0, 1])
def test_no_random_start_finds_a_higher_bound_on_an_easy_problem(make_table, index, parameters):
    table = make_table(n=40, p=30, rank=2, noise=0.3, seed=1)[index]
    model = LGMD(4, tol=1e-9, max_iter=2000, **parameters).fit(table)
    problem = inference(table / model.scale_, 4, **parameters)
    others = [converged(problem, random_start(problem, seed)) for seed in range(5)]
    # What one stops short of at 1e-9 nats an entry and iteration is far below 1e-5.
    assert model.history_.objective[-1] <= min(others) + 1e-5 * problem.data.n_observed


@pytest.mark.parametrize("parameters", [{}, {"likelihood": "student"}, {"noise": "samples"}])
@pytest.mark.parametrize("shape", [(300, 30), (30, 300)])
def test_a_start_from_a_sample_of_the_table_leads_to_the_same_bound(make_table, monkeypatch, shape, parameters):
    _, gappy = make_table(*shape, rank=2, missing=0.5, noise=0.5)
    # A sample may choose another prior than the whole; each choice has its own bound.
    model = LGMD(5, prior="columns", tol=1e-7, max_iter=500, random_state=0, **parameters)
    whole = model.fit(gappy).history_.objective
    monkeypatch.setattr(variational_starter, "_SAMPLE_ENTRIES", 1500)
    sampled = model.fit(gappy).history_.objective
    assert sampled[0] > whole[0] + 1  # most rows had nothing to start from
    assert_never_rises(sampled, np.isfinite(gappy).sum())
    assert sampled[-1] == pytest.approx(whole[-1], abs=1e-5 * np.isfinite(gappy).sum())


@pytest.mark.parametrize("model", [PMF(4, inference="variational"), DGRMD(4, inference="variational"), LGMD(4)])
def test_every_model_has_the_bound_as_its_history(make_table, model):
    _, gappy = make_table()
    history = model.fit(gappy).history_
    assert set(history.terms) == {"fit", "noise_prior", "sample_divergence", "feature_divergence"}
    assert_never_rises(history.objective, np.isfinite(gappy).sum())
    assert np.all(history.terms["sample_divergence"] > 0)
    assert np.all(history.terms["feature_divergence"] > 0)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    "parameters", [{}, {"likelihood": "student"}, {"noise": "samples"}, {"covariance": "diagonal"}]
)
def test_a_start_from_a_sample_ends_where_one_from_all_does(monkeypatch, wide, parameters):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((400, 4)) @ rng.standard_normal((4, 60)) + rng.standard_normal(60)
    table = truth + 0.3 * rng.standard_normal(truth.shape)
    table[rng.random(table.shape) < 0.5] = np.nan
    table, truth = (table.T, truth.T) if wide else (table, truth)
    settings = {"n_components": 8, "random_state": 0, "tol": 1e-6, "max_iter": 1000, **parameters}
    whole = LGMD(**settings).fit(table)
    monkeypatch.setattr(variational_starter, "_SAMPLE_ENTRIES", 4000)
    sampled = LGMD(**settings).fit(table)
    objective = sampled.history_.objective
    assert np.all(np.diff(objective) <= 1e-10 * np.isfinite(table).sum())
    if "covariance" not in parameters:  # independent numbers settle slowly, and where depends on the start
        # Runs that stop at a change of 1e-6 an entry have at most some hundred such changes left.
        assert objective[-1] == pytest.approx(whole.history_.objective[-1], abs=2e-4 * np.isfinite(table).sum())
        assert sampled.rank_ == whole.rank_ == 4
    errors = [np.sqrt(np.mean((model.reconstruct() - truth) ** 2)) for model in (sampled, whole)]
    assert errors[0] < 1.02 * errors[1]
    bars, bars_of_whole = (model.reconstruct(return_std=True)[1].mean() for model in (sampled, whole))
    if "covariance" in parameters:  # which makes bars too small; those of a whole table get what they lack
        assert 0.95 * bars_of_whole < bars < bars_of_whole
    else:
        assert bars == pytest.approx(bars_of_whole, rel=0.03)

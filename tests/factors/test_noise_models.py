"""Variances and weights against a search for the minimum, and against densities from scipy."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from scipy.special import digamma, gammaln, xlogy

from lgmd.factors import NOISES, Intercepts, Noise, NoiseModel, RowCovariances, SidePosterior, noise
from lgmd.factors.tails import Tails
from lgmd.factors.variances import VariancePrior
from lgmd.linalg.packed import pack
from lgmd.observed import as_observed

SHIFT = 0.3


@pytest.fixture
def data(make_table):
    _, gappy = make_table(n=12, p=9)
    return as_observed(gappy)


def counts(data):
    return data.row_counts.astype(float), data.T.row_counts.astype(float)


def expected_squares(data, rng):
    """Sums of expected squares of rows and of columns, as a posterior with unit variances would give them."""
    entries = np.where(np.isnan(table_of(data)), 0.0, rng.chisquare(3, data.shape) * rng.uniform(0.2, 3.0, (12, 1)))
    return entries, entries.sum(axis=1), entries.sum(axis=0)


def table_of(data):
    return data.fill(np.full(data.shape, np.nan))


def objective(model, data, entries, candidate):
    """What the variances are to make small, from the expected squares of single entries."""
    total = float(np.sum(entries / np.outer(candidate.samples, candidate.features)))
    return model.gaussian_loss(candidate, data, total) + model.prior_loss(candidate, data)


# Variances.


def test_the_gaussian_loss_is_the_negative_log_density_of_the_entries(data, rng):
    entries, *_ = expected_squares(data, rng)
    found = Noise(rng.uniform(0.5, 2.0, 12), rng.uniform(0.5, 2.0, 9))
    variances = np.outer(found.samples, found.features)
    densities = scipy.stats.norm.logpdf(np.sqrt(entries), scale=np.sqrt(variances))
    total = float(np.sum(entries / variances))
    expected = -densities[~np.isnan(table_of(data))].sum()
    assert NoiseModel().gaussian_loss(found, data, total) == pytest.approx(expected, rel=1e-12)


def test_one_variance_for_all_is_the_minimum_after_either_side(data, rng):
    entries, by_rows, by_columns = expected_squares(data, rng)
    model = NoiseModel("homoscedastic")
    start = model.start(data, 0.7)
    searched = scipy.optimize.minimize_scalar(
        lambda log: objective(model, data, entries, replace(start, samples=np.full(12, np.exp(log)))),
        bounds=(-5, 5),
        method="bounded",
        options={"xatol": 1e-9},
    )
    found = model.after_samples(start, by_rows, counts(data)[0])
    np.testing.assert_array_equal(found.samples, found.samples[0])
    np.testing.assert_array_equal(found.features, 1.0)
    # A search finds a minimum to the root of its rounding.
    assert np.log(found.samples[0]) == pytest.approx(searched.x, abs=1e-6)
    # The columns' half-step divides by the variance that the rows have.
    again, total = model.after_features(start, by_columns / 0.7, counts(data)[1])
    np.testing.assert_allclose(again.samples, found.samples, rtol=1e-12)
    assert total == pytest.approx(entries.sum() / found.samples[0], rel=1e-12)


@pytest.mark.parametrize("kind", ["samples", "features"])
def test_variances_of_single_rows_or_columns_and_where_they_come_from_are_at_the_minimum(kind, data, rng):
    entries, *_ = expected_squares(data, rng)
    entries = entries * np.exp(np.linspace(-1.5, 1.5, 12)[:, None] + np.linspace(-1.5, 1.5, 9))
    model, side = NoiseModel(kind), NOISES.index(kind) - 1
    size, squares, count = data.shape[side], entries.sum(axis=1 - side), counts(data)[side]

    def update(found):
        if kind == "samples":
            return model.after_samples(found, squares, count)
        return model.after_features(found, squares, count)[0]

    def loss(parameters):
        """Of the logarithms of variances, level and worth of the prior."""
        level, worth = np.exp(parameters[-2:])
        found = replace(model.start(data, 0.7), prior=VariancePrior(level, worth))
        return objective(model, data, entries, replace(found, **{kind: np.exp(parameters[:-2])}))

    def parameters(found):
        return np.log([*getattr(found, kind), found.prior.level, found.prior.entries])

    current = update(model.start(data, 0.7))
    losses = [loss(parameters(current))]
    for _ in range(60):
        current = update(current)
        losses.append(loss(parameters(current)))
    assert np.all(np.diff(losses) <= 1e-10)
    searched = scipy.optimize.minimize(loss, np.zeros(size + 2), method="BFGS", options={"gtol": 1e-6})
    # The worth of the prior is found to some per cent, where the objective is flat.
    assert losses[-1] <= searched.fun + 1e-2
    np.testing.assert_allclose(parameters(current)[:-1], searched.x[:-1], rtol=0, atol=0.03)
    assert parameters(current)[-1] == pytest.approx(searched.x[-1], abs=0.25)
    # The variances differ, and none of them is on its own.
    found, alone = getattr(current, kind), squares / count
    assert np.ptp(np.log(found)) > 0.1
    assert np.all((found - alone) * (current.prior.level - found) >= -1e-9)
    # While the prior is held, variances are at their minimum.
    searched = scipy.optimize.minimize(
        lambda logs: loss([*logs, *parameters(current)[-2:]]), np.zeros(size), method="BFGS", options={"gtol": 1e-8}
    )
    np.testing.assert_allclose(parameters(current)[:-2], searched.x, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("spread", "lowest", "highest"), [(0.0, 200.0, 1000.0), (0.5, 4.0, 16.0), (1.5, 1.0, 3.0)])
def test_the_prior_learns_how_much_variances_differ(spread, lowest, highest, rng):
    """Log-variances of a Gamma distribution with shape a have variance psi'(a): 2 / entries for many."""
    counts = np.full(400, 30.0)
    variances = 2.0 * np.exp(spread * rng.standard_normal(400))
    squares = variances * rng.chisquare(30, 400)
    prior = VariancePrior(0.3)
    for _ in range(40):
        prior = prior.fitted(squares, counts, 1e-9)
    assert lowest <= prior.entries <= highest
    found = prior.variances(squares, counts)
    assert np.std(np.log(found / variances)) < (0.05 if spread == 0 else 0.3)
    # Log-normal variances are not drawn from the prior; the quietest of them are taken for less so than they are.
    assert np.std(np.log(found / variances)) < 1.03 * np.std(np.log(squares / counts / variances))


@pytest.mark.parametrize("kind", ["samples", "features"])
def test_the_side_without_variances_of_its_own_leaves_the_noise_alone(kind, data, rng):
    entries, _, by_columns = expected_squares(data, rng)
    model = NoiseModel(kind)
    found = replace(model.start(data, 0.7), **{kind: rng.uniform(0.5, 2.0, data.shape[NOISES.index(kind) - 1])})
    if kind == "samples":
        over_variances = (entries / found.samples[:, None]).sum(axis=0)
        same, total = model.after_features(found, over_variances, counts(data)[1])
        assert total == pytest.approx(over_variances.sum(), rel=1e-12)
    else:
        same = model.after_samples(found, (entries / found.features).sum(axis=1), counts(data)[0])
        later, total = model.after_features(found, by_columns, counts(data)[1])
        assert total == pytest.approx(np.sum(by_columns / later.features), rel=1e-12)
        assert np.abs(later.features - found.features).max() > 0.01
    np.testing.assert_array_equal(same.samples, found.samples)
    np.testing.assert_array_equal(same.features, found.features)


def test_the_columns_of_a_table_are_the_rows_of_the_transposed_one(data, rng):
    _, by_rows, _ = expected_squares(data, rng)
    rows, columns = NoiseModel("samples"), NoiseModel("features")
    start = replace(rows.start(data, 0.7), samples=rng.uniform(0.5, 2.0, 12))
    found = rows.after_samples(start, by_rows, counts(data)[0])
    turned, total = columns.after_features(start.T, by_rows, counts(data)[0])
    np.testing.assert_array_equal(turned.features, found.samples)
    np.testing.assert_array_equal(turned.T.samples, found.samples)
    assert total == pytest.approx(np.sum(by_rows / found.samples), rel=1e-12)
    assert columns.prior_loss(turned, data.T) == rows.prior_loss(found, data) > 0
    assert turned.prior == found.prior
    assert columns.gaussian_loss(turned, data.T, total) == pytest.approx(rows.gaussian_loss(found, data, total))


@pytest.mark.parametrize("floor", [1e-9, 1e-2, 0.5])
def test_no_step_of_the_prior_raises_the_loss_also_with_variances_at_the_floor(floor, rng):
    for _ in range(60):
        counts = rng.integers(0, 30, 12).astype(float)
        squares = counts * 10.0 ** rng.uniform(-6, 1, 12) * (rng.random(12) < 0.8)
        prior = VariancePrior(max(floor, 10.0 ** rng.uniform(-3, 1)), rng.uniform(1, 50))
        losses = []
        for _ in range(8):
            losses.append(prior.loss(squares, counts, floor))
            prior = prior.fitted(squares, counts, floor)
        assert np.all(np.diff(losses) <= 1e-10 * np.abs(losses[0]))
        assert losses[-1] <= losses[0]


def test_the_spread_is_that_of_inverse_gamma_distributions():
    counts = np.array([0.0, 3.0, 20.0])
    # Shapes of 4, 5.5 and 14: the mean of an inverse Gamma distribution is its rate over one less than its shape.
    expected = [scipy.stats.invgamma(a, scale=a).mean() for a in (4.0, 5.5, 14.0)]
    np.testing.assert_allclose(VariancePrior(2.0, 8.0).spread(counts), expected)
    assert VariancePrior(2.0, 1.0).spread(counts)[0] == 3.0


def test_rows_without_noise_say_nothing_about_the_others(rng):
    counts = np.full(80, 25.0)
    squares = rng.uniform(0.5, 2.0, 80) * rng.chisquare(25, 80)
    squares[:12] = 0.0
    prior = VariancePrior(5.0)
    for _ in range(60):
        prior = prior.fitted(squares, counts, 1e-9)
    # An empty row is as noisy as others may be, and rows with many entries have their own.
    assert prior.level > 0.05
    assert prior.variances(squares, counts)[0] < 0.1 * np.median(squares[12:] / 25)


def test_transposing_twice_changes_nothing(rng):
    found = Noise(rng.random(3), rng.random(4), Tails(5.0), rng.random(6), rng.random(6))
    turned = found.T
    assert turned.tails == found.tails
    for one, other in (("samples", "features"), ("weights", "other_weights")):
        np.testing.assert_array_equal(getattr(turned, one), getattr(found, other))
        np.testing.assert_array_equal(getattr(turned, other), getattr(found, one))
        np.testing.assert_array_equal(getattr(turned.T, one), getattr(found, one))


@pytest.mark.parametrize("kind", NOISES)
def test_no_variance_falls_below_the_floor(kind, data):
    model = NoiseModel(kind, floor=1e-3)
    found = model.start(data, 0.7)
    for _ in range(100):
        found = model.after_samples(found, np.zeros(12), counts(data)[0])
        found, total = model.after_features(found, np.zeros(9), counts(data)[1])
    np.testing.assert_allclose(np.outer(found.samples, found.features), 1e-3, rtol=1e-12)
    assert total == 0.0
    # Round-off may make a sum of squares negative.
    found = model.after_samples(found, np.full(12, -1e-9), counts(data)[0])
    found, _ = model.after_features(found, np.full(9, -1e-9), counts(data)[1])
    np.testing.assert_allclose(np.outer(found.samples, found.features), 1e-3, rtol=1e-12)


def test_a_row_without_entries_is_at_the_common_level(rng):
    model = NoiseModel("samples")
    previous = Noise(rng.uniform(0.5, 2.0, 4), np.ones(3))
    found = model.after_samples(previous, np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 3.0, 3.0, 3.0]))
    assert found.samples[0] == pytest.approx(found.prior.level, rel=1e-12)
    assert found.samples[1] < found.samples[2] < found.samples[3]


def test_the_divergence_of_variances_is_that_of_gamma_distributions(rng):
    counts, variances, prior = rng.integers(0, 30, 5).astype(float), rng.uniform(0.5, 2.0, 5), VariancePrior(0.8, 6.0)
    total, expected_logs = 0.0, []
    for count, variance in zip(counts, variances, strict=True):
        shape = (count + 6.0) / 2
        own, before = scipy.stats.gamma(shape, scale=1 / (shape * variance)), scipy.stats.gamma(3.0, scale=1 / 2.4)
        total += own.expect(lambda x, own=own, before=before: own.logpdf(x) - before.logpdf(x))
        expected_logs.append(-own.expect(np.log))
    assert prior.divergence(variances, counts) == pytest.approx(total, rel=1e-6)
    np.testing.assert_allclose(prior.expected_log(variances, counts), expected_logs, rtol=1e-6, atol=1e-8)
    assert prior.divergence(np.full(3, 0.8), np.zeros(3)) == pytest.approx(0.0, abs=1e-12)
    data = as_observed(np.arange(16.0).reshape(4, 4))
    assert NoiseModel().prior_loss(Noise(np.ones(4), np.ones(4)), data) == 0.0


@pytest.mark.parametrize("kind", NOISES)
def test_optimism_counts_as_entries_without_error(kind, data, rng):
    model, optimism = NoiseModel(kind), 0.25
    _, by_rows, by_columns = expected_squares(data, rng)
    start = model.start(data, 0.7)
    believing = replace(start, optimism=optimism)
    assert believing.T.T.optimism == optimism

    def updated(noise, counts):
        return model.after_features(model.after_samples(noise, by_rows, counts[0]), by_columns, counts[1])[0]

    found, expected = updated(believing, counts(data)), updated(start, [1.25 * each for each in counts(data)])
    np.testing.assert_allclose(found.samples, expected.samples, rtol=1e-12)
    np.testing.assert_allclose(found.features, expected.features, rtol=1e-12)
    if found.prior is None:
        log_variances = np.log(np.outer(found.samples, found.features))[~np.isnan(table_of(data))].sum()
        added = model.prior_loss(found, data) - model.prior_loss(replace(found, optimism=0.0), data)
        assert added == pytest.approx(0.5 * optimism * log_variances, rel=1e-12)


@pytest.mark.parametrize("kind", NOISES)
def test_all_entries_start_with_the_same_variance(kind, data):
    found = NoiseModel(kind).start(data, 0.7)
    np.testing.assert_array_equal(np.outer(found.samples, found.features), np.full(data.shape, 0.7))
    assert found.degrees == np.inf
    assert len(found.weights) == len(found.other_weights) == 0
    assert not NoiseModel(kind).by_entries


# Weights of entries.


def sides(data, rng, spread=0.2, k=2):
    """Posteriors of both sides."""
    found = []
    for size in data.shape:
        roots = spread * rng.standard_normal((size, k + 1, k + 1))
        covariance = RowCovariances(pack(roots @ roots.transpose(0, 2, 1)), size)
        mean = rng.standard_normal((size, k + 1)).astype(data.dtype)
        found.append(SidePosterior(mean, covariance, float("nan"), np.ones(k), 1.0))
    return found


def scaled_squares(data, samples, features, found):
    """Expected square of every entry over its variance, in row order, by averages that are exact for quadratics."""

    def points(side, i):
        values, vectors = np.linalg.eigh(side.covariance.between(np.array([i]), np.array([i]))[0])
        root = (vectors * np.sqrt(len(values) * np.maximum(values, 0))).T
        mean = side.mean[i].astype(float)
        return np.concatenate([mean + root, mean - root])

    table, out = table_of(data).astype(float), []
    for i, j in np.argwhere(~np.isnan(table)):
        x, w = points(samples, i), points(features, j)
        predicted = x[:, :-1] @ w[:, :-1].T + x[:, -1:] + w[:, -1] + SHIFT
        out.append(np.mean((table[i, j] - predicted) ** 2) / (found.samples[i] * found.features[j]))
    return np.array(out)


def student_start(model, data, rng):
    """Noise with weights, and with variances of its own where the model has them."""
    found = model.start(data, 0.7, np.ones(data.n_observed, data.dtype))
    if model.kind == "homoscedastic":
        return found
    return replace(found, **{model.kind: rng.uniform(0.5, 2.0, data.shape[NOISES.index(model.kind) - 1])})


def log_variances(data, found):
    """Expected ones, of the observed entries."""
    seen = ~np.isnan(table_of(data))
    logs = np.log(np.outer(found.samples, found.features))
    if found.prior is not None:
        of_samples = np.ptp(found.features) == 0
        shapes = (seen.sum(axis=int(of_samples)) + found.prior.entries) / 2
        more = np.log(shapes) - digamma(shapes)
        logs = logs + (more[:, None] if of_samples else more)
    return logs[seen]


def densities(squares, tails):
    """Of good entries and of gross errors, each times its share, at the roots of the expected squares."""
    residuals, spread = np.sqrt(squares), np.sqrt(tails.gross_variance)
    good = (1 - tails.gross_share) * scipy.stats.t.pdf(residuals, tails.degrees)
    return good, tails.gross_share * scipy.stats.norm.pdf(residuals, scale=spread)


def expected_weights(squares, tails):
    good, gross = densities(squares, tails)
    weights = (tails.degrees + 1) / (tails.degrees + squares)
    return (good * weights + gross / tails.gross_variance) / (good + gross)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("kind", NOISES)
def test_weights_are_small_where_the_expected_square_is_large(kind, complete, make_table, rng):
    data = as_observed(make_table(n=12, p=9)[0 if complete else 1])
    model = NoiseModel(kind, "student")
    samples, features = sides(data, rng)
    start = student_start(model, data, rng)
    order = data.column_order()
    found, _ = model.reweighed(start, data, samples, features, SHIFT, order)
    squares = scaled_squares(data, samples, features, start)
    expected = expected_weights(squares, found.tails)
    assert expected.min() < 0.1 < 0.5 < expected.max()
    np.testing.assert_allclose(found.weights, expected, rtol=1e-10)
    by_cell = np.full(data.shape, np.nan)
    by_cell[~np.isnan(table_of(data))] = expected
    turned = by_cell.T
    np.testing.assert_allclose(found.other_weights, turned[~np.isnan(turned)], rtol=1e-10)
    np.testing.assert_array_equal(found.samples, start.samples)
    np.testing.assert_array_equal(found.features, start.features)
    np.testing.assert_array_equal(noise.student_weights(found, data, samples, features, SHIFT), found.weights)


def test_weights_have_the_precision_of_the_table(make_table, rng):
    data = as_observed(make_table(n=12, p=9)[1].astype(np.float32))
    model = NoiseModel(likelihood="student")
    samples, features = sides(data, rng)
    start = student_start(model, data, rng)
    found, _ = model.reweighed(start, data, samples, features, SHIFT, data.column_order())
    assert found.weights.dtype == found.other_weights.dtype == np.float32
    squares = scaled_squares(data, samples, features, start)
    # Residuals of a size of ten from sums of some numbers of that size, in single precision.
    np.testing.assert_allclose(found.weights, expected_weights(squares, found.tails), rtol=2e-5)


@pytest.mark.parametrize("kind", NOISES)
def test_the_student_loss_is_the_density_at_the_root_of_the_expected_square(kind, data, rng):
    model = NoiseModel(kind, "student")
    samples, features = sides(data, rng)
    start = student_start(model, data, rng)
    found, loss = model.reweighed(start, data, samples, features, SHIFT, data.column_order())
    squares = scaled_squares(data, samples, features, start)
    expected = np.log(np.sum(densities(squares, found.tails), axis=0)) - 0.5 * log_variances(data, found)
    assert loss == pytest.approx(-expected.sum(), rel=1e-10)


def test_the_student_loss_is_the_bound_with_posteriors_of_weights_and_of_gross_errors(data, rng):
    model = NoiseModel("samples", "student")
    samples, features = sides(data, rng)
    start = student_start(model, data, rng)
    found, loss = model.reweighed(start, data, samples, features, SHIFT, data.column_order())
    squares, logs, half = scaled_squares(data, samples, features, start), log_variances(data, start), found.degrees / 2
    share, variance = found.tails.gross_share, found.tails.gross_variance
    assert 0.01 < share <= 0.5

    def bound(shape, rate, are_gross):
        """Negative expected log-likelihood given what entries are, and the divergences of that from its prior."""
        mean, mean_log = shape / rate, digamma(shape) - np.log(rate)
        fit = 0.5 * (np.log(2 * np.pi) + logs - mean_log + mean * squares)
        prior = half * np.log(half) - gammaln(half) + (half - 1) * mean_log - half * mean
        good = fit - prior - scipy.stats.gamma.entropy(shape, scale=1.0 / rate) - np.log1p(-share)
        gross = 0.5 * (np.log(2 * np.pi * variance) + logs + squares / variance) - np.log(share)
        are_good = 1 - are_gross
        return float(
            np.sum(are_good * good + are_gross * gross + xlogy(are_good, are_good) + xlogy(are_gross, are_gross))
        )

    shape, rate = half + 0.5, half + squares / 2
    good, gross = densities(squares, found.tails)
    are_gross = gross / (good + gross)
    np.testing.assert_allclose(found.weights, (1 - are_gross) * shape / rate + are_gross / variance, rtol=1e-10)
    best = bound(shape, rate, are_gross)
    assert loss == pytest.approx(best, rel=1e-10)
    # No other posterior does better.
    for factor in (0.9, 1.1):
        assert bound(factor * shape, rate, are_gross) > best
        assert bound(shape, factor * rate, are_gross) > best
        assert bound(shape, rate, are_gross**factor) > best


# Starting weights and the spread of the bulk.


def test_the_first_look_of_a_gaussian_model_takes_the_table_as_it_is(data):
    assert NoiseModel().first_look(data, Intercepts.zero(data.shape, data.dtype)) == (1.0, None)


@pytest.mark.parametrize("with_gaps", [True, False])
def test_the_first_look_of_a_student_model_does_not_see_outliers(with_gaps, rng):
    table = 0.5 * rng.standard_normal((60, 50))
    outliers = rng.random(table.shape) < 0.05
    table[outliers] += 100.0
    if with_gaps:
        table[rng.random(table.shape) < 0.3] = np.nan
    data = as_observed(table)
    seen = ~np.isnan(table)
    variance, weights = NoiseModel(likelihood="student").first_look(data, Intercepts.zero(data.shape, data.dtype))
    # The median of 2000 numbers is known to three per cent, and outliers move it by as many of the bulk.
    assert variance == pytest.approx(0.25, rel=0.25)
    assert weights.shape == (seen.sum(),)
    assert np.all(weights[outliers[seen]] < 0.1)
    assert np.median(weights[~outliers[seen]]) > 0.8
    assert weights.max() <= 1.0
    started = NoiseModel(likelihood="student").start(data, variance, weights)
    by_cell = np.full(table.shape, np.nan)
    by_cell[seen] = started.weights
    np.testing.assert_array_equal(started.weights, weights)
    np.testing.assert_array_equal(started.other_weights, by_cell.T[seen.T])
    assert np.isfinite(started.degrees)


# Draws.


@pytest.mark.parametrize("degrees", [np.inf, 3.5, 1.0])
def test_drawn_noise_has_the_stated_scale_and_tails_and_no_gross_errors(degrees, rng):
    found = Noise(np.array([0.25, 4.0]), np.array([1.0, 9.0, 0.01]), Tails(degrees, gross_share=0.2))
    n_draws = 20_000
    drawn = np.stack([found.draw(np.array([[0], [1]]), np.arange(3), rng) for _ in range(n_draws)])
    assert drawn.shape == (n_draws, 2, 3)
    scales = np.sqrt(np.outer(found.samples, found.features))
    unit = (drawn / scales).reshape(n_draws, 6)
    law = scipy.stats.norm() if np.isinf(degrees) else scipy.stats.t(degrees)
    for column in unit.T:
        # Two over the root of the number of draws is exceeded once in 1500 times.
        assert scipy.stats.kstest(column, law.cdf).statistic < 2.0 / np.sqrt(n_draws)
    # Entries are drawn apart from each other: the signs of two agree in half of the draws.
    agreement = np.mean(np.sign(unit[:, :, None]) * np.sign(unit[:, None, :]), axis=0) - np.eye(6)
    assert np.abs(agreement).max() < 4.5 / np.sqrt(n_draws)


def test_drawn_noise_goes_with_the_positions_it_is_asked_for(rng):
    found = Noise(np.array([1e-8, 1.0]), np.array([1.0, 1e4]))
    drawn = found.draw(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), rng)
    assert drawn.shape == (4,)
    # Standard deviations 1e-4, 1e-2, 1 and 100, five of them at most and a thousandth at least.
    assert np.all(np.abs(drawn) < 5 * np.array([1e-4, 1e-2, 1.0, 100.0]))
    assert np.all(np.abs(drawn) > 1e-3 * np.array([1e-4, 1e-2, 1.0, 100.0]))

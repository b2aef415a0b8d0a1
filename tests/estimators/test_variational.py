"""What users get from variational inference: error bars, draws, scores, the rank, and noise that is not the same
everywhere."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats

from lgmd import DGRMD, LGMD, PMF, LGMDImputer, metrics
from lgmd._archive import read_archive, write_archive
from lgmd.exceptions import ConvergenceWarning, InvalidDataError, InvalidParameterError, ModelFileError
from lgmd.graphs import KNNGraph

#: Standard deviations either side that hold 90 % of a Gaussian.
BAR = scipy.stats.norm.ppf(0.95)

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def model_table(n, p, rank, noise, missing, seed):
    """The truth, what is seen of it with noise, and which of that is hidden: drawn from the model itself."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    truth += 2.0 + rng.standard_normal((n, 1)) + rng.standard_normal(p)
    noisy = truth + noise * rng.standard_normal((n, p))
    return truth, noisy, rng.random((n, p)) < missing


def rmse(first, second):
    return float(np.sqrt(np.mean(np.square(first - second))))


# Error bars.


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"covariance": "diagonal"},
        {"likelihood": "student"},
        {"noise": "samples"},
        {"sample_graph": "knn", "feature_graph": "knn"},
    ],
)
@pytest.mark.parametrize("index", [0, 1])
def test_every_door_gives_the_same_error_bars(make_table, index, parameters):
    table = make_table(n=20, p=16)[index]
    model = LGMD(3, **parameters).fit(table)
    mean, std = model.reconstruct(return_std=True)
    assert mean.shape == std.shape == (20, 16)
    assert np.all(np.isfinite(std))
    assert np.all(std**2 > noise_of_entries(model))  # no entry is known better than its noise
    np.testing.assert_array_equal(model.reconstruct(), mean)
    rows, columns = np.arange(20)[:, None], np.arange(16)
    predicted = model.predict(rows, columns, return_std=True)
    np.testing.assert_allclose(predicted[0], mean, rtol=1e-10)
    np.testing.assert_allclose(predicted[1], std, rtol=1e-10)
    one, its_std = model.predict(3, 4, return_std=True)
    assert (one.shape, its_std.shape) == ((), ())
    assert its_std == pytest.approx(std[3, 4], rel=1e-10)
    assert [each.shape for each in model.predict([], [], return_std=True)] == [(0,), (0,)]


def variance_of_the_mean(model):
    """What is unknown of each entry besides its noise, from the covariances of rows and columns, (n, p)."""
    samples, features = model.posterior_.samples, model.posterior_.features

    def parts(side):
        every = np.arange(len(side.mean))
        return np.column_stack([side.factors, np.ones(len(every))]), side.covariance.between(every, every)

    (x, C), (w, D) = parts(samples), parts(features)
    variance = np.einsum("ja,iab,jb->ij", w, C, w) + np.einsum("ia,jab,ib->ij", x, D, x)
    variance += np.einsum("iab,jab->ij", C[:, :-1, :-1], D[:, :-1, :-1])
    return model.scale_**2 * variance


def noise_of_entries(model):
    noise, n, p = model.posterior_.noise, len(model.sample_factors_), len(model.feature_factors_)
    # Expected variances of learned precisions are larger than the inverse of what these are expected to be.
    spread = np.outer(np.broadcast_to(noise.sample_spread, n), np.broadcast_to(noise.feature_spread, p))
    return spread * np.outer(model.sample_noise_variance_, model.feature_noise_variance_) / model.noise_variance_


@pytest.mark.parametrize(
    "parameters",
    [{}, {"noise": "features"}, {"covariance": "diagonal"}, {"sample_graph": "knn"}, {"intercept": "none"}],
)
@pytest.mark.parametrize("index", [0, 1])
def test_the_error_bar_of_an_entry_is_the_stated_sum(make_table, index, parameters):
    table = make_table(n=20, p=16)[index]
    model = LGMD(3, **parameters).fit(table)
    std = model.reconstruct(return_std=True)[1]
    np.testing.assert_allclose(std**2, variance_of_the_mean(model) + noise_of_entries(model), rtol=1e-9)


@pytest.mark.parametrize("parameters", [{}, {"covariance": "diagonal"}, {"likelihood": "student"}])
@pytest.mark.parametrize("index", [0, 1])
def test_fitted_rows_come_back_as_new_ones(make_table, index, parameters):
    table = make_table(n=20, p=16, noise=0.5)[index]
    # Independent numbers settle slowly: nothing balances their columns.
    tol = 1e-9 if "covariance" in parameters else 1e-11
    model = LGMD(3, tol=tol, max_iter=3000, **parameters)
    model.fit(table)
    factors, std = model.transform(table, return_std=True)
    assert factors.shape == std.shape == (20, model.rank_)
    assert np.all(std > 0)
    np.testing.assert_array_equal(model.transform(table), factors)
    # Where the bound has settled to 1e-11 an entry, factors have to the root of that.
    atol = 30 * np.sqrt(tol)
    np.testing.assert_allclose(factors, model.sample_factors_, atol=atol)
    mean, bars = model.reconstruct(table, return_std=True)
    np.testing.assert_allclose(mean, model.reconstruct(), atol=atol)
    assert bars.shape == (20, 16)
    if "covariance" not in parameters:
        # New rows know how their numbers hang together.
        np.testing.assert_allclose(bars, model.reconstruct(return_std=True)[1], rtol=1e-3)
    np.testing.assert_allclose(model.reconstruct(table[4:5], return_std=True)[1], bars[4:5], rtol=1e-6)


@pytest.mark.parametrize("intercept", ["none", "features", "both"])
@pytest.mark.parametrize("form", ["complete", "gaps"])
def test_new_rows_have_bayes_posterior_given_the_columns(make_table, make_precision, form, intercept):
    table = make_table(n=20, p=12, noise=0.5)[int(form == "gaps")]
    model = LGMD(3, sample_graph=make_precision(20), noise="features", intercept=intercept).fit(table)
    posterior, k = model.posterior_, model.rank_
    assert model.sample_prior_variance_ != pytest.approx(1.0, abs=0.01)
    features, unit = posterior.features, table[:5] / model.scale_
    design = np.column_stack([features.factors, np.ones(12)])
    spread = features.covariance.between(np.arange(12), np.arange(12))
    # A row that nothing ties to others has the marginal variance of the graph.
    prior = np.append(1 / (posterior.samples.prior_variance * model.sample_prior_variance_), 0.0)
    active = np.arange(k + 1 if intercept == "both" else k)
    if intercept == "both":
        prior[-1] = 1 / posterior.samples.intercept_variance
    factors, std = model.transform(table[:5], return_std=True)
    mean = model.reconstruct(table[:5])
    for row, found, bars, filled in zip(unit, factors, std, mean, strict=True):
        precision, right = np.diag(prior), np.zeros(k + 1)
        for j in np.flatnonzero(~np.isnan(row)):
            second, cross = np.outer(design[j], design[j]), features.intercepts[j] * design[j]
            second[:k, :k] += spread[j][:k, :k]
            cross[:k] += spread[j][:k, k]
            weight = 1 / posterior.noise.features[j]
            precision += weight * second
            right += weight * ((row[j] - posterior.overall) * design[j] - cross)
        covariance = np.linalg.inv(precision[np.ix_(active, active)])
        unknowns = np.zeros(k + 1)
        unknowns[active] = covariance @ right[active]
        root = np.sqrt(model.scale_)
        np.testing.assert_allclose(found, unknowns[:k] * root, atol=1e-8)
        np.testing.assert_allclose(bars, np.sqrt(np.diag(covariance)[:k]) * root, rtol=1e-8)
        expected = model.scale_ * (design @ unknowns + features.intercepts + posterior.overall)
        np.testing.assert_allclose(filled, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("shape", "rank", "noise", "missing"),
    [((150, 120), 4, 1.0, 0.5), ((150, 100), 5, 0.3, 0.7), ((200, 100), 3, 2.0, 0.4)],
)
def test_nine_in_ten_hidden_entries_lie_inside_their_90_percent_bars(shape, rank, noise, missing):
    inside = []
    for seed in range(3):
        _, noisy, hidden = model_table(*shape, rank, noise, missing, seed)
        mean, std = LGMD(10).fit(np.where(hidden, np.nan, noisy)).reconstruct(return_std=True)
        inside.append((np.abs(noisy - mean) < BAR * std)[hidden])
    inside = np.concatenate(inside)
    # More than 20,000 entries: chance alone moves the share by 0.2 %.
    assert len(inside) > 20_000
    assert 0.87 < np.mean(inside) < 0.93


def test_students_bars_are_for_what_students_noise_does():
    inside = []
    for seed in range(3):
        truth, _, hidden = model_table(150, 120, 4, 0.0, 0.5, seed)
        noisy = truth + 0.7 * np.random.default_rng(seed).standard_t(4, truth.shape)
        mean, std = LGMD(8, likelihood="student").fit(np.where(hidden, np.nan, noisy)).reconstruct(return_std=True)
        inside.append((np.abs(noisy - mean) < BAR * std)[hidden])
    # 92 % of t with four degrees lie within 1.645 standard deviations; 27,000 entries.
    assert 0.87 < np.mean(np.concatenate(inside)) < 0.93


@pytest.mark.parametrize("noise", ["homoscedastic", "samples"])
def test_bars_for_new_rows_hold_what_is_hidden_of_them(noise):
    inside = []
    for seed in range(3):
        truth, _, hidden = model_table(300, 60, 3, 0.0, 0.5, seed)
        rng = np.random.default_rng(seed)
        spread = np.full(300, 0.7) if noise == "homoscedastic" else np.exp(rng.uniform(np.log(0.1), np.log(2.0), 300))
        noisy = truth + spread[:, None] * rng.standard_normal(truth.shape)
        table = np.where(hidden, np.nan, noisy)
        mean, std = LGMD(8, noise=noise).fit(table[:150]).reconstruct(table[150:], return_std=True)
        inside.append((np.abs(noisy[150:] - mean) < BAR * std)[hidden[150:]])
    # Some 13,500 entries: 0.3 % by chance.
    assert 0.87 < np.mean(np.concatenate(inside)) < 0.93


def test_rows_of_which_less_is_known_have_wider_bars():
    _, noisy, hidden = model_table(80, 60, 3, 0.5, 0.2, 0)
    table = np.where(hidden, np.nan, noisy)
    table[3] = np.nan
    table[3, 7] = noisy[3, 7]
    table[5] = np.nan
    with pytest.raises(InvalidDataError, match=r"Row 5 has no observed entry"):
        LGMD(8).fit(table)
    model = LGMD(8, allow_empty=True).fit(table)
    mean, std = model.reconstruct(return_std=True)
    others = np.setdiff1d(np.arange(80), [3, 5])
    assert np.all(std[3, np.arange(60) != 7] > 1.5 * np.median(std[others], axis=0)[np.arange(60) != 7])
    assert np.all(std[5] > std[3])
    # Nothing is known of an empty row but how entries of a column spread; 80 entries tell that to 10 %.
    spread = np.nanstd(table, axis=0)
    np.testing.assert_allclose(std[5], spread, rtol=0.35)
    assert np.mean(std[5] / spread) == pytest.approx(1.0, abs=0.1)
    # Its prediction is what columns have in common.
    assert rmse(mean[5], np.nanmean(table, axis=0)) < 0.3 * np.std(noisy)
    # Rows that come later are no different.
    later, later_std = model.reconstruct(table[[3, 5]], return_std=True)
    np.testing.assert_allclose(later, mean[[3, 5]], atol=1e-3)
    np.testing.assert_allclose(later_std, std[[3, 5]], rtol=1e-3)


def test_empty_columns_have_the_widest_bars():
    _, noisy, _ = model_table(60, 40, 3, 0.5, 0.0, 1)
    table = noisy.copy()
    table[:, 4] = np.nan
    std = LGMD(6, allow_empty=True).fit(table).reconstruct(return_std=True)[1]
    assert np.median(std[:, 4]) > 2 * np.median(np.delete(std, 4, axis=1))


def test_more_data_narrows_the_bars():
    _, noisy, _ = model_table(120, 90, 3, 0.5, 0.0, 0)
    order = np.random.default_rng(1).random(noisy.shape)
    unknown = []
    for share in (0.2, 0.4, 0.8):
        model = LGMD(6).fit(np.where(order < share, noisy, np.nan))
        std = model.reconstruct(return_std=True)[1]
        unknown.append(np.mean(std**2) - model.noise_variance_)
    # Twice the entries halve what is not noise, and better: with few, factors of both sides are unknown at once.
    assert unknown[0] > 2 * unknown[1] > 4 * unknown[2] > 0


# Draws.


@pytest.mark.parametrize(
    ("index", "parameters"),
    [
        (0, {}),
        (1, {}),
        (1, {"covariance": "diagonal"}),
        (1, {"noise": "features"}),
        (0, {"sample_graph": "knn", "feature_graph": "knn"}),
    ],
)
def test_draws_have_the_stated_mean_and_spread(make_table, index, parameters):
    table = make_table(n=14, p=10, noise=1.0)[index]
    model = LGMD(2, **parameters).fit(table)
    mean, std = model.reconstruct(return_std=True)
    n_draws = 2000
    draws = model.sample_posterior(n_draws, noise=True, random_state=0)
    assert draws.shape == (n_draws, 14, 10)
    # A mean of 2000 is off by std / 45, a variance by 3.2 %, a little more where products of two Gaussians matter; of
    # 140 entries none lies five times as far off.
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 5 * std / np.sqrt(n_draws))
    np.testing.assert_allclose(draws.var(axis=0), std**2, rtol=5 * 1.2 * np.sqrt(2 / n_draws))
    assert np.mean(draws.var(axis=0) / std**2) == pytest.approx(1.0, abs=0.03)
    without = model.sample_posterior(n_draws, random_state=0)
    assert np.mean(without.var(axis=0) / variance_of_the_mean(model)) == pytest.approx(1.0, abs=0.05)


def test_draws_of_students_noise_have_the_stated_spread():
    truth, _, _ = model_table(40, 30, 2, 0.0, 0.0, 0)
    table = truth + np.random.default_rng(1).standard_t(6, truth.shape)
    model = LGMD(3, likelihood="student", prior="columns").fit(table)
    assert 5 < model.posterior_.noise.degrees < 30
    draws = model.sample_posterior(400, noise=True, random_state=0)
    mean, std = model.reconstruct(return_std=True)
    # With tails so heavy the variance of 400 draws is off by some 15 %, the mean of 1200 of them by 0.5 %.
    assert np.mean(draws.var(axis=0) / std**2) == pytest.approx(1.0, abs=0.03)
    assert rmse(draws.mean(axis=0), mean) < 2 * np.mean(std) / np.sqrt(400)


def test_draws_of_a_row_hang_together(make_table):
    _, gappy = make_table(n=14, p=10, noise=1.0)
    gappy[4, 1:] = np.nan
    draws = LGMD(2).fit(gappy).sample_posterior(2000, random_state=0)
    # What is unknown of a row with one entry moves all its entries, its factors some up and some down; other rows do
    # not follow.
    correlations = np.abs(np.corrcoef(draws[:, 4].T, draws[:, 9].T))
    within, between = (block[np.triu_indices(10, 1)] for block in (correlations[:10, :10], correlations[:10, 10:]))
    assert within.mean() > 0.3
    assert between.mean() < 0.05  # 2000 draws: 0.02 by chance


def test_draws_of_chosen_entries_repeat_with_their_seed(make_table):
    _, gappy = make_table()
    model = LGMD(3).fit(gappy)
    whole = model.sample_posterior(3, random_state=7)
    rows, columns = np.array([[0], [5]]), np.array([2, 4, 10])
    chosen = model.sample_posterior(3, rows, columns, random_state=7)
    assert chosen.shape == (3, 2, 3)
    np.testing.assert_array_equal(model.sample_posterior(3, rows, columns, random_state=7), chosen)
    np.testing.assert_array_equal(model.sample_posterior(3, random_state=7), whole)
    assert not np.allclose(model.sample_posterior(3, random_state=8), whole)
    assert not np.allclose(whole[0], whole[1])
    assert model.sample_posterior(random_state=np.random.RandomState(0)).shape == (1, 14, 11)
    assert model.sample_posterior(2, 3, 4).shape == (2,)
    with pytest.raises(InvalidParameterError, match="rows and columns go together"):
        model.sample_posterior(2, rows=[0])
    with pytest.raises(InvalidParameterError, match="n_draws must be at least 1, but is 0"):
        model.sample_posterior(0)
    with pytest.raises(InvalidDataError, match="columns must be between 0 and 10, but 11 is among them"):
        model.sample_posterior(1, [0], [11])


def test_draws_of_chosen_entries_have_the_joint_distribution_of_the_whole_table(make_table):
    _, gappy = make_table()
    model = LGMD(3).fit(gappy)
    rows, columns = np.array([0, 0, 5, 5]), np.array([2, 4, 2, 4])
    chosen = model.sample_posterior(4000, rows, columns, random_state=1)
    whole = model.sample_posterior(4000, random_state=2)[:, rows, columns]
    # Standard errors of means and covariances of 4000 draws, four and a half of them.
    spread = np.cov(whole.T)
    sd = np.sqrt(np.diag(spread))
    assert np.all(np.abs(chosen.mean(axis=0) - whole.mean(axis=0)) < 4.5 * sd * np.sqrt(2 / 4000))
    # Products of Gaussian numbers have fourth moments of their own: twice the Gaussian error.
    allowed = 9 * np.outer(sd, sd) * np.sqrt(2 * 2 / 4000)
    assert np.all(np.abs(np.cov(chosen.T) - spread) < allowed)
    correlation = spread / np.outer(sd, sd)
    assert correlation[0, 1] > 0.05 or correlation[0, 2] > 0.05  # entries of a row or column hang together


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("index", [0, 1])
def test_one_gross_outlier_of_any_size_is_seen_through(make_table, size, index):
    table = make_table(n=60, p=40)[index]
    truth = make_table(n=60, p=40, noise=0.0)[0]
    clean = LGMD(6, likelihood="student").fit(table)
    spoilt = table.copy()
    spoilt[0, 0] = size
    model = LGMD(6, likelihood="student").fit(spoilt)
    assert model.rank_ == clean.rank_
    assert model.noise_std_ < 1.5 * clean.noise_std_
    errors = [np.median(np.abs(each.reconstruct() - truth)) for each in (model, clean)]
    assert errors[0] < 1.2 * errors[1]


# A graph.


@pytest.mark.parametrize("exact", [True, False])
def test_bars_of_thin_rows_under_a_graph_are_wide_enough(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("lgmd.factors.coupling.DENSE_UNKNOWNS", 0)
    rng = np.random.default_rng(3)
    n, p = 200, 60
    steps = np.diag(np.ones(n - 1), 1)
    chain = np.diag((steps + steps.T).sum(axis=0) + 0.05) - steps - steps.T
    X = np.linalg.cholesky(np.linalg.inv(chain)) @ rng.standard_normal((n, 4))
    truth = X @ rng.standard_normal((4, p))
    noisy = truth + 0.3 * truth.std() * rng.standard_normal((n, p))
    seen = rng.random((n, p)) < 0.5
    thin = rng.permutation(n)[:30]
    seen[thin] = False
    seen[thin, rng.integers(0, p, 30)] = True
    model = LGMD(6, sample_graph=chain).fit(np.where(seen, noisy, np.nan))
    mean, std = model.reconstruct(return_std=True)
    inside = np.abs(noisy - mean) < 1.645 * std
    # Entries of a row share its error: 30 rows say their coverage to some four in a hundred.
    assert inside[thin][~seen[thin]].mean() > 0.8
    assert 0.86 < inside[~seen].mean() < 0.94
    full = np.setdiff1d(np.arange(n), thin)
    assert std[thin].mean() > 1.5 * std[full].mean()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_are_drawn_together_also_after_a_file_or_a_copy(dtype, tmp_path):
    """More unknowns than are factored at once, some rows with hardly an entry in a precise table."""
    rng = np.random.default_rng(0)
    n, p = 700, 30
    X = np.cumsum(rng.standard_normal((n, 3)), axis=0)
    table = X / X.std(axis=0) @ rng.standard_normal((3, p)) + 0.003 * rng.standard_normal((n, p))
    table[rng.random((n, p)) < 0.3] = np.nan
    table[100:140] = np.nan
    table[100:140:4, 0] = 1.0
    steps = scipy.sparse.diags_array(np.full(n - 1, 30.0), offsets=1)
    chain = scipy.sparse.diags_array(np.asarray((steps + steps.T).sum(axis=0)) + 0.1) - steps - steps.T
    model = LGMD(3, sample_graph=chain, feature_graph="none", prior="columns", max_iter=15, allow_empty=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table.astype(dtype))
    draws = model.sample_posterior(200, np.arange(110, 130), 5, random_state=0)
    _, bars = model.predict(np.arange(110, 130), 5, return_std=True)
    spread = draws.std(axis=0)
    # Two hundred draws say a standard deviation to a twentieth; the bars of so many rows come from draws too.
    np.testing.assert_allclose(spread, np.sqrt(bars**2 - model.noise_variance_), rtol=0.5)
    correlations = np.corrcoef(draws.T)
    assert np.diag(correlations, 1).mean() > 0.5
    model.save(tmp_path / "model.npz")
    for again in (LGMD.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.sample_posterior(200, np.arange(110, 130), 5, random_state=0), draws)


@pytest.mark.parametrize("kind", ["samples", "features"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bound_never_falls_where_variances_reach_their_floor(kind, dtype):
    rng = np.random.default_rng(1)
    table = rng.standard_normal((25, 2)) @ rng.standard_normal((2, 18))
    table[rng.random(table.shape) < 0.2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LGMD(2, noise=kind, prior="columns", tol=1e-10, max_iter=60, sample_graph="none", feature_graph="none")
        model.fit(table.astype(dtype))
    changes = np.diff(model.history_.objective)
    # Sums of some hundred terms of size ten in double precision, or of squares that are differences in single.
    assert changes.max() < (1e-7 if dtype == np.float64 else 1e-2)
    assert metrics.rmse(np.nan_to_num(table), np.nan_to_num(model.reconstruct()), where=~np.isnan(table)) < 1e-3


def test_rows_and_new_rows_with_hardly_an_entry_are_noisy_though_some_rows_are_constant():
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 30))
    noisy = truth + 0.5 * rng.standard_normal(truth.shape)
    noisy[:12] = rng.standard_normal((12, 1))
    noisy[40] = np.nan
    model = LGMD(4, noise="samples", allow_empty=True, sample_graph="none", feature_graph="none").fit(noisy)
    assert model.sample_noise_variance_[:12].max() < 0.01 < model.sample_noise_variance_[40]
    new = truth[rng.integers(12, 80, 200)]
    seen = new + 0.5 * rng.standard_normal(new.shape)
    few = np.full(new.shape, np.nan)
    few[:, :3] = seen[:, :3]
    mean, std = model.reconstruct(few, return_std=True)
    inside = np.abs(seen - mean)[:, 3:] < 1.645 * std[:, 3:]
    assert inside.mean() > 0.75


# Scores.


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("parameters", [{}, {"noise": "features"}, {"likelihood": "student"}])
def test_the_score_is_the_mean_log_density_of_hidden_entries(parameters, form):
    _, noisy, hidden = model_table(30, 25, 2, 0.5, 0.4, 0)
    outliers = np.random.default_rng(1).random(noisy.shape) < 0.03
    table = noisy + 8 * outliers
    model = LGMD(5, **parameters).fit(np.where(hidden, np.nan, table))
    rows, columns = np.nonzero(hidden)
    mean, std = model.predict(rows, columns, return_std=True)
    if "likelihood" in parameters:
        tails = model.posterior_.noise.tails
        # Three per cent of 450 seen entries.
        assert 0.005 < tails.gross_share < 0.06
        scale = np.sqrt(variance_of_the_mean(model) + noise_of_entries(model))[hidden]
        good = scipy.stats.t.pdf(table[hidden], tails.degrees, mean, scale)
        gross_scale = np.sqrt(variance_of_the_mean(model) + tails.gross_variance * noise_of_entries(model))[hidden]
        gross = scipy.stats.norm.pdf(table[hidden], mean, gross_scale)
        expected = np.log((1 - tails.gross_share) * good + tails.gross_share * gross)
    else:
        expected = scipy.stats.norm.logpdf(table[hidden], mean, std)
    held_out = np.where(hidden, table, np.nan)
    if form == "sparse":
        held_out = scipy.sparse.coo_array((table[hidden], (rows, columns)), shape=table.shape)
    assert model.score(held_out) == pytest.approx(np.mean(expected), rel=1e-9)


def test_a_better_model_scores_higher():
    _, noisy, hidden = model_table(60, 50, 4, 0.5, 0.4, 0)
    table, held_out = np.where(hidden, np.nan, noisy), np.where(hidden, noisy, np.nan)
    scores = [LGMD(k).fit(table).score(held_out) for k in (1, 2, 8)]
    assert scores[0] + 0.1 < scores[1] < scores[2] - 0.1
    # A point estimate is as sure of a thin row as of a full one.
    assert scores[2] > PMF(8).fit(table).score(held_out) + 0.1


def test_the_score_of_a_point_estimate_has_the_noise_alone():
    _, noisy, hidden = model_table(30, 25, 2, 0.5, 0.4, 0)
    model = PMF(3).fit(np.where(hidden, np.nan, noisy))
    expected = scipy.stats.norm.logpdf(noisy[hidden], model.reconstruct()[hidden], np.sqrt(model.noise_variance_))
    assert model.score(np.where(hidden, noisy, np.nan)) == pytest.approx(np.mean(expected), rel=1e-9)


@pytest.mark.parametrize("inference", ["variational", "map"])
def test_the_score_wants_a_table_of_the_fitted_shape(make_table, inference):
    complete, gappy = make_table()
    model = LGMD(3, inference=inference).fit(gappy)
    with pytest.raises(InvalidDataError, match=r"table to score is 13 x 11, but the fitted one is 14 x 11"):
        model.score(complete[:-1])
    with pytest.raises(ValueError, match="10 features"):
        model.score(complete[:, :-1])


def test_point_estimates_refuse_error_bars_and_draws(make_table):
    _, gappy = make_table()
    model = LGMD(3, inference="map").fit(gappy)
    message = r'return_std=True needs a posterior, but inference="map" gives a point estimate.*Fit with inference="vari'
    for ask in (
        lambda: model.reconstruct(return_std=True),
        lambda: model.reconstruct(gappy, return_std=True),
        lambda: model.predict(0, 0, return_std=True),
        lambda: model.transform(gappy, return_std=True),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            ask()
    with pytest.raises(InvalidParameterError, match="sample_posterior needs a posterior"):
        model.sample_posterior()
    assert np.isfinite(model.score(gappy))


def test_a_model_fitted_anew_by_map_forgets_its_posterior(make_table):
    _, gappy = make_table()
    model = LGMD(3).fit(gappy)
    fresh = LGMD(3, inference="map").fit(gappy)
    model.set_params(inference="map").fit(gappy)
    assert set(vars(model)) == set(vars(fresh))
    np.testing.assert_array_equal(model.reconstruct(), fresh.reconstruct())


# Noise.


@pytest.mark.parametrize("index", [0, 1])
def test_noise_by_rows_and_by_columns_finds_which_are_noisy(index):
    rng = np.random.default_rng(3)
    truth, _, hidden = model_table(80, 60, 3, 0.0, 0.3, 0)
    spread = np.exp(rng.uniform(np.log(0.1), np.log(2.0), 80))
    noisy = truth + spread[:, None] * rng.standard_normal(truth.shape)
    held_out = np.where(hidden, noisy, np.nan)
    table = noisy if index == 0 else np.where(hidden, np.nan, noisy)
    by_rows, by_columns = LGMD(8, noise="samples").fit(table), LGMD(8, noise="features").fit(table.T)
    plain = LGMD(8).fit(table)
    # Each variance is known from some 40 entries, to 22 %, beside a range of 400.
    found = (by_rows.sample_noise_variance_, by_columns.feature_noise_variance_)
    for variances in found:
        assert np.corrcoef(np.log(variances), np.log(spread))[0, 1] > 0.93
    np.testing.assert_allclose(found[0], found[1], rtol=0.05)
    assert by_rows.feature_noise_variance_ == pytest.approx(np.full(60, by_rows.noise_variance_))
    assert by_rows.noise_variance_ == pytest.approx(np.mean(found[0]))
    # Entries of quiet rows are predicted as such, and noisy rows do not spoil the columns.
    if index == 1:
        assert by_rows.score(held_out) > plain.score(held_out) + 0.3
        assert by_columns.score(held_out.T) > plain.score(held_out) + 0.3
        inside = np.abs(noisy - by_rows.reconstruct()) < BAR * by_rows.reconstruct(return_std=True)[1]
        assert 0.86 < np.mean(inside[hidden]) < 0.93
    assert rmse(by_rows.reconstruct(), truth) < 0.75 * rmse(plain.reconstruct(), truth)
    assert rmse(by_columns.reconstruct().T, truth) < 0.75 * rmse(plain.reconstruct(), truth)


def test_noise_that_is_the_same_everywhere_is_found_to_be():
    _, noisy, _ = model_table(80, 60, 3, 0.5, 0.0, 0)
    plain = LGMD(6).fit(noisy)
    for model in (LGMD(6, noise="samples").fit(noisy), LGMD(6, noise="features").fit(noisy)):
        assert model.noise_variance_ == pytest.approx(0.25, rel=0.1)
        np.testing.assert_allclose(model.reconstruct(), plain.reconstruct(), atol=0.2)
    assert plain.noise_variance_ == pytest.approx(0.25, rel=0.1)
    np.testing.assert_array_equal(plain.sample_noise_variance_, np.full(80, plain.sample_noise_variance_[0]))
    assert plain.sample_noise_variance_[0] == pytest.approx(plain.noise_variance_)


@pytest.fixture(scope="module")
def with_outliers():
    """Truth, what is seen of it, the same with 5 % gross outliers, and which entries are hidden."""
    truth, noisy, hidden = model_table(100, 80, 3, 0.3, 0.3, 0)
    rng = np.random.default_rng(1)
    gross = rng.choice([-1.0, 1.0], truth.shape) * rng.uniform(5, 20, truth.shape) * np.std(truth)
    return truth, noisy, np.where(rng.random(truth.shape) < 0.05, gross, noisy), hidden


@pytest.mark.parametrize("with_gaps", [False, True])
def test_students_likelihood_stands_outliers(with_outliers, with_gaps):
    truth, noisy, dirty, hidden = with_outliers
    gaps = hidden if with_gaps else np.zeros_like(hidden)
    # A prior for each column finds the rank with outliers and without; "auto" may see little between the two priors.
    clean, robust, plain = (
        LGMD(8, likelihood=likelihood, prior="columns").fit(np.where(gaps, np.nan, table))
        for table, likelihood in ((noisy, "student"), (dirty, "student"), (dirty, "gaussian"))
    )
    errors = [rmse(model.reconstruct(), truth) for model in (clean, robust, plain)]
    assert errors[1] < 1.1 * errors[0]
    assert errors[2] > 4 * errors[1]
    # Without outliers a column may stay that says next to nothing.
    assert robust.rank_ in (3, 4)
    assert clean.rank_ in (3, 4)
    # The variance is that of what is no outlier.
    assert robust.noise_variance_ == pytest.approx(0.09, rel=0.5)


def test_the_share_of_gross_errors_says_whether_there_are_outliers(with_outliers):
    _, noisy, dirty, _ = with_outliers
    share = np.mean(dirty != noisy)
    robust = LGMD(6, likelihood="student").fit(dirty)
    # Good entries are told apart from them, and are Gaussian as they are without.
    assert robust.posterior_.noise.tails.gross_share == pytest.approx(share, rel=0.2)
    assert robust.posterior_.noise.degrees > 20
    clean = LGMD(6, likelihood="student").fit(noisy)
    assert clean.posterior_.noise.tails.gross_share < 0.1 * share
    assert clean.posterior_.noise.degrees > 50
    # Without outliers it is the Gaussian model.
    np.testing.assert_allclose(clean.reconstruct(), LGMD(6).fit(noisy).reconstruct(), atol=0.02)


def test_new_rows_find_their_own_outliers(with_outliers):
    truth, noisy, dirty, _ = with_outliers
    model = LGMD(6, likelihood="student").fit(dirty[:70])
    clean = LGMD(6, likelihood="student").fit(noisy[:70])
    assert rmse(model.reconstruct(dirty[70:]), truth[70:]) < 1.5 * rmse(clean.reconstruct(noisy[70:]), truth[70:])
    assert rmse(LGMD(6).fit(noisy[:70]).reconstruct(dirty[70:]), truth[70:]) > 1.0


@pytest.mark.parametrize("noise", ["homoscedastic", "samples"])
def test_outliers_of_new_rows_do_not_make_all_their_entries_look_like_ones(noise):
    """Good entries of little noise lie many scales off as long as outliers pull at a row."""
    truth, noisy, hidden = model_table(350, 60, 5, 0.02, 0.6, 0)
    rng = np.random.default_rng(1)
    size = 10 * truth.std() * rng.choice([-1.0, 1.0], truth.shape)
    dirty = np.where(rng.random(truth.shape) < 0.05, size, noisy)
    model = LGMD(8, likelihood="student", noise=noise).fit(dirty[:150])
    assert model.posterior_.noise.tails.gross_share == pytest.approx(0.05, abs=0.02)
    found = model.reconstruct(np.where(hidden, np.nan, dirty)[150:])
    errors = np.sqrt(np.mean((found - truth[150:]) ** 2, axis=1)) / truth.std()
    # Some 24 entries tell eight numbers, and one or two of them are outliers.
    assert np.median(errors) < 0.05
    assert np.mean(errors > 0.5) < 0.01


# The rank, and tables at the edge.


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_the_rank_is_found(missing):
    for seed in range(4):
        _, noisy, hidden = model_table(100, 80, 5, 0.7, missing, seed)
        model = LGMD(15).fit(np.where(hidden, np.nan, noisy))
        assert abs(model.rank_ - 5) <= 1
        assert model.sample_factors_.shape == (100, model.rank_)
        assert model.feature_factors_.shape == (80, model.rank_)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_pure_noise_has_no_rank(missing):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noise = 5 + rng.standard_normal((60, 40))
        model = LGMD(10).fit(np.where(rng.random(noise.shape) < missing, np.nan, noise))
        assert model.rank_ <= 1
        mean, std = model.reconstruct(return_std=True)
        # The mean of 40 or 60 noisy entries is off by 0.15; of a column that fits noise more is left.
        assert rmse(mean, 5.0) < 0.2
        np.testing.assert_allclose(std, 1.0, atol=0.1)


@pytest.mark.parametrize("parameters", [{}, {"likelihood": "student"}, {"noise": "features"}])
@pytest.mark.parametrize("with_gaps", [False, True])
def test_exactly_low_rank_data_stays_finite(rng, with_gaps, parameters):
    truth = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
    gaps = (rng.random(truth.shape) < 0.3) & with_gaps
    model = LGMD(5, max_iter=400, **parameters).fit(np.where(gaps, np.nan, truth))
    mean, std = model.reconstruct(return_std=True)
    np.testing.assert_allclose(mean, truth, atol=1e-4)
    assert 0 < model.noise_variance_ < 1e-6
    assert np.all((std > 0) & (std < 1e-2))
    assert np.all(np.isfinite(model.history_.objective))
    assert np.isfinite(model.score(truth))
    new, new_std = model.reconstruct(np.where(gaps, np.nan, truth)[:3], return_std=True)
    np.testing.assert_allclose(new, truth[:3], atol=1e-3)
    assert np.all((new_std > 0) & (new_std < 1e-2))


@quiet
@pytest.mark.parametrize("parameters", [{}, {"likelihood": "student", "noise": "samples"}, {"intercept": "none"}])
@pytest.mark.parametrize(
    "table",
    [
        np.full((12, 9), 7.5),
        np.zeros((12, 9)),
        np.where(np.eye(12, 9) > 0, np.nan, 7.5),
        np.array([[1.0, 2.0], [3.0, 5.0]]),
        np.array([[1.0, np.nan], [2.0, 3.0]]),
        np.arange(12.0)[:, None] + np.arange(9.0),
    ],
    ids=["constant", "zero", "constant with gaps", "2 x 2", "2 x 2 with a gap", "sum of means"],
)
def test_tables_without_anything_to_learn_stay_finite(table, parameters):
    model = LGMD(2, **parameters).fit(table)
    mean, std = model.reconstruct(return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std) & (std > 0))
    assert np.nanmax(np.abs(mean - table)) <= np.nanmax(np.abs(table)) * (1 + 1e-6)
    assert np.all(np.isfinite(model.sample_posterior(2, noise=True, random_state=0)))
    assert np.isfinite(model.score(table))
    if table.shape == (12, 9):
        np.testing.assert_allclose(mean, np.nan_to_num(table, nan=7.5), atol=0.01)


@quiet
@pytest.mark.parametrize("shape", [(50, 2), (2, 50)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_thin_tables_stay_finite(rng, shape, missing):
    table = rng.standard_normal(shape)
    table[rng.random(shape) < missing] = np.nan
    model = LGMD(2, allow_empty=True).fit(table)
    mean, std = model.reconstruct(return_std=True)
    assert np.all(np.isfinite(mean))
    # The bars of noise are as wide as it is, or a little less where a factor fits some of it.
    assert 0.5 < np.median(std) < 1.5
    assert model.rank_ <= 2


@pytest.mark.parametrize("factor", [1e-150, 1e-12, -3.0, 1e12, 1e150])
@pytest.mark.parametrize(
    ("index", "parameters"), [(0, {}), (1, {}), (1, {"likelihood": "student", "noise": "samples"})]
)
def test_the_unit_of_the_data_scales_the_bars(make_table, factor, index, parameters):
    table = make_table(n=20, p=16)[index]
    model, rescaled = LGMD(3, **parameters).fit(table), LGMD(3, **parameters).fit(table * factor)
    mean, std = model.reconstruct(return_std=True)
    found, bars = rescaled.reconstruct(return_std=True)
    np.testing.assert_allclose(found / factor, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(bars / abs(factor), std, rtol=1e-6)
    assert rescaled.predict(2, 3, return_std=True)[1] == pytest.approx(bars[2, 3], rel=1e-9)
    np.testing.assert_allclose(rescaled.reconstruct(table * factor, return_std=True)[1], bars, rtol=0.2)
    draws = rescaled.sample_posterior(2, noise=True, random_state=0) / factor
    assert np.all(np.abs(draws - mean) < 100 * std)
    assert rescaled.score(table * factor) == pytest.approx(model.score(table) - np.log(abs(factor)), rel=1e-6)


@quiet
@pytest.mark.parametrize(
    ("parameters", "swapped"),
    [
        ({}, {}),
        ({"likelihood": "student"}, {"likelihood": "student"}),
        ({"noise": "samples"}, {"noise": "features"}),
        ({"intercept": "features"}, {"intercept": "samples"}),
    ],
)
@pytest.mark.parametrize("with_graphs", [False, True])
@pytest.mark.parametrize("index", [0, 1])
def test_transposing_the_table_swaps_the_sides(make_table, make_precision, index, with_graphs, parameters, swapped):
    table = make_table(n=18, p=13, noise=0.3)[index]
    A, B = (make_precision(18, seed=1), make_precision(13, seed=2)) if with_graphs else ("none", "none")
    shared = {"n_components": 3, "tol": 1e-11, "max_iter": 1000}
    model = LGMD(sample_graph=A, feature_graph=B, **parameters, **shared).fit(table)
    other = LGMD(sample_graph=B, feature_graph=A, **swapped, **shared).fit(table.T)
    # The two runs update the sides in opposite order and meet at the same optimum, to the root of tol. The degrees of
    # freedom are sought to three digits.
    size = np.isfinite(table).sum()
    assert other.history_.objective[-1] == pytest.approx(model.history_.objective[-1], abs=1e-6 * size)
    (mean, std), (other_mean, other_std) = model.reconstruct(return_std=True), other.reconstruct(return_std=True)
    np.testing.assert_allclose(other_mean.T, mean, atol=1e-3)
    np.testing.assert_allclose(other_std.T, std, rtol=1e-3)
    assert other.rank_ == model.rank_


@pytest.mark.parametrize("parameters", [{}, {"noise": "features"}, {"likelihood": "student"}])
@pytest.mark.parametrize("index", [0, 1])
def test_single_precision_is_close_to_double(make_table, index, parameters):
    table = make_table(n=30, p=20, noise=0.3)[index]
    double, single = LGMD(3, tol=1e-6, **parameters), LGMD(3, tol=1e-6, **parameters)
    mean, std = double.fit(table).reconstruct(return_std=True)
    found, bars = single.fit(table.astype(np.float32)).reconstruct(return_std=True)
    assert single.converged_
    for array in (
        found,
        bars,
        *single.predict([1], [2], return_std=True),
        *single.transform(table.astype(np.float32), return_std=True),
        single.sample_posterior(1),
        single.sample_factors_,
    ):
        assert array.dtype == np.float32
    # Where one of them takes an iteration more: the root of tol.
    np.testing.assert_allclose(found, mean, atol=5e-3)
    np.testing.assert_allclose(bars, std, rtol=1e-2)
    size = np.isfinite(table).sum()
    assert single.history_.objective[-1] == pytest.approx(double.history_.objective[-1], abs=1e-4 * size)


# Settings.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inference": "gibbs"}, "inference must be one of 'variational', 'map', but is 'gibbs'"),
        ({"noise": "rows"}, "noise must be one of 'homoscedastic', 'samples', 'features', but is 'rows'"),
        ({"likelihood": "poisson"}, "likelihood must be one of 'gaussian', 'student', but is 'poisson'"),
        ({"covariance": "sparse"}, "covariance must be one of 'auto', 'full', 'diagonal', but is 'sparse'"),
        ({"update": "cg"}, """update='cg' belongs to inference="map". Use that, or leave update="auto"."""),
        (
            {"inference": "map", "likelihood": "student"},
            """likelihood='student' needs inference="variational".*or likelihood='gaussian'""",
        ),
        (
            {"inference": "map", "noise": "samples"},
            """noise='samples' needs inference="variational".*or noise='homoscedastic'""",
        ),
    ],
)
@pytest.mark.parametrize("model", [LGMD(3), PMF(3, inference="variational"), DGRMD(3, inference="variational")])
def test_settings_that_make_no_sense_are_refused(make_table, model, parameters, message):
    before = model.get_params()
    with pytest.raises(InvalidParameterError, match=message):
        model.set_params(**parameters).fit(make_table()[0])
    assert not hasattr(model, "sample_factors_")
    model.set_params(**before)


@pytest.mark.parametrize("index", [0, 1])
def test_a_diagonal_covariance_is_near_the_full_one(index):
    truth, noisy, hidden = model_table(80, 60, 3, 0.5, 0.3, 0)
    table = np.where(hidden, np.nan, noisy) if index else noisy
    full, diagonal = LGMD(6, covariance="full").fit(table), LGMD(6, covariance="diagonal", max_iter=500).fit(table)
    automatic = LGMD(6).fit(table)
    np.testing.assert_array_equal(automatic.reconstruct(), full.reconstruct())
    errors = [rmse(model.reconstruct(), truth) for model in (full, diagonal)]
    assert errors[1] < 1.1 * errors[0]
    assert diagonal.rank_ == full.rank_ == 3
    ratio = diagonal.reconstruct(return_std=True)[1] / full.reconstruct(return_std=True)[1]
    assert 0.8 < ratio.min() <= ratio.max() < 1.2
    # Independent numbers are a special case: their bound cannot be better.
    assert diagonal.history_.objective[-1] > full.history_.objective[-1] - 1e-4 * np.isfinite(table).sum()


def test_pmf_and_dgrmd_are_lgmd_with_their_graphs(make_table):
    _, gappy = make_table(n=20, p=16)
    for first, second in (
        (PMF(3, inference="variational"), LGMD(3, sample_graph="none", feature_graph="none")),
        (
            DGRMD(3, inference="variational", n_neighbors=4, ridge=0.2),
            LGMD(3, sample_graph=KNNGraph(4, 0.2), feature_graph=KNNGraph(4, 0.2)),
        ),
    ):
        for found, expected in zip(
            first.fit(gappy).reconstruct(return_std=True), second.fit(gappy).reconstruct(return_std=True), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        assert first.score(gappy) == second.score(gappy)
    assert LGMD().inference == "variational"


def test_storage_does_not_matter(make_table):
    _, gappy = make_table(n=20, p=16)
    seen = ~np.isnan(gappy)
    rows, columns = np.nonzero(seen)
    model = LGMD(3)
    expected = model.fit(gappy).reconstruct(return_std=True)
    new = model.transform(gappy, return_std=True)
    for form in (
        scipy.sparse.coo_array((gappy[seen], (rows, columns)), shape=gappy.shape),
        np.ma.masked_array(np.nan_to_num(gappy), ~seen),
        pd.DataFrame(gappy),
    ):
        for found, value in zip(model.fit(form).reconstruct(return_std=True), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-9)
        for found, value in zip(model.transform(form, return_std=True), new, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-9)
    frame = pd.DataFrame(gappy, index=[f"r{i}" for i in range(20)], columns=[f"c{j}" for j in range(16)])
    model.fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert np.isfinite(model.score(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.score(frame.rename(columns={"c0": "other"}))


# Files.


@pytest.mark.parametrize(
    ("index", "model"),
    [
        (1, LGMD(3)),
        (0, LGMD(3)),
        (1, LGMD(3, covariance="diagonal")),
        (1, LGMD(3, likelihood="student", noise="samples")),
        (0, LGMD(3, sample_graph="knn", feature_graph="knn")),
        (0, DGRMD(3, inference="variational", likelihood="student")),
        (1, PMF(3, inference="variational", intercept="none")),
    ],
)
def test_a_loaded_model_has_the_posterior_of_the_saved_one(make_table, tmp_path, index, model):
    complete, gappy = make_table(n=20, p=16)
    table = (complete, gappy)[index]
    path = tmp_path / "model.npz"
    model.fit(table).save(path)
    loaded = type(model).load(path)

    def answers(each):
        return (
            *each.reconstruct(return_std=True),
            *each.predict([0, 3], [1, 4], return_std=True),
            *each.transform(gappy, return_std=True),
            *each.reconstruct(gappy[:3], return_std=True),
            each.sample_posterior(2, noise=True, random_state=3),
            each.score(complete),
            each.history_.objective,
            each.sample_noise_variance_,
            each.feature_noise_variance_,
            each.noise_variance_,
        )

    for found, expected in zip(answers(loaded), answers(model), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert loaded.get_params()["likelihood"] == model.likelihood


def test_a_file_whose_posterior_does_not_fit_is_refused(make_table, tmp_path):
    path = tmp_path / "model.npz"
    LGMD(3).fit(make_table()[1]).save(path)
    header, arrays = read_archive(path)
    without = {**header, "fitted": {name: value for name, value in header["fitted"].items() if name != "posterior_"}}
    write_archive(path, without, arrays)
    with pytest.raises(ModelFileError, match="posterior"):
        LGMD.load(path)
    names = [name for name in arrays if name.startswith("posterior_.")]
    assert len(names) == 8
    for name in names:
        write_archive(path, header, {**arrays, name: arrays[name][:2]})
        with pytest.raises(ModelFileError, match="posterior"):
            LGMD.load(path)


def test_a_loaded_imputer_keeps_its_error_bars(make_table, tmp_path):
    _, gappy = make_table()
    path = tmp_path / "imputer.npz"
    imputer = LGMDImputer(LGMD(3)).fit(gappy)
    imputer.save(path)
    for found, expected in zip(
        LGMDImputer.load(path).transform(gappy, return_std=True), imputer.transform(gappy, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


# The imputer.


@pytest.mark.parametrize("as_frame", [False, True])
def test_the_imputer_says_how_sure_it_is(as_frame):
    _, noisy, hidden = model_table(60, 40, 3, 0.5, 0.3, 0)
    gappy = np.where(hidden, np.nan, noisy)
    table = pd.DataFrame(gappy) if as_frame else gappy
    imputer = LGMDImputer(LGMD(6))
    filled, std = imputer.fit_transform(table, return_std=True)
    np.testing.assert_array_equal(filled[~hidden], gappy[~hidden])
    np.testing.assert_array_equal(std[~hidden], 0.0)
    assert np.all(std[hidden] > 0)
    # 720 hidden entries: chance moves the share by 1.1 %.
    assert 0.86 < np.mean((np.abs(filled - noisy) < BAR * std)[hidden]) < 0.94
    mean, bars = imputer.estimator_.reconstruct(return_std=True)
    np.testing.assert_array_equal(filled[hidden], mean[hidden])
    np.testing.assert_array_equal(std[hidden], bars[hidden])
    np.testing.assert_array_equal(imputer.fit_transform(table), filled)
    later, later_std = imputer.transform(table[:5], return_std=True)
    np.testing.assert_array_equal(later_std > 0, hidden[:5])
    np.testing.assert_allclose(later_std, std[:5], rtol=0.02)
    np.testing.assert_array_equal(imputer.transform(table[:5]), later)


def test_the_imputer_of_a_point_estimate_has_no_error_bars(make_table):
    _, gappy = make_table()
    imputer = LGMDImputer(PMF(3))
    with pytest.raises(InvalidParameterError, match="return_std=True needs a posterior"):
        imputer.fit(gappy).transform(gappy, return_std=True)
    with pytest.raises(InvalidParameterError, match="return_std=True needs a posterior"):
        imputer.fit_transform(gappy, return_std=True)


def test_the_imputer_needs_no_parameters(make_table):
    complete, gappy = make_table(n=40, p=30, noise=0.3)
    filled, std = LGMDImputer().fit_transform(gappy, return_std=True)
    gaps = np.isnan(gappy)
    assert metrics.rmse(complete[gaps], filled[gaps]) < 0.6
    assert np.mean((np.abs(filled - complete) < BAR * std)[gaps]) > 0.83


def test_pandas_output_works_with_error_bars(make_table):
    _, gappy = make_table()
    frame = pd.DataFrame(gappy, columns=[f"c{j}" for j in range(11)])
    filled, std = LGMDImputer(LGMD(3)).set_output(transform="pandas").fit_transform(frame, return_std=True)
    assert list(filled.columns) == list(frame.columns)
    assert np.asarray(std).shape == frame.shape


@pytest.mark.parametrize("n_new", [1, 2, 20])
def test_new_rows_have_bars_of_their_own_where_all_rows_came_down_to_one_noise(rng, n_new):
    table = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 12))  # exactly of low rank: no noise at all
    model = LGMD(4, noise="samples", sample_graph="none", feature_graph="none").fit(table)
    new = table[:n_new].copy()
    new[0, 1:] = np.nan
    mean, std = model.reconstruct(new, return_std=True)
    assert mean.shape == std.shape == (n_new, 12)
    assert std[0, 1:].min() > 100 * model.reconstruct(table[:2], return_std=True)[1].max()

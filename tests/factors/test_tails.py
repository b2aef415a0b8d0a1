"""The distribution of residuals against densities from scipy, and its numbers against a search for the best."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from lgmd.factors import tails
from lgmd.factors.tails import FIRST_TAILS, GAUSSIAN, Tails

RESIDUALS = {
    "gaussian": lambda rng: rng.standard_normal(3000),
    "student": lambda rng: rng.standard_t(6, 3000),
    "very heavy": lambda rng: rng.standard_t(1, 3000),
    "outliers": lambda rng: np.where(
        rng.random(3000) < 0.05, 30 * rng.choice([-1, 1], 3000), rng.standard_normal(3000)
    ),
    "heavy and outliers": lambda rng: np.where(
        rng.random(3000) < 0.1, 50 * rng.standard_normal(3000), rng.standard_t(6, 3000)
    ),
}


def loss(squares, some):
    """Negative log-density of residuals with these squares."""
    residuals = np.sqrt(squares)
    good = (
        scipy.stats.norm.logpdf(residuals) if np.isinf(some.degrees) else scipy.stats.t.logpdf(residuals, some.degrees)
    )
    with np.errstate(divide="ignore"):
        gross = np.log(some.gross_share) + scipy.stats.norm.logpdf(residuals, scale=np.sqrt(some.gross_variance))
    return -np.sum(np.logaddexp(np.log1p(-some.gross_share) + good, gross))


def settled(squares):
    some = FIRST_TAILS
    for _ in range(200):
        some = some.fitted(squares)
    return some


@pytest.mark.parametrize(
    "some", [GAUSSIAN, Tails(4.0), Tails(30.0, 0.1, 400.0), Tails(gross_share=0.3), Tails(200.0, 1e-9, 1e6)]
)
def test_the_density_is_that_of_a_mixture_and_sums_to_one(some):
    squares = np.array([0.0, 1e-6, 0.3, 1.0, 20.0, 1e4, 1e12])
    assert -np.sum(some.log_density(squares)) == pytest.approx(loss(squares, some), rel=1e-12)
    total = 2 * scipy.integrate.quad(lambda x: np.exp(some.log_density(np.array([x**2]))[0]), 0, np.inf, limit=200)[0]
    assert total == pytest.approx(1.0, abs=1e-4)


def test_the_variance_of_good_entries_is_that_of_their_distribution():
    assert GAUSSIAN.inflation == 1.0
    assert Tails(5.0, 0.2).inflation == pytest.approx(scipy.stats.t.var(5.0))


@pytest.mark.parametrize("some", [Tails(4.0), Tails(30.0, 0.1, 400.0)])
def test_weights_are_twice_the_slope_of_the_loss(some):
    """As in any scale mixture of Gaussians."""
    squares, step = np.array([0.01, 0.5, 3.0, 20.0, 30.0, 500.0]), 1e-6
    slopes = [
        (loss(squares[[i]] * (1 + step), some) - loss(squares[[i]] * (1 - step), some)) / (2 * step * squares[i])
        for i in range(len(squares))
    ]
    np.testing.assert_allclose(some.weights(squares), 2 * np.array(slopes), rtol=1e-6)


@pytest.mark.parametrize("kind", RESIDUALS)
def test_fitting_never_makes_it_worse_and_ends_where_no_search_does_better(kind, rng):
    squares = RESIDUALS[kind](rng) ** 2
    some, losses = FIRST_TAILS, [loss(squares, FIRST_TAILS)]
    for _ in range(30):
        some = some.fitted(squares)
        losses.append(loss(squares, some))
    assert np.all(np.diff(losses) <= 1e-9 * losses[0])
    low, high = tails._DEGREES
    best = min(
        scipy.optimize.minimize(
            lambda x: loss(squares, Tails(*np.exp(x))),
            np.log([degrees, share, variance]),
            method="L-BFGS-B",
            bounds=[(np.log(low), np.log(high)), (-20, np.log(0.5)), (np.log(tails._GROSS), 30)],
        ).fun
        for degrees in (5.0, 50.0)
        for share in (1e-3, 0.1)
        for variance in (30.0, 1000.0)
    )
    # At an end of the range the search for degrees comes only near it; 3000 entries then lose less than half a nat.
    assert losses[-1] <= best + 0.5


def test_gross_errors_are_found_where_they_are(rng):
    squares = RESIDUALS["outliers"](rng) ** 2
    found = settled(squares)
    # A Gaussian of that spread has a tenth of its mass among the good entries, where it is missing.
    assert found.gross_share == pytest.approx(np.mean(squares == 900.0), rel=0.15)
    assert found.gross_variance == pytest.approx(900.0, rel=0.15)
    # The others are Gaussian, and count as such.
    assert found.degrees > 30
    weights = found.weights(squares)
    assert weights[squares == 900.0].max() < 2e-3
    assert np.median(weights[squares < 900.0]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("kind", ["gaussian", "student"])
def test_gross_errors_are_not_seen_where_there_are_none(kind, rng):
    found = settled(RESIDUALS[kind](rng) ** 2)
    # Some hundredths of the heavier tails may go either way.
    assert found.gross_share < {"gaussian": 1e-3, "student": 0.02}[kind]
    assert found.degrees > {"gaussian": 30.0, "student": 4.5}[kind]


def test_most_entries_are_good_whatever_they_are_like():
    found = settled(np.full(100, 1e8))
    assert found.gross_share <= 0.5
    assert np.all(np.isfinite(found.weights(np.full(100, 1e8))))


def test_one_absurd_entry_does_not_hide_the_other_gross_errors(rng):
    squares = RESIDUALS["outliers"](rng) ** 2
    share, degrees = np.mean(squares > 100), settled(squares).degrees
    squares[0] = 1e14
    found = settled(squares)
    # The absurd one belongs to neither class and leaves some others with the good ones.
    assert found.gross_share > 0.5 * share
    assert found.degrees < degrees


@pytest.mark.parametrize("largest", [1e300, np.inf])
def test_numbers_stay_finite_at_the_ends(rng, largest):
    squares = np.concatenate([np.zeros(10), np.full(10, largest), rng.chisquare(1, 100)])
    found = settled(squares)
    assert np.all(np.isfinite(found.log_density(np.minimum(squares, 1e300))))
    assert np.all(found.weights(np.minimum(squares, 1e300)) >= 0)
    assert 0 < found.gross_share < 0.5


def test_what_cannot_be_bettered_is_kept(rng):
    squares = RESIDUALS["student"](rng) ** 2
    found = settled(squares)
    assert loss(squares, found.fitted(squares)) <= loss(squares, found)
    worse = replace(found, degrees=4.0)
    assert loss(squares, worse.fitted(squares)) < loss(squares, worse)

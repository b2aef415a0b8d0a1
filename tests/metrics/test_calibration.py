import numpy as np
import pytest
from scipy.stats import norm

from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.metrics import calibration_curve, coverage

LEVELS = (0.1, 0.5, 0.9, 0.99)


@pytest.fixture
def drawn():
    """Values that do come from the stated distribution, each with its own centre and width."""
    rng = np.random.default_rng(0)
    mean, std = rng.standard_normal((200, 300)), rng.uniform(0.2, 3.0, (200, 300))
    return mean + std * rng.standard_normal(mean.shape), mean, std


def test_true_error_bars_give_the_levels_back(drawn):
    # 60,000 values: a share has a standard error of at most 0.002.
    np.testing.assert_allclose(calibration_curve(*drawn, levels=LEVELS), LEVELS, atol=0.008)


def test_bars_that_are_too_short_or_too_long_show(drawn):
    values, mean, std = drawn
    expected = 2 * norm.cdf(0.5 * norm.ppf(0.95)) - 1
    assert coverage(values, mean, 0.5 * std) == pytest.approx(expected, abs=0.008)
    assert coverage(values, mean, 2 * std) > 0.99


def test_it_counts_values_between_the_quantiles(drawn):
    values, mean, std = (array[0] for array in drawn)
    for level in LEVELS:
        low, high = norm.interval(level, loc=mean, scale=std)
        assert coverage(values, mean, std, level) == np.mean((values >= low) & (values <= high))


def test_the_curve_has_the_order_of_its_levels_and_never_falls(drawn):
    shares = calibration_curve(*drawn)
    assert shares.shape == (19,)
    assert np.all(np.diff(shares) >= 0)
    np.testing.assert_array_equal(calibration_curve(*drawn, levels=(0.9, 0.1)), shares[[17, 1]])
    assert coverage(*drawn, level=0.9) == shares[17]


def test_unknown_values_are_left_out(drawn):
    values, mean, std = drawn
    hidden = np.zeros(values.shape, dtype=bool)
    hidden[:, ::2] = True
    expected = coverage(values[:, 1::2], mean[:, 1::2], std[:, 1::2])
    assert coverage(np.where(hidden, np.nan, values), np.where(hidden, np.nan, mean), std) == expected
    assert coverage(np.ma.masked_array(values, hidden), mean, std) == expected


def test_one_deviation_may_serve_all_and_zero_means_certain():
    assert coverage([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], 1.0) == pytest.approx(2 / 3)
    assert coverage([1, 1, 3], [1, 2, 3], [0, 0, 0]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("values", "mean", "std", "message"),
    [
        ([1.0, 2.0], [1.0], 1.0, "values is of length 2 but mean is of length 1"),
        ([1.0, 2.0], [1.0, 2.0], [1.0, 1.0, 1.0], "but std is of length 3"),
        ([np.nan], [1.0], 1.0, "No value is known"),
        ([1.0, 2.0], [np.nan, 2.0], 1.0, "1 of the 2 counted entries are NaN or infinite in mean or std"),
        ([1.0, np.inf], [1.0, 2.0], 1.0, "1 of the 2 counted entries .* infinite in values"),
        ([1.0, 2.0], ["a", "b"], 1.0, "mean holds <U1 values"),
        ([1.0, 2.0], [1.0, 2.0], 1j, "std holds complex128 values"),
        ([1.0, 2.0], [1.0, 2.0], [1.0, -1.0], "1 of the 2 counted entries of std are negative"),
    ],
)
def test_predictions_that_cannot_be_compared_are_refused(values, mean, std, message):
    with pytest.raises(InvalidDataError, match=message):
        coverage(values, mean, std)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, 90, float("nan"), "high"])
def test_a_level_is_a_probability(level):
    with pytest.raises(InvalidParameterError, match="A level must lie between 0 and 1"):
        coverage([1.0], [1.0], 1.0, level=level)

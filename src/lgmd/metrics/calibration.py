"""Error bars against errors: do as many values lie inside the bars as the bars promise?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from lgmd._typing import FloatArray
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.metrics.errors import _as_floats, _describe_shape

__all__ = ["calibration_curve", "coverage"]


def coverage(values: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.9) -> float:
    r"""
    Share of values inside the central Gaussian interval of a given probability.

    .. math:: \frac{1}{|\Omega|} \sum_{ij \in \Omega} \mathbf{1}\{|Y_{ij} - \mu_{ij}| \le z\, s_{ij}\},
        \qquad z = \Phi^{-1}\bigl(\tfrac{1 + \text{level}}{2}\bigr)

    where :math:`\Omega` holds the known values. A well calibrated model has a coverage near `level`; below it the bars
    are too short, above it too long. Compare on values that the model has not seen.

    Parameters
    ----------
    values : array of shape (n,) or (n, p)
        What came true. Entries that are NaN or masked are unknown and not counted.
    mean : array of the same shape
        What was predicted.
    std : array of the same shape, or float
        Standard deviation of each prediction, that of the noise included; not negative.
    level : float, default=0.9
        Probability of the interval, between 0 and 1.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InvalidDataError
        If an array is not of real numbers, shapes differ, no value is known, or a counted prediction is not finite or
        has a negative deviation.
    InvalidParameterError
        If `level` does not lie between 0 and 1.

    Examples
    --------
    >>> coverage([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0], 1.0, level=0.9)
    0.5
    """
    return float(calibration_curve(values, mean, std, levels=(level,))[0])


def calibration_curve(
    values: ArrayLike, mean: ArrayLike, std: ArrayLike, levels: Sequence[float] = tuple(np.arange(1, 20) / 20)
) -> FloatArray:
    """
    Coverage at several levels; a well calibrated model gives the levels back.

    Parameters
    ----------
    values, mean, std : array
        As for :func:`coverage`.
    levels : sequence of float, default=(0.05, 0.1, ..., 0.95)
        Probabilities of the intervals, between 0 and 1.

    Returns
    -------
    ndarray of shape (len(levels),)
        Coverages, in the order of `levels`.

    Raises
    ------
    InvalidDataError
        If an array is not of real numbers, shapes differ, no value is known, or a counted prediction is not finite or
        has a negative deviation.
    InvalidParameterError
        If a level does not lie between 0 and 1.

    Examples
    --------
    >>> calibration_curve([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0], 1.0, levels=(0.5, 0.9, 0.99))
    array([0.25, 0.5 , 0.75])
    """
    try:
        probabilities = np.asarray(levels, dtype=np.float64)
    except (TypeError, ValueError):
        probabilities = np.array(np.nan)
    if probabilities.ndim != 1 or not np.all((probabilities > 0) & (probabilities < 1)):
        raise InvalidParameterError(
            f"A level must lie between 0 and 1, but {levels!r} was given. Pass a probability such as 0.9."
        )
    distances, deviations = _counted(values, mean, std)
    widths = ndtri((1 + probabilities) / 2)
    shares: FloatArray = np.array([np.mean(distances <= width * deviations) for width in widths])
    return shares


def _counted(values: ArrayLike, mean: ArrayLike, std: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return distances and deviations of the known values, in one dimension."""
    truth, centre, spread = _as_floats(values, "values"), _as_floats(mean, "mean"), _as_floats(std, "std")
    if spread.ndim == 0:
        spread = np.broadcast_to(spread, truth.shape)
    for name, array in (("mean", centre), ("std", spread)):
        if array.shape != truth.shape:
            raise InvalidDataError(
                f"values is {_describe_shape(truth)} but {name} is {_describe_shape(array)}. "
                "Pass arrays of the same shape."
            )
    known = ~np.isnan(truth)
    n_known = np.count_nonzero(known)
    if n_known == 0:
        raise InvalidDataError("No value is known: all are NaN or masked. Pass at least one.")
    truth, centre, spread = truth[known], centre[known], spread[known]
    n_bad = np.count_nonzero(~(np.isfinite(truth) & np.isfinite(centre) & np.isfinite(spread)))
    if n_bad:
        raise InvalidDataError(
            f"{n_bad:,} of the {n_known:,} counted entries are NaN or infinite in mean or std, or infinite in values. "
            "Leave them out by setting their value to NaN."
        )
    n_negative = np.count_nonzero(spread < 0)
    if n_negative:
        raise InvalidDataError(f"{n_negative:,} of the {n_known:,} counted entries of std are negative.")
    return np.abs(truth - centre), spread

"""Error bars against what came true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.metrics import calibration_curve
from lgmd.plot._axes import GREY, POSITIVE, one_axes
from lgmd.plot._models import fitted_model, same_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration"]

_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_READ_AT = 0.9


def calibration(values: Any, mean: Any = None, std: Any = None, ax: Axes | None = None, *, model: Any = None) -> Axes:
    """
    Draw how many values lie inside error bars against how many the bars promise.

    On the diagonal the bars are right, below it too short, above it too long. The band is where the curve of right
    bars lies 19 times of 20, if the values are independent of each other.

    Parameters
    ----------
    values : array-like
        What came true, with NaN where nothing is known. With ``model`` a table of the fitted shape that holds entries
        which the model has not seen.
    mean, std : array-like of the same shape
        What was predicted, and the standard deviation of each prediction, noise included.
    ax : Axes, optional
    model : fitted model, optional
        What predicts the values, in place of ``mean`` and ``std``.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from lgmd import LGMD, datasets, plot
    >>> import numpy as np
    >>> table = datasets.make_matrix_normal(30, 20, rank=2, noise=0.3, random_state=0).observed
    >>> aside = np.random.default_rng(0).random(table.shape) < 0.2
    >>> fitted = LGMD(n_components=3).fit(np.where(aside, np.nan, table))
    >>> ax = plot.calibration(np.where(aside, table, np.nan), model=fitted)
    """
    if model is not None:
        if mean is not None or std is not None:
            raise InvalidParameterError("Pass mean and std, or a model that predicts them, but not both.")
        values, mean, std = _predicted(model, values)
    elif mean is None or std is None:
        raise InvalidParameterError("calibration needs mean and std of the predictions, or model= to make them.")
    levels = np.array(_LEVELS)
    found = calibration_curve(values, mean, std, levels.tolist())
    at = float(found[_LEVELS.index(_READ_AT)])
    n = _number_known(values)
    axes = one_axes(ax, (4.6, 4.4))
    grid = np.linspace(0, 1, 101)
    width = 1.96 * np.sqrt(grid * (1 - grid) / n)
    axes.fill_between(
        grid,
        np.maximum(grid - width, 0),
        np.minimum(grid + width, 1),
        color=GREY,
        alpha=0.25,
        linewidth=0,
        label="chance",
    )
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.plot(levels, found, color=POSITIVE, marker="o", markersize=4, label="found")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="promised coverage", ylabel="share of values inside")
    axes.set_aspect("equal")
    axes.legend(fontsize="small", frameon=False, loc="upper left")
    axes.set_title(f"90 % intervals hold {100 * at:.1f} % of {n:,} values", fontsize="medium")
    return axes


def _predicted(model: Any, table: Any) -> tuple[Array, FloatArray, FloatArray]:
    fitted = fitted_model(model)
    if fitted.posterior is None:
        raise InvalidParameterError(
            f"calibration needs error bars, which this {type(fitted.estimator).__name__} does not have. Fit with "
            'inference="variational", or pass mean and std yourself.'
        )
    observed = same_table(fitted, table)
    if not observed.n_observed:
        raise InvalidDataError("No value is known: all entries of the table are missing. Pass the held-out entries.")
    entries = observed.entries()
    rows = np.repeat(np.arange(observed.shape[0]), np.diff(entries.indptr))
    columns = np.asarray(entries.indices, dtype=np.int64)
    return (entries.values, *fitted.estimator.predict(rows, columns, return_std=True))


def _number_known(values: Any) -> int:
    known = ~np.isnan(np.asarray(values, dtype=np.float64))
    return int(np.count_nonzero(known & ~np.ma.getmaskarray(values)))

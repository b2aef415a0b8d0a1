"""The table before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgmd._typing import FloatArray
from lgmd.exceptions import InvalidParameterError
from lgmd.plot._axes import plain_text, several_axes
from lgmd.plot._models import fitted_model, same_table
from lgmd.report.axes import Axis
from lgmd.report.blocks import block_error_bars, block_fit, block_table
from lgmd.report.names import SideNames

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["reconstruction"]

# Rows or columns up to which each is named.
_NAMED = 30

# Of the values, the share below and above the range of colours: one outlier must not blacken all else.
_CLIPPED = 0.005

_GAPS = "#d9d9d9"


def reconstruction(
    model: Any, table: Any, ax: Any = None, *, error_bars: bool | None = None, max_cells: int = 300
) -> Any:
    """
    Draw a table beside what a model makes of it: before, after, and the error bars.

    Before and after have one scale of colours; the error bars, which are of another size, have their own. Gaps are
    grey. Cells of large tables are means over blocks of neighbouring rows and columns, and root mean squares of their
    error bars; no array of the size of the table is made.

    Parameters
    ----------
    model : fitted model
    table : array-like, masked array, DataFrame or sparse matrix of shape (n, p)
        The table that was fitted, with its gaps.
    ax : array of three Axes, optional
        Two where no error bars are drawn. Without it a new figure.
    error_bars : bool, optional
        Whether to draw them; without it wherever the model has them. Models with ``inference="map"`` have none.
    max_cells : int, default=300
        Most cells along each side.

    Returns
    -------
    ndarray of three, or two, Axes
    """
    fitted = fitted_model(model)
    observed = same_table(fitted, table)
    if error_bars and fitted.posterior is None:
        raise InvalidParameterError(
            f"error_bars=True needs a posterior, which this {type(fitted.estimator).__name__} does not have. Fit with "
            'inference="variational", or leave the error bars out.'
        )
    if error_bars is None:
        error_bars = fitted.posterior is not None
    (n, p), n_maps = fitted.shape, 3 if error_bars else 2
    reason = "before, after and error bars" if error_bars else "before and after, for there are no error bars"
    axes = several_axes(ax, n_maps, (4.1 * n_maps, 3.9), reason)
    rows, columns = Axis.of(np.arange(n), max_cells), Axis.of(np.arange(p), max_cells)
    before, after = block_table(observed, rows, columns)[0], block_fit(fitted, rows, columns)
    low, high = _range([before, after])
    for one, values, title in zip(axes, (before, after), ("before", "after"), strict=False):
        image = _draw(one, values, title, low, high, "viridis", (n, p))
        _name_ticks(one, fitted.rows, fitted.columns)
    _bar(axes[1], image, "value", axes[:2])
    if error_bars:
        bars = block_error_bars(fitted, rows, columns)
        assert bars is not None  # there is a posterior
        low, high = _range([bars])
        image = _draw(axes[2], bars, "error bars", low, high, "magma", (n, p))
        _name_ticks(axes[2], fitted.rows, fitted.columns)
        _bar(axes[2], image, "standard deviation", axes[2:])
    if rows.size > 1 or columns.size > 1:
        axes[0].set_title(f"before (means of {rows.size:,} x {columns.size:,} entries)", fontsize="medium")
    return np.array(axes, dtype=object)


def _draw(
    axes: Axes, values: FloatArray, title: str, low: float, high: float, colours: str, shape: tuple[int, int]
) -> AxesImage:
    image = axes.imshow(
        np.ma.masked_invalid(values),
        cmap=colours,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        # Ticks count rows and columns of the table, however many share a cell.
        extent=(-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5),
    )
    axes.set_facecolor(_GAPS)
    axes.set_title(title, fontsize="medium")
    return image


def _name_ticks(axes: Axes, rows: SideNames, columns: SideNames) -> None:
    from matplotlib.ticker import MaxNLocator

    for names, axis, ticks in ((rows, axes.yaxis, axes.set_yticks), (columns, axes.xaxis, axes.set_xticks)):
        axis.set_label_text(names.noun)
        if names.labels is None or names.n > _NAMED:
            axis.set_major_locator(MaxNLocator(5, integer=True))
        else:
            turned = 90 if axis is axes.xaxis else 0
            ticks(range(names.n), [plain_text(label) for label in names.labels], fontsize=7, rotation=turned)


def _bar(axes: Axes, image: AxesImage, label: str, beside: list[Axes]) -> None:
    axes.figure.colorbar(image, ax=beside, shrink=0.85, pad=0.02, extend="both").set_label(label)


def _range(tables: list[FloatArray]) -> tuple[float, float]:
    """Ends of the colours; a constant table has its value in the middle."""
    values = np.concatenate([table[np.isfinite(table)] for table in tables])
    low, high = (float(end) for end in np.quantile(values, [_CLIPPED, 1 - _CLIPPED]))
    if low == high:
        low, high = float(values.min()), float(values.max())
    room = 0.0 if high > low else max(abs(low), 1.0) * 0.05
    return low - room, high + room

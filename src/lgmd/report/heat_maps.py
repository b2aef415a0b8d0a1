"""The table before and after as pictures."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray
from lgmd.observed import Observed
from lgmd.report.axes import Axis, structure_order
from lgmd.report.blocks import block_error_bars, block_fit, block_table
from lgmd.report.decomposition import Decomposition
from lgmd.report.packing import pack_numbers

__all__ = ["HeatMap", "MapSet", "colour_bar", "heat_maps", "map_picture"]

# Cells up to which values under the pointer are kept to 16 bits rather than 8.
_FINE_CELLS = 40_000

# Of the values, the shares that lie below and above the range of colours: one outlier must not blacken all else.
_CLIPPED = 0.01

_N_COLOURS = 255


@dataclass(frozen=True, eq=False)
class HeatMap:
    """
    One picture of a table.

    Attributes
    ----------
    kind : {"data", "fit", "bars", "share"}
    title, caption : str
    values : ndarray of shape (cells down, cells across)
        NaN where nothing is known.
    low, high : float
        Ends of the colours.
    colours : str
        Name of a perceptual colour map of matplotlib.
    """

    kind: str
    title: str
    caption: str
    values: FloatArray
    low: float
    high: float
    colours: str

    def packed(self) -> dict[str, Any]:
        """Values for the pointer."""
        return pack_numbers(self.values, 16 if self.values.size <= _FINE_CELLS else 8)


@dataclass(frozen=True, eq=False)
class MapSet:
    """
    The pictures of a table with its rows and columns in one order.

    Attributes
    ----------
    key : {"table", "structure"}
    title, note : str
    maps : list of HeatMap
    row_labels, column_labels : list of str
        What each cell's row and column is called.
    aspect : float
        Width over height to show them at.
    """

    key: str
    title: str
    note: str
    maps: list[HeatMap]
    row_labels: list[str]
    column_labels: list[str]
    aspect: float


def heat_maps(model: Decomposition, observed: Observed | None) -> list[MapSet]:
    """The pictures in the order of the table, and in one that shows structure."""
    n, p = model.shape
    as_given = Axis.of(np.arange(n)), Axis.of(np.arange(p))
    (row_order, row_way), (column_order, column_way) = (
        structure_order(model.X, model.sizes),
        structure_order(model.W, model.sizes),
    )
    way = row_way if row_way == column_way else f"{row_way} (rows) and {column_way} (columns)"
    by_structure = Axis.of(row_order), Axis.of(column_order)
    return [
        _map_set("table", "As in the table", "", model, observed, *as_given),
        _map_set(
            "structure", "Like beside like", f"Rows and columns are ordered {way}. ", model, observed, *by_structure
        ),
    ]


def _map_set(
    key: str, title: str, note: str, model: Decomposition, observed: Observed | None, rows: Axis, columns: Axis
) -> MapSet:
    single = rows.size == columns.size == 1
    if not single:
        note += f"A cell is the mean of {rows.size:,} x {columns.size:,} entries. "
    fit, bars = block_fit(model, rows, columns), block_error_bars(model, rows, columns)
    maps = []
    shown = [fit]
    if observed is not None:
        data, share = block_table(observed, rows, columns)
        shown.append(data)
        gaps = "Gaps are hatched." if single else "Hatched where a block has no entry at all."
        low, high = _colour_range(shown)
        caption = "Nothing is missing." if observed.is_complete else gaps
        maps.append(HeatMap("data", "Before: the table", caption, data, low, high, "viridis"))
    low, high = _colour_range(shown)
    maps.append(HeatMap("fit", "After: the fit", "Denoised, gaps filled.", fit, low, high, "viridis"))
    if bars is not None:
        caption = "Standard deviation of a new observation of each entry, noise included."
        # Bars from zero would hide how they differ.
        maps.append(HeatMap("bars", "Error bars", caption, bars, *_colour_range([bars]), "magma"))
    if observed is not None and not single and not observed.is_complete:
        maps.append(HeatMap("share", "Share observed", "Of the entries of each cell.", share, 0.0, 1.0, "cividis"))
    height, width = fit.shape
    return MapSet(
        key=key,
        title=title,
        note=note.strip(),
        maps=maps,
        row_labels=rows.labels(model.rows),
        column_labels=columns.labels(model.columns),
        aspect=float(np.clip(width / height, 0.8, 2.0)),
    )


def _colour_range(tables: list[FloatArray]) -> tuple[float, float]:
    """Quantiles of the values that both maps share; of the first table alone where there is nothing else."""
    values = np.concatenate([table[np.isfinite(table)] for table in tables])
    if not len(values):
        return 0.0, 1.0
    low, high = (float(value) for value in np.quantile(values, [_CLIPPED, 1 - _CLIPPED]))
    if low == high:
        low, high = float(values.min()), float(values.max())
    return low, high


def map_picture(heat_map: HeatMap) -> str:
    """A PNG as an address that holds its own data; what is not known is transparent."""
    width = heat_map.high / 2 - heat_map.low / 2
    known = np.isfinite(heat_map.values)
    share = np.where(known, heat_map.values / 2 - heat_map.low / 2, 0.0) / (width if width > 0 else 1.0)
    if width <= 0:
        share = np.full_like(share, 0.5)
    levels = np.rint(np.clip(share, 0.0, 1.0) * (_N_COLOURS - 1)).astype(np.uint8)
    return _picture(np.where(known, levels, _N_COLOURS).astype(np.uint8), heat_map.colours)


def colour_bar(colours: str) -> str:
    """A strip of all colours."""
    return _picture(np.arange(_N_COLOURS, dtype=np.uint8)[None, :], colours)


def _picture(levels: Array, colours: str) -> str:
    from matplotlib import colormaps
    from PIL import Image

    palette = np.rint(255 * colormaps[colours](np.linspace(0, 1, _N_COLOURS))[:, :3]).astype(np.uint8)
    image = Image.fromarray(levels)
    image.putpalette(palette.tobytes() + bytes(3))
    file = io.BytesIO()
    image.save(file, format="PNG", transparency=_N_COLOURS, optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")

"""The demo's pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from lgmd._typing import Array, FloatArray, SparseGraph

__all__ = ["draw_inpainting", "draw_row_graph"]

_MOST_ARCS = 1500


def draw_inpainting(
    original: FloatArray, seen: Array, filled: dict[str, FloatArray], errors: dict[str, float], path: Path
) -> None:
    """Original, holes and the filled pictures side by side, above a part of each, enlarged."""
    holes = np.where(seen[..., None], original, 1.0)
    panels = {"original": original, f"what the models see ({seen.mean():.0%} of the pixels)": holes}
    panels |= {f"{name}, error {errors[name]:.4f}": picture for name, picture in filled.items()}
    height, width, _ = original.shape
    part = (slice(height * 30 // 100, height * 62 // 100), slice(width * 36 // 100, width * 68 // 100))
    figure = Figure(figsize=(3.6 * len(panels), 5.1), layout="constrained", facecolor="white")
    axes = figure.subplots(2, len(panels))
    for column, (title, picture) in enumerate(panels.items()):
        axes[0, column].imshow(picture)
        axes[0, column].set_title(title, fontsize=11)
        axes[1, column].imshow(picture[part], interpolation="nearest")
    for axis in axes.ravel():
        axis.set_xticks([])
        axis.set_yticks([])
    _save(figure, path)


def draw_row_graph(original: FloatArray, precision: SparseGraph, path: Path) -> None:
    """The picture, the strongest edges between its rows as arcs, and how far apart joined rows are."""
    rows, columns, strength = _strongest_edges(precision)
    figure = Figure(figsize=(12.5, 3.9), layout="constrained", facecolor="white")
    image_axis, arc_axis, distance_axis = figure.subplots(1, 3, width_ratios=[1.5, 0.8, 1.2])
    # Stretched to the height of the axes, so that the arcs stand beside the rows they join.
    image_axis.imshow(original, aspect="auto")
    image_axis.set(title="the photograph", ylabel="row", xticks=[])
    _draw_arcs(arc_axis, rows, columns, strength, len(original))
    _draw_distances(distance_axis, precision, len(original))
    _save(figure, path)


def _strongest_edges(precision: SparseGraph) -> tuple[Array, Array, FloatArray]:
    """Edges with a positive partial correlation, strongest first."""
    upper = scipy.sparse.triu(precision, k=1).tocoo()
    roots = np.sqrt(precision.diagonal())
    rows, columns = upper.coords
    strength = -upper.data / (roots[rows] * roots[columns])
    order = np.argsort(-strength, kind="stable")[:_MOST_ARCS]
    order = order[strength[order] > 0]
    return rows[order], columns[order], strength[order]


def _draw_arcs(axis: Axes, rows: Array, columns: Array, strength: FloatArray, n: int) -> None:
    angles = np.linspace(-np.pi / 2, np.pi / 2, 25)
    middle, radius = (rows + columns) / 2, np.abs(rows - columns) / 2
    y = middle[:, None] + radius[:, None] * np.sin(angles)
    x = radius[:, None] * np.cos(angles)
    opacity = np.clip(strength / strength.max(initial=1e-12), 0.08, 0.8)
    colors = np.column_stack([np.tile([0.10, 0.35, 0.62], (len(opacity), 1)), opacity])
    axis.add_collection(LineCollection(list(np.stack([x, y], axis=2)[::-1]), colors=colors[::-1], linewidths=0.7))
    # A few long arcs may leave the axes, so that the many short ones can be seen.
    reach = 1.5 * float(np.quantile(radius, 0.98)) if len(radius) else 1.0
    axis.set(xlim=(0, reach), ylim=(n - 0.5, -0.5), xticks=[], title=f"its {len(rows):,} strongest row edges")
    axis.spines[["top", "right", "bottom"]].set_visible(False)


def _draw_distances(axis: Axes, precision: SparseGraph, n: int) -> None:
    rows, columns = scipy.sparse.triu(precision, k=1).tocoo().coords
    distances = np.abs(rows - columns)
    lags = np.arange(1, n)
    pairs = n - lags
    joined = np.bincount(distances, minlength=n)[1:n]
    axis.fill_between(lags, joined / pairs, step="mid", color=(0.10, 0.35, 0.62), alpha=0.75, linewidth=0)
    axis.set(
        xscale="log",
        xlim=(1, n),
        ylim=(0, None),
        xlabel="distance between two rows, in pixels",
        ylabel="share of such pairs that are joined",
        title="nobody told it which rows are neighbours",
    )
    axis.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=110)

"""Pictures that several experiments draw: curves with error bars, saved as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgmd._files import replacing
from lgmd.experiments.summaries import mean_and_error

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "draw_curves", "new_figure", "save_figure"]

# One colour a method on every page; told apart by colour-blind readers, and by markers as well.
COLOURS = {
    "k-means": "#7f7f7f",
    "PCA": "#7f7f7f",
    "means": "#7f7f7f",
    "PMF": "#0072b2",
    "dGRMD": "#e69f00",
    "LGMD, MAP": "#56b4e9",
    "LGMD": "#d55e00",
    "LGMD+": "#009e73",
    "GRMD-real": "#000000",
    "correlation graph": "#cc79a7",
    "kNN graph": "#e69f00",
    "kNN graph of LGMD's table": "#56b4e9",
    "no penalty": "#7f7f7f",
}
_MARKERS = "os^Dv*Pxh"


def new_figure(n_panels: int = 1, *, width: float = 4.8, height: float = 3.6) -> tuple[Figure, list[Any]]:
    """A figure with panels side by side, apart from any window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n_panels, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, n_panels, squeeze=False)[0])


def draw_curves(
    axes: Any, rows: pd.DataFrame, x: str, value: str, methods: Sequence[str], *, x_label: str, y_label: str
) -> None:
    """Mean and standard error of each method against ``x``."""
    for position, method in enumerate(methods):
        chosen = rows[rows["method"] == method].dropna(subset=[value])
        if chosen.empty:
            continue
        levels = sorted(chosen[x].unique())
        means, errors = zip(*(mean_and_error(chosen.loc[chosen[x] == level, value]) for level in levels), strict=True)
        axes.errorbar(
            levels,
            means,
            yerr=errors,
            label=method,
            color=COLOURS.get(method),
            marker=_MARKERS[position % len(_MARKERS)],
            markersize=4,
            linewidth=1.4,
            linestyle="--" if method.startswith("GRMD-real") else "-",
        )
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def save_figure(figure: Figure, folder: Path, name: str) -> str:
    """Save as SVG and PNG; returns the name for a :class:`~lgmd.experiments.base.Section`."""
    for ending in ("svg", "png"):
        with replacing(folder / f"{name}.{ending}") as temporary:
            figure.savefig(temporary, dpi=150)
    return name

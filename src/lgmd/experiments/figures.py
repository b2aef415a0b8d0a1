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

__all__ = ["COLOURS", "draw_curves", "new_figure", "save_figure", "style"]

# One colour and one marker a method on every page; told apart by colour-blind readers too.
COLOURS = {
    "k-means": "#7f7f7f",
    "PCA": "#7f7f7f",
    "means": "#7f7f7f",
    "PMF": "#0072b2",
    "dGRMD": "#e69f00",
    "LGMD, MAP": "#56b4e9",
    "LGMD": "#d55e00",
    "LGMD+": "#009e73",
    "GRMD-real, MAP": "#882255",
    "GRMD-real": "#000000",
    "correlation graph": "#cc79a7",
    "kNN graph": "#e69f00",
    "kNN graph of LGMD's table": "#56b4e9",
    "no penalty": "#7f7f7f",
}
_MARKERS = {
    "PMF": "s",
    "dGRMD": "^",
    "LGMD, MAP": "D",
    "LGMD": "v",
    "LGMD+": "*",
    "GRMD-real, MAP": "P",
    "GRMD-real": "X",
    "kNN graph": "^",
    "kNN graph of LGMD's table": "D",
}


def style(method: str) -> dict[str, str]:
    """Colour and marker of a method, the same wherever it is drawn."""
    return {"color": COLOURS.get(method, "#444444"), "marker": _MARKERS.get(method, "o")}


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
    """Mean and standard error of each method against ``x``; where ``x`` has a single level, methods side by side."""
    known = rows.dropna(subset=[value])
    drawn = [method for method in methods if method in set(known["method"])]
    levels = known.loc[known["method"].isin(drawn), x].unique()
    for position, method in enumerate(drawn):
        chosen = known[known["method"] == method]
        places = sorted(chosen[x].unique())
        means, errors = zip(*(mean_and_error(chosen.loc[chosen[x] == place, value]) for place in places), strict=True)
        axes.errorbar(
            places if len(levels) > 1 else [position],
            means,
            yerr=errors,
            label=method,
            **style(method),
            markersize=4 if len(levels) > 1 else 6,
            linewidth=1.4,
            linestyle="--" if method.startswith("GRMD-real") else "-",
        )
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(levels) == 1:
        axes.set_xlabel(f"{x_label}: {levels[0]:g}")
        axes.set_xticks(range(len(drawn)), drawn, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
        axes.set_xlim(-0.5, len(drawn) - 0.5)
    else:
        axes.set_xlabel(x_label)
        axes.legend(frameon=False, fontsize=8)


def save_figure(figure: Figure, folder: Path, name: str) -> str:
    """Save as SVG and PNG; returns the name for a :class:`~lgmd.experiments.base.Section`."""
    for ending in ("svg", "png"):
        with replacing(folder / f"{name}.{ending}") as temporary:
            figure.savefig(temporary, dpi=150)
    return name

"""A learned graph as a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray
from lgmd._validation import check_choice, check_integer, check_real
from lgmd.exceptions import InvalidParameterError
from lgmd.graphs import partial_correlations
from lgmd.plot._axes import GREY, NEGATIVE, POSITIVE, one_axes, plain_text
from lgmd.plot._models import SIDES, fitted_model, is_model
from lgmd.report.layout import graph_layout
from lgmd.report.names import SideNames

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["graph"]

# Nodes, and letters of all their names, up to which names can be read.
_NAMED = 60
_LETTERS = 300

# Nodes up to which those without an edge are laid out too, and edges that have a say in the layout.
_LONERS = 2_000
_PULLING = 20_000


def graph(
    model_or_precision: Any,
    side: str = "samples",
    ax: Axes | None = None,
    *,
    names: Any = None,
    positions: Any = None,
    min_strength: float | None = None,
    max_edges: int = 2000,
    labels: Any = "auto",
) -> Axes:
    """
    Draw a graph: joined nodes near each other, strong edges dark and wide, blue for positive and red for negative.

    Parameters
    ----------
    model_or_precision : fitted model, sparse matrix or array-like of shape (n, n), or GraphEstimate
        A model, or a precision matrix itself.
    side : {"samples", "features"}, default="samples"
        Which of a model's two graphs; of no meaning for a matrix.
    ax : Axes, optional
        Where to draw; without it in a new figure.
    names : sequence of length n, optional
        What nodes are called, where the model does not know it.
    positions : array-like of shape (n, 2), optional
        Where the nodes lie, such as coordinates of a map: then all nodes are drawn, and the axes keep their ticks.
        Without it joined nodes are put near each other, and of graphs with more than 2,000 nodes those without an edge
        are left out.
    min_strength : float, optional
        Smallest absolute partial correlation of an edge to draw.
    max_edges : int, default=2000
        Of more edges the strongest are drawn; 20,000 at the most.
    labels : {"auto", True, False}, default="auto"
        Whether to write the names of nodes; ``"auto"`` does where they are short and few.

    Returns
    -------
    Axes
    """
    nodes, edges = _read(model_or_precision, side, names)
    min_strength = 0.0 if min_strength is None else check_real(min_strength, "min_strength")
    if labels is not True and labels is not False and labels != "auto":
        raise InvalidParameterError(f'labels must be "auto", True or False, but is {labels!r}.')
    shown = edges.strongest(min(check_integer(max_edges, "max_edges", minimum=0), _PULLING), min_strength)
    places = None if positions is None else _given_places(positions, nodes.n)
    axes = one_axes(ax, (6.4, 5.6))
    if places is None:
        # Edges that are not drawn pull too: other limits leave the nodes where they are.
        drawn, places = _laid_out(edges.strongest(_PULLING, 0.0), nodes.n)
        axes.set(xticks=[], yticks=[])
        axes.set_aspect("equal", adjustable="datalim")
        for spine in axes.spines.values():
            spine.set_visible(False)
    else:
        drawn = np.arange(nodes.n)
    i, j = (np.searchsorted(drawn, ends) for ends in (shown.rows, shown.columns))
    _draw_edges(axes, places, i, j, shown.correlations)
    joined = np.zeros(len(drawn), dtype=bool)
    joined[np.concatenate([i, j])] = True
    _draw_nodes(axes, places, joined)
    if labels is True or (labels == "auto" and len(drawn) <= _NAMED):
        written = [plain_text(nodes[int(node)] if nodes.labels else node) for node in drawn]
        if labels is True or sum(map(len, written)) <= _LETTERS:
            _write_names(axes, places, written)
    axes.set_title(_title(nodes, len(drawn), len(edges.rows), len(shown.rows), min_strength), fontsize="medium")
    axes.margins(0.06)
    return axes


class _Edges(NamedTuple):
    """Edges, each once, the strongest first."""

    rows: IntArray
    columns: IntArray
    correlations: FloatArray

    def strongest(self, most: int, least_strength: float) -> _Edges:
        kept = min(most, int(np.count_nonzero(np.abs(self.correlations) >= least_strength)))
        return _Edges(self.rows[:kept], self.columns[:kept], self.correlations[:kept])


def _read(source: Any, side: str, names: Any) -> tuple[SideNames, _Edges]:
    check_choice(side, "side", SIDES)
    if is_model(source):
        model = fitted_model(source)
        precision, own = (model.row_graph, model.rows) if side == "samples" else (model.column_graph, model.columns)
    else:
        precision, own = source, None
    correlations = partial_correlations(precision)
    if own is None:
        own = SideNames("node", correlations.shape[0])
    if names is not None:
        own = SideNames.of(names, own.n, own.noun)
    upper = scipy.sparse.coo_array(scipy.sparse.triu(correlations, 1))
    order = np.argsort(-np.abs(upper.data), kind="stable")
    rows, columns = (ends[order].astype(np.int64) for ends in upper.coords)
    return own, _Edges(rows, columns, upper.data[order])


def _given_places(positions: Any, n: int) -> FloatArray:
    try:
        places = np.asarray(positions, dtype=np.float64)
    except (TypeError, ValueError):
        places = np.full((0, 0), np.nan)
    if places.shape != (n, 2):
        raise InvalidParameterError(
            f"positions must hold two numbers for each of the {n:,} nodes, but has shape {np.shape(positions)}."
        )
    if not np.all(np.isfinite(places)):
        lost = np.flatnonzero(~np.isfinite(places).all(axis=1))
        raise InvalidParameterError(
            f"positions has NaN or infinite coordinates for {len(lost):,} of {n:,} nodes, the first is node {lost[0]}. "
            "Give every node a place."
        )
    return places


def _laid_out(edges: _Edges, n: int) -> tuple[IntArray, FloatArray]:
    """Nodes to draw, and where; of many nodes only those with an edge."""
    drawn: IntArray = np.arange(n)
    if n > _LONERS and len(edges.rows):
        drawn = np.unique(np.concatenate([edges.rows, edges.columns]))
    i, j = (np.searchsorted(drawn, ends) for ends in (edges.rows, edges.columns))
    places = graph_layout(len(drawn), i, j, np.maximum(np.abs(edges.correlations), 1e-6))
    # The layout counts downwards, as screens do.
    return drawn, places * [1, -1]


def _draw_edges(axes: Axes, places: FloatArray, i: IntArray, j: IntArray, correlations: FloatArray) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D

    strengths = np.abs(correlations)
    share = strengths / max(float(strengths.max(initial=0.0)), 1e-12)
    # Many edges lie over each other: each is drawn fainter.
    crowd = float(np.clip(600 / max(len(i), 1), 0.35, 1.0))
    colours = np.where((correlations > 0)[:, None], to_rgba(POSITIVE), to_rgba(NEGATIVE))
    colours[:, 3] = (0.15 + 0.75 * share) * crowd
    back_to_front = np.argsort(strengths, kind="stable")
    lines = LineCollection(
        list(np.stack([places[i], places[j]], axis=1)[back_to_front]),
        colors=colours[back_to_front],
        linewidths=((0.5 + 2.2 * share) * (0.4 + 0.6 * crowd))[back_to_front],
        capstyle="round",
        zorder=1,
    )
    axes.add_collection(lines)
    if np.any(correlations < 0):
        signs = [Line2D([], [], color=POSITIVE, label="positive"), Line2D([], [], color=NEGATIVE, label="negative")]
        axes.legend(
            handles=signs,
            title="partial\ncorrelation",
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
            fontsize="small",
            title_fontsize="small",
        )


def _draw_nodes(axes: Axes, places: FloatArray, joined: FloatArray) -> None:
    size = float(np.clip(3_000 / max(len(places), 1), 1.5, 40.0))
    colours = np.where(joined, "#22303c", GREY)
    axes.scatter(
        places[:, 0],
        places[:, 1],
        s=np.where(joined, size, 0.5 * size),
        c=colours.tolist(),
        linewidths=0.6 if len(places) <= 500 else 0,
        edgecolors="white",
        zorder=2,
    )


def _write_names(axes: Axes, places: FloatArray, names: list[str]) -> None:
    for place, name in zip(places, names, strict=True):
        axes.annotate(
            name,
            place,
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8 if len(names) <= 25 else 6,
            color="#22303c",
            zorder=3,
        )


def _title(nodes: SideNames, n_drawn: int, n_edges: int, n_shown: int, min_strength: float) -> str:
    plural = nodes.plural if nodes.n != 1 else nodes.noun
    first = f"{nodes.n:,} {plural}, {n_edges:,} edge{'' if n_edges == 1 else 's'}"
    notes = []
    if n_shown < n_edges:
        limit = f" of at least {min_strength:g}" if min_strength > 0 else ""
        notes.append(f"the {n_shown:,} strongest{limit} drawn")
    if n_drawn < nodes.n:
        notes.append(f"{nodes.n - n_drawn:,} {plural} left out")
    return "\n".join([first, "; ".join(notes)]) if notes else first

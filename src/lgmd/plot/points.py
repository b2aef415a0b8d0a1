"""Rows or columns as points in the plane of two factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import InvalidParameterError
from lgmd.plot._axes import GREY, POSITIVE, one_axes, plain_text
from lgmd.plot._models import factors_of, fitted_model, names_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["embedding"]

# Points up to which names can be read.
_NAMED = 40

# Groups up to which each has a colour that can be told from the others.
_MOST_GROUPS = 20
_FEW_GROUPS = 10


def embedding(
    model: Any,
    columns: tuple[int, int] = (0, 1),
    labels: Any = None,
    side: str = "samples",
    ax: Axes | None = None,
    *,
    names: Any = None,
) -> Axes:
    """
    Draw rows, or columns, in the plane of two factors.

    Parameters
    ----------
    model : fitted model
    columns : (int, int), default=(0, 1)
        Which factors to draw across and upwards; the first are the largest.
    labels : sequence of length n, optional
        Groups, each of which gets a colour, or numbers, which get a scale of colours. Words, truth values, and up to
        20 different integers are groups. Points whose label is missing are grey.
    side : {"samples", "features"}, default="samples"
    ax : Axes, optional
    names : sequence of length n, optional
        What points are called, where the model does not know it. Up to 40 names are written.

    Returns
    -------
    Axes
    """
    fitted = fitted_model(model)
    factors, known = factors_of(fitted, side), names_of(fitted, side, names)
    across, upwards = _checked_columns(columns, factors.shape[1])
    marks = None if labels is None else _checked_labels(labels, len(factors), known.noun)
    axes = one_axes(ax, (6.0, 4.8))
    x = factors[:, across]
    y = factors[:, upwards]
    style: dict[str, Any] = {
        "s": float(np.clip(8_000 / len(x), 4.0, 36.0)),
        "alpha": float(np.clip(4_000 / len(x), 0.5, 0.9)),
    }
    style["linewidths"] = 0.0
    if marks is None:
        axes.scatter(x, y, color=POSITIVE, **style)
    elif _are_groups(marks):
        _draw_groups(axes, x, y, marks, style)
    else:
        _draw_numbers(axes, x, y, marks.astype(np.float64), style)
    named = known.labels is not None and known.n <= _NAMED
    if named:
        for i in range(known.n):
            note = axes.annotate(plain_text(known[i]), (x[i], y[i]), (3, 3), textcoords="offset points", fontsize=7)
            note.set_in_layout(False)
    shares = np.square(fitted.sizes) / max(float(np.square(fitted.sizes).sum()), np.finfo(float).tiny)
    axes.set_xlabel(f"factor {across} ({100 * shares[across]:.0f} % of the low-rank part)")
    axes.set_ylabel(f"factor {upwards} ({100 * shares[upwards]:.0f} %)")
    axes.set_title(f"{known.n:,} {known.plural}", fontsize="medium")
    axes.margins(0.12 if named else 0.06, 0.06)
    return axes


def _checked_columns(columns: Any, rank: int) -> tuple[int, int]:
    try:
        across, upwards = (int(column) for column in columns)
        whole = [across, upwards] == list(columns)
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise InvalidParameterError(f"columns must be two positions of factors such as (0, 1), but is {columns!r}.")
    if rank == 1:
        raise InvalidParameterError(
            "The model has a single factor, but a plane needs two. Draw a histogram of it instead."
        )
    if not (0 <= across < rank and 0 <= upwards < rank):
        raise InvalidParameterError(
            f"columns is {(across, upwards)}, but the model has rank_={rank}: positions go from 0 to {rank - 1}."
        )
    return across, upwards


def _checked_labels(labels: Any, n: int, noun: str) -> Array:
    marks = np.asarray(labels)
    if marks.shape != (n,):
        raise InvalidParameterError(
            f"labels has shape {marks.shape}, but there are {n:,} {noun}s. Give one label a {noun}."
        )
    if marks.dtype.kind == "O":
        numbers = all(isinstance(mark, int | float | np.number) or _is_missing(mark) for mark in marks)
        numbers = numbers and not any(isinstance(mark, bool | np.bool_) for mark in marks)
        if numbers:
            return np.array([np.nan if _is_missing(mark) else float(mark) for mark in marks])
        return np.array(["" if _is_missing(mark) else str(mark) for mark in marks])
    return marks


def _is_missing(mark: Any) -> bool:
    return mark is None or type(mark).__name__ in ("NAType", "NaTType") or (isinstance(mark, float) and mark != mark)


def _are_groups(marks: Array) -> bool:
    if marks.dtype.kind in "iu":
        return len(np.unique(marks)) <= _MOST_GROUPS
    return marks.dtype.kind != "f"


def _draw_groups(axes: Axes, x: FloatArray, y: FloatArray, marks: Array, style: dict[str, Any]) -> None:
    from matplotlib import colormaps

    groups, members = np.unique(marks, return_inverse=True)
    # The empty word stands for a missing label.
    missing = np.array([str(group) == "" for group in groups])
    kinds = np.flatnonzero(~missing)
    if len(kinds) > _MOST_GROUPS:
        sizes = np.bincount(members, minlength=len(groups))
        kinds = np.sort(kinds[np.argsort(-sizes[kinds], kind="stable")][:_MOST_GROUPS])
    palette = colormaps["tab10" if len(kinds) <= _FEW_GROUPS else "tab20"]
    others = ~np.isin(members, kinds)
    if others.any():
        label = "no label" if len(kinds) == np.count_nonzero(~missing) else f"{len(groups) - len(kinds):,} others"
        axes.scatter(x[others], y[others], color=GREY, label=label, **style)
    for place, kind in enumerate(kinds):
        inside = members == kind
        axes.scatter(x[inside], y[inside], color=palette(place), label=plain_text(groups[kind]), **style)
    legend = axes.legend(
        fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1 + len(kinds) // 15
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1.0)
            handle.set_sizes([24.0])  # type: ignore[attr-defined]


def _draw_numbers(axes: Axes, x: FloatArray, y: FloatArray, marks: FloatArray, style: dict[str, Any]) -> None:
    known = np.isfinite(marks)
    if not known.all():
        axes.scatter(x[~known], y[~known], color=GREY, **style)
    points = axes.scatter(x[known], y[known], c=marks[known], cmap="viridis", **style)
    bar = axes.figure.colorbar(points, ax=axes, pad=0.02)
    bar.solids.set_alpha(1.0)  # type: ignore[union-attr]

"""Axes to draw on: those that are given, or those of a new figure that belongs to nobody's window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgmd.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GREY", "NEGATIVE", "POSITIVE", "one_axes", "plain_text", "several_axes"]

POSITIVE = "#1f5a99"
NEGATIVE = "#c0392b"
GREY = "#8a8f98"

_LONGEST = 28


def one_axes(ax: Any, size: tuple[float, float]) -> Axes:
    """
    The axes that were given, or those of a new figure.

    Parameters
    ----------
    ax : Axes or None
    size : (float, float)
        Width and height of a new figure, in inches.
    """
    if ax is None:
        axes: Axes = _new_figure(size).subplots()
        return axes
    if not _is_axes(ax):
        raise InvalidParameterError(
            f"ax must be one matplotlib Axes, but is {_described(ax)}. Pass one, or leave it out."
        )
    found: Axes = ax
    return found


def several_axes(ax: Any, n: int, size: tuple[float, float], reason: str) -> list[Axes]:
    """
    So many axes in a row; ``reason`` says why so many are needed.

    Parameters
    ----------
    ax : array of Axes, Axes or None
    n : int
    size : (float, float)
        Of a new figure.
    reason : str
    """
    if ax is None:
        return list(_new_figure(size).subplots(1, n, squeeze=False)[0])
    axes = [ax] if _is_axes(ax) else list(np.ravel(np.asarray(ax, dtype=object)))
    strangers = [one for one in axes if not _is_axes(one)]
    if strangers:
        raise InvalidParameterError(
            f"ax must hold matplotlib Axes, but holds one {_described(strangers[0])}. Pass {n} Axes, or leave it out."
        )
    if len(axes) != n:
        raise InvalidParameterError(
            f"ax holds {len(axes)} axes, but {n} are needed: {reason}. Pass {n}, or leave it out."
        )
    return axes


def plain_text(text: Any) -> str:
    """Text as it stands, cut to a readable length: dollar signs start no formula."""
    line = " ".join(str(text).split())
    cut = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    return cut.replace("$", r"\$")


def _new_figure(size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def _is_axes(candidate: Any) -> bool:
    from matplotlib.axes import Axes

    return isinstance(candidate, Axes)


def _described(found: Any) -> str:
    if isinstance(found, np.ndarray | list | tuple):
        return f"{'an array' if isinstance(found, np.ndarray) else f'a {type(found).__name__}'} of {np.size(found)}"
    return f"of type {type(found).__name__}"

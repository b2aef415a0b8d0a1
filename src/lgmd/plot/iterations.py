"""The course of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgmd._typing import FloatArray
from lgmd.exceptions import InvalidParameterError
from lgmd.plot._axes import GREY, NEGATIVE, POSITIVE, one_axes
from lgmd.plot._models import fitted_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence"]

# Iterations up to which each is a dot.
_DOTTED = 60


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """
    Draw the objective, or the negative evidence bound, after each iteration; lines mark where graphs were learned anew.

    It falls while the graphs are held. It may jump at a graph step; under the first graphs factors start anew. First
    iterations that would flatten all others lie above the picture, which says how many they are.

    Parameters
    ----------
    model : fitted model
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    from matplotlib.ticker import MaxNLocator

    fitted = fitted_model(model)
    history = fitted.history
    if not len(history):
        raise InvalidParameterError(
            f"{type(fitted.estimator).__name__} is not fitted by iterations, so there is no course to draw. Pass LGMD, "
            "LGMDPlus, PMF or DGRMD."
        )
    axes = one_axes(ax, (6.0, 3.6))
    objective, count = history.objective, np.arange(1, len(history) + 1)
    steps = count[history.graph_steps]
    # Without a line across a graph step, which is no step of the same descent.
    for part in np.split(np.arange(len(count)), steps - 1):
        if len(part):
            marker = "." if len(count) <= _DOTTED or len(part) == 1 else None
            axes.plot(count[part], objective[part], color=POSITIVE, marker=marker, linewidth=1.4, zorder=2)
    for number, step in enumerate(steps.tolist()):
        label = "graphs learned" if number == 0 else None
        axes.axvline(step - 0.5, color=NEGATIVE, linestyle="--", linewidth=1, label=label, zorder=1)
    if len(steps):
        axes.legend(fontsize="small", frameon=False, loc="upper right")
    low, high = _visible(objective, history.graph_steps)
    axes.set_ylim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    bound = fitted.posterior is not None
    axes.set(xlabel="iteration", ylabel="negative evidence bound" if bound else "objective")
    above = int(np.count_nonzero(objective > high))
    axes.set_title(_outcome(fitted.estimator) + (f" ({above} above the picture)" if above else ""), fontsize="medium")
    axes.grid(color=GREY, alpha=0.2)
    return axes


def _visible(objective: FloatArray, graph_steps: FloatArray) -> tuple[float, float]:
    """The range of all values but the first few of each descent, if those are far above the others."""
    since = np.arange(len(objective)) - np.maximum.accumulate(np.where(graph_steps, np.arange(len(objective)), 0))
    settled = objective[since >= min(3, len(objective) - 1)]
    settled = settled if len(settled) else objective
    low, high = float(objective.min()), float(settled.max())
    if objective.max() - low <= 4 * (high - low) or high == low:
        high = float(objective.max())
    room = 0.05 * (high - low) or max(abs(low), 1.0) * 0.01
    return low - room, high + room


def _outcome(estimator: Any) -> str:
    iterations = f"{estimator.n_iter_:,} iteration{'' if estimator.n_iter_ == 1 else 's'}"
    if estimator.converged_:
        return f"converged after {iterations}"
    return f"{'stopped' if estimator.status_ == 'max_iter' else estimator.status_} after {iterations}, not converged"

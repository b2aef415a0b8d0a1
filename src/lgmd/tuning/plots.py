"""Pictures of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgmd.tuning.spaces import Choices, Dimension, numbered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lgmd.tuning.result import TuningResult

__all__ = ["draw_trials"]

_COLUMNS = 3
_COLOURS = {"complete": "#1f5a99", "pruned": "#b8c4d0"}


def draw_trials(result: TuningResult) -> Figure:
    """Scores against the number of the trial, and against each parameter.

    The figure belongs to nobody's window: it is drawn without pyplot, and can be saved or shown in a notebook.
    """
    from matplotlib.figure import Figure

    panels = 1 + len(result.space_)
    columns = min(panels, _COLUMNS)
    rows = -(-panels // columns)
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    _draw_course(axes[0], result)
    for axis, (name, dimension) in zip(axes[1:], result.space_.items(), strict=False):
        _draw_parameter(axis, result, name, dimension)
    for axis in axes[panels:]:
        axis.remove()
    return figure


def _draw_course(axis: Axes, result: TuningResult) -> None:
    trials = result.trials_
    _scatter(axis, result, trials["number"].to_numpy())
    errors = trials["value"].where(trials["state"] == "complete", np.inf).to_numpy()
    best = np.minimum.accumulate(errors)
    known = np.isfinite(best)
    axis.step(trials["number"][known], best[known], where="post", color="#c0392b", label="best so far")
    axis.set_xlabel("trial")
    failed = int((trials["state"] == "failed").sum())
    axis.set_title(f"{len(trials)} trials, {failed} failed" if failed else f"{len(trials)} trials", fontsize="medium")
    axis.legend(fontsize="small", frameon=False)


def _draw_parameter(axis: Axes, result: TuningResult, name: str, dimension: Dimension) -> None:
    if isinstance(dimension, Choices):
        places = np.array([dimension.shown.index(value) for value in result.trials_[f"param_{name}"]], dtype=float)
        texts = numbered([_cut(value) for value in dimension.shown])
        axis.set_xticks(range(len(texts)), texts, rotation=20 if max(map(len, texts)) > 8 else 0)
        axis.set_xlim(-0.5, len(texts) - 0.5)
    else:
        places = result.trials_[f"param_{name}"].to_numpy(dtype=float)
        if dimension.log:
            axis.set_xscale("log")
    _scatter(axis, result, places)
    best = int(np.flatnonzero((result.trials_["value"] == result.best_score_) & _is(result, "complete"))[0])
    axis.plot(places[best], result.best_score_, marker="o", markersize=10, mfc="none", mec="#c0392b", linestyle="")
    axis.set_xlabel(name)


def _scatter(axis: Axes, result: TuningResult, places: Any) -> None:
    values = result.trials_["value"].to_numpy(dtype=float)
    for state, colour in _COLOURS.items():
        chosen = _is(result, state)
        if chosen.any():
            label = "complete" if state == "complete" else "given up"
            axis.scatter(places[chosen], values[chosen], s=16, color=colour, label=label)
    axis.set_ylabel("held-out RMSE")
    # A few settings far off would flatten all that matters.
    complete = values[_is(result, "complete")]
    low, high = complete.min(), np.quantile(complete, 0.9)
    if complete.max() > 10 * high > 0:
        axis.set_ylim(low - 0.05 * (high - low), high + 0.2 * (high - low))


def _is(result: TuningResult, state: str) -> Any:
    return (result.trials_["state"] == state).to_numpy()


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 24 else f"{text[:23]}…"

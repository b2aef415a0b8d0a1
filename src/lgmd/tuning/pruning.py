"""Giving up runs that are not getting anywhere, by the error on the held-out entries as they go on.

Only fits with ``inference="map"`` are watched, and only from the time on when all their graphs are learned: then the
factors run to one minimum, and the error settles at a geometric rate. Variational fits start anew under the first
graphs, so what a run shows early says nothing about its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd.estimators.factorization import Factorization
from lgmd.observed import HeldOut
from lgmd.solver import MapState, Progress
from lgmd.solver.graph_updates import updates_left

__all__ = ["Bar", "GivenUpError", "can_prune", "watch"]

# Iterations between two looks.
_EVERY = 3

# What a run may still gain is taken to be so many times what its present rate promises.
_BENEFIT_OF_DOUBT = 3.0


@dataclass(frozen=True)
class Bar:
    """What a run on one split has to beat.

    Attributes
    ----------
    error : float
        A run that is heading for a larger one is given up.
    scale : float
        What models divide the training table by.
    """

    error: float
    scale: float


class GivenUpError(Exception):
    """A run was stopped; ``error`` is what it had reached."""

    def __init__(self, error: float, iteration: int, bar: float) -> None:
        super().__init__(
            f"given up after {iteration} iterations at a held-out error of {error:.4g}, heading for more than "
            f"{bar:.4g}, the median of the finished trials"
        )
        self.error = error


def can_prune(estimator: Any, names: tuple[str, ...]) -> bool:
    """Whether runs of an estimator can be compared while they go on."""
    # The scale of the table is known from earlier trials, unless the trials themselves change it.
    moving = {"intercept", "intercept_penalty", "likelihood", "inference"}
    return isinstance(estimator, Factorization) and estimator.inference == "map" and not moving & set(names)


def watch(model: Any, held_out: HeldOut, bar: Bar) -> dict[str, Any]:
    """Options for ``fit`` that give the run up when it is heading for an error above the bar."""
    learners = model._learners()
    rounds = max(learner.rounds for learner in learners)
    return {"callback": _Watch(held_out, bar, min(getattr(model, "graph_updates", 0), rounds))}


class _Watch:
    """Looks at a run every few iterations."""

    def __init__(self, held_out: HeldOut, bar: Bar, graph_updates: int) -> None:
        self._held_out = held_out
        self._bar = bar
        self._graph_updates, self._graph_updates_done = graph_updates, 0
        self._errors: list[float] = []

    def __call__(self, progress: Progress) -> None:
        if progress.record.graph_step:
            self._graph_updates_done += 1
            self._errors.clear()
        state = progress.state
        if progress.iteration % _EVERY or not isinstance(state, MapState):
            return
        if updates_left(self._graph_updates, self._graph_updates_done, (state.sample_graph, state.feature_graph)) > 0:
            return
        self._errors.append(self._error(state))
        if heading_for(self._errors) > self._bar.error:
            raise GivenUpError(self._errors[-1], progress.iteration, self._bar.error)

    def _error(self, state: MapState) -> float:
        i, j = self._held_out.rows, self._held_out.columns
        means = state.intercepts
        predicted = np.einsum("ij,ij->i", state.X[i], state.W[j]) + means.rows[i] + means.column_offsets[j]
        residuals = self._held_out.values - self._bar.scale * predicted
        return float(np.sqrt(np.mean(np.square(residuals, dtype=np.float64))))


def heading_for(errors: list[float]) -> float:
    """The least error that a run can be expected to end with, from its last three; minus infinity where nobody knows.

    Changes that shrink by a ratio r at each look add up to ``r / (1 - r)`` times the last one.
    """
    if len(errors) < 3:
        return -math.inf
    before, last = errors[-3] - errors[-2], errors[-2] - errors[-1]
    if last <= 0:
        return errors[-1] if before <= 0 else -math.inf
    if last >= before:
        return -math.inf
    ratio = last / before
    return errors[-1] - _BENEFIT_OF_DOUBT * last * ratio / (1 - ratio)

"""How a run can end, each way with a message for the user."""

from __future__ import annotations

import math
from enum import Enum

from lgmd.solver.history import History

__all__ = ["Status"]


class Status(Enum):
    """The end of a run."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"

    def message(self, name: str, history: History, tol: float, graph_updates_left: int, measure: str) -> str:
        """What to tell the user; empty where there is nothing to tell."""
        n_iter, change = len(history), history.last_change
        if self is Status.MAX_ITER:
            fell = "fell" if history.always_fell() else "did not fall"
            if graph_updates_left:
                done = int(history.graph_steps.sum())
                reason = f"the graphs were learned {done} of {done + graph_updates_left} times"
            elif math.isnan(change):
                reason = "the last iteration had nothing to be compared with"
            else:
                reason = f"the {measure} {change:.1e} is above tol={tol:.0e}"
            return (
                f"{name} was stopped by max_iter after {n_iter} iterations; {reason}. "
                f"Raise max_iter, or accept: the objective {fell} in every iteration with the same graphs."
            )
        if self is Status.INTERRUPTED:
            if n_iter == 0:
                return f"{name} was interrupted before its first iteration ended; the model holds the starting factors."
            return (
                f"{name} was interrupted after {n_iter} iterations, before it had converged to tol={tol:.0e}. "
                "The model holds the last complete iteration and can be used."
            )
        return ""

"""How a run can end, each way with a message for the user."""

from __future__ import annotations

from enum import Enum

__all__ = ["Status"]


class Status(Enum):
    """The end of a run."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"

    def message(self, name: str, n_iter: int, change: float, tol: float, fell: bool) -> str:
        """What to tell the user; empty where there is nothing to tell."""
        if self is Status.MAX_ITER:
            verdict = (
                "the objective fell in every iteration" if fell else "the objective did not fall in every iteration"
            )
            return (
                f"{name} stopped after max_iter={n_iter} iterations; the relative change {change:.1e} is above "
                f"tol={tol:.0e}. Raise max_iter, or accept: {verdict}."
            )
        if self is Status.INTERRUPTED:
            return (
                f"{name} was interrupted after {n_iter} iterations; the relative change was {change:.1e}, "
                f"tol={tol:.0e}. The model holds the last complete iteration and can be used."
            )
        return ""

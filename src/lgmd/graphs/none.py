"""No graph: with it on both sides LGMD is probabilistic matrix factorisation."""

from __future__ import annotations

from dataclasses import dataclass

from lgmd.graphs.base import GraphEstimate, GraphLearner, Side
from lgmd.observed import Observed

__all__ = ["NoGraph"]


@dataclass(frozen=True, eq=False)
class NoGraph(GraphLearner):
    """Rows do not depend on each other: the identity."""

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """The identity."""
        return GraphEstimate.identity(data.shape[0])

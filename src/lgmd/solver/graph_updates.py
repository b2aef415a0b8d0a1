"""When graphs are learned: once where the first look at the factors shows nothing, else as often as learners want."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lgmd._typing import FloatArray, SparseGraph
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.observed import Observed

__all__ = ["known_rows", "updated", "updates_left"]


def known_rows(factor: FloatArray, data: Observed, precision: SparseGraph) -> FloatArray:
    """The factor, with zeros in rows of which neither an entry nor an edge says anything.

    What stands there instead is what unfinished solves and moves between intercepts and factors have left.
    """
    known = data.row_counts > 0
    if known.all():
        return factor
    known |= np.asarray((precision != 0).sum(axis=1)).ravel() > 1
    return factor * known[:, None]


def updates_left(most: int, done: int, graphs: tuple[GraphEstimate, GraphEstimate]) -> int:
    """How often graphs are still to be learned, of ``most`` times."""
    if done and all(graph.is_identity for graph in graphs):
        return 0
    return most - done


def updated(
    learner: GraphLearner, moments: Callable[[], FactorMoments], previous: GraphEstimate, done: int
) -> GraphEstimate:
    """What a learner makes of a factor after it has learned so often.

    Only learners know what factors show; a graph that entries spoke for is offered anew.
    """
    if done >= learner.rounds or (done and previous.is_identity):
        return previous
    if done == 0:
        return learner.learn(moments(), previous)
    if previous.proven:
        return learner.relearn(moments(), previous) if learner.looks_again(previous) else previous
    offered = learner.unproven(moments(), previous)
    return replace(offered, proven=False) if offered.n_edges else previous

"""A given graph of unknown worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lgmd._typing import Array, SparseGraph
from lgmd._validation import as_symmetric
from lgmd.exceptions import InvalidGraphError
from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner, Side, graph_over
from lgmd.graphs.strength import WeightedGraph, best_ratio, likeliest_ratio
from lgmd.observed import Observed

__all__ = ["PriorGraph", "given_edges", "trusted"]

# Nats by which a graph has to be better than none: a strength fitted to noise gains as much once in a thousand times.
_WORTH = 5.0


# Columns that the data has to know.
_KNOWN = 0.3


@dataclass(frozen=True, eq=False)
class PriorGraph(GraphLearner):
    r"""A graph that is given, trusted as far as the data does: days in order, stations on a map, a social network.

    The precision is :math:`a I + b L`, scaled so that all rows have unit variance, with the ratio ``b / a`` of largest
    likelihood for factors that have not seen the graph; their uncertainty is part of the likelihood. A graph that says
    nothing about the rows ends with ``b = 0``, as no graph at all. The ratio is the model's ``sample_strength_`` or
    ``feature_strength_``.

    Parameters
    ----------
    adjacency : array-like or sparse matrix of shape (n, n)
        Symmetric. Weights say how close two nodes are; a negative one joins nodes that are opposite. The diagonal is
        ignored.
    """

    rounds: ClassVar[int] = 1

    adjacency: Any

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """Check the matrix against the table; no edge before a factor is known."""
        given_edges(self.adjacency, data.shape[0], side, data.row_names)
        return GraphEstimate.identity(data.shape[0])

    def learn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """The best strength for the factor."""
        return trusted(WeightedGraph.of_adjacency(as_symmetric(self.adjacency, "The graph")), moments)


def trusted(graph: WeightedGraph, moments: FactorMoments, least: float = 0.0) -> GraphEstimate:
    """A graph with the strength that a factor gives it; none where that gains little.

    ``least`` is the gain, in nats for each number of the factor, with which a graph is worth its cost.
    """
    n, k = moments.mean.shape
    # Factors that the data does not know cannot judge.
    if not len(graph) or moments.sample_size < _KNOWN:
        return GraphEstimate.identity(n)
    values = graph.spectrum()
    if moments.variance is None:
        # Rows about their mean have lost the one direction in which a graph without opposite nodes is flat.
        freedom = n - int(graph.weights.min() > 0)
        ratio, gain = best_ratio(freedom, values, graph.roughness(moments.centred()))
    else:
        ratio, gain = likeliest_ratio(graph, values, moments)
    # Columns that repeat others say nothing new.
    if gain * moments.centred().n_directions <= max(_WORTH, least * n * k):
        return GraphEstimate.identity(n)
    return graph.precision(ratio, values)


def given_edges(adjacency: Any, n: int, side: Side, names: Array | None = None) -> SparseGraph:
    """A symmetric adjacency over the ``n`` nodes of a side, in the order of their names if it has labels."""
    if adjacency is None or callable(adjacency):
        found = "None" if adjacency is None else "a function, which is taken for candidates alone"
        raise InvalidGraphError(
            f"{side.parameter} needs an adjacency matrix, but was given {found}. Pass the matrix itself, {n} x {n}."
        )
    graph = graph_over(adjacency, n, side, names)
    degrees = np.asarray(abs(graph).sum(axis=1)).ravel() - np.abs(graph.diagonal())
    row_sums = np.asarray(graph.sum(axis=1)).ravel()
    joined = degrees > 0
    if joined.any() and np.all(graph.diagonal()[joined] > 0) and np.all(np.abs(row_sums) <= 1e-10 * degrees.max()):
        raise InvalidGraphError(
            f"{side.parameter} looks like a Laplacian: its rows sum to zero. What is needed is the adjacency, "
            "whose weights are positive between nodes that are alike."
        )
    return graph

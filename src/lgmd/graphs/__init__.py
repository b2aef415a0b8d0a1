"""Learners of graphs, one a file, and the functions behind them for people who only want a graph.

A graph over n nodes is a sparse precision matrix. A learner makes it from the table (``NoGraph``, ``FixedGraph``,
``KNNGraph``) or re-estimates it from the factors as they settle (``ThresholdGraph``).
"""

from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner, Side
from lgmd.graphs.fixed import FixedGraph
from lgmd.graphs.knn import KNNGraph
from lgmd.graphs.laplacians import laplacian
from lgmd.graphs.none import NoGraph
from lgmd.graphs.registry import LEARNERS, as_learner
from lgmd.graphs.threshold import ThresholdGraph, threshold_precision

__all__ = [
    "LEARNERS",
    "FactorMoments",
    "FixedGraph",
    "GraphEstimate",
    "GraphLearner",
    "KNNGraph",
    "NoGraph",
    "Side",
    "ThresholdGraph",
    "as_learner",
    "laplacian",
    "threshold_precision",
]

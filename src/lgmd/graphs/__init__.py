"""Learners of graphs, one a file, and the functions behind them for people who only want a graph.

A graph over n nodes is a sparse precision matrix. A learner is given it (``FixedGraph``), makes it from the table
(``NoGraph``, ``KNNGraph``), or re-estimates it from the factors as they settle: ``EvidenceGraph``, the default, and
``PriorGraph`` for a graph that is given but of unknown worth; ``ThresholdGraph``, ``GraphicalLassoGraph`` and
``LaplacianGraph`` of the paper. :mod:`lgmd.graphs.candidates` says which edges may exist.
"""

from lgmd.graphs import candidates
from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner, Side
from lgmd.graphs.evidence import EvidenceGraph
from lgmd.graphs.fixed import FixedGraph
from lgmd.graphs.glasso import GraphicalLassoGraph, graphical_lasso
from lgmd.graphs.knn import KNNGraph
from lgmd.graphs.laplacians import laplacian
from lgmd.graphs.none import NoGraph
from lgmd.graphs.nonnegative import LaplacianEstimate, LaplacianGraph, laplacian_precision
from lgmd.graphs.prior import PriorGraph
from lgmd.graphs.registry import LEARNERS, as_learner
from lgmd.graphs.summary import (
    GraphSummary,
    components,
    degrees,
    describe,
    edge_list,
    partial_correlations,
    to_networkx,
)
from lgmd.graphs.threshold import ThresholdGraph, threshold_precision

__all__ = [
    "LEARNERS",
    "EvidenceGraph",
    "FactorMoments",
    "FixedGraph",
    "GraphEstimate",
    "GraphLearner",
    "GraphSummary",
    "GraphicalLassoGraph",
    "KNNGraph",
    "LaplacianEstimate",
    "LaplacianGraph",
    "NoGraph",
    "PriorGraph",
    "Side",
    "ThresholdGraph",
    "as_learner",
    "candidates",
    "components",
    "degrees",
    "describe",
    "edge_list",
    "graphical_lasso",
    "laplacian",
    "laplacian_precision",
    "partial_correlations",
    "threshold_precision",
    "to_networkx",
]

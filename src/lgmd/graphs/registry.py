"""From what users write for a graph to a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lgmd._validation import refuse_networkx
from lgmd.exceptions import InvalidParameterError
from lgmd.graphs.base import GraphEstimate, GraphLearner
from lgmd.graphs.evidence import EvidenceGraph
from lgmd.graphs.fixed import FixedGraph
from lgmd.graphs.glasso import GraphicalLassoGraph
from lgmd.graphs.knn import KNNGraph
from lgmd.graphs.none import NoGraph
from lgmd.graphs.nonnegative import LaplacianGraph
from lgmd.graphs.prior import PriorGraph
from lgmd.graphs.threshold import ThresholdGraph
from lgmd.observed.labels import is_frame

__all__ = ["LEARNERS", "as_learner"]

LEARNERS: dict[str, type[GraphLearner]] = {
    "none": NoGraph,
    "fixed": FixedGraph,
    "prior": PriorGraph,
    "knn": KNNGraph,
    "threshold": ThresholdGraph,
    "glasso": GraphicalLassoGraph,
    "laplacian": LaplacianGraph,
    "evidence": EvidenceGraph,
}


def as_learner(graph: Any, parameter: str) -> GraphLearner:
    """A learner from a name, a learner or a matrix."""
    if isinstance(graph, GraphLearner):
        learner = graph
    elif isinstance(graph, str):
        names = [name for name in LEARNERS if name not in ("fixed", "prior")]
        if graph not in names:
            known = ", ".join(repr(name) for name in names)
            raise InvalidParameterError(f"{parameter} must be one of {known}, a learner or a matrix, but is {graph!r}.")
        learner = LEARNERS[graph]()
    elif graph is None:
        learner = NoGraph()
    elif isinstance(graph, GraphEstimate):
        learner = FixedGraph(graph.precision)
    elif scipy.sparse.issparse(graph) or isinstance(graph, list | tuple) or hasattr(graph, "__array__"):
        is_matrix = scipy.sparse.issparse(graph) or is_frame(graph) or isinstance(graph, np.ndarray)
        learner = FixedGraph(graph if is_matrix else np.asarray(graph))
    else:
        refuse_networkx(graph, parameter)
        if isinstance(graph, type) and issubclass(graph, GraphLearner):
            raise InvalidParameterError(f"{parameter} is the class {graph.__name__}. Pass {graph.__name__}(...).")
        raise InvalidParameterError(
            f"{parameter} must be a name, a learner or a matrix, but is a {type(graph).__name__}."
        )
    learner.validate()
    return learner

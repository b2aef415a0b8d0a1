"""A graph that is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import SparseGraph
from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs.base import GraphEstimate, GraphLearner, Side, graph_over
from lgmd.graphs.laplacians import check_ridge, laplacian
from lgmd.linalg.logdet import log_determinant
from lgmd.observed import Observed

__all__ = ["FixedGraph"]

_KINDS = ("auto", "precision", "laplacian", "adjacency")


@dataclass(frozen=True, eq=False)
class FixedGraph(GraphLearner):
    """A given graph, used as it is: GRMD with true graphs, GRALS, a network or a map.

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse matrix of shape (n, n)
        Symmetric. Labels of a DataFrame are compared with the names of the table; those in another order are refused.
    kind : {"auto", "precision", "laplacian", "adjacency"}, default="auto"
        What the matrix is. A precision is taken unchanged. A Laplacian gets a ridge, ``L + ridge I``. Of an adjacency
        the Laplacian is formed first. ``"auto"`` takes weights without a sign whose diagonal has a zero for an
        adjacency, rows that sum to zero for a Laplacian, and anything else for a precision.
    ridge : float, default=0.1
        How far from its neighbours a node may stray; not used for a precision.
    """

    matrix: Any
    kind: str = "auto"
    ridge: float = 0.1

    def validate(self) -> None:
        """Check kind and ridge."""
        if self.kind not in _KINDS:
            known = ", ".join(repr(kind) for kind in _KINDS)
            raise InvalidParameterError(f"kind must be one of {known}, but is {self.kind!r}.")
        check_ridge(self.ridge)

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """Check the matrix against the table and make a precision of it."""
        n = data.shape[0]
        graph = graph_over(self.matrix, n, side, data.row_names)
        kind = _recognise(graph) if self.kind == "auto" else self.kind
        if kind == "adjacency":
            if graph.data.min(initial=0.0) < 0:
                raise InvalidGraphError(
                    f"{side.parameter} has negative weights (smallest {graph.data.min():.6g}), so it is no adjacency. "
                    'Pass a precision matrix with kind="precision" for signed edges.'
                )
            graph = laplacian(graph)
        if kind != "precision":
            graph = scipy.sparse.csr_array(graph + self.ridge * scipy.sparse.eye_array(n))
        try:
            logdet = log_determinant(graph).value
        except np.linalg.LinAlgError:
            raise InvalidGraphError(
                f"{side.parameter} is not positive definite, so it is not the precision of anything. Add a ridge to "
                "its diagonal, or pass an adjacency or a Laplacian, which get one."
            ) from None
        return GraphEstimate(graph, logdet)


def _recognise(graph: SparseGraph) -> str:
    diagonal = graph.diagonal()
    largest = np.abs(graph.data).max(initial=0.0)
    if graph.data.min(initial=0.0) >= 0 and np.any(diagonal == 0):
        return "adjacency"
    row_sums = np.asarray(graph.sum(axis=1)).ravel()
    off_diagonal = scipy.sparse.csr_array(graph - scipy.sparse.diags_array(diagonal))
    if np.all(np.abs(row_sums) <= 1e-10 * largest) and off_diagonal.data.max(initial=0.0) <= 0:
        return "laplacian"
    return "precision"

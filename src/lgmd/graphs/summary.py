r"""What a learned graph says: partial correlations, a list of its edges, its degrees and components.

Every function takes a precision matrix, such as ``model.sample_graph_``, or a :class:`~lgmd.graphs.GraphEstimate`, and
costs ``O(edges)``. An edge between nodes i and j is an entry :math:`a_{ij} \ne 0` off the diagonal; its weight is
:math:`-a_{ij}`, which is positive where the two nodes go together, all others held.

>>> from lgmd.graphs.summary import describe, edge_list
>>> precision = [[2.0, -1.0, 0.0, 0.0], [-1.0, 2.0, 0.5, 0.0], [0.0, 0.5, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
>>> print(edge_list(precision, names=["oslo", "bergen", "tromso", "vardo"]))
   source  target  weight  partial_correlation
0    oslo  bergen     1.0                 0.50
1  bergen  tromso    -0.5                -0.25
>>> print(describe(precision))
4 nodes, 2 edges (33.3 % of all pairs)
2 components, the largest of 3 nodes; 1 node without an edge
degree 1 on average, 2 at most
50.0 % of the edges are positive; partial correlations up to 0.500, median 0.375
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd._validation import as_symmetric
from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs.base import GraphEstimate
from lgmd.graphs.covariances import check_diagonal
from lgmd.graphs.laplacians import adjacency_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GraphSummary", "components", "degrees", "describe", "edge_list", "partial_correlations", "to_networkx"]


@dataclass(frozen=True)
class GraphSummary:
    """A graph in a few numbers; ``print`` it.

    Attributes
    ----------
    n_nodes, n_edges : int
    density : float
        Share of all pairs of nodes that are edges.
    n_components : int
        Connected components, nodes without an edge among them.
    n_isolated : int
        Nodes without an edge.
    largest_component : int
        Nodes of the largest component.
    mean_degree : float
        Edges a node, on average.
    max_degree : int
    positive_share : float
        Share of edges with a positive weight; NaN without edges.
    median_strength, max_strength : float
        Of the absolute partial correlations of the edges; NaN without edges.
    """

    n_nodes: int
    n_edges: int
    density: float
    n_components: int
    n_isolated: int
    largest_component: int
    mean_degree: float
    max_degree: int
    positive_share: float
    median_strength: float
    max_strength: float

    def __str__(self) -> str:
        nodes = _count(self.n_nodes, "node")
        if self.n_edges == 0:
            return f"{nodes}, no edges"
        return (
            f"{nodes}, {_count(self.n_edges, 'edge')} ({100 * self.density:.3g} % of all pairs)\n"
            f"{_count(self.n_components, 'component')}, the largest of {_count(self.largest_component, 'node')}; "
            f"{_count(self.n_isolated, 'node')} without an edge\n"
            f"degree {self.mean_degree:.3g} on average, {self.max_degree:,} at most\n"
            f"{100 * self.positive_share:.1f} % of the edges are positive; partial correlations up to "
            f"{self.max_strength:.3f}, median {self.median_strength:.3f}"
        )


def partial_correlations(precision: Any) -> SparseGraph:
    r"""Correlation of each two joined nodes, all others held: :math:`-a_{ij} / \sqrt{a_{ii} a_{jj}}`.

    Parameters
    ----------
    precision : sparse matrix or array-like of shape (n, n), or GraphEstimate

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric, with an entry for every edge. The diagonal is left empty: no node has an edge to itself.
    """
    edges = _edges(precision)
    return adjacency_of(edges.n, edges.rows, edges.columns, edges.partial_correlations)


def edge_list(precision: Any, names: Any = None) -> pd.DataFrame:
    """The edges as a table, the strongest partial correlation first.

    Parameters
    ----------
    precision : sparse matrix or array-like of shape (n, n), or GraphEstimate
    names : sequence of length n, default=None
        A name for each node, such as ``model.sample_names_in_``; positions otherwise.

    Returns
    -------
    DataFrame
        Columns ``source``, ``target``, ``weight`` and ``partial_correlation``; each edge once, the node that comes
        first is the source. Edges of equal strength are in the order of their nodes.
    """
    import pandas as pd

    edges = _edges(precision)
    labels = pd.RangeIndex(edges.n) if names is None else pd.Index(_named(names, edges.n), tupleize_cols=False)
    order = np.argsort(-np.abs(edges.partial_correlations), kind="stable")
    return pd.DataFrame(
        {
            "source": labels.take(edges.rows[order]),
            "target": labels.take(edges.columns[order]),
            "weight": edges.weights[order],
            "partial_correlation": edges.partial_correlations[order],
        }
    )


def to_networkx(precision: Any, names: Any = None) -> Any:
    """The graph as a ``networkx.Graph``; needs networkx.

    Parameters
    ----------
    precision : sparse matrix or array-like of shape (n, n), or GraphEstimate
    names : sequence of length n, default=None
        A different name for each node; positions otherwise.

    Returns
    -------
    networkx.Graph
        With all nodes in order, also those without an edge. Edges have ``weight`` and ``partial_correlation``, both
        negative where two nodes oppose each other; algorithms that take weights for distances want neither.
    """
    try:
        networkx: Any = import_module("networkx")
    except ImportError:
        raise ImportError("to_networkx needs networkx, which is not installed. Try: pip install networkx") from None
    edges = _edges(precision)
    nodes = list(range(edges.n)) if names is None else list(_named(names, edges.n))
    graph = networkx.Graph()
    graph.add_nodes_from(nodes)
    if len(graph) < edges.n:
        raise InvalidParameterError(
            f"Only {len(graph):,} of the {edges.n:,} names are different, but each node needs its own."
        )
    graph.add_edges_from(
        (nodes[i], nodes[j], {"weight": weight, "partial_correlation": correlation})
        for i, j, weight, correlation in zip(
            edges.rows.tolist(),
            edges.columns.tolist(),
            edges.weights.tolist(),
            edges.partial_correlations.tolist(),
            strict=True,
        )
    )
    return graph


def degrees(precision: Any) -> IntArray:
    """Number of edges of each node, (n,)."""
    return _edges(precision).degrees


def components(precision: Any) -> IntArray:
    """Which connected component each node belongs to, (n,): 0 is the largest.

    Components of equal size are in the order of their first nodes.
    """
    return _edges(precision).components


def describe(precision: Any) -> GraphSummary:
    """A graph in a few numbers.

    Parameters
    ----------
    precision : sparse matrix or array-like of shape (n, n), or GraphEstimate

    Returns
    -------
    GraphSummary
    """
    edges = _edges(precision)
    n, n_edges = edges.n, len(edges.rows)
    degree = edges.degrees
    sizes = np.bincount(edges.components)
    strengths = np.abs(edges.partial_correlations)
    return GraphSummary(
        n_nodes=n,
        n_edges=n_edges,
        density=n_edges / max(1, n * (n - 1) // 2),
        n_components=len(sizes),
        n_isolated=int(np.count_nonzero(degree == 0)),
        largest_component=int(sizes.max(initial=0)),
        mean_degree=2 * n_edges / max(1, n),
        max_degree=int(degree.max(initial=0)),
        positive_share=float(np.mean(edges.weights > 0)) if n_edges else float("nan"),
        median_strength=float(np.median(strengths)) if n_edges else float("nan"),
        max_strength=float(strengths.max()) if n_edges else float("nan"),
    )


class _Edges(NamedTuple):
    """The edges of a precision, each once, sorted by row and then by column."""

    n: int
    rows: IntArray
    columns: IntArray
    weights: FloatArray
    partial_correlations: FloatArray

    @property
    def degrees(self) -> IntArray:
        return np.bincount(self.rows, minlength=self.n) + np.bincount(self.columns, minlength=self.n)

    @property
    def components(self) -> IntArray:
        joined = scipy.sparse.csr_array((np.ones(len(self.rows)), (self.rows, self.columns)), shape=(self.n, self.n))
        _, labels = connected_components(joined, directed=False)
        _, first, sizes = np.unique(labels, return_index=True, return_counts=True)
        rank = np.empty(len(sizes), dtype=np.int64)
        rank[np.lexsort((first, -sizes))] = np.arange(len(sizes))
        return np.asarray(rank[labels])


def _edges(precision: Any) -> _Edges:
    graph = as_symmetric(precision.precision if isinstance(precision, GraphEstimate) else precision, "The precision")
    diagonal = graph.diagonal()
    advice = "An adjacency or a Laplacian is no precision: add a positive diagonal to its Laplacian first."
    check_diagonal(diagonal, "The precision", advice)
    n = len(diagonal)
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    upper = rows < graph.indices
    rows, columns, weights = rows[upper], graph.indices[upper].astype(np.int64), -graph.data[upper]
    # One root at a time: the product of two small variances may be too small for a number.
    scale = np.sqrt(diagonal)
    correlations = weights / scale[rows] / scale[columns]
    if np.any(np.abs(correlations) > 1 + 1e-8):
        worst = int(np.argmax(np.abs(correlations)))
        raise InvalidGraphError(
            f"The precision is not positive definite: nodes {rows[worst]} and {columns[worst]} have a partial "
            f"correlation of {correlations[worst]:.6g}."
        )
    return _Edges(n, rows, columns, weights, correlations)


def _named(names: Any, n: int) -> Any:
    """Names, checked for their number."""
    if (
        isinstance(names, str | bytes | Mapping | Set)
        or not hasattr(names, "__len__")
        or getattr(names, "ndim", 1) != 1
    ):
        raise InvalidParameterError(f"names must be a list with a name for each node, but is {names!r:.80}.")
    if len(names) != n:
        raise InvalidParameterError(
            f"names has {len(names):,} entries but the graph has {n:,} nodes. Give one name a node."
        )
    # Plain values, but for dates, which numpy knows better.
    return names.tolist() if isinstance(names, np.ndarray) and names.dtype.kind not in "mM" else names


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"

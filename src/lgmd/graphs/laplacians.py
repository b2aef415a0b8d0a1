"""From adjacency matrices to precision matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import SparseGraph
from lgmd.exceptions import InvalidGraphError

__all__ = ["as_symmetric", "laplacian", "unit_scale"]


def as_symmetric(matrix: Any, name: str = "The graph") -> SparseGraph:
    """A finite, real, square, symmetric matrix as a float64 ``csr_array``; a copy.

    Asymmetry at the level of round-off is averaged away; more is an error.
    """
    if scipy.sparse.issparse(matrix):
        kind = matrix.dtype.kind
    else:
        matrix = np.asarray(matrix)
        kind = matrix.dtype.kind
    if kind not in "fiub":
        raise InvalidGraphError(f"{name} holds {matrix.dtype} values. A graph has real weights.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(str(length) for length in matrix.shape)
        raise InvalidGraphError(f"{name} is {shape}, but a graph over n nodes is an n x n matrix.")
    graph = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
    graph.sum_duplicates()
    if not np.all(np.isfinite(graph.data)):
        found = int((~np.isfinite(graph.data)).sum())
        raise InvalidGraphError(f"{name} has {found:,} entries that are NaN or infinite. Every weight must be finite.")
    asymmetry = abs(graph - graph.T)
    largest = np.abs(graph.data).max(initial=0.0)
    if asymmetry.nnz and asymmetry.max() > 1e-8 * largest:
        row, column = (int(index[asymmetry.tocoo().data.argmax()]) for index in asymmetry.tocoo().coords)
        raise InvalidGraphError(
            f"{name} is not symmetric: entry ({row}, {column}) is {graph[row, column]:.6g}, but ({column}, {row}) is "
            f"{graph[column, row]:.6g}. Pass (G + G.T) / 2 if both directions mean the same edge."
        )
    symmetric = scipy.sparse.csr_array((graph + graph.T) / 2)
    symmetric.eliminate_zeros()
    symmetric.sort_indices()
    return symmetric


def laplacian(adjacency: SparseGraph) -> SparseGraph:
    """``L = D - G`` of a symmetric adjacency; its diagonal is ignored."""
    edges = scipy.sparse.csr_array(adjacency - scipy.sparse.diags_array(adjacency.diagonal()))
    edges.eliminate_zeros()
    degrees = np.asarray(edges.sum(axis=1)).ravel()
    return scipy.sparse.csr_array(scipy.sparse.diags_array(degrees) - edges)


def unit_scale(precision: SparseGraph) -> SparseGraph:
    """Divide by one number so that the diagonal is one on average.

    The scale of a precision belongs to the factors' variance; a scale for every row would overfit.
    """
    return scipy.sparse.csr_array(precision / float(precision.diagonal().mean()))

"""From edges to adjacency matrices, and from these to precision matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd._validation import as_symmetric
from lgmd.graphs.parameters import check_positive

__all__ = ["adjacency_of", "check_ridge", "laplacian", "unit_scale"]


def check_ridge(ridge: Any) -> None:
    """A positive number: a Laplacian alone is singular."""
    check_positive(ridge, "ridge", "a Laplacian alone is singular")


def adjacency_of(n: int, rows: IntArray, columns: IntArray, values: FloatArray | None = None) -> SparseGraph:
    """A symmetric matrix from its pairs, each given once; of booleans without values."""
    ends = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    both = np.ones(2 * len(rows), dtype=bool) if values is None else np.concatenate([values, values])
    return scipy.sparse.csr_array((both, ends), shape=(n, n))


def laplacian(adjacency: Any) -> SparseGraph:
    """``L = D - G`` of a symmetric adjacency; its diagonal is ignored.

    Parameters
    ----------
    adjacency : array-like or sparse matrix of shape (n, n)
        Weights of any real type; of booleans, such as candidates, every edge weighs one.

    Returns
    -------
    csr_array of float64, shape (n, n)
    """
    weights = as_symmetric(adjacency, "The adjacency")
    edges = scipy.sparse.csr_array(weights - scipy.sparse.diags_array(weights.diagonal()))
    edges.eliminate_zeros()
    degrees = np.asarray(edges.sum(axis=1)).ravel()
    return scipy.sparse.csr_array(scipy.sparse.diags_array(degrees) - edges)


def unit_scale(precision: SparseGraph) -> SparseGraph:
    """Divide by one number so that the diagonal is one on average.

    The scale of a precision belongs to the factors' variance; a scale for every row would overfit.
    """
    return scipy.sparse.csr_array(precision / float(precision.diagonal().mean()))

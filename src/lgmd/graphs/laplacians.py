"""From adjacency matrices to precision matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lgmd._typing import SparseGraph

__all__ = ["laplacian", "unit_scale"]


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

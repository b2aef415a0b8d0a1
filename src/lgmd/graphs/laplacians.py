"""From adjacency matrices to precision matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import SparseGraph
from lgmd._validation import check_real
from lgmd.exceptions import InvalidParameterError

__all__ = ["check_ridge", "laplacian", "unit_scale"]


def check_ridge(ridge: Any) -> None:
    """A positive number: a Laplacian alone is singular."""
    if not check_real(ridge, "ridge", minimum=-np.inf) > 0:
        raise InvalidParameterError(f"ridge must be positive, but is {ridge}: a Laplacian alone is singular.")


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

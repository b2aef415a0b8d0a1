"""Edges found: how much of a true graph is in a learned one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd._validation import as_symmetric
from lgmd.exceptions import InvalidGraphError, InvalidParameterError

__all__ = ["edge_recovery"]

# Partial correlations are compared to this many decimals: what is equal but for rounding is a tie, and what
# rounding left in place of zero is no edge.
_DECIMALS = 12


def edge_recovery(
    true_precision: ArrayLike | SparseGraph,
    estimated_precision: ArrayLike | SparseGraph,
    shares: Sequence[float] = (0.1, 0.2, 0.3),
) -> FloatArray:
    r"""
    Fraction of the strongest true edges that an estimated graph has.

    The strength of an edge is its absolute partial correlation,

    .. math:: |\rho_{ij}| = |\Theta_{ij}| \big/ \sqrt{\Theta_{ii} \Theta_{jj}},

    which does not change when nodes are rescaled (:math:`\Theta \to D \Theta D` with a positive diagonal
    :math:`D`). For each share, that share of the true graph's m edges is taken, the strongest first, and an
    edge counts as found if the estimate has it. A dense estimate would find everything, so an estimate with
    more than m edges is first cut to its m strongest. A random graph of m edges therefore scores about the
    true edge density, and the true graph scores one, in every scale.

    Ties in strength go to the edge with the smaller indices (row, then column), in both graphs. The cost is
    O(e log e) time and O(e) memory for e stored entries; a sparse matrix is never made dense.

    Parameters
    ----------
    true_precision : array or sparse array of shape (n, n)
        The true precision matrix: symmetric, with a positive diagonal. Its off-diagonal non-zeros are the
        edges; partial correlations below 1e-12 are taken for rounding and are none.
    estimated_precision : array or sparse array of shape (n, n)
        The estimate, with the same requirements. It may be dense.
    shares : sequence of float, default=(0.1, 0.2, 0.3)
        Shares of the true edges to look for, each above 0 and at most 1. A share selects at least one edge.

    Returns
    -------
    ndarray of shape (len(shares),)
        Fractions found, between 0 and 1, in the order of `shares`.

    Raises
    ------
    InvalidGraphError
        If a matrix is not a precision over the same nodes, or the true graph has no edges.
    InvalidParameterError
        If a share is not above 0 and at most 1.

    Examples
    --------
    >>> chain = [[2.0, -1.0, 0.0], [-1.0, 2.0, -0.5], [0.0, -0.5, 2.0]]
    >>> single = [[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> edge_recovery(chain, single, shares=(0.5, 1.0))
    array([1. , 0.5])
    """
    portions = _as_portions(shares)
    if portions.ndim != 1 or not np.all((portions > 0) & (portions <= 1)):
        raise InvalidParameterError(
            f"shares must lie above 0 and at most at 1, but shares={shares!r} was given. "
            "Pass a sequence such as (0.1, 0.2, 0.3)."
        )
    true_edges = _strongest_first(true_precision, "true_precision")
    found_edges = _strongest_first(estimated_precision, "estimated_precision")
    if true_edges.n_nodes != found_edges.n_nodes:
        raise InvalidGraphError(
            f"true_precision has {true_edges.n_nodes:,} nodes but estimated_precision has "
            f"{found_edges.n_nodes:,}. Both must be graphs over the same nodes."
        )
    n_edges = len(true_edges.codes)
    if n_edges == 0:
        raise InvalidGraphError(
            "true_precision has no edges, so there is nothing to recover. Pass a graph with at least one edge."
        )
    is_found = np.isin(true_edges.codes, found_edges.codes[:n_edges])
    n_wanted = np.maximum(1, np.rint(portions * n_edges).astype(np.int64))
    fractions: FloatArray = np.cumsum(is_found)[n_wanted - 1] / n_wanted
    return fractions


@dataclass(frozen=True, eq=False)
class _RankedEdges:
    """Edges of a graph as codes ``row * n_nodes + column`` with row < column, the strongest first."""

    n_nodes: int
    codes: IntArray


def _as_portions(shares: Sequence[float]) -> FloatArray:
    """Return the shares as an array; what holds no real numbers is a NaN, which is no share."""
    try:
        portions = np.asarray(shares)
    except ValueError:
        return np.array(np.nan)
    return portions.astype(np.float64) if portions.dtype.kind in "fiu" else np.array(np.nan)


def _strongest_first(matrix: ArrayLike | SparseGraph, name: str) -> _RankedEdges:
    """Rank the edges of a precision matrix by their absolute partial correlation."""
    precision = _as_precision(matrix, name)
    scale = 1.0 / np.sqrt(precision.diagonal())
    upper = sparse.triu(precision, k=1, format="coo")
    rows, columns = upper.row.astype(np.int64), upper.col.astype(np.int64)
    strengths = np.round(np.abs(upper.data) * (scale[rows] * scale[columns]), _DECIMALS)
    codes = rows * precision.shape[0] + columns
    order = np.lexsort((codes, -strengths))
    n_edges = np.count_nonzero(strengths)
    return _RankedEdges(n_nodes=precision.shape[0], codes=codes[order[:n_edges]])


def _as_precision(matrix: ArrayLike | SparseGraph, name: str) -> SparseGraph:
    """Return a square, finite, symmetric matrix with a positive diagonal as a csr_array."""
    precision = as_symmetric(matrix, name)
    n_bad = np.count_nonzero(precision.diagonal() <= 0)
    if n_bad:
        raise InvalidGraphError(
            f"{name} has {n_bad:,} diagonal entries that are not positive, so partial correlations are "
            "undefined. Pass a positive definite precision; a Laplacian needs a ridge."
        )
    return precision

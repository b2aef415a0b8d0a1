"""The nearest-neighbour graph of the data: the paper's dGRMD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray
from lgmd._validation import check_integer
from lgmd.graphs.base import GraphEstimate, GraphLearner, Side
from lgmd.graphs.candidates import check_candidates
from lgmd.graphs.laplacians import check_ridge, laplacian, unit_scale
from lgmd.linalg.logdet import log_determinant
from lgmd.linalg.marginals import mean_marginal_variance
from lgmd.linalg.neighbors import (
    nearest_of_pairs,
    nearest_rows_with_gaps,
    pair_distances,
    pair_distances_with_gaps,
)
from lgmd.observed import Observed, SparseObserved

__all__ = ["KNNGraph", "nearest_candidates", "nearest_rows"]

# Distances are formed for a run of rows at a time: at most this many of them, 64 MB in double precision.
_BLOCK_DISTANCES = 8_000_000

# With gaps a distance counts as if so many more entries had been compared and found as far apart as any two.
_PRIOR_COMPARISONS = 5.0


@dataclass(frozen=True, eq=False)
class KNNGraph(GraphLearner):
    r"""Laplacian of the nearest-neighbour graph of the rows, plus a ridge, at unit scale.

    Two rows are joined where one is among the ``n_neighbors`` nearest of the other; every edge has weight one. Rows
    are compared by the mean squared difference of the entries observed in both. Where gaps leave few of these, the
    mean is pulled towards that of all pairs; without gaps this is Euclidean distance.

    Parameters
    ----------
    n_neighbors : int, default=5
    ridge : float, default=0.1
        Added to the Laplacian, in units of one edge.
    candidates : sparse matrix or array-like of shape (n, n), or callable, default=None
        Which rows may be joined, see :mod:`lgmd.graphs.candidates`; None for any. A row with fewer candidates than
        ``n_neighbors`` has all of them as its neighbours.
    """

    n_neighbors: int = 5
    ridge: float = 0.1
    candidates: Any = None

    def validate(self) -> None:
        """Check both parameters."""
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        check_ridge(self.ridge)

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """Find the neighbours.

        ``O(n^2 p)`` for a complete table; with gaps, as many steps as columns have pairs. With candidates, the entries
        of both rows of every candidate.
        """
        n = data.shape[0]
        allowed = check_candidates(self.candidates, n, side, data.row_names)
        if allowed is not None:
            rows, neighbors = nearest_candidates(data, *allowed, self.n_neighbors)
        else:
            n_neighbors = min(self.n_neighbors, n - 1)
            rows, neighbors = np.repeat(np.arange(n), n_neighbors), nearest_rows(data, n_neighbors).ravel()
            rows, neighbors = rows[neighbors < n], neighbors[neighbors < n]
        joined = scipy.sparse.csr_array((np.ones(len(rows)), (rows, neighbors)), shape=(n, n))
        adjacency = scipy.sparse.csr_array(joined.maximum(joined.T))
        known = np.flatnonzero((data.row_counts > 0) | (np.diff(adjacency.indptr) > 0))
        precision = unit_scale(laplacian(adjacency[known][:, known]) + self.ridge * scipy.sparse.eye_array(len(known)))
        found = GraphEstimate(precision, log_determinant(precision).value)
        return found if len(known) == n else found.among(n, known, 1.0 / mean_marginal_variance(precision))


def nearest_rows(data: Observed, n_neighbors: int) -> IntArray:
    """Indices (n, n_neighbors) of the rows nearest to each row, nearest first; see :class:`KNNGraph`.

    Rows without entries have no neighbours and are nobody's: n stands where there are no more.
    """
    if isinstance(data, SparseObserved):
        prior = _mean_square_difference(data)
        return nearest_rows_with_gaps(data.by_rows, data.by_columns, n_neighbors, _PRIOR_COMPARISONS, prior)
    return _nearest_euclidean(
        data.residual_matrix(np.zeros(data.shape[0], data.dtype), _column_means(data)), n_neighbors
    )


def nearest_candidates(
    data: Observed, rows: IntArray, columns: IntArray, n_neighbors: int
) -> tuple[IntArray, IntArray]:
    """The same among given pairs of rows: each row, repeated, and its neighbours, nearest first."""
    n, p = data.shape
    if isinstance(data, SparseObserved):
        prior = _mean_square_difference(data)
        distances = pair_distances_with_gaps(data.by_rows, rows, columns, _PRIOR_COMPARISONS, prior)
    else:
        table = data.residual_matrix(np.zeros(n, data.dtype), np.zeros(p, data.dtype))
        distances = pair_distances(table, rows, columns)
    return nearest_of_pairs(rows, columns, distances, n_neighbors)


def _nearest_euclidean(table: FloatArray, n_neighbors: int) -> IntArray:
    n = len(table)
    squares = np.einsum("ij,ij->i", table, table)
    neighbors = np.empty((n, n_neighbors), dtype=np.int64)
    block = max(1, min(n, _BLOCK_DISTANCES // n))
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        distances = squares[rows, None] + squares - 2.0 * (table[rows] @ table.T)
        distances[np.arange(distances.shape[0]), np.arange(start, rows.stop)] = np.inf
        nearest = np.argpartition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
        order = np.argsort(np.take_along_axis(distances, nearest, axis=1), axis=1, kind="stable")
        neighbors[rows] = np.take_along_axis(nearest, order, axis=1)
    return neighbors


def _mean_square_difference(data: Observed) -> float:
    """Expected squared difference of two entries of the same column."""
    n, p = data.shape
    squares, _ = data.residual_sums(
        np.zeros(n, data.dtype), _column_means(data), np.empty((n, 0), data.dtype), np.empty((p, 0), data.dtype)
    )
    return 2.0 * squares / data.n_observed


def _column_means(data: Observed) -> FloatArray:
    """Differences of rows do not see an offset of the columns, but round-off does."""
    n, p = data.shape
    sums = data.residual_matrix(np.zeros(n, data.dtype), np.zeros(p, data.dtype)).sum(axis=0)
    return np.asarray(np.asarray(sums).ravel() / np.maximum(data.T.row_counts, 1), dtype=data.dtype)

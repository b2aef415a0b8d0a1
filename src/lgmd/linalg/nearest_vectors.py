"""For each row the rows with the largest inner product, without an n x n array."""

from __future__ import annotations

import numba
import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg.threads import map_blocks

__all__ = ["nearest_pairs", "nearest_vectors"]

# A buffer of 256 x 1024 single-precision products stays in a core's own cache.
_BLOCK_ROWS = 256
_BLOCK_COLUMNS = 1024


def nearest_vectors(
    vectors: FloatArray, n_neighbors: int, *, rows: IntArray | None = None, absolute: bool = False
) -> IntArray:
    """Rows with the largest ``z_i . z_j``, largest first, of each row; ties go to the lower row.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Rows ``z_i``; single precision is twice as fast.
    n_neighbors : int
        At most n - 1.
    rows : ndarray of int, optional
        The rows i whose nearest are wanted; all by default.
    absolute : bool, default=False
        Whether ``|z_i . z_j|`` counts.

    Returns
    -------
    ndarray of int, shape (n or len(rows), n_neighbors)
        Cost: ``O(n k)`` operations a row, ``O(n_neighbors)`` memory a row.
    """
    vectors = np.ascontiguousarray(vectors)
    n = len(vectors)
    rows = np.arange(n) if rows is None else rows
    neighbors = np.empty((len(rows), n_neighbors), dtype=np.int64)

    def search(start: int, stop: int) -> None:
        values = np.full((stop - start, n_neighbors), -np.inf, dtype=vectors.dtype)
        left = vectors[rows[start:stop]]
        for column in range(0, n, _BLOCK_COLUMNS):
            products = left @ vectors[column : column + _BLOCK_COLUMNS].T
            if absolute:
                np.abs(products, out=products)
            _keep_largest(products, rows[start:stop], column, values, neighbors[start:stop])

    if n_neighbors:
        map_blocks(search, np.append(np.arange(0, len(rows), _BLOCK_ROWS), len(rows)), uses_blas=True)
    return neighbors


def nearest_pairs(vectors: FloatArray, n_neighbors: int) -> tuple[IntArray, IntArray]:
    """Pairs ``rows < columns`` of which one is among the nearest of the other, sorted by row and then by column."""
    neighbors = nearest_vectors(vectors, n_neighbors)
    n = len(neighbors)
    own = np.repeat(np.arange(n), n_neighbors)
    other = neighbors.ravel()
    keys = np.unique(np.minimum(own, other) * n + np.maximum(own, other))
    return keys // n, keys % n


@numba.njit(nogil=True, cache=True)
def _keep_largest(products, rows, column_start, values, neighbors):  # type: ignore[no-untyped-def]
    """Merge a block of products into the sorted lists of its rows."""
    last = values.shape[1] - 1
    for i in range(len(products)):
        row, best, names = products[i], values[i], neighbors[i]
        for j in range(len(row)):
            if row[j] > best[last] and column_start + j != rows[i]:
                position = last
                while position > 0 and row[j] > best[position - 1]:
                    best[position] = best[position - 1]
                    names[position] = names[position - 1]
                    position -= 1
                best[position] = row[j]
                names[position] = column_start + j

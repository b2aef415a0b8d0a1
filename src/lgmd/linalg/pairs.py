"""The search for edges: pairs of rows with a large inner product, without an n x n array.

Blocks of ``Z Z'`` are multiplied into a buffer that stays in the cache, a compiled pass keeps what is above the
threshold, and the rest is forgotten: ``O(n^2 k)`` operations, ``O(pairs kept)`` memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numba
import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg.threads import map_blocks

__all__ = ["Pairs", "block_products", "pairs_above", "strongest_pairs"]

# A buffer of 256 x 1024 single-precision products is 1 MB: it stays in a core's own cache.
_BLOCK_ROWS = 256
_BLOCK_COLUMNS = 1024


class Pairs(NamedTuple):
    """Pairs ``rows < columns`` with the inner product of their vectors."""

    rows: IntArray
    columns: IntArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: IntArray) -> Pairs:
        """The chosen ones."""
        return Pairs(self.rows[chosen], self.columns[chosen], self.values[chosen])


@numba.njit(nogil=True, fastmath=True, cache=True)
def _count_above(products, threshold, row_start, column_start, counts):  # type: ignore[no-untyped-def]
    """Pairs kept in each row of a block of products, upper triangle only; returns their sum."""
    one, none = products.dtype.type(1), products.dtype.type(0)
    total = 0
    for i in range(len(products)):
        row = products[i, max(0, row_start + i + 1 - column_start) :]
        # Counted in floating point, in the lanes of the comparison: ten times faster than in integers.
        inside = none
        for j in range(len(row)):
            inside += one if abs(row[j]) > threshold else none
        counts[i] = int(inside)
        total += counts[i]
    return total


@numba.njit(nogil=True, cache=True)
def _collect_above(products, threshold, row_start, column_start, counts, rows, columns, values):  # type: ignore[no-untyped-def]
    position = 0
    for i in range(len(products)):
        if counts[i] == 0:
            continue
        for j in range(max(0, row_start + i + 1 - column_start), products.shape[1]):
            if abs(products[i, j]) > threshold:
                rows[position] = row_start + i
                columns[position] = column_start + j
                values[position] = products[i, j]
                position += 1


def block_products(vectors: FloatArray, start: int, stop: int) -> Iterator[tuple[int, FloatArray]]:
    """Products of rows ``start:stop`` with all rows from ``start`` on, a block of columns at a time.

    Yields the first column and a buffer that the next block overwrites.
    """
    n = len(vectors)
    buffer = np.empty((stop - start, min(_BLOCK_COLUMNS, n)), dtype=vectors.dtype)
    left = np.ascontiguousarray(vectors[start:stop])
    for column in range(start, n, _BLOCK_COLUMNS):
        width = min(_BLOCK_COLUMNS, n - column)
        if width != buffer.shape[1]:
            buffer = np.empty((stop - start, width), dtype=vectors.dtype)
        np.dot(left, vectors[column : column + width].T, out=buffer)
        yield column, buffer


def pairs_above(vectors: FloatArray, threshold: float) -> Pairs:
    """All pairs ``i < j`` with ``|z_i . z_j| > threshold``.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Rows ``z_i``; single precision is twice as fast.
    threshold : float
        Pairs at or below it are left out.
    """
    vectors = np.ascontiguousarray(vectors)
    n = len(vectors)
    limit = vectors.dtype.type(threshold)
    empty = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, vectors.dtype))
    boundaries = np.append(np.arange(0, n, _BLOCK_ROWS), n)

    def search(start: int, stop: int) -> Pairs:
        found = [empty]
        counts = np.empty(stop - start, np.int64)
        for column, products in block_products(vectors, start, stop):
            count = _count_above(products, limit, start, column, counts)
            if count:
                part = Pairs(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, vectors.dtype))
                _collect_above(products, limit, start, column, counts, *part)
                found.append(part)
        return _concatenate(found)

    return _concatenate([empty, *map_blocks(search, boundaries, uses_blas=True)])


def strongest_pairs(vectors: FloatArray, count: int) -> Pairs:
    """The ``count`` pairs with the largest ``|z_i . z_j|``, strongest first; ties by position.

    The threshold rises as stronger pairs are found, so memory stays ``O(count)``.
    """
    vectors = np.ascontiguousarray(vectors)
    n = len(vectors)
    count = min(count, n * (n - 1) // 2)
    if count <= 0:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, vectors.dtype))
    threshold = _starting_threshold(vectors, count)
    pairs = pairs_above(vectors, threshold)
    while len(pairs) < count:  # the sample promised too much: look lower
        threshold = -1.0 if threshold < 1e-6 else 0.5 * threshold
        pairs = pairs_above(vectors, threshold)
    order = np.lexsort((pairs.columns, pairs.rows, -np.abs(pairs.values)))
    return pairs.take(order[:count])


def _starting_threshold(vectors: FloatArray, count: int) -> float:
    """A threshold that about twice ``count`` pairs exceed, from a sample of pairs."""
    n = len(vectors)
    n_pairs = n * (n - 1) // 2
    if 2 * count >= n_pairs:
        return -1.0
    rng = np.random.default_rng(0)
    n_sampled = min(2_000_000, max(10_000, 50 * n_pairs // count))
    rows = rng.integers(0, n, n_sampled)
    columns = (rows + rng.integers(1, n, n_sampled)) % n
    sampled = np.abs(np.einsum("ij,ij->i", vectors[rows], vectors[columns]))
    position = max(1, int(2.0 * count / n_pairs * n_sampled))
    return float(np.partition(sampled, -position)[-position])


def _concatenate(parts: list[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate([part[field] for part in parts]) for field in range(3)))

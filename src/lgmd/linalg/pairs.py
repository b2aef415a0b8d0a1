"""Inner products of pairs of rows, without an n x n array: of given pairs, or in search of the large ones.

Blocks of ``Z Z'`` are multiplied into a buffer that stays in the cache, a compiled pass keeps what is above the
threshold, and the rest is forgotten: ``O(n^2 k)`` operations, ``O(pairs kept)`` memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

import numba
import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg.threads import even_blocks, map_blocks

__all__ = [
    "BLOCK_ROWS",
    "Pairs",
    "TooManyPairsError",
    "block_products",
    "pair_products",
    "pairs_above",
    "strongest_pairs",
]

# A buffer of 256 x 1024 single-precision products is 1 MB: it stays in a core's own cache.
BLOCK_ROWS = 256
BLOCK_COLUMNS = 1024

# Pairs held beyond twice the number asked for, before the weakest are dropped: 20 MB.
_SLACK = 1_000_000


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


@numba.njit(nogil=True, fastmath={"reassoc"}, cache=True)
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
    buffer = np.empty((stop - start, min(BLOCK_COLUMNS, n)), dtype=vectors.dtype)
    left = np.ascontiguousarray(vectors[start:stop])
    for column in range(start, n, BLOCK_COLUMNS):
        width = min(BLOCK_COLUMNS, n - column)
        if width != buffer.shape[1]:
            buffer = np.empty((stop - start, width), dtype=vectors.dtype)
        np.dot(left, vectors[column : column + width].T, out=buffer)
        yield column, buffer


@numba.njit(nogil=True, fastmath={"reassoc", "contract"}, cache=True)
def _multiply_pairs(start, stop, vectors, rows, columns, out):  # type: ignore[no-untyped-def]
    for pair in range(start, stop):
        one, other = vectors[rows[pair]], vectors[columns[pair]]
        total = 0.0
        for position in range(len(one)):
            total += np.float64(one[position]) * np.float64(other[position])
        out[pair] = total


def pair_products(vectors: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """``z_i . z_j`` of given pairs, summed in double precision: ``O(m k)`` operations and no memory but the result.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Rows ``z_i``.
    rows, columns : ndarray of int, shape (m,)
        The pairs, in any order.

    Returns
    -------
    ndarray of float64, shape (m,)
    """
    vectors = np.ascontiguousarray(vectors)
    rows, columns = np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(columns, dtype=np.int64)
    if rows.ndim != 1 or rows.shape != columns.shape:
        raise ValueError(f"Pairs are two lists of the same length, but have shapes {rows.shape} and {columns.shape}.")
    for ends in (rows, columns):
        # Compiled code would read past the end.
        if len(ends) and not 0 <= ends.min() <= ends.max() < len(vectors):
            raise IndexError(f"Pairs name vectors {ends.min()} to {ends.max()}, but there are {len(vectors)}.")
    out = np.empty(len(rows), dtype=np.float64)
    map_blocks(
        lambda start, stop: _multiply_pairs(start, stop, vectors, rows, columns, out),
        even_blocks(len(rows)),
        work=float(len(rows)) * max(1, vectors.shape[1]),
    )
    return out


class TooManyPairsError(Exception):
    """More pairs are above the threshold than were asked for."""


def pairs_above(vectors: FloatArray, threshold: float, at_most: int | None = None) -> Pairs:
    """All pairs ``i < j`` with ``|z_i . z_j| > threshold``.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Rows ``z_i``; single precision is twice as fast.
    threshold : float
        Pairs at or below it are left out.
    at_most : int, optional
        Give up with :class:`TooManyPairsError` once more have been found.
    """
    vectors = np.ascontiguousarray(vectors)
    limit = vectors.dtype.type(threshold)
    found = 0  # threads may miss each other's last block, which does no harm

    def search(start: int, stop: int) -> Pairs:
        nonlocal found
        parts = []
        for column, products in block_products(vectors, start, stop):
            parts.append(_above(products, limit, start, column))
            found += len(parts[-1])
            if at_most is not None and found > at_most:
                raise TooManyPairsError
        return _concatenate(parts, vectors.dtype)

    return _concatenate(map_blocks(search, _row_blocks(len(vectors)), uses_blas=True), vectors.dtype)


def strongest_pairs(vectors: FloatArray, count: int) -> Pairs:
    """The ``count`` pairs with the largest ``|z_i . z_j|``, strongest first; ties by position.

    The threshold rises as stronger pairs are found, so memory stays ``O(count)`` whatever the values.
    """
    vectors = np.ascontiguousarray(vectors)
    n = len(vectors)
    count = min(count, n * (n - 1) // 2)
    if count <= 0:
        return _concatenate([], vectors.dtype)
    pairs = _search_strongest(vectors, count, _starting_threshold(vectors, count))
    if len(pairs) < count:  # the sample promised too much
        pairs = _search_strongest(vectors, count, -1.0)
    return pairs.take(np.lexsort((pairs.columns, pairs.rows, -np.abs(pairs.values))))


class _StrongestPool:
    """The strongest pairs seen so far, filled from several threads.

    ``limit`` only rises, and always stays below the weakest pair that may still be wanted.
    """

    def __init__(self, count: int, limit: Any) -> None:
        self.limit = limit
        self._count = count
        self._parts: list[Pairs] = []
        self._size = 0
        self._lock = Lock()

    def add(self, pairs: Pairs) -> None:
        with self._lock:
            self._parts.append(pairs)
            self._size += len(pairs)
            if self._size > 2 * self._count + _SLACK:
                self._parts = [self.strongest()]
                self._size = self._count
                weakest = np.abs(self._parts[0].values).min()
                self.limit = np.nextafter(weakest, weakest.dtype.type(-1))  # ties may still win by position

    def strongest(self) -> Pairs:
        """At most ``count`` pairs, in no order."""
        pairs = _concatenate(self._parts, self.limit.dtype)
        if len(pairs) <= self._count:
            return pairs
        sizes = np.abs(pairs.values)
        weakest = np.partition(sizes, -self._count)[-self._count]
        stronger, tied = np.flatnonzero(sizes > weakest), np.flatnonzero(sizes == weakest)
        position = pairs.rows[tied] * (pairs.columns.max() + 1) + pairs.columns[tied]
        n_tied = self._count - len(stronger)
        first = np.argpartition(position, n_tied - 1)[:n_tied]
        return pairs.take(np.concatenate([stronger, tied[first]]))


def _search_strongest(vectors: FloatArray, count: int, threshold: float) -> Pairs:
    """The ``count`` strongest of the pairs above ``threshold``, in no order; all of them where they are fewer."""
    pool = _StrongestPool(count, vectors.dtype.type(threshold))

    def search(start: int, stop: int) -> None:
        for column, products in block_products(vectors, start, stop):
            pool.add(_above(products, pool.limit, start, column))

    map_blocks(search, _row_blocks(len(vectors)), uses_blas=True)
    return pool.strongest()


def _starting_threshold(vectors: FloatArray, count: int) -> float:
    """A threshold that most likely more than ``count`` pairs exceed, but not many more, from a sample of pairs."""
    n = len(vectors)
    n_pairs = n * (n - 1) // 2
    n_sampled = 100_000
    position = 2 * count * n_sampled // n_pairs + 10
    if position >= n_sampled:
        return -1.0
    rng = np.random.default_rng(0)
    rows = rng.integers(0, n, n_sampled)
    columns = (rows + rng.integers(1, n, n_sampled)) % n
    sampled = np.abs(np.einsum("ij,ij->i", vectors[rows], vectors[columns]))
    return float(np.partition(sampled, -position)[-position])


def _row_blocks(n: int) -> IntArray:
    return np.append(np.arange(0, n, BLOCK_ROWS), n)


def _above(products: FloatArray, limit: Any, row_start: int, column_start: int) -> Pairs:
    """The pairs of one block above the limit, upper triangle only."""
    counts = np.empty(len(products), np.int64)
    count = _count_above(products, limit, row_start, column_start, counts)
    found = Pairs(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, products.dtype))
    if count:
        _collect_above(products, limit, row_start, column_start, counts, *found)
    return found


def _concatenate(parts: list[Pairs], dtype: Any) -> Pairs:
    parts = [Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, dtype)), *parts]
    return Pairs(*(np.concatenate([part[field] for part in parts]) for field in range(3)))

"""Nearest rows of a table, with gaps compared by the entries that both rows have: among all, or among given pairs.

Also how many neighbours two rows share.
"""

from __future__ import annotations

import numba
import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg.row_systems import Entries
from lgmd.linalg.threads import even_blocks, map_blocks

__all__ = [
    "nearest_of_pairs",
    "nearest_rows_with_gaps",
    "pair_distances",
    "pair_distances_with_gaps",
    "ranked_pairs",
    "shared_neighbors",
]


@numba.njit(nogil=True, cache=True)
def _insert(distance, row, distances, rows):  # type: ignore[no-untyped-def]
    """Put a row into the sorted list of the nearest, unless it is too far; ties go to the lower row."""
    last = len(distances) - 1
    if distance > distances[last] or (distance == distances[last] and row > rows[last]):
        return
    position = last
    while position > 0 and (
        distance < distances[position - 1] or (distance == distances[position - 1] and row < rows[position - 1])
    ):
        distances[position] = distances[position - 1]
        rows[position] = rows[position - 1]
        position -= 1
    distances[position] = distance
    rows[position] = row


@numba.njit(nogil=True, cache=True)
def _nearest(  # type: ignore[no-untyped-def]
    start, stop, indptr, indices, values, column_indptr, column_indices, column_values, n_prior, prior, out
):
    n = len(indptr) - 1
    squares = np.zeros(n)
    counts = np.zeros(n, np.int64)
    touched = np.empty(n, np.int64)
    distances = np.empty(out.shape[1])
    for i in range(start, stop):
        n_touched = 0
        for entry in range(indptr[i], indptr[i + 1]):
            column = indices[entry]
            for other in range(column_indptr[column], column_indptr[column + 1]):
                row = column_indices[other]
                if counts[row] == 0:
                    touched[n_touched] = row
                    n_touched += 1
                counts[row] += 1
                squares[row] += (values[entry] - column_values[other]) ** 2
        nearest = out[i]
        distances[:] = np.inf
        nearest[:] = n
        for position in range(n_touched):
            row = touched[position]
            if row != i:
                _insert((squares[row] + n_prior * prior) / (counts[row] + n_prior), row, distances, nearest)
        # Rows without a common entry are all as far as the prior says, but of rows without any nobody is a neighbour.
        for row in range(n if n_touched > 0 else 0):
            if prior > distances[-1] or (prior == distances[-1] and row > nearest[-1]):
                break
            if row != i and counts[row] == 0 and indptr[row + 1] > indptr[row]:
                _insert(prior, row, distances, nearest)
        for position in range(n_touched):
            squares[touched[position]] = 0.0
            counts[touched[position]] = 0


def nearest_rows_with_gaps(
    by_rows: Entries, by_columns: Entries, n_neighbors: int, n_prior: float, prior: float
) -> IntArray:
    """Rows with the smallest mean squared difference over the columns observed in both.

    Parameters
    ----------
    by_rows, by_columns : Entries
        The table in both orders.
    n_neighbors : int
        At most the number of other rows.
    n_prior, prior : float
        Every mean is taken over ``n_prior`` more squared differences of size ``prior``.

    Returns
    -------
    ndarray of int, shape (n_rows, n_neighbors)
        Nearest first; n_rows where there are no more rows with entries, and everywhere in rows without. Cost: one
        operation for each two entries of a column; memory ``O(n_rows)`` a thread.
    """
    out = np.empty((len(by_rows.indptr) - 1, n_neighbors), dtype=np.int64)
    map_blocks(
        lambda start, stop: _nearest(start, stop, *by_rows[:3], *by_columns[:3], float(n_prior), float(prior), out),
        by_rows.blocks,
    )
    return out


@numba.njit(nogil=True, fastmath={"reassoc", "contract"}, cache=True)
def _pair_distances(start, stop, table, rows, columns, out):  # type: ignore[no-untyped-def]
    for pair in range(start, stop):
        one, other = table[rows[pair]], table[columns[pair]]
        squares = 0.0
        for position in range(len(one)):
            difference = np.float64(one[position]) - np.float64(other[position])
            squares += difference * difference
        out[pair] = squares


def pair_distances(table: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Squared Euclidean distances of given pairs of rows of a complete table, (m,): ``O(m p)``."""
    table = np.ascontiguousarray(table)
    out = np.empty(len(rows), dtype=np.float64)
    map_blocks(lambda start, stop: _pair_distances(start, stop, table, rows, columns, out), even_blocks(len(rows)))
    return out


@numba.njit(nogil=True, cache=True)
def _pair_distances_with_gaps(start, stop, indptr, indices, values, rows, columns, n_prior, prior, out):  # type: ignore[no-untyped-def]
    for pair in range(start, stop):
        one, other = indptr[rows[pair]], indptr[columns[pair]]
        last_one, last_other = indptr[rows[pair] + 1], indptr[columns[pair] + 1]
        squares, count = 0.0, 0
        while one < last_one and other < last_other:
            if indices[one] < indices[other]:
                one += 1
            elif indices[one] > indices[other]:
                other += 1
            else:
                difference = np.float64(values[one]) - np.float64(values[other])
                squares += difference * difference
                count += 1
                one += 1
                other += 1
        out[pair] = (squares + n_prior * prior) / (count + n_prior)


def pair_distances_with_gaps(
    by_rows: Entries, rows: IntArray, columns: IntArray, n_prior: float, prior: float
) -> FloatArray:
    """Mean squared differences of given pairs of rows over the columns observed in both, (m,).

    As in :func:`nearest_rows_with_gaps`; the entries of a row are sorted by column. Cost: the entries of both rows of
    every pair.
    """
    out = np.empty(len(rows), dtype=np.float64)
    map_blocks(
        lambda start, stop: _pair_distances_with_gaps(
            start, stop, *by_rows[:3], rows, columns, float(n_prior), float(prior), out
        ),
        even_blocks(len(rows)),
    )
    return out


def nearest_of_pairs(
    rows: IntArray, columns: IntArray, distances: FloatArray, n_neighbors: int
) -> tuple[IntArray, IntArray]:
    """Each row with the nearest of the others that it is paired with; ties go to the lower row.

    Parameters
    ----------
    rows, columns : ndarray of int, shape (m,)
        Pairs, each once, in either direction.
    distances : ndarray of shape (m,)
    n_neighbors : int
        Rows that are paired with fewer have all of them.

    Returns
    -------
    rows, neighbors : ndarray of int
        Sorted by row, nearest first.
    """
    own, others, ranks = ranked_pairs(rows, columns, distances)
    near = ranks < n_neighbors
    return own[near], others[near]


def ranked_pairs(rows: IntArray, columns: IntArray, distances: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """Each row with all others that it is paired with, and how many of these are nearer; parameters as above.

    Sorted by row, nearest first; ties go to the lower row.
    """
    own, others = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    order = np.lexsort((others, np.concatenate([distances, distances]), own))
    own, others = own[order], others[order]
    first = np.flatnonzero(np.diff(own, prepend=-1))
    return own, others, np.arange(len(own)) - np.repeat(first, np.diff(np.append(first, len(own))))


@numba.njit(nogil=True, cache=True)
def _count_shared(start, stop, nearest, n_neighbors, rows, columns, out):  # type: ignore[no-untyped-def]
    for pair in range(start, stop):
        own, others = nearest[rows[pair]], nearest[columns[pair]]
        shared = 0
        for a in range(n_neighbors):
            if own[a] == 0:
                continue
            if abs(own[a]) == columns[pair] + 1:
                shared += np.sign(own[a])
            for b in range(n_neighbors):
                if own[a] == others[b]:
                    shared += 1
                elif own[a] == -others[b]:
                    shared -= 1
        for b in range(n_neighbors):
            if abs(others[b]) == rows[pair] + 1:
                shared += np.sign(others[b])
        out[pair] = shared


def shared_neighbors(nearest: IntArray, n_neighbors: int, rows: IntArray, columns: IntArray) -> IntArray:
    """How many of the nearest of two rows are the same, each row being its own nearest.

    One that is alike to one row and opposite to the other counts as minus one.

    Parameters
    ----------
    nearest : ndarray of int, shape (n, m)
        For each row the numbers of its nearest, nearest first, counted from one and negative for opposite rows; 0
        where there are no more.
    n_neighbors : int
        How many of them count, at most m.
    rows, columns : ndarray of int, shape (pairs,)
        Two different rows each.

    Returns
    -------
    ndarray of int, shape (pairs,)
    """
    shared = np.empty(len(rows), dtype=np.int64)
    map_blocks(
        lambda start, stop: _count_shared(start, stop, nearest, n_neighbors, rows, columns, shared),
        even_blocks(len(rows)),
        work=len(rows) * n_neighbors**2,
    )
    return shared

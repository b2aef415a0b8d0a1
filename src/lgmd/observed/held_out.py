"""Some entries put aside, to judge by, and signs of all of them, to see what follows a small change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.observed.base import Observed
from lgmd.observed.sparse import SparseObserved

__all__ = ["HeldOut", "hold_out", "random_signs"]


@dataclass(frozen=True)
class HeldOut:
    """Entries that a fit has not seen."""

    rows: IntArray
    columns: IntArray
    values: FloatArray


def hold_out(data: Observed, share: float, seed: int = 0) -> tuple[SparseObserved, HeldOut]:
    """Put about a share of the entries aside; every row and column that has entries keeps one.

    Which entries depends on the seed and on the table alone, not on its unit, nor on the order of its rows and columns,
    nor on which of the two is which: the same table, sorted otherwise or transposed, is split in the same places.
    """
    values, rows, columns = _triplets(data)
    keys = _keys(values, rows, columns, data.shape, seed)
    held = keys < np.uint64(share * 2.0**64)
    # Both are asked before either is answered: rows and columns are treated alike.
    lost = [_last_of_the_lost(places, n, keys, held) for places, n in zip((rows, columns), data.shape, strict=True)]
    held[np.concatenate(lost)] = False
    kept = ~held
    table = scipy.sparse.csr_array((values[kept], (rows[kept], columns[kept])), shape=data.shape)
    return SparseObserved.from_csr(table), HeldOut(rows[held], columns[held], values[held])


def random_signs(data: Observed, seed: int = 0) -> FloatArray:
    """One or minus one for each entry, row by row, from the seed and the table alone as in :func:`hold_out`."""
    keys = _keys(*_triplets(data), data.shape, seed)
    return np.where(keys < np.uint64(1 << 63), 1.0, -1.0)


def _triplets(data: Observed) -> tuple[FloatArray, IntArray, IntArray]:
    entries = data.entries()
    return entries.values, np.repeat(np.arange(data.shape[0]), np.diff(entries.indptr)), entries.indices


def _keys(values: FloatArray, rows: IntArray, columns: IntArray, shape: tuple[int, int], seed: int) -> Array:
    """A random number for each entry, from its value's rank and from what else stands in its row and column."""
    ranks = np.unique(values, return_inverse=True)[1].astype(np.uint64)
    # Counted from below and from above, so that the sign of the table does not matter.
    orders = (ranks + np.uint64(seed << 40), ranks.max() - ranks + np.uint64(seed << 40))
    return _told_apart(_mixed(sum(_refined(_mixed(order), rows, columns, shape) for order in orders)))


def _refined(keys: Array, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> Array:
    """Keys in which those of an entry's row and column are mixed.

    Twice: where few values occur, rows are alike in how often each occurs, but not in which columns.
    """
    for _ in range(2):
        of_rows, of_columns = np.zeros(shape[0], np.uint64), np.zeros(shape[1], np.uint64)
        np.add.at(of_rows, rows, keys)
        np.add.at(of_columns, columns, keys)
        keys = _mixed(keys + _mixed(of_rows)[rows] + _mixed(of_columns)[columns])
    return keys


def _told_apart(keys: Array) -> Array:
    """Keys of which no two are equal: entries that the table does not tell apart are numbered."""
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    if len(counts) == len(keys):
        return keys
    number = np.empty(len(keys), np.uint64)
    number[np.argsort(group, kind="stable")] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(_mixed(keys + number))


def _mixed(numbers: Any) -> Any:
    """The finaliser of the splitmix64 generator (Steele, Lea and Flood, 2014)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _last_of_the_lost(places: IntArray, n: int, keys: Array, held: Array) -> IntArray:
    """Of each row or column that would lose all its entries, the one with the largest key."""
    lost = np.bincount(places, minlength=n) == np.bincount(places[held], minlength=n)
    inside = np.flatnonzero(lost[places])
    order = inside[np.lexsort((keys[inside], places[inside]))]
    last = np.flatnonzero(np.diff(places[order], append=-1))
    return order[last]

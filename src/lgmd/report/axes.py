"""One side of a heat map: in which order its rows stand, and how many share a cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.report.names import SideNames

__all__ = ["MOST_CELLS", "Axis", "structure_order"]

# Cells of a map along each side: more than most screens show, few enough for a small file.
MOST_CELLS = 300

# Rows up to which all pairs are compared for an order.
_CLUSTERED = 2000

# Numbers held at a time when vectors of rows are averaged.
_NUMBERS = 10_000_000


@dataclass(frozen=True, eq=False)
class Axis:
    """
    Rows in an order, of which ``size`` neighbours make a block.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        Positions in the table, as shown.
    size : int
        Rows a block; the last block may have fewer.
    """

    order: IntArray
    size: int

    @classmethod
    def of(cls, order: IntArray, most_cells: int = MOST_CELLS) -> Axis:
        """Blocks as small as possible with at most so many of them."""
        return cls(order, -(-len(order) // most_cells))

    @property
    def n_blocks(self) -> int:
        """Number of cells along this side."""
        return -(-len(self.order) // self.size)

    @cached_property
    def counts(self) -> IntArray:
        """Rows in each block."""
        return np.diff(np.append(np.arange(0, len(self.order), self.size), len(self.order)))

    @cached_property
    def block_of(self) -> IntArray:
        """The block of each row of the table, (n,)."""
        blocks = np.empty(len(self.order), dtype=np.int64)
        blocks[self.order] = np.arange(len(self.order)) // self.size
        return blocks

    def means(self, vectors: Callable[[IntArray], FloatArray], width: int) -> FloatArray:
        """Mean over each block of vectors that are made for some positions at a time, (n_blocks, width)."""
        blocks_at_once = max(1, _NUMBERS // (self.size * width))
        parts = []
        for first in range(0, self.n_blocks, blocks_at_once):
            positions = self.order[first * self.size : (first + blocks_at_once) * self.size]
            starts = np.arange(0, len(positions), self.size)
            sums = np.add.reduceat(np.asarray(vectors(positions), dtype=np.float64), starts, axis=0)
            parts.append(sums / self.counts[first : first + len(starts), None])
        return np.concatenate(parts)

    def labels(self, names: SideNames) -> list[str]:
        """What to call each block."""
        if self.size == 1:
            return names.some(self.order)
        labels = []
        for start, count in zip(range(0, len(self.order), self.size), self.counts.tolist(), strict=True):
            inside = self.order[start : start + count]
            if count == 1:
                labels.append(names[int(inside[0])])
            elif np.all(np.diff(inside) == 1):
                labels.append(f"{names[int(inside[0])]} … {names[int(inside[-1])]} ({count:,} {names.plural})")
            else:
                others = f" and {count - 2:,} others" if count > 2 else ""
                labels.append(", ".join(names.some(inside[:2])) + others)
        return labels


def structure_order(factors: FloatArray, sizes: FloatArray) -> tuple[IntArray, str]:
    """
    An order that puts like rows beside each other, and how it was found.

    Parameters
    ----------
    factors : ndarray of shape (n, k)
    sizes : ndarray of shape (k,)
        How much each factor counts.
    """
    norms = np.linalg.norm(factors, axis=0)
    # Relative to the largest, so that squares stay within floating point.
    shares = sizes / (sizes.max() or 1.0)
    scaled = np.asarray(factors, dtype=np.float64) / np.where(norms > 0, norms, 1.0) * shares
    if 2 < len(scaled) <= _CLUSTERED:
        from scipy.cluster.hierarchy import leaves_list, linkage

        return leaves_list(linkage(scaled, method="ward")).astype(np.int64), "by clusters of their factors"
    leading = scaled[:, int(np.argmax(sizes))]
    return np.argsort(leading, kind="stable"), "by the leading factor"

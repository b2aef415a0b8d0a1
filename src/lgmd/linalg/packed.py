"""Symmetric matrices stored as their lower triangle, row by row."""

from __future__ import annotations

from functools import cache

import numpy as np

from lgmd._typing import FloatArray, IntArray

__all__ = ["doubled", "pack", "pack_products", "packed_diagonal", "packed_order", "packed_size", "unpack"]


def packed_size(order: int) -> int:
    """Entries of the lower triangle of a symmetric matrix."""
    return order * (order + 1) // 2


def packed_order(size: int) -> int:
    """The inverse of :func:`packed_size`."""
    return int((np.sqrt(8 * size + 1) - 1) // 2)


@cache
def _triangle(order: int) -> tuple[IntArray, IntArray]:
    return np.tril_indices(order)


@cache
def _positions(order: int) -> IntArray:
    """Where each entry of the full matrix lies in the packed one."""
    positions = np.empty((order, order), dtype=np.intp)
    rows, columns = _triangle(order)
    positions[rows, columns] = positions[columns, rows] = np.arange(packed_size(order))
    return positions


def packed_diagonal(order: int) -> IntArray:
    """Positions of the diagonal."""
    return np.cumsum(np.arange(1, order + 1)) - 1


def pack(matrices: FloatArray) -> FloatArray:
    """(m, d, d) to (m, d (d + 1) / 2)."""
    rows, columns = _triangle(matrices.shape[-1])
    return np.ascontiguousarray(matrices[..., rows, columns])


def pack_products(vectors: FloatArray) -> FloatArray:
    """``v v'`` of each vector, packed."""
    rows, columns = _triangle(vectors.shape[-1])
    return np.asarray(vectors[:, rows] * vectors[:, columns])


def unpack(packed: FloatArray) -> FloatArray:
    """(m, d (d + 1) / 2) to (m, d, d)."""
    return np.asarray(packed[..., _positions(packed_order(packed.shape[-1]))])


def doubled(packed: FloatArray) -> FloatArray:
    """Off-diagonal entries times two: the plain product with a packed matrix is then the sum over the full ones."""
    out = 2 * packed
    diagonal = packed_diagonal(packed_order(packed.shape[-1]))
    out[..., diagonal] = packed[..., diagonal]
    return out

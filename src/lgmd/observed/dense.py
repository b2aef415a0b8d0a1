"""A complete table: one array."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.linalg.row_systems import Entries
from lgmd.linalg.threads import balanced_blocks, even_blocks
from lgmd.observed.base import Observed, robust_range

__all__ = ["DenseObserved"]

# Residuals are formed a block at a time: 32 MB in double precision.
_BLOCK_ENTRIES = 4_000_000


class DenseObserved(Observed):
    """A complete table in an (n, p) array, which is never written to."""

    def __init__(self, values: FloatArray, row_names: Array | None = None, column_names: Array | None = None) -> None:
        self.values = values
        self.shape = values.shape
        self.dtype = values.dtype
        self.row_names = row_names
        self.column_names = column_names

    @property
    def n_observed(self) -> int:
        """All of them."""
        return self.values.size

    @property
    def row_counts(self) -> IntArray:
        """The number of columns, for each row."""
        return np.full(self.shape[0], self.shape[1], dtype=np.int64)

    @property
    def T(self) -> DenseObserved:  # noqa: N802
        """The transposed view."""
        return DenseObserved(self.values.T, self.column_names, self.row_names)

    def divided(self, scale: float) -> DenseObserved:
        """A divided copy."""
        values = self.values / self.dtype.type(scale)
        return DenseObserved(values, self.row_names, self.column_names)

    def without_extremes(self, deviations: float) -> DenseObserved:
        """A clipped copy."""
        values = np.clip(self.values, *robust_range(self.values, deviations))
        return DenseObserved(values, self.row_names, self.column_names)

    def largest(self) -> float:
        """Largest absolute value."""
        return float(max(self.values.max(), -self.values.min()))

    def product(self, vectors: FloatArray) -> FloatArray:
        """``Y @ vectors``."""
        return np.asarray(self.values @ vectors)

    def row_sums(self) -> FloatArray:
        """Sum of each row."""
        return np.asarray(self.values.sum(axis=1))

    def residual_sums(
        self, row_offsets: FloatArray, column_offsets: FloatArray, X: FloatArray, W: FloatArray
    ) -> tuple[float, float]:
        """Over all entries, a block of rows at a time."""
        squares = total = 0.0
        for start, stop in self._block_bounds():
            residual = self.values[start:stop] - X[start:stop] @ W.T
            residual -= row_offsets[start:stop, None]
            residual -= column_offsets
            total += float(residual.sum(dtype=np.float64))
            squares += float(np.einsum("ij,ij->i", residual, residual).sum(dtype=np.float64))
        return squares, total

    def residual_rows(
        self,
        row_offsets: FloatArray,
        column_offsets: FloatArray,
        X: FloatArray,
        W: FloatArray,
        column_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Sum of squares and sum of each row's residuals, weighted by columns, (n,) each."""
        squares, totals = np.empty(self.shape[0]), np.empty(self.shape[0])
        for start, stop in self._block_bounds():
            residual = (self.values[start:stop] - X[start:stop] @ W.T).astype(np.float64, copy=False)
            residual -= row_offsets[start:stop, None]
            residual -= column_offsets
            totals[start:stop] = residual @ column_weights
            squares[start:stop] = np.square(residual, out=residual) @ column_weights
        return squares, totals

    def residual_matrix(self, row_offsets: FloatArray, column_offsets: FloatArray) -> FloatArray:
        """An (n, p) array."""
        return np.asarray(self.values - row_offsets[:, None] - column_offsets)

    def fill(self, estimate: FloatArray) -> FloatArray:
        """The table itself: there is no gap to estimate."""
        estimate[...] = self.values
        return estimate

    def entries(self) -> Entries:
        """Every entry, compressed by rows."""
        n, p = self.shape
        indptr = np.arange(n + 1, dtype=np.int64) * p
        indices = np.tile(np.arange(p, dtype=np.int32), n)
        return Entries(indptr, indices, np.ascontiguousarray(self.values).ravel(), balanced_blocks(indptr))

    def rows(self, positions: IntArray) -> DenseObserved:
        """A copy of some rows."""
        return DenseObserved(self.values[positions], None, self.column_names)

    def column_order(self) -> IntArray:
        """The transposed order."""
        n, p = self.shape
        return np.arange(n * p).reshape(n, p).T.ravel()

    def digest_parts(self) -> Iterator[Array]:
        """The shape, then the array, row by row in blocks."""
        yield np.asarray(self.shape)
        for start, stop in self._block_bounds():
            yield np.ascontiguousarray(self.values[start:stop])

    def _block_bounds(self) -> Iterator[tuple[int, int]]:
        n, p = self.shape
        bounds = even_blocks(n, max(1, n * p // _BLOCK_ENTRIES)).tolist()
        return itertools.pairwise(bounds)

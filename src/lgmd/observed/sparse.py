"""A table with gaps: its observed entries, in row order and in column order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.linalg.row_systems import Entries, residual_sums
from lgmd.linalg.threads import balanced_blocks
from lgmd.observed.base import Observed, robust_range

__all__ = ["SparseObserved"]


class SparseObserved(Observed):
    """The observed entries of an (n, p) table, compressed both by rows and by columns.

    Both orders are built once; scaling and transposing share the indices. Indices have 32 bits while they fit, row
    pointers always 64.
    """

    def __init__(
        self,
        by_rows: Entries,
        by_columns: Entries,
        row_names: Array | None = None,
        column_names: Array | None = None,
    ) -> None:
        self.by_rows = by_rows
        self.by_columns = by_columns
        self.shape = (len(by_rows.indptr) - 1, len(by_columns.indptr) - 1)
        self.dtype = by_rows.values.dtype
        self.row_names = row_names
        self.column_names = column_names

    @classmethod
    def from_csr(
        cls, table: scipy.sparse.csr_array, row_names: Array | None = None, column_names: Array | None = None
    ) -> SparseObserved:
        """From a ``csr_array`` whose stored entries, explicit zeros among them, are the observed ones."""
        columns = table.tocsc()
        return cls(
            _entries(table.indptr, table.indices, table.data, table.shape[1]),
            _entries(columns.indptr, columns.indices, columns.data, table.shape[0]),
            row_names,
            column_names,
        )

    @property
    def n_observed(self) -> int:
        """Stored entries."""
        return len(self.by_rows.values)

    @property
    def row_counts(self) -> IntArray:
        """Stored entries in each row."""
        return np.diff(self.by_rows.indptr)

    @property
    def T(self) -> SparseObserved:  # noqa: N802
        """The two orders change places."""
        return SparseObserved(self.by_columns, self.by_rows, self.column_names, self.row_names)

    def divided(self, scale: float) -> SparseObserved:
        """New values on the same indices."""
        by_rows, by_columns = (
            entries._replace(values=entries.values / self.dtype.type(scale))
            for entries in (self.by_rows, self.by_columns)
        )
        return SparseObserved(by_rows, by_columns, self.row_names, self.column_names)

    def without_extremes(self, deviations: float) -> SparseObserved:
        """Clipped values on the same indices."""
        bounds = robust_range(self.by_rows.values, deviations)
        by_rows, by_columns = (
            entries._replace(values=np.clip(entries.values, *bounds)) for entries in (self.by_rows, self.by_columns)
        )
        return SparseObserved(by_rows, by_columns, self.row_names, self.column_names)

    def largest(self) -> float:
        """Largest absolute stored value."""
        values = self.by_rows.values
        return float(max(values.max(), -values.min()))

    def residual_sums(
        self, row_offsets: FloatArray, column_offsets: FloatArray, X: FloatArray, W: FloatArray
    ) -> tuple[float, float]:
        """One compiled pass over the entries."""
        return residual_sums(self.by_rows, row_offsets, column_offsets, X, W)

    def residual_matrix(self, row_offsets: FloatArray, column_offsets: FloatArray) -> scipy.sparse.csr_array:
        """A ``csr_array`` that shares the indices: gaps are filled by the offsets, hence zero."""
        table = self.to_csr()
        table.data = table.data - np.repeat(row_offsets, self.row_counts)
        table.data -= column_offsets[table.indices]
        return table

    def fill(self, estimate: FloatArray) -> FloatArray:
        """Stored entries over the estimate."""
        indptr, indices, values, _ = self.by_rows
        estimate[np.repeat(np.arange(self.shape[0]), np.diff(indptr)), indices] = values
        return estimate

    def entries(self) -> Entries:
        """The row order."""
        return self.by_rows

    def rows(self, positions: IntArray) -> SparseObserved:
        """A copy of some rows."""
        return SparseObserved.from_csr(self.to_csr()[positions], None, self.column_names)

    def column_order(self) -> IntArray:
        """Positions that the conversion to columns would move."""
        table = self.to_csr()
        positions = scipy.sparse.csr_array((np.arange(len(table.data)), table.indices, table.indptr), shape=self.shape)
        return np.asarray(positions.tocsc().data)

    def digest_parts(self) -> Iterator[Array]:
        """The shape, then the three arrays of the row order."""
        yield np.asarray(self.shape)
        yield from self.by_rows[:3]

    def to_csr(self) -> scipy.sparse.csr_array:
        """The stored entries as a ``csr_array`` that shares them: not to be changed in place."""
        indptr, indices, values, _ = self.by_rows
        if len(values) <= np.iinfo(np.int32).max:
            indptr = indptr.astype(indices.dtype)  # of one type with the indices, or scipy copies those
        return scipy.sparse.csr_array((values, indices, indptr), shape=self.shape)


def _entries(indptr: IntArray, indices: IntArray, values: FloatArray, width: int) -> Entries:
    # One type for the row pointers, and one for the indices of all but the widest tables, keep the number of compiled
    # kernel variants down.
    indptr = indptr.astype(np.int64, copy=False)
    indices = indices.astype(np.int32 if width <= np.iinfo(np.int32).max else np.int64, copy=False)
    return Entries(indptr, indices, values, balanced_blocks(indptr))

"""The normal equations of a complete table: one k x k matrix for all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lgmd._typing import FloatArray
from lgmd.observed import DenseObserved

__all__ = ["SharedSystem", "shared_system"]


class SharedSystem(NamedTuple):
    """``X gram = right`` with the row intercepts profiled out; see ``linalg.row_systems`` for the algebra."""

    gram: FloatArray
    right: FloatArray
    row_totals: FloatArray
    design_sum: FloatArray
    weight: float

    def intercepts(self, factor: FloatArray) -> FloatArray:
        """The row intercepts that go with the row factors."""
        if self.weight == 0:
            return np.zeros_like(self.row_totals)
        return np.asarray(self.row_totals.dtype.type(self.weight) * (self.row_totals - factor @ self.design_sum))


def shared_system(
    data: DenseObserved, other: FloatArray, column_offsets: FloatArray, intercept_ridge: float | None
) -> SharedSystem:
    """Gram matrix of the other side and the products of the table with it: ``O(n p k)``."""
    design = np.asarray(other, dtype=np.float64)
    offsets = np.asarray(column_offsets, dtype=np.float64)
    gram = design.T @ design
    design_sum = design.sum(axis=0)
    right = data.product(other) - (offsets @ design).astype(other.dtype)
    row_totals = data.row_sums() - other.dtype.type(offsets.sum())
    weight = 0.0
    if intercept_ridge is not None:
        weight = 1.0 / (data.shape[1] + intercept_ridge)
        gram -= weight * np.outer(design_sum, design_sum)
        right -= np.outer(row_totals, (weight * design_sum).astype(other.dtype))
    return SharedSystem(gram, right, row_totals, design_sum.astype(other.dtype), weight)

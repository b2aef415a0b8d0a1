"""What every table answers, whatever its storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.linalg.row_systems import Entries

__all__ = ["Observed", "robust_range"]


class Observed(ABC):
    """A table of shape (n, p) with some entries observed.

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy.dtype
        float32 or float64.
    row_names, column_names : ndarray or None
        Labels, where the input had them.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    row_names: Array | None
    column_names: Array | None

    @property
    @abstractmethod
    def n_observed(self) -> int:
        """Number of observed entries."""

    @property
    @abstractmethod
    def row_counts(self) -> IntArray:
        """Observed entries in each row, (n,)."""

    @property
    @abstractmethod
    def T(self) -> Observed:  # noqa: N802
        """The same table with rows and columns swapped; shares all arrays."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return self.n_observed == self.shape[0] * self.shape[1]

    @abstractmethod
    def divided(self, scale: float) -> Observed:
        """The table with every entry divided by ``scale``."""

    @abstractmethod
    def without_extremes(self, deviations: float) -> Observed:
        """The table with values clipped to so many robust standard deviations about the median."""

    @abstractmethod
    def largest(self) -> float:
        """Largest absolute value of an observed entry."""

    @abstractmethod
    def residual_sums(
        self, row_offsets: FloatArray, column_offsets: FloatArray, X: FloatArray, W: FloatArray
    ) -> tuple[float, float]:
        """Sum of squares and sum of ``y_ij - row_offsets_i - column_offsets_j - x_i'w_j`` where observed."""

    @abstractmethod
    def residual_matrix(self, row_offsets: FloatArray, column_offsets: FloatArray) -> Any:
        """Entries less their offsets: an ndarray, or a ``scipy.sparse.csr_array`` with zeros in the gaps."""

    @abstractmethod
    def fill(self, estimate: FloatArray) -> FloatArray:
        """``estimate`` (n, p) with every observed entry put back, in place; returned for convenience."""

    @abstractmethod
    def entries(self) -> Entries:
        """The observed entries compressed by rows, for the compiled kernels."""

    @abstractmethod
    def rows(self, positions: IntArray) -> Observed:
        """Some of the rows, without their names."""

    @abstractmethod
    def column_order(self) -> IntArray:
        """Where each observed entry in column order stands in row order, (n_observed,)."""

    @abstractmethod
    def digest_parts(self) -> Iterator[Array]:
        """Arrays that together determine the table: for fingerprints."""


def robust_range(values: FloatArray, deviations: float) -> tuple[float, float]:
    """Median less and plus so many standard deviations, taken from the median deviation; all where that is zero."""
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    if spread == 0:
        return -np.inf, np.inf
    return middle - deviations * spread, middle + deviations * spread

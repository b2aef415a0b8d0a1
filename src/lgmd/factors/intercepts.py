"""The means of the model: one overall, one a row, one a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgmd._typing import FloatArray
from lgmd.exceptions import InvalidParameterError

__all__ = ["INTERCEPTS", "InterceptTerms", "Intercepts"]

INTERCEPTS = ("none", "global", "samples", "features", "both")


@dataclass(frozen=True)
class InterceptTerms:
    """Which intercepts the model has."""

    overall: bool
    rows: bool
    columns: bool

    @classmethod
    def parse(cls, name: str) -> InterceptTerms:
        """From the estimator's word for it."""
        if name not in INTERCEPTS:
            known = ", ".join(repr(known) for known in INTERCEPTS)
            raise InvalidParameterError(f"intercept must be one of {known}, but is {name!r}.")
        return cls(name != "none", name in ("samples", "both"), name in ("features", "both"))

    @property
    def T(self) -> InterceptTerms:  # noqa: N802
        """The same for the transposed table."""
        return InterceptTerms(self.overall, self.columns, self.rows)


@dataclass(frozen=True)
class Intercepts:
    """Their values; zero where the model has none.

    Attributes
    ----------
    overall : float
    rows : ndarray of shape (n,)
    columns : ndarray of shape (p,)
    """

    overall: float
    rows: FloatArray
    columns: FloatArray

    @classmethod
    def zero(cls, shape: tuple[int, int], dtype: np.dtype[np.floating]) -> Intercepts:
        """All of them zero."""
        return cls(0.0, np.zeros(shape[0], dtype), np.zeros(shape[1], dtype))

    @property
    def T(self) -> Intercepts:  # noqa: N802
        """The same for the transposed table."""
        return Intercepts(self.overall, self.columns, self.rows)

    @property
    def column_offsets(self) -> FloatArray:
        """What the entries of each column hold besides the factors and the row's own intercept."""
        return self.columns + self.columns.dtype.type(self.overall)

    def settled(self, shift: float) -> Intercepts:
        """The overall mean moved by ``shift``, and by what rows and columns have in common.

        The latter changes no prediction and makes the ridge of rows and columns as small as it can be.
        """
        by_rows, by_columns = float(self.rows.mean()), float(self.columns.mean())
        return Intercepts(
            self.overall + shift + by_rows + by_columns,
            self.rows - self.rows.dtype.type(by_rows),
            self.columns - self.columns.dtype.type(by_columns),
        )

    def scaled(self, factor: float) -> Intercepts:
        """All multiplied by ``factor``."""
        weight = self.rows.dtype.type(factor)
        return Intercepts(self.overall * factor, self.rows * weight, self.columns * weight)

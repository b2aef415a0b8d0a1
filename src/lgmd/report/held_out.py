"""How a model did on entries it had not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from lgmd._typing import FloatArray
from lgmd.exceptions import InvalidDataError
from lgmd.metrics import calibration_curve, coverage, rmse

__all__ = ["HeldOutScores"]

_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """
    Predictions of entries that a fit had not seen, beside what they were.

    Attributes
    ----------
    values : ndarray of shape (m,)
        What the entries were.
    predictions : ndarray of shape (m,)
    std : ndarray of shape (m,) or None
        Error bars of the predictions, noise included; None for a model without them.

    Examples
    --------
    >>> import numpy as np
    >>> from lgmd import PMF, datasets
    >>> from lgmd.observed import as_observed, hold_out
    >>> data = datasets.make_matrix_normal(30, 20, rank=2, random_state=0)
    >>> kept, aside = hold_out(as_observed(data.observed), 0.1)
    >>> scores = HeldOutScores.of(PMF(2).fit(kept), aside.rows, aside.columns, aside.values)
    >>> scores.rmse < scores.spread
    True
    """

    values: FloatArray
    predictions: FloatArray
    std: FloatArray | None = None

    def __post_init__(self) -> None:
        lengths = {len(part) for part in (self.values, self.predictions, self.std) if part is not None}
        if len(lengths) != 1 or not lengths.pop():
            raise InvalidDataError(
                "Held-out scores need as many predictions as values, and at least one: there are "
                f"{len(self.values):,} values and {len(self.predictions):,} predictions."
            )

    @classmethod
    def of(cls, model: Any, rows: Any, columns: Any, values: Any) -> Self:
        """Let a model that has not seen them predict the entries at ``(rows[m], columns[m])``."""
        model = getattr(model, "estimator_", model)
        if not hasattr(model, "posterior_"):
            return cls(np.asarray(values), model.predict(rows, columns))
        return cls(np.asarray(values), *model.predict(rows, columns, return_std=True))

    @property
    def rmse(self) -> float:
        """Root mean squared error."""
        return rmse(self.values, self.predictions)

    @property
    def spread(self) -> float:
        """Standard deviation of the values: the error of predicting their mean."""
        return float(np.std(np.asarray(self.values, dtype=np.float64)))

    def coverage(self, level: float = 0.9) -> float | None:
        """Share of the values inside the error bars of a given probability."""
        return None if self.std is None else coverage(self.values, self.predictions, self.std, level)

    def calibration(self) -> tuple[list[float], list[float]] | None:
        """Promised and found coverages at several levels."""
        if self.std is None:
            return None
        return list(_LEVELS), calibration_curve(self.values, self.predictions, self.std, _LEVELS).tolist()

"""The half-step as the paper prints it: a lagged fixed point, kept for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lgmd._typing import FloatArray
from lgmd.factors.complete import shared_system
from lgmd.factors.half import Half, PreparedUpdate
from lgmd.linalg.row_systems import factor_rows, solve_lower, solve_upper
from lgmd.observed import DenseObserved

__all__ = ["PaperUpdate"]


@dataclass(frozen=True)
class PaperUpdate:
    r"""``X <- (Y W - penalty A X)(W'W + epsilon I)^-1``.

    The graph term uses the factor of the step before. The iteration contracts only while the penalty times the largest
    eigenvalue of A stays below the smallest eigenvalue of ``W'W + epsilon I``; beyond, it diverges.
    With gaps the Gram matrix is that of each row's observed columns.

    Parameters
    ----------
    epsilon : float, default=1e-6
        Keeps the Gram matrix invertible.
    """

    balances: ClassVar[bool] = False

    epsilon: float = 1e-6

    def prepare(self, half: Half) -> PreparedUpdate:
        """Nothing to prepare but the form of the data."""
        graph = half.penalty * half.precision.astype(half.data.dtype)
        data = half.data

        def update_complete(
            factor: FloatArray, other: FloatArray, column_offsets: FloatArray
        ) -> tuple[FloatArray, FloatArray]:
            assert isinstance(data, DenseObserved)
            system = shared_system(data, other, column_offsets, half.intercept_ridge)
            inverse = np.linalg.inv(system.gram + self.epsilon * np.eye(len(system.gram)))
            solution = (system.right - graph @ factor) @ inverse.astype(factor.dtype)
            return solution, system.intercepts(solution)

        def update_with_gaps(
            factor: FloatArray, other: FloatArray, column_offsets: FloatArray
        ) -> tuple[FloatArray, FloatArray]:
            everyone = np.arange(len(factor))
            ridge = np.full(len(factor), self.epsilon, factor.dtype)
            rows = factor_rows(everyone, data.entries(), column_offsets, other, ridge, half.intercept_ridge)
            lagged = rows.right - graph @ factor
            solution = solve_upper(rows.lower, solve_lower(rows.lower, lagged))
            return solution, rows.intercepts(solution, half.intercept_ridge)

        return update_complete if isinstance(data, DenseObserved) else update_with_gaps

"""The exact half-step of a complete table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lgmd._typing import FloatArray
from lgmd.exceptions import InvalidDataError
from lgmd.factors.complete import shared_system
from lgmd.factors.half import Half, PreparedUpdate
from lgmd.linalg import sylvester
from lgmd.observed import DenseObserved

__all__ = ["SylvesterUpdate"]


@dataclass(frozen=True)
class SylvesterUpdate:
    r"""Solve :math:`\lambda A X + X\,W^T W = Y W` exactly.

    With no graph this is ridge regression of the rows on the column factors.
    """

    balances: ClassVar[bool] = True

    def prepare(self, half: Half) -> PreparedUpdate:
        """Decompose the graph once."""
        data = half.data
        if not isinstance(data, DenseObserved):
            n_entries = data.shape[0] * data.shape[1]
            raise InvalidDataError(
                f"SylvesterUpdate needs a fully observed matrix, but {n_entries - data.n_observed:,} of {n_entries:,} "
                'entries are missing. Use update="auto".'
            )
        solver = sylvester.prepare(half.precision)

        def update(factor: FloatArray, other: FloatArray, column_offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
            system = shared_system(data, other, column_offsets, half.intercept_ridge)
            solution = solver.solve(half.penalty, system.gram, system.right, factor)
            return solution, system.intercepts(solution)

        return update

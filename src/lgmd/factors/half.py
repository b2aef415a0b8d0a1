r"""What a half-step is given.

A half-step minimises, over the row factors X and the row intercepts a, with the other side held,

.. math::
    \tfrac12 \|P_O(Y - a 1^T - 1 b^T - X W^T)\|^2 + \tfrac{\lambda}{2} \mathrm{tr}\, X^T A X
    + \tfrac{\tau}{2} \|a\|^2 .

It is written once. For the columns it is called with the transposed table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from lgmd._typing import FloatArray, SparseGraph
from lgmd.observed import Observed

__all__ = ["FactorUpdate", "Half", "PreparedUpdate"]


@dataclass(frozen=True)
class Half:
    """One side of the problem, as long as its graph is held.

    Attributes
    ----------
    data : Observed
        The table with this side as its rows.
    penalty : float
        Strength of the graph term, positive.
    precision : csr_array of shape (n, n)
        The graph over the rows.
    intercept_ridge : float or None
        Ridge of the row intercepts; None where the model has none.
    """

    data: Observed
    penalty: float
    precision: SparseGraph
    intercept_ridge: float | None


class PreparedUpdate(Protocol):
    """A half-step whose side is fixed: what depends on the graph alone is already done."""

    def __call__(
        self, factor: FloatArray, other: FloatArray, column_offsets: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """New row factors (n, k) and row intercepts (n,).

        ``factor`` is the current one, for a warm start; ``other`` (p, k) and ``column_offsets`` (p,) are held.
        """
        ...


class FactorUpdate(Protocol):
    """A way to take half-steps.

    Attributes
    ----------
    balances : bool
        Whether the two factors are brought into balance after each pair of half-steps.
    """

    balances: ClassVar[bool]

    def prepare(self, half: Half) -> PreparedUpdate:
        """Do once what the factors do not change."""
        ...

r"""What ties the prior variances of the factors of a side to each other.

Each factor may have its own, all may share one, or they may fall as one over the factor's number. A law says which
variances suit given second moments, and in which basis between the two sides the bound is largest: ``X S`` and
``W S^-T`` predict the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from lgmd._typing import FloatArray
from lgmd.factors.rotation import balancing, tied_balancing

__all__ = ["FALLING", "LAWS", "SHARED", "OwnPriors", "PriorLaw", "TiedPriors"]

SHARED, FALLING = "shared", "falling"
"""Names of the laws that tie prior variances."""


class PriorLaw(Protocol):
    """How prior variances of factors are learned."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    @property
    def is_tied(self) -> bool:
        """Whether the variance of a factor says something of the others."""
        ...

    def variances(self, moments: FloatArray) -> FloatArray:
        """The likeliest variances for mean second moments of the factors of a side, largest factor first, (k,)."""
        ...

    def balancing(
        self, moments: tuple[FloatArray, FloatArray], variances: tuple[FloatArray, FloatArray], shape: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray] | None:
        """``S`` for X and ``S^-T`` for W that raise the bound most; None where a moment is singular beyond round-off.

        Parameters
        ----------
        moments : tuple of ndarray of shape (k, k)
            Expected ``X'AX`` and ``W'BW``.
        variances : tuple of ndarray of shape (k,)
            The prior variances of both sides.
        shape : (int, int)
            Of the table.
        """
        ...


@dataclass(frozen=True)
class OwnPriors:
    """Every factor has its own."""

    name: ClassVar[str] = "columns"
    is_tied: ClassVar[bool] = False

    def variances(self, moments: FloatArray) -> FloatArray:
        """The moments themselves."""
        return moments

    def balancing(
        self, moments: tuple[FloatArray, FloatArray], variances: tuple[FloatArray, FloatArray], shape: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray] | None:
        """Both moments diagonal and equal, whatever the variances: they follow."""
        return balancing(*moments)


@dataclass(frozen=True)
class TiedPriors:
    r"""All factors of a side share one, or they fall with the factor's number l, :math:`g_l = g\, l^{-\text{power}}`.

    Singular values of many real tables fall in some such way. Weak columns live by what the strong ones say of the
    level, and are not taken to be as strong as those where the power is above 0. It is not learned: the moments of weak
    columns come out too small under a posterior that factorises, so that it would be too large.
    """

    name: str
    power: float
    is_tied: ClassVar[bool] = True

    def variances(self, moments: FloatArray) -> FloatArray:
        """For a given fall the likeliest level is a mean."""
        fall = self._fall(len(moments))
        return np.asarray(np.mean(moments / fall) * fall)

    def balancing(
        self, moments: tuple[FloatArray, FloatArray], variances: tuple[FloatArray, FloatArray], shape: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray] | None:
        """The best basis for these variances, at a scale at which both sides are equally large under the law."""
        fall = self._fall(len(moments[0]))
        change = tied_balancing(moments[0] / variances[0][0], moments[1] / variances[1][0], shape, fall)
        if change is None:
            return None
        sizes = [
            float(np.mean(np.einsum("al,ab,bl->l", basis, moment, basis) / fall))
            for moment, basis in zip(moments, change, strict=True)
        ]
        factor = (sizes[1] / sizes[0]) ** 0.25
        return change[0] * factor, change[1] / factor

    def _fall(self, n_factors: int) -> FloatArray:
        return np.asarray(np.arange(1.0, n_factors + 1) ** -self.power)


LAWS: dict[str, PriorLaw] = {law.name: law for law in (OwnPriors(), TiedPriors(SHARED, 0.0), TiedPriors(FALLING, 1.0))}
"""All laws by their names."""

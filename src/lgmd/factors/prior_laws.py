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

__all__ = ["LAWS", "FallingPriors", "OwnPriors", "PriorLaw", "SharedPrior"]


class PriorLaw(Protocol):
    """How prior variances of factors are learned."""

    name: ClassVar[str]
    is_tied: ClassVar[bool]
    """Whether the variance of a factor says something of the others."""

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
class SharedPrior:
    """All factors of a side have the same."""

    name: ClassVar[str] = "shared"
    is_tied: ClassVar[bool] = True

    def variances(self, moments: FloatArray) -> FloatArray:
        """The mean."""
        return np.full_like(moments, moments.mean())

    def balancing(
        self, moments: tuple[FloatArray, FloatArray], variances: tuple[FloatArray, FloatArray], shape: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray] | None:
        """Both moments diagonal, as large as the variances of this basis like them."""
        return _balancing(self, moments, variances, shape)


@dataclass(frozen=True)
class FallingPriors:
    r"""They fall as one over the factor's number, :math:`g_l = g / l`.

    So do singular values of many real tables. The weak columns live by what the strong ones say of the level, and are
    not taken to be as strong as those. A power that is learned would be too large, since the moments of weak columns
    come out too small under a posterior that factorises.
    """

    name: ClassVar[str] = "falling"
    is_tied: ClassVar[bool] = True

    def variances(self, moments: FloatArray) -> FloatArray:
        """For a given fall the likeliest level is a mean."""
        numbers = np.arange(1, len(moments) + 1)
        return np.asarray(np.mean(moments * numbers) / numbers)

    def balancing(
        self, moments: tuple[FloatArray, FloatArray], variances: tuple[FloatArray, FloatArray], shape: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray] | None:
        """As with a shared variance; the largest moments get the largest variances."""
        return _balancing(self, moments, variances, shape)


LAWS: dict[str, PriorLaw] = {law.name: law for law in (OwnPriors(), SharedPrior(), FallingPriors())}
"""All laws by their names."""


def _balancing(
    law: PriorLaw,
    moments: tuple[FloatArray, FloatArray],
    variances: tuple[FloatArray, FloatArray],
    shape: tuple[int, int],
) -> tuple[FloatArray, FloatArray] | None:
    """The best basis for given variances, at a scale at which both sides are equally large under the law."""
    spectrum = np.sqrt(variances[0] * variances[1])
    to_spectrum = np.sqrt(spectrum / variances[0])
    size = spectrum.max()
    scaled = (
        moments[0] * np.outer(to_spectrum, to_spectrum) / size,
        moments[1] / np.outer(to_spectrum, to_spectrum) / size,
    )
    change = tied_balancing(*scaled, shape, np.sort(spectrum)[::-1] / size)
    if change is None:
        return None
    level = [
        float(np.log(rows * law.variances(np.einsum("al,ab,bl->l", basis, moment, basis) / rows)).mean())
        for rows, moment, basis in zip(shape, scaled, change, strict=True)
    ]
    factor = np.exp((level[1] - level[0]) / 4)
    return to_spectrum[:, None] * change[0] * factor, change[1] / to_spectrum[:, None] / factor

r"""How often residuals are how large, once they are divided by their scale.

Under the Student likelihood an entry is good or a gross error. Good ones follow a Student distribution: a Gaussian of
which every entry has a precision of its own, :math:`u \sim \mathrm{Gamma}(\nu/2, \nu/2)`. Gross errors are a share of
the entries and Gaussian with many times the variance. Without them the degrees of freedom would have to fall for their
sake, and the larger residuals of good entries would count for too little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, gammaln

from lgmd._typing import FloatArray

__all__ = ["FIRST_TAILS", "GAUSSIAN", "Tails"]

# Degrees of freedom between which they are sought, up to one that is as good as Gaussian. Fewer than four fit large
# residuals better, but then no longer tell the small ones of good entries apart.
_DEGREES = (4.0, 200.0)

# Squared scales that the variance of gross errors has at least.
_GROSS = 100.0

# Newton steps for the share of gross errors, and the relative change of a number that is none.
_STEPS = 20
_CLOSE = 1e-3

# Entries that are enough to know the degrees of freedom.
_ENOUGH = 100_000

# Squares that are counted as they are; sums of larger ones would not be numbers.
_LARGEST = 1e200


@dataclass(frozen=True)
class Tails:
    """Distribution of residuals of unit scale.

    Attributes
    ----------
    degrees : float
        Degrees of freedom of the good ones; infinite for Gaussians.
    gross_share : float
        Share of gross errors.
    gross_variance : float
        Their variance.
    """

    degrees: float = float("inf")
    gross_share: float = 0.0
    gross_variance: float = _GROSS

    @property
    def is_gaussian(self) -> bool:
        """Whether all entries count alike."""
        return bool(np.isinf(self.degrees))

    @property
    def inflation(self) -> float:
        """Variance of good entries over their squared scale."""
        return 1.0 if self.is_gaussian else self.degrees / (self.degrees - 2.0)

    def log_density(self, squares: FloatArray, gross_variance: FloatArray | None = None) -> FloatArray:
        """Of residuals with these squares. With expected squares, the bound that the best weights give.

        Gross errors may have variances of their own, where the unit scale is not that of noise alone.
        """
        good = self._good(squares)
        if self.gross_share == 0:
            return good
        gross = self._gross(squares, self.gross_variance if gross_variance is None else gross_variance)
        return self._mixed(good, gross)

    def weights(self, squares: FloatArray) -> FloatArray:
        """Expected precisions of entries with these expected squares."""
        if self.is_gaussian:
            return np.ones_like(squares)
        weights = np.asarray((self.degrees + 1.0) / (self.degrees + squares))
        if self.gross_share == 0:
            return weights
        are_gross = self._are_gross(squares)
        return np.asarray((1.0 - are_gross) * weights + are_gross / self.gross_variance)

    def fitted(self, squares: FloatArray) -> Tails:
        """A better distribution for these squares, each of its three numbers in turn; never a worse one."""
        squares = np.minimum(squares, _LARGEST)
        tails = self if self.gross_share > 0 else self._looking_for_gross_errors(squares)
        tails = replace(tails, gross_share=tails._best_share(squares))
        if tails.gross_share > 0:
            are_gross = tails._are_gross(squares)
            tails = replace(tails, gross_variance=max(_GROSS, float(are_gross @ squares / are_gross.sum())))
        tails = replace(tails, degrees=tails._best_degrees(squares[:: max(1, len(squares) // _ENOUGH)]))
        return max(tails, self, key=lambda some: float(np.sum(some.log_density(squares))))

    def _looking_for_gross_errors(self, squares: FloatArray) -> Tails:
        far = squares[squares > _GROSS]
        return replace(self, gross_variance=float(np.median(far))) if len(far) else self

    def _best_share(self, squares: FloatArray) -> float:
        """Of gross errors, the other numbers held: Newton's method for a concave sum of logarithms."""
        # How much likelier each is as a gross error than as a good entry; beyond the limit it is one for certain.
        odds = np.expm1(np.minimum(self._gross(squares, self.gross_variance) - self._good(squares), 300.0))
        if odds.sum() <= 0:
            return 0.0
        low, high, share = 0.0, 1.0, max(self.gross_share, 1e-3)
        for _ in range(_STEPS):
            terms = odds / (1.0 + share * odds)
            slope = float(terms.sum())
            low, high = (share, high) if slope > 0 else (low, share)
            before, share = share, share + slope / float(terms @ terms)
            if not low < share < high:
                share = 0.5 * (low + high)
            if abs(share - before) <= _CLOSE * share:
                break
        return min(share, 0.5)

    def _best_degrees(self, squares: FloatArray) -> float:
        """Degrees of freedom, the other numbers held."""
        gross = self._gross(squares, self.gross_variance)

        def loss(log_degrees: float) -> float:
            tails = replace(self, degrees=float(np.exp(log_degrees)))
            good = tails._good(squares)
            return -float(np.sum(tails._mixed(good, gross) if tails.gross_share else good))

        found = minimize_scalar(loss, bounds=tuple(np.log(_DEGREES)), method="bounded", options={"xatol": _CLOSE})
        return float(np.exp(found.x)) if found.fun < loss(np.log(self.degrees)) else self.degrees

    def _are_gross(self, squares: FloatArray) -> FloatArray:
        """Probabilities of being gross errors."""
        prior = np.log(self.gross_share) - np.log1p(-self.gross_share)
        return np.asarray(expit(prior + self._gross(squares, self.gross_variance) - self._good(squares)))

    def _mixed(self, good: FloatArray, gross: FloatArray) -> FloatArray:
        """Log-density from those of both classes."""
        return np.asarray(np.logaddexp(np.log1p(-self.gross_share) + good, np.log(self.gross_share) + gross))

    def _good(self, squares: FloatArray) -> FloatArray:
        degrees = self.degrees
        if self.is_gaussian:
            return np.asarray(-0.5 * (squares + np.log(2 * np.pi)))
        constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(np.pi * degrees)
        return np.asarray(constant - 0.5 * (degrees + 1) * np.log1p(squares / degrees))

    @staticmethod
    def _gross(squares: FloatArray, variance: float | FloatArray) -> FloatArray:
        return np.asarray(-0.5 * (squares / variance + np.log(2 * np.pi * variance)))


GAUSSIAN = Tails()
FIRST_TAILS = Tails(_DEGREES[0])

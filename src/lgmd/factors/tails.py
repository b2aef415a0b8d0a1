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

# Newton steps for the share of gross errors.
_STEPS = 20


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

    def log_density(self, squares: FloatArray) -> FloatArray:
        """Of residuals with these squares. With expected squares, the bound that the best weights give."""
        good = self._good(squares)
        if self.gross_share == 0:
            return good
        gross = np.log(self.gross_share) + self._gross(squares)
        return np.asarray(np.logaddexp(np.log1p(-self.gross_share) + good, gross))

    def weights(self, squares: FloatArray) -> FloatArray:
        """Expected precisions of entries with these expected squares."""
        weights = np.asarray((self.degrees + 1.0) / (self.degrees + squares))
        if self.gross_share == 0:
            return weights
        are_gross = self._are_gross(squares)
        return np.asarray((1.0 - are_gross) * weights + are_gross / self.gross_variance)

    def fitted(self, squares: FloatArray) -> Tails:
        """A better distribution for these squares, each of its three numbers in turn; never a worse one."""
        tails = self if self.gross_share > 0 else self._looking_for_gross_errors(squares)
        tails = replace(tails, gross_share=tails._best_share(squares))
        if tails.gross_share > 0:
            are_gross = tails._are_gross(squares)
            tails = replace(tails, gross_variance=max(_GROSS, float(are_gross @ squares / are_gross.sum())))

        def loss(tails: Tails) -> float:
            return -float(np.sum(tails.log_density(squares)))

        found = minimize_scalar(
            lambda log_degrees: loss(replace(tails, degrees=float(np.exp(log_degrees)))),
            bounds=tuple(np.log(_DEGREES)),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return min(replace(tails, degrees=float(np.exp(found.x))), tails, self, key=loss)

    def _looking_for_gross_errors(self, squares: FloatArray) -> Tails:
        far = squares[squares > _GROSS]
        return replace(self, gross_variance=max(_GROSS, float(far.mean()))) if len(far) else self

    def _best_share(self, squares: FloatArray) -> float:
        """Of gross errors, the other numbers held: Newton's method for a concave sum of logarithms."""
        # How much likelier each is as a gross error than as a good entry; beyond the limit it is one for certain.
        odds = np.expm1(np.minimum(self._gross(squares) - self._good(squares), 300.0))
        if odds.sum() <= 0:
            return 0.0
        low, high, share = 0.0, 1.0, max(self.gross_share, 1e-3)
        for _ in range(_STEPS):
            terms = odds / (1.0 + share * odds)
            slope = float(terms.sum())
            low, high = (share, high) if slope > 0 else (low, share)
            step = share + slope / float(terms @ terms)
            share = step if low < step < high else 0.5 * (low + high)
        return min(share, 0.5)

    def _are_gross(self, squares: FloatArray) -> FloatArray:
        """Probabilities of being gross errors."""
        prior = np.log(self.gross_share) - np.log1p(-self.gross_share)
        return np.asarray(expit(prior + self._gross(squares) - self._good(squares)))

    def _good(self, squares: FloatArray) -> FloatArray:
        degrees = self.degrees
        if self.is_gaussian:
            return np.asarray(-0.5 * (squares + np.log(2 * np.pi)))
        constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(np.pi * degrees)
        return np.asarray(constant - 0.5 * (degrees + 1) * np.log1p(squares / degrees))

    def _gross(self, squares: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * (squares / self.gross_variance + np.log(2 * np.pi * self.gross_variance)))


GAUSSIAN = Tails()
FIRST_TAILS = Tails(_DEGREES[0])

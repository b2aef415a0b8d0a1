r"""Noise variances of single rows or columns, which know of each other.

Precisions of rows are drawn from one Gamma distribution, :math:`1 / v_i \sim \mathrm{Gamma}(\nu / 2, \nu c / 2)`: as if
each row had :math:`\nu` entries more, at the common level c. Both are learned by maximising the likelihood of the
expected squares, variances integrated out. Where rows are alike :math:`\nu` becomes large, and all have the common
level; where they differ it is small, and each has its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, psi

from lgmd._typing import FloatArray

__all__ = ["VariancePrior"]

# Entries that the prior is worth at least and at most, and the factors by which that may change in a step.
_FEWEST, _MOST = 1.0, 1000.0
_STEPS = (1.0, 0.5, 0.8, 0.95, 1.05, 1.25, 2.0)

# Newton steps for the level, whose logarithm has a concave likelihood.
_NEWTON = 3

# Rows that are quieter than this share of the median count as if they had it: a few rows without any noise say nothing
# about the others.
_QUIETEST = 0.1


@dataclass(frozen=True)
class VariancePrior:
    """Where the variances of rows come from.

    Attributes
    ----------
    level : float
        The common level.
    entries : float
        How many entries of a row it is worth.
    """

    level: float
    entries: float = 10.0

    def variances(self, squares: FloatArray, counts: FloatArray) -> FloatArray:
        """Inverses of the expected precisions of rows with these sums of squares and as many entries."""
        return np.asarray((squares + self.entries * self.level) / (counts + self.entries))

    def fitted(self, squares: FloatArray, counts: FloatArray, floor: float) -> VariancePrior:
        """One under which the loss of rows with these sums of squares is no larger; no variance is below a floor."""
        known = counts > 0
        if not known.any():
            return self
        typical = float(np.median(squares[known] / counts[known]))
        proposed = self._likelier(np.maximum(squares, _QUIETEST * typical * counts), counts)
        proposed = replace(proposed, level=max(proposed.level, floor))
        return proposed if proposed.loss(squares, counts, floor) < self.loss(squares, counts, floor) else self

    def loss(self, squares: FloatArray, counts: FloatArray, floor: float) -> float:
        """Negative expected log-likelihood of the entries, but for a constant, and the divergence of the variances."""
        variances = np.maximum(self.variances(squares, counts), floor)
        fit = 0.5 * float(np.sum(squares / variances + counts * self.expected_log(variances, counts)))
        return fit + self.divergence(variances, counts)

    def _likelier(self, squares: FloatArray, counts: FloatArray) -> VariancePrior:
        worth = np.clip(self.entries * np.array(_STEPS), _FEWEST, _MOST)
        best = max(
            (replace(self, entries=float(each)) for each in worth), key=lambda prior: prior._log(squares, counts)
        )
        for _ in range(_NEWTON):
            following = best._at_better_level(squares, counts)
            if not following._log(squares, counts) > best._log(squares, counts):
                break
            best = following
        return best

    def expected_log(self, variances: FloatArray, counts: FloatArray) -> FloatArray:
        """Expected log-variances of rows with as many entries, of which :meth:`variances` are known."""
        shape = self._shape(counts)
        return np.asarray(np.log(variances) + np.log(shape) - psi(shape))

    def spread(self, counts: FloatArray) -> FloatArray:
        """Expected variances over :meth:`variances`: what is not known of rows with few entries adds to their noise."""
        # Where next to nothing is known the expectation would be infinite.
        shape = np.maximum(self._shape(counts), 1.5)
        return np.asarray(shape / (shape - 1.0))

    def divergence(self, variances: FloatArray, counts: FloatArray) -> float:
        """Kullback-Leibler divergence of the posterior of all variances from this prior."""
        shape, own = self._shape(counts), 0.5 * self.entries
        ratios = self.level / variances
        return float(
            np.sum(
                (shape - own) * psi(shape)
                - gammaln(shape)
                + gammaln(own)
                + own * (np.log(shape) - np.log(own) - np.log(ratios) + ratios)
                - shape
            )
        )

    def _shape(self, counts: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (counts + self.entries))

    def _log(self, squares: FloatArray, counts: FloatArray) -> float:
        """Log-likelihood of sums of squares, but for what depends on neither parameter."""
        shape, own = self._shape(counts), 0.5 * self.entries
        total = own * self.level + 0.5 * squares
        return float(np.sum(gammaln(shape) - gammaln(own) + own * np.log(own * self.level) - shape * np.log(total)))

    def _at_better_level(self, squares: FloatArray, counts: FloatArray) -> VariancePrior:
        """A Newton step for the logarithm of the level, no further than by a factor of ten."""
        shape, own = self._shape(counts), 0.5 * self.entries
        share = own * self.level / (own * self.level + 0.5 * squares)
        slope, bend = float(np.sum(own - shape * share)), float(np.sum(shape * share * (1.0 - share)))
        # Where nothing is left of the squares, nothing bends.
        step = slope / bend if bend > 1e-12 * abs(slope) else slope
        return replace(self, level=self.level * float(np.exp(np.clip(step, -2.3, 2.3))))

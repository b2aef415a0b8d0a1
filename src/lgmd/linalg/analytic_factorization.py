r"""Variational factors of a table without gaps or graphs, in closed form from its singular values.

The model is ``Y = X W' + E`` for a table of n samples and p features, with :math:`x_{ih} \sim N(0, g^x_h)`,
:math:`w_{jh} \sim N(0, g^w_h)` and :math:`e_{ij} \sim N(0, \sigma^2)`; the posterior is approximated by
:math:`q(X) q(W)`, and :math:`g^x, g^w` and :math:`\sigma^2` minimise the free energy. With :math:`L = \min(n, p)`,
:math:`M = \max(n, p)`, :math:`\alpha = L / M` and :math:`x_h = \gamma_h^2 / (M \sigma^2)` for the singular value
:math:`\gamma_h`, the component h is kept if :math:`x_h` exceeds a threshold that depends on :math:`\alpha` alone, and
is then known through the larger root :math:`\tau_h` of :math:`x_h = (1 + \tau)(1 + \alpha / \tau)`: the posterior mean
of ``X W'`` has the singular value :math:`d_h = M \sigma^2 \tau_h / \gamma_h`.

References
----------
S. Nakajima, M. Sugiyama, S. D. Babacan and R. Tomioka, "Global analytic solution of fully-observed variational
Bayesian matrix factorization", JMLR 14 (2013).
S. Nakajima, R. Tomioka, M. Sugiyama and S. D. Babacan, "Condition for perfect dimensionality recovery by variational
Bayesian PCA", JMLR 16 (2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from lgmd._typing import FloatArray

__all__ = ["AnalyticFactorization", "analytic_factorization"]


# At the edge itself the minimum has no curvature.
_ABOVE_EDGE = 1.001


@dataclass(frozen=True)
class AnalyticFactorization:
    r"""A minimum of the free energy, with one entry for each component that is kept, strongest first.

    With :math:`u_h, v_h` the singular vectors of the table, column h of ``X`` has the mean :math:`a_h u_h` and
    independent entries of one variance, column h of ``W`` the mean :math:`b_h v_h` and another.

    Only products over the two sides are determined: a factor may pass from ``X`` to ``W``. Here both columns carry the
    same expected squares, :math:`E|x_h|^2 = n g^x_h = p g^w_h = E|w_h|^2`, both :math:`\sqrt{\gamma_h d_h}`.
    """

    noise_variance: float
    """Variance of the noise, given or estimated."""
    rank: int
    """Number of components kept."""
    singular_values: FloatArray
    """Shrunken singular values :math:`d_h = a_h b_h`: those of the posterior mean of ``X W'``."""
    sample_scales: FloatArray
    """Lengths :math:`a_h` of the posterior means of the columns of ``X``."""
    feature_scales: FloatArray
    """Lengths :math:`b_h` of the posterior means of the columns of ``W``."""
    sample_variances: FloatArray
    """Posterior variance of every entry of a column of ``X``."""
    feature_variances: FloatArray
    """Posterior variance of every entry of a column of ``W``."""
    sample_prior_variances: FloatArray
    """Optimal prior variances :math:`g^x_h`."""
    feature_prior_variances: FloatArray
    """Optimal prior variances :math:`g^w_h`."""


def analytic_factorization(
    singular_values: ArrayLike,
    shape: tuple[int, int],
    *,
    total_squares: float | None = None,
    noise_variance: float | None = None,
    max_rank: int | None = None,
    boldest: bool = False,
) -> AnalyticFactorization:
    """Empirical variational Bayesian factors of a complete table.

    Parameters
    ----------
    singular_values : array-like of shape (m,)
        The m leading singular values of the table, largest first.
    shape : tuple of int
        Samples n and features p. Of a table from which means were taken count the dimensions that are left, ``p - 1``
        where rows were centred, ``n - 1`` where columns were: a singular value that is zero by construction would be
        taken for a sign of little noise.
    total_squares : float, optional
        Sum of the squares of all entries; needed where m < min(n, p). The singular values that are not given count as
        noise. The result is that of the full set unless its rank would be larger than m.
    noise_variance : float, optional
        Positive. By default it is estimated, which keeps fewer than ``min(n, p) / (1 + min(n, p) / max(n, p))``
        components: none of a single row or column. The estimate is never smaller than the mean square of the table
        times the rounding unit of ``singular_values``, which it reaches for tables of exactly low rank; it is zero
        for a table of zeros alone.
    max_rank : int, optional
        Most components to keep; the others count as noise.
    boldest : bool, default=False
        Whether to return, of all local minima, the one that keeps the most components and calls the least noise, rather
        than the global one. In noisy tables the global one takes weak components for noise, and then more of them
        because there is so much noise.
    """
    given = np.asarray(singular_values)
    rounding = float(np.finfo(given.dtype if given.dtype.kind == "f" else np.float64).eps)
    given = given.astype(np.float64)
    smaller, larger = sorted(shape)
    _check(given, smaller, total_squares, noise_variance)
    candidates = given[:max_rank]
    unkeepable = float(np.sum(given[len(candidates) :] ** 2))
    if total_squares is not None and len(given) < smaller:
        unkeepable += max(total_squares - float(np.sum(given**2)), 0.0)
    ratio = smaller / larger
    # Above the edge of the noise's own singular values a component has a local minimum, well above it the global one.
    edge = (1 + np.sqrt(ratio)) ** 2
    threshold = _ABOVE_EDGE * edge if boldest else _threshold(ratio)
    if noise_variance is None:
        estimate = _least_noise if boldest else _estimate_noise
        noise = estimate(candidates**2 / larger, unkeepable / larger, smaller, ratio, threshold, rounding)
    else:
        noise = float(noise_variance)
    kept = candidates[candidates**2 > threshold * larger * noise]
    return _posterior(kept, shape, ratio, noise)


def _check(values: FloatArray, smaller: int, total_squares: float | None, noise_variance: float | None) -> None:
    if smaller < 1 or values.ndim != 1 or len(values) > smaller:
        raise ValueError(f"a table has min(n, p) = {smaller} singular values, but they have the shape {values.shape}")
    if not (np.all(np.isfinite(values)) and np.all(values >= 0) and np.all(np.diff(values) <= 0)):
        raise ValueError("singular values must be finite, not negative and sorted, largest first")
    if len(values) < smaller and total_squares is None:
        raise ValueError(f"{len(values)} of {smaller} singular values are given: total_squares must say what is left")
    if noise_variance is not None and not 0 < noise_variance < np.inf:
        raise ValueError(f"noise_variance must be positive and finite, but is {noise_variance}")


def _threshold(ratio: float) -> float:
    """The ``x`` at which keeping a component and leaving it out have the same free energy."""

    def gain(tau: float) -> float:
        return float(tau - np.log1p(tau) - ratio * np.log1p(tau / ratio))

    # The gain rises from a negative value at the square root, and its zero grows with the ratio, to 2.513 at one.
    tau = float(brentq(gain, np.sqrt(ratio), 3.0, xtol=1e-14 * ratio))
    return (1 + tau) * (1 + ratio / tau)


def _larger_root(x: FloatArray, ratio: float) -> FloatArray:
    """The larger root tau of ``x = (1 + tau) (1 + ratio / tau)``."""
    centred = x - (1 + ratio)
    gap = 2 * np.sqrt(ratio)
    return np.asarray((centred + np.sqrt(centred - gap) * np.sqrt(centred + gap)) / 2)


def _posterior(kept: FloatArray, shape: tuple[int, int], ratio: float, noise: float) -> AnalyticFactorization:
    n, p = shape
    tau = _larger_root(kept**2 / (max(shape) * noise), ratio) if len(kept) else kept
    shrunken = kept / ((1 + 1 / tau) * (1 + ratio / tau))
    # What the posterior's uncertainty adds to d_h: E|x_h|^2 = (a_h / b_h) (d_h + n noise / gamma_h), and so for w_h.
    balance = np.sqrt((shrunken + p * noise / kept) / (shrunken + n * noise / kept))
    squares = np.sqrt(kept * shrunken)
    return AnalyticFactorization(
        noise_variance=noise,
        rank=len(kept),
        singular_values=shrunken,
        sample_scales=np.sqrt(shrunken * balance),
        feature_scales=np.sqrt(shrunken / balance),
        sample_variances=noise / kept * balance,
        feature_variances=noise / kept / balance,
        sample_prior_variances=squares / n,
        feature_prior_variances=squares / p,
    )


def _estimate_noise(
    squares: FloatArray, unkeepable: float, smaller: int, ratio: float, threshold: float, rounding: float
) -> float:
    """The noise variance with the least free energy.

    ``squares`` are the squared singular values over M that may be kept, ``unkeepable`` the sum of the others. As a
    function of the noise the free energy is continuous, with a piece for each number of components kept. Where the
    pieces meet it is a minimum of two smooth functions and has no minimum of its own, so that all its minima are those
    inside the pieces, and every piece has at most one.
    """
    best = (np.inf, 0.0, 1.0)
    for piece, left, right, unit in _pieces(squares, unkeepable, smaller, ratio, threshold, rounding):
        log_noise = piece.minimum(left, right)
        best = min(best, (piece.free_energy(log_noise), log_noise, unit))
    return best[2] * float(np.exp(best[1])) if np.isfinite(best[0]) else 0.0


def _least_noise(
    squares: FloatArray, unkeepable: float, smaller: int, ratio: float, threshold: float, rounding: float
) -> float:
    """The least noise variance at which the free energy has a minimum; parameters as in :func:`_estimate_noise`."""
    noise = 0.0
    for piece, left, right, unit in _pieces(squares, unkeepable, smaller, ratio, threshold, rounding):
        log_noise = piece.minimum(left, right)
        # At the left end it is no minimum unless the noise cannot be less.
        if log_noise < right and (log_noise > left or left == np.log(rounding)):
            noise = unit * float(np.exp(log_noise))
        elif noise == 0.0:
            noise = unit * float(np.exp(right))
    return noise


def _pieces(
    squares: FloatArray, unkeepable: float, smaller: int, ratio: float, threshold: float, rounding: float
) -> Iterator[tuple[_Piece, float, float, float]]:
    """The pieces of the free energy from much noise to little, with their ends, and the unit of the noise."""
    mean_square = (float(np.sum(squares)) + unkeepable) / smaller
    if mean_square == 0:
        return
    squares = squares / mean_square
    # Summed from the small end, so that little noise is not lost beside large components.
    left_out = np.append(np.cumsum(squares[::-1])[::-1], 0.0) + unkeepable / mean_square
    with np.errstate(divide="ignore"):  # singular values of zero are kept with less than no noise
        meetings = np.log(squares / threshold)
    lowest, highest = float(np.log(rounding)), 0.0
    # With more components kept, the free energy falls towards more noise throughout the piece.
    for n_kept in range(min(len(squares), int(np.ceil(smaller / (1 + ratio))) - 1) + 1):
        left = max(lowest, meetings[n_kept]) if n_kept < len(squares) else lowest
        right = min(highest, meetings[n_kept - 1]) if n_kept > 0 else highest
        if left < right:
            yield _Piece(squares[:n_kept], float(left_out[n_kept]), smaller, ratio), left, right, mean_square


@dataclass(frozen=True)
class _Piece:
    """The free energy as a function of the logarithm of the noise, for given components kept.

    Twice the free energy over M, without a constant. The slope is a concave function: on an interval the free energy
    may fall, then rise, then fall again, and no more than that.
    """

    kept: FloatArray
    left_out: float
    smaller: int
    ratio: float

    def free_energy(self, log_noise: float) -> float:
        tau = self._tau(log_noise)
        # x + log(1 + tau) + ratio log(1 + tau / ratio) - tau, without the difference of large numbers.
        costs = 1 + self.ratio + self.ratio / tau + np.log1p(tau) + self.ratio * np.log1p(tau / self.ratio)
        return float(self.smaller * log_noise + self.left_out * np.exp(-log_noise) + np.sum(costs))

    def slope(self, log_noise: float) -> float:
        explained = np.sum(1 + self.ratio + self.ratio / self._tau(log_noise))
        return float(self.smaller - self.left_out * np.exp(-log_noise) - explained)

    def curvature(self, log_noise: float) -> float:
        tau = self._tau(log_noise)
        bends = (1 + tau) * (1 + self.ratio / tau) / (tau**2 / self.ratio - 1)
        return float(self.left_out * np.exp(-log_noise) - np.sum(bends))

    def minimum(self, left: float, right: float) -> float:
        """The minimum inside the interval, or else one of its ends."""
        if self.slope(left) >= 0:
            return left
        steepest = right
        if self.curvature(right) < 0:
            steepest = float(brentq(self.curvature, left, right)) if self.curvature(left) > 0 else left
        if self.slope(steepest) <= 0:
            return right
        return float(brentq(self.slope, left, steepest))

    def _tau(self, log_noise: float) -> FloatArray:
        return _larger_root(self.kept * np.exp(-log_noise), self.ratio)

r"""Variational factors of a table without gaps or graphs whose columns share one prior variance a side.

The model is that of :mod:`lgmd.linalg.analytic_factorization` with :math:`g^x_h = g^x` and :math:`g^w_h = g^w` for all
h. For given variances each component is known in closed form: with :math:`c = g^x g^w` the posterior mean of ``X W'``
has the singular value

.. math:: d_h = \gamma_h \Bigl(1 - \frac{\sigma^2}{2 \gamma_h^2}
    \bigl(n + p + \sqrt{(n - p)^2 + 4 \gamma_h^2 / c}\bigr)\Bigr)

where that is positive, and the component is dead where it is not. What remains are two numbers, the noise and c. The
updates that find them, each optimal for what the other is, creep where the table is much longer than wide: noise and
factors then say nearly the same. Here an iteration costs k numbers, so that thousands of them cost nothing.

References
----------
S. Nakajima, M. Sugiyama, S. D. Babacan and R. Tomioka, "Global analytic solution of fully-observed variational
Bayesian matrix factorization", JMLR 14 (2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lgmd._typing import FloatArray
from lgmd.linalg.analytic_factorization import AnalyticFactorization

__all__ = ["shared_factorization"]

# Change of the logarithms of noise and c in an update that counts as none, and most rounds of two updates.
_SETTLED, _MOST_ROUNDS = 1e-9, 5000

# Rounds after which components that died stay dead: the first variances are guesses, but prior variances are those of
# the living, so that a component at the edge could come and go for ever.
_FIRST_ROUNDS = 20

# How far logarithms may be extrapolated at once.
_FURTHEST = 5.0


class _Components(NamedTuple):
    """The components that live under given variances, and what these should be then."""

    logs: FloatArray
    """Logarithms of the noise variance and of c that suit these components best."""
    free_energy: float
    shrunken: FloatArray
    sample_precisions: FloatArray
    """Noise over the posterior variance of an entry of a column of X where its prior variance is the root of c."""
    feature_precisions: FloatArray


def shared_factorization(
    singular_values: FloatArray, shape: tuple[int, int], total_squares: float, *, noise_variance: float, floor: float
) -> AnalyticFactorization:
    """Variational Bayesian factors of a complete table whose columns share one prior variance a side.

    The local minimum of the free energy that updates lead to from a noise variance, with c as it suits all components.

    Parameters
    ----------
    singular_values : ndarray of shape (m,)
        Those that may be kept, largest first and positive.
    shape : tuple of int
        Samples n and features p, as for :func:`analytic_factorization`.
    total_squares : float
        Sum of the squares of all entries.
    noise_variance : float
        The first one.
    floor : float
        Least noise variance.
    """
    values = np.asarray(singular_values, dtype=np.float64)
    n, p = shape
    logs = np.log([noise_variance, float(np.mean(values**2)) / (n * p)])
    found = _components(values, shape, total_squares, logs, floor)
    for count in range(_MOST_ROUNDS):
        first, logs = found.logs - logs, found.logs
        if count >= _FIRST_ROUNDS:
            values = values[: len(found.shrunken)]
        found = once = _components(values, shape, total_squares, logs, floor)
        if not len(once.shrunken) or np.abs(first).max() < _SETTLED:
            break
        # Two updates in a row say where they lead to: Varadhan and Roland's squared extrapolation (2008).
        bend = once.logs - logs - first
        reach = max(float(np.linalg.norm(first)) / max(float(np.linalg.norm(bend)), 1e-300), 1.0)
        bold_logs = logs - first + 2 * reach * first + reach**2 * bend
        if np.all(np.abs(bold_logs - logs) < _FURTHEST):
            bold = _components(values, shape, total_squares, bold_logs, floor)
            if len(bold.shrunken) == len(once.shrunken) and bold.free_energy <= once.free_energy:
                found, logs = bold, bold_logs
    return _balanced(values, shape, logs, found)


def _components(
    values: FloatArray, shape: tuple[int, int], total_squares: float, logs: FloatArray, floor: float
) -> _Components:
    n, p = shape
    noise, c = np.exp(logs)
    prior = np.sqrt(c)
    shrunken = values * (1 - noise / (2 * values**2) * (n + p + np.sqrt((n - p) ** 2 + 4 * values**2 / c)))
    alive = shrunken > 0
    shrunken, values = shrunken[alive], values[alive]
    rank = len(values)
    # What a component leaves of its singular value, less what the other side's uncertainty takes.
    left = 1 - shrunken / values
    sample_precisions = noise / prior / (left - p * noise / values**2)
    feature_precisions = noise / prior / (left - n * noise / values**2)
    of_samples, of_features = feature_precisions - noise / prior, sample_precisions - noise / prior
    squares = total_squares - 2 * float(values @ shrunken) + float(of_samples @ of_features)
    free_energy = n * p * np.log(noise) + squares / noise
    free_energy += np.sum(n * (np.log(sample_precisions * prior / noise) - 1) + of_samples / prior)
    free_energy += np.sum(p * (np.log(feature_precisions * prior / noise) - 1) + of_features / prior)
    best_c = of_samples.mean() * of_features.mean() / (n * p) if rank else c
    following = np.log([max(squares / (n * p), floor), best_c])
    return _Components(following, float(free_energy), shrunken, sample_precisions, feature_precisions)


def _balanced(
    values: FloatArray, shape: tuple[int, int], logs: FloatArray, found: _Components
) -> AnalyticFactorization:
    """Both sides equally large, since only products over the two are determined."""
    n, p = shape
    noise, c = np.exp(logs)
    values = values[: len(found.shrunken)]
    ratio = np.sqrt(p / n)
    slopes = values / found.sample_precisions * ratio
    return AnalyticFactorization(
        noise_variance=float(noise),
        rank=len(values),
        singular_values=found.shrunken,
        sample_scales=np.sqrt(found.shrunken * slopes),
        feature_scales=np.sqrt(found.shrunken / slopes),
        sample_variances=noise / found.sample_precisions * ratio,
        feature_variances=noise / found.feature_precisions / ratio,
        sample_prior_variances=np.full(len(values), np.sqrt(c) * ratio),
        feature_prior_variances=np.full(len(values), np.sqrt(c) / ratio),
    )

r"""How far entries lie from what the factors say.

The variance of an entry is a row's times a column's, :math:`s_i f_j`, of which at most one side is learned entry by
entry. Under the Student likelihood every entry has a weight of its own besides, whose expectation is small where the
entry is an outlier; see :class:`lgmd.factors.tails.Tails`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray
from lgmd.factors.intercepts import Intercepts
from lgmd.factors.posterior import SidePosterior, column_features, row_features
from lgmd.factors.tails import FIRST_TAILS, GAUSSIAN, Tails
from lgmd.factors.variances import VariancePrior
from lgmd.linalg.row_posteriors import entry_squares
from lgmd.observed import Observed

__all__ = [
    "LIKELIHOODS",
    "NOISES",
    "Noise",
    "NoiseModel",
    "student_weights",
]

NOISES = ("homoscedastic", "samples", "features")
LIKELIHOODS = ("gaussian", "student")

# Rows whose entries are weighed at a time.
_ROWS_AT_ONCE = 50_000

# Entries more than this many standard deviations off their means count less and less before anything else is known.
_SUSPICIOUS = 4.0

# Where no noise is left, this share of gross errors says that the other entries were fitted exactly because they are
# equal. Errors of a table without any noise that are as many are possible too.
_FEW_GROSS = 0.1


@dataclass(frozen=True)
class Noise:
    """Variances and weights, seen from the rows.

    Attributes
    ----------
    samples, features : ndarray of shape (n,) and (p,)
        The squared scale of entry (i, j), and the variance of a Gaussian one, is ``samples[i] * features[j]``; where
        there is a prior, the inverse of its expected precision.
    tails : Tails
        Distribution of the entries' distances at unit scale.
    weights, other_weights : ndarray of shape (n_entries,) or (0,)
        Expected weights of the entries in row order and in column order; empty for the Gaussian.
    optimism : float
        Entries without any error that the prior of the variances adds to each observed one.
    unexplained : float
        What new observations vary beyond noise and posterior; negative if that is less. In tables with gaps and one
        variance held-out entries tell it.
    prior : VariancePrior or None
        Where the variances of rows or of columns come from, if these differ.
    sample_spread, feature_spread : ndarray of shape (n,) and (p,), or (1,)
        Factors on the squared scales of new observations: variances that are learned are not known exactly.
    """

    samples: FloatArray
    features: FloatArray
    tails: Tails = GAUSSIAN
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    other_weights: FloatArray = field(default_factory=lambda: np.empty(0))
    optimism: float = 0.0
    unexplained: float = 0.0
    prior: VariancePrior | None = None
    sample_spread: FloatArray = field(default_factory=lambda: np.ones(1))
    feature_spread: FloatArray = field(default_factory=lambda: np.ones(1))

    @property
    def T(self) -> Noise:  # noqa: N802
        """The same for the transposed table."""
        return replace(
            self,
            samples=self.features,
            features=self.samples,
            weights=self.other_weights,
            other_weights=self.weights,
            sample_spread=self.feature_spread,
            feature_spread=self.sample_spread,
        )

    @property
    def level(self) -> float:
        """Squared scale of an entry on average over the table."""
        return float(self.samples.mean() * self.features.mean())

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the Student likelihood; infinite for the Gaussian."""
        return self.tails.degrees

    @property
    def inflation(self) -> float:
        """Variance over squared scale: more than one for a Student distribution. Gross errors do not count."""
        return self.tails.inflation

    def scales(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Squared scales of new observations of entries, whose positions are broadcast against each other."""
        by_rows, by_columns = self.samples * self.sample_spread, self.features * self.feature_spread
        return np.asarray(by_rows[rows] * by_columns[columns] + self.unexplained)

    def draw(self, rows: IntArray, columns: IntArray, rng: np.random.Generator) -> FloatArray:
        """Noise of new observations without gross errors, whose positions are broadcast against each other."""
        scales = self.scales(rows, columns)
        unit = rng.standard_normal(scales.shape)
        if not self.tails.is_gaussian:
            unit = unit / np.sqrt(rng.chisquare(self.degrees, scales.shape) / self.degrees)
        return np.asarray(unit * np.sqrt(scales))


@dataclass(frozen=True)
class NoiseModel:
    """How the noise is learned.

    Attributes
    ----------
    kind : {"homoscedastic", "samples", "features"}
    likelihood : {"gaussian", "student"}
    floor : float
        Smallest variance: what is exactly of low rank has no noise at all.
    """

    kind: str = "homoscedastic"
    likelihood: str = "gaussian"
    floor: float = 1e-12

    @property
    def T(self) -> NoiseModel:  # noqa: N802
        """The same for the transposed table."""
        swapped = {"samples": "features", "features": "samples"}
        return replace(self, kind=swapped.get(self.kind, self.kind))

    @property
    def by_entries(self) -> bool:
        """Whether entries have weights of their own."""
        return self.likelihood == "student"

    @property
    def has_one_variance(self) -> bool:
        """Whether all entries have Gaussian noise of the same variance."""
        return self.kind == "homoscedastic" and not self.by_entries

    def start(self, data: Observed, variance: float, weights: FloatArray | None = None) -> Noise:
        """The same variance for all entries."""
        n, p = data.shape
        noise = Noise(np.full(n, variance), np.ones(p))
        if self.kind == "features":
            noise = Noise(np.ones(n), np.full(p, variance))
        if self.kind != "homoscedastic":
            noise = replace(noise, prior=VariancePrior(max(variance, self.floor)))
        if self.by_entries:
            weights = np.ones(data.n_observed, data.dtype) if weights is None else weights
            noise = replace(noise, tails=FIRST_TAILS, weights=weights, other_weights=weights[data.column_order()])
        return noise

    def first_look(self, data: Observed, intercepts: Intercepts) -> tuple[float, FloatArray | None]:
        """The variance about the intercepts at unit scale, and first weights for a likelihood that has them.

        With outliers it is the variance of the bulk that counts, from the median of the absolute residuals.
        """
        if not self.by_entries:
            return 1.0, None
        residuals = data.residual_matrix(intercepts.rows, intercepts.column_offsets)
        residuals = residuals.data if scipy.sparse.issparse(residuals) else residuals.ravel()
        spread = 1.4826 * float(np.median(np.abs(residuals)))
        if spread == 0:
            return 1.0, np.ones(data.n_observed, data.dtype)
        weights = (_SUSPICIOUS * spread / np.maximum(np.abs(residuals), _SUSPICIOUS * spread)) ** 4
        return spread**2, np.maximum(weights, np.finfo(data.dtype).tiny).astype(data.dtype)

    def after_samples(self, noise: Noise, squares: FloatArray, counts: FloatArray) -> Noise:
        """Best variances once the rows' posterior is new.

        ``squares`` are the expected squared residuals of the rows, divided by the columns' variances.
        """
        counts = counts * (1.0 + noise.optimism)
        if self.kind == "homoscedastic":
            variance = max(float(squares.sum() / counts.sum()), self.floor)
            return replace(noise, samples=np.full(len(squares), variance))
        if self.kind == "samples":
            prior, variances = self._of_rows(noise, squares, counts)
            return replace(noise, samples=variances, prior=prior)
        return noise

    def after_features(self, noise: Noise, squares: FloatArray, counts: FloatArray) -> tuple[Noise, float]:
        """The same for the columns, and the sum of all expected squares divided by their variances."""
        counts = counts * (1.0 + noise.optimism)
        if self.kind == "homoscedastic":
            previous = float(noise.samples[0])
            variance = max(previous * float(squares.sum() / counts.sum()), self.floor)
            noise = replace(noise, samples=np.full(len(noise.samples), variance))
            return noise, float(squares.sum()) * previous / variance
        if self.kind == "features":
            prior, variances = self._of_rows(noise, squares, counts)
            noise = replace(noise, features=variances, prior=prior)
        return noise, float(np.sum(squares / noise.features))

    def doubt(self, noise: Noise) -> str:
        """What speaks against the Student likelihood once the noise is learned; empty where nothing does."""
        share = noise.tails.gross_share
        level = float(np.median(noise.samples) * np.median(noise.features))
        if level > self.floor or share <= _FEW_GROSS:
            return ""
        return (
            f"the noise fell to the smallest that there is, and {share:.0%} of the entries are taken for gross errors. "
            "This happens where most entries are equal, such as the zeros of a table of counts."
        )

    def for_new_observations(self, noise: Noise, data: Observed) -> Noise:
        """With what is not known of the variances of single rows or columns."""
        if noise.prior is None:
            return noise
        spread = noise.prior.spread(self._own(noise, data)[1] * (1.0 + noise.optimism))
        if self.kind == "samples":
            return replace(noise, sample_spread=spread)
        return replace(noise, feature_spread=spread)

    def reweighed(
        self,
        noise: Noise,
        data: Observed,
        samples: SidePosterior,
        features: SidePosterior,
        shift: float,
        order: IntArray,
    ) -> tuple[Noise, float]:
        """Student: new weights and tails, and the negative expected log-likelihood that they give.

        ``order`` are the positions in row order of the entries in column order.
        """
        squares = _scaled_squares(noise, data, samples, features, shift)
        tails = noise.tails.fitted(squares)
        weights = tails.weights(squares).astype(data.dtype)
        loss = 0.5 * self._log_variances(noise, data) - float(np.sum(tails.log_density(squares)))
        return replace(noise, tails=tails, weights=weights, other_weights=weights[order]), loss

    def gaussian_loss(self, noise: Noise, data: Observed, squares: float) -> float:
        """Negative expected log-likelihood; ``squares`` is the sum of expected squares over their variances."""
        return 0.5 * (squares + self._log_variances(noise, data) + data.n_observed * float(np.log(2 * np.pi)))

    def prior_loss(self, noise: Noise, data: Observed) -> float:
        """What ties variances of single rows or columns to each other, and what makes all of them small."""
        loss = 0.5 * noise.optimism * self._log_variances(noise, data) if noise.optimism else 0.0
        if noise.prior is None:
            return loss
        variances, counts = self._own(noise, data)
        return loss + noise.prior.divergence(variances, counts * (1.0 + noise.optimism))

    def _of_rows(self, noise: Noise, squares: FloatArray, counts: FloatArray) -> tuple[VariancePrior, FloatArray]:
        """The prior of variances of rows, or of columns, and the variances."""
        squares = np.maximum(squares, 0.0)  # sums of differences may round to less
        prior = (noise.prior or VariancePrior(noise.level)).fitted(squares, counts, self.floor)
        return prior, np.maximum(prior.variances(squares, counts), self.floor)

    def _own(self, noise: Noise, data: Observed) -> tuple[FloatArray, FloatArray]:
        """Variances of the side that has its own, and the number of entries of each."""
        of_samples = self.kind == "samples"
        counts = (data if of_samples else data.T).row_counts.astype(np.float64)
        return noise.samples if of_samples else noise.features, counts

    def _log_variances(self, noise: Noise, data: Observed) -> float:
        """Sum of the expected log-variances of the observed entries."""
        if noise.prior is not None:
            variances, counts = self._own(noise, data)
            return float(counts @ noise.prior.expected_log(variances, counts * (1.0 + noise.optimism)))
        by_rows = float(data.row_counts @ np.log(noise.samples))
        return by_rows + float(data.T.row_counts @ np.log(noise.features))


def student_weights(
    noise: Noise, data: Observed, samples: SidePosterior, features: SidePosterior, shift: float
) -> FloatArray:
    """Expected weights of the entries in row order."""
    return noise.tails.weights(_scaled_squares(noise, data, samples, features, shift)).astype(data.dtype)


def _scaled_squares(
    noise: Noise, data: Observed, samples: SidePosterior, features: SidePosterior, shift: float
) -> FloatArray:
    """Expected squared residual of each entry over its variance, in row order."""
    entries, n = data.entries(), data.shape[0]
    squares = np.empty(len(entries.values))
    by_columns = column_features(samples, features)
    # What stands for the uncertainty of a row is many numbers: a block of rows at a time.
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, n))
        by_rows = row_features(samples, features, rows)
        block = entries.of_rows(start, start + len(rows))
        first, last = entries.indptr[start], entries.indptr[start + len(rows)]
        squares[first:last] = entry_squares(block, shift, samples.mean[rows], by_rows, features.mean, by_columns)
    squares /= np.repeat(noise.samples, np.diff(entries.indptr))
    squares /= noise.features[entries.indices]
    return squares

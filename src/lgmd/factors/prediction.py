"""What two posteriors say about entries of the table: error bars, draws, and rows that were not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
from scipy.special import gammaln

from lgmd._typing import FloatArray, IntArray
from lgmd.factors.covariance import RowCovariances
from lgmd.factors.noise import Noise, student_weights
from lgmd.factors.posterior import SidePosterior, prediction_features
from lgmd.factors.variational import VariationalHalf, prepare_posterior
from lgmd.linalg.packed import packed_size
from lgmd.observed import Observed

__all__ = ["TablePosterior"]

# Numbers held at a time for the rows of a block.
_BLOCK_NUMBERS = 20_000_000

# Rounds in which unseen rows find out which of their entries are outliers.
_STUDENT_ROUNDS = 20


@dataclass(frozen=True)
class TablePosterior:
    """The posterior of a whole table at unit scale.

    Attributes
    ----------
    samples, features : SidePosterior
    overall : float
    noise : Noise
    new_row_variance : float
        Factor on the prior variance of rows that no graph ties to others.
    """

    samples: SidePosterior
    features: SidePosterior
    overall: float
    noise: Noise
    new_row_variance: float = 1.0

    def variances(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Predictive variance of the entries at ``(rows[m], columns[m])``, noise included, (m,)."""
        out = np.empty(len(rows))
        # Entries that share rows and columns share their vectors.
        for block in _blocks(len(rows), self._feature_size):
            own, i = np.unique(rows[block], return_inverse=True)
            met, j = np.unique(columns[block], return_inverse=True)
            by_rows, by_columns = prediction_features(self.samples, self.features, own, met)
            out[block] = np.einsum("md,md->m", by_rows[i], by_columns[j], dtype=np.float64)
        return out + self.noise.samples[rows] * self.noise.features[columns]

    def table_variances(self) -> FloatArray:
        """Predictive variance of every entry, noise included, (n, p)."""
        n, p = len(self.samples.mean), len(self.features.mean)
        out = np.empty((n, p), self.samples.mean.dtype)
        for block in _blocks(n, self._feature_size + p):
            by_rows, by_columns = prediction_features(self.samples, self.features, np.arange(n)[block], np.arange(p))
            out[block] = by_rows @ by_columns.T
            out[block] += np.outer(self.noise.samples[block], self.noise.features).astype(out.dtype)
        return out

    def draw(self, n_draws: int, rng: np.random.Generator) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Draws of the two sides, (n, k + 1) and (p, k + 1) each."""
        for _ in range(n_draws):
            yield (
                self.samples.mean + self.samples.covariance.draw(1, rng)[0],
                self.features.mean + self.features.covariance.draw(1, rng)[0],
            )

    def log_density(self, residuals: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Log-density of entries that lie ``residuals`` off their predictions."""
        variances, degrees = self.variances(rows, columns), self.noise.degrees
        squares = np.square(residuals) / variances
        if np.isinf(degrees):
            return np.asarray(-0.5 * (squares + np.log(2 * np.pi * variances)))
        constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(np.pi * degrees)
        return np.asarray(constant - 0.5 * np.log(variances) - 0.5 * (degrees + 1) * np.log1p(squares / degrees))

    def unseen(self, data: Observed) -> TablePosterior:
        """The posterior of other rows with the same columns, which are held as they are."""
        m, k = data.shape[0], self.samples.rank
        half = VariationalHalf(
            data, scipy.sparse.eye_array(m, format="csr"), by_entries=bool(np.isfinite(self.noise.degrees))
        )
        own = replace(
            self.samples,
            mean=np.zeros((m, k + 1), data.dtype),
            covariance=RowCovariances.zero((m, k + 1), data.dtype),
            prior_variance=self.samples.prior_variance * self.new_row_variance,
        )
        features = replace(self.features, mean=self.features.mean.astype(data.dtype, copy=False))
        common = 1.0 / float(np.mean(1.0 / self.noise.samples))
        noise = replace(self.noise, samples=np.full(m, common))
        update = prepare_posterior(half)
        if not half.by_entries:
            found = update(own, features, noise, self.overall).posterior
            return replace(self, samples=found, features=features, noise=noise)
        noise = replace(noise, weights=np.ones(data.n_observed))
        for _ in range(_STUDENT_ROUNDS):
            found = update(own, features, noise, self.overall).posterior
            noise = replace(noise, weights=student_weights(noise, data, found, features, self.overall))
        return replace(self, samples=found, features=features, noise=noise)

    @property
    def _feature_size(self) -> int:
        """Numbers that stand for the uncertainty of a row."""
        return 2 * packed_size(self.samples.rank + 1)


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK_NUMBERS // max(width, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))

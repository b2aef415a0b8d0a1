"""What two posteriors say about entries of the table: error bars, draws, and rows that were not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray
from lgmd.factors.covariance import CoupledCovariances, RowCovariances
from lgmd.factors.noise import Noise, student_weights
from lgmd.factors.posterior import SidePosterior, column_features, prediction_features, row_features
from lgmd.factors.tails import FIRST_TAILS
from lgmd.factors.variances import VariancePrior
from lgmd.factors.variational import VariationalHalf, prepare_posterior
from lgmd.linalg.packed import packed_size
from lgmd.observed import Observed

__all__ = ["TablePosterior"]

# Numbers held at a time for the rows of a block.
_BLOCK_NUMBERS = 20_000_000

# Rounds in which unseen rows find out how noisy they are and which of their entries are outliers. In the first ones any
# entry may be one: a row that outliers still spoil would take the good ones for gross errors.
_NOISE_ROUNDS, _CAUTIOUS_ROUNDS = 20, 10


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
        return self._spread(rows, columns) + self.noise.inflation * self.noise.scales(rows, columns)

    def _spread(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """The same without the noise."""
        out = np.empty(len(rows))
        # Entries that share rows and columns share their vectors.
        for block in _blocks(len(rows), self._feature_size):
            own, i = np.unique(rows[block], return_inverse=True)
            met, j = np.unique(columns[block], return_inverse=True)
            by_rows, by_columns = prediction_features(self.samples, self.features, own, met)
            out[block] = np.einsum("md,md->m", by_rows[i], by_columns[j], dtype=np.float64)
        return out

    def table_variances(self) -> FloatArray:
        """Predictive variance of every entry, noise included, (n, p)."""
        n, p = len(self.samples.mean), len(self.features.mean)
        out = np.empty((n, p), self.samples.mean.dtype)
        by_columns = column_features(self.samples, self.features)
        for block in _blocks(n, self._feature_size + p):
            out[block] = row_features(self.samples, self.features, np.arange(n)[block]) @ by_columns.T
            noise = self.noise.inflation * self.noise.scales(np.arange(n)[block, None], np.arange(p))
            out[block] += noise.astype(out.dtype)
        return out

    def draw(
        self, n_draws: int, rng: np.random.Generator, rows: IntArray, columns: IntArray
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Draws of some rows and columns, (m, k + 1) each."""
        at_once = max(1, _BLOCK_NUMBERS // ((1 + len(rows) + len(columns)) * (self.samples.rank + 1)))
        for start in range(0, n_draws, at_once):
            size = min(at_once, n_draws - start)
            of_samples = self.samples.mean[rows] + self.samples.covariance.draw(size, rng, rows)
            of_features = self.features.mean[columns] + self.features.covariance.draw(size, rng, columns)
            yield from zip(of_samples, of_features, strict=True)

    def log_density(self, residuals: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
        """Log-density of entries that lie ``residuals`` off their predictions."""
        spread, scales, tails = self._spread(rows, columns), self.noise.scales(rows, columns), self.noise.tails
        variances = spread + scales
        gross = (spread + tails.gross_variance * scales) / variances
        return np.asarray(tails.log_density(np.square(residuals) / variances, gross) - 0.5 * np.log(variances))

    def unseen(self, data: Observed) -> TablePosterior:
        """The posterior of other rows with the same columns, which are held as they are."""
        m, k = data.shape[0], self.samples.rank
        prior = None
        # Rows may each have had a noise of their own and all have come down to the same.
        if len(self.noise.sample_spread) > 1 or np.any(self.noise.samples != self.noise.samples[0]):
            prior = self.noise.prior or VariancePrior(float(np.median(self.noise.samples)))
        half = VariationalHalf(
            data,
            scipy.sparse.eye_array(m, format="csr"),
            by_entries=not self.noise.tails.is_gaussian,
            equal_noise=prior is None,
        )
        own = replace(
            self.samples,
            mean=np.zeros((m, k + 1), data.dtype),
            covariance=RowCovariances.zero((m, k + 1), data.dtype),
            prior_variance=self.samples.prior_variance * self.new_row_variance,
        )
        features = replace(self.features, mean=self.features.mean.astype(data.dtype, copy=False))
        level = self.noise.samples[0] if prior is None else prior.level
        noise = replace(self.noise, samples=np.full(m, level))
        if half.by_entries:
            noise = replace(noise, weights=np.ones(data.n_observed))
        update = prepare_posterior(half)
        step = update(own, features, noise, self.overall)
        for each in range(_NOISE_ROUNDS if prior is not None or half.by_entries else 0):
            if prior is not None:
                counts = data.row_counts.astype(np.float64)
                noise = replace(noise, samples=prior.variances(np.maximum(step.squares, 0.0), counts))
            if half.by_entries:
                judging = replace(noise, tails=FIRST_TAILS) if each < _CAUTIOUS_ROUNDS else noise
                weights = student_weights(judging, data, step.posterior, features, self.overall)
                noise = replace(noise, weights=weights)
            step = update(own, features, noise, self.overall)
        if prior is not None:
            noise = replace(noise, sample_spread=prior.spread(data.row_counts.astype(np.float64)))
        return replace(self, samples=step.posterior, features=features, noise=noise)

    def shapes(self, expected: tuple[int, int, int]) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """What arrays have for shapes, and what they should have in a table of n rows, p columns and rank k."""
        n, p, k = expected
        out: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
            "noise of rows": (self.noise.samples.shape, (n,)),
            "noise of columns": (self.noise.features.shape, (p,)),
        }
        for name, spread, length in (
            ("rows", self.noise.sample_spread, n),
            ("columns", self.noise.feature_spread, p),
        ):
            out[f"spread of the noise of {name}"] = (spread.shape, (1,) if spread.shape == (1,) else (length,))
        for name, side, length in (("rows", self.samples, n), ("columns", self.features, p)):
            out[f"posterior of {name}"] = (side.mean.shape, (length, k + 1))
            out[f"prior variance of {name}"] = (side.prior_variance.shape, (k,))
            out[f"covariance of {name}"] = (side.covariance.shape, (length, k + 1))
            if isinstance(side.covariance, CoupledCovariances):
                out |= side.covariance.joint_shapes(name)
        return out

    @property
    def _feature_size(self) -> int:
        """Numbers that stand for the uncertainty of a row."""
        return 2 * packed_size(self.samples.rank + 1)


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK_NUMBERS // max(width, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))

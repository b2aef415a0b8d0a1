"""The mean of a table under its exact posterior, by Gibbs sampling: what no method can better on average.

Everything that a user would have to guess is given: the graphs, the variances of the factors and of the noise. The
mean under the posterior then has the least squared error of all estimates, averaged over tables from this prior.
"""

from __future__ import annotations

import numpy as np

from lgmd import datasets

N_DRAWS = 5000
N_DISCARDED = 1000


def posterior_mean(data: datasets.MatrixNormalData, seed: int) -> np.ndarray:
    """Mean of ``XW'`` given the complete noisy table, over draws of X given W and of W given X by turns."""
    rng = np.random.default_rng(seed)
    factors = [data.sample_factors, data.feature_factors]
    bases = [
        _prior(precision, factor)
        for precision, factor in zip((data.sample_precision, data.feature_precision), factors, strict=True)
    ]
    total = np.zeros(data.truth.shape)
    for draw in range(N_DISCARDED + N_DRAWS):
        factors[0] = _drawn(data.noisy, factors[1], data.noise_variance, *bases[0], rng)
        factors[1] = _drawn(data.noisy.T, factors[0], data.noise_variance, *bases[1], rng)
        if draw >= N_DISCARDED:
            total += factors[0] @ factors[1].T
    return total / N_DRAWS


def posterior_mean_of_gaps(data: datasets.MatrixNormalData, seed: int) -> np.ndarray:
    """The same given the observed entries of a table with gaps, with rows and columns taken as independent."""
    rng = np.random.default_rng(seed)
    table, mask = np.where(data.mask, data.noisy, 0.0), data.mask.astype(float)
    factors = [data.sample_factors, data.feature_factors]
    variances = [float(np.mean(factor**2)) for factor in factors]
    total = np.zeros(data.truth.shape)
    for draw in range(N_DISCARDED + N_DRAWS):
        factors[0] = _row_by_row(table, mask, factors[1], data.noise_variance, variances[0], rng)
        factors[1] = _row_by_row(table.T, mask.T, factors[0], data.noise_variance, variances[1], rng)
        if draw >= N_DISCARDED:
            total += factors[0] @ factors[1].T
    return total / N_DRAWS


def _row_by_row(
    table: np.ndarray, mask: np.ndarray, other: np.ndarray, noise: float, prior: float, rng: np.random.Generator
) -> np.ndarray:
    """One side given the other where every row has its own gaps."""
    n, k = len(table), other.shape[1]
    products = (other[:, :, None] * other[:, None, :]).reshape(len(other), k * k)
    precisions = (mask @ products).reshape(n, k, k) / noise + np.eye(k) / prior
    lower = np.linalg.cholesky(precisions)
    turned = np.linalg.solve(lower, (table @ other / noise)[:, :, None]) + rng.standard_normal((n, k, 1))
    return np.linalg.solve(lower.transpose(0, 2, 1), turned)[:, :, 0]


def _prior(precision, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of the precision, at the scale of the true factor."""
    dense = precision.toarray()
    values, vectors = np.linalg.eigh(dense)
    return values * factor.size / float(np.sum(factor * (dense @ factor))), vectors


def _drawn(
    table: np.ndarray,
    other: np.ndarray,
    variance: float,
    values: np.ndarray,
    vectors: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """One side given the other: independent in the basis of its graph and of the other side's products."""
    products, rotation = np.linalg.eigh(other.T @ other / variance)
    precisions = values[:, None] + products
    means = vectors.T @ (table @ other / variance) @ rotation / precisions
    drawn = means + rng.standard_normal(means.shape) / np.sqrt(precisions)
    return vectors @ drawn @ rotation.T

"""The log-determinant of a sparse precision matrix, without a dense square array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from lgmd._typing import FloatArray, SparseGraph
from lgmd.linalg.cholesky import TooEntangledError, factorize

__all__ = ["DECOMPOSED", "LogDeterminant", "Spectrum", "lanczos_log_determinant", "log_determinant", "spectrum"]

# Matrices up to this size are decomposed; a thousand rows take a tenth of a second.
DECOMPOSED = 1200


class LogDeterminant(NamedTuple):
    """A log-determinant and its standard error, which is zero where it is exact."""

    value: float
    standard_error: float


def log_determinant(precision: SparseGraph) -> LogDeterminant:
    """Log-determinant of a symmetric positive definite sparse matrix.

    Exact by sparse elimination where the factor stays small; otherwise by stochastic Lanczos quadrature,
    with its standard error.

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is not positive definite.
    """
    try:
        return LogDeterminant(factorize(precision).logdet, 0.0)
    except TooEntangledError:
        return lanczos_log_determinant(precision)


class Spectrum(NamedTuple):
    """Points and weights with ``sum(weights * f(nodes))`` the trace of f of a symmetric matrix.

    These are its eigenvalues, or a quadrature with the standard error of ``sum`` left unsaid: of a smooth f it is a
    small part of a per cent.
    """

    nodes: FloatArray
    weights: FloatArray

    @property
    def is_exact(self) -> bool:
        """Whether the points are the eigenvalues themselves."""
        return bool(np.all(self.weights == 1.0))

    def sum(self, values: FloatArray) -> float:
        """The trace for these values at the nodes."""
        return float(self.weights @ values)


def spectrum(
    matrix: SparseGraph,
    n_probes: int = 12,
    n_steps: int = 30,
    seed: int = 0,
    decomposed_up_to: int = DECOMPOSED,
) -> Spectrum:
    """The spectrum of a sparse positive semi-definite matrix: eigenvalues of a small one, Lanczos quadrature else.

    Rows without an entry off the diagonal are their own eigenvalues.
    """
    diagonal = np.asarray(matrix.diagonal(), dtype=np.float64)
    alone = np.diff(scipy.sparse.csr_array(matrix - scipy.sparse.diags_array(diagonal)).indptr) == 0
    joined = np.flatnonzero(~alone)
    inner = scipy.sparse.csr_array(matrix)[joined][:, joined]
    m = len(joined)
    if m <= decomposed_up_to:
        values = scipy.linalg.eigvalsh(inner.toarray()) if m else np.empty(0)
        weights = np.ones(m)
    else:
        probes = np.random.default_rng(seed).choice([-1.0, 1.0], size=(m, n_probes)) / np.sqrt(m)
        alphas, betas = _lanczos(inner, np.ones(m), probes, n_steps)
        parts = [scipy.linalg.eigh_tridiagonal(alphas[:, i], betas[:-1, i]) for i in range(n_probes)]
        values = np.concatenate([part[0] for part in parts])
        weights = np.concatenate([part[1][0] ** 2 for part in parts]) * m / n_probes
    values = np.maximum(values, 0.0)
    return Spectrum(np.append(values, diagonal[alone]), np.append(weights, np.ones(int(alone.sum()))))


def lanczos_log_determinant(
    precision: SparseGraph, n_probes: int = 32, n_steps: int = 40, seed: int = 0
) -> LogDeterminant:
    r"""Stochastic Lanczos quadrature (Ubaru, Chen and Saad, 2017).

    :math:`\ln|A| = \mathrm{tr} \ln A \approx \frac{n}{m} \sum_{l=1}^m e_1^T \ln(T_l) e_1`, with :math:`T_l` the
    Lanczos matrix of a random sign vector. The matrix is first scaled to unit diagonal, which is taken out
    exactly, so that the noise is that of the off-diagonal part alone.

    Cost: ``n_probes * n_steps`` products with the matrix, all probes at once.
    """
    n = precision.shape[0]
    diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
    if not np.all(diagonal > 0):
        raise np.linalg.LinAlgError("the matrix has a diagonal entry that is not positive")
    scale = 1.0 / np.sqrt(diagonal)
    rng = np.random.default_rng(seed)
    probes = rng.choice([-1.0, 1.0], size=(n, n_probes)) / np.sqrt(n)
    alphas, betas = _lanczos(precision, scale, probes, min(n_steps, n))
    estimates = np.empty(n_probes)
    for probe in range(n_probes):
        values, vectors = scipy.linalg.eigh_tridiagonal(alphas[:, probe], betas[:-1, probe])
        if values[0] <= 0:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        estimates[probe] = n * np.sum(vectors[0] ** 2 * np.log(values))
    error = float(estimates.std(ddof=1) / np.sqrt(n_probes))
    return LogDeterminant(float(np.log(diagonal).sum() + estimates.mean()), error)


def _lanczos(
    precision: SparseGraph, scale: FloatArray, start: FloatArray, n_steps: int
) -> tuple[FloatArray, FloatArray]:
    """Tridiagonal coefficients of every probe, (n_steps, n_probes) each."""
    alphas = np.ones((n_steps, start.shape[1]))
    betas = np.zeros_like(alphas)
    # A vanished remainder means that the Krylov space is exhausted: the zero beta decouples what follows, which
    # has weight zero and any positive value.
    active = np.ones(start.shape[1], dtype=bool)
    previous = np.zeros_like(start)
    current = start
    beta = np.zeros(start.shape[1])
    for step in range(n_steps):
        following = scale[:, None] * (precision @ (scale[:, None] * current)) - beta * previous
        alphas[step, active] = np.einsum("ij,ij->j", following, current)[active]
        following -= alphas[step] * current
        beta = np.linalg.norm(following, axis=0)
        active &= beta > 1e-12
        if not active.any():
            break
        beta = np.where(active, beta, 0.0)
        betas[step] = beta
        previous = current
        current = np.divide(following, beta, out=np.zeros_like(following), where=active)
    return alphas, betas

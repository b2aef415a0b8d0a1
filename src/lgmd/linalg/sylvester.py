r"""The Sylvester equation of a complete table: ``penalty A X + X G = C``.

``A`` is the precision over the rows (n x n, sparse), ``G`` the k x k Gram matrix of the other side. In the eigenbasis
of ``G`` the k columns part into shifted systems :math:`(\lambda A + \mu_j I) z_j = c_j`. What remains depends
on ``A``: nothing for a diagonal, a division in its own eigenbasis while it is small, conjugate gradients where
it is large and sparse. :func:`prepare` decides once; the result solves often.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.linalg

from lgmd._typing import FloatArray, SparseGraph
from lgmd.linalg.conjugate_gradients import conjugate_gradients

__all__ = [
    "SPECTRAL_LIMIT",
    "DiagonalSylvester",
    "IterativeSylvester",
    "SpectralSylvester",
    "SylvesterSolver",
    "prepare",
]

# Above this many rows an eigendecomposition (10 n^3 operations) costs more than the solves it saves.
SPECTRAL_LIMIT = 300


class SylvesterSolver(Protocol):
    """Solves ``penalty A X + X G = C`` for a fixed ``A``."""

    def solve(self, penalty: float, gram: FloatArray, right: FloatArray, start: FloatArray) -> FloatArray:
        """The exact solution; ``start`` is used where the method can profit from a guess."""
        ...


class DiagonalSylvester:
    """``A`` is a diagonal: n independent rows."""

    def __init__(self, precision: SparseGraph) -> None:
        self._diagonal = np.asarray(precision.diagonal(), dtype=np.float64)

    def solve(self, penalty: float, gram: FloatArray, right: FloatArray, start: FloatArray) -> FloatArray:
        """``O(n k^2)``."""
        shifts, basis = _spectrum(gram)
        rotated = right @ basis.astype(right.dtype)
        rotated /= (penalty * self._diagonal[:, None] + shifts).astype(right.dtype)
        return np.asarray(rotated @ basis.T.astype(right.dtype))


class SpectralSylvester:
    """``A`` is small: two eigendecompositions and a division."""

    def __init__(self, precision: SparseGraph) -> None:
        self._values, self._vectors = scipy.linalg.eigh(precision.toarray().astype(np.float64))

    def solve(self, penalty: float, gram: FloatArray, right: FloatArray, start: FloatArray) -> FloatArray:
        """``O(n^2 k)``."""
        shifts, basis = _spectrum(gram)
        rotated = self._vectors.T @ right @ basis
        rotated /= penalty * self._values[:, None] + shifts
        return np.asarray((self._vectors @ rotated @ basis.T).astype(right.dtype))


class IterativeSylvester:
    """``A`` is large and sparse: k shifted systems by conjugate gradients, scaled to unit diagonal."""

    def __init__(self, precision: SparseGraph, max_iter: int = 1000) -> None:
        self._precision = precision
        self._diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
        self._max_iter = max_iter

    def solve(self, penalty: float, gram: FloatArray, right: FloatArray, start: FloatArray) -> FloatArray:
        """``O(nnz(A) k)`` a product, to round-off."""
        dtype = right.dtype
        shifts, basis = _spectrum(gram)
        basis = basis.astype(dtype)
        scale = (1.0 / np.sqrt(penalty * self._diagonal[:, None] + shifts)).astype(dtype)
        precision = self._precision.astype(dtype)
        weight, shifts = dtype.type(penalty), shifts.astype(dtype)

        def apply(vectors: FloatArray) -> FloatArray:
            scaled = scale * vectors
            return np.asarray(scale * (weight * (precision @ scaled) + shifts * scaled))

        result = conjugate_gradients(
            apply,
            scale * (right @ basis),
            (start @ basis) / scale,
            tol=50 * float(np.finfo(dtype).eps),
            max_iter=self._max_iter,
            separate_columns=True,
        )
        return np.asarray((scale * result.solution) @ basis.T)


def prepare(precision: SparseGraph) -> SylvesterSolver:
    """The solver that suits ``A``: diagonal where no edge has a weight, spectral up to ``SPECTRAL_LIMIT`` rows."""
    n = precision.shape[0]
    if np.count_nonzero(precision.diagonal()) == precision.count_nonzero():
        return DiagonalSylvester(precision)
    if n <= SPECTRAL_LIMIT:
        return SpectralSylvester(precision)
    return IterativeSylvester(precision)


def _spectrum(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, none of them negative, and eigenvectors of a Gram matrix."""
    values, vectors = scipy.linalg.eigh(np.asarray(gram, dtype=np.float64))
    return np.maximum(values, 0.0), vectors

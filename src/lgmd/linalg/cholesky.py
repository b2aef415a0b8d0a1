"""Cholesky factors of precision matrices, sparse where the graph allows it.

A factorisation ``A = C C'`` is computed once and asked often: for ``A^-1 b``, for whitening with ``C^-1``
and for its determinant. :func:`factorize` picks the dense or the sparse form; read ``logdet`` for the
determinant of graphs too entangled for either.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.linalg.ordering import reverse_cuthill_mckee

__all__ = [
    "DENSE_LIMIT",
    "DenseFactor",
    "PrecisionFactor",
    "SparseFactor",
    "TooEntangledError",
    "envelope",
    "factorize",
]

# Largest matrix that is ever held as a dense square array: 200 MB in double precision.
DENSE_LIMIT = 5000

# Largest sparse factor, in entries: 320 MB with its indices.
FILL_LIMIT = 20_000_000


class TooEntangledError(Exception):
    """The graph has no elimination order with a factor of bearable size."""


class PrecisionFactor(Protocol):
    """A factored precision matrix ``A = C C'``."""

    logdet: float

    def solve(self, right: FloatArray) -> FloatArray:
        """``A^-1 right``."""
        ...

    def whiten(self, right: FloatArray) -> FloatArray:
        """``C^-1 right``: rows with covariance A become independent."""
        ...

    def color(self, right: FloatArray) -> FloatArray:
        """``C right``, the inverse of :meth:`whiten`."""
        ...


class DenseFactor:
    """Cholesky factor of a small or dense precision matrix."""

    def __init__(self, precision: SparseGraph) -> None:
        full = precision.toarray() if scipy.sparse.issparse(precision) else precision
        dense = np.asarray(full, dtype=np.float64)
        self._lower = scipy.linalg.cholesky(dense, lower=True)
        pivots = np.diag(self._lower) ** 2
        _check_pivots(pivots, np.diag(dense))
        self.logdet = float(np.log(pivots).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """``A^-1 right``."""
        return np.asarray(scipy.linalg.cho_solve((self._lower, True), right))

    def whiten(self, right: FloatArray) -> FloatArray:
        """``C^-1 right``."""
        return np.asarray(scipy.linalg.solve_triangular(self._lower, right, lower=True))

    def color(self, right: FloatArray) -> FloatArray:
        """``C right``."""
        return np.asarray(self._lower @ right)


class SparseFactor:
    """Factor of a sparse precision matrix in an order that keeps its envelope small."""

    def __init__(self, precision: SparseGraph, order: IntArray) -> None:
        permuted = scipy.sparse.csc_matrix(precision)[order][:, order].astype(np.float64)
        try:
            factor: Any = scipy.sparse.linalg.splu(
                permuted, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )
        except RuntimeError as error:  # SuperLU's word for an exactly singular matrix
            raise np.linalg.LinAlgError("the matrix is singular") from error
        pivots = factor.U.diagonal()
        if not np.array_equal(factor.perm_r, np.arange(len(order))):  # a zero pivot was avoided
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        _check_pivots(pivots, permuted.diagonal())
        self._factor = factor
        self._order = order
        self._inverse_order = np.argsort(order)
        self._roots = np.sqrt(pivots)
        self._unit_lower = scipy.sparse.csr_array(factor.L)
        self.logdet = float(np.log(pivots).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """``A^-1 right``."""
        solution = self._factor.solve(np.asarray(right, dtype=np.float64)[self._order])
        return np.asarray(solution[self._inverse_order])

    def whiten(self, right: FloatArray) -> FloatArray:
        """``C^-1 right``."""
        permuted = np.asarray(right, dtype=np.float64)[self._order]
        solved = scipy.sparse.linalg.spsolve_triangular(self._unit_lower, permuted, unit_diagonal=True)
        return np.asarray((solved.T / self._roots).T)

    def color(self, right: FloatArray) -> FloatArray:
        """``C right``."""
        scaled = (np.asarray(right, dtype=np.float64).T * self._roots).T
        return np.asarray((self._unit_lower @ scaled)[self._inverse_order])


def _check_pivots(pivots: FloatArray, diagonal: FloatArray) -> None:
    """Refuse a matrix that is not positive definite to working precision."""
    rounding = len(pivots) * float(np.finfo(np.float64).eps)
    if not np.all(pivots > rounding * np.abs(diagonal)):
        raise np.linalg.LinAlgError("the matrix is not positive definite")


def envelope(precision: SparseGraph) -> tuple[IntArray, int]:
    """An order of the nodes and a bound on the entries of the Cholesky factor in that order.

    The order is reverse Cuthill-McKee; elimination fills at most the envelope, from each row's first entry to
    its diagonal.
    """
    pattern = scipy.sparse.csr_matrix(precision)
    order = reverse_cuthill_mckee(pattern)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    first = position.copy()
    np.minimum.at(first, rows, position[pattern.indices])
    return order, int((position - first).sum()) + len(order)


def factorize(precision: SparseGraph) -> PrecisionFactor:
    """Factor a symmetric positive definite matrix, sparse or not.

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is not positive definite.
    TooEntangledError
        It is neither small nor sparse enough to be factored in bounded memory.
    """
    n = precision.shape[0]
    if not scipy.sparse.issparse(precision):
        return DenseFactor(precision)
    order, fill = envelope(precision)
    if n <= DENSE_LIMIT and fill > n * n // 16:
        return DenseFactor(precision)
    if fill <= FILL_LIMIT:
        return SparseFactor(precision, order)
    raise TooEntangledError(
        f"a graph of {n:,} nodes and {precision.nnz:,} entries would need a factor of up to {fill:,} entries"
    )

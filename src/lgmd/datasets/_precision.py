"""
Precision matrices at work: checked, brought to unit scale, and turned into draws.

A draw from ``N(0, A^-1)`` is ``L^-T z`` with ``A = L L'`` and ``z`` white. ``DenseFactor`` says so in two
lines; ``SparseFactor`` does the same for a large sparse ``A``. ``graphs`` builds the matrices.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from lgmd._typing import FloatArray, SparseGraph
from lgmd.exceptions import InvalidGraphError, InvalidParameterError

__all__ = [
    "DenseFactor",
    "PrecisionFactor",
    "SparseFactor",
    "check_invertible_size",
    "check_precision",
    "factorise",
    "to_unit_variance",
]

# Up to here a dense Cholesky factor takes well under a second.
_DENSE_NODES = 2_000
# The largest n x n array this package's generators allow themselves: 200 MB, a few seconds to invert.
_INVERTIBLE_NODES = 5_000
# Above this share of non-zeros a sparse factor fills up, and is slower than a dense one.
_FILLS_UP = 0.01


class PrecisionFactor(Protocol):
    """A factorised precision matrix, from which any number of draws can be made."""

    def colour(self, white: FloatArray) -> FloatArray:
        """Give the columns of `white`, of shape (n, k) and covariance I, the covariance ``A^-1``."""
        ...


class DenseFactor:
    """Cholesky factor ``A = L L'`` of a dense array: O(n^3) once, O(n^2 k) for k draws."""

    def __init__(self, precision: FloatArray) -> None:
        try:
            self._lower: FloatArray = np.linalg.cholesky(precision)
        except np.linalg.LinAlgError as error:
            raise InvalidGraphError("not positive definite") from error
        _check_pivots(self._lower.diagonal() ** 2, precision.diagonal())

    def colour(self, white: FloatArray) -> FloatArray:
        """Return ``L^-T white``."""
        coloured: FloatArray = linalg.solve_triangular(self._lower, white, lower=True, trans="T")
        return coloured


class SparseFactor:
    """
    Factor ``P A P' = L D L'`` with a fill-reducing order, for large sparse matrices.

    SuperLU in its symmetric mode gives ``L`` and ``U = D L'``. It solves with ``A`` but not with ``L'``
    alone, so draws are ``A^-1 (P' L D^(1/2) white)``, which equals ``P' L^-T D^(-1/2) white``.
    """

    def __init__(self, precision: SparseGraph) -> None:
        try:
            self._lu = splu(
                precision.tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:  # SuperLU: exactly singular
            raise InvalidGraphError("not positive definite") from error
        if not np.array_equal(self._lu.perm_r, self._lu.perm_c):  # a pivot had to be moved off the diagonal
            raise InvalidGraphError("not positive definite")
        pivots = self._lu.U.diagonal()
        _check_pivots(pivots[self._lu.perm_c], precision.diagonal())
        self._root: SparseGraph = self._lu.L @ sparse.diags_array(np.sqrt(pivots))

    def colour(self, white: FloatArray) -> FloatArray:
        """Return ``P' L^-T D^(-1/2) white``."""
        coloured: FloatArray = self._lu.solve((self._root @ white)[self._lu.perm_r])
        return coloured


def factorise(precision: SparseGraph) -> PrecisionFactor:
    """Factorise a sparse precision matrix in the way that suits its size and density."""
    n_nodes = precision.shape[0]
    fills_up = precision.nnz > _FILLS_UP * n_nodes**2
    if n_nodes <= _DENSE_NODES or (n_nodes <= _INVERTIBLE_NODES and fills_up):
        return DenseFactor(precision.toarray())
    return SparseFactor(precision)


def check_precision(matrix: ArrayLike | SparseGraph, n_nodes: int, name: str, nodes: str) -> SparseGraph:
    """Return a copy of `matrix` as a csr_array, if it is a finite symmetric matrix over `n_nodes` nodes."""
    try:
        given: SparseGraph = matrix if sparse.issparse(matrix) else np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidGraphError(
            f"{name} of type {type(matrix).__name__} is not a matrix. Pass the name of a family, or an array."
        ) from error
    if given.ndim != 2:
        raise InvalidGraphError(f"{name} has {given.ndim} dimensions. Pass the name of a family, or a matrix.")
    precision: SparseGraph = sparse.csr_array(given, dtype=np.float64, copy=True)
    if precision.shape != (n_nodes, n_nodes):
        shape = " x ".join(str(length) for length in precision.shape)
        raise InvalidGraphError(
            f"{name} is {shape} but the table has {n_nodes} {nodes}. "
            f"A graph over {nodes} must be {n_nodes} x {n_nodes}."
        )
    if not np.isfinite(precision.data).all():
        raise InvalidGraphError(f"{name} has entries that are NaN or infinite. A precision must be finite.")
    asymmetry, size = abs(precision - precision.T).max(), abs(precision).max()
    if asymmetry > 1e-8 * size:
        raise InvalidGraphError(
            f"{name} is not symmetric: entries across the diagonal differ by up to {asymmetry:.2g}. "
            "Pass (matrix + matrix.T) / 2 if that is meant."
        )
    return precision


def check_invertible_size(n_nodes: int, family: str) -> None:
    """Raise for graphs too large for the n x n inverse that `to_unit_variance` needs."""
    if n_nodes > _INVERTIBLE_NODES:
        raise InvalidParameterError(
            f"{family} with {n_nodes:,} nodes needs the inverse of a {n_nodes:,} x {n_nodes:,} matrix to "
            f"bring its variances to one; the limit is {_INVERTIBLE_NODES:,}. Use chain_precision or "
            "block_precision, whose variances are known, or pass a precision matrix of your own."
        )


def to_unit_variance(precision: SparseGraph) -> SparseGraph:
    """Return ``D A D`` with the diagonal ``D`` that makes every diagonal entry of its inverse one."""
    # The rows of M = L^-T have the standard deviations for lengths, because M M' = A^-1.
    scale = np.linalg.norm(DenseFactor(precision.toarray()).colour(np.eye(precision.shape[0])), axis=1)
    entries = precision.tocoo()
    # The scales are multiplied first: s_i s_j, unlike (a s_i) s_j, is the same for (i, j) and (j, i).
    values = entries.data * (scale[entries.row] * scale[entries.col])
    return sparse.csr_array((values, (entries.row, entries.col)), shape=precision.shape)


def _check_pivots(pivots: FloatArray, diagonal: FloatArray) -> None:
    """Raise if a node's pivot is zero but for rounding: the matrix is then singular, as a Laplacian is."""
    if np.any(pivots <= len(pivots) * np.finfo(np.float64).eps * diagonal):
        raise InvalidGraphError("not positive definite")

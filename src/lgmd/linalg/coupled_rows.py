r"""Rows with a small system each that a graph couples.

Their joint precision is :math:`K = \mathrm{diag}(H_i) + A \otimes \mathrm{diag}(w)`, with :math:`H_i` what a row knows
by itself, A the graph and w the weights of a row's numbers. The block diagonal of K is factored row by row; in the
coordinates of these factors the graph's edges are all that is left, for conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse

from lgmd._typing import FloatArray, SparseGraph
from lgmd.linalg.cholesky import factorize
from lgmd.linalg.conjugate_gradients import conjugate_gradients
from lgmd.linalg.row_systems import solve_lower, solve_upper

__all__ = ["DENSE_UNKNOWNS", "CoupledRows", "draws_of", "joint_precision", "solve_coupled"]

DENSE_UNKNOWNS = 2000
"""Unknowns up to which the joint precision is formed."""

# Residuals of draws that are asked for.
_TOL = 1e-6


def joint_precision(precision: SparseGraph, blocks: FloatArray, weights: FloatArray) -> FloatArray:
    """K for ``m`` rows of ``d`` numbers, dense, (m d, m d)."""
    m, d = blocks.shape[:2]
    joint = np.einsum("ij,ab->iajb", precision.toarray(), np.diag(weights))
    joint[np.arange(m), :, np.arange(m), :] += blocks
    return np.asarray(joint.reshape(m * d, m * d))


def solve_coupled(
    lower: FloatArray,
    edges: SparseGraph,
    weights: FloatArray,
    right: FloatArray,
    start: FloatArray,
    tol: float,
    reduction: float = 0.0,
) -> FloatArray:
    """``(I + L^-1 (A_off x diag(w)) L^-T) u = right`` with L the Cholesky factors of the blocks on K's diagonal.

    ``tol`` and ``reduction`` are those of :func:`lgmd.linalg.conjugate_gradients.conjugate_gradients`.
    """
    return conjugate_gradients(
        lambda u: u + solve_lower(lower, edges @ (solve_upper(lower, u) * weights)),
        right,
        start,
        tol=tol,
        max_iter=200,
        reduction=reduction,
    ).solution


def draws_of(
    precision: SparseGraph, blocks: FloatArray, weights: FloatArray
) -> Callable[[np.random.Generator], FloatArray]:
    """Makes draws with mean zero and covariance ``K^-1``, (m, d): of few unknowns directly, of many by a solve each."""
    shape = blocks.shape[:2]
    if shape[0] * shape[1] > DENSE_UNKNOWNS:
        rows = CoupledRows(precision, blocks, weights)
        return lambda rng: rows.draw(rng, _TOL)
    lower = np.linalg.cholesky(joint_precision(precision, blocks, weights))

    def draw(rng: np.random.Generator) -> FloatArray:
        normal = rng.standard_normal(len(lower))
        return np.asarray(scipy.linalg.solve_triangular(lower, normal, lower=True, trans=1).reshape(shape))

    return draw


class CoupledRows:
    """Draws with mean zero and covariance ``K^-1`` by conjugate gradients. What it is given as blocks is overwritten.

    Attributes
    ----------
    lower : ndarray of shape (m, d, d)
        Cholesky factors of the blocks on the diagonal of K.
    edges : csr_array of shape (m, m)
        The graph without its diagonal.
    weights : ndarray of shape (d,)

    Raises
    ------
    TooEntangledError
        Where the graph is neither diagonally dominant nor can be factored.
    """

    def __init__(self, precision: SparseGraph, blocks: FloatArray, weights: FloatArray) -> None:
        d = blocks.shape[1]
        precision = scipy.sparse.csr_array(precision)
        diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
        self.edges = scipy.sparse.csr_array(precision - scipy.sparse.diags_array(diagonal))
        self.edges.eliminate_zeros()
        self.weights = weights
        self._color = _coloring(precision)
        on_diagonal = (slice(None), np.arange(d), np.arange(d))
        rounding = 1e-12 * np.trace(blocks, axis1=1, axis2=2)[:, None]
        blocks[on_diagonal] += rounding
        self._roots = np.linalg.cholesky(blocks)
        blocks[on_diagonal] += diagonal[:, None] * weights - rounding
        self.lower = np.linalg.cholesky(blocks)

    def draw(self, rng: np.random.Generator, tol: float) -> FloatArray:
        """One draw: solving with a right-hand side of covariance K gives covariance ``K^-1``."""
        m, d = self.lower.shape[:2]
        right = np.einsum("mab,mb->ma", self._roots, rng.standard_normal((m, d)))
        right += self._color(rng, d) * np.sqrt(self.weights)
        start = np.zeros_like(right)
        turned = solve_coupled(self.lower, self.edges, self.weights, solve_lower(self.lower, right), start, tol)
        return solve_upper(self.lower, turned)


def _coloring(precision: SparseGraph) -> Callable[[np.random.Generator, int], FloatArray]:
    """Makes columns of covariance ``A``, (m, d)."""
    lower = scipy.sparse.tril(precision, -1).tocoo()
    m, size = precision.shape[0], np.abs(lower.data)
    rest = precision.diagonal() - np.bincount(lower.row, size, m) - np.bincount(lower.col, size, m)
    if np.all(rest >= 0):
        # A sum over edges: each adds a draw to one end and, with its sign, to the other.
        edges = scipy.sparse.csr_array(
            (
                np.concatenate([np.sqrt(size), np.sign(lower.data) * np.sqrt(size)]),
                (np.concatenate([lower.row, lower.col]), np.tile(np.arange(len(size)), 2)),
            ),
            shape=(m, len(size)),
        )
        own = np.sqrt(rest)[:, None]
        return lambda rng, d: edges @ rng.standard_normal((len(size), d)) + own * rng.standard_normal((m, d))
    color = factorize(precision).color
    return lambda rng, d: color(rng.standard_normal((m, d)))

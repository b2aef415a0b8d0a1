r"""What a graph adds to rows that have a small system each.

The posterior precision of all rows jointly is :math:`K = \mathrm{diag}(\tau_i S_i) + A \otimes G^{-1}`, with
:math:`S_i` from the row's entries and G the prior variances of the factors. Its block diagonal is factored row by row;
in the coordinates of these factors the graph's edges are all that is left.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.factors.posterior import SidePosterior
from lgmd.linalg.cholesky import TooEntangledError, factorize
from lgmd.linalg.conjugate_gradients import conjugate_gradients
from lgmd.linalg.packed import unpack
from lgmd.linalg.row_systems import multiply_upper, solve_lower, solve_upper

__all__ = ["Coupling"]

# Unknowns up to which the joint covariance is formed; above, draws from it are compared.
_DENSE_UNKNOWNS = 2000
_N_DRAWS = 64


class Coupling:
    """A graph over rows.

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
        Diagonal of the precision matrix.
    coupled, free : ndarray of int
        Rows with and without an edge.
    """

    def __init__(self, precision: SparseGraph) -> None:
        precision = scipy.sparse.csr_array(precision)
        self.diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
        off_diagonal = scipy.sparse.csr_array(precision - scipy.sparse.diags_array(self.diagonal))
        off_diagonal.eliminate_zeros()
        has_edge = np.diff(off_diagonal.indptr) > 0
        self.coupled, self.free = np.flatnonzero(has_edge), np.flatnonzero(~has_edge)
        self._edges = scipy.sparse.csr_array(off_diagonal[self.coupled][:, self.coupled])
        self._precision = scipy.sparse.csr_array(precision[self.coupled][:, self.coupled])

    def means(self, lower: FloatArray, alone: FloatArray, own: SidePosterior, rows: IntArray) -> FloatArray:
        """Joint means from the Cholesky factors of the rows' precisions and the means that the rows have alone.

        ``lower`` and ``alone`` belong to ``rows``, which include all that have an edge; ``own`` is a warm start.
        """
        if not len(self.coupled):
            return alone
        position = np.searchsorted(rows, self.coupled)
        L = lower[position]
        right = multiply_upper(L, alone[position])
        start = multiply_upper(L, own.mean[self.coupled].astype(np.float64))
        mean = alone.copy()
        mean[position] = solve_upper(L, self._solve(L, right, start, own))
        return mean

    def cross_covariance(
        self, moments: FloatArray, tau: FloatArray, own: SidePosterior, rows: IntArray, others: IntArray
    ) -> FloatArray:
        """Posterior covariance of pairs of rows, summed over factors at unit prior variance.

        Exact for few unknowns; otherwise from draws, each of which costs one solve. Rows without an edge have none.

        Parameters
        ----------
        moments : ndarray of shape (m, (k + 2)(k + 3) / 2)
            Packed sums of the coupled rows, from ``linalg.row_posteriors``.
        tau : ndarray of shape (n,)
            Noise precision of each row.
        own : SidePosterior
        rows, others : ndarray of int
        """
        out = np.zeros(len(rows))
        position = np.full(len(self.diagonal), -1)
        position[self.coupled] = np.arange(len(self.coupled))
        i, j = position[rows], position[others]
        known = (i >= 0) & (j >= 0) & (i != j)
        if not known.any():
            return out
        k = own.rank
        blocks = unpack(moments)[:, : k + 1, : k + 1] * tau[self.coupled, None, None]
        if own.intercept_variance is None:
            blocks[:, k, :] = blocks[:, :, k] = 0.0
        blocks[:, k, k] += 1.0 if own.intercept_variance is None else 1.0 / own.intercept_variance
        form = self._exactly if len(blocks) * (k + 1) <= _DENSE_UNKNOWNS else self._from_draws
        out[known] = form(blocks, own, i[known], j[known])
        return out

    def _exactly(self, blocks: FloatArray, own: SidePosterior, i: IntArray, j: IntArray) -> FloatArray:
        m, d = blocks.shape[:2]
        weights = self._weights(own)
        joint = np.einsum("ij,ab->iajb", self._precision.toarray(), np.diag(weights))
        joint[np.arange(m), :, np.arange(m), :] += blocks
        inverse = np.linalg.inv(joint.reshape(m * d, m * d)).reshape(m, d, m, d)
        return np.asarray(np.einsum("maa,a->m", inverse[i, :, j, :], weights))

    def _from_draws(self, blocks: FloatArray, own: SidePosterior, i: IntArray, j: IntArray) -> FloatArray:
        """Solving with a right-hand side of covariance K gives a draw of covariance K^-1."""
        rng = np.random.default_rng(0)
        weights = self._weights(own)
        roots = np.linalg.cholesky(
            blocks + 1e-12 * np.eye(blocks.shape[1]) * np.trace(blocks, axis1=1, axis2=2)[:, None, None]
        )
        preconditioner = blocks.copy()
        preconditioner[:, np.arange(own.rank), np.arange(own.rank)] += self.diagonal[self.coupled, None] * weights[:-1]
        L = np.linalg.cholesky(preconditioner)
        try:
            color = factorize(self._precision).color
        except TooEntangledError:
            return self._between_neighbours(L, own, i, j)
        out = np.zeros(len(i))
        for _ in range(_N_DRAWS):
            right = np.einsum("mab,mb->ma", roots, rng.standard_normal(blocks.shape[:2]))
            right += color(rng.standard_normal(right.shape)) * np.sqrt(weights)
            draw = solve_upper(L, self._solve(L, solve_lower(L, right), np.zeros_like(right), own))
            out += np.einsum("ma,ma,a->m", draw[i], draw[j], weights)
        return out / _N_DRAWS

    def _between_neighbours(self, L: FloatArray, own: SidePosterior, i: IntArray, j: IntArray) -> FloatArray:
        """To first order in the edges: ``-K_i^-1 A_ij G^-1 K_j^-1``, for graphs that cannot be factored."""
        weights = self._weights(own)
        edge = np.asarray(self._edges[i, j]).ravel()
        inverses = np.linalg.inv(L)
        inverses = np.einsum("mba,mbc->mac", inverses, inverses)
        return np.asarray(-edge * np.einsum("mab,b,mba,a->m", inverses[i], weights, inverses[j], weights))

    def _solve(self, L: FloatArray, right: FloatArray, start: FloatArray, own: SidePosterior) -> FloatArray:
        """``(I + L^-1 (A_off x G^-1) L^-T) u = right``."""
        weights = self._weights(own)
        return conjugate_gradients(
            lambda u: u + solve_lower(L, self._edges @ (solve_upper(L, u) * weights)),
            right,
            start,
            tol=1e-10,
            max_iter=200,
        ).solution

    @staticmethod
    def _weights(own: SidePosterior) -> FloatArray:
        """Prior precision of each factor at unit scale of the graph; intercepts have no graph."""
        return np.append(1.0 / own.prior_variance, 0.0)

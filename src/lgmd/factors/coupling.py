r"""What a graph adds to rows that have a small system each.

The posterior precision of all rows jointly is :math:`K = \mathrm{diag}(\tau_i S_i) + A \otimes G^{-1}`, with
:math:`S_i` from the row's entries and G the prior variances of the factors. Its block diagonal is factored row by row;
in the coordinates of these factors the graph's edges are all that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.factors.posterior import SidePosterior
from lgmd.linalg.cholesky import TooEntangledError, factorize
from lgmd.linalg.conjugate_gradients import conjugate_gradients
from lgmd.linalg.packed import unpack
from lgmd.linalg.row_systems import multiply_upper, solve_lower, solve_upper

__all__ = ["Coupling", "JointRows"]

# Unknowns up to which the joint covariance is formed; above, draws from it are compared.
_DENSE_UNKNOWNS = 2000

# Residuals of the joint means, where every step raises the bound and the next iteration begins where this one ends, and
# of draws, which are too few to be worth more.
_MEAN_TOL, _DRAW_TOL = 1e-6, 1e-3

# Draws for rows that are too many for that: as many as the numbers allow, but not fewer than a few.
_N_DRAWS, _FEWEST_DRAWS, _DRAWN_NUMBERS = 32, 8, 200_000_000


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
        position: IntArray | slice = np.searchsorted(rows, self.coupled)
        if len(self.coupled) == len(rows):
            position = slice(None)  # copies nothing
        L = lower[position]
        right = multiply_upper(L, alone[position])
        start = multiply_upper(L, own.mean[self.coupled].astype(np.float64))
        mean = alone.copy()
        mean[position] = solve_upper(L, self._solve(L, right, start, own, _MEAN_TOL))
        return mean

    def joint(self, moments: FloatArray, tau: FloatArray, own: SidePosterior) -> JointRows | None:
        """The joint posterior of the rows with an edge; None where there are none, or where it cannot be drawn from.

        Parameters
        ----------
        moments : ndarray of shape (m, (k + 2)(k + 3) / 2)
            Packed sums of the coupled rows, from ``linalg.row_posteriors``.
        tau : ndarray of shape (n,)
            Noise precision of each row.
        own : SidePosterior
        """
        if not len(self.coupled):
            return None
        k = own.rank
        blocks = unpack(moments)[:, : k + 1, : k + 1] * tau[self.coupled, None, None]
        if own.intercept_variance is None:
            blocks[:, k, :] = blocks[:, :, k] = 0.0
        blocks[:, k, k] += 1.0 if own.intercept_variance is None else 1.0 / own.intercept_variance
        weights = self._weights(own)
        if blocks.shape[0] * blocks.shape[1] <= _DENSE_UNKNOWNS:
            return self._exact(blocks, weights, own)
        return self._drawn(blocks, weights, own)

    def _exact(self, blocks: FloatArray, weights: FloatArray, own: SidePosterior) -> JointRows:
        m, d = blocks.shape[:2]
        joint = np.einsum("ij,ab->iajb", self._precision.toarray(), np.diag(weights))
        joint[np.arange(m), :, np.arange(m), :] += blocks
        inverse = np.linalg.inv(joint.reshape(m * d, m * d)).reshape(m, d, m, d)
        marginals = _without_intercept(inverse[np.arange(m), :, np.arange(m), :], own)
        return JointRows(self, marginals, weights, np.einsum("iaja,a->ij", inverse, weights), None)

    def _drawn(self, blocks: FloatArray, weights: FloatArray, own: SidePosterior) -> JointRows | None:
        """Solving with a right-hand side of covariance K gives a draw of covariance K^-1.

        The covariance of a row is its covariance given the others, which is known, plus that of its mean given the
        others, which is what the draws tell.
        """
        color = _coloring(self._precision)
        if color is None:
            return None
        rng = np.random.default_rng(0)
        m, d = blocks.shape[:2]
        rounding = 1e-12 * np.trace(blocks, axis1=1, axis2=2)[:, None, None] * np.eye(d)
        roots = np.linalg.cholesky(blocks + rounding)
        blocks[:, np.arange(d), np.arange(d)] += self.diagonal[self.coupled, None] * weights
        L = np.linalg.cholesky(blocks)
        marginals = np.linalg.inv(L)
        marginals = np.einsum("mba,mbc->mac", marginals, marginals)
        draws = np.empty((max(_FEWEST_DRAWS, min(_N_DRAWS, _DRAWN_NUMBERS // (m * d))), m, d))
        for draw in draws:
            right = np.einsum("mab,mb->ma", roots, rng.standard_normal((m, d)))
            right += color(rng, d) * np.sqrt(weights)
            draw[:] = solve_upper(L, self._solve(L, solve_lower(L, right), np.zeros_like(right), own, _DRAW_TOL))
            pull = solve_upper(L, solve_lower(L, self._edges @ (draw * weights)))
            marginals += np.einsum("ma,mb->mab", pull, pull) / len(draws)
        return JointRows(self, _without_intercept(marginals, own), weights, None, draws)

    def _solve(self, L: FloatArray, right: FloatArray, start: FloatArray, own: SidePosterior, tol: float) -> FloatArray:
        """``(I + L^-1 (A_off x G^-1) L^-T) u = right``."""
        weights = self._weights(own)
        return conjugate_gradients(
            lambda u: u + solve_lower(L, self._edges @ (solve_upper(L, u) * weights)),
            right,
            start,
            tol=tol,
            max_iter=200,
        ).solution

    @staticmethod
    def _weights(own: SidePosterior) -> FloatArray:
        """Prior precision of each factor at unit scale of the graph; intercepts have no graph."""
        return np.append(1.0 / own.prior_variance, 0.0)


@dataclass(frozen=True)
class JointRows:
    """The joint posterior of rows that a graph couples, as far as it is asked for.

    Attributes
    ----------
    coupling : Coupling
    marginals : ndarray of shape (m, d, d)
        Covariance of each coupled row.
    weights : ndarray of shape (d,)
        What brings factors to unit prior variance; zero for the intercept.
    products : ndarray of shape (m, m) or None
        Weighted sums of the covariances of pairs, where there are few rows.
    draws : ndarray of shape (n_draws, m, d) or None
        Draws with mean zero, where there are many.
    """

    coupling: Coupling
    marginals: FloatArray
    weights: FloatArray
    products: FloatArray | None
    draws: FloatArray | None

    def traces(self) -> FloatArray:
        """Weighted sum of the variances of each coupled row, (m,)."""
        return np.asarray(np.einsum("maa,a->m", self.marginals, self.weights))

    def between(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Weighted sum of the covariances of pairs of rows; zero where one of them has no edge."""
        position = np.full(len(self.coupling.diagonal), -1)
        position[self.coupling.coupled] = np.arange(len(self.coupling.coupled))
        i, j = position[rows], position[others]
        known = (i >= 0) & (j >= 0)
        i, j, out = i[known], j[known], np.zeros(len(rows))
        if self.products is not None:
            out[known] = self.products[i, j]
        elif self.draws is not None:
            found = np.mean([np.einsum("ma,ma,a->m", draw[i], draw[j], self.weights) for draw in self.draws], axis=0)
            # A covariance is no larger than the variances allow, whatever the draws say.
            largest = np.sqrt(self.traces()[i] * self.traces()[j])
            out[known] = np.clip(found, -largest, largest)
        return out


def _without_intercept(marginals: FloatArray, own: SidePosterior) -> FloatArray:
    """An intercept that the model does not have is certain."""
    if own.intercept_variance is None:
        marginals[:, -1, :] = marginals[:, :, -1] = 0.0
    return marginals


def _coloring(precision: SparseGraph) -> Callable[[np.random.Generator, int], FloatArray] | None:
    """Makes columns of covariance ``A``, (m, d); None where A is neither diagonally dominant nor can be factored."""
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
    try:
        color = factorize(precision).color
    except TooEntangledError:
        return None
    return lambda rng, d: color(rng.standard_normal((m, d)))

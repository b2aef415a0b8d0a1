r"""What a graph adds to rows that have a small system each.

The posterior precision of all rows jointly is :math:`K = \mathrm{diag}(\tau_i S_i) + A \otimes G^{-1}`, with
:math:`S_i` from the row's entries and G the prior variances of the factors; :mod:`lgmd.linalg.coupled_rows` solves with
it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.factors.posterior import SidePosterior
from lgmd.linalg.cholesky import TooEntangledError
from lgmd.linalg.coupled_rows import DENSE_UNKNOWNS, CoupledRows, joint_precision, solve_coupled
from lgmd.linalg.packed import pack, unpack
from lgmd.linalg.row_systems import multiply_upper, solve_lower, solve_upper

__all__ = ["Coupling", "JointRows"]

# Residuals of the joint means, where every step raises the bound and the next iteration begins where this one ends, and
# of draws, which are too few to be worth more.
_MEAN_TOL, _DRAW_TOL = 1e-6, 1e-3

# Draws for rows that are too many to invert their precision: as many as the numbers allow, but not fewer than a few.
_N_DRAWS, _FEWEST_DRAWS, _DRAWN_NUMBERS = 32, 8, 200_000_000


class Coupling:
    """A graph over rows.

    Parameters
    ----------
    precision : csr_array of shape (n, n)
    reduction : float, default=0.0
        Share of the first residual of the joint means that may be left. Where any may, a few draws are enough, too.

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
        Diagonal of the precision matrix.
    coupled, free : ndarray of int
        Rows with and without an edge.
    precision : csr_array
        Between the coupled rows.
    """

    def __init__(self, precision: SparseGraph, reduction: float = 0.0) -> None:
        self._reduction = reduction
        precision = scipy.sparse.csr_array(precision)
        self.diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
        off_diagonal = scipy.sparse.csr_array(precision - scipy.sparse.diags_array(self.diagonal))
        off_diagonal.eliminate_zeros()
        has_edge = np.diff(off_diagonal.indptr) > 0
        self.coupled, self.free = np.flatnonzero(has_edge), np.flatnonzero(~has_edge)
        self._edges = scipy.sparse.csr_array(off_diagonal[self.coupled][:, self.coupled])
        self.precision = scipy.sparse.csr_array(precision[self.coupled][:, self.coupled])

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
        turned = solve_coupled(L, self._edges, self._weights(own), right, start, _MEAN_TOL, self._reduction)
        mean[position] = solve_upper(L, turned)
        return mean

    def joint(
        self, moments: FloatArray, tau: FloatArray, own: SidePosterior, *, for_draws: bool = False
    ) -> JointRows | None:
        """The joint posterior of the rows with an edge; None where there are none, or where it cannot be drawn from.

        Parameters
        ----------
        moments : ndarray of shape (m, (k + 2)(k + 3) / 2)
            Packed sums of the coupled rows, from ``linalg.row_posteriors``.
        tau : ndarray of shape (n,)
            Noise precision of each row.
        own : SidePosterior
        for_draws : bool, default=False
            Whether to keep what draws need.
        """
        if not len(self.coupled):
            return None
        k = own.rank
        blocks = unpack(moments)[:, : k + 1, : k + 1] * tau[self.coupled, None, None]
        if own.intercept_variance is None:
            blocks[:, k, :] = blocks[:, :, k] = 0.0
        blocks[:, k, k] += 1.0 if own.intercept_variance is None else 1.0 / own.intercept_variance
        weights, kept = self._weights(own), pack(blocks) if for_draws else None
        # Above so many unknowns draws are compared.
        if blocks.shape[0] * blocks.shape[1] <= DENSE_UNKNOWNS:
            return self._exact(blocks, weights, own, kept)
        return self._drawn(blocks, weights, own, kept)

    def _exact(self, blocks: FloatArray, weights: FloatArray, own: SidePosterior, kept: FloatArray | None) -> JointRows:
        m, d = blocks.shape[:2]
        inverse = np.linalg.inv(joint_precision(self.precision, blocks, weights)).reshape(m, d, m, d)
        marginals = _without_intercept(inverse[np.arange(m), :, np.arange(m), :], own)
        return JointRows(self, kept, marginals, weights, np.einsum("iaja,a->ij", inverse, weights), None)

    def _drawn(
        self, blocks: FloatArray, weights: FloatArray, own: SidePosterior, kept: FloatArray | None
    ) -> JointRows | None:
        """The covariance of a row is its covariance given the others, which is known, plus that of its mean given the
        others, which is what the draws tell.
        """
        try:
            system = CoupledRows(self.precision, blocks, weights)
        except TooEntangledError:
            return None
        rng = np.random.default_rng(0)
        m, d = blocks.shape[:2]
        L = system.lower
        marginals = np.linalg.inv(L)
        marginals = np.einsum("mba,mbc->mac", marginals, marginals)
        most = _N_DRAWS if self._reduction == 0 else _FEWEST_DRAWS
        draws = np.empty((max(_FEWEST_DRAWS, min(most, _DRAWN_NUMBERS // (m * d))), m, d))
        for draw in draws:
            draw[:] = system.draw(rng, _DRAW_TOL)
            pull = solve_upper(L, solve_lower(L, self._edges @ (draw * weights)))
            marginals += np.einsum("ma,mb->mab", pull, pull) / len(draws)
        return JointRows(self, kept, _without_intercept(marginals, own), weights, None, draws)

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
    blocks : ndarray of shape (m, d (d + 1) / 2) or None
        What each coupled row knows by itself, packed: its part of the joint precision without the graph. None where
        nobody draws.
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
    blocks: FloatArray | None
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

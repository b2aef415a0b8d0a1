r"""The likelihood of :mod:`lgmd.linalg.laplacian_likelihood` on graphs too large for a dense inverse.

The problem is D-optimal design with one design point an edge, so the multiplicative rule
:math:`w_e \leftarrow w_e R_e / u_e` lowers the objective at every step. The resistances come from samples
:math:`x \sim N(0, T^{-1})`, each the solution of one sparse system, with most of the sampling noise taken out: given
the rest of the graph the two ends of an edge have a known covariance, and only their mean, a small part, is sampled.
Memory is ``O(edges + n samples)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg.conjugate_gradients import conjugate_gradients
from lgmd.linalg.threads import balanced_blocks, even_blocks, map_blocks

__all__ = ["SampledLaplacianSolution", "fit_laplacian_by_sampling"]

# Residual of the sparse systems relative to their right-hand side: far below the sampling noise.
_SOLVE_TOL = 5e-3
_MOST_PRODUCTS = 500

# Steps in which the rule is followed whole, and steps after that average the noise out.
_BURN_IN, _AVERAGED = 20, 15

# With a concave penalty: plain steps first, so that the edges have found their order, and more steps in all.
_BEFORE_REWEIGHTING, _REWEIGHTINGS = 12, 30

# A share moves by at least this much times its relative slope. The bare rule moves it by itself, so that edges that are
# to vanish would linger. The curvature along all edges together is below ten, so this is stable.
_SMALLEST_STEP = 0.15

# An edge that has fallen below this share of the mean edge's part in the likelihood is gone.
_GONE = 0.02


class SampledLaplacianSolution(NamedTuple):
    """An approximate minimiser."""

    weights: FloatArray
    ridge: float


def fit_laplacian_by_sampling(
    n: int,
    rows: IntArray,
    columns: IntArray,
    costs: FloatArray,
    ridge_cost: float,
    *,
    start: tuple[FloatArray, float] | None = None,
    reweigh: Callable[[FloatArray], FloatArray] | None = None,
    n_samples: int = 32,
    seed: int = 0,
) -> SampledLaplacianSolution:
    """Weights and ridge that nearly minimise the penalised negative log-likelihood; see ``fit_laplacian``.

    Parameters
    ----------
    n : int
        Number of nodes.
    rows, columns : ndarray of int, shape (m,)
        Pairs that may be joined, each once.
    costs : ndarray of shape (m,)
        Cost u of each pair, positive.
    ridge_cost : float
        Cost d of the ridge, positive.
    start : tuple of ndarray of shape (m,) and float, optional
        Weights and ridge to start from, at any common scale.
    reweigh : callable, optional
        Costs given the weights, for a concave penalty: they take the place of ``costs`` after the first steps.
    n_samples : int, default=32
        Samples a step; there are 35 steps, or 65 where costs change.
    seed : int, default=0
        Of the samples.
    """
    scale = ridge_cost / n
    costs = np.asarray(costs, dtype=np.float64) / scale
    graph = _Pattern(n, rows, columns)
    rng = np.random.default_rng(seed)
    even = n / (len(costs) + 1.0)
    if start is not None and np.any(start[0] > 0):
        # An edge without weight would not come back by itself.
        weights = np.maximum(np.asarray(start[0], dtype=np.float64) * scale, 0.01 * even / costs)
        ridge = start[1] * scale
    else:
        weights, ridge = 0.9 * even / costs, 0.1
    burn_in = _BURN_IN if reweigh is None else _BURN_IN + _REWEIGHTINGS
    for step in range(burn_in + _AVERAGED):
        if reweigh is not None and step >= _BEFORE_REWEIGHTING:
            costs = reweigh(weights / scale) / scale
        best = n / (float(costs @ weights) + n * ridge)
        weights, ridge = weights * best, ridge * best
        resistances, trace = graph.resistances(weights, ridge, n_samples, rng)
        power = 1.0 / max(1, step - burn_in + 2)
        shares = costs * weights
        shares += power * np.maximum(shares, _SMALLEST_STEP) * (resistances / costs - 1.0)
        weights = np.maximum(shares, 0.0) / costs
        ridge = ridge * (trace / n) ** power
    weights[costs * weights < _GONE * even] = 0.0
    best = n / (float(costs @ weights) + n * ridge)
    return SampledLaplacianSolution(best * weights / scale, best * ridge / scale)


class _Pattern:
    """Where the edges are, for products with ``L(w) + c I`` for many w."""

    def __init__(self, n: int, rows: IntArray, columns: IntArray) -> None:
        m = len(rows)
        edges = np.arange(m)
        both = scipy.sparse.csr_array(
            (np.concatenate([edges, edges]), (np.concatenate([rows, columns]), np.concatenate([columns, rows]))),
            shape=(n, n),
        )
        self.n = n
        self.rows, self.columns = rows, columns
        self.indptr, self.indices, self.edges = both.indptr, both.indices, both.data
        self.blocks = balanced_blocks(self.indptr)
        self.n_components, self.labels = connected_components(both, directed=False)

    def resistances(
        self, weights: FloatArray, ridge: float, n_samples: int, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """Effective resistances of the edges, and the trace of the inverse, from samples."""
        diagonal = np.bincount(self.rows, weights, self.n) + np.bincount(self.columns, weights, self.n) + ridge
        right = np.sqrt(ridge) * rng.standard_normal((self.n, n_samples), dtype=np.float32)
        self._add_edge_noise(weights, right, rng)
        samples = self._solve(weights.astype(np.float32), diagonal, right)
        out = np.empty(len(weights))
        map_blocks(
            lambda start, stop: _conditional_resistances(
                start, stop, self.rows, self.columns, weights, diagonal, samples, right, out
            ),
            even_blocks(len(weights)),
        )
        # The constants on each component have eigenvalue c exactly, and would carry most of the noise.
        counts = np.bincount(self.labels, minlength=self.n_components)
        sums = np.zeros((self.n_components, n_samples))
        np.add.at(sums, self.labels, samples)
        within = samples - (sums / counts[:, None])[self.labels]
        return out, self.n_components / ridge + float(np.einsum("ij,ij->", within, within)) / n_samples

    def _add_edge_noise(self, weights: FloatArray, right: FloatArray, rng: np.random.Generator) -> None:
        """Add ``B W^(1/2) g``, whose covariance is the Laplacian."""
        roots = np.sqrt(weights).astype(np.float32)
        signs = np.where(self.indices > np.repeat(np.arange(self.n), np.diff(self.indptr)), 1.0, -1.0)
        incidence = scipy.sparse.csr_array(
            ((signs * roots[self.edges]).astype(np.float32), self.edges, self.indptr), shape=(self.n, len(weights))
        )
        for sample in range(right.shape[1]):
            right[:, sample] += incidence @ rng.standard_normal(len(weights), dtype=np.float32)

    def _solve(self, weights: FloatArray, diagonal: FloatArray, right: FloatArray) -> FloatArray:
        scale = (1.0 / np.sqrt(diagonal)).astype(np.float32)
        room = np.empty_like(right)

        def apply(vectors: FloatArray) -> FloatArray:
            map_blocks(
                lambda start, stop: _scaled_product(
                    start, stop, self.indptr, self.indices, self.edges, weights, scale, vectors, room
                ),
                self.blocks,
                work=float(len(self.indices) * right.shape[1]),
            )
            return room

        result = conjugate_gradients(
            apply,
            scale[:, None] * right,
            np.zeros_like(right),
            tol=_SOLVE_TOL,
            max_iter=_MOST_PRODUCTS,
            separate_columns=True,
        )
        return np.asarray(scale[:, None] * result.solution)


@numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, cache=True)
def _scaled_product(start, stop, indptr, indices, edges, weights, scale, vectors, out):  # type: ignore[no-untyped-def]
    """The matrix scaled to unit diagonal, times vectors."""
    q = vectors.shape[1]
    for i in range(start, stop):
        row = out[i]
        for k in range(q):
            row[k] = vectors[i, k]
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            weight = weights[edges[entry]] * scale[i] * scale[j]
            other = vectors[j]
            for k in range(q):
                row[k] -= weight * other[k]


@numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, cache=True)
def _conditional_resistances(start, stop, rows, columns, weights, diagonal, samples, right, out):  # type: ignore[no-untyped-def]
    """Variance of ``x_i - x_j``: given the rest, exactly; of its mean given the rest, from the samples."""
    q = samples.shape[1]
    for e in range(start, stop):
        i, j, w = rows[e], columns[e], weights[e]
        determinant = diagonal[i] * diagonal[j] - w * w
        given = (diagonal[i] + diagonal[j] - 2.0 * w) / determinant
        # Rows of the inverse of [[T_ii, -w], [-w, T_jj]], one minus the other.
        from_i, from_j = (diagonal[j] - w) / determinant, (w - diagonal[i]) / determinant
        total = 0.0
        for k in range(q):
            mean = samples[i, k] - samples[j, k] - from_i * right[i, k] - from_j * right[j, k]
            total += mean * mean
        out[e] = given + total / q

r"""How strong a graph is, as a prior of the rows of a factor.

The precision is :math:`a I + b L` with L the Laplacian of the graph, signed where edges have signs: an edge of weight w
and sign s adds :math:`w (x_i - s x_j)^2`, so that L is positive semi-definite whatever the signs. Only the ratio
:math:`r = b / a` matters, since the scale belongs to the factor's variances. For a factor whose second moments S have
trace n its log-likelihood, maximal over the scale, is, a column,

.. math:: \tfrac12 \ln|I + r L| - \tfrac n2 \ln(1 + r q), \qquad q = \mathrm{tr}(S L) / n .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.graphs.base import FactorMoments, GraphEstimate
from lgmd.linalg.logdet import Spectrum, spectrum

__all__ = ["WeightedGraph", "best_ratio"]

# Ratios beyond these are as good as none, or as rows that are one.
_WEAKEST, _STRONGEST = 1e-4, 1e4


@dataclass(frozen=True)
class WeightedGraph:
    """Edges with weights and signs, whose common strength is to be found.

    Attributes
    ----------
    n : int
        Number of nodes.
    rows, columns : ndarray of int, shape (m,)
        The edges, each once.
    weights : ndarray of shape (m,)
        Positive for rows that are alike, negative for rows that are opposite.
    """

    n: int
    rows: IntArray
    columns: IntArray
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of_adjacency(cls, adjacency: SparseGraph) -> WeightedGraph:
        """The edges of a symmetric matrix; its diagonal is ignored."""
        upper = scipy.sparse.triu(adjacency, k=1).tocoo()
        rows, columns = upper.coords
        return cls(adjacency.shape[0], rows.astype(np.int64), columns.astype(np.int64), upper.data)

    @property
    def degrees(self) -> FloatArray:
        """Sum of the absolute weights at each node, (n,)."""
        size = np.abs(self.weights)
        return np.asarray(
            np.bincount(self.rows, size, self.n) + np.bincount(self.columns, size, self.n), dtype=np.float64
        )

    def laplacian(self) -> SparseGraph:
        """The signed Laplacian, (n, n)."""
        nodes = np.arange(self.n)
        return scipy.sparse.csr_array(
            (
                np.concatenate([-self.weights, -self.weights, self.degrees]),
                (np.concatenate([self.rows, self.columns, nodes]), np.concatenate([self.columns, self.rows, nodes])),
            ),
            shape=(self.n, self.n),
        )

    def roughness(self, moments: FactorMoments) -> float:
        """``tr(SL) / tr(S)`` for the second moments of a factor."""
        squares = moments.squares()
        rough = self.degrees @ squares - 2 * (self.weights @ moments.pair_moments(self.rows, self.columns))
        return float(rough / squares.sum())

    def spectrum(self, rough: bool = False) -> Spectrum:
        """Eigenvalues of the Laplacian, or a quadrature that stands for them, as for a rough look at any graph."""
        if rough:
            return spectrum(self.laplacian(), n_probes=6, n_steps=20, decomposed_up_to=100)
        return spectrum(self.laplacian())

    def precision(self, ratio: float, values: Spectrum) -> GraphEstimate:
        """``I + r L`` at unit scale."""
        scale = 1.0 + ratio * self.degrees.mean()
        laplacian = self.laplacian()
        matrix = scipy.sparse.csr_array((scipy.sparse.eye_array(self.n) + ratio * laplacian) / scale)
        logdet = values.sum(np.log1p(ratio * values.nodes)) - self.n * float(np.log(scale))
        return GraphEstimate(matrix, logdet, strength=ratio)


def best_ratio(n: int, values: Spectrum, roughness: float) -> tuple[float, float]:
    """The ratio r of largest likelihood, zero where no graph is better, and its gain over that in nats a column."""

    def loss(log_ratio: float) -> float:
        ratio = np.exp(log_ratio)
        return float(n * np.log1p(ratio * roughness) - values.sum(np.log1p(ratio * values.nodes))) / 2

    bounds = (np.log(_WEAKEST), np.log(_STRONGEST))
    found = scipy.optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    # A strength at the lower end is none.
    if found.fun >= 0 or found.x < bounds[0] + 0.1:
        return 0.0, 0.0
    return float(np.exp(found.x)), -float(found.fun)

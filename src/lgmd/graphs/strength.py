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
from lgmd.linalg.cholesky import envelope, factorize
from lgmd.linalg.conjugate_gradients import conjugate_gradients
from lgmd.linalg.logdet import Spectrum, lanczos_log_determinant, spectrum
from lgmd.linalg.marginals import marginal_variances

__all__ = ["WeightedGraph", "best_ratio", "likeliest_ratio", "log_bounds", "scaled"]

# Ratios beyond these, for a graph of mean degree one, are as good as none, or as rows that are one.
_WEAKEST, _STRONGEST = 1e-4, 1e4

# Matrices up to this size, or with so few entries a row in their factor, are factored.
_FACTORED, _SPARSE_FILL = 1500, 100


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
        """``tr(SL) / tr(S)`` for the second moments of a factor; that of noise where the factor is zero."""
        squares = moments.squares()
        if not squares.any():
            return float(self.degrees.mean())
        rough = self.degrees @ squares - 2 * (self.weights @ moments.pair_moments(self.rows, self.columns))
        return float(rough / squares.sum())

    def roughness_of(self, ratio: float) -> float:
        """The roughness of a factor to which no other ratio suits better than this one."""
        values = self.spectrum()
        share = values.sum(values.nodes / (1 + ratio * values.nodes)) / self.n
        return float(share / (1 - ratio * share))

    def spectrum(self, rough: bool = False) -> Spectrum:
        """Eigenvalues of the Laplacian, or a quadrature that stands for them, as for a rough look at any graph."""
        if rough:
            return spectrum(self.laplacian(), n_probes=6, n_steps=20, decomposed_up_to=100)
        return spectrum(self.laplacian())

    def precision(self, ratio: float, values: Spectrum) -> GraphEstimate:
        """``I + r L``, scaled so that all rows have unit variance.

        Rows with few edges would vary more than others otherwise, and those without any most of all.
        """
        matrix = scipy.sparse.csr_array(scipy.sparse.eye_array(self.n) + ratio * self.laplacian())
        variances = marginal_variances(matrix)
        logdet = values.sum(np.log1p(ratio * values.nodes)) + float(np.log(variances).sum())
        return GraphEstimate(scaled(matrix, np.sqrt(variances)), logdet, strength=ratio)


def scaled(matrix: SparseGraph, factors: FloatArray) -> SparseGraph:
    """Rows and columns times factors."""
    by = scipy.sparse.diags_array(factors)
    return scipy.sparse.csr_array(by @ matrix @ by)


def log_bounds(mean_degree: float) -> tuple[float, float]:
    """Between which the logarithm of a ratio is looked for."""
    return float(np.log(_WEAKEST / mean_degree)), float(np.log(_STRONGEST / mean_degree))


def best_ratio(n: int, values: Spectrum, roughness: float) -> tuple[float, float]:
    """The ratio r of largest likelihood, zero where no graph is better, and its gain over that in nats a column.

    ``n`` is the number of nodes, less one for a factor taken about its mean row and a graph without signs.
    """

    def loss(log_ratio: float) -> float:
        ratio = np.exp(log_ratio)
        return float(n * np.log1p(ratio * roughness) - values.sum(np.log1p(ratio * values.nodes))) / 2

    mean_degree = values.sum(values.nodes) / n
    if not mean_degree > 0:
        return 0.0, 0.0
    bounds = log_bounds(mean_degree)
    found = scipy.optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    # A strength at the lower end is none.
    if found.fun >= 0 or found.x < bounds[0] + 0.1:
        return 0.0, 0.0
    return float(np.exp(found.x)), -float(found.fun)


def likeliest_ratio(graph: WeightedGraph, values: Spectrum, moments: FactorMoments) -> tuple[float, float]:
    r"""The same for a factor that is known with error, from factors that have not seen the graph.

    With :math:`m_i` and :math:`c_i` the posterior mean and mean variance of row i at unit prior variance, its entries
    alone say :math:`x_i \approx m_i / (1 - c_i)` with precision :math:`\lambda_i = (1 - c_i) / c_i`. The likelihood of
    the ratio is that of these, with the factor integrated out,

    .. math::
        \tfrac k2 \ln|P| - \tfrac k2 \ln|P + \Lambda| + \tfrac12 \mathrm{tr}\, H^T (P + \Lambda)^{-1} H, \qquad
        P = (I + r L) / s, \quad h_i = m_i / c_i,

    with s such that rows have unit variance on average, and with a mean row of unknown size integrated out. Second
    moments would hide what uncertain rows have to say. Large graphs that cannot be factored have their
    log-determinants from Lanczos quadrature, with the same probes for every ratio.
    """
    n, k = moments.mean.shape
    variance = np.zeros(n) if moments.variance is None else moments.variance / k
    variance = np.clip(variance, 1e-6, 1.0)
    precision = (1.0 - variance) / variance
    information = moments.mean.astype(np.float64) / variance[:, None]
    if not precision.any():
        return 0.0, 0.0
    laplacian, identity = graph.laplacian(), scipy.sparse.eye_array(n, format="csr")

    def loss(ratio: float) -> float:
        logs = np.log1p(ratio * values.nodes)
        scale = n / values.sum(np.exp(-logs))
        joint = scipy.sparse.csr_array((identity + ratio * laplacian) / scale + scipy.sparse.diags_array(precision))
        logdet, solution = _solved(joint, np.column_stack([information, precision]))
        fit = np.sum(information * solution[:, :k])
        # What all rows have in common makes no two of them neighbours: the mean row is integrated out.
        weight = precision.sum() - precision @ solution[:, k]
        common = information.sum(axis=0) - precision @ solution[:, :k]
        fit = (fit + np.sum(common**2) / weight) / k
        return float(logdet + np.log(weight) - values.sum(logs) + n * np.log(scale) - fit) / 2

    none, bounds = loss(0.0), log_bounds(float(graph.degrees.mean()))
    found = scipy.optimize.minimize_scalar(
        lambda log_ratio: loss(float(np.exp(log_ratio))) - none, bounds=bounds, method="bounded", options={"xatol": 0.2}
    )
    return (float(np.exp(found.x)), -float(found.fun)) if found.fun < 0 else (0.0, 0.0)


def _solved(matrix: SparseGraph, right: FloatArray) -> tuple[float, FloatArray]:
    """Log-determinant, and the solution of a linear system."""
    n = matrix.shape[0]
    if n <= _FACTORED or envelope(matrix)[1] <= _SPARSE_FILL * n:
        factor = factorize(matrix)
        return factor.logdet, factor.solve(right)
    scale = 1.0 / np.sqrt(matrix.diagonal())[:, None]
    found = conjugate_gradients(
        lambda u: scale * (matrix @ (scale * u)), scale * right, np.zeros_like(right), tol=1e-4, max_iter=500
    )
    return lanczos_log_determinant(matrix, n_probes=8, n_steps=25).value, scale * found.solution

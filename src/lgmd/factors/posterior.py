"""The Gaussian posterior of one side: its factors and its intercepts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.factors.covariance import Covariance, DiagonalCovariances, RowCovariances
from lgmd.factors.prior_laws import LAWS, PriorLaw
from lgmd.linalg.packed import doubled, pack_products, packed_diagonal, packed_size

__all__ = ["SidePosterior", "column_features", "prediction_features", "row_features"]

# Variances that go to zero stay numbers.
_SMALLEST = 1e-30

# Rows whose covariances are looked at at a time.
_BLOCK = 4096


@dataclass(frozen=True)
class SidePosterior:
    """What is known of the rows' factors and intercepts.

    Attributes
    ----------
    mean : ndarray of shape (n, k + 1)
        Factors, then the intercept, which is zero for a model without one.
    covariance : Covariance
    logdet : float
        Log-determinant of the joint covariance, without intercepts that the model does not have.
    prior_variance : ndarray of shape (k,)
        Of each factor.
    intercept_variance : float or None
        Prior variance of the intercepts; None for a model without them.
    """

    mean: FloatArray
    covariance: Covariance
    logdet: float
    prior_variance: FloatArray
    intercept_variance: float | None

    @property
    def rank(self) -> int:
        """Number of factors, k."""
        return int(self.mean.shape[1]) - 1

    @property
    def factors(self) -> FloatArray:
        """Means of the factors, (n, k)."""
        return self.mean[:, :-1]

    @property
    def intercepts(self) -> FloatArray:
        """Means of the intercepts, (n,)."""
        return self.mean[:, -1]

    def graph_moments(self, precision: SparseGraph) -> FloatArray:
        """``E[X'AX]``, (k, k)."""
        X = self.factors.astype(np.float64, copy=False)
        return np.asarray(X.T @ _product(precision, X) + self.covariance.graph_total(precision)[:-1, :-1])

    def moments(self) -> FloatArray:
        """``E[Z'Z]`` of factors and intercepts, (k + 1, k + 1)."""
        Z = self.mean.astype(np.float64, copy=False)
        return np.asarray(Z.T @ Z + self.covariance.total(np.ones(len(Z))))

    def with_priors(self, precision: SparseGraph, law: PriorLaw = LAWS["columns"]) -> SidePosterior:
        """Prior variances at their best for this posterior, under a law that may tie them to each other."""
        n = len(self.mean)
        variances = law.variances(np.maximum(np.diag(self.graph_moments(precision)) / n, _SMALLEST))
        intercept = self.intercept_variance
        if intercept is not None:
            intercept = max(self._intercept_squares() / n, _SMALLEST)
        return replace(self, prior_variance=variances, intercept_variance=intercept)

    def mean_shares(self, precision: SparseGraph) -> FloatArray:
        """How much of each column's second moment its mean holds, (k,): zero where nothing was learned."""
        X = self.factors.astype(np.float64, copy=False)
        return np.asarray(np.einsum("il,il->l", X, _product(precision, X)) / (len(X) * self.prior_variance))

    def transformed(self, change: FloatArray) -> SidePosterior:
        """Rows times ``change`` (k + 1, k + 1)."""
        mean = self.mean @ change.astype(self.mean.dtype)
        logdet = self.logdet + 2 * len(mean) * float(np.linalg.slogdet(change)[1])
        return replace(self, mean=mean, covariance=self.covariance.transformed(change), logdet=logdet)

    def applied(self) -> SidePosterior:
        """The same with pending changes of basis carried out."""
        if isinstance(self.covariance, RowCovariances):
            return replace(self, covariance=self.covariance.applied())
        return self

    def standard_deviations(self) -> FloatArray:
        """Of each factor and intercept, (n, k + 1)."""
        diagonal = packed_diagonal(self.rank + 1)
        out = np.empty(self.mean.shape)
        for start in range(0, len(out), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(out)))
            out[rows] = np.sqrt(self.covariance.packed_rows(rows)[:, diagonal])
        return out

    def independent(self) -> SidePosterior:
        """The same with all numbers taken as independent; the log-determinant is then unknown until the next update."""
        diagonal = packed_diagonal(self.rank + 1)
        variances = self.covariance.packed_rows(np.arange(len(self.mean)))[:, diagonal]
        return replace(self, covariance=DiagonalCovariances(np.ascontiguousarray(variances)), logdet=float("nan"))

    def kept(self, factors: IntArray) -> SidePosterior:
        """Without the other factors; the log-determinant is then unknown until the next update."""
        columns = np.append(factors, self.rank)
        return replace(
            self,
            mean=np.ascontiguousarray(self.mean[:, columns]),
            covariance=self.covariance.kept(columns),
            logdet=float("nan"),
            prior_variance=self.prior_variance[factors],
        )

    def _intercept_squares(self) -> float:
        """Expected sum of squares of the intercepts."""
        spread = float(self.covariance.total(np.ones(len(self.mean)))[-1, -1])
        return float(np.sum(np.square(self.intercepts, dtype=np.float64))) + spread

    def divergence(self, precision: SparseGraph, graph_logdet: float) -> float:
        """Kullback-Leibler divergence from the prior, at least zero."""
        n, k = self.mean.shape[0], self.rank
        total = float(np.sum(np.diag(self.graph_moments(precision)) / self.prior_variance))
        total += n * float(np.log(self.prior_variance).sum()) - k * graph_logdet - n * k - self.logdet
        if self.intercept_variance is not None:
            total += self._intercept_squares() / self.intercept_variance
            total += n * float(np.log(self.intercept_variance)) - n
        return 0.5 * float(total)


def _product(precision: SparseGraph, X: FloatArray) -> FloatArray:
    """``A X``, which takes as long as a pass over the rows where there are no edges."""
    if precision.nnz == len(X):
        return np.asarray(precision.diagonal()[:, None] * X)
    return np.asarray(precision @ X)


def prediction_features(
    samples: SidePosterior,
    features: SidePosterior,
    rows: IntArray | None = None,
    columns: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Vectors of rows and of columns whose products are the variances of the predicted entries.

    With :math:`C_i` the covariance of :math:`(x_i, a_i)` and :math:`D_j` that of :math:`(w_j, b_j)` the variance of
    :math:`a_i + b_j + x_i^T w_j` is :math:`\langle C_i, (w_j, 1)(w_j, 1)^T + D_j^{ww} \rangle + \langle D_j,
    (x_i, 1)(x_i, 1)^T \rangle`.

    Returns
    -------
    (ndarray of shape (n, m), ndarray of shape (p, m))
    """
    return row_features(samples, features, rows), column_features(samples, features, columns)


def row_features(samples: SidePosterior, features: SidePosterior, rows: IntArray | None = None) -> FloatArray:
    """The rows' part of :func:`prediction_features`."""
    spread, seen, _ = _features(samples, rows, _all_independent(samples, features))
    return np.hstack([spread, seen])


def column_features(samples: SidePosterior, features: SidePosterior, columns: IntArray | None = None) -> FloatArray:
    """The columns' part of :func:`prediction_features`."""
    spread, _, moments = _features(features, columns, _all_independent(samples, features))
    return np.hstack([moments, spread])


def _all_independent(samples: SidePosterior, features: SidePosterior) -> bool:
    return all(isinstance(side.covariance, DiagonalCovariances) for side in (samples, features))


def _features(
    side: SidePosterior, rows: IntArray | None, independent: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Covariances, products of ``(factors, 1)``, and the latter with the covariances of the factors added."""
    rows = np.arange(len(side.mean)) if rows is None else rows
    seen = side.mean[rows].copy()
    seen[:, -1] = 1.0
    if independent and isinstance(side.covariance, DiagonalCovariances):
        spread = side.covariance.variances[rows]
        outer = np.square(seen)
        moments = outer.copy()
        moments[:, :-1] += spread[:, :-1]
        return spread, outer, moments
    packed = np.asarray(side.covariance.packed_rows(rows), dtype=seen.dtype)
    outer = pack_products(seen)
    moments = outer.copy()
    moments[:, : packed_size(side.rank)] += packed[:, : packed_size(side.rank)]
    return doubled(packed), outer, moments

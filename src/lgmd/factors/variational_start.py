"""Where variational inference starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lgmd._typing import FloatArray, RandomState, SparseGraph
from lgmd.factors.covariance import RowCovariances
from lgmd.factors.initial import initial_factors, leading_components
from lgmd.factors.intercepts import Intercepts, InterceptTerms
from lgmd.factors.posterior import SidePosterior
from lgmd.linalg.analytic_factorization import AnalyticFactorization, analytic_factorization
from lgmd.linalg.packed import pack
from lgmd.linalg.shared_factorization import shared_factorization
from lgmd.observed import Observed

__all__ = ["VariationalStart", "analytic_start", "shared_analytic_start", "singular_start"]


class VariationalStart(NamedTuple):
    """Posteriors and noise before the first iteration, for a table at unit scale."""

    samples: SidePosterior
    features: SidePosterior
    noise_variance: float

    def under(self, sample_graph: SparseGraph, feature_graph: SparseGraph) -> VariationalStart:
        """With the prior variances that these factors have under graphs, whatever the scale of those."""
        samples, features = (
            replace(side, prior_variance=side.with_priors(graph).prior_variance)
            for side, graph in ((self.samples, sample_graph), (self.features, feature_graph))
        )
        return self._replace(samples=samples, features=features)


def analytic_start(
    data: Observed, intercepts: Intercepts, terms: InterceptTerms, n_components: int, random_state: RandomState
) -> VariationalStart:
    """A complete table without graphs: the solution itself, but for what intercepts and factors owe each other."""

    def factorization(values: FloatArray, shape: tuple[int, int], total: float) -> AnalyticFactorization:
        rank = min(n_components, *shape)
        return analytic_factorization(values, shape, total_squares=total, max_rank=rank, boldest=True)

    return _from_factorization(data, intercepts, terms, n_components, random_state, factorization)


def shared_analytic_start(
    data: Observed,
    intercepts: Intercepts,
    terms: InterceptTerms,
    n_components: int,
    noise_variance: float,
    floor: float,
    random_state: RandomState,
) -> VariationalStart:
    """The same where all factors of a side share a prior variance, from a first variance of the noise."""

    def factorization(values: FloatArray, shape: tuple[int, int], total: float) -> AnalyticFactorization:
        kept = values[: min(n_components, *shape)]
        kept = kept[kept > np.finfo(data.dtype).eps * np.sqrt(total)]
        if not len(kept):
            return analytic_factorization(kept, shape, total_squares=total, noise_variance=noise_variance)
        return shared_factorization(kept, shape, total, noise_variance=noise_variance, floor=floor)

    return _from_factorization(data, intercepts, terms, n_components, random_state, factorization)


def _from_factorization(
    data: Observed,
    intercepts: Intercepts,
    terms: InterceptTerms,
    n_components: int,
    random_state: RandomState,
    factorization: Callable[[FloatArray, tuple[int, int], float], AnalyticFactorization],
) -> VariationalStart:
    n, p = data.shape
    U, values, Vt = leading_components(data, intercepts, n_components, random_state)
    none = (np.empty((n, 0), data.dtype), np.empty((p, 0), data.dtype))
    total, _ = data.residual_sums(intercepts.rows, intercepts.column_offsets, *none)
    # Means take a dimension each.
    shape = (max(n - int(terms.columns), 1), max(p - int(terms.rows), 1))
    found = factorization(values[: min(shape)], shape, total)
    if found.rank == 0:
        # One column has to stay: it starts so faint that it may only grow where it is needed.
        faint = np.sqrt(0.01 * values[:1])
        return VariationalStart(
            _side(U[:, :1] * faint, np.zeros(1), faint**2 / n, intercepts.rows, terms.rows),
            _side(Vt[:1].T * faint, np.zeros(1), faint**2 / p, intercepts.columns, terms.columns),
            max(found.noise_variance, 1e-6),
        )
    k = found.rank
    samples = U[:, :k] * found.sample_scales
    features = Vt[:k].T * found.feature_scales
    return VariationalStart(
        _side(samples, found.sample_variances, found.sample_prior_variances, intercepts.rows, terms.rows),
        _side(features, found.feature_variances, found.feature_prior_variances, intercepts.columns, terms.columns),
        max(found.noise_variance, 1e-12),
    )


def singular_start(
    data: Observed,
    intercepts: Intercepts,
    terms: InterceptTerms,
    n_components: int,
    noise_variance: float,
    random_state: RandomState,
    weights: FloatArray | None = None,
) -> VariationalStart:
    """Singular vectors of the table with its gaps filled by the intercepts, taken as certain."""
    X, W = initial_factors(data, intercepts, n_components, random_state, weights)
    certain = np.zeros(X.shape[1])
    return VariationalStart(
        _side(X, certain, np.mean(np.square(X, dtype=np.float64), axis=0), intercepts.rows, terms.rows),
        _side(W, certain, np.mean(np.square(W, dtype=np.float64), axis=0), intercepts.columns, terms.columns),
        noise_variance,
    )


def _side(
    factors: FloatArray, variances: FloatArray, prior_variance: FloatArray, intercepts: FloatArray, has_intercepts: bool
) -> SidePosterior:
    dtype, n = intercepts.dtype, len(factors)
    packed = pack(np.diag(np.append(variances, 0.0))[None]).astype(dtype)
    spread = float(np.mean(np.square(intercepts, dtype=np.float64)))
    return SidePosterior(
        np.column_stack([factors, intercepts]).astype(dtype),
        RowCovariances(packed, n),
        float("nan"),
        np.maximum(prior_variance, 1e-6),
        spread + 0.01 if has_intercepts else None,
    )

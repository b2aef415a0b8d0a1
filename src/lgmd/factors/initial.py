"""Where the alternation starts: means, then a truncated singular value decomposition of what they leave."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd, svd_flip

from lgmd._typing import FloatArray, RandomState
from lgmd.factors.conjugate_gradient import ConjugateGradientUpdate
from lgmd.factors.half import Half, PreparedUpdate
from lgmd.factors.intercepts import Intercepts, InterceptTerms
from lgmd.observed import Observed

__all__ = ["initial_factors", "initial_intercepts", "leading_components"]

# Tables with fewer entries, gaps included, are decomposed exactly.
_EXACT_ENTRIES = 1_000_000


def initial_intercepts(
    data: Observed, terms: InterceptTerms, ridge: float, *, max_sweeps: int = 30
) -> tuple[Intercepts, float]:
    """Shrunken means of a table without factors, and the mean square that they leave.

    The same half-step as everywhere, with k = 0 factors; rows and columns in turn until the mean square stands.
    """
    n, p = data.shape
    intercepts = Intercepts.zero(data.shape, data.dtype)
    none = (np.empty((n, 0), data.dtype), np.empty((p, 0), data.dtype))
    squares, total = data.residual_sums(intercepts.rows, intercepts.column_offsets, *none)
    if not terms.overall:
        return intercepts, squares / data.n_observed
    intercepts = Intercepts(total / data.n_observed, intercepts.rows, intercepts.columns)
    by_rows = _means_update(data, ridge) if terms.rows else None
    by_columns = _means_update(data.T, ridge) if terms.columns else None
    tol = 1e-10 if data.dtype == np.float64 else 1e-6
    # Rows alone or columns alone are exact in one sweep; together they alternate.
    for _ in range(max_sweeps if terms.rows and terms.columns else 1):
        previous = squares
        rows, columns = intercepts.rows, intercepts.columns
        if by_rows is not None:
            rows = by_rows(none[0], none[1], columns + data.dtype.type(intercepts.overall))[1]
        if by_columns is not None:
            columns = by_columns(none[1], none[0], rows + data.dtype.type(intercepts.overall))[1]
        intercepts = Intercepts(intercepts.overall, rows, columns)
        squares, total = data.residual_sums(rows, intercepts.column_offsets, *none)
        shift = total / data.n_observed
        intercepts = intercepts.settled(shift)
        squares -= data.n_observed * shift**2
        if abs(previous - squares) <= tol * abs(squares):
            break
    return intercepts, max(squares, 0.0) / data.n_observed


def _means_update(data: Observed, ridge: float) -> PreparedUpdate:
    identity = scipy.sparse.eye_array(data.shape[0], format="csr")
    return ConjugateGradientUpdate().prepare(Half(data, 1.0, identity, ridge))


def initial_factors(
    data: Observed,
    intercepts: Intercepts,
    n_components: int,
    random_state: RandomState,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Factors of the best rank-k approximation of the residuals, singular values split evenly.

    Gaps are filled by the intercepts. Parameters as in :func:`leading_components`.
    """
    U, values, Vt = leading_components(data, intercepts, n_components, random_state, weights)
    # What the gaps took from the singular values is given back.
    share = data.n_observed / (data.shape[0] * data.shape[1])
    roots = np.sqrt(values[:n_components] / share)
    X = np.ascontiguousarray(U[:, :n_components] * roots, dtype=data.dtype)
    W = np.ascontiguousarray(Vt[:n_components].T * roots, dtype=data.dtype)
    return X, W


def leading_components(
    data: Observed,
    intercepts: Intercepts,
    n_components: int,
    random_state: RandomState,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Singular vectors and values of the table less its intercepts, with gaps filled by them.

    Small tables are decomposed exactly and to the end, large ones by random projections, for which a table with gaps
    stays sparse, and which find only the leading ``n_components``. ``weights`` multiply the residuals, in row order.
    """
    residuals = data.residual_matrix(intercepts.rows, intercepts.column_offsets)
    n, p = data.shape
    if weights is not None:
        if scipy.sparse.issparse(residuals):
            residuals.data *= weights
        else:
            residuals = residuals * weights.reshape(n, p)
    if n * p <= _EXACT_ENTRIES:
        dense = residuals.toarray() if scipy.sparse.issparse(residuals) else residuals
        U, values, Vt = np.linalg.svd(dense, full_matrices=False)
    else:
        if scipy.sparse.issparse(residuals):
            residuals = scipy.sparse.csr_matrix(residuals)
        U, values, Vt = randomized_svd(
            residuals, n_components, n_oversamples=10, n_iter=4, random_state=check_random_state(random_state)
        )
    U, Vt = svd_flip(U, Vt)
    return U, values, Vt

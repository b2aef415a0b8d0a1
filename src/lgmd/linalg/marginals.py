"""The variances that a precision matrix gives to its nodes."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse

from lgmd._typing import FloatArray, SparseGraph
from lgmd.linalg.cholesky import TooEntangledError, factorize
from lgmd.linalg.conjugate_gradients import conjugate_gradients

__all__ = ["marginal_variances", "mean_marginal_variance"]

# Up to here the inverse is formed; above, its trace is estimated.
_EXACT_NODES = 500

# The same for the diagonal of the inverse.
_INVERTED = 1200

# Passes of belief propagation, and the change at which it has settled.
_MOST_PASSES, _PASSED = 500, 1e-8


def mean_marginal_variance(precision: SparseGraph, n_probes: int = 64, seed: int = 0) -> float:
    """``tr(A^-1) / n``: exact for small or diagonal matrices, otherwise from random sign vectors (Hutchinson)."""
    n = precision.shape[0]
    diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
    if precision.count_nonzero() == n:
        return float(np.mean(1.0 / diagonal))
    rng = np.random.default_rng(seed)
    probes = np.eye(n) if n <= _EXACT_NODES else rng.choice([-1.0, 1.0], size=(n, n_probes))
    return float(np.sum(probes * _solve(precision, diagonal, probes)) / np.sum(probes**2))


def _solve(precision: SparseGraph, diagonal: FloatArray, right: FloatArray) -> FloatArray:
    try:
        return factorize(precision).solve(right)
    except TooEntangledError:
        scale = 1.0 / np.sqrt(diagonal)[:, None]
        result = conjugate_gradients(
            lambda vectors: scale * (precision @ (scale * vectors)),
            scale * right,
            np.zeros_like(right),
            tol=1e-6,
            max_iter=500,
            separate_columns=True,
        )
        return scale * result.solution


def marginal_variances(precision: SparseGraph) -> FloatArray:
    """Diagonal of the inverse of a diagonally dominant matrix, (n,).

    Exact up to 1200 rows with entries off the diagonal. Among more, by Gaussian belief propagation (Weiss and Freeman,
    2001), which is exact on forests; on cycles it leaves out some of what returns to a row along them.
    """
    diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
    variances = 1.0 / diagonal
    edges = scipy.sparse.csr_array(precision - scipy.sparse.diags_array(diagonal))
    edges.eliminate_zeros()
    edges.sort_indices()
    joined = np.flatnonzero(np.diff(edges.indptr))
    if len(joined) <= _INVERTED:
        if len(joined):
            inner = scipy.sparse.csr_array(precision)[joined][:, joined].toarray()
            variances[joined] = np.diag(scipy.linalg.inv(inner, check_finite=False))
        return variances
    return 1.0 / (diagonal + _incoming(edges, diagonal))


def _incoming(edges: SparseGraph, diagonal: FloatArray) -> FloatArray:
    """What the neighbours of each row take from its precision, (n,): not positive."""
    n = edges.shape[0]
    sources = np.repeat(np.arange(n), np.diff(edges.indptr))
    targets, squares = edges.indices, np.square(edges.data)
    # The message the other way along each edge: the pattern is symmetric, so the transpose has it in the same place.
    position = scipy.sparse.csr_array((np.arange(len(targets)), targets, edges.indptr), shape=edges.shape)
    reverse = scipy.sparse.csr_array(position.T).data
    messages = np.zeros(len(targets))
    totals = np.zeros(n)
    for _ in range(_MOST_PASSES):
        following = -squares / (diagonal[sources] + totals[sources] - messages[reverse])
        change = np.abs(following - messages).max()
        messages = following
        totals = np.bincount(targets, messages, n)
        if change <= _PASSED * diagonal.max():
            break
    return totals

"""The variance that a precision matrix gives to a node on average."""

from __future__ import annotations

import numpy as np

from lgmd._typing import FloatArray, SparseGraph
from lgmd.linalg.cholesky import TooEntangledError, factorize
from lgmd.linalg.conjugate_gradients import conjugate_gradients

__all__ = ["mean_marginal_variance"]

# Up to here the inverse is formed; above, its trace is estimated.
_EXACT_NODES = 500


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

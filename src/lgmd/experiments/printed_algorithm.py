"""Algorithm 1 of the paper in plain numpy, as printed, to be timed beside ours.

:mod:`lgmd.solver` has the algorithm that is meant, and :class:`~lgmd.factors.PaperUpdate` the printed update within it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray

__all__ = ["GraphStep", "PrintedRun", "printed_iterations", "printed_threshold"]

# Keeps Gram matrices invertible, the paper's epsilon.
_EPSILON = 1e-6

# Edges of the closed form: the sparsity that the paper holds fixed.
_DENSITY = 0.06

GraphStep = Callable[[FloatArray, Any], Any]
"""From a factor and the last graph to the next graph, anything that multiplies a factor from the left."""


@dataclass(frozen=True)
class PrintedRun:
    """What became of a run.

    Attributes
    ----------
    estimate : ndarray of shape (n, p), or None
        The table that the factors make; None where they left the range of floating point, as the printed update can.
    n_iterations : int
        How many were run.
    """

    estimate: FloatArray | None
    n_iterations: int


def printed_iterations(
    table: FloatArray, n_components: int, graphs: tuple[Any, Any], step: GraphStep, penalty: float, n_iterations: int
) -> PrintedRun:
    """Algorithm 1 of the paper as printed, in plain numpy.

    An iteration updates both graphs and each factor once. The paper has the factors' update for a complete table only,
    and the objective for one with gaps too; with gaps each row's Gram matrix is therefore that of its observed columns,
    the same update for that objective. The table is brought to mean zero and unit scale, and gaps are zero in the
    singular value decomposition that the factors start from.

    Parameters
    ----------
    table : ndarray of shape (n, p)
        NaN for gaps.
    n_components : int
    graphs : pair
        Over rows and over columns, before the first iteration.
    step : callable
        How a graph is relearned in every iteration.
    penalty : float
        Of both sides.
    n_iterations : int

    Returns
    -------
    PrintedRun
    """
    known = ~np.isnan(table)
    mean, scale = float(np.nanmean(table)), float(np.nanstd(table))
    Y = np.where(known, (table - mean) / scale, 0.0)
    left, singular, right = np.linalg.svd(Y, full_matrices=False)
    X, W = left[:, :n_components], right[:n_components].T * singular[:n_components]
    A, B = graphs
    for iteration in range(n_iterations):
        try:
            with np.errstate(all="ignore"):
                A, B = step(X, A), step(W, B)
                X = _printed_update(Y, known, W, penalty * (A @ X))
                W = _printed_update(Y.T, known.T, X, penalty * (B @ W))
        except np.linalg.LinAlgError:
            return PrintedRun(None, iteration + 1)
        if not np.all(np.isfinite(X)) or not np.all(np.isfinite(W)):
            return PrintedRun(None, iteration + 1)
    return PrintedRun(mean + scale * (X @ W.T), n_iterations)


def _printed_update(Y: FloatArray, known: Array, W: FloatArray, pull: FloatArray) -> FloatArray:
    """``(Y W - pull)(W'W + epsilon I)^-1``, with gaps row by row."""
    k = W.shape[1]
    right, ridge = Y @ W - pull, _EPSILON * np.eye(k)
    if known.all():
        complete: FloatArray = right @ np.linalg.inv(W.T @ W + ridge)
        return complete
    products = (W[:, :, None] * W[:, None, :]).reshape(len(W), k * k)
    grams = (known @ products).reshape(len(Y), k, k) + ridge
    return np.linalg.solve(grams, right[:, :, None])[:, :, 0]


def printed_threshold(factor: FloatArray, _: Any = None) -> FloatArray:
    """The closed form for the precision, entry by entry as printed, divided by its mean diagonal.

    The threshold is where it leaves 6 % of the pairs. Nothing keeps the matrix positive definite.
    """
    covariance = factor @ factor.T / factor.shape[1]
    variances = np.diag(covariance)
    sizes = np.abs(covariance[np.triu_indices(len(covariance), 1)])
    eta = np.quantile(sizes, 1 - _DENSITY)
    residual = np.sign(covariance) * np.maximum(np.abs(covariance) - eta, 0.0)
    np.fill_diagonal(residual, 0.0)
    remaining = np.outer(variances, variances) - residual**2
    precision = -residual / remaining
    np.fill_diagonal(precision, (1 + (residual**2 / remaining).sum(axis=1)) / variances)
    unit: FloatArray = precision / np.diag(precision).mean()
    return unit

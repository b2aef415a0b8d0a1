"""Conjugate gradients for symmetric positive definite systems with several right-hand sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lgmd._typing import FloatArray

__all__ = ["ConjugateGradientResult", "conjugate_gradients"]


class ConjugateGradientResult(NamedTuple):
    """A solution with what it took."""

    solution: FloatArray
    n_iter: int
    residual: float
    """Largest residual norm relative to its right-hand side, or to the first residual where that is zero."""


def conjugate_gradients(
    apply: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    reduction: float = 0.0,
    separate_columns: bool = False,
) -> ConjugateGradientResult:
    """Solve ``apply(x) = right`` from a warm start.

    Every iterate lowers the energy ``x'Kx/2 - x'right``, so stopping early still improves on ``start``.

    Parameters
    ----------
    apply : callable
        The operator on arrays of the shape of ``right``. Scale it so that its diagonal is near one:
        preconditioning is the caller's change of variables.
    right, start : ndarray of shape (n, k)
        Right-hand sides and the first guess.
    tol : float
        Stop when the residual norm is below ``tol`` times the norm of ``right``, or, where that is zero, of the first
        residual.
    max_iter : int
        Most products with the operator.
    reduction : float, default=0.0
        Stop as well when the residual norm is below this share of the first one: for a solve that is one step of an
        iteration, which will be back with a better right-hand side.
    separate_columns : bool, default=False
        Whether the columns are k systems of their own (one step length each) or one joint system.
    """
    axis = 0 if separate_columns else None

    def inner(first: FloatArray, second: FloatArray) -> FloatArray:
        return np.asarray(np.sum(first * second, axis=axis, dtype=np.float64))

    solution = start.copy()
    residual = right - apply(solution)
    direction = residual.copy()
    squares = inner(residual, residual)
    norms = inner(right, right)
    norms = np.where(norms > 0, norms, squares)
    goal = np.maximum(tol**2 * norms, reduction**2 * squares)
    n_iter = 0
    while n_iter < max_iter and np.any(squares > goal):
        product = apply(direction)
        curvature = inner(direction, product)
        step = np.divide(squares, curvature, out=np.zeros_like(squares), where=curvature > 0)
        step = step.astype(right.dtype)
        solution += step * direction
        residual -= step * product
        previous = squares
        squares = inner(residual, residual)
        turn = np.divide(squares, previous, out=np.zeros_like(squares), where=previous > 0)
        direction *= turn.astype(right.dtype)
        direction += residual
        n_iter += 1
    relative = np.sqrt(np.divide(squares, norms, out=np.zeros_like(squares), where=norms > 0))
    return ConjugateGradientResult(solution, n_iter, float(np.max(relative, initial=0.0)))

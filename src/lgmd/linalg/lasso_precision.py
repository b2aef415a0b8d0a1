r"""The graphical lasso on one dense component.

.. math:: \min_A \; \mathrm{tr}(SA) - \ln|A| + \eta \sum_{i \ne j} |A_{ij}|

by proximal Newton steps on the entries that are free to move (QUIC: Hsieh, Sustik, Dhillon and Ravikumar, 2014). The
quadratic model of a step, with :math:`W = A^{-1}`,

.. math:: \mathrm{tr}((S - W) D) + \tfrac12 \mathrm{tr}(W D W D) + \eta \sum_{i \ne j} |A_{ij} + D_{ij}| ,

is minimised by coordinate descent a row at a time, and by conjugate gradients where that is slow. QUIC carries ``D W``
along and walks through its columns; here the products that a run of rows needs are formed anew, ``D W[:, rows]``, which
takes as many operations and reads memory in order, and the moves within the run are added to them, so that every
coordinate still sees all earlier moves. A penalty on the diagonal is a diagonal added to S. Screening into components
happens in ``graphs.lasso_components``.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from scipy.linalg import lapack

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.linalg.tiles import reflect_upper

__all__ = ["LassoPrecision", "UnboundedError", "duality_gap", "lasso_precision"]

# Sums may be reordered and products fused; NaN and infinity keep their meaning.
_FASTMATH = {"reassoc", "contract", "nsz"}

# Rows whose products with D are formed together: two cache lines.
_LANES = 16

# Passes over a row before the next one: one more with every sweep over all rows, because many sweeps mean that the
# problem is ill-conditioned, and that rows are worth solving well.
_FIRST_PASSES = 2
_MOST_PASSES = 12

# Sweeps before the next step: more where they cost little.
_SWEEPS = 30
_MOST_SWEEPS = 300
_SWEEP_OPERATIONS = 1e9

# Where no sign has changed for so many sweeps, conjugate gradients finish what is slow by coordinates: a few times a
# step at most, and only where dense products cost no more than sweeps.
_SWEEPS_BETWEEN_LOOKS = 10
_POLISHED_NODES = 150
_MOST_POLISHES = 3
_MOST_PRODUCTS = 300

# A step's model is minimised until what is left is this share of the residual, and less as the residual falls.
_FORCING = 0.3

# Without a start the penalty is lowered by this factor a step, from where a node has two edges on average.
_CONTINUATION = 0.8

# A share of the decrease that the model promises has to come true.
_ARMIJO = 1e-3
_SHORTEST_STEP = 1e-10

# Shares of a point that is surely positive definite, where the better one is not.
_MIXED = (0.25, 0.5, 0.75, 1.0)

# Where S is a covariance matrix, A_ii S_ii <= 1 + n max(S) / eta at the minimum. Steps may overshoot, but not by this.
_OVERSHOOT = 1e3


class UnboundedError(Exception):
    """The objective falls without end: S is not a covariance matrix."""


class LassoPrecision(NamedTuple):
    """A sparse precision, held dense, and how good it is.

    Attributes
    ----------
    precision, covariance : ndarray of shape (n, n)
        A and its inverse.
    logdet : float
        Log-determinant of A.
    objective : float
    residual : float
        Largest violation of an optimality condition, in units of ``sqrt(S_ii S_jj)``.
    n_iter : int
        Newton steps taken.
    """

    precision: FloatArray
    covariance: FloatArray
    logdet: float
    objective: float
    residual: float
    n_iter: int


def lasso_precision(
    S: FloatArray,
    eta: float,
    *,
    allowed: Array | None = None,
    start: FloatArray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> LassoPrecision:
    r"""The precision that minimises the penalised negative log-likelihood.

    The objective falls with every step. It is bounded for every positive semidefinite S with a positive diagonal,
    singular or not.

    Parameters
    ----------
    S : ndarray of float64, shape (n, n)
        Symmetric, with a positive diagonal.
    eta : float
        Positive.
    allowed : ndarray of bool, shape (n, n), optional
        Other off-diagonal entries of A are held at zero.
    start : ndarray of shape (n, n), optional
        A precision close to the solution. It is used where it is positive definite, after entries that are not allowed
        have been dropped, and better than the diagonal.
    tol : float, default=1e-6
        Stop where every optimality condition holds up to ``tol * sqrt(S_ii S_jj)``: :math:`W_{ii} = S_{ii}`,
        :math:`W_{ij} = S_{ij} + \eta\,\mathrm{sign} A_{ij}` on edges and :math:`|W_{ij} - S_{ij}| \le \eta` elsewhere.
    max_iter : int, default=100

    Raises
    ------
    UnboundedError
        The objective has no minimum.

    Notes
    -----
    A step costs ``O(n^3)`` for the Cholesky factor and the inverse, in LAPACK, and ``O(n edges)`` a sweep of coordinate
    descent. Memory: about eight n x n arrays.
    """
    problem = _Problem.of(S, allowed)
    warm = None if start is None else _point(_masked(start, problem.allowed))
    variances = np.diag(problem.S)
    without_edges = len(variances) + float(np.log(variances).sum())
    if warm is not None and _objective(problem, warm, eta) < without_edges:
        point, penalties = warm, []
    else:
        point, penalties = _diagonal(variances), _continuation(problem, eta)
    n_iter = 0
    for penalty in penalties[:max_iter]:
        point = _newton_step(problem, point, penalty, tol, n_sweeps=1) or point
        n_iter += 1
    while n_iter < max_iter:
        moved = _newton_step(problem, point, eta, tol, n_sweeps=_SWEEPS)
        if moved is None:
            break
        point = moved
        n_iter += 1
        if np.any(np.diag(point.A) * variances > _OVERSHOOT * (1.0 + len(S) * variances.max() / eta)):
            raise UnboundedError
    residual, _ = _conditions(*problem, point.A, point.W, eta)
    return LassoPrecision(point.A, point.W, point.logdet, _objective(problem, point, eta), float(residual), n_iter)


def duality_gap(
    S: FloatArray, eta: float, precision: FloatArray, covariance: FloatArray, allowed: Array | None = None
) -> float:
    r"""How far the objective is at most from its minimum.

    The dual problem is :math:`\max_W \ln|W| + n` with :math:`W_{ii} = S_{ii}` and :math:`|W_{ij} - S_{ij}| \le \eta`,
    and W free where A is held at zero. The inverse of the precision is clipped into these bounds and, where that is not
    positive definite, mixed with S, its off-diagonal shrunk into them. Infinite where that does not help: S is then no
    covariance matrix.
    """
    problem = _Problem.of(S, allowed)
    clipped = problem.S + np.clip(covariance - problem.S, -eta, eta)
    if allowed is not None:
        clipped = np.where(allowed, clipped, covariance)
    np.fill_diagonal(clipped, np.diag(problem.S))
    point = _point(precision)
    if point is None:
        return float("inf")
    return _objective(problem, point, eta) - _dual_logdet(problem.S, eta, clipped) - len(clipped)


def _dual_logdet(S: FloatArray, eta: float, clipped: FloatArray) -> float:
    """Log-determinant of a point of the dual problem, close to one within its bounds; minus infinity where none is."""
    factor = _factor(clipped)
    if factor is not None:
        return _logdet(factor)
    sizes = np.abs(S)
    np.fill_diagonal(sizes, 0.0)
    shrunk = (1.0 - eta / max(float(sizes.max(initial=0.0)), eta)) * S
    np.fill_diagonal(shrunk, np.diag(S))
    factors = [_factor(clipped + share * (shrunk - clipped)) for share in _MIXED]
    return max((_logdet(factor) for factor in factors if factor is not None), default=-float("inf"))


class _Problem(NamedTuple):
    """What does not change: S, where edges may be, and what brings S to unit diagonal."""

    S: FloatArray
    allowed: Array
    scale: FloatArray

    @classmethod
    def of(cls, S: FloatArray, allowed: Array | None) -> _Problem:
        S = _symmetric(np.asarray(S, dtype=np.float64))
        everywhere = np.ones((0, 0), dtype=np.bool_)  # no restriction, for the compiled loops
        mask = everywhere if allowed is None else np.ascontiguousarray(allowed | allowed.T, dtype=np.bool_)
        return cls(S, mask, 1.0 / np.sqrt(np.diag(S)))


class _Point(NamedTuple):
    """A precision, its inverse and its log-determinant."""

    A: FloatArray
    W: FloatArray
    logdet: float


def _newton_step(problem: _Problem, point: _Point, eta: float, tol: float, n_sweeps: int) -> _Point | None:
    """The next point; None where the optimality conditions hold or round-off leaves nothing to gain."""
    S, allowed, scale = problem
    A, W, _ = point
    residual, counts = _conditions(S, allowed, scale, A, W, eta)
    if residual <= tol:
        return None
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], np.int64)
    current, gradient = np.empty(len(indices)), np.empty(len(indices))
    _gather_free(S, allowed, A, W, eta, indptr, indices, current, gradient)
    twins = _transposed_positions(indptr, indices)
    direction: FloatArray = np.zeros(len(indices))
    goal = max(min(_FORCING, residual) * residual, _FORCING * tol)
    if n_sweeps > 1:
        n_sweeps = max(n_sweeps, min(_MOST_SWEEPS, int(_SWEEP_OPERATIONS / (len(S) * len(indices)))))
    signs, n_polishes = np.sign(current), 0
    for sweep in range(1, n_sweeps + 1):
        n_passes = min(_FIRST_PASSES + sweep, _MOST_PASSES)
        left = _descend(indptr, indices, twins, current, gradient, W, eta, scale, n_passes, direction)
        if left <= goal:
            break
        if sweep % _SWEEPS_BETWEEN_LOOKS == 0:
            before, signs = signs, np.sign(current + direction)
            if len(S) <= _POLISHED_NODES and n_polishes < _MOST_POLISHES and np.array_equal(signs, before):
                n_polishes += 1
                direction = _polished(problem, point, indptr, indices, direction, eta, goal)
    promised = float(gradient @ direction)
    promised += eta * _off_diagonal_sum(indptr, indices, current + direction)
    promised -= eta * _off_diagonal_sum(indptr, indices, current)
    value, rounding = _objective(problem, point, eta), _rounding(point)
    step = 1.0
    while step > _SHORTEST_STEP:
        trial = A.copy()
        _scatter(indptr, indices, current + step * direction, trial)
        factor = _factor(trial)
        if factor is not None:
            logdet = _logdet(factor)
            reached = _penalised_fit(S, trial, eta) - logdet
            if reached <= value + _ARMIJO * step * promised + rounding:
                return _Point(trial, _inverse(factor), logdet)
        step /= 2
    return None


def _polished(
    problem: _Problem,
    point: _Point,
    indptr: IntArray,
    indices: IntArray,
    direction: FloatArray,
    eta: float,
    goal: float,
) -> FloatArray:
    """A better minimiser of a step's model, with entries that are zero held at zero and signs held.

    There the model is quadratic: conjugate gradients on ``W D W``, preconditioned by its inverse without the
    restriction, ``A R A``.
    """
    S, _, scale = problem
    A, W, _ = point
    D = np.zeros_like(A)
    _scatter(indptr, indices, direction, D)
    signs = np.sign(A + D)
    free = signs != 0
    slope = eta * signs
    np.fill_diagonal(slope, 0.0)

    def model(D: FloatArray) -> float:
        X = A + D
        quadratic = 0.5 * np.vdot(D, W @ D @ W)
        return float(np.vdot(S - W, D) + quadratic + eta * (np.abs(X).sum() - np.abs(np.diag(X)).sum()))

    left = np.where(free, W - S - slope - W @ D @ W, 0.0)
    change = np.zeros_like(A)
    search, size = np.zeros_like(A), 1.0
    for _ in range(_MOST_PRODUCTS):
        if np.abs(left * scale[:, None] * scale).max() <= _FORCING * goal:
            break
        preconditioned = np.where(free, A @ left @ A, 0.0)
        previous, size = size, float(np.vdot(left, preconditioned))
        search = preconditioned + (size / previous) * search
        product = np.where(free, W @ search @ W, 0.0)
        step = size / float(np.vdot(search, product))
        change += step * search
        left -= step * product
    before = model(D)
    for share in (1.0, 0.5, 0.25):
        X = _symmetric(A + D + share * change)
        X[np.sign(X) != signs] = 0.0
        if model(X - A) < before:
            return np.asarray((X - A)[np.repeat(np.arange(len(A)), np.diff(indptr)), indices])
    return direction


def _objective(problem: _Problem, point: _Point, eta: float) -> float:
    return float(_penalised_fit(problem.S, point.A, eta)) - point.logdet


def _rounding(point: _Point) -> float:
    """Differences of objectives below this say nothing."""
    return 10 * float(np.finfo(np.float64).eps) * (len(point.A) + abs(point.logdet))


def _continuation(problem: _Problem, eta: float) -> list[float]:
    """Penalties on the way down to ``eta``: each step starts close to where it goes, and with few free entries."""
    n = len(problem.S)
    sizes = np.abs(_masked(problem.S, problem.allowed))
    np.fill_diagonal(sizes, 0.0)
    above = sizes[sizes > eta]  # each pair twice
    if len(above) <= 2 * n:
        return []
    penalties = [float(np.partition(above, -2 * n)[-2 * n])]
    while penalties[-1] * _CONTINUATION > eta:
        penalties.append(penalties[-1] * _CONTINUATION)
    return [penalty for penalty in penalties if penalty > eta / _CONTINUATION**0.25]


def _symmetric(matrix: FloatArray) -> FloatArray:
    """The symmetric part: the compiled loops rely on patterns that are symmetric to the last bit."""
    return np.ascontiguousarray((matrix + matrix.T) / 2)


def _masked(matrix: FloatArray, allowed: Array) -> FloatArray:
    """Without the off-diagonal entries that are held at zero."""
    matrix = _symmetric(np.asarray(matrix, dtype=np.float64))
    if len(allowed):
        diagonal = np.diag(matrix).copy()
        matrix[~allowed] = 0.0
        np.fill_diagonal(matrix, diagonal)
    return matrix


def _diagonal(variances: FloatArray) -> _Point:
    return _Point(np.diag(1.0 / variances), np.diag(variances), -float(np.log(variances).sum()))


def _point(A: FloatArray) -> _Point | None:
    factor = _factor(A)
    if factor is None:
        return None
    logdet = _logdet(factor)
    return _Point(A, _inverse(factor), logdet)


def _factor(matrix: FloatArray) -> FloatArray | None:
    """Cholesky factor, in the lower triangle in Fortran's order; None where there is none."""
    factor, failed = lapack.dpotrf(matrix.T, lower=1, clean=0)
    return None if failed else factor


def _logdet(factor: FloatArray) -> float:
    return 2.0 * float(np.log(np.diag(factor)).sum())


def _inverse(factor: FloatArray) -> FloatArray:
    """Inverse from a Cholesky factor, which is overwritten."""
    lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse: FloatArray = lower.T
    reflect_upper(inverse, False)
    return inverse


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def _penalised_fit(S, A, eta):  # type: ignore[no-untyped-def]
    """``tr(SA) + eta |A|_off``."""
    total = 0.0
    for i in range(len(S)):
        fit = penalty = 0.0
        for j in range(len(S)):
            fit += S[i, j] * A[i, j]
            penalty += abs(A[i, j])
        total += fit + eta * (penalty - abs(A[i, i]))
    return total


@numba.njit(nogil=True, cache=True)
def _conditions(S, allowed, scale, A, W, eta):  # type: ignore[no-untyped-def]
    """The largest violation of an optimality condition, and how many entries of each row are free to move."""
    n = len(S)
    counts = np.zeros(n, np.int64)
    worst = 0.0
    for i in range(n):
        for j in range(n):
            gradient, entry = S[i, j] - W[i, j], A[i, j]
            if i == j:
                violation = abs(gradient)
                counts[i] += 1
            elif len(allowed) and not allowed[i, j]:
                violation = 0.0
            elif entry != 0:
                violation = abs(gradient + (eta if entry > 0 else -eta))
                counts[i] += 1
            else:
                violation = abs(gradient) - eta
                if violation > 0:
                    counts[i] += 1
            worst = max(worst, violation * scale[i] * scale[j])
    return worst, counts


@numba.njit(nogil=True, cache=True)
def _gather_free(S, allowed, A, W, eta, indptr, indices, current, gradient):  # type: ignore[no-untyped-def]
    """The free entries by rows: where they are, their values in A and in ``S - W``."""
    n = len(S)
    for i in range(n):
        position = indptr[i]
        for j in range(n):
            may_move = i == j or not len(allowed) or allowed[i, j]
            if may_move and (i == j or A[i, j] != 0 or abs(S[i, j] - W[i, j]) > eta):
                indices[position], current[position] = j, A[i, j]
                gradient[position] = S[i, j] - W[i, j]
                position += 1


@numba.njit(nogil=True, cache=True)
def _transposed_positions(indptr, indices):  # type: ignore[no-untyped-def]
    """Where entry (j, i) is stored, for each stored entry (i, j) of a symmetric pattern."""
    following = indptr[:-1].copy()
    twins = np.empty(len(indices), np.int64)
    for i in range(len(following)):
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            twins[entry] = following[j]
            following[j] += 1
    return twins


@numba.njit(nogil=True, cache=True)
def _off_diagonal_sum(indptr, indices, values):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(indptr) - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            if indices[entry] != i:
                total += abs(values[entry])
    return total


@numba.njit(nogil=True, cache=True)
def _scatter(indptr, indices, values, matrix):  # type: ignore[no-untyped-def]
    for i in range(len(indptr) - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            matrix[i, indices[entry]] = values[entry]


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def _dot(first, second):  # type: ignore[no-untyped-def]
    total = 0.0
    for position in range(len(first)):
        total += first[position] * second[position]
    return total


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def _multiply(indptr, indices, values, panel, product):  # type: ignore[no-untyped-def]
    """A sparse matrix times a panel of ``_LANES`` columns."""
    for i in range(len(indptr) - 1):
        out = product[i]
        for lane in range(_LANES):
            out[lane] = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = values[entry]
            if value != 0:
                row = panel[indices[entry]]
                for lane in range(_LANES):
                    out[lane] += value * row[lane]


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def _descend(indptr, indices, twins, current, gradient, W, eta, scale, n_passes, direction):  # type: ignore[no-untyped-def]
    """One sweep of coordinate descent on the model of a step; returns the largest violation that it met.

    ``direction`` holds D on the free entries and is changed in place.
    """
    n = len(indptr) - 1
    panel, product, column = np.zeros((n, _LANES)), np.zeros((n, _LANES)), np.empty(n)
    slope, before = np.empty(n), np.empty(n)
    worst = 0.0
    for first in range(0, n, _LANES):
        width = min(_LANES, n - first)
        for k in range(n):
            for lane in range(width):
                panel[k, lane] = W[k, first + lane]
        _multiply(indptr, indices, direction, panel, product)
        for lane in range(width):
            i = first + lane
            begin, size = indptr[i], indptr[i + 1] - indptr[i]
            for k in range(n):
                column[k] = product[k, lane]
            for a in range(size):  # the gradient of the model: S - W + W D W
                slope[a] = gradient[begin + a] + _dot(column, W[indices[begin + a]])
                before[a] = direction[begin + a]
            for _ in range(n_passes):
                met = _descend_row(i, begin, size, indices, current, W, eta, scale, slope, direction)
                worst = max(worst, met)
                if met <= 0.1 * worst:
                    break
            for a in range(size):
                entry = begin + a
                move = direction[entry] - before[a]
                if move != 0:
                    j = indices[entry]
                    direction[twins[entry]] = direction[entry]
                    for other in range(_LANES):
                        product[i, other] += move * panel[j, other]
                    if j != i:
                        for other in range(_LANES):
                            product[j, other] += move * panel[i, other]
    return worst


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def _descend_row(i, begin, size, indices, current, W, eta, scale, slope, direction):  # type: ignore[no-untyped-def]
    """One pass over the free entries of a row; returns the largest violation that it met."""
    own = W[i]
    worst = 0.0
    for a in range(size):
        entry = begin + a
        j = indices[entry]
        other = W[j]
        if j == i:
            curvature = own[i] * own[i]
            move = -slope[a] / curvature
            direction[entry] += move
            weight = 0.5 * move
        else:
            curvature = own[i] * other[j] + own[j] * own[j]
            old = current[entry] + direction[entry]
            centre, reach = old - slope[a] / curvature, eta / curvature
            new = centre - reach if centre > reach else (centre + reach if centre < -reach else 0.0)
            move = new - old
            direction[entry] = new - current[entry]  # so that a zero is reached exactly
            weight = move
        if move != 0:
            worst = max(worst, abs(move) * curvature * scale[i] * scale[j])
            along, across = weight * own[i], weight * own[j]
            for b in range(size):
                k = indices[begin + b]
                slope[b] += along * other[k] + across * own[k]
    return worst

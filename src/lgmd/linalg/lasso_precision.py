r"""The graphical lasso on one dense component.

.. math:: \min_A \; \mathrm{tr}(SA) - \ln|A| + \eta \sum_{i \ne j} |A_{ij}|

by proximal Newton steps on the entries that are free to move (QUIC: Hsieh, Sustik, Dhillon and Ravikumar, 2014). The
quadratic model of a step, with :math:`W = A^{-1}`,

.. math:: \mathrm{tr}((S - W) D) + \tfrac12 \mathrm{tr}(W D W D) + \eta \sum_{i \ne j} |A_{ij} + D_{ij}| ,

is minimised by coordinate descent a row at a time, and by an active-set method where that is slow. QUIC carries ``D W``
along and walks through its columns; here the products that a run of rows needs are formed anew, ``D W[:, rows]``, which
takes as many operations and reads memory in order, and the moves within the run are added to them, so that every
coordinate still sees all earlier moves.

Where S is singular, A grows as :math:`1 / \eta` in the directions without variance. The model of a step is then as
ill-conditioned as :math:`1 / \eta^2`, and setting to zero what has crossed it spoils the rest. Small penalties are
therefore reached by way of larger ones: solutions of neighbouring penalties have nearly the same edges, and are nearly
linear in :math:`1 / \eta`.

A penalty on the diagonal is a diagonal added to S. Screening into components happens in ``graphs.lasso_components``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.linalg.lasso_kernels import (
    conditions,
    curvature,
    descend,
    gather_free,
    off_diagonal_sum,
    penalised_fit,
    scatter,
    transposed_positions,
)
from lgmd.linalg.tiles import reflect_upper

__all__ = ["LassoPrecision", "UnboundedError", "duality_gap", "lasso_precision"]

# Passes over a row before the next one: one more with every sweep over all rows, because many sweeps mean that the
# problem is ill-conditioned, and that rows are worth solving well.
_FIRST_PASSES = 2
_MOST_PASSES = 12

# Sweeps before the next step: more where they cost little.
_SWEEPS = 30
_MOST_SWEEPS = 300
_SWEEP_OPERATIONS = 1e9

# Where sweeps are slow, what they leave is solved directly, a few times a step at most, with a dense factor over edges
# or over pairs without one. It has no more entries than 100 nodes have pairs, and costs as much as sweeps by the square
# of the entries over so many times the nodes.
_SWEEPS_BETWEEN_LOOKS = 3
_MOST_ENTRIES = 5050
_ENTRIES_A_SWEEP = 1000.0
_MOST_REFINEMENTS = 6

# A step that takes more sweeps is hard: the next penalty is then better predicted than left to sweeps.
_EASY_SWEEPS = 10

# Edges that one direct solution drops or takes back.
_MOST_CHANGES = 100

# A step's model is minimised until what is left is this share of the residual, and less as the residual falls.
_FORCING = 0.3

# Without a start the penalty is lowered by this factor a step, from where a node has two edges on average.
_CONTINUATION = 0.8

# Below this share of the first one, penalties are solved on the way: as far as this share of the penalty, in so many
# steps at most, and each the second share of the one before. Where few steps were enough the share is squared.
_SOLVED_BELOW = 0.2
_WAY_TOLERANCE = 0.1
_MOST_WAY_STEPS = 20
_LOWERED, _LOWERED_MOST = 0.5, 0.01
_FEW_STEPS = 1

# Steps from a start before the way by larger penalties is tried instead, if they are hard.
_START_STEPS = 10

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
    descent. Where sweeps are slow there is also the factor over edges, or over pairs without one, whichever are fewer
    and if they are at most 5,050. Memory: about eight n x n arrays, and 200 MB at most for that factor.
    """
    problem = _Problem.of(S, allowed)
    warm = None if start is None else _point(_masked(start, problem.allowed))
    variances = np.diag(problem.S)
    without_edges = len(variances) + float(np.log(variances).sum())
    if warm is not None and _objective(problem, warm, eta) < without_edges:
        point, n_iter = _from_start(problem, warm, eta, tol, max_iter)
    else:
        point, n_iter = _from_diagonal(problem, eta, tol, max_iter)
    residual, _ = conditions(*problem, point.A, point.W, eta)
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


def _from_start(problem: _Problem, start: _Point, eta: float, tol: float, max_iter: int) -> tuple[_Point, int]:
    """Newton steps from a start, and from the diagonal where the start turns out to be too far away."""
    first = _settled(problem, start, eta, tol, min(_START_STEPS, max_iter))
    if first.n_iter < min(_START_STEPS, max_iter):
        return first.point, first.n_iter
    if not first.hard:
        rest = _settled(problem, first.point, eta, tol, max_iter - first.n_iter)
        return rest.point, first.n_iter + rest.n_iter
    point, n_iter = _from_diagonal(problem, eta, tol, max_iter - first.n_iter)
    better = min(first.point, point, key=lambda one: _objective(problem, one, eta))
    return better, first.n_iter + n_iter


def _from_diagonal(problem: _Problem, eta: float, tol: float, max_iter: int) -> tuple[_Point, int]:
    """Newton steps for penalties that fall to ``eta``: one for a large penalty, as many as it takes for a small one."""
    point = _diagonal(np.diag(problem.S))
    penalties = _continuation(problem, eta)
    for penalty in penalties[:max_iter]:
        point = _newton_step(problem, point, penalty, tol, n_sweeps=1).point or point
    n_iter = min(len(penalties), max_iter)
    penalty = eta if not penalties else max(eta, _SOLVED_BELOW * penalties[0])
    lowered, hard = _LOWERED, False
    while n_iter < max_iter:
        if penalty <= eta:
            found = _settled(problem, point, eta, tol, max_iter - n_iter)
            return found.point, n_iter + found.n_iter
        enough = max(tol, _WAY_TOLERANCE * penalty * float(problem.scale.min()) ** 2)
        found = _settled(problem, point, penalty, enough, min(_MOST_WAY_STEPS, max_iter - n_iter))
        n_iter += found.n_iter
        hard = hard or found.hard
        lowered = max(lowered**2, _LOWERED_MOST) if hard and found.n_iter <= _FEW_STEPS else _LOWERED
        following = max(eta, lowered * penalty)
        point = _predicted(problem, found.point, penalty, following) if hard else found.point
        penalty = following
    return point, n_iter


class _Settled(NamedTuple):
    """Where some Newton steps led, and whether sweeps alone would not have gone there."""

    point: _Point
    n_iter: int
    hard: bool


def _settled(problem: _Problem, point: _Point, eta: float, tol: float, max_iter: int) -> _Settled:
    """Newton steps until the optimality conditions hold, or nothing is left to gain."""
    variances = np.diag(problem.S)
    highest = _OVERSHOOT * (1.0 + len(variances) * float(variances.max()) / eta)
    hard = False
    for n_iter in range(max_iter):
        step = _newton_step(problem, point, eta, tol, n_sweeps=_SWEEPS)
        hard = hard or step.hard
        if step.point is None:
            return _Settled(point, n_iter, hard)
        point = step.point
        if np.any(np.diag(point.A) * variances > highest):
            raise UnboundedError
    return _Settled(point, max_iter, hard)


class _Step(NamedTuple):
    """The next point, None where the optimality conditions hold or round-off leaves nothing to gain.

    ``hard`` is whether sweeps were too slow to minimise the model.
    """

    point: _Point | None
    hard: bool


def _newton_step(problem: _Problem, point: _Point, eta: float, tol: float, n_sweeps: int) -> _Step:
    """One step: at most ``n_sweeps`` over the model, more of them where they are cheap, unless it is one alone."""
    S, allowed, scale = problem
    A, W, _ = point
    residual, counts = conditions(S, allowed, scale, A, W, eta)
    if residual <= tol:
        return _Step(None, False)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], np.int64)
    current, gradient = np.empty(len(indices)), np.empty(len(indices))
    gather_free(S, allowed, A, W, eta, indptr, indices, current, gradient)
    twins = transposed_positions(indptr, indices)
    direction: FloatArray = np.zeros(len(indices))
    goal = max(min(_FORCING, residual) * residual, _FORCING * tol)
    if n_sweeps > 1:
        n_sweeps = max(n_sweeps, min(_MOST_SWEEPS, int(_SWEEP_OPERATIONS / (len(S) * len(indices)))))
    n_refinements, before = 0, np.inf
    n_entries = (len(indices) + len(S)) // 2
    n_others = len(S) * (len(S) + 1) // 2 - n_entries
    worth = max(1.0, min(n_entries, n_others) ** 2 / (_ENTRIES_A_SWEEP * len(S)))
    for sweep in range(1, n_sweeps + 1):
        n_passes = min(_FIRST_PASSES + sweep, _MOST_PASSES)
        left = descend(indptr, indices, twins, current, gradient, W, eta, scale, n_passes, direction)
        if left <= goal or n_refinements == _MOST_REFINEMENTS:
            break
        if sweep % _SWEEPS_BETWEEN_LOOKS == 0:
            # What as many sweeps as a factor costs would leave at the present rate.
            expected = left * min(1.0, left / before) ** (worth / _SWEEPS_BETWEEN_LOOKS)
            before = left
            refined = _refined(problem, point, indptr, indices, direction, eta) if expected > goal else None
            if refined is not None:
                direction, before = refined, np.inf
                n_refinements += 1
    hard = n_refinements > 0 or sweep > _EASY_SWEEPS
    promised = float(gradient @ direction)
    promised += eta * off_diagonal_sum(indptr, indices, current + direction)
    promised -= eta * off_diagonal_sum(indptr, indices, current)
    value, rounding = _objective(problem, point, eta), _rounding(point)
    step = 1.0
    while step > _SHORTEST_STEP:
        trial = A.copy()
        scatter(indptr, indices, current + step * direction, trial)
        factor = _factor(trial)
        if factor is not None:
            logdet = _logdet(factor)
            reached = penalised_fit(S, trial, eta) - logdet
            if reached <= value + _ARMIJO * step * promised + rounding:
                return _Step(_Point(trial, _inverse(factor), logdet), hard)
        step /= 2
    return _Step(None, hard)


def _refined(
    problem: _Problem, point: _Point, indptr: IntArray, indices: IntArray, direction: FloatArray, eta: float
) -> FloatArray | None:
    """A better minimiser of a step's model, among those with the same edges or fewer; None where that is too large."""
    S, _, _ = problem
    A, W, _ = point
    D = np.zeros_like(A)
    scatter(indptr, indices, direction, D)
    support = _Support.of(A + D, point)
    if support is None:
        return None
    rows, columns, signs, values = support[:4]

    def model(X: FloatArray) -> float:
        D = X - A
        quadratic = 0.5 * np.vdot(D, W @ D @ W)
        return float(np.vdot(S - W, D) + quadratic + eta * (np.abs(X).sum() - np.abs(np.diag(X)).sum()))

    aim = support.solve((W - S - W @ D @ W)[rows, columns] - eta * signs)
    reached = values + aim
    crossed = signs * reached < 0
    X = support.matrix(np.where(crossed, 0.0, reached))
    if crossed.any() and not model(X) < model(A + D):
        X = support.matrix(_walk(support, aim, eta))
    return np.asarray((X - A)[np.repeat(np.arange(len(A)), np.diff(indptr)), indices])


def _walk(support: _Support, aim: FloatArray, eta: float) -> FloatArray:
    """Minimise a step's model by an active-set method: entries that reach zero stay there until they gain by leaving.

    The model falls with every move. Held entries are constraints, whose multipliers come from a Schur complement, so
    that one factor serves all changes.
    """
    signs, values = support.signs.copy(), support.values
    held: list[int] = []
    responses: list[FloatArray] = []
    for _ in range(_MOST_CHANGES):
        target = support.values + aim
        multipliers: FloatArray = np.zeros(len(held))
        if held:
            together = np.stack(responses, axis=1)
            try:
                multipliers = np.linalg.solve(together[held], target[held])
            except np.linalg.LinAlgError:  # round-off: what there is to gain has been gained
                break
            target = target - together @ multipliers
        change = target - values
        change[held] = 0.0
        shares = np.full(len(values), np.inf)
        np.divide(-values, change, out=shares, where=signs * change < 0)
        first = int(np.argmin(shares))
        if shares[first] < 1.0:
            values = values + shares[first] * change
            values[first] = 0.0
            held.append(first)
            responses.append(support.solve(np.eye(1, len(values), first)[0]))
            continue
        values = values + change
        # Back to where it came from, or on to the other sign: by how much the slope exceeds the penalty.
        pull = signs[held] * multipliers
        gain = np.maximum(pull, -pull - 2.0 * eta)
        if not len(gain) or gain.max() <= 0:
            break
        leaving = int(np.argmax(gain))
        entry, response = held.pop(leaving), responses.pop(leaving)
        if pull[leaving] < 0:
            aim = aim + 2.0 * eta * signs[entry] * response
            signs[entry] = -signs[entry]
    return values


def _predicted(problem: _Problem, point: _Point, eta: float, following: float) -> _Point:
    """A point close to the solution for a smaller penalty, by its derivative with respect to ``1 / eta``."""
    support = _Support.of(point.A, point)
    if support is None:
        return point
    move = support.solve(eta * (eta / following - 1.0) * support.signs)
    share = 1.0
    while share > _SHORTEST_STEP:
        reached = support.values + share * move
        trial = _point(support.matrix(np.where(support.signs * reached < 0, 0.0, reached)))
        if trial is not None and _objective(problem, trial, following) < _objective(problem, point, following):
            return trial
        share /= 2
    return point


class _Support(NamedTuple):
    """The diagonal and the edges of a matrix, each once, and what solves ``(W D W)_ij = R_ij`` for D between them.

    Signs are zero on the diagonal. The factor is that of the curvature between the entries. Where fewer pairs have no
    edge, it is that of the inverse curvature between these, which R is continued to until ``D = A R A`` is zero there.
    """

    rows: IntArray
    columns: IntArray
    signs: FloatArray
    values: FloatArray
    A: FloatArray
    others: tuple[IntArray, IntArray] | None
    factor: FloatArray

    @classmethod
    def of(cls, X: FloatArray, point: _Point) -> _Support | None:
        """None where a factor is too large, or round-off makes it indefinite."""
        present = (X != 0) | np.eye(len(X), dtype=bool)
        rows, columns = np.nonzero(np.triu(present))
        first, second = np.nonzero(np.triu(~present))
        others = (first, second) if len(first) < len(rows) else None
        if others is None:
            first, second = rows, columns
        if len(first) > _MOST_ENTRIES:
            return None
        factor = np.empty((len(first), len(first)))
        curvature(point.W if others is None else point.A, first, second, factor)
        if len(factor):
            factor, failed = lapack.dpotrf(factor.T, lower=0, clean=0, overwrite_a=1)
            if failed:
                return None
        values = X[rows, columns]
        signs = np.where(rows == columns, 0.0, np.sign(values))
        return cls(rows, columns, signs, values, point.A, others, factor)

    def solve(self, slopes: FloatArray) -> FloatArray:
        """The entries of D where ``W D W`` has these."""
        if self.others is None:
            solution, _ = lapack.dpotrs(self.factor, slopes, lower=0)
            return np.asarray(np.where(self.signs == 0, 2.0 * solution, solution))
        D = self.A @ self.matrix(slopes) @ self.A
        if len(self.factor):
            continued, _ = lapack.dpotrs(self.factor, -D[self.others], lower=0)
            D += self.A @ _symmetric_of(len(D), *self.others, continued) @ self.A
        return np.asarray(D[self.rows, self.columns])

    def matrix(self, values: FloatArray) -> FloatArray:
        """The symmetric matrix with other values in the same places."""
        return _symmetric_of(len(self.A), self.rows, self.columns, values)


def _symmetric_of(n: int, rows: IntArray, columns: IntArray, values: FloatArray) -> FloatArray:
    out = np.zeros((n, n))
    out[rows, columns] = values
    out[columns, rows] = values
    return out


def _objective(problem: _Problem, point: _Point, eta: float) -> float:
    return float(penalised_fit(problem.S, point.A, eta)) - point.logdet


def _rounding(point: _Point) -> float:
    """Differences of objectives below this say nothing."""
    return 10 * float(np.finfo(np.float64).eps) * (len(point.A) + abs(point.logdet))


def _continuation(problem: _Problem, eta: float) -> list[float]:
    """Large penalties on the way to ``eta``: each step starts close to where it goes, and with few free entries."""
    n = len(problem.S)
    sizes = np.abs(_masked(problem.S, problem.allowed))
    np.fill_diagonal(sizes, 0.0)
    above = sizes[sizes > eta]  # each pair twice
    if len(above) <= 2 * n:
        return []
    penalties = [float(np.partition(above, -2 * n)[-2 * n])]
    last = max(eta, _SOLVED_BELOW * penalties[0])
    while penalties[-1] * _CONTINUATION > last:
        penalties.append(penalties[-1] * _CONTINUATION)
    return [penalty for penalty in penalties if penalty > last / _CONTINUATION**0.25]


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

r"""The Gaussian likelihood over precisions ``T = L + c I``, L the Laplacian of a weighted graph.

With an edge's cost :math:`u_e > 0` and the cost d of the ridge, the problem is

.. math:: \min_{w \ge 0,\, c > 0} \; -\ln|L(w) + c I| + \sum_e u_e w_e + d c .

It is convex, and it is D-optimal design in another dress. The slope of an edge is :math:`u_e - R_e`, where
:math:`R_e = \Sigma_{ii} + \Sigma_{jj} - 2 \Sigma_{ij}` is its effective resistance and :math:`\Sigma = T^{-1}`; the
slope of the ridge is :math:`d - \mathrm{tr}\,\Sigma`. Any multiple of :math:`\Sigma` whose resistances are within the
costs is a point of the dual problem, so that with :math:`s = \max(R_e / u_e, \mathrm{tr}\,\Sigma / d)`

.. math:: \sum_e u_e w_e + d c - n + n \ln s

bounds how far a point is from the optimum. The solver is a projected Newton method on the edges that carry weight and
those that ask for it most, each step a bounded quadratic problem solved by conjugate gradients to as many digits as the
step deserves. Read :mod:`lgmd.linalg.sampled_laplacian_likelihood` for graphs too large for a dense inverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import minimum_spanning_tree

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.linalg.threads import blas_threads_worth, even_blocks, map_blocks
from lgmd.linalg.tiles import reflect_upper

__all__ = ["LaplacianSolution", "effective_resistances", "fit_laplacian", "laplacian_with_ridge"]

# Below this Newton decrement a whole step lowers the objective, because -ln|T| is self-concordant.
_SAFE_DECREMENT = 0.3

# A quadratic problem is solved until its residual is this share of the present one: the first where the support is
# still growing, the second where Newton steps converge; in the end it falls with the residual itself.
_COARSE, _FINE = 0.1, 0.01
_SETTLED = 0.05

# Products with the Hessian for one step.
_MOST_PRODUCTS = 500

# Steps are in single precision while no resistance is a smaller share than this of the variances that it is the
# difference of.
_CANCELLED = 1e-3

# A weight is a number of the graph, not of rounding, if it costs more than this share of one node's part.
_NEGLIGIBLE = 1e-12


class LaplacianSolution(NamedTuple):
    """A minimiser with the proof of how good it is."""

    weights: FloatArray
    ridge: float
    logdet: float
    objective: float
    gap: float
    """No point is lower than ``objective - gap``."""
    residual: float
    """Largest relative violation of the optimality conditions: of an edge ``R_e <= u_e``, with equality where it
    carries weight, of the ridge ``tr T^-1 = d``."""
    n_iter: int
    converged: bool


def fit_laplacian(
    n: int,
    rows: IntArray,
    columns: IntArray,
    costs: FloatArray,
    ridge_cost: float,
    *,
    start: tuple[FloatArray, float] | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> LaplacianSolution:
    """Minimise the penalised negative log-likelihood over weights and ridge.

    Parameters
    ----------
    n : int
        Number of nodes.
    rows, columns : ndarray of int, shape (m,)
        Pairs ``rows < columns`` that may be joined, each once, sorted by row and then by column.
    costs : ndarray of shape (m,)
        Cost u of each pair, positive.
    ridge_cost : float
        Cost d of the ridge, positive.
    start : tuple of ndarray of shape (m,) and float, optional
        Weights and ridge to start from, at any common scale. Without it the start is the cheapest spanning forest,
        which is exact on its own edges as the ridge vanishes.
    tol : float, default=1e-6
        Stop where the duality gap is below ``tol`` a node and no optimality condition is violated by more than
        ``tol``, relative to its cost.
    max_iter : int, default=100
        Most Newton steps.

    Notes
    -----
    A step costs one dense Cholesky inverse, ``O(n^3)``, and some tens of products with the Hessian, ``O(n)`` for each
    edge that carries weight. Memory: three n x n arrays and five numbers a pair.
    """
    # At unit cost of the ridge a node, resistances, weights and ridge are all of order one.
    scale = ridge_cost / n
    costs = np.asarray(costs, dtype=np.float64) / scale
    with blas_threads_worth(float(n) ** 3):
        state = _start(n, rows, columns, costs, start, scale)
        solution = _newton(state, rows, columns, costs, tol, max_iter)
    shift = n * np.log(scale)
    return solution._replace(
        weights=solution.weights / scale,
        ridge=solution.ridge / scale,
        logdet=solution.logdet - shift,
        objective=solution.objective + shift,
    )


class _State(NamedTuple):
    """A point with the inverse of its matrix."""

    weights: FloatArray
    ridge: float
    logdet: float
    covariance: FloatArray


def _start(
    n: int,
    rows: IntArray,
    columns: IntArray,
    costs: FloatArray,
    start: tuple[FloatArray, float] | None,
    scale: float,
) -> _State:
    if start is not None and np.any(start[0] > 0):
        weights: FloatArray = np.asarray(start[0], dtype=np.float64) * scale
        ridge = start[1] * scale
    else:
        weights, ridge = _cheapest_forest(n, rows, columns, costs), 0.5
    while True:
        # Along a ray the minimiser is known: the costs then sum to n.
        best = n / (float(costs @ weights) + n * ridge)
        weights, ridge = weights * best, ridge * best
        try:
            logdet, covariance = _invert(laplacian_with_ridge(n, rows, columns, weights, ridge))
        except np.linalg.LinAlgError:  # next to the weights the ridge is lost to round-off
            ridge = max(10.0 * ridge, float(np.finfo(np.float64).eps * weights.max()))
            continue
        return _State(weights, ridge, logdet, covariance)


def _cheapest_forest(n: int, rows: IntArray, columns: IntArray, costs: FloatArray) -> FloatArray:
    """Weights of the cheapest spanning forest among the pairs that a graph without edges would want to join."""
    weights = np.zeros(len(costs))
    wanted = np.flatnonzero(costs < 2.0)
    if not len(wanted):
        return weights
    joined = scipy.sparse.csr_matrix((costs[wanted], (rows[wanted], columns[wanted])), shape=(n, n))
    forest = minimum_spanning_tree(joined).tocoo()
    chosen = np.searchsorted(n * rows.astype(np.int64) + columns, n * forest.row.astype(np.int64) + forest.col)
    weights[chosen] = 1.0 / costs[chosen] - 0.5
    return weights


def _newton(
    state: _State, rows: IntArray, columns: IntArray, costs: FloatArray, tol: float, max_iter: int
) -> LaplacianSolution:
    n = len(state.covariance)
    precision: type[np.floating] = np.float32  # of the step alone; slopes are always double
    previous = np.inf
    n_iter = 0
    while True:
        weights, ridge, logdet, covariance = state
        resistances = effective_resistances(covariance, rows, columns)
        trace = float(np.trace(covariance))
        ratios = resistances / costs
        spent = float(costs @ weights) + n * ridge
        worst_ratio = max(float(ratios.max(initial=0.0)), trace / n)
        gap = spent - n + n * np.log(worst_ratio)
        carrying = weights > 0
        residual = max(worst_ratio - 1.0, abs(trace / n - 1.0), float(np.abs(ratios[carrying] - 1.0).max(initial=0.0)))
        converged = gap <= tol * n and residual <= tol
        if converged or n_iter >= max_iter:
            break
        if residual > previous / 2 and residual < _SETTLED:
            precision = np.float64
        previous = residual
        working = _working_set(n, carrying, ratios)
        if resistances[working].min(initial=np.inf) < _CANCELLED * float(covariance.diagonal().max()):
            precision = np.float64
        step = _newton_step(
            covariance.astype(precision),
            rows[working],
            columns[working],
            weights[working],
            ridge,
            costs[working],
            resistances[working],
            trace,
            max(_forcing(residual) * residual, 0.1 * tol),
        )
        n_iter += 1
        following = _move(state, rows, columns, costs, working, step)
        if following is None:  # nothing is lower at working precision
            break
        state = following
    return LaplacianSolution(
        weights, ridge, logdet, spent - logdet, max(float(gap), 0.0), residual, n_iter, bool(converged)
    )


def _forcing(residual: float) -> float:
    return min(_FINE, residual) if residual < _SETTLED else _COARSE


def _working_set(n: int, carrying: Array, ratios: FloatArray) -> IntArray:
    """Pairs that carry weight, and those that ask for it most: no more than make the set half as large again."""
    asking = np.flatnonzero(~carrying & (ratios > 1.0))
    room = max(n, int(np.count_nonzero(carrying)) // 2)
    if len(asking) > room:
        asking = asking[np.argpartition(-ratios[asking], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(carrying), asking]))


class _Step(NamedTuple):
    weights: FloatArray
    ridge: float
    slope: float
    decrement: float


def _newton_step(
    covariance: FloatArray,
    rows: IntArray,
    columns: IntArray,
    weights: FloatArray,
    ridge: float,
    costs: FloatArray,
    resistances: FloatArray,
    trace: float,
    tol: float,
) -> _Step:
    """Minimise the second-order model over weights that stay non-negative."""
    n, m = len(covariance), len(rows)
    # In units of the root of its curvature every variable has the same one: R_e^2 for an edge, |Sigma|^2 for the ridge.
    # A resistance far below the variances may be lost to round-off.
    smallest = float(np.finfo(covariance.dtype).eps) * float(covariance.diagonal().max())
    units = np.append(np.maximum(resistances, smallest), np.linalg.norm(covariance))
    slopes = np.append(costs - resistances, n - trace)
    lower = np.append(-weights, -0.9 * ridge) * units
    tolerances = tol * np.append(costs, n) / units
    scaled, product = _bounded_quadratic(
        covariance, rows, columns, units, slopes / units, lower, tolerances, _MOST_PRODUCTS
    )
    step = scaled / units
    decrement = float(np.sqrt(max(float(scaled @ product), 0.0)))
    return _Step(step[:m], float(step[m]), float(slopes @ step), decrement)


def _move(
    state: _State, rows: IntArray, columns: IntArray, costs: FloatArray, working: IntArray, step: _Step
) -> _State | None:
    """The furthest of the points at 1, 1/2, 1/4 ... of the step that lowers the objective; None where none does."""
    n = len(state.covariance)
    before = float(costs @ state.weights) + n * state.ridge - state.logdet
    length = 1.0
    while length > 1e-10:
        weights = state.weights.copy()
        moved = weights[working] + length * step.weights
        weights[working] = np.where(moved * costs[working] > _NEGLIGIBLE, moved, 0.0)
        ridge = state.ridge + length * step.ridge
        try:
            logdet, covariance = _invert(laplacian_with_ridge(n, rows, columns, weights, ridge))
        except np.linalg.LinAlgError:
            length /= 2
            continue
        objective = float(costs @ weights) + n * ridge - logdet
        if length * step.decrement < _SAFE_DECREMENT or objective <= before + 1e-4 * length * step.slope:
            return _State(weights, ridge, logdet, covariance)
        length /= 2
    return None


def laplacian_with_ridge(n: int, rows: IntArray, columns: IntArray, weights: FloatArray, ridge: float) -> FloatArray:
    """``L(w) + c I`` as a dense array; of pairs without weight nothing is written."""
    edges = np.flatnonzero(weights)
    i, j, w = rows[edges], columns[edges], weights[edges]
    matrix = np.zeros((n, n))
    matrix[i, j] = -w
    matrix[j, i] = -w
    matrix[np.diag_indices(n)] = np.bincount(i, w, n) + np.bincount(j, w, n) + ridge
    return matrix


def effective_resistances(covariance: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """``Sigma_ii + Sigma_jj - 2 Sigma_ij`` of each pair."""
    out = np.empty(len(rows))
    if len(rows):
        map_blocks(
            lambda start, stop: _resistances(start, stop, covariance, rows, columns, out),
            even_blocks(len(rows)),
            work=4.0 * len(rows),
        )
    return out


def _invert(matrix: FloatArray) -> tuple[float, FloatArray]:
    """Log-determinant and inverse of a symmetric positive definite matrix, which is overwritten."""
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    logdet = 2.0 * float(np.log(np.diag(factor)).sum())
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = inverse.T
    reflect_upper(inverse, False)
    return logdet, inverse


@numba.njit(nogil=True, cache=True)
def _resistances(start, stop, covariance, rows, columns, out):  # type: ignore[no-untyped-def]
    for e in range(start, stop):
        i, j = rows[e], columns[e]
        out[e] = covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j]


@numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, cache=True)
def _hessian_product(covariance, rows, columns, units, vector, room, out):  # type: ignore[no-untyped-def]
    """Curvature along the edges and the ridge (last) of the direction ``D = L(v) + g I``: ``b_e' S D S b_e``."""
    n, m = len(covariance), len(rows)
    kind = covariance.dtype.type
    step = kind(vector[m] / units[m])
    for i in range(n):
        for k in range(n):
            room[i, k] = step * covariance[i, k]
    for e in range(m):
        if vector[e] != 0.0:
            step = kind(vector[e] / units[e])
            left, right = covariance[rows[e]], covariance[columns[e]]
            to_left, to_right = room[rows[e]], room[columns[e]]
            for k in range(n):
                change = step * (left[k] - right[k])
                to_left[k] += change
                to_right[k] -= change
    reflect_upper(room, True)
    for e in range(m):
        left, right = covariance[rows[e]], covariance[columns[e]]
        of_left, of_right = room[rows[e]], room[columns[e]]
        total = kind(0)
        for k in range(n):
            total += (left[k] - right[k]) * (of_left[k] - of_right[k])
        out[e] = total / units[e]
    trace = 0.0
    for i in range(n):
        total = kind(0)
        for k in range(n):
            total += covariance[i, k] * room[i, k]
        trace += total
    out[m] = trace / units[m]


@numba.njit(nogil=True, cache=True)
def _bounded_quadratic(covariance, rows, columns, units, linear, lower, tolerances, most_products):  # type: ignore[no-untyped-def]
    """Minimise ``linear'x + x'Hx/2`` over ``x >= lower``, from zero, by conjugate gradients on the free variables.

    A step that leaves the bounds is projected onto them and the directions start anew; they also do once the variables
    held at a bound want to leave it more than the free ones want to move. Returns x and Hx.
    """
    m = len(linear)
    room = np.empty_like(covariance)
    x, slope = np.zeros(m), linear.copy()
    direction, product = np.zeros(m), np.zeros(m)
    held = np.zeros(m, np.bool_)
    value = 0.0
    n_products = 0
    while n_products < most_products:
        squares, done = 0.0, True
        for e in range(m):
            held[e] = x[e] <= lower[e] and slope[e] >= 0.0
            direction[e] = 0.0 if held[e] else -slope[e]
            squares += direction[e] ** 2
            done = done and abs(direction[e]) <= tolerances[e]
        if done:
            break
        while n_products < most_products:
            _hessian_product(covariance, rows, columns, units, direction, room, product)
            n_products += 1
            curvature = np.dot(direction, product)
            if curvature <= 0.0:  # round-off: what there is to gain has been gained
                return x, slope - linear
            length = squares / curvature
            longest = length
            for e in range(m):
                if x[e] + length * direction[e] < lower[e]:
                    longest = min(longest, (lower[e] - x[e]) / direction[e])
            if longest < length:
                projected = np.maximum(x + length * direction, lower)
                _hessian_product(covariance, rows, columns, units, projected, room, product)
                n_products += 1
                new_value = np.dot(projected, linear) + 0.5 * np.dot(projected, product)
                if new_value >= value:
                    projected = np.maximum(x + longest * direction, lower)
                    _hessian_product(covariance, rows, columns, units, projected, room, product)
                    n_products += 1
                    new_value = np.dot(projected, linear) + 0.5 * np.dot(projected, product)
                x, slope, value = projected, linear + product, new_value
                break
            new_squares, wanting, done = 0.0, 0.0, True
            for e in range(m):
                x[e] += length * direction[e]
                slope[e] += length * product[e]
                if not held[e]:
                    new_squares += slope[e] ** 2
                    done = done and abs(slope[e]) <= tolerances[e]
                elif slope[e] < 0.0:
                    wanting += slope[e] ** 2
            value -= 0.5 * length * squares
            if done or wanting > new_squares:
                break
            turn = new_squares / squares
            squares = new_squares
            for e in range(m):
                direction[e] = 0.0 if held[e] else turn * direction[e] - slope[e]
    return x, slope - linear

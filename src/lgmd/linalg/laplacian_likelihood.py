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

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg.laplacian_kernels import bounded_quadratic, hessian_product
from lgmd.linalg.threads import blas_threads_worth, even_blocks, map_blocks
from lgmd.linalg.tiles import reflect_upper

__all__ = ["LaplacianSolution", "effective_resistances", "fit_laplacian", "laplacian_with_ridge"]

# Below this Newton decrement a whole step lowers the objective, because -ln|T| is self-concordant.
_SAFE_DECREMENT = 0.3

# A quadratic problem is solved until its residual is this share of the present one: the first where the support is
# still growing, the second where Newton steps converge; in the end it falls with the residual itself.
_COARSE, _FINE = 0.1, 0.01
_SETTLED = 0.05

# In the end a share of the tolerance is enough; the rest is for what the quadratic problem leaves out.
_ENOUGH = 0.3

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
    """A bound on the largest relative violation of the optimality conditions: of an edge ``R_e <= u_e``, with equality
    where it carries weight, of the ridge ``tr T^-1 = d``."""
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
        state = _start(n, rows, columns, costs, start)
        solution = _newton(state, rows, columns, costs, tol, max_iter)
    shift = n * np.log(scale)
    return solution._replace(
        weights=solution.weights / scale,
        ridge=solution.ridge / scale,
        logdet=solution.logdet - shift,
        objective=solution.objective + shift,
    )


class _State(NamedTuple):
    """A point with the inverse of its matrix; ``edges`` are the pairs that carry weight, in their order."""

    edges: IntArray
    weights: FloatArray
    ridge: float
    logdet: float
    covariance: FloatArray

    def spent(self, costs: FloatArray) -> float:
        """What weights and ridge cost; n at the best scale."""
        return float(costs[self.edges] @ self.weights) + len(self.covariance) * self.ridge


def _start(
    n: int, rows: IntArray, columns: IntArray, costs: FloatArray, start: tuple[FloatArray, float] | None
) -> _State:
    edges: IntArray = np.empty(0, dtype=np.int64) if start is None else np.flatnonzero(start[0] > 0)
    if start is None or not len(edges):
        start = _cheapest_forest(n, rows, columns, costs), 0.5
        edges = np.flatnonzero(start[0] > 0)
    weights: FloatArray = np.asarray(start[0][edges], dtype=np.float64)
    ridge = start[1]
    while True:
        # Along a ray the minimiser is known: the costs then sum to n.
        best = n / (float(costs[edges] @ weights) + n * ridge)
        weights, ridge = weights * best, ridge * best
        try:
            logdet, covariance = _invert(laplacian_with_ridge(n, rows[edges], columns[edges], weights, ridge))
        except np.linalg.LinAlgError:  # next to the weights the ridge is lost to round-off
            ridge = max(10.0 * ridge, float(np.finfo(np.float64).eps * weights.max()))
            continue
        return _State(edges, weights, ridge, logdet, covariance)


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


class _Conditions(NamedTuple):
    """How far a point is from the optimum."""

    ratios: FloatArray
    """Resistance of each pair as a share of its cost: at most one at the optimum, and one where there is weight."""
    trace: float
    gap: float
    residual: float

    def met(self, n: int, tol: float) -> bool:
        return self.gap <= tol * n and self.residual <= tol


def _conditions(state: _State, rows: IntArray, columns: IntArray, costs: FloatArray) -> _Conditions:
    n = len(state.covariance)
    ratios = effective_resistances(state.covariance, rows, columns)
    ratios /= costs
    trace = float(np.trace(state.covariance))
    worst = max(float(ratios.max(initial=0.0)), trace / n)
    of_edges = float(np.abs(ratios[state.edges] - 1.0).max(initial=0.0))
    gap = state.spent(costs) - n + n * float(np.log(worst))
    return _Conditions(ratios, trace, gap, max(worst - 1.0, abs(trace / n - 1.0), of_edges))


def _newton(
    state: _State, rows: IntArray, columns: IntArray, costs: FloatArray, tol: float, max_iter: int
) -> LaplacianSolution:
    n = len(state.covariance)
    precision: type[np.floating] = np.float32  # of the step alone; slopes are always double
    previous = np.inf
    n_iter = 0
    while True:
        now = _conditions(state, rows, columns, costs)
        if now.met(n, tol) or n_iter >= max_iter:
            break
        if now.residual > previous / 2 and now.residual < _SETTLED:
            precision = np.float64
        previous = now.residual
        working = _working_set(n, state.edges, now)
        resistances = now.ratios[working] * costs[working]
        if resistances.min(initial=np.inf) < _CANCELLED * float(state.covariance.diagonal().max()):
            precision = np.float64
        weights = np.zeros(len(working))
        weights[np.searchsorted(working, state.edges)] = state.weights
        step = _newton_step(
            state.covariance.astype(precision),
            rows[working],
            columns[working],
            weights,
            state.ridge,
            costs[working],
            resistances,
            now.trace,
            max(_forcing(now.residual) * now.residual, _ENOUGH * tol),
            now.residual < _SETTLED and precision is np.float32,  # in double it is bounds that are in the way
        )
        n_iter += 1
        if step.decrement**2 <= tol:
            there = _foreseen(state, now, rows, columns, costs, working, weights, step)
            if there is not None and there[1].met(n, tol):
                state, now = there
                break
        following = _move(state, rows, columns, costs, working, weights, step)
        if following is None:  # nothing is lower at working precision
            break
        state = following
    all_weights = np.zeros(len(costs))
    all_weights[state.edges] = state.weights
    return LaplacianSolution(
        all_weights,
        state.ridge,
        state.logdet,
        state.spent(costs) - state.logdet,
        max(now.gap, 0.0),
        now.residual,
        n_iter,
        now.met(n, tol),
    )


def _forcing(residual: float) -> float:
    return min(_FINE, residual) if residual < _SETTLED else _COARSE


def _working_set(n: int, edges: IntArray, now: _Conditions) -> IntArray:
    """Pairs that carry weight, and those that ask for it most: no more than make the set half as large again.

    Near the optimum a step changes shares by about as much as they are off, and pairs so near to asking that they may
    ask after it are let in too: left out, they would take another step.
    """
    asking = np.flatnonzero(now.ratios > (1.0 - now.residual if now.residual < _SETTLED else 1.0))
    carrying = np.zeros(len(now.ratios), dtype=bool)
    carrying[edges] = True
    asking = asking[~carrying[asking]]
    room = max(n, len(edges) // 2)
    if len(asking) > room:
        asking = asking[np.argpartition(-now.ratios[asking], room)[:room]]
    return np.sort(np.concatenate([edges, asking]))


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
    patient: bool,
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
    scaled, product = bounded_quadratic(
        covariance, rows, columns, units, slopes / units, lower, tolerances, _MOST_PRODUCTS, patient
    )
    step = scaled / units
    decrement = float(np.sqrt(max(float(scaled @ product), 0.0)))
    return _Step(step[:m], float(step[m]), float(slopes @ step), decrement)


def _moved(working: IntArray, costs: FloatArray, before: FloatArray, step: FloatArray) -> tuple[IntArray, FloatArray]:
    """Pairs that carry weight after a step, and how much."""
    weights = before + step
    carrying = weights * costs[working] > _NEGLIGIBLE
    return working[carrying], weights[carrying]


def _foreseen(
    state: _State,
    now: _Conditions,
    rows: IntArray,
    columns: IntArray,
    costs: FloatArray,
    working: IntArray,
    before: FloatArray,
    step: _Step,
) -> tuple[_State, _Conditions] | None:
    r"""The point a small step away, with bounds on its conditions that need no inverse but the present one.

    With D the change of T, and every eigenvalue of :math:`\Sigma D` within s of zero,

    .. math:: R_e - b_e' \Sigma D \Sigma b_e \le R_e^{new}
        \le R_e - b_e' \Sigma D \Sigma b_e + \frac{s^2}{1 - s} R_e

    and likewise for the trace, up to the round-off of the present inverse. Pairs that are further than s from asking
    cannot do so. None where s is not small.
    """
    n = len(state.covariance)
    edges, weights = _moved(working, costs, before, step.weights)
    ridge = state.ridge + step.ridge
    reach = 1.01 * step.decrement  # it was computed in single precision
    may_ask = now.ratios > 1.0 - reach
    may_ask[working] = True
    watched = np.flatnonzero(may_ask)
    change = np.zeros(len(watched) + 1)
    change[np.searchsorted(watched, edges)] = weights
    change[np.searchsorted(watched, state.edges)] -= state.weights
    change[-1] = step.ridge
    room, curvature = np.empty_like(state.covariance), np.empty_like(change)
    hessian_product(state.covariance, rows[watched], columns[watched], np.ones_like(change), change, room, curvature)
    squares = float(change @ curvature)
    if squares < 0.0:  # round-off
        return None
    first_order = float(np.trace(room))
    np.abs(room, out=room)
    size = min(np.sqrt(squares), float(room.sum(axis=0).max()), float(room.sum(axis=1).max()))
    if size > min(reach, _SAFE_DECREMENT):
        return None
    logdet = state.logdet + first_order - squares / 2
    if squares**1.5 > 10.0 * n * float(np.finfo(np.float64).eps):  # three times the next term can be as large
        try:
            logdet = _factor(laplacian_with_ridge(n, rows[edges], columns[edges], weights, ridge))[0]
        except np.linalg.LinAlgError:
            return None
    beyond = size**2 / (1.0 - size)
    ratios = np.append(now.ratios[watched], now.trace / n)
    # What is a small difference of variances loses as many digits as the weight that made it small has, and an inverse
    # adds up n of them.
    largest = weights.max(initial=0.0) * state.covariance.diagonal().max()
    round_off = n * float(np.finfo(np.float64).eps * largest)
    lowest = ratios - curvature / np.append(costs[watched], n) - round_off
    highest = lowest + beyond * ratios + 2.0 * round_off
    worst = max(float(highest.max()), 1.0)
    equal = np.append(np.searchsorted(watched, edges), len(watched))
    residual = max(worst - 1.0, 1.0 - float(lowest[equal].min()))
    following = _State(edges, weights, ridge, logdet, state.covariance)
    return following, now._replace(gap=following.spent(costs) - n + n * float(np.log(worst)), residual=residual)


def _move(
    state: _State,
    rows: IntArray,
    columns: IntArray,
    costs: FloatArray,
    working: IntArray,
    before: FloatArray,
    step: _Step,
) -> _State | None:
    """The furthest of the points at 1, 1/2, 1/4 ... of the step that lowers the objective; None where none does."""
    n = len(state.covariance)
    objective = state.spent(costs) - state.logdet
    length = 1.0
    while length > 1e-10:
        edges, weights = _moved(working, costs, before, length * step.weights)
        ridge = state.ridge + length * step.ridge
        try:
            logdet, covariance = _invert(laplacian_with_ridge(n, rows[edges], columns[edges], weights, ridge))
        except np.linalg.LinAlgError:
            length /= 2
            continue
        following = _State(edges, weights, ridge, logdet, covariance)
        allowed = objective + 1e-4 * length * step.slope
        if length * step.decrement < _SAFE_DECREMENT or following.spent(costs) - logdet <= allowed:
            return following
        length /= 2
    return None


def laplacian_with_ridge(n: int, rows: IntArray, columns: IntArray, weights: FloatArray, ridge: float) -> FloatArray:
    """``L(w) + c I`` as a dense array."""
    matrix = np.zeros((n, n))
    matrix[rows, columns] = -weights
    matrix[columns, rows] = -weights
    matrix[np.diag_indices(n)] = np.bincount(rows, weights, n) + np.bincount(columns, weights, n) + ridge
    return matrix


def effective_resistances(covariance: FloatArray, rows: IntArray, columns: IntArray, unit: float = 1.0) -> FloatArray:
    """``Sigma_ii + Sigma_jj - 2 Sigma_ij`` of each pair, with Sigma in the given unit."""
    out = np.empty(len(rows))
    if len(rows):
        map_blocks(
            lambda start, stop: _resistances(start, stop, covariance, rows, columns, 1.0 / unit, out),
            even_blocks(len(rows)),
            work=4.0 * len(rows),
        )
    return out


def _invert(matrix: FloatArray) -> tuple[float, FloatArray]:
    """Log-determinant and inverse of a symmetric positive definite matrix, which is overwritten."""
    logdet, factor = _factor(matrix)
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = inverse.T
    reflect_upper(inverse, False)
    return logdet, inverse


def _factor(matrix: FloatArray) -> tuple[float, FloatArray]:
    """Log-determinant and Cholesky factor of a symmetric positive definite matrix, which is overwritten."""
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return 2.0 * float(np.log(np.diag(factor)).sum()), factor


@numba.njit(nogil=True, cache=True)
def _resistances(start, stop, covariance, rows, columns, scale, out):  # type: ignore[no-untyped-def]
    for e in range(start, stop):
        i, j = rows[e], columns[e]
        out[e] = scale * covariance[i, i] + scale * covariance[j, j] - 2.0 * (scale * covariance[i, j])

r"""The graph of LGMD+: a precision ``T = L + c I`` with L the Laplacian of a graph without negative weights.

The problem is

.. math:: \max_{L, c} \; \ln|T| - \mathrm{tr}(S T) - \rho \|T\|_1, \qquad T = L + c I .

The norm of such a matrix is linear in the weights, :math:`\|T\|_1 = 4 \sum_e w_e + n c`, so with
:math:`z_{ij} = S_{ii} + S_{jj} - 2 S_{ij}` an edge costs :math:`z_{ij} + 4 \rho` and the ridge
:math:`\mathrm{tr} S + n \rho` a unit. Such a penalty shortens weights and does not make the graph sparse: what sparsity
there is comes from the sign of the weights, and a larger :math:`\rho` can add edges. ``sparse=True`` replaces the part
of the edges by a concave penalty, see :func:`laplacian_precision`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd._validation import check_flag, check_integer, check_real
from lgmd.exceptions import ConvergenceWarning, InvalidGraphError, InvalidParameterError
from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner, Side
from lgmd.graphs.candidates import candidate_pairs, chain, check_candidates
from lgmd.graphs.covariances import Units, as_covariance, refuse_indefinite
from lgmd.graphs.order import prefers_order
from lgmd.graphs.parameters import check_positive
from lgmd.linalg.cholesky import DENSE_LIMIT
from lgmd.linalg.laplacian_likelihood import LaplacianSolution, effective_resistances, fit_laplacian
from lgmd.linalg.logdet import log_determinant
from lgmd.linalg.nearest_vectors import nearest_pairs
from lgmd.linalg.sampled_laplacian_likelihood import fit_laplacian_by_sampling
from lgmd.linalg.threads import blas_threads_worth
from lgmd.observed import Observed

__all__ = ["EXACT_NODES", "LaplacianEstimate", "LaplacianGraph", "laplacian_precision"]

# The concave penalty in units of the ridge that a graph without edges has: where its slope is that of the plain one,
# and where it bends.
_SAME_SLOPE, _BEND = 0.5, 0.05

# Share of two variances below which the variance of their difference says no more than that they are nearly the same:
# single precision does not tell such a correlation from one, and weights of its inverse leave digits for the ridge.
_NEARLY_EQUAL = 1e-6

# Reweighted problems; they fall by less and less, and the graph hardly changes after the first ten.
_MOST_REWEIGHTINGS = 50

EXACT_NODES = 1500
"""Largest graph that a learner solves exactly: some seconds each time the graph is learned."""

# Effective columns of a factor from which on the penalty is the same, and the largest penalty with fewer.
_ENOUGH_COLUMNS, _LARGEST_RHO = 8.0, 0.5

# Gap a node, and largest relative violation, that a learner asks for: the factors change more than that.
_LEARNING_TOL = 1e-4
_LEARNING_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class LaplacianEstimate(GraphEstimate):
    """A precision that is a Laplacian and a ridge.

    Attributes
    ----------
    laplacian : csr_array of shape (n, n)
        Symmetric, rows sum to zero, no off-diagonal entry is positive.
    ridge : float
        ``precision = laplacian + ridge * I``.
    gap : float
        How far the objective can be from the optimum at most; with ``sparse=True`` that of the last reweighted problem.
        NaN where the graph was too large to know.
    """

    laplacian: SparseGraph
    ridge: float
    gap: float = float("nan")


def laplacian_precision(
    S: Any,
    rho: float,
    *,
    sparse: bool = False,
    candidates: Any = None,
    start: GraphEstimate | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> LaplacianEstimate:
    r"""Maximise :math:`\ln|T| - \mathrm{tr}(ST) - \rho \|T\|_1` over ``T = L + c I``, the problem of LGMD+.

    Parameters
    ----------
    S : array-like or sparse matrix of shape (n, n)
        Covariance matrix; may be singular. With candidates, only its entries there and on the diagonal matter.
    rho : float
        Penalty, positive, in the units of S.
    sparse : bool, default=False
        Replace :math:`4 \rho \sum_e w_e`, which is linear and leaves many weak edges, by the concave

        .. math:: 4 \rho\, (a + b)\, c_0 \sum_e \ln\Bigl(1 + \frac{w_e}{b\, c_0}\Bigr), \qquad
            c_0 = \frac{n}{\mathrm{tr} S + n \rho},\; a = \tfrac12,\; b = \tfrac1{20} .

        An edge of weight :math:`c_0 / 2`, half of the ridge of a graph without edges, is held back as by the plain
        penalty, a stronger one less, one that is about to appear eleven times as much. It is minimised by reweighting:
        from the plain solution on, each step solves the plain problem with the slopes of the present weights as
        penalties, and lowers the objective. That is a local minimum; the plain problem has one alone.

        Its slope vanishes as a weight grows, so that nothing would bound the edge of two variables that are the same.
        Where the slope does not hold it back, :math:`z_{ij} = S_{ii} + S_{jj} - 2 S_{ij}` is therefore taken to be no
        smaller than :math:`10^{-6} (S_{ii} + S_{jj})`, as if no correlation were closer to one than that.
    candidates : None, adjacency or callable, default=None
        Edges that may exist; see :mod:`lgmd.graphs.candidates`.
    start : GraphEstimate, optional
        Where to start from, such as the solution for a similar S. It changes the time and not the solution.
    tol : float, default=1e-6
        The duality gap is below ``tol`` a node, and every optimality condition holds to ``tol`` relative to its terms.
    max_iter : int, default=100
        Most Newton steps for one problem.

    Returns
    -------
    LaplacianEstimate
        ``objective`` is :math:`\mathrm{tr}(ST) - \ln|T|` plus ``penalty``, the one that was asked for and, for edges
        between nearly equal variables, what their :math:`z_{ij}` is taken to be more than it is.

    Notes
    -----
    Exact up to 5,000 nodes; ``O(n^3)`` a step, about ten steps. 150 nodes take 20 ms and 1,000 nodes one or two
    seconds.
    """
    rho = _checked_rho(rho)
    check_flag(sparse, "sparse")
    check_real(tol, "tol")
    check_integer(max_iter, "max_iter", minimum=1)
    covariance = as_covariance(S)
    n = covariance.shape[0]
    if n > DENSE_LIMIT:
        raise InvalidGraphError(
            f"S is {n:,} x {n:,}, but the exact solver inverts dense matrices and stops at {DENSE_LIMIT:,} nodes. Use "
            "LaplacianGraph, which learns large graphs from factors."
        )
    with blas_threads_worth(float(n) ** 3):
        dense = covariance if isinstance(covariance, np.ndarray) else covariance.toarray()
        units = Units(np.diag(dense))
        problem = _problem_of(dense, units, candidates, rho, sparse)
        point = None if start is None else problem.point(_checked_start(start, n))
        fit = _solve_sparse if sparse else _solve
        estimate = problem.estimate(*fit(problem, point, tol, max_iter))
    return replace(
        units.restored(estimate), laplacian=estimate.laplacian / units.size, ridge=estimate.ridge / units.size
    )


def _problem_of(dense: FloatArray, units: Units, candidates: Any, rho: float, sparse: bool) -> _Problem:
    n = len(dense)
    variances = np.diag(dense) / units.size
    rows, columns = _pairs(candidates, n)
    distances = effective_resistances(dense, rows, columns, units.size)
    _refuse_negative(distances, variances, rows, columns, units)
    if candidates is None:  # with candidates, what stands elsewhere does not matter
        refuse_indefinite(dense)
    return _Problem.of(rows, columns, distances, variances, units.penalty(rho), sparse)


def _checked_rho(rho: Any) -> float:
    return check_positive(rho, "rho", "without a penalty the likelihood of a singular covariance has no maximum")


def _pairs(candidates: Any, n: int) -> tuple[IntArray, IntArray]:
    pairs = candidate_pairs(candidates, n)
    return np.triu_indices(n, 1) if pairs is None else pairs


def _checked_start(start: Any, n: int) -> SparseGraph:
    if not isinstance(start, GraphEstimate):
        raise InvalidParameterError(
            f"start must be a GraphEstimate, such as an earlier result of laplacian_precision, but is a "
            f"{type(start).__name__}."
        )
    found = start.precision.shape[0]
    if found != n:
        raise InvalidGraphError(f"start is {found} x {found}, but S is {n} x {n}. Start from a graph of as many nodes.")
    return start.precision


def _refuse_negative(
    distances: FloatArray, variances: FloatArray, rows: IntArray, columns: IntArray, units: Units
) -> None:
    """Raise where the variance of a difference is below zero by more than round-off."""
    if len(distances):
        worst = int(np.argmin(distances))
        if distances[worst] < -1e-8 * float(variances.max()):
            raise InvalidGraphError(
                f"S is not positive semidefinite: the variance of variable {rows[worst]} minus variable "
                f"{columns[worst]} would be {distances[worst] * units.size:.6g}. Pass a covariance matrix."
            )


class _Problem(NamedTuple):
    """The data of one problem: costs of edges are ``distances + surcharges`` and the slope of the penalty, ``4 rho`` of
    the plain one; that of the ridge is ``trace + n rho``.
    """

    n: int
    rows: IntArray
    columns: IntArray
    distances: FloatArray
    surcharges: FloatArray
    """What distances of nearly equal variables, which may be below zero by round-off, are taken to be more."""
    trace: float
    rho: float
    sparse: bool

    @classmethod
    def of(
        cls,
        rows: IntArray,
        columns: IntArray,
        distances: FloatArray,
        variances: FloatArray,
        rho: float,
        sparse: bool,
    ) -> _Problem:
        slope = 0.0 if sparse else 4.0 * rho  # where weights are largest
        least = np.maximum(_NEARLY_EQUAL * (variances[rows] + variances[columns]) - slope, 0.0)
        surcharges = np.maximum(least - distances, 0.0)
        return cls(len(variances), rows, columns, distances, surcharges, float(variances.sum()), rho, sparse)

    @property
    def ridge_cost(self) -> float:
        return self.trace + self.n * self.rho

    @property
    def unit(self) -> float:
        """The ridge of the graph without edges."""
        return self.n / self.ridge_cost

    def point(self, precision: SparseGraph) -> tuple[FloatArray, float] | None:
        """Weights and ridge of a graph of any kind, at any scale; None where it has no edge of use."""
        entries = scipy.sparse.csr_array(precision)
        ends = np.repeat(np.arange(self.n), np.diff(entries.indptr)), entries.indices
        upper = ends[0] < ends[1]
        keys = self.n * self.rows + self.columns
        wanted = self.n * ends[0][upper] + ends[1][upper]
        position = np.searchsorted(keys, wanted)
        present = position < len(keys)
        present[present] = keys[position[present]] == wanted[present]
        of_edges = np.maximum(-entries.data[upper][present], 0.0)
        if not of_edges.any():
            return None
        weights = np.zeros(len(keys))
        weights[position[present]] = of_edges
        ridge = float(entries.data.sum()) / self.n
        smallest = 1e-6 * float(entries.diagonal().mean())
        return weights, max(ridge, smallest)

    def plain_costs(self) -> FloatArray:
        return self.distances + self.surcharges + 4.0 * self.rho

    def costs(self, weights: FloatArray) -> FloatArray:
        """Costs with the slopes that the concave penalty has at these weights."""
        slopes = 4.0 * self.rho * (_SAME_SLOPE + _BEND) / (_BEND + weights / self.unit)
        return self.distances + self.surcharges + slopes

    def penalty(self, weights: FloatArray, ridge: float) -> float:
        if self.sparse:
            shape = np.log1p(weights / (_BEND * self.unit)).sum()
            edges = 4.0 * self.rho * (_SAME_SLOPE + _BEND) * self.unit * float(shape)
        else:
            edges = 4.0 * self.rho * float(weights.sum())
        return edges + float(self.surcharges @ weights) + self.n * self.rho * ridge

    def estimate(
        self,
        weights: FloatArray,
        ridge: float,
        logdet: float | None,
        gap: float,
        converged: bool,
        *,
        unit_scale: bool = False,
    ) -> LaplacianEstimate:
        edges = np.flatnonzero(weights > 0)
        i, j = self.rows[edges], self.columns[edges]
        w = weights[edges]
        degrees: FloatArray = np.asarray(np.bincount(i, w, self.n) + np.bincount(j, w, self.n), dtype=np.float64)
        if unit_scale:
            scale = float(degrees.mean()) + ridge
            w, degrees, weights, ridge = w / scale, degrees / scale, weights / scale, ridge / scale
            logdet = None if logdet is None else logdet - self.n * float(np.log(scale))
        diagonal = np.arange(self.n)
        ends = (np.concatenate([i, j, diagonal]), np.concatenate([j, i, diagonal]))
        laplacian, precision = (
            scipy.sparse.csr_array((np.concatenate([-w, -w, of_nodes]), ends), shape=(self.n, self.n))
            for of_nodes in (degrees, degrees + ridge)
        )
        if logdet is None:
            logdet = log_determinant(precision).value
        laplacian.eliminate_zeros()
        fit = float(self.distances @ weights) + self.trace * ridge
        penalty = self.penalty(weights, ridge)
        return LaplacianEstimate(
            precision,
            logdet,
            fit - logdet + penalty,
            converged,
            penalty,
            laplacian=laplacian,
            ridge=ridge,
            gap=gap,
        )


_Fit = tuple[FloatArray, float, float | None, float, bool]


def _solve(problem: _Problem, point: tuple[FloatArray, float] | None, tol: float, max_iter: int) -> _Fit:
    """The plain problem, with a warning where it was not solved."""
    solution = _fit(problem, problem.plain_costs(), point, tol, max_iter)
    _warn_unless_converged(solution, problem.n, tol, max_iter)
    return solution.weights, solution.ridge, solution.logdet, solution.gap, solution.converged


def _solve_sparse(problem: _Problem, point: tuple[FloatArray, float] | None, tol: float, max_iter: int) -> _Fit:
    """Reweighting from the plain solution on until the objective stops falling."""
    solution = _fit(problem, problem.plain_costs(), point, tol, max_iter)
    objective = _sparse_objective(problem, solution)
    settled = False
    for _ in range(_MOST_REWEIGHTINGS):
        point = (solution.weights, solution.ridge)
        following = _fit(problem, problem.costs(solution.weights), point, tol, max_iter)
        lower = _sparse_objective(problem, following)
        settled = bool(objective - lower <= 10.0 * tol * problem.n)
        if lower <= objective:
            solution, objective = following, lower
        if settled:
            break
    _warn_unless_converged(solution, problem.n, tol, max_iter)
    if solution.converged and not settled:
        warnings.warn(
            f"laplacian_precision stopped after {_MOST_REWEIGHTINGS} reweightings; the last one lowered the objective "
            f"by more than {10.0 * tol * problem.n:.1e}. Raise tol, or accept: the objective fell in every step.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solution.weights, solution.ridge, solution.logdet, solution.gap, solution.converged and settled


def _fit(
    problem: _Problem,
    costs: FloatArray,
    point: tuple[FloatArray, float] | None,
    tol: float,
    max_iter: int,
) -> LaplacianSolution:
    return fit_laplacian(
        problem.n,
        problem.rows,
        problem.columns,
        costs,
        problem.ridge_cost,
        start=point,
        tol=tol,
        max_iter=max_iter,
    )


def _sparse_objective(problem: _Problem, solution: LaplacianSolution) -> float:
    fit = float(problem.distances @ solution.weights) + problem.trace * solution.ridge
    return fit - solution.logdet + problem.penalty(solution.weights, solution.ridge)


def _warn_unless_converged(solution: LaplacianSolution, n: int, tol: float, max_iter: int) -> None:
    if not solution.converged:
        warnings.warn(
            f"The Laplacian precision was not found to tol={tol:g}: after {solution.n_iter} Newton steps "
            f"(max_iter={max_iter}) the duality gap is {solution.gap:.3g}, {solution.gap / n:.3g} a node, and the "
            f"optimality conditions hold to {solution.residual:.3g}. Raise max_iter, tol or rho, or bring variables of "
            "very different variance to similar units.",
            ConvergenceWarning,
            stacklevel=4,
        )


@dataclass(frozen=True, eq=False)
class LaplacianGraph(GraphLearner):
    """LGMD+: the graph without negative weights that is most likely given the correlations of the factor's rows.

    Every learned graph is brought to unit scale.

    Up to 1,500 nodes the problem of :func:`laplacian_precision` is solved exactly (a gap of 1e-4 a node), from the last
    graph on. Larger graphs are an approximation in two ways. Edges are limited to pairs of which one is among the
    ``n_neighbors`` most correlated rows of the other, unless ``candidates`` are given, and effective resistances are
    sampled. On 1,000 nodes, where the exact solution is known (chain, blocks and no structure, 20 columns), the first
    costs up to 0.01 a node in the objective with 20 neighbours and the second up to 0.002. Memory is ``O(edges)``.

    Parameters
    ----------
    rho : float, default=None
        Penalty in units of correlations. None is 0.03 for the plain penalty and 0.12 for the sparse one. These are
        about where the Kullback-Leibler divergence to the true precision, with the learned one at its best scale, is
        smallest on average over a chain, blocks and rows without a graph (100 nodes, 20 columns). The plain penalty
        reaches 0.09 a node, the sparse one 0.07, with a third of the edges or fewer, and next to none where there is
        no graph; on blocks alone the plain one is closer, 0.09 against 0.14. With fewer than 8 columns, counted by what
        they say, it is ``(8 / columns) ** 2`` times as large, up to 0.5, unless there are ``candidates``: of 3 columns
        the divergence is then 0.37 a node instead of 0.45.
    sparse : bool, default=False
        Whether weak edges are left out; see :func:`laplacian_precision`.
    candidates : None, adjacency or callable, default=None
        Edges that may exist; see :mod:`lgmd.graphs.candidates`.
    n_neighbors : int, default=20
        Pairs looked at for each row where there are more than 1,500 nodes and no candidates.
    order : bool, default=True
        Whether the order of the rows is asked too: where rows that follow each other are alike, and edges between these
        alone explain columns that were held out better than edges between any two rows, there are no others. It is not
        asked where ``candidates`` are given.
    ask_entries : bool, default=True
        Whether the graph of a side is left out where entries of the table speak against it, or, where data is so thin
        that noise is held, not for it: by variational inference, in tables of 1,000 to a million entries. The
        likelihood finds a graph in any factor, and one that raises errors where rows do not depend on each other or the
        factor is not known well. Each time that entries are asked the graph is learned once more.
    """

    rounds: ClassVar[int] = 3

    rho: float | None = None
    sparse: bool = False
    candidates: Any = None
    n_neighbors: int = 20
    order: bool = True
    ask_entries: bool = True

    @property
    def may_be_left_out(self) -> bool:
        """Whether ``ask_entries`` says so."""
        return self.ask_entries

    def validate(self) -> None:
        """Check the parameters but candidates, which are checked against the table by :meth:`start`."""
        if self.rho is not None:
            _checked_rho(self.rho)
        check_flag(self.sparse, "sparse")
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        check_flag(self.order, "order")
        check_flag(self.ask_entries, "ask_entries")

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """No edge before a factor is known."""
        check_candidates(self.candidates, data.shape[0], side, data.row_names)
        return GraphEstimate.identity(data.shape[0])

    def learn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """Solve the problem for the factor's correlations, from the previous graph on.

        Of rows that are zero nothing is known, least of all that they are as far from all others. Unless candidates say
        where they may have edges, they have none.
        """
        if self.order and self.candidates is None:
            # Both are judged on some of the columns, with the penalty that all of them will have.
            anywhere = replace(self, order=False, rho=self._rho(moments))
            in_order = replace(self, order=False, candidates=chain)
            return (in_order if prefers_order(anywhere, in_order, moments, previous) else anywhere).learn(
                moments, previous
            )
        n = len(moments.mean)
        known = np.flatnonzero(np.any(moments.mean != 0, axis=1))
        if self.candidates is None and len(known) < n:
            if len(known) < 2:
                return GraphEstimate.identity(n)
            before = replace(previous, precision=scipy.sparse.csr_array(previous.precision)[known][:, known])
            among_known = self.learn(moments.rows(known), before)
            # tr(SA) / n, by which this graph changes the factor's scale: the others then vary as known rows do now.
            scale = (among_known.objective + among_known.logdet - among_known.penalty) / len(known)
            return among_known.among(n, known, scale)
        problem = self._problem(moments)
        point = problem.point(previous.precision)
        if problem.n > EXACT_NODES:
            found = _sample(problem, point)
        else:
            exact = _solve_sparse if self.sparse else _solve
            found = exact(problem, point, _LEARNING_TOL, _LEARNING_STEPS)
        return problem.estimate(*found, unit_scale=True)

    def _problem(self, moments: FactorMoments) -> _Problem:
        n = len(moments.mean)
        pairs = candidate_pairs(self.candidates, n)
        if pairs is not None:
            correlations = moments.pair_correlations(*pairs)
        elif n <= EXACT_NODES:
            pairs = np.triu_indices(n, 1)
            correlations = moments.correlations(np.arange(n))[pairs]
        else:
            vectors = moments.correlation_vectors().astype(np.float32, copy=False)
            pairs = nearest_pairs(vectors, min(self.n_neighbors, n - 1))
            correlations = moments.pair_correlations(*pairs)
        rows, columns = pairs
        distances = np.maximum(2.0 - 2.0 * correlations, 0.0)
        return _Problem.of(rows, columns, distances, np.ones(n), self._rho(moments), self.sparse)

    def _rho(self, moments: FactorMoments) -> float:
        if self.rho is not None:
            return float(self.rho)
        rho = 0.12 if self.sparse else 0.03
        if self.candidates is None:
            # In few directions every row has neighbours by chance, and many rows to find them among.
            rho *= max(1.0, _ENOUGH_COLUMNS / max(moments.sample_size, 1.0)) ** 2
        return min(rho, _LARGEST_RHO)


def _sample(problem: _Problem, point: tuple[FloatArray, float] | None) -> _Fit:
    solution = fit_laplacian_by_sampling(
        problem.n,
        problem.rows,
        problem.columns,
        problem.plain_costs(),
        problem.ridge_cost,
        start=point,
        reweigh=problem.costs if problem.sparse else None,
    )
    return solution.weights, solution.ridge, None, float("nan"), True

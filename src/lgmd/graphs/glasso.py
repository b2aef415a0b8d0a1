"""The exact graphical lasso, of a covariance matrix and of a factor.

What connects the nodes is found here; ``lasso_components`` solves the components, read that next.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd._validation import as_symmetric, check_flag, check_integer
from lgmd.exceptions import ConvergenceWarning, InvalidGraphError, InvalidParameterError
from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner, Side
from lgmd.graphs.candidates import candidate_pairs, check_candidates
from lgmd.graphs.covariances import Units, as_covariance
from lgmd.graphs.laplacians import adjacency_of
from lgmd.graphs.lasso_components import LARGEST_EXACT, LassoProblem, LassoSolution, dense_block, solve_components
from lgmd.graphs.parameters import check_eta_or_density, check_finite, check_positive
from lgmd.linalg.pairs import Pairs, TooManyPairsError, pairs_above, strongest_pairs
from lgmd.observed import Observed

__all__ = ["GraphicalLassoGraph", "graphical_lasso"]

# A density never puts the threshold above this.
_LARGEST_ETA = 0.999

# A density never puts the threshold below this: without a penalty the likelihood of few columns has no maximum.
_SMALLEST_ETA = 0.01

# More edges than this are no sparse graph any more: a gigabyte.
_MOST_EDGES = 20_000_000

# The search for edges is in the precision of the factor, and what it finds is judged in double precision: so many units
# of round-off below the threshold it still has to be found.
_SEARCH_ROUNDING = 8

# Pairs whose vectors are multiplied at a time.
_PAIRS_AT_A_TIME = 500_000


def graphical_lasso(
    S: Any,
    eta: float,
    *,
    penalize_diagonal: bool = False,
    candidates: Any = None,
    start: Any = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> GraphEstimate:
    r"""The graphical lasso: a sparse precision from a covariance, by maximum penalised likelihood.

    Minimises :math:`\mathrm{tr}(SA) - \ln|A| + \eta \sum_{i \ne j} |A_{ij}|`. A singular S is no trouble: the penalty
    bounds the precision.

    Parameters
    ----------
    S : array-like or sparse matrix of shape (n, n)
        Covariance matrix. Its diagonal is positive; with ``penalize_diagonal`` zeros may stand there.
    eta : float
        Weight of the penalty, positive, in the units of S. From the largest :math:`|S_{ij}|` on there are no edges.
    penalize_diagonal : bool, default=False
        Add :math:`\eta \sum_i A_{ii}` to the objective, which bounds every eigenvalue of A by :math:`1 / \eta`.
        ``penalty`` of the result includes it.
    candidates : sparse matrix, array-like or callable, default=None
        Pairs that may become edges, see :mod:`lgmd.graphs.candidates`; all others are held at zero.
    start : GraphEstimate, array-like or sparse matrix of shape (n, n), default=None
        A precision close to the solution, such as that of a similar S or eta. The objective of the result is never
        above that of the start.
    tol : float, default=1e-6
        Every optimality condition holds up to ``tol * sqrt(S_ii S_jj)`` at the end: with :math:`W = A^{-1}`,
        :math:`W_{ii} = S_{ii}` (:math:`S_{ii} + \eta` where the diagonal is penalised),
        :math:`W_{ij} = S_{ij} + \eta \, \mathrm{sign} A_{ij}` on edges, and :math:`|W_{ij} - S_{ij}| \le \eta` on the
        other candidates.
    max_iter : int, default=100
        Most Newton steps on one component.

    Returns
    -------
    GraphEstimate
        ``converged`` is False, with a ``ConvergenceWarning`` that says how far the objective is from its minimum at
        most, where a component ran out of steps or has more than 5,000 nodes. Such a component gets the closed form of
        :func:`~lgmd.graphs.threshold_precision`.

    Notes
    -----
    A Newton step on a component of m nodes and e edges takes ``O(m^3)`` operations in LAPACK, and ``O(m e)`` a sweep of
    coordinate descent.
    """
    eta = _checked_penalty(eta)
    check_flag(penalize_diagonal, "penalize_diagonal")
    check_integer(max_iter, "max_iter", minimum=1)
    check_positive(tol, "tol")
    covariance = as_covariance(S, zero_variances=penalize_diagonal)
    n = covariance.shape[0]
    units = Units(covariance.diagonal(), eta if penalize_diagonal else 0.0)
    covariance, eta = covariance / units.size, units.penalty(eta)
    variances: FloatArray = covariance.diagonal()
    allowed = candidate_pairs(candidates, n)
    if penalize_diagonal:
        variances = variances + eta
    precision = _as_start(start, n)

    def block(nodes: IntArray) -> FloatArray:
        dense = (
            covariance[np.ix_(nodes, nodes)] if isinstance(covariance, np.ndarray) else dense_block(covariance, nodes)
        )
        np.fill_diagonal(dense, variances[nodes])
        return dense

    problem = LassoProblem(variances, _pairs_above(covariance, eta, allowed), eta, block, allowed)
    solution = solve_components(problem, None if precision is None else precision * units.size, tol, max_iter)
    if solution.unbounded is not None:
        smallest = float(np.linalg.eigvalsh(block(solution.unbounded))[0]) * units.size
        raise InvalidGraphError(
            f"S is not a covariance matrix, so that the objective has no minimum: between {len(solution.unbounded)} of "
            f"its variables it has the eigenvalue {smallest:.6g}. Covariances have none below zero."
        )
    _warn_of(solution, tol, max_iter)
    return units.restored(_estimate(solution, eta, penalize_diagonal))


@dataclass(frozen=True, eq=False)
class GraphicalLassoGraph(GraphLearner):
    r"""The graphical lasso on the correlations of the factor's rows.

    Give ``eta`` or ``density``, or neither. Marginal variances are one, so the graph is at unit scale. Each graph is
    the start for the next.

    Parameters
    ----------
    eta : float, default=None
        Weight of the penalty, on correlations: between 0 and 1. With ``penalize_diagonal`` in the units of
        :math:`S = XX^T / k`, and needed.
    density : float, default=None
        Share of all pairs whose correlation is above ``eta``, which is put where it leaves so many, but not below 0.01.
        These pairs decide which nodes are connected; of the edges there are usually somewhat fewer. With neither given
        it is 6 %, but no more than five edges a node on average.
    penalize_diagonal : bool, default=False
        Learn from :math:`S = XX^T / k` itself, without bringing rows to unit variance, and penalise the diagonal too.
        With ``inference="map"`` the graph step then minimises the very terms of the objective in which the graph
        stands, which falls in every step and is bounded: no precision exceeds :math:`1 / \eta`.
    candidates : sparse matrix, array-like or callable, default=None
        Pairs that may become edges, see :mod:`lgmd.graphs.candidates`. The cost of the search then grows with their
        number.

    Notes
    -----
    Components of more than 5,000 nodes get the closed form of :class:`~lgmd.graphs.ThresholdGraph`, with a warning that
    says how far from the minimum it is at most. With posterior covariances the search for components sees those of
    rows that the present graph joins.
    """

    rounds: ClassVar[int] = 3

    eta: float | None = None
    density: float | None = None
    penalize_diagonal: bool = False
    candidates: Any = None

    def validate(self) -> None:
        """Check that at most one of eta and density is given, and their ranges."""
        check_eta_or_density(self.eta, self.density)
        check_flag(self.penalize_diagonal, "penalize_diagonal")
        if self.penalize_diagonal:
            if self.eta is None:
                raise InvalidParameterError(
                    "penalize_diagonal=True needs eta: a density moves the penalty, and with it the objective that is "
                    "to fall."
                )
            _checked_penalty(self.eta)
        elif self.eta is not None and not 0 < check_finite(self.eta, "eta") < 1:
            raise InvalidParameterError(
                f"eta is a correlation and a penalty, so it must be between 0 and 1, but is {self.eta}."
            )

    @property
    def _eta(self) -> float | None:
        """In double precision, whatever it was given in."""
        return None if self.eta is None else float(self.eta)

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """No edge before a factor is known."""
        n = data.shape[0]
        check_candidates(self.candidates, n, side, data.row_names)
        identity = GraphEstimate.identity(n)
        if not self.penalize_diagonal or self._eta is None:
            return identity
        return GraphEstimate(identity.precision, 0.0, penalty=self._eta * n)

    def learn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """Stream the pairs of rows, keep the strong ones, solve each component that they form."""
        n = len(moments.mean)
        allowed = candidate_pairs(self.candidates, n)
        source: _Correlations | _SecondMoments
        if self.penalize_diagonal:
            assert self._eta is not None
            source = _SecondMoments(moments, self._eta)
        else:
            source = _Correlations(moments)
        pairs, values, eta = self._screen(source, allowed, previous)
        block: Callable[[IntArray], FloatArray] = source.block
        if allowed is not None:
            block = _known_pairs(source, allowed, values)
        vectors = source.vectors if moments.cross is None else None
        problem = LassoProblem(source.variances, pairs, eta, block, allowed, vectors)
        tol, max_iter = 1e-6, 100
        solution = solve_components(problem, previous.precision, tol, max_iter)
        _warn_of(solution, tol, max_iter)
        estimate = _estimate(solution, eta, self.penalize_diagonal)
        return self._not_above(previous, estimate, source, allowed) if self.penalize_diagonal else estimate

    def _screen(
        self, source: _Correlations | _SecondMoments, allowed: tuple[IntArray, IntArray] | None, previous: GraphEstimate
    ) -> tuple[Pairs, FloatArray, float]:
        """The pairs above the threshold, the values of all pairs that were looked at, and the threshold."""
        n = len(source.variances)
        n_pairs = n * (n - 1) // 2
        count = min(round(0.06 * n_pairs), 5 * n // 2) if self.density is None else round(self.density * n_pairs)
        if allowed is not None:
            rows, columns = allowed
        else:
            if self._eta is None:
                found = strongest_pairs(source.vectors, count + 1)
            else:
                rounding = _SEARCH_ROUNDING * float(np.finfo(source.vectors.dtype).eps) * float(source.variances.max())
                try:
                    found = pairs_above(source.vectors, max(0.0, self._eta - rounding), at_most=_MOST_EDGES)
                except TooManyPairsError:
                    raise InvalidParameterError(
                        f"eta={self.eta} joins more than {_MOST_EDGES:,} of the {n_pairs:,} pairs of {n:,} nodes, too "
                        "many for a sparse graph. Raise eta, or give density instead."
                    ) from None
            rows, columns = found.rows, found.columns
            if source.moments.cross is not None:
                rows, columns = _with_edges(rows, columns, previous.precision)
        values = _in_parts(source.pairs, rows, columns)
        if self._eta is not None:
            eta = self._eta
        elif len(values) > count:
            # The first pair left out marks the threshold.
            first_left_out = float(-np.partition(-np.abs(values), count)[count])
            eta = min(max(first_left_out, _SMALLEST_ETA), _LARGEST_ETA)
        else:
            eta = _SMALLEST_ETA
        return Pairs(rows, columns, values).take(np.flatnonzero(np.abs(values) > eta)), values, eta

    def _not_above(
        self,
        previous: GraphEstimate,
        estimate: GraphEstimate,
        source: _Correlations | _SecondMoments,
        allowed: tuple[IntArray, IntArray] | None,
    ) -> GraphEstimate:
        """The new graph, or the previous one where it is still the better one."""
        assert self._eta is not None
        upper = scipy.sparse.triu(previous.precision, k=1).tocoo()
        rows, columns = (index.astype(np.int64) for index in upper.coords)
        if allowed is not None:
            n = len(source.variances)
            if not np.all(np.isin(rows * n + columns, allowed[0] * n + allowed[1])):
                return estimate
        diagonal = previous.precision.diagonal()
        fit = float(diagonal @ source.variances) + 2.0 * float(upper.data @ _in_parts(source.pairs, rows, columns))
        off_diagonal = 2.0 * self._eta * float(np.abs(upper.data).sum())
        objective = fit + off_diagonal - previous.logdet
        if objective >= estimate.objective:
            return estimate
        penalty = off_diagonal + self._eta * float(diagonal.sum())
        return GraphEstimate(previous.precision, previous.logdet, objective, estimate.converged, penalty)


class _Correlations:
    """Correlations of the factor's rows."""

    def __init__(self, moments: FactorMoments) -> None:
        self.moments = moments
        self.vectors = moments.correlation_vectors()
        self.variances: FloatArray = np.ones(len(moments.mean))

    def pairs(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.moments.pair_correlations(rows, columns)

    def block(self, nodes: IntArray) -> FloatArray:
        return self.moments.correlations(nodes)


class _SecondMoments:
    """``E[XX'] / k``, with the penalty of the diagonal on its diagonal."""

    def __init__(self, moments: FactorMoments, eta: float) -> None:
        self.moments = moments
        self._k = moments.mean.shape[1]
        self.vectors = np.asarray(moments.mean / np.sqrt(moments.mean.dtype.type(self._k)))
        self.variances: FloatArray = moments.squares() / self._k + eta

    def pairs(self, rows: IntArray, columns: IntArray) -> FloatArray:
        mean = self.moments.mean
        products = np.einsum("ij,ij->i", mean[rows], mean[columns], dtype=np.float64)
        return np.asarray((products + self.moments.cross_covariance(rows, columns)) / self._k)

    def block(self, nodes: IntArray) -> FloatArray:
        products = self.moments.block_moments(nodes)
        products /= self._k
        np.fill_diagonal(products, self.variances[nodes])
        return products


def _checked_penalty(eta: Any) -> float:
    return check_positive(eta, "eta", "without a penalty a singular covariance has no precision")


def _as_start(start: Any, n: int) -> SparseGraph | None:
    if start is None:
        return None
    precision = start.precision if isinstance(start, GraphEstimate) else as_symmetric(start, "start")
    if precision.shape[0] != n:
        nodes = precision.shape[0]
        raise InvalidGraphError(f"start is {nodes} x {nodes} but S is {n} x {n}. A start has the same nodes as S.")
    return precision


def _pairs_above(covariance: Any, eta: float, allowed: tuple[IntArray, IntArray] | None) -> Pairs:
    """The candidates above the threshold."""
    if allowed is not None:
        rows, columns = allowed
        values = covariance[rows, columns] if len(rows) else np.empty(0)  # of no entries scipy makes a sparse array
        pairs = Pairs(rows, columns, np.asarray(values, dtype=np.float64).ravel())
    elif isinstance(covariance, np.ndarray):
        rows, columns = np.nonzero(np.abs(covariance) > eta)
        pairs = Pairs(rows, columns, covariance[rows, columns])
    else:
        coo = covariance.tocoo()
        pairs = Pairs(coo.coords[0].astype(np.int64), coo.coords[1].astype(np.int64), coo.data)
    return pairs.take(np.flatnonzero((pairs.rows < pairs.columns) & (np.abs(pairs.values) > eta)))


def _known_pairs(
    source: _Correlations | _SecondMoments, allowed: tuple[IntArray, IntArray], values: FloatArray
) -> Callable[[IntArray], FloatArray]:
    """Blocks of S from its values on the candidates: what stands elsewhere does not matter."""
    rows, columns = allowed
    known = adjacency_of(len(source.variances), rows, columns, values)

    def block(nodes: IntArray) -> FloatArray:
        dense = dense_block(known, nodes)
        np.fill_diagonal(dense, source.variances[nodes])
        return dense

    return block


def _with_edges(rows: IntArray, columns: IntArray, precision: SparseGraph) -> tuple[IntArray, IntArray]:
    """The pairs and the edges of a graph, each once."""
    n = precision.shape[0]
    edges = scipy.sparse.triu(precision, k=1).tocoo()
    codes = np.union1d(rows * n + columns, edges.coords[0].astype(np.int64) * n + edges.coords[1])
    return codes // n, codes % n


def _in_parts(function: Callable[[IntArray, IntArray], FloatArray], rows: IntArray, columns: IntArray) -> FloatArray:
    """A function of pairs, for so many at a time that their vectors fit into memory."""
    starts = range(0, len(rows), _PAIRS_AT_A_TIME)
    parts = [function(rows[a : a + _PAIRS_AT_A_TIME], columns[a : a + _PAIRS_AT_A_TIME]) for a in starts]
    return np.concatenate([np.empty(0), *parts])


def _estimate(solution: LassoSolution, eta: float, penalize_diagonal: bool) -> GraphEstimate:
    precision = solution.precision
    diagonal = float(precision.diagonal().sum())
    penalty = eta * float(np.abs(precision.data).sum() - (0.0 if penalize_diagonal else diagonal))
    return GraphEstimate(precision, solution.logdet, solution.objective, solution.converged, penalty)


def _warn_of(solution: LassoSolution, tol: float, max_iter: int) -> None:
    """One warning for everything that is not as exact as asked for."""
    parts = []
    if solution.unfinished:
        residual = max(item.residual for item in solution.unfinished)
        gap = sum(item.gap for item in solution.unfinished)
        bound = f"the objective is at most {gap:.3g} above its minimum"
        if not np.isfinite(gap):
            bound = "how far the objective is from its minimum is not known yet"
        parts.append(
            f"{len(solution.unfinished)} component(s) stopped after max_iter={max_iter} steps or at the level of "
            f"round-off; the optimality residual {residual:.2g} is above tol={tol:g}, and {bound}. Raise max_iter, tol "
            "or eta, or bring variables of very different variance to similar units."
        )
    if solution.approximated:
        largest = max(item.n_nodes for item in solution.approximated)
        gaps = [item.gap for item in solution.approximated]
        bound = "no bound on its error is known"
        if None not in gaps:
            share = sum(gap for gap in gaps if gap is not None) / sum(item.n_nodes for item in solution.approximated)
            bound = f"its objective is at most {share:.3g} a node above its minimum"
        parts.append(
            f"{len(solution.approximated)} component(s), the largest of {largest:,} nodes, are larger than the "
            f"{LARGEST_EXACT:,} nodes that are solved exactly and got the closed form, with edges weakened where that "
            f"is not positive definite; {bound}. Raise eta, or lower density, for smaller components."
        )
    if solution.unbounded is not None:
        parts.append(
            f"The second moments of {len(solution.unbounded):,} nodes are not those of a covariance matrix, so that "
            "these got the closed form. Raise eta."
        )
    if parts:
        warnings.warn("Graphical lasso: " + " ".join(parts), ConvergenceWarning, stacklevel=3)

r"""The graphical lasso by connected components.

.. math:: \min_A \; \mathrm{tr}(SA) - \ln|A| + \eta \sum_{i \ne j} |A_{ij}|

Its solution falls apart into the connected components of the pairs with :math:`|S_{ij}| > \eta` (Witten, Friedman and
Simon, 2011; Mazumder and Hastie, 2012), also where some pairs are held at zero. Components are solved one by one: by
the closed form of ``graphs.threshold`` where it is exact, by Newton steps of ``linalg.lasso_precision`` elsewhere. No
array is larger than the largest component that is solved exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.graphs.laplacians import adjacency_of
from lgmd.graphs.threshold import closed_form
from lgmd.linalg.cholesky import DENSE_LIMIT
from lgmd.linalg.lasso_precision import UnboundedError, duality_gap, lasso_precision
from lgmd.linalg.logdet import log_determinant
from lgmd.linalg.pairs import Pairs
from lgmd.linalg.threads import blas_threads_worth

__all__ = ["LARGEST_EXACT", "LassoProblem", "LassoSolution", "dense_block", "solve_components"]

# Nodes of the largest component that is solved exactly.
LARGEST_EXACT = DENSE_LIMIT

# The closed form does not go beyond this correlation.
_LARGEST_CORRELATION = 0.999

# Standard errors by which a sampled log-determinant is lowered before it serves as a bound.
_STANDARD_ERRORS = 3.0


class LassoProblem(NamedTuple):
    """A graphical lasso before it is taken apart.

    Attributes
    ----------
    variances : ndarray of shape (n,)
        Diagonal of S, plus the penalty on the diagonal, if any.
    pairs : Pairs
        Candidates with ``|S_ij| > eta``, each once, and their S_ij.
    eta : float
    block : callable
        S between some nodes as a new dense array, with ``variances`` on its diagonal.
    allowed : tuple of ndarray or None
        The candidates; None for all pairs.
    vectors : ndarray of shape (n, k) or None
        Rows whose inner products are the off-diagonal of S, where there are such.
    """

    variances: FloatArray
    pairs: Pairs
    eta: float
    block: Callable[[IntArray], FloatArray]
    allowed: tuple[IntArray, IntArray] | None
    vectors: FloatArray | None = None


class Unfinished(NamedTuple):
    """A component that did not reach the tolerance."""

    residual: float
    gap: float


class Approximated(NamedTuple):
    """A component that was too large; ``gap`` is None where no bound is known."""

    n_nodes: int
    gap: float | None


class LassoSolution(NamedTuple):
    """The solution, put together, and what is to be said about it.

    Attributes
    ----------
    precision : csr_array of shape (n, n)
    logdet, objective : float
    unfinished : list of Unfinished
    approximated : list of Approximated
    unbounded : ndarray of int or None
        Nodes of a component without a minimum, which got the closed form.
    """

    precision: SparseGraph
    logdet: float
    objective: float
    unfinished: list[Unfinished]
    approximated: list[Approximated]
    unbounded: IntArray | None

    @property
    def converged(self) -> bool:
        """Whether all of it is exact."""
        return not self.unfinished and not self.approximated and self.unbounded is None


def solve_components(problem: LassoProblem, start: SparseGraph | None, tol: float, max_iter: int) -> LassoSolution:
    """Solve each component, from ``start`` where it is given, and put them together."""
    components = _Components(problem)
    pieces = [components.closed_form(np.flatnonzero(components.is_exact))] if components.is_exact.any() else []
    unfinished, approximated, unbounded = [], [], None
    adjacency = None if problem.allowed is None else adjacency_of(len(problem.variances), *problem.allowed)
    by_newton = ~components.is_exact & (components.sizes <= LARGEST_EXACT)
    with blas_threads_worth(float(components.sizes[by_newton].max(initial=0)) ** 3):
        for component in np.flatnonzero(by_newton).tolist():
            nodes = components.nodes(component)
            S = problem.block(nodes)
            allowed = None if adjacency is None else dense_block(adjacency, nodes)
            warm = None
            if components.is_tree[component]:  # nearly always the solution
                warm = components.closed_form(component).precision.toarray()
            elif start is not None:
                warm = dense_block(start, nodes)
            try:
                found = lasso_precision(S, problem.eta, allowed=allowed, start=warm, tol=tol, max_iter=max_iter)
            except UnboundedError:
                unbounded = nodes
                pieces.append(components.closed_form(component))
                continue
            if found.residual > tol:
                gap = duality_gap(S, problem.eta, found.precision, found.covariance, allowed)
                unfinished.append(Unfinished(found.residual, gap))
            pieces.append(_Piece(nodes, scipy.sparse.coo_array(found.precision), found.logdet, found.objective))
    for component in np.flatnonzero(components.sizes > LARGEST_EXACT).tolist():
        if not components.is_exact[component]:
            piece = components.closed_form(component)
            pieces.append(piece)
            approximated.append(Approximated(len(piece.nodes), components.gap(component, piece)))
    precision = _assembled(len(problem.variances), pieces)
    logdet, objective = (float(sum(piece[field] for piece in pieces)) for field in (2, 3))
    return LassoSolution(precision, logdet, objective, unfinished, approximated, unbounded)


class _Piece(NamedTuple):
    """The solution between some nodes."""

    nodes: IntArray
    precision: SparseGraph
    logdet: float
    objective: float


class _Components:
    """The connected components of a problem.

    Attributes
    ----------
    sizes : ndarray of int, shape (c,)
        Number of nodes.
    is_tree : ndarray of bool, shape (c,)
        Whether the pairs above the threshold form no cycle.
    is_exact : ndarray of bool, shape (c,)
        Whether the closed form is the solution: trees in which all other pairs are held at zero.
    """

    def __init__(self, problem: LassoProblem) -> None:
        self._problem = problem
        variances, pairs = problem.variances, problem.pairs
        n = len(variances)
        scale = np.sqrt(variances)
        residual = pairs.values - problem.eta * np.sign(pairs.values)
        self._correlations = residual / (scale[pairs.rows] * scale[pairs.columns])
        support = scipy.sparse.csr_array((np.ones(len(pairs), bool), (pairs.rows, pairs.columns)), shape=(n, n))
        n_components, labels = connected_components(support, directed=False)
        self.sizes = np.bincount(labels, minlength=n_components)
        self._nodes = _Groups(labels, n_components)
        self._edges = _Groups(labels[pairs.rows], n_components)
        self._position = np.empty(n, np.int64)
        n_edges = np.bincount(labels[pairs.rows], minlength=n_components)
        self.is_tree = n_edges < self.sizes
        if problem.allowed is None:
            n_candidates = self.sizes * (self.sizes - 1) // 2
        else:
            first, second = (labels[end] for end in problem.allowed)
            n_candidates = np.bincount(first[first == second], minlength=n_components)
        beyond = np.zeros(n_components, dtype=bool)
        beyond[labels[pairs.rows[np.abs(self._correlations) > _LARGEST_CORRELATION]]] = True
        self.is_exact = self.is_tree & (n_edges == n_candidates) & ~beyond

    def nodes(self, component: int) -> IntArray:
        """The nodes of a component."""
        return self._nodes[component]

    def closed_form(self, components: int | IntArray) -> _Piece:
        """The closed form on one or several components, always positive definite."""
        nodes, pairs, correlations = self._parts(components)
        variances, m = self._problem.variances[nodes], len(nodes)
        at_unit_scale, _ = closed_form(m, pairs.rows, pairs.columns, correlations)
        unscale = scipy.sparse.diags_array(1.0 / np.sqrt(variances))
        precision = scipy.sparse.csr_array(unscale @ at_unit_scale @ unscale)
        if np.all(self.is_exact[components]):
            logdet = -float(np.log1p(-(correlations**2)).sum())
        else:
            logdet = log_determinant(at_unit_scale).value
        logdet -= float(np.log(variances).sum())
        diagonal = precision.diagonal()
        covariances = adjacency_of(m, pairs.rows, pairs.columns, pairs.values)
        fit = float(diagonal @ variances) + float(precision.multiply(covariances).sum())
        objective = fit - logdet + self._problem.eta * float(np.abs(precision.data).sum() - diagonal.sum())
        return _Piece(nodes, precision.tocoo(), logdet, objective)

    def gap(self, component: int, piece: _Piece) -> float | None:
        """How far the objective of a piece is from the minimum at most; None where that is not known.

        Every W with ``|W_ij - S_ij| <= eta`` and the diagonal of S has ``ln|W| + m`` below the minimum. Two such are
        cheap: S with its off-diagonal soft-thresholded, which is sparse, where it is positive definite; and S with its
        off-diagonal shrunk, which is a diagonal plus a matrix of low rank where S comes from a factor.
        """
        nodes, pairs, correlations = self._parts(component)
        variances, m = self._problem.variances[nodes], len(nodes)
        bounds = []
        try:
            thresholded = adjacency_of(m, pairs.rows, pairs.columns, correlations) + scipy.sparse.eye_array(m)
            value, standard_error = log_determinant(scipy.sparse.csr_array(thresholded))
            bounds.append(value - _STANDARD_ERRORS * standard_error + float(np.log(variances).sum()))
        except np.linalg.LinAlgError:
            pass
        if self._problem.vectors is not None:
            vectors = self._problem.vectors[nodes].astype(np.float64)
            kept = 1.0 - min(1.0, self._problem.eta / float(np.abs(pairs.values).max()))
            rest = variances - kept * np.einsum("ij,ij->i", vectors, vectors)
            inner = np.eye(vectors.shape[1]) + kept * (vectors.T / rest) @ vectors
            bounds.append(float(np.log(rest).sum() + np.linalg.slogdet(inner)[1]))
        return max(0.0, piece.objective - max(bounds) - m) if bounds else None

    def _parts(self, components: int | IntArray) -> tuple[IntArray, Pairs, FloatArray]:
        """Nodes, pairs in local numbers and thresholded correlations of some components."""
        nodes, edges = self._nodes[components], self._edges[components]
        self._position[nodes] = np.arange(len(nodes))
        pairs = self._problem.pairs.take(edges)
        local = Pairs(self._position[pairs.rows], self._position[pairs.columns], pairs.values)
        return nodes, local, self._correlations[edges]


class _Groups:
    """Positions by the group that they belong to."""

    def __init__(self, labels: IntArray, n_groups: int) -> None:
        self._order = np.argsort(labels, kind="stable")
        self._ends = np.cumsum(np.bincount(labels, minlength=n_groups))
        self._starts = np.concatenate([[0], self._ends[:-1]])

    def __getitem__(self, groups: int | IntArray) -> IntArray:
        chosen = np.atleast_1d(groups)
        if len(chosen) == 1:
            return self._order[self._starts[chosen[0]] : self._ends[chosen[0]]]
        marks = np.zeros(len(self._order) + 1, np.int64)
        np.add.at(marks, self._starts[chosen], 1)
        np.add.at(marks, self._ends[chosen], -1)
        return self._order[np.cumsum(marks[:-1]) > 0]


def _assembled(n: int, pieces: list[_Piece]) -> SparseGraph:
    rows = [piece.nodes[piece.precision.coords[0]] for piece in pieces]
    columns = [piece.nodes[piece.precision.coords[1]] for piece in pieces]
    values = [piece.precision.data for piece in pieces]
    ends = (np.concatenate(rows), np.concatenate(columns))
    precision = scipy.sparse.csr_array((np.concatenate(values), ends), shape=(n, n))
    precision.sort_indices()
    return precision


def dense_block(matrix: SparseGraph, nodes: IntArray) -> FloatArray:
    """A sparse matrix between some nodes, dense."""
    return np.asarray(matrix[nodes][:, nodes].toarray())

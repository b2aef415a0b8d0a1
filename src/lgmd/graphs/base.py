"""What a graph is, and what a learner of graphs does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray, IntArray, SparseGraph
from lgmd._validation import as_symmetric
from lgmd.exceptions import InvalidGraphError
from lgmd.graphs.labels import refuse_other_order
from lgmd.linalg.pairs import pair_products
from lgmd.observed import Observed

__all__ = ["FactorMoments", "GraphEstimate", "GraphLearner", "Side", "graph_over"]


# A direction this much smaller than the largest is round-off, also in single precision.
_ROUND_OFF = 1e-6


class Side(NamedTuple):
    """The words for one side of the table, for messages."""

    parameter: str
    nodes: str


def graph_over(matrix: Any, n: int, side: Side, names: Array | None = None) -> SparseGraph:
    """A given symmetric matrix over the ``n`` nodes of a side, in the order of their names if it has labels."""
    refuse_other_order(matrix, side.parameter, names, side.nodes)
    graph = as_symmetric(matrix, side.parameter)
    nodes = graph.shape[0]
    if nodes != n:
        raise InvalidGraphError(
            f"{side.parameter} is {nodes} x {nodes} but the data has {n} {side.nodes}. "
            f"A graph over {side.nodes} must be {n} x {n}."
        )
    return graph


@dataclass(frozen=True)
class GraphEstimate:
    r"""A sparse precision matrix with what its learner knows about it.

    Attributes
    ----------
    precision : csr_array of shape (n, n)
        Symmetric and positive definite. A zero is the absence of an edge.
    logdet : float
        Its log-determinant.
    objective : float
        The penalised negative log-likelihood :math:`\mathrm{tr}(SA) - \ln|A| + \eta |A|_{1,\mathrm{off}}`, or NaN where
        the graph was not estimated from a covariance.
    converged : bool
        Whether the learner reached what it aims at.
    penalty : float
        The sparsity term of the objective, :math:`\eta |A|_{1,\mathrm{off}}`.
    strength : float
        For graphs of the form :math:`a I + b L` the ratio ``b / a``: zero where rows do not depend on each other. NaN
        for others.
    proven : bool
        False where not the factor but entries of the table spoke for it.
    """

    precision: SparseGraph
    logdet: float
    objective: float = float("nan")
    converged: bool = True
    penalty: float = 0.0
    strength: float = float("nan")
    proven: bool = True

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        diagonal = int(np.count_nonzero(self.precision.diagonal()))
        return (int(self.precision.count_nonzero()) - diagonal) // 2

    @property
    def is_identity(self) -> bool:
        """Whether it says nothing about any row: no edge, and unit scale."""
        return self.n_edges == 0 and bool(np.all(self.precision.diagonal() == 1))

    def among(self, n: int, nodes: IntArray, diagonal: float) -> GraphEstimate:
        """The same over n rows, of which these are its own; the others stand alone, each with this precision."""
        alone: IntArray = np.setdiff1d(np.arange(n), nodes)
        entries = self.precision.tocoo()
        values = np.append(entries.data, np.full(len(alone), diagonal))
        rows, columns = (np.append(nodes[ends], alone) for ends in entries.coords)
        return GraphEstimate(
            scipy.sparse.csr_array((values, (rows, columns)), shape=(n, n)),
            self.logdet + len(alone) * float(np.log(diagonal)),
            self.objective,
            self.converged,
            self.penalty,
            self.strength,
            self.proven,
        )

    @classmethod
    def identity(cls, n: int) -> GraphEstimate:
        """The graph without edges at unit scale."""
        return cls(scipy.sparse.csr_array(scipy.sparse.eye_array(n, format="csr")), 0.0, strength=0.0)


@dataclass(frozen=True)
class FactorMoments:
    """What a learner sees of a factor: never an n x n matrix.

    Attributes
    ----------
    mean : ndarray of shape (n, k)
    variance : ndarray of shape (n,) or None
        Posterior variance of each row, summed over its columns; None for a point estimate.
    effective_columns : float or None
        How many columns the data has spoken about: of each column the share of its squares that the mean holds. It is
        the sample size of a correlation between rows. None for all.
    cross : callable or None
        Posterior covariance of pairs of rows, see :meth:`cross_covariance`; None for a point estimate.
    """

    mean: FloatArray
    variance: FloatArray | None = None
    effective_columns: float | None = None
    cross: Callable[[IntArray, IntArray], FloatArray] | None = None

    @property
    def sample_size(self) -> float:
        """Number of columns that say something."""
        return float(self.mean.shape[1]) if self.effective_columns is None else self.effective_columns

    @property
    def n_directions(self) -> int:
        """Number of directions in which rows differ from zero by more than round-off."""
        n, k = self.mean.shape
        mean = self.mean.astype(np.float64)
        products = mean.T @ mean if k <= n else mean @ mean.T
        lengths: FloatArray = np.sqrt(np.maximum(np.linalg.eigvalsh(products), 0.0))
        return int(np.count_nonzero(lengths > _ROUND_OFF * lengths[-1]))

    def centred(self) -> FactorMoments:
        """The same about the mean row: what all rows have in common makes no two of them neighbours.

        Rows that are zero stay zero: nothing is known of them.
        """
        known: Array = np.any(self.mean != 0, axis=1)
        if not known.any():
            return self
        return replace(self, mean=np.where(known[:, None], self.mean - self.mean[known].mean(axis=0), 0.0))

    def rows(self, nodes: IntArray) -> FactorMoments:
        """The same of some rows."""
        cross = self.cross
        return replace(
            self,
            mean=self.mean[nodes],
            variance=None if self.variance is None else self.variance[nodes],
            cross=None if cross is None else lambda rows, others: cross(nodes[rows], nodes[others]),
        )

    def columns(self, chosen: IntArray) -> FactorMoments:
        """The same of some columns of rows that no graph joins yet."""
        share = len(chosen) / self.mean.shape[1]
        return replace(
            self,
            mean=np.ascontiguousarray(self.mean[:, chosen]),
            variance=None if self.variance is None else share * self.variance,
            effective_columns=None if self.effective_columns is None else share * self.effective_columns,
            cross=None,
        )

    def cross_covariance(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Posterior covariance of rows ``rows[m]`` and ``others[m]``, summed over their columns, (m,).

        Added to ``mean[i] . mean[j]`` it gives the expected product of two rows. It is zero for point estimates and for
        rows that the present graph does not join, a row's variance for the row itself, and costs a number of solves
        that does not grow with the pairs.
        """
        rows, others = np.asarray(rows), np.asarray(others)
        if self.cross is None:
            return np.zeros(len(rows))
        return self.cross(rows, others)

    def correlation_vectors(self) -> FloatArray:
        """Rows ``z_i`` with ``z_i . z_j`` the correlation of rows i and j over the factor's columns, which have mean
        zero.

        Rows that are zero stay zero: they correlate with nothing.
        """
        return np.asarray(self.mean * self._unit[:, None].astype(self.mean.dtype))

    def correlations(self, nodes: IntArray) -> FloatArray:
        """Correlation matrix of some rows, with the posterior covariance of those that the present graph joins.

        Dense: for one connected component at a time.
        """
        products, unit = self.block_moments(nodes), self._unit[nodes]
        products *= unit[:, None] * unit
        np.fill_diagonal(products, 1.0)
        return products

    def block_moments(self, nodes: IntArray) -> FloatArray:
        """Expected products of each two of some rows, dense; on the diagonal without the rows' variances."""
        mean = self.mean[nodes].astype(np.float64)
        products = mean @ mean.T
        if self.cross is not None:
            i, j = np.triu_indices(len(nodes), 1)
            covariance = self.cross_covariance(nodes[i], nodes[j])
            products[i, j] += covariance
            products[j, i] += covariance
        return products

    def pair_correlations(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Correlations of rows ``rows[m]`` and ``others[m]``, with their posterior covariance, (m,)."""
        return np.asarray(self.pair_moments(rows, others) * self._unit[rows] * self._unit[others])

    def pair_moments(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Expected products of rows ``rows[m]`` and ``others[m]``, (m,)."""
        return np.asarray(pair_products(self.mean, rows, others) + self.cross_covariance(rows, others))

    def squares(self) -> FloatArray:
        """Expected squares of each row, summed over its columns, (n,)."""
        squares: FloatArray = np.einsum("ij,ij->i", self.mean, self.mean, dtype=np.float64)
        return squares if self.variance is None else squares + self.variance

    @cached_property
    def _unit(self) -> FloatArray:
        """What brings each row to unit second moment; zero for rows that are zero."""
        squares = self.squares()
        return np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)


class GraphLearner(ABC):
    """Makes the graph of one side.

    A learner is a value: frozen parameters, no state, equal to another with equal parameters. :meth:`start` is called
    once with the table, :meth:`learn` when the factors have settled, :meth:`relearn` when they have settled under its
    graph, until that was :attr:`rounds` times in all. Learners are dataclasses that say
    ``eq=False``, since the comparison a dataclass writes for itself cannot compare matrices.
    """

    #: How often, at most, it is worth learning the graph from the factors; never for graphs that do not depend on them.
    rounds: ClassVar[int] = 0

    @property
    def may_be_left_out(self) -> bool:
        """Whether entries of the table may speak against the first graph that it learns; no by default."""
        return False

    @abstractmethod
    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """The graph over the rows of ``data`` before any factor is known."""

    def learn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """The graph given the factor; a learner that does not learn keeps the previous one."""
        return previous

    def looks_again(self, previous: GraphEstimate) -> bool:
        """Whether :meth:`relearn` may change a graph, for which moments have to be computed; it may by default."""
        return True

    def relearn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """The graph anew from a factor that it has shaped; as :meth:`learn` does by default."""
        return self.learn(moments, previous)

    def unproven(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """A graph for entries of the table to judge, where :meth:`learn` found none; none by default."""
        return previous

    def validate(self) -> None:  # noqa: B027 - most learners have nothing to check
        """Raise ``InvalidParameterError`` where a parameter makes no sense."""

    def parameters(self) -> dict[str, Any]:
        """Constructor parameters by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)} if is_dataclass(self) else {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphLearner) or type(other) is not type(self):
            return NotImplemented
        if not is_dataclass(type(self)):  # its parameters are not known here
            return self is other
        mine, theirs = self.parameters(), other.parameters()
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((type(self), *(value for value in self.parameters().values() if isinstance(value, int | float))))


def _same(one: Any, other: Any) -> bool:
    sparse = [scipy.sparse.issparse(value) for value in (one, other)]
    if any(sparse):
        return all(sparse) and one.shape == other.shape and (one != other).nnz == 0
    if hasattr(one, "__array__") or hasattr(other, "__array__"):
        return bool(np.array_equal(one, other))
    return bool(one == other)

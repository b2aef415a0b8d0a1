"""What a graph is, and what a learner of graphs does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.observed import Observed

__all__ = ["FactorMoments", "GraphEstimate", "GraphLearner", "Side"]


class Side(NamedTuple):
    """The words for one side of the table, for messages."""

    parameter: str
    nodes: str


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
    """

    precision: SparseGraph
    logdet: float
    objective: float = float("nan")
    converged: bool = True
    penalty: float = 0.0

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        diagonal = int(np.count_nonzero(self.precision.diagonal()))
        return (int(self.precision.count_nonzero()) - diagonal) // 2

    @classmethod
    def identity(cls, n: int) -> GraphEstimate:
        """The graph without edges at unit scale."""
        return cls(scipy.sparse.csr_array(scipy.sparse.eye_array(n, format="csr")), 0.0)


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
        squares = np.einsum("ij,ij->i", self.mean, self.mean, dtype=np.float64)
        if self.variance is not None:
            squares = squares + self.variance
        scale = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
        return np.asarray(self.mean * scale[:, None].astype(self.mean.dtype))


class GraphLearner(ABC):
    """Makes the graph of one side.

    A learner is a value: frozen parameters, no state. :meth:`start` is called once with the table, :meth:`learn` each
    time the factors have settled.
    """

    #: Whether the graph changes with the factors.
    learns: ClassVar[bool] = False

    @abstractmethod
    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """The graph over the rows of ``data`` before any factor is known."""

    def learn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """The graph given the factor; a learner that does not learn keeps the previous one."""
        return previous

    def validate(self) -> None:  # noqa: B027 - most learners have nothing to check
        """Raise ``InvalidParameterError`` where a parameter makes no sense."""

    def parameters(self) -> dict[str, Any]:
        """Constructor parameters by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)} if is_dataclass(self) else {}

r"""The paper's closed form for the graphical lasso, made safe.

For a covariance S and the soft-thresholded :math:`S^\mathrm{res}` the paper's ``Threshold`` writes the precision down
entry by entry. In correlation scale, with :math:`r_{ij}` the thresholded correlations, it reads

.. math:: A_{ij} = -\frac{r_{ij}}{1 - r_{ij}^2}, \qquad A_{ii} = 1 + \sum_m \frac{r_{im}^2}{1 - r_{im}^2} .

On a forest this is the exact maximiser, with unit marginal variances. On cycles it is an approximation which can be
indefinite. Row i of it is diagonally dominant by :math:`1 - \sum_m |r_{im}| / (1 + |r_{im}|)`; where this is positive
in every row of a component, the component is positive definite. Rows of components with cycles that are not dominant
are repaired, see :func:`closed_form`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner, Side
from lgmd.graphs.candidates import candidate_pairs, check_candidates
from lgmd.graphs.covariances import as_covariance
from lgmd.graphs.parameters import check_eta_or_density, check_finite, check_positive
from lgmd.linalg.logdet import log_determinant
from lgmd.linalg.pairs import Pairs, TooManyPairsError, pairs_above, strongest_pairs
from lgmd.observed import Observed

__all__ = ["ThresholdGraph", "closed_form", "threshold_precision"]

# Correlations this close to one would make the precision numerically singular.
_LARGEST_CORRELATION = 0.999

# More edges than this are no sparse graph any more: a gigabyte.
_MOST_EDGES = 20_000_000

# How far inside the cone of diagonally dominant matrices a repaired component is put.
_DOMINANCE = 0.05


def closed_form(n: int, rows: IntArray, columns: IntArray, correlations: FloatArray) -> tuple[SparseGraph, bool]:
    """The closed form on a given support, always positive definite.

    Rows on components with cycles that are not diagonally dominant keep their edges, weakened: each such row has a
    largest factor that would make it dominant, and an edge is multiplied by the smaller factor of its two ends.
    Shares of dominance grow with the correlation, so every row ends dominant, and a hub weakens its own edges alone.

    Parameters
    ----------
    n : int
        Number of nodes.
    rows, columns : ndarray of int, shape (m,)
        The edges, each once.
    correlations : ndarray of shape (m,)
        Thresholded correlations, in absolute value below one.

    Returns
    -------
    precision : csr_array of shape (n, n)
    untouched : bool
        Whether no row had to be repaired.
    """
    r = np.clip(np.asarray(correlations, dtype=np.float64), -_LARGEST_CORRELATION, _LARGEST_CORRELATION)
    support = scipy.sparse.csr_array((np.ones(len(r)), (rows, columns)), shape=(n, n))
    n_components, labels = connected_components(support, directed=False)
    n_edges = np.bincount(labels[rows], minlength=n_components)
    has_cycle = n_edges >= np.bincount(labels, minlength=n_components)
    repair = has_cycle[labels] & (_dominance(n, rows, columns, r, np.ones(n)) <= 0)
    if repair.any():
        factors = np.where(repair, _largest_dominant(n, rows, columns, r), 1.0)
        r = r * np.minimum(factors[rows], factors[columns])
    off_diagonal = -r / (1.0 - r**2)
    extra = -r * off_diagonal
    diagonal = 1.0 + np.bincount(rows, extra, n) + np.bincount(columns, extra, n)
    precision = scipy.sparse.csr_array(
        (
            np.concatenate([off_diagonal, off_diagonal, diagonal]),
            (np.concatenate([rows, columns, np.arange(n)]), np.concatenate([columns, rows, np.arange(n)])),
        ),
        shape=(n, n),
    )
    return precision, not repair.any()


def _dominance(n: int, rows: IntArray, columns: IntArray, r: FloatArray, factors: FloatArray) -> FloatArray:
    """Diagonal dominance of each row, were all its correlations multiplied by its factor."""
    r = np.abs(r)
    at_row, at_column = r * factors[rows], r * factors[columns]
    return 1.0 - np.bincount(rows, at_row / (1.0 + at_row), n) - np.bincount(columns, at_column / (1.0 + at_column), n)


def _largest_dominant(n: int, rows: IntArray, columns: IntArray, r: FloatArray) -> FloatArray:
    """The largest factor for each row that leaves it dominant, by bisection."""
    low, high = np.zeros(n), np.ones(n)
    for _ in range(30):
        middle = (low + high) / 2
        dominant = _dominance(n, rows, columns, r, middle) >= _DOMINANCE
        low, high = np.where(dominant, middle, low), np.where(dominant, high, middle)
    return low


def threshold_precision(S: Any, eta: float, candidates: Any = None) -> GraphEstimate:
    r"""The paper's ``Threshold``: a sparse precision from a covariance, in closed form.

    Approximates :math:`\arg\min_A \mathrm{tr}(SA) - \ln|A| + \eta \|A\|_{1,\mathrm{off}}`, without edges outside
    the candidates; exact where the entries of S above ``eta`` form a forest.

    Parameters
    ----------
    S : array-like or sparse matrix of shape (n, n)
        Covariance matrix; may be singular.
    eta : float
        Threshold on the off-diagonal entries, in the units of S.
    candidates : sparse matrix or array-like of shape (n, n), or callable, default=None
        Which edges may exist, see :mod:`lgmd.graphs.candidates`; None for all.

    Returns
    -------
    GraphEstimate
        ``converged`` is False where edges had to be weakened to be sure of a positive definite matrix.
    """
    eta = check_positive(eta, "eta", "every pair would be an edge")
    covariance = scipy.sparse.csr_array(as_covariance(S))
    variances = covariance.diagonal()
    pairs = candidate_pairs(candidates, len(variances))
    if pairs is None:
        upper = scipy.sparse.triu(covariance, k=1).tocoo()
    else:
        allowed = scipy.sparse.csr_array((np.ones(len(pairs[0])), pairs), shape=covariance.shape)
        upper = scipy.sparse.coo_array(covariance.multiply(allowed))
    rows, columns = upper.coords
    above = np.abs(upper.data) > eta
    rows, columns, values = rows[above], columns[above], upper.data[above]
    scale = np.sqrt(variances)
    largest = scale[rows] * scale[columns]
    if np.any(np.abs(values) > largest * (1 + 1e-8)):
        worst = int(np.argmax(np.abs(values) / largest))
        raise InvalidGraphError(
            f"S is no covariance: the entry of {rows[worst]} and {columns[worst]} is {values[worst]:.6g}, but the "
            f"variances allow at most {largest[worst]:.6g}."
        )
    residual = values - eta * np.sign(values)
    correlation_form, untouched = closed_form(len(scale), rows, columns, residual / (scale[rows] * scale[columns]))
    unscale = scipy.sparse.diags_array(1.0 / scale)
    precision = scipy.sparse.csr_array(unscale @ correlation_form @ unscale)
    logdet = log_determinant(precision).value
    penalty = eta * float(np.abs(precision.data).sum() - np.abs(precision.diagonal()).sum())
    fit = float(covariance.multiply(precision).sum())
    return GraphEstimate(precision, logdet, fit - logdet + penalty, untouched, penalty)


@dataclass(frozen=True, eq=False)
class ThresholdGraph(GraphLearner):
    """The closed form on the correlations of the factor's rows.

    Give ``eta`` or ``density``, or neither. Marginal variances are one (on forests exactly), so the graph is at unit
    scale.

    Parameters
    ----------
    eta : float, default=None
        Threshold on the correlations, between 0 and 1.
    density : float, default=None
        Share of the pairs, or of the candidates, that become edges; the threshold is put where it leaves so many. With
        neither given it is 6 % of all pairs, as in the paper, but no more than five edges a node on average, and no
        more than half of the candidates.
    candidates : sparse matrix or array-like of shape (n, n), or callable, default=None
        Which edges may exist, see :mod:`lgmd.graphs.candidates`; None for all. Only their correlations are computed.
    """

    rounds: ClassVar[int] = 3

    eta: float | None = None
    density: float | None = None
    candidates: Any = None

    def validate(self) -> None:
        """Check that at most one is given, and its range."""
        check_eta_or_density(self.eta, self.density)
        if self.eta is not None and not 0 <= check_finite(self.eta, "eta") < 1:
            raise InvalidParameterError(f"eta is a correlation, so it must be in [0, 1), but is {self.eta}.")

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """No edge before a factor is known."""
        check_candidates(self.candidates, data.shape[0], side, data.row_names)
        return GraphEstimate.identity(data.shape[0])

    def learn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """Look at the pairs of rows, keep the strong ones, write the precision down."""
        vectors = moments.correlation_vectors()
        n = len(vectors)
        allowed = candidate_pairs(self.candidates, n)
        if allowed is None:
            pairs, eta = self._select(vectors)
        else:
            pairs, eta = self._select_among(Pairs(*allowed, moments.pair_correlations(*allowed)), n)
        residual = pairs.values.astype(np.float64) - eta * np.sign(pairs.values)
        precision, untouched = closed_form(n, pairs.rows, pairs.columns, residual)
        logdet = log_determinant(precision).value
        penalty = eta * float(np.abs(precision.data).sum() - np.abs(precision.diagonal()).sum())
        correlations = scipy.sparse.csr_array((pairs.values.astype(np.float64), pairs[:2]), shape=(n, n))
        has_variance = np.any(vectors != 0, axis=1)
        fit = float(precision.diagonal()[has_variance].sum() + 2.0 * correlations.multiply(precision).sum())
        return GraphEstimate(precision, logdet, fit - logdet + penalty, untouched, penalty)

    def _select(self, vectors: FloatArray) -> tuple[Pairs, float]:
        """The pairs above the threshold, and the threshold."""
        n = len(vectors)
        n_pairs = n * (n - 1) // 2
        if self.eta is not None:
            try:
                return pairs_above(vectors, float(self.eta), at_most=_MOST_EDGES), float(self.eta)
            except TooManyPairsError:
                raise InvalidParameterError(
                    f"eta={self.eta} joins more than {_MOST_EDGES:,} of the {n_pairs:,} pairs of {n:,} nodes, "
                    "too many for a sparse graph. Raise eta, or give density instead."
                ) from None
        count = _default_count(n) if self.density is None else round(self.density * n_pairs)
        return _strongest(strongest_pairs(vectors, count + 1), count)

    def _select_among(self, candidates: Pairs, n: int) -> tuple[Pairs, float]:
        """The candidates above the threshold, and the threshold."""
        if self.eta is not None:
            return candidates.take(np.flatnonzero(np.abs(candidates.values) > float(self.eta))), float(self.eta)
        n_pairs = len(candidates)
        count = min(_default_count(n), n_pairs // 2) if self.density is None else round(self.density * n_pairs)
        # Candidates come sorted by position, which is how ties are broken.
        return _strongest(candidates.take(np.argsort(-np.abs(candidates.values), kind="stable")), count)


def _default_count(n: int) -> int:
    return min(round(0.06 * (n * (n - 1) // 2)), 5 * n // 2)


def _strongest(pairs: Pairs, count: int) -> tuple[Pairs, float]:
    """The first so many of pairs from strong to weak, and the threshold, which the first pair left out marks."""
    if len(pairs) <= count:
        return pairs, 0.0
    return pairs.take(np.arange(count)), min(float(abs(pairs.values[count])), _LARGEST_CORRELATION)

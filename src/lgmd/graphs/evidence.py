r"""Graphs that the data shows, and no others.

The columns of a factor are draws from one distribution over its rows, so columns that were not looked at can judge
what was found in the others. Neighbours of each row are found by their correlation in nine tenths of the columns, and
the last tenth says how alike they really are. Where there is no structure it says nothing, however alike neighbours
looked where they were found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from lgmd._typing import Array, FloatArray, IntArray, SparseGraph
from lgmd._validation import as_symmetric, check_flag, check_integer
from lgmd.exceptions import InvalidParameterError
from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner, Side
from lgmd.graphs.candidates import candidate_pairs, check_candidates
from lgmd.graphs.neighborhoods import ALL_ROWS, Agreement, Neighborhoods, NeighborhoodSearch, equal_columns
from lgmd.graphs.nonnegative import EXACT_NODES, LaplacianGraph
from lgmd.graphs.order import WORTH, Chain, order_of_rows
from lgmd.graphs.parameters import check_finite
from lgmd.graphs.prior import given_edges, trusted
from lgmd.graphs.strength import WeightedGraph, best_ratio, log_bounds, scaled
from lgmd.linalg.logdet import Spectrum, log_determinant
from lgmd.linalg.marginals import marginal_variances
from lgmd.observed import Observed

__all__ = ["EvidenceGraph"]

# Neighbours of a row that are considered.
_NEIGHBORS = (1, 2, 3, 5, 8)

# With one or two neighbours there is next to nothing to share.
_FEWEST_TO_SHARE = 3

# Parts of the columns, each of which judges what was found in the others; fewer, and some rows only, where rows are
# many.
_PARTS, _PARTS_OF_MANY, _SOME_ROWS = 10, 5, 1000

# Directions in which rows have to differ: on a line any two are alike or opposite, and in a plane one column says most
# of what the other does.
_FEWEST = 3

# Correlation in columns not looked at, as it is and in standard errors, below which there is no graph.
_WEAKEST, _DEVIATIONS = 0.12, 3.0

# How many times as strong a graph may be after another look, for all edges of a row together.
_GROWTH = 1.5

# Rows that follow each other in a table sorted by groups: at least so many are edges, so many are not brought together
# by edges, and these have less than this share of the correlation of all. Much less than all of it is enough for an
# order that goes on between them: they were chosen for looking unlike.
_JOINED_IN_GROUPS, _ENDS_OF_GROUPS, _LEFT_BETWEEN_GROUPS = 0.6, 0.05, 0.25

# Nodes up to which a graph is offered that nothing proves: a tenth of a second each time. Of a row with edges there at
# least this share of what is known of a typical row has to be known.
_MOST_UNPROVEN, _WELL_KNOWN = 500, 0.5


class _Kind(NamedTuple):
    """Which pairs are edges: by a rule, of so many nearest rows of each row."""

    rule: Callable[[Neighborhoods, int], Array]
    n_neighbors: int

    def of(self, found: Neighborhoods) -> Array:
        """Which of the pairs found, (m,)."""
        return self.rule(found, self.n_neighbors)


class _Finding(NamedTuple):
    """A graph, how rough columns are thought to be over it, its best strength, and what it explains, in nats a column.

    ``held_out`` is how rough columns are in which its edges were not found. In ``gain`` they count for more than in
    ``roughness``, if the factor has error bars: edges that were found by chance explain nothing there.
    """

    graph: WeightedGraph
    values: Spectrum
    roughness: float
    held_out: float
    ratio: float
    gain: float

    def after(self, previous: GraphEstimate, moments: FactorMoments) -> _Finding:
        """With the strength that suits the second moments of a factor which another graph has shaped.

        A graph makes neighbours more alike, so that those found in its factors seem stronger than they are.
        """
        ratio, _ = best_ratio(self.graph.n, self.values, self.graph.roughness(moments.centred()))
        most = _GROWTH * previous.strength * previous.n_edges / len(self.graph)
        return self._replace(ratio=min(ratio, most))

    def precision(self) -> GraphEstimate:
        # A quadrature is good enough to compare sets of edges, but not for the log-determinant of the one that stays.
        values = self.values if self.values.is_exact else self.graph.spectrum()
        return self.graph.precision(self.ratio, values)


@dataclass(frozen=True, eq=False)
class EvidenceGraph(GraphLearner):
    r"""The graph that the factor shows, with a strength that is learned; no edge where it shows none.

    Edges join rows that are near each other in the correlation of the factor's columns. Sets of edges compete: the
    nearest 1, 2, 3, 5 or 8 rows of each row, by correlation or by its size, all of them or only the pairs that pass
    Benjamini and Hochberg's test at ``fdr`` on their own; and the pairs that have half of their nearest 3, 5 or 8 rows
    in common, themselves included. A correlation of few columns says little, but where two rows are alike, so are their
    neighbours: of edges between rows that share neighbours more are true, and more of the true ones are among them.
    Neighbours found in nine tenths of the columns must be alike in the last tenth too, with a correlation of at least
    0.12 and three standard errors; otherwise the graph stays empty. Where columns are few, a set can pass this test
    though none of its edges is certain on its own.

    The precision is :math:`a I + b L`, scaled so that all rows have unit variance, with L the Laplacian of the edges.
    An edge between rows that are opposite has a negative sign and adds :math:`(x_i + x_j)^2`, so that any strength is
    positive definite. The ratio ``b / a`` has the largest likelihood if neighbours are as alike as the columns say in
    which they were found, which flatter them, less a third of the way to those that were held out, in which the
    factor's uncertainty hides some of it; errors change little with it. Of the sets that pass, the one stays that
    explains most of columns two thirds of the way to those that were held out. Factors without error bars hide nothing,
    and held-out columns alone say both.

    Where edges are found, they are looked for once more in the factors that they have shaped, if these have error
    bars: which rows are neighbours is better known then. Their strength may grow by half.

    Where no set passes, the order of the rows may be a graph, see ``order``. Where that says nothing either, entries
    of the table are asked, see ``ask_entries``.

    Among more than 5000 rows only pairs that are certain on their own become edges, and held-out columns are asked
    about a thousand rows. Time is ``O(n^2 k)``, memory that of the edges.

    Parameters
    ----------
    fdr : float, default=0.1
        Share of false edges that is accepted among pairs that are tested one by one.
    neighbors : int or "auto", default="auto"
        Nearest rows to which a row is joined; whether rows share neighbours is then not asked.
    candidates : sparse matrix, array-like or callable, default=None
        Which edges may exist, see :mod:`lgmd.graphs.candidates`; all by default.
    prior : array-like or sparse matrix of shape (n, n), default=None
        A graph that is given, as for :class:`PriorGraph`, to which learned edges are added, each graph with a strength
        of its own; the model reports that of the given one.
    order : bool, default=True
        Whether the order of the rows is asked too, as a given graph would be that joins each row to the next: days
        follow each other in most tables. An order that says nothing changes nothing, nor does one that only sorts rows
        by groups which edges join. It is not asked where ``prior`` or ``candidates`` are given, nor in tables with so
        many rows that their covariances would not fit beside it.
    ask_entries : bool, default=True
        Whether variational inference asks entries of the table, where nothing else was found, if the graph of
        :class:`LaplacianGraph` is worth it: those held out from short runs, or all of a complete table. It is not asked
        where ``neighbors`` are given, on sides of more than 500 nodes, of factors with fewer than three columns, and in
        tables of fewer than 1,000 or more than a million entries.
    """

    rounds: ClassVar[int] = 2

    fdr: float = 0.1
    neighbors: int | str = "auto"
    candidates: Any = None
    prior: Any = None
    order: bool = True
    ask_entries: bool = True

    def validate(self) -> None:
        """Check the numbers and flags; ``candidates`` and ``prior`` are checked against the table by :meth:`start`."""
        if not 0 < check_finite(self.fdr, "fdr") < 1:
            raise InvalidParameterError(f"fdr is a share of false edges, so it must be in (0, 1), but is {self.fdr}.")
        if isinstance(self.neighbors, str):
            if self.neighbors != "auto":
                raise InvalidParameterError(f"neighbors must be 'auto' or an integer, but is {self.neighbors!r}.")
        else:
            check_integer(self.neighbors, "neighbors", minimum=1)
        check_flag(self.order, "order")
        check_flag(self.ask_entries, "ask_entries")

    def start(self, data: Observed, side: Side) -> GraphEstimate:
        """No edge before a factor is known."""
        n = data.shape[0]
        check_candidates(self.candidates, n, side, data.row_names)
        if self.prior is not None:
            given_edges(self.prior, n, side._replace(parameter=f"prior of {side.parameter}"), data.row_names)
        return GraphEstimate.identity(n)

    def learn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """Find the best set of edges and its strength, beside a graph that is known beforehand if one is worth it."""
        n = len(moments.mean)
        found = self._best(moments.centred())
        given = self._known_beforehand(n)
        if given is None:
            known = GraphEstimate.identity(n)
        else:
            known = order_of_rows(moments) if self.prior is None else trusted(given, moments)
        if found is None:
            return known
        if given is None or not known.n_edges:
            return found.precision()
        return _together(given, known, found, moments, is_order=self.prior is None)

    def looks_again(self, previous: GraphEstimate) -> bool:
        """Unless the graph has the edges that were known beforehand: it stays as it is."""
        known = self._known_beforehand(previous.precision.shape[0])
        return known is None or not np.all(previous.precision[known.rows, known.columns] != 0)

    def relearn(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """Look again for neighbours: factors are closer to the truth now, and know them better.

        They confirm the graph that has shaped them, so that this says nothing about whether there is one, nor how
        strong it is; and those without error bars do little else.
        """
        if moments.variance is None:
            return previous
        found = self._best(moments.centred())
        again = previous if found is None else found.after(previous, moments).precision()
        return again if again.n_edges else previous

    def unproven(self, moments: FactorMoments, previous: GraphEstimate) -> GraphEstimate:
        """The most likely graph without negative weights, unless it is said how many neighbours a row has."""
        is_asked = self.ask_entries and self.neighbors == "auto" and len(moments.mean) <= _MOST_UNPROVEN
        if not is_asked or moments.centred().n_directions < _FEWEST:
            return previous
        learner = LaplacianGraph(candidates=self.candidates, order=False)
        return learner.learn(moments if self.candidates is not None else _well_known(moments), previous)

    def _known_beforehand(self, n: int) -> WeightedGraph | None:
        """The given graph, or the order of the rows; None if neither is asked."""
        if self.prior is not None:
            return WeightedGraph.of_adjacency(as_symmetric(self.prior, "The prior graph"))
        return Chain(n) if self.order and self.candidates is None else None

    def _best(self, moments: FactorMoments) -> _Finding | None:
        n, k = moments.mean.shape
        sizes: tuple[int, ...] = _NEIGHBORS if self.neighbors == "auto" else (int(self.neighbors),)
        sizes = tuple(sorted({min(size, n - 1) for size in sizes if n > 1}))
        allowed = candidate_pairs(self.candidates, n)
        if not sizes or (allowed is not None and not len(allowed[0])) or moments.n_directions < _FEWEST:
            return None
        many = allowed is None and n > ALL_ROWS
        rules = (Neighborhoods.certainly_near,) if many else (Neighborhoods.certainly_near, Neighborhoods.near)
        kinds = [_Kind(rule, size) for size in sizes for rule in rules]
        most = max(sizes)
        if self.neighbors == "auto" and not many:
            kinds += [_Kind(Neighborhoods.sharing, size) for size in sizes if size >= _FEWEST_TO_SHARE]
            # Rows that share neighbours need not be near themselves. The test of pairs then sees more of them.
            most = min(2 * most, n - 1)
        search = NeighborhoodSearch(moments, most, self.fdr, allowed)
        findings = []
        for absolute in (True,) if many else (False, True):
            everything = search.among(np.arange(k), absolute)
            if not len(everything.rows) or (many and not everything.certain.any()):
                continue
            for kind, held_out in _judged(search, everything, kinds, absolute, many).items():
                findings.append(_finding(moments, everything, kind.of(everything), held_out))
        real = [finding for finding in findings if finding is not None and finding.ratio > 0]
        return max(real, key=lambda finding: (finding.gain, -finding.held_out), default=None)


def _well_known(moments: FactorMoments) -> FactorMoments:
    """Zeros in rows of which much less is known than of others.

    The entries that judge a graph are those of the others: they cannot say whether it is right about these.
    """
    squares = moments.squares()
    of_mean = np.einsum("ij,ij->i", moments.mean, moments.mean, dtype=np.float64)
    shares = np.divide(of_mean, squares, out=np.zeros_like(squares), where=squares > 0)
    typical = float(np.median(shares[shares > 0])) if shares.any() else 0.0
    are_known = shares >= _WELL_KNOWN * typical
    return moments if are_known.all() else replace(moments, mean=moments.mean * are_known[:, None])


def _together(
    given: WeightedGraph, known: GraphEstimate, found: _Finding, moments: FactorMoments, *, is_order: bool
) -> GraphEstimate:
    """Both graphs, each with the strength that suits it beside the other, or one that the other adds nothing to.

    How rough columns are over the given graph is said by the strength that it has alone, which knows how uncertain
    they are. The order joins rows that nobody found to be alike: where edges that were found explain more of columns in
    which they were not found, or rows are alike only inside of groups that these edges join, they stay alone; and where
    neither is so, of many rows the order stays alone.
    """
    n, k = moments.mean.shape
    roughness = np.array([given.roughness_of(known.strength), found.roughness])
    as_rough = ((given.spectrum(), given.roughness(moments.centred())), (found.values, found.held_out))
    of_given, of_found = (best_ratio(n, values, rough)[1] for values, rough in as_rough)
    if is_order and (of_given <= of_found or _ends_with_groups(found.graph, moments.centred())):
        return found.precision()
    if is_order and n > EXACT_NODES:
        return known
    laplacians = (given.laplacian(), found.graph.laplacian())
    identity = scipy.sparse.eye_array(n, format="csr")

    def joint(ratios: FloatArray) -> SparseGraph:
        return scipy.sparse.csr_array(identity + ratios[0] * laplacians[0] + ratios[1] * laplacians[1])

    def loss(ratios: FloatArray) -> float:
        return float(n * np.log1p(ratios @ roughness) - log_determinant(joint(ratios)).value) / 2

    first = np.log([known.strength, found.ratio])
    lowest, highest = np.transpose([log_bounds(float(graph.degrees.mean())) for graph in (given, found.graph)])
    simplex = np.clip(first - np.array([[0, 0], [1, 0], [0, 1]]), lowest, highest)
    both = scipy.optimize.minimize(
        lambda logs: loss(np.exp(np.clip(logs, lowest, highest))),
        first,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": 50, "xatol": 0.05, "fatol": 0.02},
    )
    gain = (loss(np.array([known.strength, 0.0])) - both.fun) * moments.centred().n_directions
    if gain <= WORTH * n * k:
        return known
    ratios = np.exp(np.clip(both.x, lowest, highest))
    precision = joint(ratios)
    precision = scaled(precision, np.sqrt(marginal_variances(precision)))
    return GraphEstimate(precision, log_determinant(precision).value, strength=float(ratios[0]))


def _ends_with_groups(graph: WeightedGraph, moments: FactorMoments) -> bool:
    """Whether most rows are joined to the next, and others unlike it that have no neighbour in common with it.

    So it is in a table that is sorted by groups: its order joins the last row of each to the first of the next.
    """
    rows = np.arange(graph.n - 1)
    edges = abs(graph.laplacian())
    are_joined = np.asarray(edges[rows, rows + 1]).ravel() > 0
    # With the degrees on the diagonal, rows that are joined have an entry in common too.
    are_apart = np.asarray(edges[:-1].multiply(edges[1:]).sum(axis=1)).ravel() == 0
    if are_apart.mean() < _ENDS_OF_GROUPS or are_joined.mean() < _JOINED_IN_GROUPS:
        return False
    correlations = moments.pair_correlations(rows, rows + 1)
    return bool(correlations[are_apart].mean() < _LEFT_BETWEEN_GROUPS * correlations.mean())


def _judged(
    search: NeighborhoodSearch,
    everything: Neighborhoods,
    kinds: list[_Kind],
    absolute: bool,
    many: bool,
) -> dict[_Kind, Agreement]:
    """How alike neighbours of each kind are in columns other than those in which they were found."""
    n, k = search.moments.mean.shape
    rng = np.random.default_rng(0)
    order, some = rng.permutation(k), np.sort(rng.choice(n, min(n, _SOME_ROWS), replace=False))
    n_parts = min(_PARTS_OF_MANY if many else _PARTS, k)
    p_limit = float(everything.p_values[everything.certain].max(initial=0.0))
    judged = dict.fromkeys(kinds, Agreement())
    for part in range(n_parts):
        held: IntArray = order[part::n_parts]
        rest = np.setdiff1d(order, held)
        found = search.of_some(rest, absolute, some, p_limit) if many else search.among(rest, absolute)
        for kind in kinds:
            judged[kind] += found.agreement(kind.of(found), search.moments, held)
    return {kind: replace(agreement, n_edges=agreement.n_edges / n_parts) for kind, agreement in judged.items()}


def _finding(moments: FactorMoments, everything: Neighborhoods, chosen: Array, held_out: Agreement) -> _Finding | None:
    """What a set of edges explains, or None where held-out columns know nothing of it."""
    n, k = moments.mean.shape
    # Parts of the columns judge much the same edges, chosen with each other's help, which doubles the variance.
    sample_size = min(moments.sample_size, equal_columns(moments.mean))
    error = np.sqrt(2.0 / (max(held_out.n_edges, 1.0) * sample_size))
    if not chosen.any() or held_out.correlation < max(_WEAKEST, _DEVIATIONS * error):
        return None
    graph = everything.graph(chosen)
    values = graph.spectrum(rough=True)
    inside = everything.agreement(chosen, moments, np.arange(k))
    size = 2 * inside.squares / float(moments.squares().sum())

    def roughness(share_of_inside: float) -> float:
        return (1 - held_out.correlation - share_of_inside * (inside.correlation - held_out.correlation)) * size

    in_others = roughness(0.0)
    # Of factors without error bars nothing is hidden, and only the flattery is left.
    hides = moments.variance is not None
    rough, compared = (roughness(2 / 3), roughness(1 / 3)) if hides else (in_others, in_others)
    (ratio, _), (_, gain) = best_ratio(n, values, rough), best_ratio(n, values, compared)
    return _Finding(graph, values, rough, in_others, ratio, gain)

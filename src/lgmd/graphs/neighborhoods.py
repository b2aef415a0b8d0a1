"""Which rows of a factor are near each other, and which of those are so beyond chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.stats

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.graphs.base import FactorMoments
from lgmd.graphs.strength import WeightedGraph
from lgmd.linalg.nearest_vectors import nearest_vectors
from lgmd.linalg.neighbors import ranked_pairs, shared_neighbors
from lgmd.linalg.pairs import TooManyPairsError, pair_products, pairs_above

__all__ = ["ALL_ROWS", "Agreement", "NeighborhoodSearch", "Neighborhoods", "equal_columns"]

# Up to so many rows everybody's neighbours are looked at; among more, only pairs that are certain.
ALL_ROWS = 5000

# Certain pairs a row, on average, beyond which each row's nearest are looked for one by one.
_MOST_A_ROW = 20


@dataclass(frozen=True)
class Agreement:
    """How alike the ends of edges are in some columns.

    Attributes
    ----------
    products : float
        Sum of the products of the two ends, with the sign of the edge.
    squares : float
        Sum of the mean squares of the two ends.
    n_edges : float
    """

    products: float = 0.0
    squares: float = 0.0
    n_edges: float = 0.0

    @property
    def correlation(self) -> float:
        """Of the ends of an edge; zero without edges."""
        return self.products / self.squares if self.squares > 0 else 0.0

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.products + other.products, self.squares + other.squares, self.n_edges + other.n_edges)


@dataclass(frozen=True)
class Neighborhoods:
    """Pairs of rows of which one is among the nearest of the other.

    Attributes
    ----------
    n : int
        Number of rows.
    rows, columns : ndarray of int, shape (m,)
        Each pair once, ``rows < columns``.
    cosines : ndarray of shape (m,)
        Of the angles between the two rows.
    ranks_of_ends : ndarray of int, shape (m, 2)
        How many rows are nearer to ``columns`` than ``rows`` is, and to ``rows`` than ``columns`` is; n where an end is
        not among those that were kept for the other.
    p_values : ndarray of shape (m,)
        Of rows that have nothing to do with each other.
    certain : ndarray of bool, shape (m,)
        Whether a pair passes the false discovery rate.
    """

    n: int
    rows: IntArray
    columns: IntArray
    cosines: FloatArray
    ranks_of_ends: IntArray
    p_values: FloatArray
    certain: Array

    @cached_property
    def ranks(self) -> IntArray:
        """How many rows are nearer to one end than the other end is, whichever end has fewer, (m,)."""
        return np.asarray(self.ranks_of_ends.min(axis=1))

    def near(self, n_neighbors: int) -> Array:
        """Which pairs are among so many nearest, (m,)."""
        return np.asarray(self.ranks < n_neighbors)

    def certainly_near(self, n_neighbors: int) -> Array:
        """The same of pairs that pass the false discovery rate, (m,)."""
        return self.near(n_neighbors) & self.certain

    def sharing(self, n_neighbors: int) -> Array:
        """Which pairs have half of their so many nearest in common, each row being its own nearest, (m,).

        What a pair's cosine says is seconded by their neighbours. A neighbour that is opposite to one end counts for
        opposite ends. A row with fewer neighbours, as where candidates are few, has the less to share.
        """
        most = min(n_neighbors, self._nearest.shape[1])
        shared = shared_neighbors(self._nearest, most, self.rows, self.columns)
        return np.asarray(np.sign(self.cosines) * shared >= (n_neighbors + 1) / 2)

    @cached_property
    def _nearest(self) -> IntArray:
        """The nearest of each row, counted from one and negative for opposite rows, 0 where there are no more."""
        kept = self.ranks_of_ends < self.n
        nearest = np.zeros((self.n, int(self.ranks_of_ends[kept].max(initial=-1)) + 1), dtype=np.int64)
        ends = (self.columns, self.rows)
        for own, other, ranks, is_kept in zip(ends, ends[::-1], self.ranks_of_ends.T, kept.T, strict=True):
            signed = np.where(self.cosines < 0, -1, 1) * (other + 1)
            nearest[own[is_kept], ranks[is_kept]] = signed[is_kept]
        return nearest

    def graph(self, chosen: Array) -> WeightedGraph:
        """The pairs as edges of weight one, with the sign of the cosine."""
        return WeightedGraph(self.n, self.rows[chosen], self.columns[chosen], np.sign(self.cosines[chosen]))

    def agreement(self, chosen: Array, moments: FactorMoments, columns: IntArray) -> Agreement:
        """How alike the pairs are in these columns of a factor whose rows are taken about their mean."""
        rows, others = self.rows[chosen], self.columns[chosen]
        mean = np.ascontiguousarray(moments.mean[:, columns])
        squares = np.einsum("ij,ij->i", mean, mean, dtype=np.float64)
        if moments.variance is not None:
            squares = squares + moments.variance * (len(columns) / moments.mean.shape[1])
        of_ends = (squares[rows] + squares[others]) / 2
        # About their mean, rows that have nothing to do with each other have the correlation -1 / (n - 1).
        products = (pair_products(mean, rows, others) * (self.n - 1) + of_ends) / self.n
        return Agreement(float(np.sign(self.cosines[chosen]) @ products), float(of_ends.sum()), float(chosen.sum()))


@dataclass(frozen=True)
class NeighborhoodSearch:
    """How to look for neighbours.

    Attributes
    ----------
    moments : FactorMoments
    most : int
        Neighbours of a row that are kept.
    fdr : float
        Share of false discoveries that is accepted.
    allowed : tuple of ndarray or None
        Pairs that may be neighbours; None for all.
    """

    moments: FactorMoments
    most: int
    fdr: float
    allowed: tuple[IntArray, IntArray] | None

    @property
    def n_tests(self) -> int:
        """Number of pairs that may be neighbours."""
        n = len(self.moments.mean)
        return n * (n - 1) // 2 if self.allowed is None else len(self.allowed[0])

    def among(self, columns: IntArray, absolute: bool) -> Neighborhoods:
        """All neighbours by the cosine in some columns, or by its size."""
        vectors, sample_size = _unit_rows(self.moments, columns)
        n = len(vectors)
        if self.allowed is not None:
            own, other, ranks = _ranked(vectors, *self.allowed, absolute)
        elif n <= ALL_ROWS:
            own, other, ranks = _nearest(vectors, min(self.most, n - 1), absolute)
        else:
            # As many discoveries as every row has neighbours: no threshold that is found can be lower.
            threshold = _cosine(self.fdr * self.most * n / self.n_tests, sample_size)
            try:
                pairs = pairs_above(vectors, threshold, at_most=_MOST_A_ROW * n)
                own, other, ranks = _ranked(vectors, pairs.rows, pairs.columns, absolute)
            except TooManyPairsError:
                own, other, ranks = _nearest(vectors, self.most, absolute)
        near = ranks < self.most
        return self._assembled(vectors, sample_size, own[near], other[near], ranks[near], absolute)

    def of_some(self, columns: IntArray, absolute: bool, rows: IntArray, p_limit: float) -> Neighborhoods:
        """Neighbours of some rows, certain where their p-values are at most ``p_limit``."""
        vectors, sample_size = _unit_rows(self.moments, columns)
        own, other, ranks = _nearest(vectors, self.most, absolute, rows)
        found = self._assembled(vectors, sample_size, own, other, ranks, absolute)
        return replace(found, certain=found.p_values <= p_limit)

    def _assembled(
        self, vectors: FloatArray, sample_size: float, own: IntArray, other: IntArray, ranks: IntArray, absolute: bool
    ) -> Neighborhoods:
        n = len(vectors)
        keys, pairs = np.unique(np.minimum(own, other) * n + np.maximum(own, other), return_inverse=True)
        rows, columns = keys // n, keys % n
        ranks_of_ends = np.full((len(keys), 2), n)
        ranks_of_ends[pairs, (own < other).astype(np.int64)] = ranks
        cosines = np.clip(pair_products(vectors, rows, columns).astype(np.float64), -1.0, 1.0)
        real = cosines != 0 if absolute else cosines > 0
        p_values = _p_values(cosines, sample_size)
        return Neighborhoods(
            n,
            rows[real],
            columns[real],
            cosines[real],
            ranks_of_ends[real],
            p_values[real],
            _discoveries(p_values[real], self.n_tests, self.fdr),
        )


def _unit_rows(moments: FactorMoments, columns: IntArray) -> tuple[FloatArray, float]:
    """Rows of the mean at unit length, and how many equal columns would tell as much about a cosine as these do."""
    mean = moments.mean[:, columns]
    lengths = np.sqrt(np.einsum("ij,ij->i", mean, mean, dtype=np.float64))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    unit = np.asarray(mean * scale[:, None].astype(mean.dtype))
    return unit, equal_columns(unit)


def equal_columns(mean: FloatArray) -> float:
    """How many columns of equal size would tell as much as these do."""
    energies = np.sum(np.square(mean, dtype=np.float64), axis=0)
    if not energies.any():
        return 0.0
    energies /= energies.max()
    return float(energies.sum() ** 2 / np.sum(energies**2))


def _nearest(
    vectors: FloatArray, most: int, absolute: bool, rows: IntArray | None = None
) -> tuple[IntArray, IntArray, IntArray]:
    """Rows, their neighbours and the ranks of these."""
    neighbors = nearest_vectors(vectors, most, rows=rows, absolute=absolute)
    own = np.arange(len(vectors)) if rows is None else rows
    return np.repeat(own, most), neighbors.ravel(), np.tile(np.arange(most), len(own))


def _ranked(
    vectors: FloatArray, rows: IntArray, columns: IntArray, absolute: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """The same for given pairs, each of which makes both ends neighbours."""
    scores = pair_products(vectors, rows, columns)
    return ranked_pairs(rows, columns, -np.abs(scores) if absolute else -scores)


def _p_values(cosines: FloatArray, sample_size: float) -> FloatArray:
    """Two-sided, of the cosine between two independent Gaussian vectors."""
    freedom = max(sample_size - 1.0, 1e-3)
    size = np.minimum(np.abs(cosines), 1.0 - 1e-12)
    return np.asarray(2.0 * scipy.stats.t.sf(size * np.sqrt(freedom / (1.0 - size**2)), freedom))


def _cosine(p_value: float, sample_size: float) -> float:
    """The inverse of :func:`_p_values`."""
    freedom = max(sample_size - 1.0, 1e-3)
    t = float(scipy.stats.t.isf(min(p_value, 1.0) / 2.0, freedom))
    return t / float(np.sqrt(freedom + t**2))


def _discoveries(p_values: FloatArray, n_tests: int, fdr: float) -> Array:
    """Benjamini and Hochberg's selection among all tests, of which those not given have larger p-values."""
    order = np.argsort(p_values, kind="stable")
    passed = np.flatnonzero(p_values[order] <= fdr * np.arange(1, len(order) + 1) / max(n_tests, 1))
    chosen = np.zeros(len(p_values), dtype=bool)
    if len(passed):
        chosen[order[: passed[-1] + 1]] = True
    return chosen

"""Whether rows that follow each other in the table are alike, as days and places along a line are."""

from __future__ import annotations

import numpy as np

from lgmd.graphs.base import FactorMoments, GraphEstimate, GraphLearner
from lgmd.graphs.prior import trusted
from lgmd.graphs.strength import WeightedGraph
from lgmd.linalg.logdet import Spectrum

__all__ = ["WORTH", "Chain", "order_of_rows", "prefers_order"]

# Correlation of rows that follow each other, as it is and in standard errors, below which nothing more is asked.
_WEAKEST, _DEVIATIONS = 0.02, 2.0

WORTH = 0.00125
"""Nats that a graph has to explain of each number of a factor: as much as a correlation of 0.05 does."""

# One column of so many is held out to judge whether the order says more than anything else.
_HELD_OUT = 4

# A chain couples all rows, which takes time and memory. Of more rows than this the order has to explain as much as a
# correlation of 0.3 does, and tables whose coupled covariances would have more numbers have none.
_MANY, _WORTH_OF_MANY, _MOST_NUMBERS = 5000, 0.05, 50_000_000


class Chain(WeightedGraph):
    """Each of ``n`` rows joined to the next."""

    def __init__(self, n: int) -> None:
        rows = np.arange(n - 1)
        super().__init__(n, rows, rows + 1, np.ones(len(rows)))

    def spectrum(self, rough: bool = False) -> Spectrum:
        """The eigenvalues, which are known for any number of rows."""
        return Spectrum(2.0 - 2.0 * np.cos(np.pi * np.arange(self.n) / self.n), np.ones(self.n))


def order_of_rows(moments: FactorMoments) -> GraphEstimate:
    """The chain of all rows with the strength that a factor gives it; no edge where the order says nothing.

    The order was not chosen by anybody who saw the factor, so that its likelihood is to be believed.
    """
    n, k = moments.mean.shape
    if n < 3 or n * (k + 1) ** 2 > _MOST_NUMBERS or not _follow_each_other(moments):
        return GraphEstimate.identity(n)
    return trusted(Chain(n), moments, WORTH if n <= _MANY else _WORTH_OF_MANY)


def _follow_each_other(moments: FactorMoments) -> bool:
    mean = moments.centred().mean
    products = np.einsum("ij,ij->i", mean[:-1], mean[1:], dtype=np.float64)
    squares = np.einsum("ij,ij->i", mean, mean, dtype=np.float64)
    if not squares.any():
        return False
    error = 1.0 / np.sqrt(len(mean) * max(moments.sample_size, 1.0))
    return bool(products.sum() / squares.sum() > max(_WEAKEST, _DEVIATIONS * error))


def prefers_order(
    anywhere: GraphLearner, in_order: GraphLearner, moments: FactorMoments, previous: GraphEstimate
) -> bool:
    """Whether rows that follow each other are alike, and a learner that joins no others explains more.

    Both learners are judged by columns that they have not seen. A chain that was preferred once is so for good.
    """
    n, k = moments.mean.shape
    if previous.n_edges:
        rows, columns = previous.precision.tocoo().coords
        return bool(np.all(np.abs(rows - columns) <= 1)) and 2 * previous.n_edges >= n
    if k < 2 or not order_of_rows(moments).n_edges:
        return False
    held = np.random.default_rng(0).permutation(k)[: max(1, k // _HELD_OUT)]
    rest, judge = moments.columns(np.setdiff1d(np.arange(k), held)), moments.columns(held)
    by_order, by_any = (_explained(learner.learn(rest, previous), judge) for learner in (in_order, anywhere))
    return by_order > by_any


def _explained(estimate: GraphEstimate, moments: FactorMoments) -> float:
    """What a graph says of a factor, in nats a column, at the scale that is best for it."""
    moments = moments.centred()
    mean, squares = moments.mean.astype(np.float64), moments.squares().sum()
    if not squares > 0:
        return 0.0
    rough = float(np.sum(mean * (estimate.precision @ mean)))
    if moments.variance is not None:
        rough += float(estimate.precision.diagonal() @ moments.variance)
    return (estimate.logdet - len(mean) * float(np.log(rough / squares))) / 2

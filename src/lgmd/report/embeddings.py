"""Rows and columns as points, and what each factor is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.report.decomposition import Decomposition
from lgmd.report.names import SideNames
from lgmd.report.packing import pack_integers, pack_numbers

__all__ = ["MOST_POINTS", "Embedding", "Loading", "embedding", "loadings"]

MOST_POINTS = 5_000

# Numbers in the file for one side, which limits the factors that can be chosen for the axes.
_NUMBERS = 60_000

# Factors that are described, and names that describe one.
_DESCRIBED = 20
_NAMES = 8


@dataclass(frozen=True, eq=False)
class Embedding:
    """
    Points to draw.

    Attributes
    ----------
    names : SideNames
    positions : ndarray of int, shape (m,)
        Which rows or columns are drawn.
    coordinates : ndarray of shape (m, axes)
        Their first factor columns.
    notes : list of str
        What was left out.
    """

    names: SideNames
    positions: IntArray
    coordinates: FloatArray
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Plain values for the page's script."""
        whole = len(self.positions) == self.names.n
        return {
            "noun": self.names.noun,
            "labels": None if self.names.labels is None else self.names.some(self.positions),
            "positions": None if whole else pack_integers(self.positions),
            "columns": [pack_numbers(column) for column in self.coordinates.T],
        }


@dataclass(frozen=True)
class Loading:
    """
    What a factor is about.

    Attributes
    ----------
    number : int
        From 1.
    share : float
        Of the squares of all factors' parts of the table.
    rows, columns : list of (str, float)
        The strongest, with their loadings relative to the root mean square of all.
    """

    number: int
    share: float
    rows: list[tuple[str, float]]
    columns: list[tuple[str, float]]


def embedding(factors: FloatArray, names: SideNames) -> Embedding:
    """Points of one side; a sample of them where there are many."""
    n, k = factors.shape
    positions, notes = np.arange(n), []
    if n > MOST_POINTS:
        # The same points in every report of the same table.
        positions = np.sort(np.random.default_rng(0).choice(n, MOST_POINTS, replace=False))
        notes.append(f"Of {n:,} {names.plural} {MOST_POINTS:,} are drawn, chosen at random.")
    most = max(2, _NUMBERS // len(positions))
    if k > most:
        notes.append(f"The first {most} of {k} factors can be chosen.")
    return Embedding(names, positions, factors[positions, :most], notes)


def loadings(model: Decomposition) -> list[Loading]:
    """The factors in their order, each with its strongest rows and columns."""
    squares = (model.sizes / (model.sizes.max() or 1.0)) ** 2
    total = float(squares.sum()) or 1.0
    return [
        Loading(
            number=factor + 1,
            share=float(squares[factor] / total),
            rows=_strongest(model.X[:, factor], model.rows),
            columns=_strongest(model.W[:, factor], model.columns),
        )
        for factor in range(min(_DESCRIBED, model.X.shape[1]))
    ]


def _strongest(column: FloatArray, names: SideNames) -> list[tuple[str, float]]:
    unit = float(np.sqrt(np.mean(np.square(column, dtype=np.float64)))) or 1.0
    strongest = np.argsort(-np.abs(column), kind="stable")[:_NAMES]
    return [(names[int(position)], float(column[position]) / unit) for position in strongest]

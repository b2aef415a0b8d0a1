"""Synthetic ratings with power-law row and column counts, for the speed benchmarks.

The shape and the skew follow the MovieLens 10M ratings: a few very busy rows and columns, a long tail
of quiet ones. :mod:`rivals` times other libraries on this data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GLOBAL_MEAN = 3.5
MEAN_SPREAD = 0.5
HEAD_SHARE = 0.01
BLOCK = 1_000_000


@dataclass(frozen=True)
class Ratings:
    """Observed entries in coordinate form, sorted by row, then by column.

    Attributes
    ----------
    rows, columns : ndarray of int32, shape (n_entries,)
    values : ndarray of float32, shape (n_entries,)
    shape : tuple of int
        Rows and columns of the matrix that the entries come from.
    """

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    shape: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Bytes of the three entry arrays together."""
        return self.rows.nbytes + self.columns.nbytes + self.values.nbytes


def make_ratings(
    n_rows: int = 70_000,
    n_columns: int = 10_000,
    n_entries: int = 10_000_000,
    rank: int = 8,
    noise: float = 0.5,
    exponent: float = 1.2,
    seed: int = 0,
) -> Ratings:
    r"""Draw a low-rank matrix with row and column means, seen at power-law positions.

    .. math:: y_{ij} = \mu + r_i + c_j + u_i^\top v_j + \sigma \varepsilon_{ij}

    with :math:`u_i^\top v_j` of unit variance. Ten million entries take a few seconds and a few times the
    entries' own memory.

    Parameters
    ----------
    n_rows, n_columns, n_entries : int
        Size of the matrix, and how many distinct cells of it are observed. Every row and every column has
        at least one.
    rank : int
        Components of the signal.
    noise : float
        Standard deviation :math:`\sigma` of the noise, the error that a perfect model would leave.
    exponent : float
        The line of popularity rank ``r`` (from 0) is drawn in proportion to
        ``(r + n_lines / 100) ** -exponent``; 0 is uniform. The shift keeps the busiest lines from filling up.
    seed : int

    Returns
    -------
    Ratings
    """
    if not n_rows + n_columns <= n_entries <= n_rows * n_columns // 2:
        raise ValueError(
            f"n_entries={n_entries:,} does not suit a {n_rows:,} x {n_columns:,} matrix: it takes at least "
            f"{n_rows + n_columns:,} to reach every row and column and may fill at most half of the cells."
        )
    rng = np.random.default_rng(seed)
    cells = _distinct_cells(rng, n_rows, n_columns, n_entries, exponent)
    rows = (cells // n_columns).astype(np.int32)
    columns = (cells % n_columns).astype(np.int32)
    del cells

    row_factors = rng.standard_normal((n_rows, rank), dtype=np.float32) / np.float32(np.sqrt(rank))
    column_factors = rng.standard_normal((n_columns, rank), dtype=np.float32)
    row_means = np.float32(MEAN_SPREAD) * rng.standard_normal(n_rows, dtype=np.float32)
    column_means = np.float32(MEAN_SPREAD) * rng.standard_normal(n_columns, dtype=np.float32)
    values = predict(rows, columns, row_factors, column_factors, GLOBAL_MEAN, row_means, column_means)
    values += np.float32(noise) * rng.standard_normal(n_entries, dtype=np.float32)
    return Ratings(rows, columns, values, (n_rows, n_columns))


def predict(
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    row_factors: NDArray[np.float32],
    column_factors: NDArray[np.float32],
    mean: float,
    row_means: NDArray[np.float32],
    column_means: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Evaluate a factorisation with means at the given entries, block by block to spare memory."""
    values = np.empty(rows.size, dtype=np.float32)
    for start in range(0, rows.size, BLOCK):
        block = slice(start, start + BLOCK)
        i, j = rows[block], columns[block]
        np.einsum("ek,ek->e", row_factors[i], column_factors[j], out=values[block])
        values[block] += row_means[i] + column_means[j] + np.float32(mean)
    return values


def _distinct_cells(
    rng: np.random.Generator, n_rows: int, n_columns: int, n_entries: int, exponent: float
) -> NDArray[np.int64]:
    """Sorted flat positions: one in every row and column, the others by popularity without replacement."""
    draw_rows = _PowerLawLines(rng, n_rows, exponent)
    draw_columns = _PowerLawLines(rng, n_columns, exponent)
    cells = _merge_distinct(
        np.arange(n_rows) * n_columns + draw_columns(n_rows),
        draw_rows(n_columns) * n_columns + np.arange(n_columns),
    )
    # Drawing only what is missing never overshoots, so there is nothing to throw away at the end.
    while (missing := n_entries - cells.size) > 0:
        cells = _merge_distinct(cells, draw_rows(missing) * n_columns + draw_columns(missing))
    return cells


def _merge_distinct(cells: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sorted union. The stable sort merges sorted runs in linear time, where ``np.unique`` hashes anew."""
    merged = np.concatenate([np.sort(cells, kind="stable"), np.sort(drawn)])
    merged.sort(kind="stable")
    return merged[np.append(True, merged[1:] != merged[:-1])]


class _PowerLawLines:
    """Draws line numbers by popularity; the popular ones lie at random positions, as in real tables."""

    def __init__(self, rng: np.random.Generator, n_lines: int, exponent: float):
        popularity = (np.arange(n_lines) + HEAD_SHARE * n_lines) ** -exponent
        self.rng = rng
        self.lines = rng.permutation(n_lines)
        self.cumulative = np.cumsum(popularity / popularity.sum())
        self.cumulative[-1] = 1.0

    def __call__(self, size: int) -> NDArray[np.int64]:
        return self.lines[np.searchsorted(self.cumulative, self.rng.random(size), side="right")]

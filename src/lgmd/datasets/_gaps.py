"""
Which entries of a table are hidden: patterns of gaps, each with an exact number of them.

Whatever the pattern, every row and every column keeps at least one observed entry.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from lgmd._typing import Array, IntArray
from lgmd.exceptions import InvalidParameterError

__all__ = ["PATTERNS", "draw_mask"]

Shape: TypeAlias = tuple[int, int]


def draw_mask(shape: Shape, missing: float, pattern: str, rng: np.random.Generator) -> Array:
    """
    Draw a mask, True where an entry is observed, with exactly ``round(missing * n * p)`` gaps.

    Where a drawn pattern empties a row or a column, single gaps are moved until none is empty.

    Parameters
    ----------
    shape : tuple of int
        Rows n and columns p.
    missing : float
        Share of hidden entries, in [0, 1).
    pattern : str
        A name in ``PATTERNS``.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of bool of shape (n, p)
        The mask.

    Raises
    ------
    InvalidParameterError
        If fewer entries would be left than there are rows, or columns.
    """
    n_entries, n_needed = shape[0] * shape[1], max(shape)
    n_hidden = round(missing * n_entries)
    if n_entries - n_hidden < n_needed:
        raise InvalidParameterError(
            f"missing={missing:g} hides {n_hidden:,} of {n_entries:,} entries, but {n_needed:,} must stay to "
            f"leave one in each of {shape[0]:,} rows and {shape[1]:,} columns. "
            f"Use missing={math.floor(1e4 * (1 - n_needed / n_entries)) / 1e4:g} or less."
        )
    if n_hidden == 0:
        return np.ones(shape, dtype=bool)
    return _without_empty_lines(~PATTERNS[pattern](shape, n_hidden, rng), rng)


def _hide_at_random(shape: Shape, n_hidden: int, rng: np.random.Generator) -> Array:
    """Hide entries one by one, each equally likely."""
    hidden = np.zeros(shape, dtype=bool)
    hidden.flat[rng.choice(hidden.size, size=n_hidden, replace=False, shuffle=False)] = True
    return hidden


def _hide_runs_in_rows(shape: Shape, n_hidden: int, rng: np.random.Generator) -> Array:
    """
    Hide one run of entries in each row, as long as chance has it: nothing in some rows, nearly all of others.

    The rows' gap shares follow a beta distribution that is high at both ends. A run that reaches the last
    column goes on in the first, so that no column is favoured.
    """
    n_rows, n_columns = shape
    share = n_hidden / (n_rows * n_columns)
    lengths = np.minimum(np.rint(n_columns * rng.beta(share, 1 - share, size=n_rows)), n_columns - 1)
    lengths = lengths.astype(np.int64)
    n_short = n_hidden - int(lengths.sum())
    if n_short > 0:
        room = n_columns - 1 - lengths
        lengths += rng.multivariate_hypergeometric(room, n_short, method="marginals")
    else:
        lengths -= rng.multivariate_hypergeometric(lengths, -n_short, method="marginals")
    starts = rng.integers(n_columns, size=n_rows)
    since_start = (np.arange(n_columns) - starts[:, np.newaxis]) % n_columns
    hidden: Array = since_start < lengths[:, np.newaxis]
    return hidden


def _hide_rectangles(shape: Shape, n_hidden: int, rng: np.random.Generator) -> Array:
    """Hide rectangles, each up to a third of the table high and wide, and cut the last to fit."""
    n_rows, n_columns = shape
    hidden = np.zeros(shape, dtype=bool)
    while n_hidden > 0:
        height, width = rng.integers(1, max(1, n_rows // 3) + 1), rng.integers(1, max(1, n_columns // 3) + 1)
        # Rectangles may stick out at any side, so that corners are hidden as often as the centre.
        top, left = rng.integers(1 - height, n_rows), rng.integers(1 - width, n_columns)
        rectangle = hidden[max(top, 0) : top + height, max(left, 0) : left + width]
        rows, columns = np.nonzero(~rectangle)
        rectangle[rows[:n_hidden], columns[:n_hidden]] = True
        n_hidden -= min(n_hidden, len(rows))
    return hidden


#: Patterns by name, as functions of the shape, the number of gaps and a random generator.
PATTERNS: Final[dict[str, Callable[[Shape, int, np.random.Generator], Array]]] = {
    "random": _hide_at_random,
    "rows": _hide_runs_in_rows,
    "blocks": _hide_rectangles,
}


def _without_empty_lines(mask: Array, rng: np.random.Generator) -> Array:
    """Show an entry in each empty row and column, and hide as many others."""
    mask = mask.copy()
    n_observed = int(np.count_nonzero(mask))
    empty_rows = np.flatnonzero(~mask.any(axis=1))
    mask[empty_rows, rng.integers(mask.shape[1], size=len(empty_rows))] = True
    empty_columns = np.flatnonzero(~mask.any(axis=0))
    mask[rng.integers(mask.shape[0], size=len(empty_columns)), empty_columns] = True
    if _hide_spare_entries(mask, int(np.count_nonzero(mask)) - n_observed, rng):
        return mask
    return _scattered_cover(mask.shape, n_observed, rng)


def _hide_spare_entries(mask: Array, n_spare: int, rng: np.random.Generator) -> bool:
    """Hide, in place, entries not the last of their row or column; return whether there were enough."""
    if n_spare == 0:
        return True
    left_in_row, left_in_column = mask.sum(axis=1), mask.sum(axis=0)
    for row, column in rng.permutation(np.argwhere(mask)):
        if left_in_row[row] > 1 and left_in_column[column] > 1:
            mask[row, column] = False
            left_in_row[row] -= 1
            left_in_column[column] -= 1
            n_spare -= 1
            if n_spare == 0:
                return True
    return False


def _scattered_cover(shape: Shape, n_observed: int, rng: np.random.Generator) -> Array:
    """
    Show one entry in each row and column, by the fewest entries that do, and others at random.

    It serves where so few entries are left that there is no choice of pattern.
    """
    n_cover = max(shape)
    rows: IntArray = np.resize(rng.permutation(shape[0]), n_cover)
    columns: IntArray = np.resize(rng.permutation(shape[1]), n_cover)
    mask = np.zeros(shape, dtype=bool)
    mask[rows, columns] = True
    others = np.flatnonzero(~mask)
    mask.flat[rng.choice(others, size=n_observed - n_cover, replace=False, shuffle=False)] = True
    return mask

"""
Where names are: the rules by which a header and row names are recognised.

Cells are numbers, gaps or text (``_cells``). "The first column" means its cells below the first row.

The first row is a header where one of these holds:

1. it is one cell shorter than the second row, and it or the first column has text (R's ``write.table``);
2. at least half of its cells after the first are text;
3. some are, the first cell is text or empty, and all the numbers among them are whole (``station,1990,1991,mean``);
4. only its first cell is empty, no cell of the first column is, and the rest are distinct (``,0,1,2`` of pandas);
5. only its first cell is text, and the first column has none (``day,1,2`` over ``1,0.5,0.7``);
6. only its first cell is text, and the rest are three or more whole numbers that rise by equal steps
   (``station,1990,1991,1992``);
7. its cells are three or more and just count, 0, 1, 2, ... or 1, 2, 3, ..., and a cell below is neither a whole
   number nor a gap (pandas without names). The user is told of this guess, and of the other where all are whole.

The first column is row names where one of these holds:

1. the header is one cell shorter than the rows;
2. more than half of its cells are text;
3. some are, and its cells are distinct, none is a gap and all the numbers among them are whole (``1``, ``2``, ``X``);
4. none are and none is a gap, but there is a header whose first cell is empty;
5. the same where that cell is text, the cells are distinct whole numbers, and ``_row_ids`` takes these for ids.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from lgmd._typing import FloatArray
from lgmd.tables._cells import Cells, is_whole
from lgmd.tables._row_ids import Ids, judge_ids

__all__ = ["Choice", "Layout", "all_whole", "find_layout", "warn_of_counting"]

Choice = bool | Literal["auto"]


@dataclass(frozen=True)
class Layout:
    """
    Where names are.

    Attributes
    ----------
    header, names : bool
        Whether the first row holds column names, and the first column row names.
    cornerless : bool
        Whether the header has no cell above the row names.
    ids : Ids
        What the first column was judged to be, where `names` was not said.
    counts : bool
        Whether the first row just counts, so that `header` is a guess.
    """

    header: bool
    names: bool
    cornerless: bool = False
    ids: Ids = field(default=Ids.DATA, compare=False)
    counts: bool = field(default=False, compare=False)


def find_layout(
    first: Sequence[str],
    column: Sequence[str],
    second_width: int | None,
    cells: Cells,
    others: Callable[[], FloatArray],
    header: Choice = "auto",
    row_names: Choice = "auto",
) -> Layout:
    """
    Find where names are, by the rules of this module unless `header` and `row_names` say so.

    Parameters
    ----------
    first : sequence of str
        The first row.
    column : sequence of str
        First cells of all rows after it.
    second_width : int or None
        Number of cells of the second row.
    cells : Cells
        What is a number, and what a gap.
    others : callable
        Gives the numbers of all other columns below the header, with NaN for whatever is none.
    header, row_names : bool or "auto"
    """
    cornerless = (
        second_width == len(first) + 1
        and header is not False
        and row_names is not False
        and (any(map(cells.is_text, first)) or any(map(cells.is_text, column)) or header is True)
    )
    if cornerless:
        return Layout(header=True, names=True, cornerless=True)
    counts = header == "auto" and _just_counts(first)
    if counts:
        has_header = any(map(cells.is_text, column)) or not all_whole(_numbers(column, cells), others())
    else:
        has_header = _is_header(first, column, cells) if header == "auto" else header
    if row_names != "auto":
        return Layout(has_header, row_names, counts=counts)
    ids = _judge(first[0] if has_header else None, [*first[: not has_header], *column], cells, others)
    return Layout(has_header, ids.are_names, ids=ids, counts=counts)


def all_whole(*numbers: FloatArray) -> bool:
    """Whether there are no numbers but whole ones; gaps may be among them."""
    return all(bool(np.all((part == np.floor(part)) | np.isnan(part))) for part in numbers)


def warn_of_counting(is_header: bool, path: Path) -> None:
    """Tell the user what a first row that just counts was taken for."""
    if is_header:
        message = (
            f"{path}: the first row is taken for column names, since it just counts, which the rows below do not. Pass "
            "header=False if it is data, header=True if it is names."
        )
    else:
        message = (
            f"{path}: the first row is taken for data, although it just counts, as headers of tables without names do. "
            "Pass header=True if it is names, header=False if it is data."
        )
    warnings.warn(message, UserWarning, stacklevel=4)


def _is_header(first: Sequence[str], column: Sequence[str], cells: Cells) -> bool:
    corner, *rest = first
    if not rest:
        return cells.is_text(corner) and not all(map(cells.is_text, column))
    texts = sum(map(cells.is_text, rest))
    numbers = [text for text in rest if cells.is_number(text)]
    if texts:
        named = not cells.is_number(corner) and all(map(is_whole, numbers))
        return 2 * texts >= len(rest) or named
    if not corner.strip():
        return bool(column) and all(text.strip() for text in column) and len(set(rest)) == len(rest) == len(numbers)
    if not cells.is_text(corner):
        return False
    return not any(map(cells.is_text, column)) or (len(numbers) == len(rest) and _in_equal_steps(numbers))


def _just_counts(first: Sequence[str]) -> bool:
    return len(first) >= 3 and any([*first] == [str(start + i) for i in range(len(first))] for start in (0, 1))


def _numbers(column: Sequence[str], cells: Cells) -> FloatArray:
    return np.array([float(text) if cells.is_number(text) else np.nan for text in column])


def _judge(corner: str | None, column: Sequence[str], cells: Cells, others: Callable[[], FloatArray]) -> Ids:
    texts = sum(map(cells.is_text, column))
    if 2 * texts > len(column):
        return Ids.NAMES
    if any(map(cells.is_missing, column)):
        return Ids.DATA
    countable = len(set(column)) == len(column) and all(is_whole(t) for t in column if not cells.is_text(t))
    if texts:
        return Ids.NAMES if countable else Ids.DATA
    if corner is None or not column:
        return Ids.DATA
    if not corner.strip():
        return Ids.NAMES
    if not countable or not cells.is_text(corner):
        return Ids.DATA
    return judge_ids(corner, np.array([float(text) for text in column]), others)


def _in_equal_steps(numbers: Sequence[str]) -> bool:
    if len(numbers) < 3 or not all(map(is_whole, numbers)):
        return False
    whole = [int(text) for text in numbers]
    steps = {after - before for before, after in pairwise(whole)}
    return len(steps) == 1 and steps.pop() > 0

"""
Rows of text cells as numbers, one cell at a time: slow, and exact about what is wrong and where.

Text is first read by ``_fast_text``; only where that fails does it come here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import TableError
from lgmd.tables._cells import BadCellError, Cells, is_whole, shorten
from lgmd.tables._layout import Choice, Layout, find_layout
from lgmd.tables._row_ids import Ids
from lgmd.tables._text_file import Row

__all__ = ["Grid", "Source", "column_names", "integer_columns", "known_numbers", "parse_grid"]


@dataclass(frozen=True)
class Source:
    """
    Rows of a file, and how to speak of its places.

    Attributes
    ----------
    name : str
        The file.
    rows : callable
        Gives its rows anew, each with its line.
    line : callable
        Words for a line, as in "line 3".
    cell : callable
        Words for a cell by line and column, both counted from one.
    """

    name: str
    rows: Callable[[], Iterator[Row]]
    line: Callable[[int], str]
    cell: Callable[[int, int], str]


@dataclass(frozen=True, eq=False)
class Grid:
    """A parsed table: numbers, names, the corner, which columns are integers, and what names may be and may not."""

    values: FloatArray
    row_names: list[str] | None
    column_names: list[str] | None
    corner: str | None
    integers: Array
    ids: Ids = Ids.DATA
    counts: bool = False


def parse_grid(source: Source, cells: Cells, header: Choice, row_names: Choice) -> Grid:
    """
    Numbers and names of a grid of text.

    Raises
    ------
    TableError
        If rows differ in length, there are no numbers, or a cell is not one.
    """
    first, column, layout = _survey(source, cells, header, row_names)
    head: list[list[str]] = []
    numbers: list[FloatArray] = []
    for position, (line, row) in enumerate(source.rows()):
        if position < layout.header:
            continue
        texts = row[layout.names :]
        if len(head) < 100:
            head.append(texts)
        if not numbers and texts and all(cells.is_text(text) and not _has_digits(text) for text in texts):
            raise TableError(
                f"{source.name}, {source.line(line)}: there are names but no numbers; the first cell after them is "
                f"{shorten(texts[0])}. A table has a number in every cell that is not a name or a gap."
            )
        numbers.append(_numbers(source, cells, line, texts, layout, first))
    values = np.array(numbers) if numbers else np.empty((0, len(first) - layout.names))
    names = [*first[: not layout.header], *column] if layout.names else None
    corner = first[0] if layout.names and layout.header and not layout.cornerless else None
    integers = integer_columns(values, head)
    return Grid(values, names, column_names(first, layout), corner, integers, layout.ids, layout.counts)


def column_names(first: list[str], layout: Layout) -> list[str] | None:
    """Names in the first row, if it has any."""
    if not layout.header:
        return None
    return first[layout.names and not layout.cornerless :]


def integer_columns(values: FloatArray, head: list[list[str]]) -> Array:
    """Which columns have whole numbers only, and write them so in the first rows."""
    with np.errstate(invalid="ignore"):
        whole = np.all((values == np.floor(values)) | np.isnan(values), axis=0)
    for column in np.flatnonzero(whole):
        whole[column] = not any(
            "." in row[column] or "e" in row[column].lower() for row in head if _has_digits(row[column])
        )
    return np.asarray(whole, dtype=bool)


def known_numbers(rows: Iterable[list[str]], cells: Cells) -> FloatArray:
    """Numbers of all columns but the first, with NaN for whatever is none."""
    return np.array([[_known_number(text, cells) for text in row[1:]] for row in rows], dtype=np.float64)


def _known_number(text: str, cells: Cells) -> float:
    try:
        return cells.number(text)
    except BadCellError:  # told when it is read as data
        return np.nan


def _has_digits(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _survey(source: Source, cells: Cells, header: Choice, row_names: Choice) -> tuple[list[str], list[str], Layout]:
    rows = source.rows()
    start, first = next(rows)
    leading = list(islice(rows, 2))
    longer = bool(leading) and all(len(row) == len(first) + 1 for _, row in leading)
    second_width = len(first) + longer
    nothing = np.empty((0, 0))
    layout = find_layout(first, [row[0] for _, row in leading], second_width, cells, lambda: nothing, header, row_names)
    width = len(first) + layout.cornerless
    column: list[str] = []
    for line, row in chain(leading, rows):
        if len(row) != width:
            _refuse_ragged(source, start, line, width, row)
        column.append(row[0])

    def others() -> FloatArray:  # only below a header does it matter what they are
        return known_numbers((row for _, row in islice(source.rows(), 1, None)), cells)

    return first, column, find_layout(first, column, second_width, cells, others, header, row_names)


def _refuse_ragged(source: Source, start: int, line: int, width: int, row: list[str]) -> None:
    more = " The last of them is empty: does the line end in a delimiter?" if len(row) > width and not row[-1] else ""
    raise TableError(
        f"{source.name}, {source.line(line)}: there are {len(row):,} cells, but {source.line(start)} calls for "
        f"{width:,}.{more} Give every row the same number of cells, and quote names that contain the delimiter."
    )


def _numbers(source: Source, cells: Cells, line: int, texts: list[str], layout: Layout, first: list[str]) -> FloatArray:
    values = np.empty(len(texts))
    for position, text in enumerate(texts):
        try:
            values[position] = cells.number(text)
        except BadCellError as error:
            names = column_names(first, layout)
            named = f" ({shorten(names[position])})" if names else ""
            more = ""
            if not layout.header and line == next(source.rows())[0]:
                more = " If the first row holds column names, pass header=True."
            elif not layout.names and position == 0 and not is_whole(text):
                more = " If the first column holds row names, pass row_names=True."
            place = source.cell(line, position + 1 + layout.names)
            raise TableError(f"{source.name}, {place}{named}: the cell {error}{more}") from None
    return values

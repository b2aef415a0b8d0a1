"""Tables in text: CSV, TSV and what else people separate cells with."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from lgmd._typing import FloatArray
from lgmd.exceptions import TableError
from lgmd.tables._cells import Cells
from lgmd.tables._delimiters import find_delimiter
from lgmd.tables._fast_text import fast_grid
from lgmd.tables._grid import Grid, Source, column_names, integer_columns, known_numbers, parse_grid
from lgmd.tables._layout import all_whole, find_layout, warn_of_counting
from lgmd.tables._long_text import read_long_text
from lgmd.tables._names import as_names
from lgmd.tables._options import Options
from lgmd.tables._row_ids import Ids, judge_ids, warn_of_guess
from lgmd.tables._text_file import Row, TextFile, open_text
from lgmd.tables.table import Form, Table

__all__ = ["read_text"]

_HEAD = 101

# Beyond it not every integer is a double.
_LARGEST_INTEGER = 2.0**53


def read_text(options: Options) -> Table:
    """Read a table from text."""
    file = open_text(options.path, options.encoding)
    delimiter = options.delimiter
    if delimiter is None:
        delimiter, file = find_delimiter(file, options.format)
    elif delimiter == " ":
        file = file.with_single_spaces()
    head = list(islice(file.rows(delimiter), _HEAD))
    if options.long is not None:
        return read_long_text(file, delimiter, head, options)
    source = Source(
        str(options.path),
        lambda: file.rows(delimiter),
        lambda line: f"line {line:,}",
        lambda line, column: f"line {line:,}, column {column:,}",
    )
    cells = Cells(options.missing, delimiter)
    grid = _fast(file, delimiter, head, cells, options) or parse_grid(source, cells, options.header, options.row_names)
    _refuse_empty(grid, delimiter, options)
    warn_of_guess(grid.ids, head[0][1][0], options.path)
    if grid.counts:
        warn_of_counting(grid.column_names is not None, options.path)
    return Table(
        grid.values,
        as_names(grid.row_names),
        as_names(grid.column_names),
        grid.corner,
        options.path,
        Form(options.format, delimiter, file.encoding, integers=grid.integers),
    )


def _fast(file: TextFile, delimiter: str, head: list[Row], cells: Cells, options: Options) -> Grid | None:
    """The table as pyarrow reads it, or None if there is anything to explain, or the head gave a wrong idea of it."""
    rows = [row for _, row in head]
    if len(rows) < 2:
        return None
    first, width = rows[0], len(rows[1])
    if any(len(row) != width for row in rows[1:]):
        return None
    flags = (options.header, options.row_names)
    layout = find_layout(
        first, [row[0] for row in rows[1:]], width, cells, lambda: known_numbers(rows[1:], cells), *flags
    )
    if len(first) + layout.cornerless != width or width <= layout.names:
        return None
    skip = head[layout.header][0] - 1
    found = fast_grid(file, delimiter, width, skip, layout.names, options.missing)
    if found is None or np.isinf(found.values).any():
        return None
    if layout.counts and not layout.header and not all_whole(found.values):
        grid = _fast(file, delimiter, head, cells, replace(options, header=True))
        return None if grid is None else replace(grid, counts=True)
    ids = Ids.DATA
    if layout.names:
        column = found.first_column or []
        whole = find_layout(first, column[not layout.header :], width, cells, lambda: found.values, *flags)
        if whole.header == layout.header and not whole.names:
            again = replace(options, header=whole.header, row_names=False)
            grid = _fast(file, delimiter, head, cells, again)
            return None if grid is None else replace(grid, ids=whole.ids, counts=whole.counts)
        if whole != layout:
            return None
        ids = whole.ids
    texts = [row[layout.names :] for row in rows[layout.header :]]
    integers = integer_columns(found.values, texts)
    if np.any(np.abs(found.values[:, integers]) >= _LARGEST_INTEGER):
        return None
    if layout.header and not layout.names and options.row_names == "auto" and integers[0] and cells.is_text(first[0]):
        ids = _doubt(first[0], found.values)
    corner = first[0] if layout.names and layout.header and not layout.cornerless else None
    return Grid(found.values, found.first_column, column_names(first, layout), corner, integers, ids, layout.counts)


def _doubt(header: str, values: FloatArray) -> Ids:
    """Whether a first column of integers, whose head showed that they are no names, looks like names even so."""
    column = values[:, 0]
    if np.isnan(column).any() or len(np.unique(column)) < len(column):
        return Ids.DATA
    ids = judge_ids(header, column, lambda: values[:, 1:])
    return Ids.DATA if ids.are_names else ids


def _refuse_empty(grid: Grid, delimiter: str, options: Options) -> None:
    n, p = grid.values.shape
    if n == 0:
        raise TableError(
            f"{options.path} has a header and no rows below it. If the first line is numbers that belong to the table, "
            "pass header=False."
        )
    if p == 0:
        what = "names but no numbers" if grid.row_names else "no numbers"
        raise TableError(
            f"{options.path} has {what}: with {delimiter!r} as delimiter its rows have one cell. Pass delimiter= if "
            "cells are separated by another sign."
        )

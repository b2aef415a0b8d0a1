"""Long tables in text: a row, a column and a value on every line."""

from __future__ import annotations

import numpy as np

from lgmd.exceptions import TableError
from lgmd.tables._cells import BadCellError, Cells
from lgmd.tables._fast_text import fast_long
from lgmd.tables._long import Entries, find_columns, long_table
from lgmd.tables._options import Options
from lgmd.tables._text_file import Row, TextFile
from lgmd.tables.table import Form, Table

__all__ = ["read_long_text"]


def read_long_text(file: TextFile, delimiter: str, head: list[Row], options: Options) -> Table:
    """Read a long table; other columns than the three that are named are left aside."""
    assert options.long is not None
    cells = Cells(options.missing, delimiter)
    first = head[0][1]
    header = options.header
    if header == "auto":
        header = _has_header(first, options.long, cells)
    columns = find_columns(first if header else None, len(first), options.long, options.path)
    if len(head) <= header:
        raise TableError(f"{options.path} has a header and no rows below it.")
    entries = _fast(file, delimiter, head[header][0] - 1, len(first), columns, options)
    if entries is None or np.isinf(entries.values).any():
        entries = _slow(file, delimiter, header, len(first), columns, cells, options)
    names = tuple(first[position] for position in columns) if header else ("row", "column", "value")
    texts = [row[columns[2]] for _, row in head[header:] if len(row) > columns[2]]
    plain = not any("." in text or "e" in text.lower() for text in texts if any(map(str.isdigit, text)))
    whole = plain and bool(np.all(entries.values[~np.isnan(entries.values)] % 1 == 0))
    form = Form(
        options.format,
        delimiter,
        file.encoding,
        integers=np.array([whole]),
        long=names,  # type: ignore[arg-type]
        header=header,
    )
    return long_table(entries, form, options.path)


def _has_header(first: list[str], long: tuple[str | int, str | int, str | int], cells: Cells) -> bool:
    value = long[2]
    if any(isinstance(column, str) for column in long) or not isinstance(value, int):
        return True
    return not 0 <= value < len(first) or cells.is_text(first[value])


def _fast(
    file: TextFile, delimiter: str, skip: int, width: int, columns: tuple[int, int, int], options: Options
) -> Entries | None:
    found = fast_long(file, delimiter, width, skip, columns, options.missing)
    if found is None:
        return None
    rows, items, values = found
    return Entries.from_dictionaries(rows, items, values)


def _slow(
    file: TextFile,
    delimiter: str,
    header: bool,
    width: int,
    columns: tuple[int, int, int],
    cells: Cells,
    options: Options,
) -> Entries:
    """The entries cell by cell, so that what is wrong can be named with its line."""
    labels: tuple[dict[str, int], dict[str, int]] = ({}, {})
    places: tuple[list[int], list[int]] = ([], [])
    values: list[float] = []
    for position, (line, row) in enumerate(file.rows(delimiter)):
        if position < header:
            continue
        if len(row) != width:
            raise TableError(
                f"{options.path}, line {line:,}: there are {len(row):,} cells, but the first line has {width:,}. Give "
                "every line the same number of cells, and quote names that contain the delimiter."
            )
        for side in (0, 1):
            places[side].append(labels[side].setdefault(row[columns[side]], len(labels[side])))
        try:
            values.append(cells.number(row[columns[2]]))
        except BadCellError as error:
            raise TableError(f"{options.path}, line {line:,}, column {columns[2] + 1:,}: the cell {error}") from None
    return Entries(
        np.array(places[0], dtype=np.int32),
        np.array(places[1], dtype=np.int32),
        np.array(values, dtype=np.float64),
        list(labels[0]),
        list(labels[1]),
    )

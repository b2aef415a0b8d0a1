"""
Tables as text.

Numbers are written in the shortest form that reads back as the same double. In a column that held integers alone,
whole numbers are written without a decimal point; a value filled in there keeps its decimals.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from lgmd._typing import Array
from lgmd.exceptions import TableError
from lgmd.tables._short_numbers import short_numbers
from lgmd.tables._storage import as_entries
from lgmd.tables.table import Table

__all__ = ["write_text_table"]

_DELIMITERS = {"csv": ",", "tsv": "\t", "txt": "\t"}
_TEXT = tuple(_DELIMITERS)


def write_text_table(table: Table, path: Path, format: str, compressed: bool) -> None:
    """Write text in the delimiter and encoding of the file that it came from, if that was of the same format."""
    same = table.form.format == format
    delimiter = (table.form.delimiter if same else None) or _DELIMITERS[format]
    encoding = table.form.encoding if table.form.format in _TEXT else "utf-8"
    with _open(path, encoding, compressed) as file:
        try:
            if table.form.long is not None or table.is_sparse:
                _write_long(table, file, delimiter)
            else:
                _write_wide(table, file, delimiter)
        except UnicodeEncodeError as error:
            raise TableError(
                f"A name has the character {error.object[error.start]!r}, which the encoding {encoding!r} of the "
                "original cannot hold. Write another format, or save the original as UTF-8 first."
            ) from error


def _write_wide(table: Table, file: IO[str], delimiter: str) -> None:
    gap = "NA" if delimiter == " " else ""
    columns = None if table.column_names is None else _fields(table.column_names, delimiter)
    rows = None if table.row_names is None else _fields(table.row_names, delimiter)
    if columns is not None:
        if rows is not None and (table.corner is not None or not _came_from_text(table)):
            columns = [*_fields([table.corner or ""], delimiter), *columns]
        file.write(delimiter.join(columns) + "\n")
    whole = _whole(table)
    for position, row in enumerate(table.values):
        # A float32 is written as the double that it is, so that it reads back as the same number.
        numbers = row.astype(np.float64, copy=False)
        text = short_numbers(numbers, whole, gap.encode(), delimiter.encode())
        if text is None:
            text = delimiter.join(_texts(numbers, whole, gap))
        if rows is not None:
            text = f"{rows[position]}{delimiter}{text}"
        file.write(text + "\n")


def _write_long(table: Table, file: IO[str], delimiter: str) -> None:
    entries = as_entries(table.values)
    if table.form.header or table.form.long is None:
        file.write(delimiter.join(_fields(table.form.long or ("row", "column", "value"), delimiter)) + "\n")
    sides = [
        np.arange(length).astype(str).tolist() if names is None else _fields(names, delimiter)
        for length, names in zip(table.shape, (table.row_names, table.column_names), strict=True)
    ]
    known = table.form.integers
    all_whole = known is not None and len(known) > 0 and bool(np.all(known))
    for start in range(0, entries.nnz, 1 << 16):
        part = slice(start, start + (1 << 16))
        values = entries.data[part].astype(np.float64)
        texts = _texts(values, np.full(len(values), all_whole), "")
        rows, columns = (index[part].tolist() for index in entries.coords)
        file.writelines(
            f"{sides[0][row]}{delimiter}{sides[1][column]}{delimiter}{text}\n"
            for row, column, text in zip(rows, columns, texts, strict=True)
        )


def _texts(row: Array, whole: Array, gap: str) -> list[str]:
    texts = list(map(repr, row.tolist()))
    for position in np.flatnonzero(whole):
        texts[position] = texts[position].removesuffix(".0")
    for position in np.flatnonzero(np.isnan(row)):
        texts[position] = gap
    return texts


def _whole(table: Table) -> Array:
    """Columns in which whole numbers have no decimal point."""
    known, p = table.form.integers, table.shape[1]
    return known if known is not None and len(known) == p else np.zeros(p, dtype=bool)


def _came_from_text(table: Table) -> bool:
    return table.form.delimiter is not None and table.form.long is None


def _fields(names: Any, delimiter: str) -> list[str]:
    """Names with quotes where they need them."""
    fields = []
    special = (delimiter, '"', "\n", "\r")
    for name in map(str, names):
        if name and not any(sign in name for sign in special):
            fields.append(name)
            continue
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerow([name, ""])
        fields.append(buffer.getvalue()[:-2])
    return fields


@contextmanager
def _open(path: Path, encoding: str, compressed: bool) -> Iterator[IO[str]]:
    with path.open("wb") as file:
        if not compressed:
            with io.TextIOWrapper(file, encoding=encoding, newline="") as text:
                yield text
            return
        # Without a name and a time inside, equal tables give equal files.
        with (
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
            io.TextIOWrapper(packed, encoding=encoding, newline="") as text,
        ):
            yield text

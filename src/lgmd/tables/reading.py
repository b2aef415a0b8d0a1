"""The door in: a file as a :class:`Table`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lgmd._validation import check_choice
from lgmd.exceptions import InvalidParameterError, TableError
from lgmd.tables._cells import NUMBER
from lgmd.tables._checks import check_table, mark_gaps, without_stored_gaps
from lgmd.tables._layout import Choice
from lgmd.tables._names import nearest
from lgmd.tables._options import Options
from lgmd.tables.formats import FORMATS, format_of
from lgmd.tables.table import Table
from lgmd.tables.transformations import transform

__all__ = ["read_table"]

_LONG = ("csv", "tsv", "txt", "parquet")

# Bytes of a sparse table with its zeros; a fit takes several times as much.
_MOST_DENSE = 4 * 2**30


def read_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    sheet: str | int | None = None,
    key: str | None = None,
    row_names: Choice = "auto",
    header: Choice = "auto",
    missing: Sequence[str | float] = (),
    delimiter: str | None = None,
    zeros: bool = False,
    transpose: bool = False,
    log1p: bool = False,
    scale: bool = False,
    long: Sequence[str | int] | None = None,
    encoding: str | None = None,
) -> Table:
    """
    Read a table with its names and gaps.

    Parameters
    ----------
    path : path-like
        CSV, TSV or other text and MatrixMarket (each also compressed with gzip), Parquet, Excel, ``.npy``, ``.npz``
        or AnnData.
    format : str, optional
        A key of :data:`lgmd.tables.FORMATS`, if the ending of the name does not say it.
    sheet : str or int, optional
        Sheet of an Excel file by name or by position from 0; the first one unless given.
    key : str, optional
        Which array of an ``.npz`` archive is the table; needed if there are several.
    row_names, header : bool or "auto", default="auto"
        Whether the first column holds row names, and the first row column names, in text and Excel files. The rules
        of "auto" are those of :mod:`lgmd.tables._layout`: briefly, names are what does not read as numbers, and whole
        numbers in the first column that are ids, or in a first row that just counts; where these could be either, a
        warning says what they were taken for. In a Parquet file column names are always there, and row names are
        pandas' index or such a first column.
    missing : sequence of str or float, default=()
        Markers of gaps besides an empty cell, ``NA``, ``N/A``, ``NaN``, ``null``, ``None``, ``-``, ``?`` and the like.
        One that reads as a number, such as -999, marks every number equal to it, in all formats.
    delimiter : str, optional
        What separates cells. Unless given, a tab in ``.tsv``; in ``.csv`` and ``.txt`` the one of comma, semicolon,
        tab and bar (and in ``.txt`` white space) under which most cells are numbers.
    zeros : bool, default=False
        Whether what a sparse file or a long table leaves out is zero, as in counts, rather than a gap. The table is
        then a dense one, with gaps where the file has them in so many words: NaN, or a marker of `missing`.
    transpose, log1p, scale : bool, default=False
        Swap rows and columns, then take ``log(1 + value)``, then bring columns to mean 0 and standard deviation 1.
        :func:`undo` is the way back.
    long : sequence of three str or int, optional
        Read a long table: the columns with row names, column names and values, by name or by position from 0. Each
        pair may stand once; other columns are left aside. Where all names of a side are numbers, ISO dates or
        timestamps, or end in numbers behind one common prefix ("day 1", "day 2"), they stand in this order; others in
        that of their first appearance, and ordered categories of Parquet in their own.
    encoding : str, optional
        Of text; UTF-8 unless given.

    Returns
    -------
    Table
        With at least two rows and two columns, all numbers finite, at least one observed, and names that differ.
        true and false, dates and complex numbers are no numbers.

    Raises
    ------
    TableError
        If the file is not such a table; the message says where, what was found and what to do.
    """
    path = Path(path)
    options = Options(
        path,
        _format(path, format),
        sheet,
        key,
        _choice(row_names, "row_names"),
        _choice(header, "header"),
        tuple(map(str, missing)),
        _delimiter(delimiter),
        _long_columns(long),
        encoding,
    )
    if options.long is not None and options.format not in _LONG:
        raise TableError(
            f"{path}: long tables are read from {', '.join(_LONG)} files. Save it as one of them, or leave long out."
        )
    try:
        table = _reader(options.format)(options)
    except OSError as error:
        raise _unreadable(path, error) from error
    numbers = tuple(float(text) for text in options.missing if NUMBER.fullmatch(text.strip()))
    marked = mark_gaps(table, numbers)
    table = without_stored_gaps(marked)
    check_table(table, path)
    if zeros and table.is_sparse:
        table = _with_zeros(marked, path)
    return transform(table, transpose=transpose, log1p=log1p, scale=scale)


def _with_zeros(table: Table, path: Path) -> Table:
    """Zeros for what is not stored; a gap that is stays one."""
    n, p = table.shape
    size = n * p * table.values.dtype.itemsize
    if size > _MOST_DENSE:
        raise TableError(
            f"{path} has {n:,} x {p:,} entries, which take {size / 1e9:,.1f} GB with their zeros; up to "
            f"{_MOST_DENSE / 1e9:.1f} GB are read. Keep the columns of interest, such as the highly variable ones, or "
            "take what is not stored for gaps."
        )
    return replace(table, values=table.values.toarray())


def _reader(format: str) -> Callable[[Options], Table]:
    """Loaded when it is needed, so that a CSV file does not wait for the libraries of others."""
    if format == "parquet":
        from lgmd.tables._parquet import read_parquet

        return read_parquet
    if format == "xlsx":
        from lgmd.tables._excel import read_excel

        return read_excel
    if format in ("npy", "npz"):
        from lgmd.tables._arrays import read_npy, read_npz

        return read_npy if format == "npy" else read_npz
    if format == "mtx":
        from lgmd.tables._matrix_market import read_matrix_market

        return read_matrix_market
    if format == "h5ad":
        from lgmd.tables._anndata import read_anndata

        return read_anndata
    from lgmd.tables._text import read_text

    return read_text


def _format(path: Path, format: str | None) -> str:
    """The format, after a look at whether there is a file at all."""
    try:
        found = path.stat()
        if path.is_dir():
            raise TableError(f"{path} is a folder, not a file. Name a table inside it.")
        format = format_of(path) if format is None else check_choice(format, "format", tuple(FORMATS))
        if not found.st_size:
            raise TableError(f"{path} is empty. A table has at least two rows and two columns of numbers.")
    except OSError as error:
        raise _unreadable(path, error) from error
    return format


def _unreadable(path: Path, error: OSError) -> TableError:
    if isinstance(error, FileNotFoundError):
        try:
            names = os.listdir(path.parent)
        except OSError:
            return TableError(f"There is no folder {path.parent}, and so no file {path}. Check the path.")
        if path.name in names:  # it came back, or is a link to nothing
            return TableError(f"{path} was not there when it was read. Try again once it has been written.")
        return TableError(f"There is no file {path}.{nearest(path.name, names) or ' Check the path.'}")
    if isinstance(error, PermissionError):
        return TableError(f"{path} may not be read: permission denied. Change its permissions, or copy it.")
    return TableError(f"{path} cannot be read: {error.strerror or error}.")


def _choice(value: Any, name: str) -> Choice:
    if isinstance(value, bool) or value == "auto":
        return value  # type: ignore[no-any-return]
    raise InvalidParameterError(f"{name} must be True, False or 'auto', but is {value!r}.")


def _delimiter(value: str | None) -> str | None:
    if value is None or (isinstance(value, str) and len(value) == 1 and value.isascii() and value not in '"\n\r'):
        return value
    raise InvalidParameterError(
        f"delimiter must be a single ASCII character other than a quote or a line end, but is {value!r}. A space "
        "stands for any white space."
    )


def _long_columns(value: Sequence[str | int] | None) -> tuple[str | int, str | int, str | int] | None:
    if value is None:
        return None
    if (
        isinstance(value, str)
        or len(value) != 3
        or not all(isinstance(column, str | int) and not isinstance(column, bool) for column in value)
    ):
        raise InvalidParameterError(
            f"long must be three columns, for row, column and value, by name or position, but is {value!r}."
        )
    return value[0], value[1], value[2]

"""What every table must be, whatever its format, and the conversion of stored numbers to doubles that changes none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import TableError
from lgmd.tables._names import check_names
from lgmd.tables.table import Table

__all__ = ["check_table", "exact_floats", "mark_gaps", "without_stored_gaps"]


def exact_floats(values: Array, what: str) -> FloatArray:
    """
    Stored numbers as float64, or float32 where they are no wider; a copy only if it must be.

    Parameters
    ----------
    values : ndarray
    what : str
        Words for them, as the subject of a sentence.

    Raises
    ------
    TableError
        If they are no real numbers, or a double cannot hold one of them.
    """
    kind = values.dtype.kind
    if kind == "c":
        raise TableError(f"{what} holds complex numbers. Write the real and the imaginary part as tables of their own.")
    if kind == "b":
        raise TableError(f"{what} holds true and false. Tables hold numbers: store 1 and 0.")
    if kind in "Mm":
        raise TableError(f"{what} holds dates or times. They can be names, but not values: drop them.")
    if kind not in "fiu":
        raise TableError(f"{what} holds {values.dtype} values. Tables hold real numbers.")
    wanted = np.float32 if kind == "f" and values.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore"):
        floats: FloatArray = values.astype(wanted, copy=False)
    if values.dtype.itemsize >= 8 and values.dtype != np.float64:
        with np.errstate(invalid="ignore"):
            changed = (floats.astype(values.dtype) != values) | (np.abs(floats) >= 2.0**63)
        changed &= ~np.isnan(floats)
        if changed.any():
            raise TableError(
                f"{what} holds {values[changed].flat[0]}, which double precision cannot hold exactly. If these are "
                "identifiers, use them as row names or drop them; otherwise round them first."
            )
    return floats


def check_table(table: Table, path: Path) -> None:
    """
    Refuse what is no table to learn from.

    Raises
    ------
    TableError
        If it is too small, has infinite values, no observed ones, or names that are empty or repeated.
    """
    n, p = table.shape
    if min(n, p) < 2:
        few = f"{n:,} row{'s' if n != 1 else ''} and {p:,} column{'s' if p != 1 else ''} of numbers"
        raise TableError(
            f"{path} has {few}, but a decomposition needs at least two of each. If names or cells were taken for the "
            "wrong thing, set header=, row_names= or delimiter=."
        )
    _refuse_infinite(table, path)
    if not table.n_observed:
        raise TableError(
            f"{path}: all {n:,} x {p:,} entries are gaps, so that there is nothing to learn from. Check missing=, and "
            "that the right table was read."
        )
    check_names(table.row_names, "row", path)
    check_names(table.column_names, "column", path)


def mark_gaps(table: Table, missing: tuple[float, ...]) -> Table:
    """The table with NaN for the numbers that mark gaps; a sparse one stores it."""
    values = table.values
    numbers = values.data if table.is_sparse else values
    gaps = np.isin(numbers, missing) if missing else np.False_
    if not gaps.any():
        return table
    marked = np.where(gaps, numbers.dtype.type(np.nan), numbers)
    if table.is_sparse:
        values = values.copy()
        values.data = marked
        marked = values
    return replace(table, values=marked)


def without_stored_gaps(table: Table) -> Table:
    """The table, of whose entries, if it is sparse, only those are stored that are no gaps."""
    if not table.is_sparse:
        return table
    values = table.values
    seen = ~np.isnan(values.data)
    if seen.all():
        return table
    entries = values.tocoo()
    kept: Any = scipy.sparse.coo_array(
        (entries.data[seen], tuple(index[seen] for index in entries.coords)), shape=values.shape
    )
    return replace(table, values=kept.tocsr() if values.format == "csr" else kept)


def _refuse_infinite(table: Table, path: Path) -> None:
    values = table.values.data if table.is_sparse else table.values
    if not np.isinf(values).any():
        return
    if table.is_sparse:
        entries = table.values.tocoo()
        first = int(np.argmax(np.isinf(entries.data)))
        row, column = (int(index[first]) for index in entries.coords)
    else:
        row, column = divmod(int(np.argmax(np.isinf(values))), values.shape[1])
    count = int(np.isinf(values).sum())
    place = f"row {row + 1:,}{_named(table.row_names, row)}, column {column + 1:,}{_named(table.column_names, column)}"
    raise TableError(
        f"{path}: {count:,} value{'s are' if count > 1 else ' is'} infinite, the first in {place}. Every "
        "number must be finite: replace them, or mark them as gaps."
    )


def _named(names: Array | None, position: int) -> str:
    return "" if names is None else f" ({str(names[position])!r})"

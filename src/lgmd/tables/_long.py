"""What long tables in text and in Parquet share: finding their columns, and turning entries into a sparse table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.exceptions import TableError
from lgmd.tables._names import listed, nearest
from lgmd.tables._order import natural_order
from lgmd.tables.table import Form, Table

__all__ = ["Entries", "find_columns", "long_table"]


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries in the order of the file: positions of their row and column among the names, and values."""

    rows: IntArray
    columns: IntArray
    values: FloatArray
    row_names: Sequence[Any]
    column_names: Sequence[Any]

    @classmethod
    def from_dictionaries(cls, rows: Any, columns: Any, values: FloatArray) -> Entries:
        """Entries whose names are pyarrow dictionary arrays."""
        return cls(
            rows.indices.to_numpy(zero_copy_only=False),
            columns.indices.to_numpy(zero_copy_only=False),
            values,
            rows.dictionary.to_pylist(),
            columns.dictionary.to_pylist(),
        )


def find_columns(
    header: Sequence[str] | None, width: int, wanted: tuple[str | int, str | int, str | int], path: Path
) -> tuple[int, int, int]:
    """
    Positions of the columns with row, column and value.

    Raises
    ------
    TableError
        If one is not there, or two are the same.
    """
    found: list[int] = []
    for role, column in zip(("row", "column", "value"), wanted, strict=True):
        if isinstance(column, str):
            if header is None:
                raise TableError(
                    f"{path} has no header, so that there is no column {column!r} to take the {role} from. Pass "
                    "positions, counted from 0."
                )
            if column not in header:
                raise TableError(
                    f"{path} has no column {column!r} to take the {role} from; it has {listed(header)}."
                    f"{nearest(column, header)}"
                )
            found.append(list(header).index(column))
        elif not 0 <= column < width:
            raise TableError(
                f"{path} has {width:,} columns, so that there is none at position {column} to take the {role} from. "
                "Positions are counted from 0."
            )
        else:
            found.append(column)
    if len(set(found)) < 3:
        raise TableError(f"{path}: long={wanted!r} names a column twice. Row, column and value are three columns.")
    return found[0], found[1], found[2]


def long_table(entries: Entries, form: Form, path: Path) -> Table:
    """
    Sparse table of the entries, in their order; an entry without a value is stored as NaN.

    Rows and columns stand in the natural order of their names, so that what follows each other does so in the table,
    whichever station lacks which days; where there is none, as the names are given.

    Raises
    ------
    TableError
        If a name is empty, or a pair of row and column has two values.
    """
    for kind, names, places in (
        ("row", entries.row_names, entries.rows),
        ("column", entries.column_names, entries.columns),
    ):
        empty = [position for position, name in enumerate(names) if name is None or name == ""]
        if empty:
            entry = int(np.argmax(places == empty[0])) + 1
            raise TableError(f"{path}: entry {entry:,} has no {kind} name. Name it, or remove the entry.")
    shape = (len(entries.row_names), len(entries.column_names))
    _refuse_duplicates(entries, shape, path)
    row_names, rows = _ordered(entries.row_names, entries.rows)
    column_names, columns = _ordered(entries.column_names, entries.columns)
    values = scipy.sparse.coo_array((entries.values, (rows, columns)), shape=shape)
    return Table(values, row_names, column_names, None, path, form)


def _ordered(names: Sequence[Any], places: IntArray) -> tuple[Array, IntArray]:
    """Names in their natural order, and the places of the entries among them."""
    texts = list(map(str, names))
    order = natural_order(texts)
    if order is None:
        return np.array(texts, dtype=str), places
    ranks = np.empty(len(order), dtype=places.dtype)
    ranks[order] = np.arange(len(order))
    return np.array(texts, dtype=str)[order], ranks[places]


def _refuse_duplicates(entries: Entries, shape: tuple[int, int], path: Path) -> None:
    pairs = entries.rows.astype(np.int64) * shape[1] + entries.columns
    order = np.argsort(pairs, kind="stable")
    repeated = np.flatnonzero(np.diff(pairs[order]) == 0) + 1
    if not len(repeated):
        return
    second = order[repeated].min()
    first = int(np.argmax(pairs == pairs[second]))
    row, column = entries.row_names[entries.rows[second]], entries.column_names[entries.columns[second]]
    raise TableError(
        f"{path}: row {row!r} and column {column!r} have two values, {entries.values[first]:g} in entry {first + 1:,} "
        f"and {entries.values[second]:g} in entry {second + 1:,}; {len(repeated):,} "
        f"{'entries repeat' if len(repeated) > 1 else 'entry repeats'} a pair. Keep one for each, for example the "
        "latest or the mean."
    )

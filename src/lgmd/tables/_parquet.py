"""Tables in Parquet files, with row names as pandas' index or as a first column of text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import TableError
from lgmd.tables._cells import NUMBER
from lgmd.tables._checks import exact_floats
from lgmd.tables._long import Entries, find_columns, long_table
from lgmd.tables._names import as_names
from lgmd.tables._options import Options
from lgmd.tables._row_ids import Ids, judge_ids, warn_of_guess
from lgmd.tables._storage import as_entries
from lgmd.tables.table import Form, Table

__all__ = ["read_parquet", "write_parquet"]


def read_parquet(options: Options) -> Table:
    """
    Read a Parquet file.

    Row names are the index that pandas stored unless it just counts, otherwise the first column if it is text or holds
    ids (``_row_ids``); with ``row_names=True`` the first column whatever it is.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with options.path.open("rb") as file:
            found = parquet.read_table(file)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{options.path} is no Parquet file, or is damaged ({reason}). Write it again.") from error
    if options.long is not None:
        return _read_long(found, options)
    rows = _find_rows(found, options)
    warn_of_guess(rows.ids, rows.header, options.path)
    columns = [place for place in range(found.num_columns) if place != rows.position]
    labels = None if options.row_names is False else rows.labels
    form = Form(
        "parquet",
        column_types=tuple(str(found.column(place).type) for place in columns),
        names_are_index=rows.are_index or labels is None,
        integer_names=(labels is not None and _are_integers(labels), False),
        labels=labels,
    )
    return Table(
        _values(found, columns, options.path),
        None if labels is None else _label_names(labels),
        as_names([found.column_names[place] for place in columns]),
        None if labels is None else rows.corner,
        options.path,
        form,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """What names the rows (a column at some position, a range that pandas counts by, or nothing), and how it shows."""

    labels: Any = None
    corner: str | None = None
    position: int | None = None
    are_index: bool = False
    header: str = ""
    ids: Ids = Ids.DATA


def _find_rows(found: Any, options: Options) -> _Rows:
    counted = _index_range(found)
    if counted is not None:
        return _Rows(*counted, are_index=True)
    index = _index_column(found)
    if index is not None:
        position = found.column_names.index(index)
        return _Rows(found.column(position), _corner(index), position, are_index=True)
    if not found.num_columns:
        return _Rows()
    header = found.column_names[0]
    ids = _judge_first(found, options)
    if not ids.are_names:
        return _Rows(header=header, ids=ids)
    return _Rows(found.column(0), _corner(header), 0, header=header, ids=ids)


def _corner(name: str) -> str | None:
    return None if name.startswith("__index_level_") else name  # as pandas calls an index without a name


def _judge_first(found: Any, options: Options) -> Ids:
    """What the first column is, where pandas stored no index."""
    import pyarrow as pa

    first, header = found.column(0), found.column_names[0]
    if options.row_names is True or (options.row_names == "auto" and _is_text(first.type)):
        return Ids.NAMES
    if options.row_names is False or not pa.types.is_integer(first.type) or NUMBER.fullmatch(header.strip()):
        return Ids.DATA
    if first.null_count or not len(first) or len(first.unique()) < len(first):
        return Ids.DATA
    others = list(range(1, found.num_columns))
    return judge_ids(header, first.to_numpy().astype(np.float64), lambda: _values(found, others, options.path))


def _read_long(found: Any, options: Options) -> Table:
    import pyarrow as pa

    assert options.long is not None
    header = found.column_names
    columns = find_columns(header, len(header), options.long, options.path)
    labels = []
    for position in columns[:2]:
        column = found.column(position)
        if not (pa.types.is_integer(column.type) or _is_text(column.type)):
            raise TableError(
                f"{options.path}: column {header[position]!r} holds {column.type} values. Rows and columns are "
                "named by text or integers."
            )
        if pa.types.is_dictionary(column.type) and not column.type.ordered:  # in whatever order the writer had them
            column = column.cast(column.type.value_type)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode(null_encoding="encode")
        labels.append(column.unify_dictionaries().combine_chunks())
    chunks = [chunk.chunk(0) if isinstance(chunk, pa.ChunkedArray) else chunk for chunk in labels]
    values = _values(found, [columns[2]], options.path)[:, 0].astype(np.float64)
    form = Form(
        "parquet",
        column_types=(str(found.column(columns[2]).type),),
        integer_names=(
            pa.types.is_integer(found.column(columns[0]).type),
            pa.types.is_integer(found.column(columns[1]).type),
        ),
        long=(header[columns[0]], header[columns[1]], header[columns[2]]),
    )
    return long_table(Entries.from_dictionaries(chunks[0], chunks[1], values), form, options.path)


def _values(found: Any, columns: list[int], path: Path) -> FloatArray:
    import pyarrow as pa

    parts = []
    for position in columns:
        column = found.column(position)
        what = f"{path}: column {found.column_names[position]!r}"
        if pa.types.is_nested(column.type):
            raise TableError(f"{what} is nested ({column.type}). Give every number a column of its own.")
        if _is_text(column.type):
            text = next((value for value in column.to_pylist() if value is not None), "")
            raise TableError(
                f"{what} holds text, for example {text!r}. Only row names may: make it the first column and pass "
                "row_names=True, drop it, or convert it to numbers."
            )
        if pa.types.is_null(column.type):
            parts.append(np.full(len(column), np.nan, dtype=np.float32))
            continue
        if pa.types.is_decimal(column.type):
            raise TableError(f"{what} holds {column.type} values. Store them as double.")
        parts.append(_column_floats(column, what))
    if not parts:
        return np.empty((found.num_rows, 0))
    values = np.empty((found.num_rows, len(parts)), dtype=np.result_type(*parts))
    for position, part in enumerate(parts):
        values[:, position] = part
    return values


def _column_floats(column: Any, what: str) -> FloatArray:
    import pyarrow as pa

    if column.null_count and pa.types.is_integer(column.type):  # to_numpy would pass through float64 unchecked
        known = exact_floats(column.drop_null().to_numpy(), what)
        values = np.full(len(column), np.nan)
        values[column.is_valid().to_numpy()] = known
        return values
    if pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type):
        exact_floats(np.empty(0, dtype=bool if pa.types.is_boolean(column.type) else "M8[s]"), what)
    return exact_floats(column.to_numpy(), what)


def _index_column(found: Any) -> str | None:
    metadata = found.schema.pandas_metadata or {}
    indexes = [name for name in metadata.get("index_columns", []) if isinstance(name, str)]
    return indexes[0] if len(indexes) == 1 and found.column_names.count(indexes[0]) == 1 else None


def _index_range(found: Any) -> tuple[range, str | None] | None:
    """The range that pandas counts rows by and its name, unless it just counts from 0."""
    metadata = found.schema.pandas_metadata or {}
    stored = [index for index in metadata.get("index_columns", []) if isinstance(index, dict)]
    if len(stored) != 1 or stored[0].get("kind") != "range":
        return None
    name = stored[0].get("name")
    counted = range(stored[0]["start"], stored[0]["stop"], stored[0]["step"])
    if len(counted) != found.num_rows or (name is None and counted == range(found.num_rows)):
        return None
    return counted, None if name is None else str(name)


def _are_integers(labels: Any) -> bool:
    import pyarrow as pa

    return isinstance(labels, range) or bool(pa.types.is_integer(labels.type))


def _label_names(labels: Any) -> Array:
    """Row names as text; days without their midnights."""
    import pyarrow as pa

    found = list(labels) if isinstance(labels, range) else labels.to_pylist()
    texts = ["" if label is None else str(label) for label in found]
    midnight = " 00:00:00"
    if (
        not isinstance(labels, range)
        and pa.types.is_timestamp(labels.type)
        and all(t.endswith(midnight) for t in texts)
    ):
        texts = [text.removesuffix(midnight) for text in texts]
    return np.array(texts, dtype=str)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def write_parquet(table: Table, path: Path) -> None:
    """Write a Parquet file; integers stay so in columns where every value is one."""
    import pyarrow as pa
    from pyarrow import parquet

    if table.form.long is not None or table.is_sparse:
        parquet.write_table(_long(table), path)
        return
    types = table.form.column_types if table.form.format == "parquet" else None
    names = list(map(str, range(table.shape[1]))) if table.column_names is None else table.column_names.tolist()
    columns = [
        _typed(table.values[:, position], types[position] if types and len(types) == len(names) else None)
        for position in range(len(names))
    ]
    if table.row_names is None:
        parquet.write_table(pa.Table.from_arrays(columns, names), path)
        return
    labels = _stored_labels(table)
    if isinstance(labels, range):
        stored = pa.Table.from_arrays(columns, names)
        parquet.write_table(stored.replace_schema_metadata(_range_note(labels, table.corner)), path)
        return
    corner = "__index_level_0__" if table.corner is None else table.corner
    if not table.form.names_are_index:
        parquet.write_table(pa.Table.from_arrays([labels, *columns], [corner, *names]), path)
        return
    # pandas' own note on which column is the index, by pandas itself.
    empty = pa.Table.from_arrays([labels[:0]], [corner]).to_pandas().set_index(corner)
    empty.index.name = table.corner
    note = pa.Table.from_pandas(empty, preserve_index=True).schema.metadata
    stored = pa.Table.from_arrays([*columns, labels], [*names, corner])
    parquet.write_table(stored.replace_schema_metadata(note), path)


def _stored_labels(table: Table) -> Any:
    """Row names as the file had them, where they are still the same, else as text or integers."""
    labels = table.form.labels
    assert table.row_names is not None
    if labels is not None and np.array_equal(_label_names(labels), table.row_names):
        return labels
    return _labels(table.row_names, table.form.integer_names[0])


def _range_note(counted: range, name: str | None) -> Any:
    """What pandas notes of a range that is the index, by pandas itself."""
    import pandas as pd
    import pyarrow as pa

    index = pd.RangeIndex(counted.start, counted.stop, counted.step, name=name)
    return pa.Table.from_pandas(pd.DataFrame(index=index, columns=pd.Index([], dtype=object))).schema.metadata


def _long(table: Table) -> Any:
    import pyarrow as pa

    entries = as_entries(table.values)
    names = table.form.long or ("row", "column", "value")
    sides = zip(entries.coords, (table.row_names, table.column_names), table.form.integer_names, strict=True)
    labels = [
        pa.array(index) if known is None else _labels(known, integer).take(pa.array(index))
        for index, known, integer in sides
    ]
    kind = table.form.column_types[0] if table.form.long and table.form.column_types else None
    return pa.Table.from_arrays([*labels, _typed(entries.data, kind)], list(names))


def _labels(names: Array, integer: bool) -> Any:
    import pyarrow as pa

    return pa.array([int(name) for name in names] if integer else names.tolist())


def _typed(values: FloatArray, kind: str | None) -> Any:
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    missing = np.isnan(values)
    column = pa.array(values, mask=missing if missing.any() else None)
    if kind is not None and "int" in kind:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:  # a filled value that is no such integer
            return column
    if kind == "double" and values.dtype == np.float32:
        return column.cast(kind)
    return column

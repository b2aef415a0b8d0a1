"""Text as numbers through pyarrow, which rounds as Python does and reads as fast as pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import FloatArray
from lgmd.tables._cells import MISSING
from lgmd.tables._text_file import TextFile

__all__ = ["FastGrid", "fast_grid", "fast_long"]

_BLOCK = 1 << 24
_LONGEST_ROW = 1 << 27


@dataclass(frozen=True, eq=False)
class FastGrid:
    """Numbers, and the cells of the first column where that was to be kept as text."""

    values: FloatArray
    first_column: list[str] | None


def fast_grid(
    file: TextFile, delimiter: str, width: int, skip: int, first_is_text: bool, missing: tuple[str, ...]
) -> FastGrid | None:
    """
    Numbers of a table, or None if anything about the text is odd.

    Parameters
    ----------
    file : TextFile
    delimiter : str
    width : int
        Number of cells of a row.
    skip : int
        Lines before the first row of numbers.
    first_is_text : bool
        Whether the first column is wanted as text.
    missing : tuple of str
        Markers of gaps besides the usual ones.
    """
    import pyarrow as pa
    from pyarrow import csv

    columns = [str(position) for position in range(width)]
    types = dict.fromkeys(columns, pa.float64())
    if first_is_text:
        types["0"] = pa.string()
    batches: list[Any] = []
    names: list[str] = []
    try:
        with file.stream() as stream:
            for _ in range(skip):
                stream.readline()
            block = max(_BLOCK, min(_LONGEST_ROW, 64 * width))
            for batch in csv.open_csv(stream, *_options(columns, types, delimiter, missing, None, block)):
                if first_is_text:
                    names += batch.column(0).to_pylist()
                batches.append(_as_array(batch, int(first_is_text)))
    except pa.ArrowInvalid:
        return None
    values = np.empty((sum(len(batch) for batch in batches), width - first_is_text))
    start = 0
    while batches:  # freed one by one, so that the table is never held twice
        batch = batches.pop(0)
        values[start : start + len(batch)] = batch
        start += len(batch)
    return FastGrid(values, names if first_is_text else None)


def fast_long(
    file: TextFile, delimiter: str, width: int, skip: int, columns: tuple[int, int, int], missing: tuple[str, ...]
) -> tuple[Any, Any, FloatArray] | None:
    """Row and column names as pyarrow dictionary arrays and the values of a long table, or None if the text is odd."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(position) for position in range(width)]
    row, column, value = (str(position) for position in columns)
    label = pa.dictionary(pa.int32(), pa.string())
    types = {row: label, column: label, value: pa.float64()}
    try:
        with file.stream() as stream:
            for _ in range(skip):
                stream.readline()
            found = csv.read_csv(stream, *_options(names, types, delimiter, missing, [row, column, value], _BLOCK))
    except pa.ArrowInvalid:
        return None
    found = found.unify_dictionaries().combine_chunks()
    labels = (_one_chunk(found.column(0)), _one_chunk(found.column(1)))
    return *labels, np.array(found.column(2).to_numpy())


def _options(
    columns: list[str], types: dict[str, Any], delimiter: str, missing: tuple[str, ...], include: Any, block: int
) -> tuple[Any, Any, Any]:
    from pyarrow import csv

    return (
        csv.ReadOptions(column_names=columns, block_size=block),
        csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        csv.ConvertOptions(
            column_types=types,
            null_values=sorted(MISSING | set(missing)),
            strings_can_be_null=False,
            include_columns=include,
        ),
    )


def _as_array(batch: Any, start: int) -> FloatArray:
    values = np.empty((batch.num_rows, batch.num_columns - start))
    for position in range(start, batch.num_columns):
        values[:, position - start] = batch.column(position).to_numpy(zero_copy_only=False)
    return values


def _one_chunk(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

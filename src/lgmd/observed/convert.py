"""The one door into the package: whatever people hold, as an observed table."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import InvalidDataError
from lgmd.observed.base import Observed
from lgmd.observed.dense import DenseObserved
from lgmd.observed.labels import is_frame, names_of
from lgmd.observed.sparse import SparseObserved

__all__ = ["NotNumbersError", "as_observed"]

_COMPLEX = "Complex data not supported: decompose the real and the imaginary part on their own."


class NotNumbersError(InvalidDataError, TypeError):
    """Entries are of a type that is no number."""


def as_observed(
    table: Any,
    *,
    allow_empty_rows: bool = False,
    allow_empty_columns: bool = False,
    allow_all_missing: bool = False,
    min_rows: int = 2,
    min_columns: int = 2,
) -> Observed:
    """Read a table with gaps, whatever its form, without changing it.

    Parameters
    ----------
    table : array-like, masked array, DataFrame or sparse matrix of shape (n, p)
        NaN (also ``None`` and ``pandas.NA``) and masked entries are gaps. In a scipy.sparse matrix the
        stored entries are the observed ones: an explicit zero is an observed zero, what is not stored is a gap.
        float32 stays float32 and float16 becomes it; every other real type becomes float64.
    allow_empty_rows, allow_empty_columns : bool, default=False
        Whether a row, or a column, may have no observed entry at all.
    allow_all_missing : bool, default=False
        Whether the whole table may have none, as a batch of unseen rows may.
    min_rows, min_columns : int, default=2
        Smaller tables are refused.

    Returns
    -------
    Observed
        :class:`DenseObserved` where nothing is missing, otherwise :class:`SparseObserved`.
    """
    if isinstance(table, Observed):
        return table
    if scipy.sparse.issparse(table):
        observed = _from_sparse(table, min_rows, min_columns)
    else:
        observed = _from_array(table, min_rows, min_columns)
    if observed.n_observed == 0 and not allow_all_missing:
        raise InvalidDataError(
            f"All {observed.shape[0]:,} x {observed.shape[1]:,} entries are missing, so there is nothing to learn "
            "from. Pass a table with observed entries."
        )
    if not allow_empty_rows:
        _refuse_empty(observed.row_counts, "Rows", observed.row_names)
    if not allow_empty_columns:
        _refuse_empty(observed.T.row_counts, "Columns", observed.column_names)
    return observed


def _from_array(table: Any, min_rows: int, min_columns: int) -> Observed:
    row_names, column_names = _names(table)
    values, mask = _real_values(table)
    _check_shape(values, min_rows, min_columns)
    missing = np.isnan(values)
    if mask is not None:
        missing |= mask
    _refuse_infinite(values if mask is None else values[~mask])
    if not missing.any():
        return DenseObserved(values, row_names, column_names)
    observed = ~missing
    counts = observed.sum(axis=1)
    index_type = np.int32 if values.size < 2**31 else np.int64
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(index_type)
    indices = np.nonzero(observed)[1].astype(index_type)
    compressed = scipy.sparse.csr_array((values[observed], indices, indptr), shape=values.shape)
    return SparseObserved.from_csr(compressed, row_names, column_names)


def _from_sparse(table: Any, min_rows: int, min_columns: int) -> Observed:
    _check_shape(table, min_rows, min_columns)
    _float_type(table.dtype)
    if table.format == "dia":
        table = _stored_diagonals(table)
    elif table.format == "bsr" and table.blocksize != (1, 1):
        raise InvalidDataError(
            f"The table is stored in blocks of {table.blocksize[0]} x {table.blocksize[1]} (BSR), which do not say "
            "whether a zero was observed or fills a block up. Convert the table from what it was before, with tocsr()."
        )
    rows = scipy.sparse.csr_array(table)
    if rows.nnz < table.nnz or not rows.has_canonical_format:
        unique = rows.copy()
        unique.sum_duplicates()
        if unique.nnz < table.nnz:
            raise InvalidDataError(
                f"{table.nnz - unique.nnz:,} entries are stored more than once. Keep one value for each place: "
                "the last rating, for example, or the sum of counts, which table.sum_duplicates() makes."
            )
        rows = unique
    values = _floats(rows.data)
    _refuse_infinite(values)
    missing = np.isnan(values)
    if missing.any():
        counts = np.add.reduceat(np.append(~missing, False).astype(np.int64), rows.indptr[:-1]) * (
            np.diff(rows.indptr) > 0
        )
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(rows.indptr.dtype)
        rows = scipy.sparse.csr_array((values[~missing], rows.indices[~missing], indptr), shape=rows.shape)
    else:
        rows = scipy.sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
    if rows.nnz == rows.shape[0] * rows.shape[1] and rows.nnz > 0:
        return DenseObserved(rows.toarray())
    return SparseObserved.from_csr(rows)


def _stored_diagonals(table: Any) -> scipy.sparse.coo_array:
    """The entries of a diagonal format, zeros among them, which scipy's own conversion leaves out."""
    diagonals, columns = np.indices(table.data.shape)
    rows = columns - table.offsets[diagonals]
    inside = (rows >= 0) & (rows < table.shape[0]) & (columns < table.shape[1])
    return scipy.sparse.coo_array((table.data[inside], (rows[inside], columns[inside])), shape=table.shape)


def _real_values(table: Any) -> tuple[FloatArray, Array | None]:
    """The table as a float array with NaN in its gaps, and the mask of a masked array."""
    if isinstance(table, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(table)
        values = np.asarray(table.data)
        return _floats(np.where(mask, np.nan, values) if values.dtype == object else values), mask
    if is_frame(table):
        return _frame_values(table), None
    try:
        values = np.asarray(table)
    except ValueError as error:
        raise InvalidDataError(
            f"The table is no rectangle of numbers: {error} Give every row the same number of entries."
        ) from error
    return _floats(values), None


def _floats(values: Array) -> FloatArray:
    """Real values of any type in single or double precision; not a copy where they are that already."""
    if values.dtype == object:
        values = _numbers(values)
    with np.errstate(over="ignore"):  # what is too large for a double is refused as infinite
        return values.astype(_float_type(values.dtype), copy=False)


def _frame_values(frame: Any) -> FloatArray:
    if all(data_type.kind in "fiub" for data_type in frame.dtypes):
        single = len(frame.columns) > 0 and all(str(t).lower() in ("float32", "float16") for t in frame.dtypes)
        return np.asarray(frame.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan))
    return np.column_stack([_column_values(frame.iloc[:, position]) for position in range(frame.shape[1])])


def _column_values(column: Any) -> FloatArray:
    if column.dtype.kind in "fiub":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    try:
        return _numbers(column.to_numpy(dtype=object, na_value=np.nan))
    except InvalidDataError as error:
        raise InvalidDataError(
            f"Column {column.name!r} holds {column.dtype} values, but every column must hold numbers. Drop it, or "
            "encode it."
        ) from error


def _numbers(values: Array) -> FloatArray:
    """Objects as float64, with None and NA as gaps; text is refused even where it reads like a number."""
    flat = [np.nan if value is None or type(value).__name__ == "NAType" else value for value in values.ravel()]
    for value in flat:
        if isinstance(value, str | bytes):
            raise InvalidDataError(
                f"The table holds text ({value!r}), but every entry must be a number. Convert it, or mark gaps with "
                "NaN."
            )
        if isinstance(value, complex | np.complexfloating):
            raise InvalidDataError(_COMPLEX)
    try:
        return np.array([float(value) for value in flat], dtype=np.float64).reshape(values.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise NotNumbersError(
            f"The table holds objects that are not numbers: {error}. Convert them, or mark gaps with NaN."
        ) from error


def _float_type(found: np.dtype[Any]) -> np.dtype[Any]:
    if found.kind == "c":
        raise InvalidDataError(_COMPLEX)
    if found.kind not in "fiub":
        raise InvalidDataError(
            f"The table holds {found} values, but every entry must be a real number. Convert it, or mark gaps with NaN."
        )
    return np.dtype(np.float32) if found.kind == "f" and found.itemsize <= 4 else np.dtype(np.float64)


def _check_shape(values: Any, min_rows: int, min_columns: int) -> None:
    if values.ndim != 2:
        raise InvalidDataError(
            f"Expected a table with rows and columns, but found {values.ndim} dimension(s). Reshape your data, "
            "for example with table.reshape(-1, 1) for one column or table.reshape(1, -1) for one row."
        )
    n, p = values.shape
    if n < min_rows:
        raise InvalidDataError(
            f"Found array with {n} sample(s) (shape={(n, p)}) while a minimum of {min_rows} is required."
        )
    if p < min_columns:
        raise InvalidDataError(
            f"Found array with {p} feature(s) (shape={(n, p)}) while a minimum of {min_columns} is required."
        )


def _refuse_infinite(values: FloatArray) -> None:
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InvalidDataError(
            f"{infinite:,} of {values.size:,} entries are infinity (inf). Replace them by numbers, or by NaN if they "
            "are gaps."
        )


def _refuse_empty(counts: Array, kind: str, names: Array | None) -> None:
    empty = np.flatnonzero(counts == 0)
    if not len(empty):
        return
    shown = [str(i) if names is None else f"{i} ({names[i]})" for i in empty[:5]]
    if len(empty) == 1:
        subject, verb, them = f"{kind[:-1]} {shown[0]}", "has", "it"
    elif len(empty) <= 5:
        subject, verb, them = f"{kind} {', '.join(shown[:-1])} and {shown[-1]}", "have", "them"
    else:
        subject, verb, them = f"{kind} {', '.join(shown)} and {len(empty) - 5:,} more", "have", "them"
    raise InvalidDataError(
        f"{subject} {verb} no observed entry, so only the graph can say anything about {them}. "
        f"Drop {them}, or use a model with allow_empty=True. {kind} are counted from 0."
    )


def _names(table: Any) -> tuple[Array | None, Array | None]:
    return (names_of(table.index), names_of(table.columns)) if is_frame(table) else (None, None)

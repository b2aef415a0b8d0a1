"""What is done to numbers between the file and the model, and its way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import InvalidParameterError, TableError
from lgmd.tables._names import listed
from lgmd.tables._storage import dense
from lgmd.tables.table import Form, Table, Transformation

__all__ = ["fill", "transform", "undo", "undo_std"]


def transform(table: Table, *, transpose: bool = False, log1p: bool = False, scale: bool = False) -> Table:
    """
    Transpose the table, take ``log(1 + value)``, then bring columns to mean 0 and standard deviation 1.

    Only observed entries count. The table as it was stays in ``original``.

    Raises
    ------
    TableError
        If ``log1p`` meets a negative value, or `scale` a column whose observed entries are all the same.
    """
    if not (transpose or log1p or scale):
        return table
    result = _transposed(table) if transpose else table
    values = result.values
    if log1p:
        _refuse_negative(result)
        values = _with_data(values, np.log1p(values.data if result.is_sparse else values))
    center = spread = None
    if scale:
        center, spread = _moments(replace(result, values=values))
        columns = values.tocoo().coords[1] if result.is_sparse else slice(None)
        ordered = values.tocoo() if result.is_sparse else values
        numbers = ordered.data if result.is_sparse else ordered
        numbers = ((numbers - center[columns]) / spread[columns]).astype(values.dtype)
        values = _with_data(ordered, numbers)
        if result.is_sparse and result.values.format == "csr":
            values = values.tocsr()
    return replace(
        result,
        values=values,
        transformation=Transformation(transpose, log1p, center, spread),
        original=table,
    )


def undo(table: Table, values: Any) -> Any:
    """
    Results of a model in the units and the orientation of the file.

    Parameters
    ----------
    table : Table
        The table that was fitted.
    values : ndarray or sparse matrix of the shape of ``table.values``
        For example a reconstruction.

    Returns
    -------
    ndarray or scipy.sparse coo_array
        Use :func:`fill` where observed entries are to stay as they are in the file to the last digit.
    """
    steps = table.transformation
    _check_shape(table, values)
    if scipy.sparse.issparse(values):
        entries = scipy.sparse.coo_array(values)
        restored = scipy.sparse.coo_array((_back(steps, entries.data, entries.coords[1]), entries.coords), values.shape)
        return restored.T if steps.transposed else restored
    restored = _back(steps, np.asarray(values), slice(None))  # a new array only if there is something to undo
    return restored.T if steps.transposed else restored


def undo_std(table: Table, values: Any, std: Any) -> FloatArray:
    """
    Error bars in the units and the orientation of the file.

    Parameters
    ----------
    table : Table
        The table that was fitted.
    values, std : ndarray of the shape of ``table.values``
        What the model says, and its standard deviations. Through ``log1p`` they go by the derivative at `values`.
    """
    steps = table.transformation
    _check_shape(table, values)
    _check_shape(table, std)
    spread = np.asarray(std)
    if steps.scale is not None:
        spread = spread * steps.scale
    if steps.log1p:
        plain = replace(steps, transposed=False, log1p=False)
        spread = spread * np.exp(_back(plain, np.asarray(values), slice(None)))
    return spread.T if steps.transposed else spread


def fill(table: Table, values: Any) -> Table:
    """
    The table of the file with its gaps filled from a model.

    Parameters
    ----------
    table : Table
        The table that was fitted.
    values : ndarray of the shape of ``table.values``
        For example a reconstruction; only what it says about gaps is used.

    Returns
    -------
    Table
        In the units, orientation and form of the file. Observed entries are those of the file, bit for bit.
    """
    source = table if table.original is None else table.original
    completed = np.asarray(undo(table, values))
    observed = dense(source.values)
    return replace(source, values=np.where(np.isnan(observed), completed, observed).astype(observed.dtype))


def _back(steps: Transformation, values: Array, columns: Any) -> Array:
    if steps.scale is not None and steps.center is not None:
        values = values * steps.scale[columns] + steps.center[columns]
    return np.expm1(values) if steps.log1p else values


def _transposed(table: Table) -> Table:
    form = table.form
    integers = form.integers
    if integers is not None:
        integers = np.ones(table.shape[0], dtype=bool) if integers.all() else None
    types = form.column_types
    if types is not None and form.long is None:
        types = (types[0],) * table.shape[0] if len(set(types)) == 1 else None
    names = (form.integer_names[1], form.integer_names[0]) if form.long is not None else (False, False)
    long = None if form.long is None else (form.long[1], form.long[0], form.long[2])
    turned: Form = replace(
        form,
        integers=integers,
        column_types=types,
        integer_names=names,
        name_cells=form.name_cells[::-1],
        labels=None,
        long=long,
        annotations=None,
    )
    return replace(
        table, values=table.values.T, row_names=table.column_names, column_names=table.row_names, form=turned
    )


def _with_data(values: Any, data: Array) -> Any:
    if not scipy.sparse.issparse(values):
        return data
    changed = values.copy()
    changed.data = data
    return changed


def _refuse_negative(table: Table) -> None:
    entries = table.values.tocoo() if table.is_sparse else table.values
    with np.errstate(invalid="ignore"):
        negative = np.flatnonzero((entries.data if table.is_sparse else entries) < 0)
    if not len(negative):
        return
    if table.is_sparse:
        row, column = (int(index[negative[0]]) for index in entries.coords)
        value = entries.data[negative[0]]
    else:
        row, column = divmod(int(negative[0]), table.shape[1])
        value = entries[row, column]
    raise TableError(
        f"{table.source}: log1p is for counts, but {len(negative):,} value{'s are' if len(negative) > 1 else ' is'} "
        f"negative, the first {value:g} in row {row + 1:,}{_named(table.row_names, row)}, column "
        f"{column + 1:,}{_named(table.column_names, column)}. Leave log1p out, or shift the values."
    )


def _moments(table: Table) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the observed entries of each column; 0 and 1 where there are none."""
    p = table.shape[1]
    if table.is_sparse:
        entries = table.values.tocoo()
        columns, data = entries.coords[1], entries.data.astype(np.float64)
        counts = np.bincount(columns, minlength=p)
        center = np.bincount(columns, data, p) / np.maximum(counts, 1)
        squares = np.bincount(columns, (data - center[columns]) ** 2, p)
        first = np.zeros(p)
        first[columns] = data
        differ = np.bincount(columns, data != first[columns], p) > 0
    else:
        data = table.values.astype(np.float64)
        seen = ~np.isnan(data)
        counts = seen.sum(axis=0)
        center = np.where(seen, data, 0.0).sum(axis=0) / np.maximum(counts, 1)
        squares = np.where(seen, (data - center) ** 2, 0.0).sum(axis=0)
        first = data[seen.argmax(axis=0), np.arange(p)]
        differ = (seen & (data != first)).any(axis=0)
    constant = np.flatnonzero((counts > 0) & ~differ)
    if len(constant):
        names = constant + 1 if table.column_names is None else table.column_names[constant]
        raise TableError(
            f"{table.source}: columns cannot be scaled to standard deviation 1 where all observed entries are the "
            f"same: {len(constant):,} column{'s are' if len(constant) > 1 else ' is'} constant ({listed(names, 5)}). "
            f"Drop {'them' if len(constant) > 1 else 'it'}, or leave scale out."
        )
    return center, np.where(counts > 0, np.sqrt(squares / np.maximum(counts, 1)), 1.0)


def _check_shape(table: Table, values: Any) -> None:
    shape = values.shape if scipy.sparse.issparse(values) else np.shape(values)
    if tuple(shape) != table.shape:
        found = " x ".join(f"{length:,}" for length in shape) or "a single number"
        n, p = table.shape
        raise InvalidParameterError(f"values is {found}, but the table that was fitted is {n:,} x {p:,}.")


def _named(names: Array | None, position: int) -> str:
    return "" if names is None else f" ({str(names[position])!r})"

"""Tables in numpy's ``.npy`` and ``.npz`` and scipy's sparse ``.npz``; nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array
from lgmd.exceptions import TableError
from lgmd.tables._checks import exact_floats
from lgmd.tables._names import as_names, listed, nearest
from lgmd.tables._options import Options
from lgmd.tables._storage import dense
from lgmd.tables.table import Form, Table

__all__ = ["read_npy", "read_npz", "sparse_values", "stored_type", "write_npy", "write_npz"]

_NAMES = ("row_names", "column_names")


def read_npy(options: Options) -> Table:
    """Read one array of two dimensions."""
    with options.path.open("rb") as file:
        found = _load(file, options.path)
        if not isinstance(found, np.ndarray):
            raise TableError(f"{options.path} is an archive of arrays. Give it the ending .npz, or pass format='npz'.")
    return Table(
        _matrix(found, str(options.path)),
        source=options.path,
        form=Form("npy", dtype=found.dtype.newbyteorder("=").str),
    )


def read_npz(options: Options) -> Table:
    """
    Read an archive: a matrix of ``scipy.sparse.save_npz``, or an array of two dimensions.

    Arrays called ``row_names`` and ``column_names`` beside it are its names.
    """
    with options.path.open("rb") as file:
        archive = _load(file, options.path)
        if isinstance(archive, np.ndarray):
            raise TableError(f"{options.path} is a single array. Give it the ending .npy, or pass format='npy'.")
        try:
            names = {name: _as_labels(archive[name]) for name in _NAMES if name in archive.files}
            if {"data", "shape", "format"} <= set(archive.files):
                values, form = _sparse(file, options.path)
            else:
                key = _key(archive.files, options)
                found = archive[key]
                values = _matrix(found, f"{options.path}: array {key!r}")
                form = Form("npz", dtype=found.dtype.newbyteorder("=").str, key=key)
        except TableError:
            raise
        except Exception as error:
            _refuse_objects(error, options.path)
            raise TableError(f"{options.path} is damaged ({error}). Write it again.") from error
    for side, name in enumerate(_NAMES):
        if name in names and len(names[name]) != values.shape[side]:
            raise TableError(
                f"{options.path}: {name} has {len(names[name]):,} names, but the table has {values.shape[side]:,} "
                f"{name.split('_')[0]}s."
            )
    return Table(values, names.get(_NAMES[0]), names.get(_NAMES[1]), None, options.path, form)


def _load(file: Any, path: Path) -> Any:
    try:
        return np.load(file, allow_pickle=False)
    except Exception as error:  # damage shows in many ways, deep down in zipfile and numpy
        if isinstance(error, OSError) and error.errno is not None:
            raise
        _refuse_objects(error, path)
        if "pickle" in str(error):  # numpy's guess about any file that starts otherwise than its own do
            raise TableError(f"{path} is no file of numpy arrays. Write it with np.save or np.savez.") from error
        raise TableError(f"{path} is a damaged file of numpy arrays ({error}). Write it again.") from error


def _refuse_objects(error: Exception, path: Path) -> None:
    if "Object arrays" in str(error):
        raise TableError(
            f"{path} holds Python objects, which are not read because they can run code. Store numbers: "
            "array.astype(float)."
        ) from error


def _matrix(found: Array, what: str) -> Array:
    if found.ndim != 2:
        shape = " x ".join(f"{length:,}" for length in found.shape) or "a single number"
        raise TableError(
            f"{what} has {found.ndim} dimension{'s' if found.ndim != 1 else ''} ({shape}), but a table has two: rows "
            "and columns. Reshape it first."
        )
    values = exact_floats(found, what)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _as_labels(found: Array) -> Array:
    labels = as_names(found.ravel())
    assert labels is not None
    return labels


def _key(arrays: list[str], options: Options) -> str:
    if options.key is not None:
        if options.key not in arrays:
            raise TableError(
                f"{options.path} has no array {options.key!r}; it has {listed(arrays) or 'none'}."
                f"{nearest(options.key, arrays)}"
            )
        return options.key
    tables = [name for name in arrays if name not in _NAMES]
    if not tables:
        raise TableError(f"{options.path} has no arrays. Write one with np.savez(path, values=table).")
    if len(tables) > 1:
        raise TableError(
            f"{options.path} has {len(tables)} arrays: {listed(tables)}. Say which is the table with key=."
        )
    return tables[0]


def _sparse(file: Any, path: Path) -> tuple[Any, Form]:
    file.seek(0)
    found = scipy.sparse.load_npz(file)
    if found.format in ("dia", "bsr"):
        raise TableError(
            f"{path} stores whole diagonals or blocks, so that it does not say which entries are observed. Store it as "
            "csr: matrix.tocsr()."
        )
    if found.ndim != 2:
        raise TableError(f"{path} has {found.ndim} dimensions, but a table has two: rows and columns.")
    return sparse_values(found, path), Form("npz", dtype=found.dtype.newbyteorder("=").str)


def sparse_values(found: Any, path: Path) -> Any:
    """
    A matrix as a ``csr_array`` of the same stored entries.

    Raises
    ------
    TableError
        If an entry is stored twice.
    """
    floats = exact_floats(found.data, str(path))
    entries = scipy.sparse.coo_array(found)
    values = scipy.sparse.csr_array((floats, entries.coords), shape=found.shape) if found.format == "coo" else None
    if values is None:
        values = scipy.sparse.csr_array(type(found)((floats, found.indices, found.indptr), shape=found.shape))
    values.sum_duplicates()
    if values.nnz < found.nnz:
        raise TableError(
            f"{path} stores places more than once: {found.nnz:,} entries for {values.nnz:,} places. Keep one value for "
            "each place."
        )
    return values


def stored_type(table: Table, values: Array, formats: tuple[str, ...]) -> Any:
    """The type of the file if it holds all values exactly, else the type that they have."""
    if table.form.dtype is None or table.form.format not in formats or values.dtype.str == table.form.dtype:
        return values.dtype
    wanted = np.dtype(table.form.dtype)
    if wanted.kind == "f":
        return values.dtype if wanted.itemsize < values.dtype.itemsize else wanted
    limits = np.iinfo(wanted)
    with np.errstate(invalid="ignore"):
        fits = np.all((values >= limits.min) & (values <= limits.max) & (values % 1 == 0))
        return wanted if fits and np.array_equal(values.astype(wanted).astype(values.dtype), values) else values.dtype


def write_npy(table: Table, path: Path) -> None:
    """Write an array, without names, for which the format has no place."""
    values = dense(table.values)
    with path.open("wb") as file:
        np.save(file, values.astype(stored_type(table, values, ("npy", "npz"))), allow_pickle=False)


def write_npz(table: Table, path: Path) -> None:
    """Write an archive that numpy, or scipy.sparse if the table is sparse, reads; names are arrays of their own."""
    names = {
        name: labels
        for name, labels in zip(_NAMES, (table.row_names, table.column_names), strict=True)
        if labels is not None
    }
    if table.is_sparse:
        matrix = scipy.sparse.csr_array(table.values)
        arrays: dict[str, Any] = {
            "indices": matrix.indices,
            "indptr": matrix.indptr,
            "format": np.array(b"csr"),
            "shape": np.array(matrix.shape),
            "data": matrix.data.astype(stored_type(table, matrix.data, ("npz", "mtx", "h5ad"))),
            "_is_array": np.array(True),
        }
    else:
        values = table.values
        arrays = {table.form.key or "values": values.astype(stored_type(table, values, ("npy", "npz")))}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in {**arrays, **names}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)

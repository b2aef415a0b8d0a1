"""Tables in MatrixMarket files."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np

from lgmd.exceptions import TableError
from lgmd.tables._arrays import sparse_values, stored_type
from lgmd.tables._cells import shorten
from lgmd.tables._checks import exact_floats
from lgmd.tables._options import Options
from lgmd.tables._storage import as_entries
from lgmd.tables._text_file import open_binary
from lgmd.tables.table import Form, Table

__all__ = ["read_matrix_market", "write_matrix_market"]

_SYNOPSIS = "%%MatrixMarket matrix coordinate real general"


def read_matrix_market(options: Options) -> Table:
    """
    Read a matrix: what a ``coordinate`` file lists is observed and the rest are gaps, an ``array`` file is full.

    The format has no place for names.
    """
    path = options.path
    with open_binary(path) as file:
        content = file.read()
    if not content.strip():
        raise TableError(f"{path} is empty. A MatrixMarket file starts with a line such as {_SYNOPSIS!r}.")
    words = content.split(b"\n", 1)[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
        raise TableError(
            f"{path}, line 1: found {shorten(content[:200].split(bytes((10,)))[0].decode('ascii', 'replace'))}, but a "
            f"MatrixMarket file starts with a line such as {_SYNOPSIS!r}."
        )
    if words[3] == "complex":
        raise TableError(f"{path} holds complex numbers. Write the real and the imaginary part as tables of their own.")
    if words[3] == "pattern":
        raise TableError(f"{path} says where entries are but not their values (field 'pattern'). Write them as 'real'.")
    from scipy.io import mmread

    try:
        found: Any = mmread(io.BytesIO(content))
    except Exception as error:  # damage shows in many ways
        raise TableError(
            f"{path} is no MatrixMarket file, or is damaged ({error}). Write it again, for example with "
            "scipy.io.mmwrite."
        ) from error
    form = Form("mtx", dtype=found.dtype.str)
    if isinstance(found, np.ndarray):
        return Table(exact_floats(found, str(path)), source=path, form=form)
    return Table(sparse_values(found, path), source=path, form=form)


def write_matrix_market(table: Table, path: Path, compressed: bool) -> None:
    """Write a matrix without names: ``array`` if nothing is missing in a dense table, else ``coordinate``."""
    from scipy.io import mmwrite

    values = table.values
    if table.is_sparse or np.isnan(values).any():
        values = as_entries(values).astype(np.float64)
        values.data = values.data.astype(stored_type(table, values.data, ("mtx", "npz", "h5ad")))
    else:
        values = values.astype(np.float64)
        values = values.astype(stored_type(table, values, ("mtx", "npy", "npz")))
    buffer = io.BytesIO()
    mmwrite(buffer, values, symmetry="general")
    with path.open("wb") as file:
        if compressed:
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                packed.write(buffer.getbuffer())
        else:
            file.write(buffer.getbuffer())

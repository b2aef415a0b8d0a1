"""Tables in AnnData files: cells x genes, with their names."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd.exceptions import TableError
from lgmd.tables._arrays import sparse_values, stored_type
from lgmd.tables._checks import exact_floats
from lgmd.tables._names import as_names
from lgmd.tables._options import Options
from lgmd.tables.formats import library
from lgmd.tables.table import Form, Table

__all__ = ["read_anndata", "write_anndata"]


def read_anndata(options: Options) -> Table:
    """
    Read ``X`` with ``obs_names`` and ``var_names``.

    Where ``X`` is sparse, stored entries are observed and the others are gaps, as everywhere in this package.
    """
    anndata = library("anndata", options.path)
    with warnings.catch_warnings():  # about names that repeat, which is checked here, and about its own future
        warnings.simplefilter("ignore")
        try:
            data = anndata.read_h5ad(options.path)
        except Exception as error:  # damage shows in many ways, deep down in h5py
            raise TableError(f"{options.path} is no AnnData file, or is damaged ({error}). Write it again.") from error
        found = data.X
        if found is None:
            raise TableError(f"{options.path} has no matrix X. Put the table there, for example a layer: adata.X = ...")
        if scipy.sparse.issparse(found):
            values = sparse_values(found, options.path)
        else:
            values = exact_floats(np.asarray(found), str(options.path))
        form = Form("h5ad", dtype=found.dtype.str, annotations=data)
        data.X = None
    return Table(values, as_names(data.obs_names), as_names(data.var_names), None, options.path, form)


def write_anndata(table: Table, path: Path) -> None:
    """Write ``X`` with its names, and with what else the file had if the names are still the same."""
    anndata = library("anndata", path)
    import pandas as pd

    values = table.values
    if scipy.sparse.issparse(values):
        values = scipy.sparse.csr_matrix(values)
        values.data = values.data.astype(stored_type(table, values.data, ("h5ad",)))
    else:
        values = values.astype(stored_type(table, values, ("h5ad",)))
    names = [
        np.arange(length).astype(str) if known is None else known
        for length, known in zip(table.shape, (table.row_names, table.column_names), strict=True)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if _still_fits(table.form.annotations, names):
            data = table.form.annotations.copy()
            data.X = values
        else:
            frames = [pd.DataFrame(index=pd.Index(list(known), dtype=object)) for known in names]
            data = anndata.AnnData(values, obs=frames[0], var=frames[1])
        data.write_h5ad(path)


def _still_fits(annotations: Any, names: list[Any]) -> bool:
    return annotations is not None and all(
        list(old) == list(new) for old, new in zip((annotations.obs_names, annotations.var_names), names, strict=True)
    )

"""Which files are known, by the ending of their names."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lgmd.exceptions import TableError

__all__ = ["COMPRESSIBLE", "ENDINGS", "FORMATS", "format_of", "is_compressed", "library"]

FORMATS: dict[str, str] = {
    "csv": "comma-separated text",
    "tsv": "tab-separated text",
    "txt": "text with any delimiter",
    "parquet": "Parquet",
    "xlsx": "Excel",
    "npy": "a numpy array",
    "npz": "an archive of numpy arrays, or a scipy.sparse matrix",
    "mtx": "MatrixMarket",
    "h5ad": "AnnData",
}

ENDINGS: dict[str, str] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "txt",
    ".dat": "txt",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
    ".h5ad": "h5ad",
}

COMPRESSIBLE = ("csv", "tsv", "txt", "mtx")

_INSTEAD = {
    ".xls": "This is Excel's old format: open it and save it as .xlsx.",
    ".ods": "Save it as .xlsx or .csv.",
    ".mat": "Save the matrix as .npy, or with scipy.io.mmwrite as .mtx.",
    ".rds": "Write it from R with write.csv.",
    ".h5": "If it is an AnnData file, rename it to .h5ad.",
    ".zip": "Unpack it first.",
    ".bz2": "Unpack it first, or compress with gzip.",
    ".xz": "Unpack it first, or compress with gzip.",
    ".zst": "Unpack it first, or compress with gzip.",
}

_PACKAGES = {
    "openpyxl": "Excel files need openpyxl, which is not installed. Run: pip install openpyxl",
    "anndata": "AnnData files need anndata, which is not installed. Run: pip install 'lgmd[anndata]'",
}


def format_of(path: Path, *, to_write: bool = False) -> str:
    """
    Format of a file by the ending of its name.

    Parameters
    ----------
    path : Path
    to_write : bool, default=False
        Whether the file is still to be written, so that its name is free to choose.

    Raises
    ------
    TableError
        If the ending is not known.
    """
    ending = Path(path.stem).suffix.lower() if is_compressed(path) else path.suffix.lower()
    found = ENDINGS.get(ending)
    if found is None:
        shown = "".join((ending, ".gz")) if is_compressed(path) else ending
        what = f"has the ending {shown!r}, which is not one of a table" if shown else "has no ending"
        known = ", ".join(ENDINGS)
        instead = _INSTEAD.get(ending, "Rename the file, or say what it is with format=.")
        if to_write:
            instead = "Give the file that is to be written one of these endings."
        raise TableError(f"{path} {what}. Known are {known} (text and .mtx also with .gz). {instead}")
    if is_compressed(path) and found not in COMPRESSIBLE:
        do = "Leave .gz out" if to_write else "Unpack it first"
        raise TableError(f"{path}: only text and .mtx files may be compressed with gzip. {do}.")
    return found


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether the name says that the file is compressed."""
    return Path(path).suffix.lower() == ".gz"


def library(name: str, path: Path) -> Any:
    """
    Load a package that only some formats need.

    Raises
    ------
    TableError
        If it is not installed.
    """
    if not is_installed(name):
        raise TableError(f"{path} cannot be used: {_PACKAGES[name]}")
    return import_module(name)


def is_installed(name: str) -> bool:
    """Whether a package can be loaded, without loading it."""
    try:
        return find_spec(name) is not None
    except ValueError:  # a module that was taken away, as tests do
        return False

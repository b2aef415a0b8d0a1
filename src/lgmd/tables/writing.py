"""The door out: a :class:`Table` as a file that is whole or not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from lgmd._files import replacing
from lgmd.exceptions import TableError
from lgmd.tables.formats import format_of, is_compressed, library
from lgmd.tables.table import Table

__all__ = ["check_writable", "write_table"]

_NEEDS = {"xlsx": "openpyxl", "h5ad": "anndata"}


def write_table(table: Table, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """
    Write what the table holds, in the format that the ending of the name says.

    Every number reads back as the same double. What the format can hold of names and of the form of the file that the
    table came from is kept: delimiter, encoding, integer columns, types, sheet and array names, AnnData's annotations.
    ``.npy`` and ``.mtx`` have no place for names. A sparse table, or one that was read as long, becomes a long table
    in text and Parquet. A column of integers with values filled in has integers and decimals side by side in text and
    Excel, and becomes a column of doubles in Parquet and numpy files.

    Parameters
    ----------
    table : Table
    path : path-like
        Where to; it is written under another name first and then moved there.
    force : bool, default=False
        Whether a file that is there already may be replaced.

    Raises
    ------
    TableError
        If it cannot be written; what was at `path` is then still there as it was.
    """
    path = Path(path)
    format = check_writable(path, force)
    try:
        with replacing(path) as temporary:
            _write(table, temporary, format, is_compressed(path))
    except OSError as error:
        raise _unwritable(path, error) from error


def check_writable(path: str | os.PathLike[str], force: bool = False) -> str:
    """
    Format in which a table would be written to `path`.

    Commands call it before they start on the work whose result is to go there.

    Raises
    ------
    TableError
        If the ending is not known, the folder is not there or may not be written to, there is a file already and
        `force` is not set, or the format needs a package that is not installed.
    """
    path = Path(path)
    format = format_of(path, to_write=True)
    folder = path.parent
    if path.is_dir():
        raise TableError(f"{path} is a folder. Name a file inside it.")
    if not folder.exists():
        raise TableError(f"There is no folder {folder} to write {path.name} to. Make it first.")
    if not folder.is_dir():
        raise TableError(f"{folder} is not a folder, so that {path.name} cannot be written there. Choose another path.")
    if os.path.lexists(path) and not force:
        raise TableError(
            f"{path} is there already. Choose another name, or force it to be replaced (force=True, --force)."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TableError(f"The folder {folder} may not be written to. Change its permissions, or choose another.")
    if format in _NEEDS:
        library(_NEEDS[format], path)
    return format


def _write(table: Table, path: Path, format: str, compressed: bool) -> None:
    if format == "parquet":
        from lgmd.tables._parquet import write_parquet

        write_parquet(table, path)
    elif format == "xlsx":
        from lgmd.tables._excel import write_excel

        write_excel(table, path)
    elif format == "npy":
        from lgmd.tables._arrays import write_npy

        write_npy(table, path)
    elif format == "npz":
        from lgmd.tables._arrays import write_npz

        write_npz(table, path)
    elif format == "mtx":
        from lgmd.tables._matrix_market import write_matrix_market

        write_matrix_market(table, path, compressed)
    elif format == "h5ad":
        from lgmd.tables._anndata import write_anndata

        write_anndata(table, path)
    else:
        from lgmd.tables._text_output import write_text_table

        write_text_table(table, path, format, compressed)


def _unwritable(path: Path, error: OSError) -> TableError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TableError(
            f"{path} could not be written: the disk is full. Nothing was left behind; free some space, or choose "
            "another folder."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return TableError(f"{path} could not be written: permission denied. Choose another folder.")
    return TableError(f"{path} could not be written: {error.strerror or error}. Nothing was left behind.")

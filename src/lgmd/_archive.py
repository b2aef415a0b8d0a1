"""Files of arrays with a JSON header: numpy's ``.npz``, without pickle, written in one move.

Models and checkpoints share this form.
"""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._files import replacing
from lgmd._typing import Array

__all__ = ["ArchiveError", "add_matrix", "read_archive", "take_matrix", "write_archive"]

_HEADER = "header"

# The header lists the arrays, so that one that damage has hidden is missed.
_NAMES = "arrays"


# What files of a single array begin with.
_ARRAY = b"\x93NUMPY"


class ArchiveError(Exception):
    """The file is not such an archive, or is damaged; the message says which."""


def write_archive(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write a header and arrays to ``path``, replacing what is there.

    Raises
    ------
    ValueError
        An array holds Python objects, is called ``"header"``, or the header has a key ``"arrays"``.
    """
    if _HEADER in arrays or _NAMES in header:
        raise ValueError(f"the array name {_HEADER!r} and the header key {_NAMES!r} are taken")
    text = np.frombuffer(json.dumps({**header, _NAMES: list(arrays)}).encode(), dtype=np.uint8)
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in {_HEADER: text, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file that :func:`write_archive` wrote.

    Raises
    ------
    ArchiveError
        The file is something else, or damaged.
    """
    try:
        with open(path, "rb") as file:  # np.load leaves a file that it opened itself open where it fails
            is_numpy = file.read(len(_ARRAY)) == _ARRAY
            if not is_numpy and not zipfile.is_zipfile(file):  # numpy would advise to unpickle it
                raise ArchiveError("it is no archive")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ArchiveError("it is a single array")
            if _HEADER not in archive:
                raise ArchiveError("it has no header")
            header = json.loads(archive[_HEADER].tobytes().decode())
            arrays = {name: archive[name] for name in archive.files if name != _HEADER}
    except (ArchiveError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # damage shows in many ways, deep down in zipfile, numpy and json
        raise ArchiveError(f"it cannot be read ({error})") from error
    if not isinstance(header, dict):
        raise ArchiveError("its header is not a table")
    lost = set(header.pop(_NAMES, [])) - set(arrays)
    if lost:
        raise ArchiveError(f"it lacks the arrays {', '.join(sorted(lost))}")
    return header, arrays


def add_matrix(arrays: dict[str, Array], name: str, matrix: Any) -> None:
    """Store a sparse matrix as four arrays."""
    compressed = scipy.sparse.csr_array(matrix)
    arrays[f"{name}.data"] = compressed.data
    arrays[f"{name}.indices"] = compressed.indices
    arrays[f"{name}.indptr"] = compressed.indptr
    arrays[f"{name}.shape"] = np.asarray(compressed.shape)


def take_matrix(arrays: dict[str, Array], name: str) -> scipy.sparse.csr_array:
    """The matrix that :func:`add_matrix` stored.

    Raises
    ------
    ArchiveError
        A part of it is missing, or they do not fit together.
    """
    try:
        parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
        n, p = arrays[f"{name}.shape"].tolist()
        matrix = scipy.sparse.csr_array(parts, shape=(n, p))
        matrix.check_format(full_check=True)
    except KeyError as error:
        raise ArchiveError(f"it lacks the array {error}") from error
    except (IndexError, TypeError, ValueError) as error:
        raise ArchiveError(f"its matrix {name!r} is damaged ({error})") from error
    return matrix

"""Files of arrays with a JSON header: numpy's ``.npz``, without pickle, written in one move.

Models and checkpoints share this form. A file is first written under a temporary name beside its place, so that an
interrupted run leaves the old file or the new one, never half of one.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array

__all__ = ["ArchiveError", "add_matrix", "read_archive", "take_matrix", "write_archive"]

_HEADER = "header"


class ArchiveError(Exception):
    """The file is not such an archive, or is damaged; the message says which."""


def write_archive(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write a header and arrays to ``path``, replacing what is there."""
    target = Path(path)
    text = np.frombuffer(json.dumps(header, allow_nan=True).encode(), dtype=np.uint8)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez(file, **{_HEADER: text}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file that :func:`write_archive` wrote."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile) or _HEADER not in archive:
                raise ArchiveError("it has no header")
            header = json.loads(archive[_HEADER].tobytes().decode())
            arrays = {name: archive[name] for name in archive.files if name != _HEADER}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            raise
        raise ArchiveError(f"it cannot be read ({error})") from error
    if not isinstance(header, dict):
        raise ArchiveError("its header is not a table")
    return header, arrays


def add_matrix(arrays: dict[str, Array], name: str, matrix: Any) -> None:
    """Store a sparse matrix as four arrays."""
    compressed = scipy.sparse.csr_array(matrix)
    arrays[f"{name}.data"] = compressed.data
    arrays[f"{name}.indices"] = compressed.indices
    arrays[f"{name}.indptr"] = compressed.indptr
    arrays[f"{name}.shape"] = np.asarray(compressed.shape)


def take_matrix(arrays: dict[str, Array], name: str) -> scipy.sparse.csr_array:
    """The matrix that :func:`add_matrix` stored."""
    parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    n, p = arrays[f"{name}.shape"].tolist()
    return scipy.sparse.csr_array(parts, shape=(n, p))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""The data folder: where it is, what a set needs of its file, and what to say when the file is missing or damaged."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lgmd._typing import Array
from lgmd.exceptions import InvalidDataError, MissingDataError

__all__ = ["VARIABLE", "DataSource", "MissingFileError", "read_arrays"]

VARIABLE = "LGMD_DATA"


@dataclass(frozen=True)
class DataSource:
    """
    One file of the data folder.

    Attributes
    ----------
    file : str
        Path inside the folder.
    what : str
        What the set is, as the subject of a sentence in the singular.
    origin : str
        Who published it, and where.
    instead : str
        What to do without the file.
    arrays : dict of str to str
        Names of the arrays that a loader needs, with their dimensions: ``"stations days"``. The same word stands
        for the same length in all of them.
    """

    file: str
    what: str
    origin: str
    instead: str
    arrays: dict[str, str]


class MissingFileError(MissingDataError):
    """
    A file of the data folder is not there.

    Attributes
    ----------
    in_short : str
        The message without what to do instead, for those who can use that file only.
    """

    in_short: str = ""


def read_arrays(source: DataSource, folder: str | os.PathLike[str] | None) -> dict[str, Array]:
    """
    Arrays of a file of the data folder that `source` names, their shapes checked against each other.

    Arrays that the file may have but need not are read too, without a check.

    Raises
    ------
    MissingDataError
        If neither `folder` nor the variable names a folder with that file.
    InvalidDataError
        If the file is no archive of arrays, is damaged, or lacks one.
    """
    path = _find(source, folder)
    try:
        with open(path, "rb") as file:  # np.load leaves a file that it opened itself open where it fails
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InvalidDataError(f"{path} is a single array, not an archive with {_listed(source.arrays)}.")
            absent = [name for name in source.arrays if name not in archive.files]
            if absent:
                raise InvalidDataError(
                    f"{path} lacks {_listed(absent)}. {source.what} needs {_listed(source.arrays)}; this file has "
                    f"{_listed(archive.files) or 'nothing'}."
                )
            arrays = {name: archive[name] for name in archive.files}
    except InvalidDataError:
        raise
    except Exception as error:  # damage shows in many ways, deep down in zipfile, zlib and numpy
        raise InvalidDataError(f"{path} cannot be read ({error}). It is damaged, or no numpy archive.") from error
    _check_shapes(path, source, arrays)
    return arrays


def _find(source: DataSource, folder: str | os.PathLike[str] | None) -> Path:
    if folder is not None:
        root, looked = Path(folder), "in the folder that was passed"
    elif os.environ.get(VARIABLE):
        root, looked = Path(os.environ[VARIABLE]), f"in the folder that {VARIABLE} names"
    else:
        raise _missing(source, f"{VARIABLE} is not set.")
    path = root / source.file
    if not path.is_file():
        raise _missing(source, f"There is no file {path}, {looked}.")
    return path


def _missing(source: DataSource, found: str) -> MissingFileError:
    story = f"{source.what} is not at hand. It comes from {source.origin}. {found}"
    remedy = f"Set {VARIABLE} to, or pass as folder=, the folder that holds {source.file}. {source.instead}"
    error = MissingFileError(f"{story} {remedy}")
    error.in_short = (
        f"{story} Set {VARIABLE} to the folder that holds {source.file}, a numpy archive of {_listed(source.arrays)}."
    )
    return error


def _check_shapes(path: Path, source: DataSource, arrays: dict[str, Array]) -> None:
    lengths: dict[str, tuple[int, str]] = {}
    for name, dimensions in source.arrays.items():
        words, shape = dimensions.split(), arrays[name].shape
        if len(words) != len(shape):
            raise InvalidDataError(f"{path}: {name} has {len(shape)} dimensions, but {len(words)} were expected.")
        for word, length in zip(words, shape, strict=True):
            known, other = lengths.setdefault(word, (length, name))
            if known != length:
                raise InvalidDataError(f"{path}: {name} is for {length:,} {word}, but {other} for {known:,}.")


def _listed(names: object) -> str:
    return ", ".join(repr(name) for name in names)  # type: ignore[attr-defined]

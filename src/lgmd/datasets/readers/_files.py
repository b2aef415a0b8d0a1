"""Which files to read, and how to open them, compressed or not."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from lgmd.exceptions import InvalidDataError, InvalidParameterError, MissingDataError

__all__ = ["PathLike", "Paths", "find_files", "malformed", "open_file", "open_text", "read_bytes"]

PathLike: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = PathLike | Iterable[PathLike]


def find_files(paths: Paths, patterns: tuple[str, ...]) -> list[Path]:
    """
    Files to read: those named, and of each folder named those whose name fits a pattern such as ``*.csv``, sorted.

    Raises
    ------
    MissingDataError
        If a path does not exist, or a folder has no such file.
    InvalidParameterError
        If no path was given.
    """
    given = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not given:
        raise InvalidParameterError("paths is empty. Pass at least one file or folder.")
    files: list[Path] = []
    for path in given:
        if path.is_dir():
            files += _inside(path, patterns)
        elif path.is_file():
            files.append(path)
        else:
            raise MissingDataError(f"There is no file or folder {path}.")
    return files


def _inside(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    fitting = [
        path
        for path in folder.iterdir()
        if path.is_file() and any(fnmatchcase(path.name, pattern) for pattern in patterns)
    ]
    if not fitting:
        raise MissingDataError(
            f"The folder {folder} has no file {' or '.join(patterns)}. Pass the folder that has them, or the files."
        )
    return sorted(fitting)


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read bytes, through gzip if its name ends in ``.gz``; a damaged archive is an InvalidDataError."""
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}.")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        try:
            yield cast(BinaryIO, file)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InvalidDataError(f"{path} is no gzip file, or a truncated one ({error}). Fetch it again.") from error


@contextmanager
def open_text(path: Path) -> Iterator[BinaryIO]:
    """Open a file as :func:`open_file` does, past the mark that some editors put before UTF-8."""
    with open_file(path) as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        yield file


def read_bytes(path: Path) -> bytes:
    """Return the whole content of a file, decompressed if its name ends in ``.gz``."""
    with open_file(path) as file:
        return file.read()


def malformed(path: Path, line: int, found: str, expected: str) -> InvalidDataError:
    """Return the error for a line that does not fit its format."""
    return InvalidDataError(f"{path}, line {line:,}: {found}, but {expected}.")

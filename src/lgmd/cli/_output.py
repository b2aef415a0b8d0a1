"""Results that are whole or not there: written under a temporary name and moved into place."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lgmd.exceptions import InvalidParameterError, LGMDError

__all__ = ["OutputError", "check_file", "check_folder", "naming", "refuse_same_names", "staged_files", "staged_folder"]

# How a write fails half-way, which says no name.
_HALF_WAY = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


class OutputError(LGMDError, OSError):
    """Results cannot be written where they were asked for."""


def check_folder(folder: Path, force: bool, own: Sequence[str]) -> None:
    """
    See that a folder of results can be made, before the work whose results it is for.

    Parameters
    ----------
    folder : Path
    force : bool
        Whether results that are there may be replaced.
    own : sequence of str
        Names of the files that such a folder can have, without their endings: one with anything else is not replaced.
    """
    parent = _parent(folder)
    if folder.absolute() == Path.cwd():
        raise OutputError("The results need a folder of their own, not the one you are in. Name a new one.")
    if os.path.lexists(folder):
        if not folder.is_dir():
            raise OutputError(f"{folder} is a file, but results are written into a folder. Choose another name.")
        others = [name for name in sorted(os.listdir(folder)) if name.split(".")[0] not in own]
        if others:
            raise OutputError(
                f"{folder} is there already, with {others[0]!r} in it, which lgmd did not write there. Choose another "
                "name for the results."
            )
        if not force and any(folder.iterdir()):
            raise OutputError(f"{folder} is there already. Choose another name, or replace it with --force.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(f"The folder {parent} may not be written to. Change its permissions, or choose another.")


def check_file(path: Path, force: bool) -> None:
    """See that a file can be written, before the work whose result it is for."""
    parent = _parent(path)
    if path.is_dir():
        raise OutputError(f"{path} is a folder. Name a file inside it.")
    if os.path.lexists(path) and not force:
        raise OutputError(f"{path} is there already. Choose another name, or replace it with --force.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(f"The folder {parent} may not be written to. Change its permissions, or choose another.")


def refuse_same_names(paths: Sequence[Path]) -> None:
    """See that no result takes the place of another, before the work whose results they are."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise InvalidParameterError(f"{paths[0]} is named twice. Each file of results needs a name of its own.")


@contextmanager
def staged_folder(folder: Path) -> Iterator[Path]:
    """A new folder to write to; once all went well it takes the place of ``folder``."""
    with _staging(folder) as staging:
        fresh = staging / "new"
        fresh.mkdir()
        with _at_their_place({str(fresh): str(folder)}), naming(folder):
            yield fresh
        old = staging / "old"
        if folder.exists():
            os.replace(folder, old)
        try:
            os.replace(fresh, folder)
        except OSError:
            if old.exists():
                os.replace(old, folder)
            raise


@contextmanager
def staged_files(*paths: Path) -> Iterator[list[Path]]:
    """Temporary paths of the same names; once all went well they take their places, all or none."""
    refuse_same_names(paths)
    with _staging(paths[0]) as staging:
        fresh = [staging / str(number) / path.name for number, path in enumerate(paths)]
        for path in fresh:
            path.parent.mkdir()
        with _at_their_place({str(new): str(path) for new, path in zip(fresh, paths, strict=True)}), naming(paths[0]):
            yield fresh
        for new, path in zip(fresh, paths, strict=True):
            if path.parent.stat().st_dev == staging.stat().st_dev:
                os.replace(new, path)
            else:
                shutil.move(new, path)


@contextmanager
def naming(target: Path) -> Iterator[None]:
    """Let the error of a write that fails half-way say where the results were to go."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _HALF_WAY:
            error.filename = str(target)
        raise


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    staging = Path(tempfile.mkdtemp(dir=_parent(target), prefix=f".{target.name}."))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _at_their_place(names: dict[str, str]) -> Iterator[None]:
    """Let errors speak of the files that were asked for, not of their temporary names."""
    try:
        yield
    except LGMDError as error:
        text = str(error)
        for temporary, name in names.items():
            text = text.replace(temporary, name)
        raise OutputError(text) from error
    except OSError as error:
        if isinstance(error.filename, str):
            for temporary, name in names.items():
                error.filename = error.filename.replace(temporary, name)
        raise


def _parent(target: Path) -> Path:
    parent = target.absolute().parent
    if not parent.is_dir():
        raise OutputError(f"There is no folder {target.parent} to write {target.name} to. Make it first.")
    return parent

"""MovieLens ratings in the three forms of GroupLens: ``u.data``, ``ratings.dat`` and ``ratings.csv``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lgmd._typing import IntArray
from lgmd.datasets.containers import SparseRatings
from lgmd.datasets.readers._files import PathLike, malformed, open_text
from lgmd.exceptions import InvalidDataError, MissingDataError

__all__ = ["read_movielens"]

_NAMES = ("u.data", "ratings.dat", "ratings.csv")
_FIELDS = ("user", "item", "rating", "timestamp")
_HEADER = b"userId,movieId,rating,timestamp"


@dataclass(frozen=True)
class _Form:
    """How a form separates its fields, and how many lines come before them."""

    separator: bytes
    n_header_lines: int = 0


def read_movielens(path: PathLike) -> SparseRatings:
    """
    Ratings of any MovieLens set, told apart by the content of the file.

    Parameters
    ----------
    path : path
        ``u.data`` (100k: separated by tabs), ``ratings.dat`` (1M and 10M: by ``::``) or ``ratings.csv`` (20M and later,
        and the small ones), compressed by gzip or not; or the folder that has one of them.

    Returns
    -------
    SparseRatings
        Users x films that have a rating, with the set's own numbers of both, and the time of each rating.

    Raises
    ------
    MissingDataError
        If the file is not there, or the folder has none of the three.
    InvalidDataError
        If a line does not fit the form, with its number; if the file ends inside the last time; if a user rates a film
        twice.
    """
    path = _locate(Path(path))
    form = _recognise(path)
    columns = _read_columns(path, form)
    _refuse_cut(path, columns["timestamp"])
    user_ids, rows = np.unique(columns["user"], return_inverse=True)
    item_ids, places = np.unique(columns["item"], return_inverse=True)
    pairs = np.sort(rows.astype(np.int64) * len(item_ids) + places)
    repeated = np.flatnonzero(pairs[1:] == pairs[:-1])
    if len(repeated):
        row, column = divmod(int(pairs[repeated[0]]), len(item_ids))
        raise InvalidDataError(f"{path}: user {user_ids[row]} rates film {item_ids[column]} twice.")
    positions = rows.astype(np.int32), places.astype(np.int32)
    ratings = sparse.coo_array((columns["rating"], positions), shape=(len(user_ids), len(item_ids)))
    return SparseRatings(ratings, user_ids, item_ids, columns["timestamp"])


def _locate(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in (*_NAMES, *(f"{name}.gz" for name in _NAMES)):
        if (path / name).is_file():
            return path / name
    raise MissingDataError(
        f"The folder {path} has no {', '.join(_NAMES[:-1])} or {_NAMES[-1]}. Unpack a MovieLens set."
    )


def _recognise(path: Path) -> _Form:
    with open_text(path) as file:
        line = file.readline(1000).rstrip(b"\r\n")
    form = _Form(b"\t")
    if line == _HEADER:
        return _Form(b",", n_header_lines=1)
    if b"::" in line:
        form = _Form(b"::")
    if not _fits(line, form):
        found = f"found {line[:60].decode('utf-8', 'replace')!r}"
        raise malformed(
            path, 1, found, "four numbers between tabs or '::', or the names userId,movieId,... were expected"
        )
    return form


def _read_columns(path: Path, form: _Form) -> dict[str, Any]:
    import pandas as pd

    # Two colons are read as one that surrounds an empty field, which keeps the fast parser.
    names = list(_FIELDS) if form.separator != b"::" else ["user", "_1", "item", "_2", "rating", "_3", "timestamp"]
    kinds = {"user": np.int64, "item": np.int64, "rating": np.float64, "timestamp": np.int64}
    try:
        with open_text(path) as file:
            frame = pd.read_csv(
                file,
                sep=form.separator[:1].decode(),
                header=None,
                names=names,
                skiprows=form.n_header_lines,
                dtype=kinds,
                index_col=False,
            )
        columns = {name: frame[name].to_numpy() for name in _FIELDS}
        if not len(frame):
            raise InvalidDataError(f"{path} has no ratings.")
        if (
            all(frame[name].isna().all() for name in names if name.startswith("_"))
            and np.isfinite(columns["rating"]).all()
            and all(columns[name].min() >= 0 for name in ("user", "item", "timestamp"))
        ):
            return columns
    except (ValueError, OverflowError, pd.errors.ParserError) as error:
        if isinstance(error, InvalidDataError):
            raise
    raise _first_fault(path, form)


def _first_fault(path: Path, form: _Form) -> InvalidDataError:
    """Return the error for the first line that does not fit, found by reading line by line."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            line = line.rstrip(b"\r\n")
            if number > form.n_header_lines and line and not _fits(line, form):
                found = f"found {line[:60].decode('utf-8', 'replace')!r}"
                return malformed(path, number, found, "user, film, rating and time were expected")
    return InvalidDataError(f"{path} is no table of ratings, though each line has four numbers.")


def _refuse_cut(path: Path, times: IntArray) -> None:
    """A file that ends within the last number still has four in every line; that of a time is too small then."""
    before, last = times[:-1], times[-1]
    if not len(before) or last >= before.min() or len(str(last)) >= len(str(before.max())):
        return
    number, line = 0, b""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):  # noqa: B007 - the last one is wanted
            pass
    if not line.endswith((b"\n", b"\r")):
        found = f"the file ends with {line[-60:].decode('utf-8', 'replace')!r}"
        raise malformed(path, number, found, "a whole time and a line break were expected; it is truncated")


def _fits(line: bytes, form: _Form) -> bool:
    fields = line.split(form.separator)
    try:
        return len(fields) == 4 and math.isfinite(float(fields[2])) and all(int(fields[i]) >= 0 for i in (0, 1, 3))
    except ValueError:
        return False

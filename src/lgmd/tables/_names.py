"""Names of rows and columns: an array of text, each once."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from lgmd._typing import Array
from lgmd.exceptions import TableError
from lgmd.tables._cells import shorten

__all__ = ["as_names", "check_names", "listed", "nearest"]


def as_names(names: Sequence[Any] | Array | None) -> Array | None:
    """Names as an array of text."""
    return None if names is None else np.array([str(name) for name in names], dtype=str)


def check_names(names: Array | None, kind: str, path: Path) -> None:
    """
    Raise unless every name is there, and once.

    Parameters
    ----------
    names : ndarray of str or None
    kind : {"row", "column"}
    path : Path
        The file, for the message.
    """
    if names is None:
        return
    unnamed = np.flatnonzero(names == "")
    if len(unnamed):
        do = (
            "Give it one, remove the column if every line ends in a delimiter, or pass header=False"
            if kind == "column"
            else "Give it one, or pass row_names=False"
        )
        raise TableError(f"{path}: {kind} {unnamed[0] + 1:,} of the table has no name. {do}.")
    unique, first, counts = np.unique(names, return_index=True, return_counts=True)
    if len(unique) == len(names):
        return
    repeated = np.flatnonzero(counts > 1)
    chosen = repeated[np.argmin(first[repeated])]
    places = np.flatnonzero(names == unique[chosen])[:2] + 1
    more = f" {len(repeated) - 1:,} more names are repeated." if len(repeated) > 1 else ""
    option = "row_names=False" if kind == "row" else "header=False"
    raise TableError(
        f"{path}: the {kind} name {shorten(str(unique[chosen]))} stands at {kind}s {places[0]:,} and {places[1]:,} of "
        f"the table.{more} Give every {kind} its own name, or pass {option} if these are no names."
    )


def listed(names: Sequence[Any] | Array, most: int = 10) -> str:
    """A few names in quotes."""
    shown = ", ".join(shorten(str(name)) for name in list(names)[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def nearest(name: str, names: Sequence[str]) -> str:
    """A question that names the most similar one, or nothing."""
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(found) for found in close)}?" if close else ""

"""Labels of rows and columns as pandas has them, and whether two tables have them in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgmd._typing import Array

__all__ = ["first_moved", "is_default", "is_frame", "labels_of", "names_of"]


def is_frame(table: Any) -> bool:
    """Whether this is a DataFrame."""
    return hasattr(table, "iloc") and hasattr(table, "columns") and hasattr(table, "to_numpy")


def is_default(index: Any) -> bool:
    """Whether an index just counts, as that which pandas gives where nobody has said anything."""
    if index.dtype.kind not in "iu" or not len(index):
        return False
    return np.array_equal(np.asarray(index), int(index[0]) + np.arange(len(index)))


def names_of(index: Any) -> Array | None:
    """Labels as text; None for ranges of numbers, which are no names."""
    return None if type(index).__name__ == "RangeIndex" else labels_of(index)


def labels_of(index: Any) -> Array:
    """Labels as text, or numbers where they are a range."""
    if type(index).__name__ == "RangeIndex":
        return np.asarray(index)
    return np.asarray(index.map(str), dtype=str)


def first_moved(found: Array, known: Array) -> int | None:
    """The first place where the same labels stand in another order; None where they do not, or are other labels."""
    if np.array_equal(found, known) or len(found) != len(known):
        return None
    found, known = np.asarray(found, dtype=str), np.asarray(known, dtype=str)
    differing = np.flatnonzero(found != known)
    if not len(differing) or not np.array_equal(np.sort(found), np.sort(known)):
        return None
    return int(differing[0])

"""
Whether whole numbers in the first column name the rows, as ids do, or are data like the columns beside them.

Only numbers that are all there and all differ come here. In this order:

1. a header that speaks of ids (``station``, ``cell_id``, ``userId``, ``Unnamed: 0``) makes them names;
2. numbers that count, 0, 1, 2, ... or 1, 2, 3, ..., are probably names, and the user is told;
3. so are those that rise from row to row and are at least ten times as large as anything beside them;
4. numbers that only rise, where no other column does, or only are that large, are probably data, and the user is told;
5. all others are data.

Rules 2 to 4 want three rows and two other columns: in less, small numbers look like anything. Rules 1 to 3 hold for the
head of a column wherever they hold for all of it, which lets text be read in one go.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import numpy as np

from lgmd._typing import Array, FloatArray

__all__ = ["Ids", "judge_ids", "warn_of_guess"]

_FEWEST_ROWS, _FEWEST_COLUMNS = 3, 2
_FAR = 10.0

_THINGS = frozenset(
    "accession barcode book case cell city client country county customer device doc document film fips gene id ids "  # noqa: SIM905
    "index individual item key movie name names node obs observation participant patient person player probe product "
    "protein record row rowname rownames rows sample school sensor site song station student subject transcript uid "
    "unnamed user uuid zip".split()
)
# Words that make an id of a thing, and alone may count or measure something.
_LABELS = frozenset("code label no nr".split())  # noqa: SIM905
_IDS = frozenset("id ids uid uuid".split())  # noqa: SIM905
_PARTS = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")


class Ids(Enum):
    """What whole numbers in the first column are."""

    NAMES = "names"
    PROBABLY_NAMES = "probably names"
    PROBABLY_DATA = "probably data"
    DATA = "data"

    @property
    def are_names(self) -> bool:
        """Whether they are taken for names."""
        return self in (Ids.NAMES, Ids.PROBABLY_NAMES)


def judge_ids(header: str, numbers: FloatArray, others: Callable[[], FloatArray]) -> Ids:
    """
    Judge a first column.

    Parameters
    ----------
    header : str
        What stands above it.
    numbers : ndarray of shape (n,)
        Whole numbers that all differ.
    others : callable
        Gives the other columns, of shape (n, p), with NaN for whatever is no number; called only where they matter.
    """
    if _speaks_of_ids(header):
        return Ids.NAMES
    if len(numbers) < _FEWEST_ROWS or numbers.min() < 0:
        return Ids.DATA
    beside = others()
    if beside.shape[1] < _FEWEST_COLUMNS:
        return Ids.DATA
    if numbers[0] in (0, 1) and np.all(np.diff(numbers) == 1):
        return Ids.PROBABLY_NAMES
    rises = _rises(numbers)
    is_far = bool(numbers.min() > _FAR * np.max(np.abs(beside), initial=0.0, where=~np.isnan(beside)))
    if rises and is_far:
        return Ids.PROBABLY_NAMES
    if is_far or (rises and not any(map(_rises, beside.T))):
        return Ids.PROBABLY_DATA
    return Ids.DATA


def warn_of_guess(ids: Ids, header: str, path: Path) -> None:
    """Tell the user what was taken for what, where it could have been otherwise."""
    if ids is Ids.PROBABLY_NAMES:
        message = (
            f"{path}: the first column, {header!r}, is taken for row names, since its whole numbers count the rows, or "
            "rise from row to row far above those beside them. Pass row_names=False if they are data, row_names=True "
            "if they are names."
        )
    elif ids is Ids.PROBABLY_DATA:
        message = (
            f"{path}: the first column, {header!r}, is taken for data, although its whole numbers all differ, and rise "
            "from row to row or lie far above those beside them, as ids do. Pass row_names=True if they are names, "
            "row_names=False if they are data."
        )
    else:
        return
    warnings.warn(message, UserWarning, stacklevel=4)


def _speaks_of_ids(header: str) -> bool:
    words = [word.lower() for word in _PARTS.findall(header)]
    if not words or (any(map(str.isdigit, header)) and words != ["unnamed"]):  # item1 has item2 beside it
        return False
    known = all(word in _THINGS | _LABELS for word in words) and not _LABELS.issuperset(words)
    return known or words[-1] in _IDS or (len(words) == 1 and words[0].removesuffix("id") in _THINGS)


def _rises(column: Array) -> bool:
    known = column[~np.isnan(column)]
    return len(known) > 1 and bool(np.all(np.diff(known) > 0))

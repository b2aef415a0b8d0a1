"""In which order the names of a long table stand, whose lines may come in any."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np

from lgmd._typing import IntArray
from lgmd.tables._cells import NUMBER, is_whole

__all__ = ["natural_order"]

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2}([T ][0-9].*)?)?")
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# Of 10.0.0.12 no part is a number behind a prefix.
_NUMBERED = re.compile(rf"(.+?)(?<![0-9])(?<![0-9]\.){_DECIMAL.pattern}", re.DOTALL)


def natural_order(names: Sequence[str]) -> IntArray | None:
    """
    Positions of the names in their natural order, or None where they have none.

    Numbers stand by value, ISO dates and timestamps by time, and names that end in numbers behind one common prefix by
    these numbers. Names of equal rank stay as they are.
    """
    for keys_of in (_values, _moments, _numbers_behind_prefix):
        try:
            keys = keys_of(names)
            if keys is not None:
                return np.array(sorted(range(len(names)), key=keys.__getitem__), dtype=np.int64)
        except (ValueError, TypeError, ArithmeticError):  # no such day; a mix of times with and without zone
            continue
    return None


def _values(names: Sequence[str]) -> list[Any] | None:
    if not all(map(NUMBER.fullmatch, names)):
        return None
    return list(map(int if all(map(is_whole, names)) else Decimal, names))


def _moments(names: Sequence[str]) -> list[Any] | None:
    if not all(map(_MOMENT.fullmatch, names)):
        return None
    days = (f"{name}-01" if len(name) == len("2018-01") else name for name in names)
    return list(zip(map(datetime.fromisoformat, days), names, strict=True))  # which cuts nanoseconds off


def _numbers_behind_prefix(names: Sequence[str]) -> list[Any] | None:
    first = _NUMBERED.fullmatch(names[0]) if len(names) else None
    if first is None or not all(name.startswith(first[1]) for name in names):
        return None
    numbers = [name[len(first[1]) :] for name in names]
    return list(map(Decimal, numbers)) if all(map(_DECIMAL.fullmatch, numbers)) else None

"""One cell of text: a number, a gap, or something else, and then what it looks like."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

__all__ = ["DECIMAL_COMMA", "MISSING", "NUMBER", "BadCellError", "Cells", "is_whole"]

# A cell with nothing but white space is a gap too.
MISSING = frozenset(
    "NA N/A n/a na NaN nan NAN Nan -nan NULL null Null None none <NA> #N/A #NA - ? --".split()  # noqa: SIM905
) | {""}

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:([,.'\u2019 \u00a0\u202f])[0-9]{3})(?:\1[0-9]{3})*(?:[.,][0-9]+)?")
_DATE = re.compile(
    r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}(?:[ T].*)?|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}|[0-9]{1,2}:[0-9]{2}.*"
)
_COMPLEX = re.compile(r"\(?[+-]?[0-9.]+(?:e[+-]?[0-9]+)?(?:[+-][0-9.]+(?:e[+-]?[0-9]+)?)?[ij]\)?", re.IGNORECASE)


class BadCellError(Exception):
    """A cell that is no number; the message says what it is, and what to do."""


class Cells:
    """
    Reads cells.

    Parameters
    ----------
    missing : iterable of str
        Markers of gaps besides :data:`MISSING`.
    delimiter : str or None
        What separates cells; it tells decimal commas from thousands separators.
    """

    def __init__(self, missing: Iterable[str] = (), delimiter: str | None = None) -> None:
        self.missing = MISSING | frozenset(missing)
        self.delimiter = delimiter

    def is_missing(self, text: str) -> bool:
        """Whether the cell marks a gap."""
        return text in self.missing or text.strip() in self.missing

    def is_number(self, text: str) -> bool:
        """Whether the cell is a number; infinity counts as one that was meant so."""
        text = text.strip()
        return NUMBER.fullmatch(text) is not None or _INFINITE.fullmatch(text) is not None

    def is_text(self, text: str) -> bool:
        """Whether it is neither."""
        return not self.is_missing(text) and not self.is_number(text)

    def number(self, text: str) -> float:
        """
        Nearest double, NaN for a gap.

        Raises
        ------
        BadCellError
            If the cell is neither, or no double is that large.
        """
        if self.is_missing(text):
            return math.nan
        text = text.strip()
        if NUMBER.fullmatch(text) is None:
            raise BadCellError(self.explain(text))
        value = float(text)
        if math.isinf(value):
            raise BadCellError(
                f"is {shorten(text)}, beyond the range of double precision (about 1.8e308). Rescale the numbers, or "
                "leave the cell empty."
            )
        if len(text) > 15 and is_whole(text) and int(value) != int(text):
            raise BadCellError(
                f"is {shorten(text)}, an integer with more digits than double precision holds. If the column holds "
                "identifiers, make it the first one and pass row_names=True, or drop it."
            )
        return value

    def explain(self, text: str) -> str:
        """What a cell that is no number looks like, and what to do."""
        shown = shorten(text)
        if _INFINITE.fullmatch(text):
            return f"is {shown}. Every number must be finite: replace it, or leave the cell empty if it is a gap."
        if text.lower() in ("true", "false"):
            return f"is {shown}. Tables hold numbers: write true and false as 1 and 0, or drop the column."
        if _DATE.fullmatch(text):
            return (
                f"is {shown}, a date or time. Dates can be names of rows or columns, but not values: make the column "
                "the first one and pass row_names=True, or drop it."
            )
        if _COMPLEX.fullmatch(text):
            return f"is {shown}, a complex number. Write the real and the imaginary part as tables of their own."
        thousands = _THOUSANDS.fullmatch(text)
        decimal = DECIMAL_COMMA.fullmatch(text)
        if decimal and not (thousands and self.delimiter == ","):
            return (
                f"is {shown}: a number with a decimal comma. Write decimal points, for example by saving the table "
                "again with English number format."
            )
        if thousands:
            return f"is {shown}: a number with thousands separators. Write the digits without them."
        return (
            f"is {shown}, which is not a number. Correct it or leave it empty; if it marks a gap, name it with "
            "missing=."
        )


def is_whole(text: str) -> bool:
    """Whether the text is digits alone, with or without a sign."""
    return _WHOLE.fullmatch(text.strip()) is not None


def shorten(text: str, length: int = 40) -> str:
    """The text in quotes, cut where it is long."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")

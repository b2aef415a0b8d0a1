"""Comma-separated files as columns of text, so that a wrong value can be named with its line."""

from __future__ import annotations

import csv
import io
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray, IntArray
from lgmd.datasets.readers._files import malformed
from lgmd.datasets.readers._stations import Station
from lgmd.exceptions import InvalidDataError

__all__ = ["TextTable", "read_table"]

_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")

# NOAA writes -999, -999.0 or -999.9 metres where a height is unknown; no land is as low.
_UNKNOWN_HEIGHT = -999.0


@dataclass(frozen=True, eq=False)
class TextTable:
    """Columns of text by name, and the line of the file that each row comes from; blank lines are left out."""

    path: Path
    columns: dict[str, Array]
    lines: IntArray

    def require(self, names: Sequence[str], kind: str) -> None:
        """Raise unless the columns are there."""
        for name in names:
            if name not in self.columns:
                raise malformed(self.path, 1, f"there is no column {name}", f"{kind} has {', '.join(names)}")

    def numbers(self, name: str) -> FloatArray:
        """Return the numbers of a column, none of them infinite; an empty field is NaN."""
        texts = self.columns[name]
        numbers = np.array([_parse(text) for text in texts], dtype=np.float64)
        for row in np.flatnonzero(np.isinf(numbers)):
            raise malformed(self.path, self.lines[row], f"{name} is {texts[row]!r}", "a number was expected")
        return numbers

    def days(self, name: str) -> IntArray:
        """Return days since 1970-01-01 of dates written 2018-01-31 or 20180131."""
        matches = [_DATE.fullmatch(text) for text in self.columns[name]]
        days = np.empty(len(matches), dtype=np.int64)
        for row, match in enumerate(matches):
            try:
                days[row] = np.datetime64("-".join(match.groups() if match else ("no date",)), "D").astype(np.int64)
            except ValueError:
                text = self.columns[name][row]
                raise malformed(
                    self.path, self.lines[row], f"{name} is {text!r}", "a date such as 2018-01-31 was expected"
                ) from None
        return days

    def station(self, row: int) -> Station:
        """Return name and place of the station of a row, as NOAA's tables give them."""
        name = str(self.columns["NAME"][row]).strip() if "NAME" in self.columns else ""
        state = re.search(r", ([A-Z]{2}) US$", name)
        latitude, longitude, height = (self._number(axis, row) for axis in ("LATITUDE", "LONGITUDE", "ELEVATION"))
        height = math.nan if height <= _UNKNOWN_HEIGHT else height
        return Station(name, state[1] if state else "", latitude, longitude, height)

    def _number(self, name: str, row: int) -> float:
        """Return one number of a column; NaN where there is no such column."""
        if name not in self.columns:
            return math.nan
        return float(TextTable(self.path, {name: self.columns[name][[row]]}, self.lines[[row]]).numbers(name)[0])


def read_table(content: bytes, path: Path, names: list[str] | None = None) -> TextTable:
    """
    Table of a comma-separated file; without `names` the first line names the columns.

    Raises
    ------
    InvalidDataError
        If it is empty, a line has too few fields or too many, or the text is not UTF-8.
    """
    import pandas as pd

    header: Any = {"header": 0} if names is None else {"header": None, "names": names}
    options: Any = {"dtype": str, "na_filter": False, "skip_blank_lines": False, "index_col": False, **header}
    try:
        # The parser fills short lines up, and cuts the first if it is longer than the names.
        _check_widths(content.decode("utf-8-sig"), path, names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.ParserWarning)  # about empty fields beyond the names
            frame = pd.read_csv(io.BytesIO(content), **options)
    except InvalidDataError:
        raise
    except (ValueError, csv.Error) as error:  # the parser's own error among them
        raise InvalidDataError(f"{path} is no comma-separated table ({str(error).strip()}).") from error
    texts = frame.to_numpy(dtype=object, na_value="")
    filled = np.flatnonzero((texts != "").any(axis=1))
    columns = {str(name): texts[filled, position] for position, name in enumerate(frame.columns)}
    return TextTable(path, columns, filled + (2 if names is None else 1))


def _parse(text: str) -> float:
    """Return a number, NaN for an empty field, and infinity for what is neither."""
    try:
        return float(text) if text.strip() else math.nan
    except ValueError:
        return math.inf


def _check_widths(text: str, path: Path, names: list[str] | None) -> None:
    """Raise for the first line that has not as many fields as there are names, but for blank ones."""
    lines = csv.reader(io.StringIO(text, newline=""))
    width = len(next(lines, []) if names is None else names)
    for fields in lines:
        if any(fields) and (len(fields) < width or any(fields[width:])):
            raise malformed(path, lines.line_num, f"there are {len(fields)} fields", f"{width} were expected")

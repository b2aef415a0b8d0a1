"""Lines of a ``.dly`` file of GHCN-daily: a station, month and element each, in fixed columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lgmd._typing import Array
from lgmd.datasets.readers._files import malformed
from lgmd.datasets.readers._stations import Series

__all__ = ["parse_fixed"]

_MISSING = -9999

# Columns 1-11 station, 12-15 year, 16-17 month, 18-21 element, then 31 times a value of 5 and three flags of 1.
_HEAD, _CELL, _LENGTH = 21, 8, 21 + 31 * 8


def parse_fixed(content: bytes, path: Path, quantities: tuple[str, ...]) -> list[Series]:
    """
    Series of some elements, values in tenths of a degree, without those that failed a quality check.

    Raises
    ------
    InvalidDataError
        If a line has another length, or something else where a number should be.
    """
    numbers, lines, stations = _split(content, path, quantities)
    # A station without the elements asked for still is a row of the table.
    series = [Series(station, quantities[0], np.empty(0, dtype=np.int64), np.empty(0)) for station in stations]
    if not lines:
        return series
    characters = np.frombuffer(b"".join(lines), dtype=np.uint8).reshape(-1, _LENGTH)
    cells = characters[:, _HEAD:].reshape(-1, 31, _CELL)
    values = _integers(cells[:, :, :5], numbers, path, "a value")
    years = _integers(characters[:, 11:15], numbers, path, "the year")
    months = _integers(characters[:, 15:17], numbers, path, "the month")
    for row in np.flatnonzero((months < 1) | (months > 12)):
        raise malformed(path, numbers[row], f"the month is {months[row]}", "1 to 12 was expected")
    begins = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    first_days = begins.astype("datetime64[D]").astype(np.int64)
    lengths = (begins + 1).astype("datetime64[D]").astype(np.int64) - first_days
    exists = np.arange(31) < lengths[:, np.newaxis]
    for row in np.flatnonzero(((values != _MISSING) & ~exists).any(axis=1)):
        found = f"{begins[row]} has a value after its last day, the {lengths[row]}th"
        raise malformed(path, numbers[row], found, f"{_MISSING} was expected there")
    days = first_days[:, np.newaxis] + np.arange(31)
    passed = cells[:, :, 6] == ord(" ")
    good = exists & passed & (values != _MISSING)
    for line, its_days, its_values, is_good in zip(lines, days, values.astype(np.float64), good, strict=True):
        series.append(Series(_station(line), line[17:21].decode(), its_days[is_good], its_values[is_good]))
    return series


def _split(content: bytes, path: Path, quantities: tuple[str, ...]) -> tuple[list[int], list[bytes], list[str]]:
    """Return numbers and text of the lines with an element asked for, and all stations in their order."""
    wanted = {quantity.encode() for quantity in quantities}
    numbers, lines = [], []
    stations: dict[str, None] = {}
    for number, line in enumerate(content.split(b"\n"), start=1):
        line = line.rstrip(b"\r")
        if not line.strip():
            continue
        # The last three characters are flags, which an editor may have stripped where they are blank.
        if not _LENGTH - 3 <= len(line) <= _LENGTH:
            raise malformed(path, number, f"there are {len(line)} characters", f"a GHCN-daily line has {_LENGTH}")
        stations[_station(line)] = None
        if line[17:21] in wanted:
            numbers.append(number)
            lines.append(line.ljust(_LENGTH))
    return numbers, lines, list(stations)


def _station(line: bytes) -> str:
    return line[:11].decode("ascii", "replace")


def _integers(characters: Array, numbers: list[int], path: Path, what: str) -> Array:
    """Join the last axis, single characters, to integers."""
    words = np.ascontiguousarray(characters).view(f"S{characters.shape[-1]}")[..., 0]
    try:
        return words.astype(np.int64)
    except ValueError:
        for number, row in zip(numbers, words.reshape(len(numbers), -1), strict=True):
            for word in row:
                if not word.strip().lstrip(b"-").isdigit():
                    text = word.decode("ascii", "replace")
                    raise malformed(path, number, f"{what} is {text!r}", "an integer was expected") from None
        raise

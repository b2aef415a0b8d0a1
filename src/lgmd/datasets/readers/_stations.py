"""From series of single stations to one table of stations x days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.datasets.containers import TemperatureData
from lgmd.exceptions import InvalidDataError, InvalidParameterError

__all__ = ["NOWHERE", "Series", "Station", "tabulate"]


@dataclass(frozen=True)
class Station:
    """Name and place of a station, as far as known."""

    name: str = ""
    state: str = ""
    latitude: float = float("nan")
    longitude: float = float("nan")
    altitude: float = float("nan")


NOWHERE = Station()


@dataclass(frozen=True, eq=False)
class Series:
    """Values of one quantity at one station; days count from 1970-01-01, and days without a value are left out."""

    station_id: str
    quantity: str
    days: IntArray
    values: FloatArray


def tabulate(
    series: Sequence[Series], stations: dict[str, Station], quantities: tuple[str, ...], start: Any, end: Any
) -> TemperatureData:
    """
    Table of the mean of `quantities`, stations in the order in which they come.

    A day on which a station lacks one of the quantities is NaN. Without `start` and `end` the table goes from the first
    day with a value to the last.

    Raises
    ------
    InvalidParameterError
        If `start` or `end` is no date, or they are in the wrong order.
    InvalidDataError
        If there is no value in that time, or two different ones for the same day.
    """
    if not series:
        raise InvalidDataError("The files have names of columns, but no line of a station. Are they cut off?")
    used = [each for each in series if each.quantity in quantities and len(each.days)]
    wanted = " and ".join(quantities)
    first, last = _period(used, wanted, start, end)
    rows = {station_id: row for row, station_id in enumerate(dict.fromkeys(each.station_id for each in series))}
    mean = np.zeros((len(rows), last - first + 1))
    for quantity in quantities:
        mean += _fill(rows, [each for each in used if each.quantity == quantity], first, last)
    mean /= len(quantities)
    if np.isnan(mean).all():
        raise InvalidDataError(f"No station has {wanted} between {_date(first)} and {_date(last)}.")
    places = [stations.get(station_id, NOWHERE) for station_id in rows]
    return TemperatureData(
        values=mean,
        station_ids=np.array(list(rows)),
        names=np.array([place.name for place in places]),
        states=np.array([place.state for place in places]),
        latitude=np.array([place.latitude for place in places]),
        longitude=np.array([place.longitude for place in places]),
        altitude=np.array([place.altitude for place in places]),
        dates=np.arange(first, last + 1).astype("datetime64[D]"),
    )


def _period(series: Sequence[Series], wanted: str, start: Any, end: Any) -> tuple[int, int]:
    """First and last day of the table; what was not said is taken from the values."""
    first, last = _as_day(start, "start"), _as_day(end, "end")
    if first is not None and last is not None:
        if first > last:
            raise InvalidParameterError(f"start, {_date(first)}, is after end, {_date(last)}.")
        return first, last
    if not series:
        raise InvalidDataError(f"The files have no value of {wanted}. Ask for another element.")
    earliest, latest = min(int(each.days.min()) for each in series), max(int(each.days.max()) for each in series)
    if first is not None and first > latest:
        raise InvalidDataError(f"The last value of {wanted} is of {_date(latest)}, before start, {_date(first)}.")
    if last is not None and last < earliest:
        raise InvalidDataError(f"The first value of {wanted} is of {_date(earliest)}, after end, {_date(last)}.")
    return earliest if first is None else first, latest if last is None else last


def _fill(rows: dict[str, int], series: Sequence[Series], first: int, last: int) -> FloatArray:
    table = np.full((len(rows), last - first + 1), np.nan)
    for each in series:
        inside = (each.days >= first) & (each.days <= last)
        columns, values, row = each.days[inside] - first, each.values[inside], table[rows[each.station_id]]
        before = row[columns]
        row[columns] = values
        differs = (row[columns] != values) | ((before != values) & ~np.isnan(before))
        if differs.any():
            day = _date(first + int(columns[differs][0]))
            raise InvalidDataError(
                f"Station {each.station_id} has two different values of {each.quantity} on {day}. "
                "Pass each file once, and one source at a time."
            )
    return table


def _as_day(date: Any, name: str) -> int | None:
    if date is None:
        return None
    try:
        return int(np.datetime64(date, "D").astype(np.int64))
    except (TypeError, ValueError):
        raise InvalidParameterError(f'{name} must be a date such as "2018-01-31", but is {date!r}.') from None


def _date(day: int) -> str:
    return str(np.datetime64(day, "D"))

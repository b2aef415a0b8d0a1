"""GHCN-daily, NOAA's record of the world's weather stations, in the three forms in which it is published."""

from __future__ import annotations

import codecs
import math
from pathlib import Path
from typing import Any

import numpy as np

from lgmd._typing import FloatArray
from lgmd._validation import check_choice
from lgmd.datasets.containers import TemperatureData
from lgmd.datasets.readers._columns import TextTable, read_table
from lgmd.datasets.readers._files import PathLike, Paths, find_files, malformed, read_bytes
from lgmd.datasets.readers._ghcn_fixed import parse_fixed
from lgmd.datasets.readers._stations import Series, Station, tabulate
from lgmd.exceptions import InvalidDataError

__all__ = ["read_ghcn_daily"]

_QUANTITIES = {"TAVG": ("TAVG",), "TMAX": ("TMAX",), "TMIN": ("TMIN",), "mean": ("TMAX", "TMIN")}
_MISSING = -9999
_BY_STATION = ["ID", "DATE", "ELEMENT", "DATA_VALUE", "M_FLAG", "Q_FLAG", "S_FLAG", "OBS_TIME"]


def read_ghcn_daily(
    paths: Paths,
    element: str = "mean",
    start: Any = None,
    end: Any = None,
    *,
    unit: str = "F",
    stations: PathLike | None = None,
) -> TemperatureData:
    """
    Daily temperatures from station files of GHCN-daily.

    The files come in three forms, told apart by their content and compressed or not: ``USW00013874.dly`` with
    fixed columns; the comma-separated form by station, one element and day a line; and the comma-separated form for
    access, one day a line, with the station's name and place. Values that failed a quality check of the source are
    left out. An order from Climate Data Online looks like the last, but its unit is that of the order: it is read where
    its values have decimals, which are degrees Celsius, and refused where they are whole.

    Parameters
    ----------
    paths : path or sequence of paths
        Station files, or folders: then all files in them that end in .dly, .csv, .dly.gz or .csv.gz.
    element : {"mean", "TAVG", "TMAX", "TMIN"}, default="mean"
        "mean" is the middle between maximum and minimum, on days that have both; "TAVG" is the source's own average,
        which many stations lack.
    start, end : date, optional
        First and last day of the table, such as "2018-01-01". Default: the first and last day with a value.
    unit : {"F", "C"}, default="F"
        Degrees Fahrenheit or Celsius, of the table. The files have tenths of a degree Celsius.
    stations : path, optional
        The file ``ghcnd-stations.txt``, which has the names and places of all stations.

    Returns
    -------
    TemperatureData
        A row a station, in the order of the files, and a column a day; NaN where there is no value.

    Raises
    ------
    MissingDataError
        If a file is not there.
    InvalidDataError
        If a file is truncated or of another kind, with the line; if its unit cannot be known; if two values of a day
        differ; if there is none.
    """
    quantities = _QUANTITIES[check_choice(element, "element", tuple(_QUANTITIES))]
    unit = check_choice(unit, "unit", ("F", "C"))
    places = {} if stations is None else _read_stations(Path(stations))
    series: list[Series] = []
    for path in find_files(paths, ("*.dly", "*.csv", "*.dly.gz", "*.csv.gz")):
        content = read_bytes(path).removeprefix(codecs.BOM_UTF8)
        if not content.strip():
            raise InvalidDataError(f"{path} is empty.")
        first_line = content.split(b"\n", 1)[0].replace(b'"', b"")
        if first_line.startswith(b"STATION,"):
            found, described = _parse_access(content, path, quantities)
            places = described | places
        elif b"," in first_line:
            found = _parse_by_station(content, path, quantities)
        else:
            found = parse_fixed(content, path, quantities)
        series += found
    table = tabulate(series, places, quantities, start, end)
    table.values[:] /= 10
    if unit == "F":
        table.values[:] = table.values * 1.8 + 32
    return table


def _parse_by_station(content: bytes, path: Path, quantities: tuple[str, ...]) -> list[Series]:
    """Lines ``station,YYYYMMDD,element,value,flags``, with names in the first line or without."""
    has_header = content.startswith((b"ID,", b'"ID"'))
    table = read_table(content, path, None if has_header else _BY_STATION)
    table.require(_BY_STATION[:7], "a GHCN-daily file by station")
    ids, elements, flags = (table.columns[name] for name in ("ID", "ELEMENT", "Q_FLAG"))
    days, values = table.days("DATE"), table.numbers("DATA_VALUE")
    for row in np.flatnonzero(np.isnan(values)):
        raise malformed(path, table.lines[row], "DATA_VALUE is empty", "a number was expected")
    _refuse_fractions(table, "DATA_VALUE", np.where(np.isin(elements, quantities), values, 0.0))
    good = (flags == "") & (values != _MISSING)
    series = []
    for station in dict.fromkeys(ids):
        for quantity in quantities:
            rows = np.flatnonzero((ids == station) & (elements == quantity) & good)
            series.append(Series(station, quantity, days[rows], values[rows]))
    return series


def _parse_access(content: bytes, path: Path, quantities: tuple[str, ...]) -> tuple[list[Series], dict[str, Station]]:
    """Lines of a day each, a column an element, with a column of flags beside it."""
    table = read_table(content, path)
    table.require(["STATION", "DATE"], "a GHCN-daily file for access")
    ids, days = table.columns["STATION"], table.days("DATE")
    nothing = np.full(len(ids), "", dtype=object)
    series, places = [], {}
    for station in dict.fromkeys(ids):
        places[station] = table.station(int(np.flatnonzero(ids == station)[0]))
        series.append(Series(station, quantities[0], np.empty(0, dtype=np.int64), np.empty(0)))
    for quantity, values in _tenths(table, [each for each in quantities if each in table.columns]).items():
        # Measurement, quality and source flag, between commas.
        flags = table.columns.get(f"{quantity}_ATTRIBUTES", nothing)
        failed = np.array([flag.count(",") > 0 and flag.split(",")[1].strip() != "" for flag in flags], dtype=bool)
        good = ~failed & ~np.isnan(values) & (values != _MISSING)
        for station in places:
            rows = np.flatnonzero((ids == station) & good)
            series.append(Series(station, quantity, days[rows], values[rows]))
    return series, places


def _tenths(table: TextTable, quantities: list[str]) -> dict[str, FloatArray]:
    """Return the columns of a table for access in tenths of a degree Celsius, as they are but for an order's."""
    values = {quantity: table.numbers(quantity) for quantity in quantities}
    # Nowhere else does the name stand second.
    if list(table.columns)[1] == "NAME":
        return _tenths_of_order(table.path, values)
    for quantity, numbers in values.items():
        _refuse_fractions(table, quantity, numbers)
    return values


def _refuse_fractions(table: TextTable, name: str, numbers: FloatArray) -> None:
    for row in np.flatnonzero(numbers % 1 > 0):
        found = f"{name} is {table.columns[name][row]!r}"
        raise malformed(table.path, table.lines[row], found, "whole tenths of a degree Celsius were expected")


def _tenths_of_order(path: Path, values: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the columns of an order from Climate Data Online, which come in the unit that was ordered."""
    known = [number for numbers in values.values() for number in numbers if number == number and number != _MISSING]
    # Whole degrees Fahrenheit, even those that a program has written as 45.0, have no fraction; of tenths of a degree
    # Celsius nine in ten have one.
    if known and np.mean(np.mod(known, 1) > 0) <= 0.5:
        raise InvalidDataError(
            f"{path} is an order from Climate Data Online, and does not say in which unit: its values are whole, as "
            "degrees Fahrenheit are there, and not tenths of a degree Celsius. Order it in metric units, which have a "
            "decimal, or take the stations' files from the folder global-historical-climatology-network-daily/access "
            "at ncei.noaa.gov/data."
        )
    return {
        quantity: np.where(numbers == _MISSING, np.nan, np.round(10 * numbers, 3))
        for quantity, numbers in values.items()
    }


def _read_stations(path: Path) -> dict[str, Station]:
    """Places from ghcnd-stations.txt: 1-11 station, 13-20 latitude, 22-30 longitude, 32-37 metres, 39-40 state."""
    places = {}
    for number, line in enumerate(read_bytes(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            latitude, longitude, altitude = float(line[12:20]), float(line[21:30]), float(line[31:37])
        except ValueError:
            found = "columns 13 to 37 are no latitude, longitude and elevation"
            raise malformed(path, number, found, "a line of ghcnd-stations.txt was expected") from None
        altitude = math.nan if altitude == -999.9 else altitude
        places[line[:11]] = Station(line[41:71].strip(), line[38:40].strip(), latitude, longitude, altitude)
    return places

"""Global Surface Summary of the Day, NOAA's daily summaries of hourly reports: a file a station and year."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgmd._validation import check_choice
from lgmd.datasets.containers import TemperatureData
from lgmd.datasets.readers._columns import read_table
from lgmd.datasets.readers._files import Paths, find_files, read_bytes
from lgmd.datasets.readers._stations import Series, Station, tabulate

__all__ = ["read_gsod"]

_QUANTITIES = {"TEMP": ("TEMP",), "MAX": ("MAX",), "MIN": ("MIN",), "mean": ("MAX", "MIN")}
_MISSING = 9999.9


def read_gsod(
    paths: Paths, element: str = "TEMP", start: Any = None, end: Any = None, *, unit: str = "F"
) -> TemperatureData:
    """
    Daily temperatures from files of the Global Surface Summary of the Day.

    Parameters
    ----------
    paths : path or sequence of paths
        Files such as ``2018/72315003812.csv``, or folders: then all files in them that end in .csv or .csv.gz. Files
        of the same station are put together.
    element : {"TEMP", "MAX", "MIN", "mean"}, default="TEMP"
        "TEMP" is the mean of the hourly reports, "mean" the middle between maximum and minimum.
    start, end : date, optional
        First and last day of the table, such as "2018-01-01". Default: the first and last day with a value.
    unit : {"F", "C"}, default="F"
        Degrees Fahrenheit, as in the files, or Celsius.

    Returns
    -------
    TemperatureData
        A row a station, in the order of the files, and a column a day; NaN where there is no value.

    Raises
    ------
    MissingDataError
        If a file is not there.
    InvalidDataError
        If a file is truncated or of another kind, with the line; if two values of a day differ; if there is none.
    """
    quantities = _QUANTITIES[check_choice(element, "element", tuple(_QUANTITIES))]
    unit = check_choice(unit, "unit", ("F", "C"))
    series: list[Series] = []
    stations: dict[str, Station] = {}
    needed = ("STATION", "DATE", "LATITUDE", "LONGITUDE", "ELEVATION", "NAME", *quantities)
    for path in find_files(paths, ("*.csv", "*.csv.gz")):
        text = read_table(read_bytes(path), path)
        text.require(needed, "a file of the Global Surface Summary of the Day")
        ids, days = text.columns["STATION"], text.days("DATE")
        for station in dict.fromkeys(ids):
            stations[station] = text.station(int(np.flatnonzero(ids == station)[0]))
        for quantity in quantities:
            values = text.numbers(quantity)
            good = ~np.isnan(values) & (values != _MISSING)
            for station in dict.fromkeys(ids):
                rows = np.flatnonzero((ids == station) & good)
                series.append(Series(station, quantity, days[rows], values[rows]))
    table = tabulate(series, stations, quantities, start, end)
    if unit == "C":
        table.values[:] = (table.values - 32) / 1.8
    return table

"""Temperatures of US stations from the data folder; ``readers`` has the stations' own files."""

from __future__ import annotations

import os

import numpy as np

from lgmd._validation import check_choice
from lgmd.datasets._folder import DataSource, read_arrays
from lgmd.datasets.containers import StationExtremes, TemperatureData

__all__ = ["load_station_extremes", "load_temperature"]

_READ_INSTEAD = (
    "Or download station files from NOAA's National Centers for Environmental Information (GHCN-daily, or Global "
    "Surface Summary of the Day) and read them with lgmd.datasets.read_ghcn_daily or lgmd.datasets.read_gsod."
)

_MEANS = DataSource(
    file="temperature/us_daily_mean_2017_2021.npz",
    what="The temperature table (daily means of 185 US stations, 2017 to 2021)",
    origin="NOAA and the WMO, through the data of the R package priceT (GPL-3 or later)",
    instead=_READ_INSTEAD,
    arrays={
        "temp_f": "stations days",
        "date": "days",
        "station_id": "stations",
        "name": "stations",
        "state": "stations",
        "lat": "stations",
        "lon": "stations",
        "alt_m": "stations",
        "clean": "stations",
        "idx150": "chosen",
        "window_2018_2019": "window",
    },
)

_EXTREMES = DataSource(
    file="temperature/us_stations_2018_2019.npz",
    what="The table of station extremes (daily maxima and minima of 3,162 US stations, 2018 and 2019)",
    origin="the climate pages of the US National Weather Service (public domain)",
    instead=_READ_INSTEAD,
    arrays={
        "tmax_f": "stations days",
        "tmin_f": "stations days",
        "date": "days",
        "name": "stations",
        "state": "stations",
        "office": "stations",
        "complete": "stations",
    },
)

_NO_REPORT = -999


def load_temperature(cut: str = "paper", *, folder: str | os.PathLike[str] | None = None) -> TemperatureData:
    """
    Daily mean temperatures of US stations with coordinates; nothing is missing.

    Parameters
    ----------
    cut : {"paper", "clean", "all"}, default="paper"
        "paper" has 150 stations and the 669 days from 2018-01-01 to 2019-10-31: the size, period and kind of the
        paper's table, though not its station list, which was not published. "clean" has the 170 stations without
        known faults and all 1,825 days (29 February 2020 is absent from the source). "all" has 185 stations, 15 of
        which carry wrong values or a wrong place.
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    TemperatureData
        In degrees Fahrenheit. Coordinates are good to about half a degree.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    cut = check_choice(cut, "cut", ("paper", "clean", "all"))
    arrays = read_arrays(_MEANS, folder)
    rows = np.arange(len(arrays["name"]))
    days = np.arange(len(arrays["date"]))
    if cut == "paper":
        rows, days = arrays["idx150"], arrays["window_2018_2019"]
    elif cut == "clean":
        rows = np.flatnonzero(arrays["clean"])
    return TemperatureData(
        values=arrays["temp_f"][np.ix_(rows, days)].astype(np.float64),
        station_ids=arrays["station_id"][rows],
        names=arrays["name"][rows],
        states=arrays["state"][rows],
        latitude=arrays["lat"][rows].astype(np.float64),
        longitude=arrays["lon"][rows].astype(np.float64),
        altitude=arrays["alt_m"][rows].astype(np.float64),
        dates=arrays["date"][days].astype("datetime64[D]"),
    )


def load_station_extremes(*, folder: str | os.PathLike[str] | None = None) -> StationExtremes:
    """
    Daily maxima and minima of 3,162 US stations over 669 days, with real gaps (1.4 % of the entries).

    Parameters
    ----------
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    StationExtremes
        Whole degrees Fahrenheit. Many stations are read in the morning, so that their maximum belongs to the day
        before: neighbours can be a day out of step.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    arrays = read_arrays(_EXTREMES, folder)
    maximum, minimum = (
        np.where(arrays[name] == _NO_REPORT, np.nan, arrays[name].astype(np.float64)) for name in ("tmax_f", "tmin_f")
    )
    return StationExtremes(
        maximum=maximum,
        minimum=minimum,
        names=arrays["name"],
        states=arrays["state"],
        offices=arrays["office"],
        dates=arrays["date"].astype("datetime64[D]"),
        complete=arrays["complete"].astype(bool),
    )

"""The structure figure of the temperature table: a year as a heat map, and stations on a map with learned edges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, IntArray
from lgmd.datasets import TemperatureData
from lgmd.estimators.factorization import Factorization
from lgmd.experiments.base import Row, Section
from lgmd.experiments.figures import new_figure, save_figure

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["edge_rows", "great_circle", "section"]

_EARTH_KM = 6371.0

# A day on which cold air covered the middle of the country and nothing else.
_DAY = np.datetime64("2019-01-30")


def edge_rows(model: Factorization) -> list[Row]:
    """The edges over rows, each once; positive weights join rows that move together."""
    edges = scipy.sparse.triu(model.sample_graph_, k=1).tocoo()
    return [
        {"method": "LGMD", "first": first, "second": second, "weight": -value}
        for first, second, value in zip(*edges.coords, edges.data, strict=True)
    ]


def great_circle(data: TemperatureData, first: IntArray, second: IntArray) -> FloatArray:
    """Kilometres between pairs of stations."""
    latitude, longitude = np.radians(data.latitude), np.radians(data.longitude)
    half_latitude = (latitude[first] - latitude[second]) / 2
    half_longitude = (longitude[first] - longitude[second]) / 2
    parallel = np.cos(latitude[first]) * np.cos(latitude[second])
    chord = np.sin(half_latitude) ** 2 + parallel * np.sin(half_longitude) ** 2
    kilometres: FloatArray = 2 * _EARTH_KM * np.arcsin(np.sqrt(chord))
    return kilometres


def section(data: TemperatureData, edges: pd.DataFrame, folder: Path) -> Section:
    """The picture, and what the lengths of the edges say."""
    first, second = (
        edges[name].to_numpy(dtype=int) if len(edges) else np.zeros(0, int) for name in ("first", "second")
    )
    day = int(np.flatnonzero(data.dates == _DAY)[0]) if _DAY in data.dates else len(data.dates) // 2
    figure, panels = new_figure(2, width=6.2, height=4.2)
    _draw_year(panels[0], data)
    _draw_map(panels[1], data, first, second, day)
    everyone = great_circle(data, *np.triu_indices(len(data.latitude), 1))
    text = (
        "(a) Stations from south to north against the days of 2018; seasons and fronts are common to many. "
        f"(b) The stations where they stand, coloured by their temperature on {data.dates[day]}. Lines are the edges "
        "over stations that LGMD learned with its defaults from a table with half of its entries hidden; it was not "
        "told where the stations are. "
    )
    if len(first):
        lengths = great_circle(data, first, second)
        positive = 100 * float((edges["weight"] > 0).mean())
        text += (
            f"There are {len(first):,} edges, {positive:.0f} % of them between stations that move together. The median "
            f"edge is {np.median(lengths):,.0f} km long; the median pair of stations is {np.median(everyone):,.0f} km "
            "apart."
        )
    else:
        text += "It found no edge."
    return Section("Structure", text, figures=(save_figure(figure, folder, "temperature_structure"),))


def _draw_year(panel: Any, data: TemperatureData) -> None:
    days = data.dates.astype("datetime64[Y]") == np.datetime64("2018")
    dates = data.dates[days]
    image = panel.imshow(
        data.values[np.argsort(data.latitude, kind="stable")][:, days],
        aspect="auto",
        origin="lower",
        cmap="RdYlBu_r",
        interpolation="nearest",
        rasterized=True,
    )
    is_first = dates.astype("datetime64[M]").astype(dates.dtype) == dates
    starts = np.flatnonzero(is_first)
    panel.set_xticks(starts, [date.astype(object).strftime("%b") for date in dates[starts]], ha="left", fontsize=8)
    latitudes = np.sort(data.latitude)
    ticks = np.linspace(0, len(latitudes) - 1, 6).astype(int)
    panel.set_yticks(ticks, [f"{latitudes[tick]:.0f}° N" for tick in ticks], fontsize=8)
    panel.set_title("(a) 2018, stations by latitude", fontsize=10)
    panel.figure.colorbar(image, ax=panel, label="°F", fraction=0.05, pad=0.02)


def _draw_map(panel: Any, data: TemperatureData, first: IntArray, second: IntArray, day: int) -> None:
    from matplotlib.collections import LineCollection

    places = np.column_stack([data.longitude, data.latitude])
    lines = np.stack([places[first], places[second]], axis=1)
    panel.add_collection(LineCollection(list(lines), colors="#555555", linewidths=0.7, alpha=0.6, zorder=1))
    points = panel.scatter(
        *places.T, c=data.values[:, day], cmap="RdYlBu_r", s=22, edgecolors="black", linewidths=0.4, zorder=2
    )
    # A degree of longitude is shorter than one of latitude by the cosine.
    panel.set_aspect(1 / np.cos(np.radians(float(data.latitude.mean()))))
    panel.set_xlabel("longitude, degrees")
    panel.set_ylabel("latitude, degrees")
    panel.set_title(f"(b) {data.dates[day]}, edges learned by LGMD", fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)
    panel.figure.colorbar(points, ax=panel, label="°F", shrink=0.8, pad=0.02)

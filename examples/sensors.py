"""Stations with gaps: fill them in, with error bars, and draw which stations the table joins.

Run: python examples/sensors.py [picture.png]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lgmd import LGMD, metrics, plot
from lgmd.graphs import PriorGraph, candidates

PICTURE = Path(__file__).parent / "pictures" / "sensors.png"
STATIONS, DAYS = 40, 120


def make_stations(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Places, and a table of temperatures that are alike where places and days are near each other."""
    names = [f"ST{number:02d}" for number in range(STATIONS)]
    corner = [[36, -100], [46, -84]]
    places = pd.DataFrame(rng.uniform(*corner, (STATIONS, 2)), names, ["latitude", "longitude"])
    apart = np.hypot(*(places.to_numpy()[:, None] - places.to_numpy()).T)
    weather = np.linalg.cholesky(np.exp(-apart / 6) + 1e-9 * np.eye(STATIONS)) @ rng.standard_normal((STATIONS, DAYS))
    for day in range(1, DAYS):
        weather[:, day] = 0.7 * weather[:, day - 1] + 0.7 * weather[:, day]
    climate = 8 - 0.6 * (places[["latitude"]].to_numpy() - 41)
    noise = 0.5 * rng.standard_normal(weather.shape)
    days = pd.date_range("2024-01-01", periods=DAYS)
    return places, pd.DataFrame(climate + 4 * weather + noise, names, days)


def main(picture: Path) -> None:
    rng = np.random.default_rng(0)
    places, complete = make_stations(rng)
    hidden = rng.random(complete.shape) < 0.5
    table = complete.mask(hidden)
    truth = complete.to_numpy()

    learned = LGMD(n_components=12, random_state=0).fit(table)
    near, in_order = candidates.nearest(places, 4, geographic=True), candidates.chain(DAYS)
    guided = LGMD(12, sample_graph=PriorGraph(near), feature_graph=PriorGraph(in_order), random_state=0).fit(table)
    for name, model in (("graphs learned", learned), ("map and calendar given", guided)):
        print(f"{name}: error {metrics.rmse(truth[hidden], model.reconstruct()[hidden]):.2f} degrees")

    figure = Figure(figsize=(9.5, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.graph(learned, ax=left, positions=places[["longitude", "latitude"]], labels=False)
    left.set(xlabel="longitude", ylabel="latitude")
    left.set_title(f"stations that the table joins\n{left.get_title()}", fontsize="medium")
    draw_station(right, table, complete, guided, station=3)
    figure.savefig(picture, dpi=80)
    print(f"Picture: {picture}")


def draw_station(ax, table: pd.DataFrame, complete: pd.DataFrame, model: LGMD, station: int) -> None:
    """One station through the days: what was measured, what was hidden, what the model says."""
    values, bars = (part[station] for part in model.reconstruct(return_std=True))
    days = np.arange(values.size)
    gaps = table.iloc[station].isna().to_numpy()
    ax.fill_between(days, values - 1.645 * bars, values + 1.645 * bars, color="#1f5a99", alpha=0.2, linewidth=0)
    ax.plot(days, values, color="#1f5a99", label="model, with 90 % interval")
    measured = complete.iloc[station].to_numpy()
    ax.plot(days[~gaps], measured[~gaps], ".", color="black", markersize=4, label="measured")
    ax.plot(days[gaps], measured[gaps], "o", color="#c0392b", markersize=4, fillstyle="none", label="hidden")
    ax.set(
        xlabel="day", ylabel="degrees", xlim=(0, 60), title=f"station {table.index[station]}, map and calendar given"
    )
    ax.title.set_fontsize("medium")
    ax.legend(fontsize="small", frameon=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)

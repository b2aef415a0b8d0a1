"""One example of each function of ``lgmd.plot``.

``python docs/pictures/plots.py`` writes ``docs/images/plot_*.png``. The table is drawn at random: stations on a map
that are alike where they are near each other, with daily values and gaps. No data folder is needed; it takes seconds.
"""

from __future__ import annotations

import argparse
import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.spatial
from matplotlib.figure import Figure
from PIL import Image

from lgmd import LGMD, plot
from lgmd.exceptions import ConvergenceWarning

IMAGES = Path(__file__).parent.parent / "images"
LARGEST = 100_000


def stations(n: int = 60, days: int = 120, seed: int = 4) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A table of stations x days, where the stations lie, and which of three regions each belongs to."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [3.2, 0.6], [1.2, 2.9]])
    region = np.arange(n) % 3
    places = centres[region] + 0.6 * rng.standard_normal((n, 2))
    distances = scipy.spatial.distance_matrix(places, places)
    smooth = np.linalg.cholesky(np.exp(-((distances / 1.7) ** 2)) + 1e-6 * np.eye(n))
    factors = smooth @ rng.standard_normal((n, 20))
    loadings = np.cumsum(rng.standard_normal((days, 20)), axis=0)
    loadings -= loadings.mean(axis=0)
    loadings /= loadings.std(axis=0)
    season = 6 * np.sin(np.linspace(0, np.pi, days))
    values = 10 + season + factors @ loadings.T + 0.7 * rng.standard_normal((n, days))
    names = [f"station {i}" for i in range(n)]
    columns = [str(day.date()) for day in pd.date_range("2024-03-01", periods=days)]
    return pd.DataFrame(values, index=names, columns=columns), places, region


def draw(folder: Path) -> None:
    """Fit once and draw five pictures."""
    table, places, region = stations()
    aside = np.random.default_rng(1).random(table.shape) < 0.35
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LGMD(n_components=20, max_iter=60, random_state=0).fit(table.mask(aside))

    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    axes = figure.subplots(1, 2)
    plot.graph(model, ax=axes[0])
    plot.graph(model, ax=axes[1], positions=places, labels=False)
    axes[1].set(xlabel="east", ylabel="north")
    save(figure, folder / "plot_graph.png")

    save(plot.reconstruction(model, table.mask(aside))[0].figure, folder / "plot_reconstruction.png")
    save(plot.convergence(model).figure, folder / "plot_convergence.png")
    regions = np.array(["west", "east", "north"])[region]
    save(plot.embedding(model, labels=regions).figure, folder / "plot_embedding.png")
    save(plot.calibration(table.where(aside), model=model).figure, folder / "plot_calibration.png")


def save(figure: Figure, path: Path) -> None:
    """Write a picture of few colours that is small enough to be kept with the sources."""
    file = io.BytesIO()
    figure.savefig(file, dpi=100, facecolor="white")
    Image.open(file).convert("RGB").quantize(128).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"{path} has {size:,} bytes, but {LARGEST:,} are the most. Draw it smaller.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=IMAGES, help="folder for the pictures")
    draw(parser.parse_args().output)

"""Hidden entries of the temperature table: nothing tuned, against PMF by MAP with rank and penalty tuned.

MAP holds out a tenth of the observed entries, tries every rank with every penalty, and is fitted again to all of them
with the best: with the intercepts of the library, and as the paper has it, without, on a table whose means were removed
first. myfm's Gibbs sampler has the same kind of model and the exact posterior. The given graphs are
``Laplacian + 0.1 I`` of consecutive days and of the five nearest stations.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import laplacian
from sklearn.neighbors import kneighbors_graph

from held_out import Verdict, average, data_file, fit_seconds, fresh, judge, percent, say
from lgmd import LGMD, PMF
from lgmd.metrics import rmse
from power_law import Ratings
from ratings import myfm_version, time_myfm

SHARES = (0.8, 0.5, 0.2, 0.1)
RANKS = (5, 10, 20, 40)
PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
GIBBS_ITERATIONS = 400
N_NEIGHBOURS = 5
RIDGE = 0.1
N_SWEEPS = 20


def load(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The table, 150 x 669, with latitude and longitude of its rows."""
    with np.load(path) as data:
        rows = data["idx150"]
        return data["temp_f"][rows][:, data["window_2018_2019"]].astype(float), data["lat"][rows], data["lon"][rows]


def precision(adjacency: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(laplacian(adjacency) + RIDGE * scipy.sparse.eye_array(adjacency.shape[0]))


def station_graph(latitude: np.ndarray, longitude: np.ndarray) -> scipy.sparse.csr_array:
    """Stations joined to their nearest on the globe, if either is among the nearest of the other."""
    north, east = np.radians(latitude), np.radians(longitude)
    points = np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1)
    nearest = scipy.sparse.csr_array(kneighbors_graph(points, N_NEIGHBOURS))
    return precision(nearest.maximum(nearest.T))


def day_graph(n_days: int) -> scipy.sparse.csr_array:
    next_day = scipy.sparse.eye_array(n_days, k=1)
    return precision(scipy.sparse.csr_array(next_day + next_day.T))


def two_way_means(table: np.ndarray) -> np.ndarray:
    """Means of rows and columns over what is observed, one array as large as the table."""
    means = np.full(table.shape, np.nanmean(table))
    for _ in range(N_SWEEPS):
        for axis in (0, 1):
            means += np.nanmean(table - means, axis=axis, keepdims=True)
    return means


def map_estimate(table: np.ndarray, rank: int, penalty: float, means_first: bool) -> tuple[np.ndarray, float]:
    """All entries by PMF, with the library's intercepts or on a table whose means were removed, and the seconds."""
    means = two_way_means(table) if means_first else np.zeros(table.shape)
    model = PMF(
        rank,
        inference="map",
        sample_penalty=penalty,
        feature_penalty=penalty,
        intercept="none" if means_first else "both",
        allow_empty=True,
    )
    seconds = fit_seconds(model, table - means)
    return model.reconstruct() + means, seconds


def tuned_map(
    table: np.ndarray, rng: np.random.Generator, means_first: bool = False
) -> tuple[np.ndarray, np.ndarray, float]:
    """Estimates by PMF with the rank up to 20 and up to 40, and the penalty, that are best on held-out entries.

    Also the seconds of all fits.
    """
    held = np.isfinite(table) & (rng.random(table.shape) < 0.1)
    rest = np.where(held, np.nan, table)
    errors, total = {}, 0.0
    for setting in product(RANKS, PENALTIES):
        estimate, seconds = map_estimate(rest, *setting, means_first)
        errors[setting] = rmse(table[held], estimate[held])
        total += seconds
    best = min(errors, key=errors.get)
    smaller = min((setting for setting in errors if setting[0] <= 20), key=errors.get)
    say(f"MAP, means {'removed first' if means_first else 'learned'}: rank and penalty {best}")
    if best[1] in (PENALTIES[0], PENALTIES[-1]):
        say("which lies at the edge of the grid")
    of_smaller = map_estimate(table, *smaller, means_first)[0]
    estimate, seconds = map_estimate(table, *best, means_first)
    return of_smaller, estimate, total + seconds


def gibbs(truth: np.ndarray, observed: np.ndarray) -> float:
    """Error of myfm's Gibbs sampler on the hidden entries."""
    parts = (
        Ratings(*(each.astype(np.int32) for each in np.nonzero(which)), truth[which], truth.shape)
        for which in (observed, ~observed)
    )
    return time_myfm("MyFMRegressor", GIBBS_ITERATIONS, *parts, rank=20)[0]


def main(shares: tuple[float, ...] = SHARES, n_masks: int = 5) -> list[str]:
    """Measure and return the lines of a table."""
    path = data_file("temperature/us_daily_mean_2017_2021.npz")
    if path is None:
        return []
    truth, latitude, longitude = load(path)
    graphs = {"sample_graph": station_graph(latitude, longitude), "feature_graph": day_graph(truth.shape[1])}
    settings = {
        "k = 20": {"n_components": 20, "sample_graph": "none", "feature_graph": "none"},
        "k = 40": {"n_components": 40, "sample_graph": "none", "feature_graph": "none"},
        "graphs": {"n_components": 20, **graphs},
    }
    for setting in settings.values():
        fit_seconds(LGMD(**setting), np.where(np.random.default_rng(0).random(truth.shape) < 0.5, truth, np.nan))
    lines = [
        "| observed | no graphs, k = 20 | no graphs, k = 40 | graphs given and fixed, k = 20 "
        "| MAP, rank up to 20 and penalty tuned | MAP, rank up to 40 | PMF, means removed first, rank up to 20 "
        "| PMF, means removed first, rank up to 40 "
        f"| myfm, Gibbs, rank 20, {GIBBS_ITERATIONS} iterations | inside the 90 % bars | fit | tuning MAP |",
        "|---" * 12 + "|",
    ]
    has_myfm = myfm_version() is not None
    for share in shares:
        ours: dict[str, list[Verdict]] = {name: [] for name in settings}
        tuned: list[tuple[float, ...]] = []
        sampled: list[float] = []
        for seed in fresh(n_masks):
            observed = np.random.default_rng(seed).random(truth.shape) < share
            table = np.where(observed, truth, np.nan)
            rows, columns = np.nonzero(~observed)
            hidden = truth[rows, columns]
            for name, setting in settings.items():
                ours[name].append(judge(LGMD(allow_empty=True, **setting), table, rows, columns, hidden))
            *estimates, seconds = tuned_map(table, np.random.default_rng([seed, 1]))
            estimates += tuned_map(table, np.random.default_rng([seed, 1]), means_first=True)[:2]
            errors = [rmse(hidden, estimate[rows, columns]) for estimate in estimates]
            tuned.append((*errors, seconds))
            if has_myfm:
                sampled.append(gibbs(truth, observed))
            figures = ", ".join(f"{name} {each[-1].rmse:.3f}" for name, each in ours.items())
            say(
                f"{percent(share)}, mask {seed}: {figures}, MAP {', '.join(f'{each:.3f}' for each in errors)}, "
                f"Gibbs {', '.join(f'{each:.3f}' for each in sampled[-1:])}"
            )
        plain, wide, given = (average(verdicts) for verdicts in ours.values())
        *of_map, tuning = np.mean(tuned, axis=0)
        bars, time = percent(plain.coverage, 1), f"{plain.seconds:.2f} s | {tuning:.1f} s"
        lines.append(
            f"| {percent(share)} | {plain.rmse:.3f} | {wide.rmse:.3f} | {given.rmse:.3f} "
            f"| {' | '.join(f'{each:.3f}' for each in of_map)} "
            f"| {np.mean(sampled) if sampled else np.nan:.3f} | {bars} | {time} |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

"""What learned graphs change on tables whose graphs are known: 100 x 100, rank 20, nothing hidden, defaults.

Rows and columns stand in random order: blocks are to be found in the values, not in the order of the table.
Blocks have correlations near 0.7 and noise 0.5; independent rows and columns have noise 1.0. Largest principal angles
need factors of equal rank, so they are taken with ``prior="shared"``, which drops no column. They vary so much between
tables that ten say little: those of blocks are the mean of a hundred. The true graphs, given and fixed, say what any
graph could do. The mean under the exact posterior, with graphs and variances known, has the least squared error that
any method could have; its angles are those of its first singular vectors. Graphs are looked for twice, the second time
in factors that they have shaped; what the first look alone finds is shown beside it. MAP has its penalty chosen on a
tenth of the entries, with and without graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from exact_posterior import posterior_mean
from held_out import fit_seconds, fresh, percent, say
from lgmd import LGMD, datasets
from lgmd.metrics import edge_recovery, rmse, subspace_angle

PENALTIES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
NONE = {"sample_graph": "none", "feature_graph": "none"}
CASES = (("blocks", 0.5), ("none", 1.0))
SECONDS = "seconds of a fit, median"


def error(model: LGMD, data: datasets.MatrixNormalData) -> tuple[float, float]:
    seconds = fit_seconds(model, data.noisy)
    return rmse(data.truth, model.reconstruct()) / data.truth.std(), seconds


def angles(data: datasets.MatrixNormalData, settings: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    models = [LGMD(20, prior="shared", **setting) for setting in settings]
    for model in models:
        fit_seconds(model, data.noisy)
    return {
        "angle of X, equal rank": [subspace_angle(data.sample_factors, model.sample_factors_) for model in models],
        "angle of W, equal rank": [subspace_angle(data.feature_factors, model.feature_factors_) for model in models],
    }


def of_exact_posterior(data: datasets.MatrixNormalData, seed: int) -> dict[str, float]:
    mean = posterior_mean(data, seed)
    left, _, right = np.linalg.svd(mean)
    return {
        "RMSE / sd": rmse(data.truth, mean) / data.truth.std(),
        "angle of X, equal rank": subspace_angle(data.sample_factors, left[:, :20]),
        "angle of W, equal rank": subspace_angle(data.feature_factors, right[:20].T),
    }


def add(row: dict[str, list[float]], more: dict[str, float]) -> None:
    """A column to the rows that are there."""
    for name in row.keys() & more.keys():
        row[name].append(more[name])


def table(family: str, noise: float, seed: int) -> tuple[datasets.MatrixNormalData, list[dict[str, Any]]]:
    """A table, and what is to be fitted to it: no graphs, the defaults, and the true graphs if there are any."""
    data = datasets.make_matrix_normal(
        100, 100, 20, sample_graph=family, feature_graph=family, noise=noise, shuffle=True, random_state=seed
    )
    true = {"sample_graph": data.sample_precision, "feature_graph": data.feature_precision}
    return data, [NONE, {}, *([true] if family != "none" else [])]


def edges_found(true: scipy.sparse.csr_array, found: scipy.sparse.csr_array) -> tuple[float, float]:
    """How many of the strongest 30 % of the true edges are found, and how many of the found edges are true."""
    upper = scipy.sparse.triu(found, k=1)
    are_true = np.asarray(true[upper.nonzero()]).ravel() != 0
    return edge_recovery(true, found, (0.3,))[0], float(are_true.mean())


def tuned_map(data: datasets.MatrixNormalData, setting: dict[str, str], seed: int) -> float:
    held = np.random.default_rng([seed, 2]).random(data.noisy.shape) < 0.1

    def model(penalty: float) -> LGMD:
        return LGMD(20, inference="map", sample_penalty=penalty, feature_penalty=penalty, **setting)

    def loss(penalty: float) -> float:
        trial = model(penalty)
        fit_seconds(trial, np.where(held, np.nan, data.noisy))
        return rmse(data.noisy[held], trial.reconstruct()[held])

    return error(model(min(PENALTIES, key=loss)), data)[0]


def change(before: np.ndarray, after: np.ndarray) -> str:
    """What a mean over tables changes by, with the standard error of the paired differences."""
    shift = 100 * (after - before) / before.mean()
    return f"{shift.mean():+.1f} ± {shift.std(ddof=1) / np.sqrt(len(shift)):.1f} %"


def main(n_seeds: int = 10, n_more_angles: int = 90) -> list[str]:
    """Measure and return the lines of a table."""
    lines = [
        "| table | | no graphs | evidence graphs | change | true graphs | change | exact posterior | change |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for family, noise in CASES:
        figures: dict[str, list[list[float]]] = {}
        recovered: dict[str, list[tuple[float, float]]] = {}
        has_graph = family != "none"
        for seed in fresh(n_seeds):
            data, settings = table(family, noise, seed)
            models = [LGMD(20, **setting) for setting in settings]
            errors, times = zip(*(error(model, data) for model in models), strict=True)
            row = {"RMSE / sd": [*errors], SECONDS: [*times], **angles(data, settings)}
            row["RMSE / sd, MAP tuned"] = [tuned_map(data, setting, seed) for setting in (NONE, {})]
            if has_graph:
                add(row, of_exact_posterior(data, seed))
                once = LGMD(20, graph_updates=1)
                fit_seconds(once, data.noisy)
                for looks, model in (("", models[1]), (", one look", once)):
                    found = edges_found(data.sample_precision, model.sample_graph_)
                    recovered.setdefault(looks, []).append(found)
            for name, values in row.items():
                figures.setdefault(name, []).append(values)
            say(f"{family}, seed {seed}: {row}")
        for seed in fresh(n_more_angles + n_seeds)[n_seeds:] if has_graph else ():
            data, settings = table(family, noise, seed)
            row = angles(data, settings)
            add(row, of_exact_posterior(data, seed))
            for name, values in row.items():
                figures[name].append(values)
            say(f"{family}, seed {seed}: {row}")
        for name, values in figures.items():
            before, *after = np.asarray(values).T
            if name == SECONDS:  # the first fits compile, and other processes come and go
                usual = np.median(before)
                cells = [f"{np.median(each):.2f} | {np.median(each) / usual:.1f} times" for each in after]
                first = f"{usual:.2f}"
            else:
                cells = [f"{each.mean():.4f} | {change(before, each)}" for each in after]
                first = f"{before.mean():.4f}"
            cells += ["| "] * (3 - len(cells))
            lines.append(f"| {family}, noise {noise} | {name} | {first} | {' | '.join(cells)} |")
        for looks, shares in recovered.items():
            for name, share in zip(
                ("strongest 30 % of the edges found", "found edges that are true"), np.mean(shares, axis=0), strict=True
            ):
                lines.append(f"| {family}, noise {noise} | {name}{looks} | - | {percent(share)} | | | | | |")
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

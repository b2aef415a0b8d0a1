"""Do the 90 % error bars hold 90 % of what was hidden? Netflix, synthetic families, thin and narrow tables, defaults.

A bar is for a new observation, noise and all, so the synthetic tables are judged by their noisy values.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from held_out import BAR, Verdict, average, data_file, fit_seconds, fresh, judge, percent, say
from lgmd import LGMD, datasets
from lgmd.metrics import rmse

FAMILIES = ("chain", "blocks", "geometric")
THIN = (0.5, 0.6, 0.7, 0.8)

# Shapes of tables whose columns differ in noise, from the first to the second standard deviation.
UNEQUAL = ((60, 40), (300, 100))
QUIETEST, LOUDEST = 0.05, 2.0

# Complete tables with few rows or columns: shape, rank and standard deviation of the noise.
NARROW = ((10, 1000, 2, 2.0), (300, 6, 1, 0.5), (5000, 6, 1, 0.5), (20_000, 8, 3, 0.5), (5, 20_000, 2, 0.3))


def judge_netflix(ratings: np.ndarray, seed: int) -> Verdict:
    """A fifth of the ratings is hidden."""
    rows, columns = np.nonzero(ratings)
    values = ratings[rows, columns].astype(float)
    hidden = np.random.default_rng(seed).random(values.size) < 0.2
    table = scipy.sparse.coo_array((values[~hidden], (rows[~hidden], columns[~hidden])), shape=ratings.shape)
    return judge(LGMD(allow_empty=True), table, rows[hidden], columns[hidden], values[hidden])


def judge_family(family: str, seed: int) -> Verdict:
    data = datasets.make_matrix_normal(
        200, 150, 8, sample_graph=family, feature_graph=family, noise=0.5, missing=0.5, random_state=seed
    )
    rows, columns = np.nonzero(~data.mask)
    return judge(LGMD(), data.observed, rows, columns, data.noisy[rows, columns])


def judge_thin(missing: float, seed: int) -> Verdict:
    data = datasets.make_matrix_normal(100, 100, 20, noise=0.3, missing=missing, random_state=seed)
    rows, columns = np.nonzero(~data.mask)
    return judge(LGMD(), data.observed, rows, columns, data.noisy[rows, columns])


def unequal_coverage(shape: tuple[int, int], noise: str, seed: int) -> list[float]:
    """Shares inside the 90 % bars: of all hidden entries, and of those in the quietest and the loudest third."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1]))
    spread = rng.permutation(np.geomspace(QUIETEST, LOUDEST, shape[1]))
    values = truth + spread * rng.standard_normal(shape)
    hidden = rng.random(shape) < 0.4
    model = LGMD(8, noise=noise, sample_graph="none", feature_graph="none").fit(np.where(hidden, np.nan, values))
    mean, std = model.reconstruct(return_std=True)
    inside = np.abs(values - mean) < 1.645 * std
    low, high = np.quantile(spread, [1 / 3, 2 / 3])
    parts = (hidden, hidden & (spread <= low), hidden & (spread >= high))
    return [float(inside[part].mean()) for part in parts]


def unequal_lines(n_repeats: int) -> list[str]:
    lines = ["", "| table | noise | all | quietest third | loudest third |", "|---|---|---|---|---|"]
    for shape in UNEQUAL:
        for noise in ("homoscedastic", "features"):
            found = np.mean([unequal_coverage(shape, noise, seed) for seed in fresh(n_repeats)], axis=0)
            shares = " | ".join(percent(share, 1) for share in found)
            say(f"{shape}, {noise}: {shares}")
            lines.append(f"| {shape[0]} x {shape[1]}, rank 3 | `{noise}` | {shares} |")
    return lines


def narrow_figures(n: int, p: int, rank: int, noise: float, seed: int) -> list[float]:
    """Noise that was found, and errors, as shares of the noise; what bars hold of another table of the same truth."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    noisy, replicate = (truth + noise * rng.standard_normal(truth.shape) for _ in range(2))
    model = LGMD().fit(noisy)
    mean, std = model.reconstruct(return_std=True)
    inside = float(np.mean(np.abs(replicate - mean) < BAR * std))
    return [model.noise_std_ / noise, rmse(truth, mean) / noise, inside, model.rank_]


def narrow_lines(n_repeats: int) -> list[str]:
    lines = [
        "",
        "| table | noise found / true | RMSE / noise | inside the 90 % bars | columns |",
        "|---|---|---|---|---|",
    ]
    for n, p, rank, noise in NARROW:
        found = np.array([narrow_figures(n, p, rank, noise, seed) for seed in fresh(n_repeats)])
        level, error, inside, columns = found.mean(axis=0)
        say(f"{n} x {p}: {found.round(3).tolist()}")
        figures = f"{level:.2f} | {error:.3f} | {percent(inside, 1)} | {columns:.1f}"
        lines.append(f"| {n:,} x {p:,}, rank {rank}, noise {noise} | {figures} |")
    return lines


def main(n_repeats: int = 5) -> list[str]:
    """Measure and return the lines of three tables."""
    lines = ["| table | hidden | RMSE | inside the 90 % bars | fit |", "|---|---|---|---|---|"]

    def add(name: str, hidden: str, verdicts: list[Verdict]) -> None:
        mean = average(verdicts)
        say(f"{name}: {', '.join(f'{verdict.rmse:.4f} {percent(verdict.coverage, 1)}' for verdict in verdicts)}")
        lines.append(f"| {name} | {hidden} | {mean.rmse:.4f} | {percent(mean.coverage, 1)} | {mean.seconds:.2f} s |")

    fit_seconds(LGMD(max_iter=2), datasets.make_matrix_normal(missing=0.5, random_state=0).observed)  # compiles
    path = data_file("netflix/netflix_1000.npz")
    if path is not None:
        with np.load(path) as data:
            ratings = data["ratings"]
        add("Netflix, 1000 x 1000", "20 % of the ratings", [judge_netflix(ratings, seed) for seed in fresh(n_repeats)])
    for family in FAMILIES:
        add(f"{family}, 200 x 150, rank 8", "50 %", [judge_family(family, seed) for seed in fresh(n_repeats)])
    for missing in THIN:
        verdicts = [judge_thin(missing, seed) for seed in fresh(n_repeats)]
        add("independent, 100 x 100, rank 20", percent(missing), verdicts)
    return lines + unequal_lines(n_repeats) + narrow_lines(n_repeats)


if __name__ == "__main__":
    print("\n".join(main()))

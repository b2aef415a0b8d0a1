"""What error bars cost: one iteration of variational inference beside one of MAP, in the same process by turns.

The table is that of :mod:`als_iteration` with as many true components as columns, so that none dies on the way
and every iteration has the whole k. Start-up is left out of both figures.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse

from als_iteration import as_table
from held_out import say
from lgmd import PMF
from lgmd.exceptions import ConvergenceWarning
from power_law import make_ratings

COMPONENTS = (10, 20, 40)
INFERENCES = ("map", "variational")


def fit(table: np.ndarray | scipy.sparse.coo_array, k: int, inference: str, n_iterations: int) -> PMF:
    penalties = {"sample_penalty": 5.0, "feature_penalty": 5.0} if inference == "map" else {}
    model = PMF(k, inference=inference, max_iter=n_iterations, tol=0.0, random_state=0, **penalties)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(table)


def complete_table(k: int, n_rows: int = 2000, n_columns: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows, columns = (rng.standard_normal((n, k), dtype=np.float32) for n in (n_rows, n_columns))
    noise = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    return rows @ columns.T / np.float32(np.sqrt(k)) + np.float32(0.5) * noise


def iteration_times(table: np.ndarray | scipy.sparse.coo_array, k: int, n_repeats: int, n_iterations: int) -> dict:
    times = {inference: np.zeros(0) for inference in INFERENCES}
    for _ in range(n_repeats):
        for inference in INFERENCES:
            model = fit(table, k, inference, n_iterations)
            seconds = np.diff(model.history_.seconds)
            times[inference] = np.append(times[inference], seconds)
            say(f"k = {k}, {inference}: {np.round(seconds, 3).tolist()} s, rank {model.rank_}")
    return times


def main(n_entries: int = 10_000_000, n_repeats: int = 3, n_iterations: int = 6) -> list[str]:
    """Measure and return the lines of a table."""
    lines = ["| table | k | MAP, s | variational, s | ratio | ratio of medians |", "|---|---|---|---|---|---|"]
    small = as_table(make_ratings(2_000, 1_000, 50_000, rank=10))
    for inference in INFERENCES:
        fit(small, 10, inference, 2)  # compiles
        fit(complete_table(10, 200, 100), 10, inference, 2)

    def add(name: str, k: int, times: dict) -> None:
        best, typical = ([of(times[inference]) for inference in INFERENCES] for of in (np.min, np.median))
        ratios = " | ".join(f"{variational / by_map:.2f}" for by_map, variational in (best, typical))
        lines.append(f"| {name} | {k} | {best[0]:.4f} | {best[1]:.4f} | {ratios} |")

    for k in COMPONENTS:
        table = as_table(make_ratings(n_entries=n_entries, rank=k))
        add(f"70,000 x 10,000, {n_entries:,} observed", k, iteration_times(table, k, n_repeats, n_iterations))
    for k in COMPONENTS:
        add("2,000 x 1,000, complete", k, iteration_times(complete_table(k), k, n_repeats, 4 * n_iterations))
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

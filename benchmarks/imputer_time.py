"""Seconds of filling the gaps of the temperature table, beside scikit-learn's IterativeImputer.

By turns in one process, on one thread and on all that there are, the best of several; the first mask of each share.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from held_out import FIRST_SEED, data_file, fit_seconds, percent, say
from lgmd import LGMD
from lgmd.linalg.threads import available_threads
from lgmd.metrics import rmse
from temperature import SHARES, load
from temperature_graphs import impute


def fill(table: np.ndarray, n_components: int) -> tuple[np.ndarray, float]:
    model = LGMD(n_components, allow_empty=True)
    seconds = fit_seconds(model, table)
    return model.reconstruct(), seconds


METHODS = {
    "LGMD, k = 20": lambda table: fill(table, 20),
    "LGMD, k = 40": lambda table: fill(table, 40),
    "IterativeImputer(BayesianRidge())": impute,
}


def main(shares: tuple[float, ...] = SHARES, n_repeats: int = 2) -> list[str]:
    """Measure and return the lines of a table."""
    path = data_file("temperature/us_daily_mean_2017_2021.npz")
    if path is None:
        return []
    truth, _, _ = load(path)
    fill(np.where(np.random.default_rng(0).random(truth.shape) < 0.5, truth, np.nan), 20)  # compiles
    lines = [f"| observed | threads | {' | '.join(METHODS)} |", "|---" * (2 + len(METHODS)) + "|"]
    for share in shares:
        observed = np.random.default_rng(FIRST_SEED).random(truth.shape) < share
        table = np.where(observed, truth, np.nan)
        for n_threads in sorted({1, available_threads()}):
            best = dict.fromkeys(METHODS, (np.inf, np.nan))
            with threadpool_limits(n_threads):
                for _ in range(n_repeats):
                    for name, method in METHODS.items():
                        filled, seconds = method(table)
                        best[name] = min(best[name], (seconds, rmse(truth[~observed], filled[~observed])))
                        say(f"{percent(share)}, {n_threads} threads, {name}: {seconds:.1f} s")
            cells = [f"{seconds:.1f} s (error {error:.2f})" for seconds, error in best.values()]
            lines.append(f"| {percent(share)} | {n_threads} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

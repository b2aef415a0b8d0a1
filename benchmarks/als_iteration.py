"""One iteration of both sides on ten million entries, ours beside lenskit's and cmfrec's in the same process.

Ours is an iteration of ``PMF.fit`` by MAP, as the rivals do, and as users run it: exact half-steps with the intercepts
solved jointly, the balancing of the factors, and the objective. Memory is measured in a process of its own: the highest
resident size during ``fit`` less that before the data exists, so the input table is counted too.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import warnings

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from lgmd import PMF
from power_law import Ratings, make_ratings
from rivals import time_rivals


def as_table(ratings: Ratings) -> scipy.sparse.coo_array:
    return scipy.sparse.coo_array((ratings.values, (ratings.rows, ratings.columns)), shape=ratings.shape)


def fit_ours(ratings: Ratings, k: int, n_iterations: int) -> PMF:
    """The warnings that it has not converged are expected: a fixed number of iterations is timed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        penalties = {"sample_penalty": 5.0, "feature_penalty": 5.0}
        model = PMF(k, inference="map", **penalties, max_iter=n_iterations, tol=0.0, random_state=0)
        return model.fit(as_table(ratings))


def seconds_per_iteration(model: PMF) -> float:
    return float(np.diff(model.history_.seconds).min())


def peak_memory(n_entries: int, k: int) -> float:
    """Highest memory of a fit in units of the entries' own size, from a fresh process."""
    command = [sys.executable, __file__, "--memory-only", "--entries", str(n_entries), "--k", str(k)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(n_entries: int, k: int) -> float:
    small = make_ratings(2_000, 1_000, 50_000)
    fit_ours(small, k, 2)  # compiles and imports everything
    with open("/proc/self/statm") as file:
        resident_before = int(file.read().split()[1]) * resource.getpagesize()
    ratings = make_ratings(n_entries=n_entries)
    # Making the data takes memory of its own, which must not hide that of the fit.
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    fit_ours(ratings, k, 3)
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
    return (peak - resident_before) / ratings.nbytes


def main(n_entries: int = 10_000_000, k: int = 20, n_threads: int = 2, n_iterations: int = 6) -> list[str]:
    """Measure and return the lines of a table."""
    ratings = make_ratings(n_entries=n_entries)
    lines = ["| | seconds per iteration | relative to ours | training RMSE |", "|---|---|---|---|"]
    # Ours before and after the rivals, so that a burst of other work on the machine does not decide.
    with threadpool_limits(n_threads):
        fit_ours(make_ratings(2_000, 1_000, 50_000), k, 2)
        first = fit_ours(ratings, k, n_iterations)
    rivals = time_rivals(ratings, k, n_threads, n_iterations)
    with threadpool_limits(n_threads):
        second = fit_ours(ratings, k, n_iterations)
    ours = min(seconds_per_iteration(first), seconds_per_iteration(second))
    lines.append(f"| lgmd, PMF by MAP | {ours:.3f} | 1.00 | {np.sqrt(second.noise_variance_):.4f} |")
    for rival in rivals:
        if rival.seconds is None:
            lines.append(f"| {rival.name} | {rival.note} | | |")
        else:
            lines.append(
                f"| {rival.name}, {rival.note} | {rival.seconds:.3f} | {rival.seconds / ours:.2f} | {rival.rmse:.4f} |"
            )
    memory = peak_memory(n_entries, k)
    lines.append("")
    lines.append(
        f"Peak memory of `fit`, the table itself included: {memory:.2f} times the size of the entries "
        f"({ratings.nbytes / 2**20:.0f} MiB as row, column and value)."
    )
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory-only", action="store_true")
    options = parser.parse_args()
    if options.memory_only:
        print(measure_memory(options.entries, options.k))
    else:
        print("\n".join(main(options.entries, options.k, options.threads)))

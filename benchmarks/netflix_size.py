"""A table as large as that of the Netflix Prize: half a million rows, a hundred million entries, nothing tuned.

Power-law counts of rows and columns and a known truth of rank 8 with noise of 0.5 (:mod:`power_law`), of which one
entry in fifty is hidden. Rows do not depend on each other, and LGMD is left to find that out: every pair of rows is
looked at. lenskit, beside it on the same entries, has no error bars, and its penalty is chosen on entries that are
hidden from one row in ten. Each runs in a process of its own, whose highest resident size during the fit is reported,
the table included; making the table is not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from als_iteration import as_table
from held_out import BAR, percent, say
from lgmd import LGMD
from lgmd.metrics import rmse
from power_law import Ratings, make_ratings, predict
from rivals import start_lenskit_pool

SHAPE, ENTRIES, RANK, NOISE, COMPONENTS = (480_189, 17_770), 100_480_507, 8, 0.5, 20
HIDDEN = 0.02
EPOCHS, PENALTIES = 10, (0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Task:
    """Entries to learn from, and those that judge; no row or column is without known entries."""

    known: Ratings
    hidden: Ratings


def split(ratings: Ratings, seed: int) -> Task:
    is_hidden = np.random.default_rng(seed).random(ratings.values.size) < HIDDEN
    for lines in (ratings.rows, ratings.columns):
        is_hidden[np.unique(lines, return_index=True)[1]] = False
    return Task(part(ratings, ~is_hidden), part(ratings, is_hidden))


def part(ratings: Ratings, chosen: NDArray[np.bool_]) -> Ratings:
    return Ratings(ratings.rows[chosen], ratings.columns[chosen], ratings.values[chosen], ratings.shape)


def of_some_rows(ratings: Ratings) -> Ratings:
    """The entries of one row in ten, numbered anew."""
    some = part(ratings, ratings.rows % 10 == 0)
    (rows, row_numbers), (columns, column_numbers) = (
        np.unique(lines, return_inverse=True) for lines in (some.rows, some.columns)
    )
    numbers = (row_numbers.astype(np.int32), column_numbers.astype(np.int32))
    return Ratings(*numbers, some.values, (len(rows), len(columns)))


def run_lgmd(task: Task) -> dict[str, Any]:
    model, table = LGMD(COMPONENTS, random_state=0), as_table(task.known)
    measured = watched(lambda: model.fit(table))
    mean, std = model.predict(task.hidden.rows, task.hidden.columns, return_std=True)
    steps = np.diff(model.history_.seconds, prepend=0.0)
    return measured | {
        "rmse": rmse(task.hidden.values, mean),
        "inside": float(np.mean(np.abs(task.hidden.values - mean) <= BAR * std)),
        "rank": model.rank_,
        "edges": int(sum((graph.nnz - graph.shape[0]) // 2 for graph in (model.sample_graph_, model.feature_graph_))),
        "search": float(steps[model.history_.graph_steps].sum()),
    }


def run_lenskit(task: Task, n_threads: int) -> dict[str, Any]:
    start_lenskit_pool(n_threads)
    inner = split(of_some_rows(task.known), 1)
    penalty = min(PENALTIES, key=lambda each: of_lenskit(inner, each)["rmse"])
    return of_lenskit(task, penalty) | {"penalty": penalty}


def of_lenskit(task: Task, penalty: float) -> dict[str, Any]:
    from lenskit.als import BiasedMFScorer
    from lenskit.data import from_interactions_df
    from lenskit.training import TrainingOptions
    from pandas import DataFrame

    known, hidden = task.known, task.hidden
    scorer = BiasedMFScorer(embedding_size=COMPONENTS, epochs=EPOCHS, regularization=penalty)
    data = from_interactions_df(DataFrame({"user_id": known.rows, "item_id": known.columns, "rating": known.values}))
    measured = watched(lambda: scorer.train(data, TrainingOptions(rng=0)))
    # No row or column is empty and both are numbered from 0, so LensKit's numbering is ours.
    factors = (np.asarray(scorer.user_embeddings), np.asarray(scorer.item_embeddings))
    biases = (np.asarray(scorer.bias.user_biases), np.asarray(scorer.bias.item_biases))
    foreseen = predict(hidden.rows, hidden.columns, *factors, scorer.bias.global_bias, *biases)
    return measured | {"rmse": rmse(hidden.values, foreseen)}


def watched(call: Callable[[], object]) -> dict[str, float]:
    """Seconds of a call, and the highest resident size during it in GB."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
    return {"seconds": seconds, "memory": peak / 1e9}


def in_its_own_process(name: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", name]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    say(f"{name}: {found}")
    return found


def main() -> list[str]:
    """Measure and return the lines of a table."""
    ours, theirs = in_its_own_process("lgmd"), in_its_own_process("lenskit")
    return [
        f"| | lgmd, defaults | lenskit {version('lenskit')}, {EPOCHS} epochs, penalty {theirs['penalty']} |",
        "|---|---|---|",
        f"| seconds | {ours['seconds']:.0f} | {theirs['seconds']:.0f} |",
        f"| of it the search for graphs | {ours['search']:.0f} | - |",
        f"| peak memory | {ours['memory']:.1f} GB | {theirs['memory']:.1f} GB |",
        f"| RMSE of hidden entries | {ours['rmse']:.4f} | {theirs['rmse']:.4f} |",
        f"| inside the 90 % bars | {percent(ours['inside'], 1)} | - |",
        f"| columns | {ours['rank']} of {COMPONENTS} | {COMPONENTS} |",
        f"| edges found | {ours['edges']} | - |",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("lgmd", "lenskit"))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.only is None:
        print("\n".join(main()))
    else:
        task = split(make_ratings(*SHAPE, ENTRIES, RANK, NOISE), 0)
        print(json.dumps(run_lgmd(task) if options.only == "lgmd" else run_lenskit(task, options.threads)))

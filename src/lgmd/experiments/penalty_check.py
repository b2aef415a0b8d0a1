"""What the error of denoising rewards where a table is its own truth.

Noise is added to a table and a tenth of its entries is hidden. The error on the entries that were seen counts what the
table itself has of noise as truth, so that a penalty that is too small makes it smaller while little noise is added.
The error on the hidden ones says whether the estimate is any better for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lgmd._typing import Array, FloatArray
from lgmd.experiments.base import Row, Section
from lgmd.experiments.methods import DEFAULTS, default_method, fit, penalties, tuned_method
from lgmd.experiments.real_tables import TASKS, damaged
from lgmd.experiments.summaries import mean_table, pairs_table
from lgmd.metrics import rmse

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METHODS", "TASK", "measure", "sections"]

TASK = "penalty"

# PMF with its penalty as tuned and times these, and what it is compared with.
_FACTORS = {"PMF, penalty / 16": 1 / 16, "PMF, penalty / 4": 1 / 4, "PMF": 1.0, "PMF, penalty x 4": 4.0}
_RIVALS = ("PMF", "dGRMD")
METHODS = (*_FACTORS, "dGRMD", *DEFAULTS)
_HIDDEN = 0.1


def measure(values: FloatArray, noise: float, n_components: int, n_trials: int, seeds: Sequence[int]) -> list[Row]:
    """Both errors of every method, for each seed of a repetition; penalties are tuned on the first one's table."""
    tables = [_table(values, noise, seed) for seed in seeds]
    tuned = {name: penalties(tuned_method(name, n_components), tables[0][0], n_trials, seeds[0]) for name in _RIVALS}
    for name, factor in _FACTORS.items():
        tuned[name] = {side: factor * penalty for side, penalty in tuned["PMF"].items()}
    rows: list[Row] = []
    for repetition, (table, seen, hidden) in enumerate(tables):
        for name in METHODS:
            if name in DEFAULTS:
                model = default_method(name, n_components)
            else:
                model = tuned_method(name.split(",")[0], n_components, **tuned[name])
            estimate = fit(model, table).reconstruct()
            errors = {"seen": rmse(values, estimate, where=seen), "hidden": rmse(values, estimate, where=hidden)}
            rows.append({"method": name, "repetition": repetition} | errors)
    return rows


def _table(values: FloatArray, noise: float, seed: int) -> tuple[FloatArray, Array, Array]:
    """A table with noise and hidden entries, and which entries are seen and hidden."""
    noisy, known = damaged(values, "denoising", noise, seed)
    hidden = known & (np.random.default_rng([seed, len(TASKS)]).random(values.shape) < _HIDDEN)
    return np.where(hidden, np.nan, noisy), known & ~hidden, hidden


def sections(rows: pd.DataFrame, unit: str) -> list[Section]:
    """A table for each of the errors, and the pairs of methods on hidden entries."""
    return [
        Section(
            "What denoising measures here",
            "Tables with noise as above, of which a tenth of the entries is hidden. PMF and dGRMD have their penalty "
            "tuned on held-out entries of the rest of the first repetition's table, and PMF is also run with smaller "
            "and larger ones. RMSE on the entries that were seen, against the table as it was before noise was added, "
            f"in {unit}: E2, but for the hidden entries. Where the noise that was added is small beside that of the "
            "table itself, which counts as truth, it pays to follow both too closely.",
            mean_table(rows, "seen", "level", METHODS),
        ),
        Section(
            "What denoising measures here: hidden entries",
            "RMSE of the same fits on the entries that were hidden, where following noise is of no use.",
            mean_table(rows, "hidden", "level", METHODS),
        ),
        Section(
            "What denoising measures here: hidden entries of the same tables",
            "Change of the RMSE on hidden entries to LGMD and to LGMD+ with their defaults.",
            pairs_table(
                rows, "hidden", "level", [(method, rival) for method in DEFAULTS for rival in _RIVALS], ["repetition"]
            ),
        ),
    ]

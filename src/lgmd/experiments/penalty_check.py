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
from lgmd.experiments.methods import default_method, fit, penalties, tuned_method
from lgmd.experiments.real_tables import damaged
from lgmd.experiments.summaries import mean_table
from lgmd.metrics import rmse

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TASK", "measure", "sections"]

TASK = "penalty"

# The default method, and PMF with its penalty as tuned and times these.
_DEFAULT = "LGMD"
_FACTORS = {"PMF, penalty / 16": 1 / 16, "PMF, penalty / 4": 1 / 4, "PMF": 1.0, "PMF, penalty x 4": 4.0}
_HIDDEN = 0.1


def measure(values: FloatArray, noise: float, n_components: int, n_trials: int, seeds: Sequence[int]) -> list[Row]:
    """Both errors of every method, for each seed of a repetition; the penalty is tuned on the first one's table."""
    tables = [_table(values, noise, seed) for seed in seeds]
    tuned = penalties(tuned_method("PMF", n_components), tables[0][0], n_trials, seeds[0])
    rows: list[Row] = []
    for repetition, (table, seen, hidden) in enumerate(tables):
        models = {_DEFAULT: default_method(_DEFAULT, n_components)}
        for name, factor in _FACTORS.items():
            scaled = {side: factor * penalty for side, penalty in tuned.items()}
            models[name] = tuned_method("PMF", n_components, **scaled)
        for name, model in models.items():
            estimate = fit(model, table).reconstruct()
            errors = {"seen": rmse(values, estimate, where=seen), "hidden": rmse(values, estimate, where=hidden)}
            rows.append({"method": name, "repetition": repetition} | errors)
    return rows


def _table(values: FloatArray, noise: float, seed: int) -> tuple[FloatArray, Array, Array]:
    """A table with noise and hidden entries, and which entries are seen and hidden."""
    noisy, known = damaged(values, "denoising", noise, seed)
    hidden = known & (np.random.default_rng([seed, 2]).random(values.shape) < _HIDDEN)
    return np.where(hidden, np.nan, noisy), known & ~hidden, hidden


def sections(rows: pd.DataFrame, unit: str) -> list[Section]:
    """A table for each of the errors."""
    methods = (*_FACTORS, _DEFAULT)
    return [
        Section(
            "What denoising measures here",
            "Tables with noise as above, of which a tenth of the entries is hidden. PMF has its penalty tuned on "
            "held-out entries of the rest, and then smaller and larger ones. RMSE on the entries that were seen, "
            f"against the table as it was before noise was added, which is E2, in {unit}. Where that noise is "
            "small beside that of the table itself, which counts as truth, following it too closely pays.",
            mean_table(rows, "seen", "level", methods),
        ),
        Section(
            "What denoising measures here: hidden entries",
            "RMSE of the same fits on the entries that were hidden, where following noise is of no use.",
            mean_table(rows, "hidden", "level", methods),
        ),
    ]

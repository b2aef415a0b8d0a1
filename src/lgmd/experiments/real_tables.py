"""Denoising and completion of a real table: what the temperature and the Netflix experiment share.

The truth is the table itself. To denoise, noise is added to its entries and the estimate is compared with the entries
as they were; to complete, entries are hidden and the estimate is compared with them.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lgmd._typing import Array, FloatArray
from lgmd.estimators.factorization import Factorization
from lgmd.experiments.base import Cell, Experiment, Row, Section
from lgmd.experiments.methods import DEFAULTS, TUNED, UNORDERED, default_method, fit, penalties, tuned_method
from lgmd.metrics import rmse

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METHODS", "TASKS", "RealTable", "cut", "damaged"]

METHODS = (*TUNED, *DEFAULTS, *UNORDERED)
TASKS = ("denoising", "completion")


def damaged(values: FloatArray, task: str, level: float, seed: int) -> tuple[FloatArray, Array]:
    """A table to work on, and which entries the estimate is judged on.

    The same seed draws the same noise and hides entries in the same order at every level.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        The table as it is; NaN where it has gaps of its own, which stay and are never judged.
    task : {"denoising", "completion"}
    level : float
        Standard deviation of the noise relative to that of the table, or the share of the entries that remain.
    seed : int

    Returns
    -------
    table : ndarray of shape (n, p)
    judged : ndarray of bool of shape (n, p)
    """
    known = ~np.isnan(values)
    rng = np.random.default_rng([seed, TASKS.index(task)])
    if task == "denoising":
        noise = level * float(np.nanstd(values)) * rng.standard_normal(values.shape)
        return values + noise, known
    remaining = known & (rng.random(values.shape) < level)
    return np.where(remaining, values, np.nan), known & ~remaining


def cut(values: FloatArray, n_rows: int, n_columns: int) -> tuple[FloatArray, Array]:
    """Rows spread over the table and its first columns; also the numbers of the rows."""
    rows = np.unique(np.linspace(0, len(values) - 1, n_rows).astype(int))
    return values[rows, :n_columns], rows


@dataclass(frozen=True)
class RealTable(Experiment):
    """Base of both experiments; a cell is a task at a level."""

    unit: ClassVar[str]
    story: ClassVar[str]

    n_rows: int
    n_columns: int
    n_repetitions: int
    noises: tuple[float, ...]
    shares: tuple[float, ...]
    n_components: int = 20
    n_trials: int = 15
    seed: int = 2018

    @abstractmethod
    def values(self) -> FloatArray:
        """The table; NaN where it has gaps."""

    def cells(self) -> list[Cell]:
        """A task and a level each."""
        levels = zip(TASKS, (self.noises, self.shares), strict=True)
        return [{"task": task, "level": level} for task, chosen in levels for level in chosen]

    def check_data(self, cells: Sequence[Cell]) -> None:
        """All cells work on the table."""
        self.values()

    def run(self, cell: Cell) -> list[Row]:
        """Choose penalties on the first repetition's table, then fit every method on every repetition."""
        values, task, level = self.values(), str(cell["task"]), float(cell["level"])
        chosen = self.penalties(damaged(values, task, level, self.seed)[0])
        scale = float(np.nanstd(values))
        rows: list[Row] = []
        for repetition in range(self.n_repetitions):
            table, judged = damaged(values, task, level, self.seed + repetition)
            for name, model in self.models(chosen):
                start = time.process_time()
                estimate = fit(model, table).reconstruct()
                seconds = time.process_time() - start
                error = rmse(values, estimate, where=judged)
                row = {"method": name, "repetition": repetition, "rmse": error, "relative": error / scale}
                rows.append(row | _findings(model) | {"seconds": seconds} | chosen.get(name, {}))
        return rows

    def penalties(self, table: FloatArray) -> dict[str, dict[str, float]]:
        """What is best on held-out entries of a table, for each method that needs it."""
        return {
            name: penalties(tuned_method(name, self.n_components), table, self.n_trials, self.seed) for name in TUNED
        }

    def models(self, chosen: dict[str, dict[str, float]]) -> Iterator[tuple[str, Factorization]]:
        """Every method, ready to be fitted."""
        for name in METHODS:
            if name in TUNED:
                yield name, tuned_method(name, self.n_components, **chosen[name])
            else:
                yield name, default_method(name, self.n_components)

    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """Curves, tables and paired comparisons of both tasks."""
        from lgmd.experiments.real_tables_page import write_sections

        return write_sections(self, results, folder)


def _findings(model: Factorization) -> Row:
    return {
        "rank": model.rank_,
        "iterations": model.n_iter_,
        "row edges": (model.sample_graph_.nnz - model.sample_graph_.shape[0]) // 2,
        "column edges": (model.feature_graph_.nnz - model.feature_graph_.shape[0]) // 2,
    }

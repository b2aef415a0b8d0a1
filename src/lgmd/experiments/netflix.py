"""Denoising and completion of the dense corner of the Netflix Prize ratings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from lgmd._typing import FloatArray
from lgmd.datasets import load_netflix
from lgmd.experiments import penalty_check
from lgmd.experiments.base import Cell, Row, Section
from lgmd.experiments.real_tables import TASKS, RealTable, cut

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Netflix"]


@dataclass(frozen=True)
class Netflix(RealTable):
    """1000 users and 1000 films, of which 82 % are rated."""

    name: ClassVar[str] = "netflix"
    title: ClassVar[str] = "Netflix ratings"
    unit: ClassVar[str] = "stars"
    story: ClassVar[str] = (
        "1000 very active users and 1000 popular films of the Netflix Prize, 81.67 % of the pairs rated from 1 to 5. "
        "The paper took 1000 users and 1000 films and does not say which."
    )

    n_rows: int = 1000
    n_columns: int = 1000
    n_repetitions: int = 2
    noises: tuple[float, ...] = (0.1, 0.3, 0.6, 1.0)
    shares: tuple[float, ...] = (0.1, 0.3, 0.6, 0.9)
    n_trials: int = 12

    @classmethod
    def quick(cls) -> Self:
        """A corner of 200 x 200 at two levels."""
        return cls(200, 200, 2, (0.4, 1.0), (0.3, 0.7), n_components=10, n_trials=10)

    def heading(self) -> str:
        """With the size, which may be that of a corner."""
        return f"Netflix: {self.n_rows} users and {self.n_columns} films"

    def values(self) -> FloatArray:
        """Users in rows, films in columns."""
        return cut(load_netflix().values, self.n_rows, self.n_columns)[0]

    def cells(self) -> list[Cell]:
        """A task and a level each, and what denoising measures at each level of noise."""
        checks: list[Cell] = [{"task": penalty_check.TASK, "level": noise} for noise in self.noises]
        return [*super().cells(), *checks]

    def run(self, cell: Cell) -> list[Row]:
        """Errors of every method, or what the error of denoising rewards."""
        if cell["task"] in TASKS:
            return super().run(cell)
        repetitions = range(self.seed, self.seed + self.n_repetitions)
        return penalty_check.measure(self.values(), float(cell["level"]), self.n_components, self.n_trials, repetitions)

    def is_final(self, rows: list[Row]) -> bool:
        """Unless a method was not yet there when the cell was run."""
        return "hidden" not in rows[0] or {row["method"] for row in rows} >= set(penalty_check.METHODS)

    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """Figures and tables of both tasks, and what the measure of one of them rewards."""
        judged = np.isin(results["task"], TASKS)
        return [*super().sections(results[judged], folder), *penalty_check.sections(results[~judged], self.unit)]

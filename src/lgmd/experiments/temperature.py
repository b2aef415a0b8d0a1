"""The paper's temperature experiment: denoising, completion, structure and running time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from lgmd._typing import FloatArray
from lgmd.datasets import TemperatureData, load_temperature
from lgmd.experiments import running_time, temperature_structure
from lgmd.experiments.base import Cell, Row, Section
from lgmd.experiments.methods import default_method, fit
from lgmd.experiments.real_tables import TASKS, RealTable, cut, damaged

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Temperature"]

# Levels in the middle of the figures, at which times are taken and the map is drawn.
_MIDDLE = {"denoising": 0.4, "completion": 0.5}


@dataclass(frozen=True)
class Temperature(RealTable):
    """Daily means of 150 stations over 669 days."""

    name: ClassVar[str] = "temperature"
    title: ClassVar[str] = "Temperature of weather stations"
    unit: ClassVar[str] = "degrees Fahrenheit"
    story: ClassVar[str] = (
        "Daily mean temperatures of weather stations in the United States from January 2018 to October 2019, 150 "
        "stations over 669 days, nothing missing: the size, period and kind of the paper's table, though not its "
        "stations, which it does not list."
    )

    n_rows: int = 150
    n_columns: int = 669
    n_repetitions: int = 3
    noises: tuple[float, ...] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
    n_printed_iterations: int = 1000
    n_convex_iterations: int = 3
    n_convex_nodes: int = 150

    @classmethod
    def quick(cls) -> Self:
        """60 stations over 120 days at two levels."""
        return cls(
            60,
            120,
            2,
            (0.4, 1.0),
            (0.3, 0.7),
            n_components=10,
            n_trials=10,
            n_printed_iterations=100,
            n_convex_iterations=1,
            n_convex_nodes=30,
        )

    def heading(self) -> str:
        """With the size, which may be that of a cut."""
        return f"Temperature: {self.n_rows} weather stations over {self.n_columns} days"

    def values(self) -> FloatArray:
        """Stations in rows, days in columns."""
        return self._data().values

    def _data(self) -> TemperatureData:
        data = load_temperature()
        values, rows = cut(data.values, self.n_rows, self.n_columns)
        return TemperatureData(
            values=values,
            station_ids=data.station_ids[rows],
            names=data.names[rows],
            states=data.states[rows],
            latitude=data.latitude[rows],
            longitude=data.longitude[rows],
            altitude=data.altitude[rows],
            dates=data.dates[: self.n_columns],
        )

    def cells(self) -> list[Cell]:
        """A task and a level each, the graph of the map, and times of both tasks."""
        times: list[Cell] = [{"task": "running time", "setting": task, "level": _MIDDLE[task]} for task in TASKS]
        return [*super().cells(), {"task": "structure", "level": _MIDDLE["completion"]}, *times]

    def run(self, cell: Cell) -> list[Row]:
        """Errors, edges or seconds."""
        if cell["task"] in TASKS:
            return super().run(cell)
        values, level = self.values(), float(cell["level"])
        if cell["task"] == "structure":
            table, _ = damaged(values, "completion", level, self.seed)
            return temperature_structure.edge_rows(fit(default_method("LGMD", self.n_components), table))
        table, judged = damaged(values, str(cell["setting"]), level, self.seed)
        return running_time.measure(
            values,
            table,
            judged,
            self.n_components,
            self.n_printed_iterations,
            self.n_convex_iterations,
            # The stations' problem is the same in both settings.
            self.n_convex_nodes if cell["setting"] == "denoising" else 0,
        )

    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """Figures and tables of both tasks, the structure figure and the table of times."""
        errors = results[np.isin(results["task"], TASKS)]
        edges = results[results["task"] == "structure"]
        times = results[results["task"] == "running time"]
        return [
            *super().sections(errors, folder),
            temperature_structure.section(self._data(), edges, folder),
            running_time.section(times, (self.n_rows, self.n_columns), self.n_convex_nodes),
        ]

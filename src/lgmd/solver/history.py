"""What happened, iteration by iteration."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lgmd._typing import FloatArray

__all__ = ["History", "Record"]


@dataclass(frozen=True)
class Record:
    """One iteration.

    Attributes
    ----------
    objective : float
        Sum of the terms.
    terms : dict of str to float
    change : float
        Decrease of the objective relative to its size; NaN in the first iteration of a graph.
    graph_step : bool
        Whether the graphs were learned anew at the start of the iteration.
    sample_edges, feature_edges : int
    seconds : float
        Since the start of the run.
    """

    objective: float
    terms: dict[str, float]
    change: float
    graph_step: bool
    sample_edges: int
    feature_edges: int
    seconds: float


@dataclass(frozen=True)
class History:
    """All iterations of a run."""

    records: tuple[Record, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.records)

    @property
    def objective(self) -> FloatArray:
        """The objective after each iteration, (n_iter,)."""
        return np.array([record.objective for record in self.records])

    @property
    def terms(self) -> dict[str, FloatArray]:
        """Each term of the objective after each iteration."""
        names = self.records[0].terms if self.records else {}
        return {name: np.array([record.terms[name] for record in self.records]) for name in names}

    @property
    def change(self) -> FloatArray:
        """Relative decrease in each iteration, (n_iter,); NaN where a graph is new."""
        return np.array([record.change for record in self.records])

    @property
    def seconds(self) -> FloatArray:
        """Time since the start after each iteration, (n_iter,)."""
        return np.array([record.seconds for record in self.records])

    @property
    def graph_steps(self) -> FloatArray:
        """Whether the graphs were learned anew in each iteration, (n_iter,) of bool."""
        return np.array([record.graph_step for record in self.records], dtype=bool)

    @property
    def last_change(self) -> float:
        """Relative decrease in the last iteration."""
        return self.records[-1].change if self.records else float("nan")

    def always_fell(self) -> bool:
        """Whether the objective never rose while the graphs were held."""
        return not bool(np.any(self.change < -1e-10))

    def append(self, record: Record) -> History:
        """One iteration more."""
        return History((*self.records, record))

    def to_json(self) -> list[dict[str, Any]]:
        """Plain values, with null for what is not a number."""
        return [
            {**asdict(record), "change": None if math.isnan(record.change) else record.change}
            for record in self.records
        ]

    @classmethod
    def from_json(cls, values: list[dict[str, Any]]) -> History:
        """The inverse of :meth:`to_json`."""
        return cls(
            tuple(
                Record(**{**value, "change": math.nan if value["change"] is None else value["change"]})
                for value in values
            )
        )

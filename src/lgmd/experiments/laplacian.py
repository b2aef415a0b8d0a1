"""The paper's illustrations: what noise and gaps do to the graph of a table, and what factors learn of it.

The graphs are made in :mod:`lgmd.experiments.laplacian_graphs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from lgmd._typing import Array, SparseGraph
from lgmd.datasets import MatrixNormalData, geometric_precision, make_matrix_normal
from lgmd.experiments.base import Cell, Experiment, Row, Section
from lgmd.experiments.laplacian_graphs import (
    correlation_edges,
    edges_along_a_run,
    edges_of,
    factor_correlations,
    learned_edges,
    nearest_edges,
    precisions,
    row_correlations,
    threshold_for,
)
from lgmd.experiments.laplacian_page import GRAPHS, RUNS, matrix_section, run_section, sweep_section
from lgmd.graphs import GraphLearner, NoGraph, ThresholdGraph

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Laplacian"]

# Next to nothing: a table without gaps has no use for a penalty, and with gaps some systems need one to be solvable.
_NO_PENALTY = 1e-3


@dataclass(frozen=True)
class Laplacian(Experiment):
    """Graphs of noisy tables, and graphs of factors."""

    name: ClassVar[str] = "laplacian"
    title: ClassVar[str] = "Graphs of noisy and incomplete tables"

    families: tuple[str, ...] = ("geometric", "blocks")
    noise_levels: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 1.0)
    missing_shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8)
    noise_with_gaps: float = 0.1
    n_nodes: int = 100
    n_components: int = 20
    n_neighbors: int = 5
    n_repetitions: int = 20
    run_noise: float = 0.3
    run_missing: tuple[float, ...] = (0.0, 0.5)
    n_iterations: int = 30
    n_samples: int = 250
    first_seed: int = 10

    @classmethod
    def quick(cls) -> Self:
        """Small tables, two repetitions."""
        return cls(
            noise_levels=(0.1, 0.5, 1.0),
            missing_shares=(0.0, 0.4, 0.8),
            n_nodes=60,
            n_components=10,
            n_repetitions=2,
            n_iterations=15,
            n_samples=100,
        )

    def cells(self) -> list[Cell]:
        """Levels of noise and of gaps, runs from random factors, and one table to draw."""
        levels = [("noise", level) for level in self.noise_levels] + [
            ("missing", level) for level in self.missing_shares
        ]
        sweeps: list[Cell] = [
            {"part": "sweep", "family": family, "sweep": sweep, "level": level}
            for family in self.families
            for sweep, level in levels
        ]
        runs: list[Cell] = [
            {"part": "run", "family": family, "sweep": "missing", "level": missing}
            for family in self.families
            for missing in self.run_missing
        ]
        return [*sweeps, *runs, {"part": "matrices"}]

    def run(self, cell: Cell) -> list[Row]:
        """One level, or one kind of table to run on, or the matrices."""
        if cell["part"] == "matrices":
            return self._matrix_rows()
        seeds = range(self.first_seed, self.first_seed + self.n_repetitions)
        one = self._sweep_rows if cell["part"] == "sweep" else self._run_rows
        return [{"repetition": seed} | row for seed in seeds for row in one(cell, seed)]

    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """A section for each family's levels, for the runs, and for the matrices."""
        parts = dict(list(results.groupby("part")))
        sections: list[Section] = []
        for family in self.families:
            rows = parts["sweep"][parts["sweep"]["family"] == family]
            sections.append(sweep_section(rows, family, "noise", "noise", folder, explain=not sections))
            what = f"gaps (noise {self.noise_with_gaps:g})"
            sections.append(sweep_section(rows, family, "missing", what, folder))
        sections.append(run_section(parts["run"], folder))
        # Made anew from the same seed if need be: a matrix does not fit into a row of results.
        sections.append(matrix_section(parts["matrices"], _matrices(self), folder))
        return sections

    def _table(self, family: str, noise: float, missing: float, seed: int) -> MatrixNormalData:
        return make_matrix_normal(
            self.n_nodes,
            self.n_nodes,
            rank=self.n_components,
            sample_graph=family,
            feature_graph=family,
            noise=noise,
            missing=missing,
            # Graphs are to be found in the values, not in the order in which blocks were drawn.
            shuffle=family == "blocks",
            random_state=seed,
        )

    def _sweep_rows(self, cell: Cell, seed: int) -> list[Row]:
        level = float(cell["level"])
        noise, missing = (level, 0.0) if cell["sweep"] == "noise" else (self.noise_with_gaps, level)
        data = self._table(str(cell["family"]), noise, missing, seed)
        true = edges_of(data.sample_precision)
        threshold = threshold_for(row_correlations(data.truth), int(true.sum()))
        clean = correlation_edges(data.truth, threshold)
        clean_nearest = nearest_edges(data.truth, self.n_neighbors)
        learned, completed = learned_edges(data.observed, self.n_components, self.n_neighbors, seed)
        found = (
            (correlation_edges(data.observed, threshold), clean),
            (nearest_edges(data.observed, self.n_neighbors), clean_nearest),
            (completed, clean_nearest),
            (learned, None),
        )
        return [
            {"method": name} | _counts(edges, true) | {"kept": _share(edges & kept, kept) if kept is not None else None}
            for name, (edges, kept) in zip(GRAPHS, found, strict=True)
        ]

    def _run_rows(self, cell: Cell, seed: int) -> list[Row]:
        data = self._table(str(cell["family"]), self.run_noise, float(cell["level"]), seed)
        true = edges_of(data.sample_precision)
        threshold = threshold_for(factor_correlations(data.sample_factors), int(true.sum()))
        # Variance of the noise over the product of the factors' deviations, in the units of a table of variance one.
        matched = self.run_noise**2 * np.sqrt(self.n_components / (1 + self.run_noise**2))
        settings: dict[str, tuple[GraphLearner, float]] = {
            "no penalty": (NoGraph(), _NO_PENALTY),
            "PMF": (NoGraph(), matched),
            "LGMD, MAP": (ThresholdGraph(), matched),
        }
        rows = []
        for name in RUNS:
            learner, penalty = settings[name]
            run = edges_along_a_run(
                data.observed, learner, penalty, self.n_components, threshold, self.n_iterations, seed
            )
            rows += [
                {"method": name, "iteration": iteration} | _counts(edges, true) for iteration, edges in enumerate(run)
            ]
        return rows

    def _matrix_rows(self) -> list[Row]:
        matrices = _matrices(self)
        true = edges_of(matrices["true precision"])
        return [
            {"method": name}
            | _counts(edges_of(graph), true)
            | {"positive": int(np.sum(np.triu(graph.toarray(), 1) > 1e-12))}
            for name, graph in matrices.items()
        ]


@lru_cache(maxsize=1)
def _matrices(size: Laplacian) -> dict[str, SparseGraph]:
    """The matrices that are counted and drawn, of a table on a map with as many neighbours as the kNN graph has."""
    density = 1.2 * size.n_neighbors / (size.n_samples - 1)
    data = make_matrix_normal(
        size.n_samples,
        size.n_nodes,
        rank=size.n_components,
        sample_graph=geometric_precision(size.n_samples, density, random_state=size.first_seed),
        feature_graph="geometric",
        noise=size.run_noise,
        random_state=size.first_seed,
    )
    return precisions(data, size.n_components, size.n_neighbors, size.first_seed)


def _counts(edges: Array, true: Array) -> dict[str, Any]:
    hits = edges & true
    return {
        "edges": int(edges.sum()),
        "true_edges": int(true.sum()),
        "true_found": int(hits.sum()),
        "found": _share(hits, true),
        "precision": _share(hits, edges),
    }


def _share(part: Array, whole: Array) -> float | None:
    """None where there is nothing to share."""
    return float(part.sum() / whole.sum()) if whole.any() else None

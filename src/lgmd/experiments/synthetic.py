"""The paper's synthetic experiment: tables whose factors and graphs are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray
from lgmd.datasets import MatrixNormalData, make_matrix_normal, random_precision
from lgmd.experiments.base import Cell, Experiment, Row, Section
from lgmd.experiments.laplacian_graphs import factor_correlations
from lgmd.experiments.methods import (
    DEFAULTS,
    TUNED,
    default_method,
    fit,
    penalties,
    principal_components,
    tuned_method,
)
from lgmd.experiments.paper_numbers import NOISE_LEVELS
from lgmd.metrics import column_correlations, edge_recovery, rmse, subspace_angle

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AT_EQUAL_COLUMNS", "LGMD_WITHOUT_MEANS", "METHODS", "PMF_WITH_MEANS", "Synthetic", "make_table"]

METHODS = ("PCA", *TUNED, *DEFAULTS, "GRMD-real, MAP", "GRMD-real")
PMF_WITH_MEANS, LGMD_WITHOUT_MEANS = "PMF, means learned", "LGMD, told of no means"
"""Tables have no means. Methods by MAP are told, as in the paper, and the defaults are not; with gaps these two are
asked what that is worth.
"""
AT_EQUAL_COLUMNS = ("E5 at equal columns", "E6 at equal columns")
"""Angles of so many first principal directions as the method with the fewest columns keeps on the same table."""

RANK = 20
COMPLETION_NOISE = 0.3
EDGE_SHARES = (0.1, 0.2, 0.3)

# Strengths of the random graphs over rows and over columns, with which PCA's angles are nearest to the paper's.
PAPER_STRENGTHS = (0.5, 0.3)

# Repetitions are seeded from here on, away from the seeds that constants of the library were chosen with.
FIRST_SEED = 1000
SEARCH_SEED = 0


def make_table(family: str, noise: float, missing: float, seed: int) -> MatrixNormalData:
    """A table of 100 x 100 and rank 20; family "paper" is the paper's, with 6 % random signed edges."""
    graphs: dict[str, Any] = {"sample_graph": family, "feature_graph": family}
    if family == "paper":
        rng = np.random.default_rng([seed, 1])
        for name, strength in zip(graphs, PAPER_STRENGTHS, strict=True):
            graphs[name] = random_precision(100, strength=strength, random_state=rng)
    # The graphs are to be found in the values, not in the order in which the blocks were drawn.
    return make_matrix_normal(
        100, 100, RANK, noise=noise, missing=missing, shuffle=family == "blocks", random_state=seed, **graphs
    )


@dataclass(frozen=True)
class Synthetic(Experiment):
    """Errors, subspaces, correlations and edges, against noise and against the share of remaining entries."""

    name: ClassVar[str] = "synthetic"
    title: ClassVar[str] = "Synthetic tables with known graphs"

    n_repetitions: int = 30
    noises: tuple[float, ...] = NOISE_LEVELS
    structured_noises: tuple[float, ...] = (0.3, 0.6, 1.0)
    shares: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    structured_families: tuple[str, ...] = ("blocks", "geometric")
    n_trials: int = 20
    first_seed: int = FIRST_SEED

    @classmethod
    def quick(cls) -> Self:
        """Two repetitions at two levels."""
        return cls(2, (0.3, 1.0), (0.7,), (0.5,), ("blocks",), 6)

    def cells(self) -> list[Cell]:
        """A family and a level each."""
        denoising: list[Cell] = [{"task": "denoising", "family": "paper", "level": noise} for noise in self.noises]
        for family in self.structured_families:
            denoising += [{"task": "denoising", "family": family, "level": each} for each in self.structured_noises]
        families = ("paper", *self.structured_families[:1])
        return denoising + [
            {"task": "completion", "family": family, "level": share} for family in families for share in self.shares
        ]

    def run(self, cell: Cell) -> list[Row]:
        """Choose penalties on a table of their own, then fit every method on every repetition."""
        trial = self._table(cell, self.first_seed - 1)
        tuned = [*TUNED, "GRMD-real, MAP", *([PMF_WITH_MEANS] if cell["task"] == "completion" else [])]
        chosen = {
            name: penalties(_before_tuning(name, trial), trial.observed, self.n_trials, SEARCH_SEED) for name in tuned
        }
        rows = []
        for repetition in range(self.n_repetitions):
            data = self._table(cell, self.first_seed + repetition)
            fits = list(_fits(data, chosen))
            fewest = min(factors[0].shape[1] for _, factors, _, _ in fits)
            for name, factors, graphs, estimate in fits:
                row = {"method": name, "repetition": repetition, **_measures(data, factors, graphs, estimate)}
                row |= zip(AT_EQUAL_COLUMNS, _principal_angles(data, factors, fewest), strict=True)
                rows.append(row | {"penalty": chosen.get(name, {}).get("sample_penalty")})
        return rows

    def is_final(self, rows: list[Row]) -> bool:
        """Unless a method or a measure was not yet there when the cell was run."""
        methods = {row["method"] for row in rows}
        has_methods = "E1" not in rows[0] or methods >= {PMF_WITH_MEANS, LGMD_WITHOUT_MEANS}
        return has_methods and rows[0].keys() >= set(AT_EQUAL_COLUMNS)

    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """The paper's tables and figures."""
        from lgmd.experiments.synthetic_page import write_sections

        return write_sections(self, results, folder)

    @staticmethod
    def _table(cell: Cell, seed: int) -> MatrixNormalData:
        family, level = str(cell["family"]), float(cell["level"])
        if cell["task"] == "denoising":
            return make_table(family, level, 0.0, seed)
        return make_table(family, COMPLETION_NOISE, 1.0 - level, seed)


Factors = tuple[FloatArray, FloatArray]


def _before_tuning(name: str, data: MatrixNormalData) -> Any:
    if name == PMF_WITH_MEANS:
        return tuned_method("PMF", RANK)
    # The tables have no means, and the paper's model has none.
    graphs = {"sample_graph": data.sample_precision, "feature_graph": data.feature_precision}
    return tuned_method(name, RANK, intercept="none", **(graphs if name == "GRMD-real, MAP" else {}))


def _fits(
    data: MatrixNormalData, chosen: dict[str, dict[str, float]]
) -> Iterator[tuple[str, Factors, Any, FloatArray]]:
    """Every method with its factors, its graphs (None where it has none) and its estimate of the table."""
    if data.mask.all():
        X, W = principal_components(data.noisy, RANK)
        yield "PCA", (X, W), None, X @ W.T
    models = {name: _before_tuning(name, data).set_params(**best) for name, best in chosen.items()}
    models |= {name: default_method(name, RANK) for name in DEFAULTS}
    models["GRMD-real"] = default_method(
        "GRMD-real", RANK, sample_graph=data.sample_precision, feature_graph=data.feature_precision
    )
    if not data.mask.all():
        models[LGMD_WITHOUT_MEANS] = default_method("LGMD", RANK, intercept="none")
    for name, model in models.items():
        fit(model, data.observed)
        graphs = None if name in ("PMF", PMF_WITH_MEANS) else (model.sample_graph_, model.feature_graph_)
        yield name, (model.sample_factors_, model.feature_factors_), graphs, model.reconstruct()


def _measures(data: MatrixNormalData, factors: Factors, graphs: Any, estimate: FloatArray) -> Row:
    """The paper's E1 to E8; errors relative to the standard deviation of the truth."""
    scale = float(data.truth.std())
    row: Row = {"rank": factors[0].shape[1], "E2": rmse(data.truth, estimate) / scale}
    if not data.mask.all():
        row["E1"] = rmse(data.noisy[~data.mask], estimate[~data.mask]) / scale
    sides = (
        (("E3", "E5", "E7"), data.sample_factors, data.sample_precision),
        (("E4", "E6", "E8"), data.feature_factors, data.feature_precision),
    )
    for side, ((correlation, angle, edges), truth, precision) in enumerate(sides):
        found = factors[side]
        row[angle] = subspace_angle(truth, found)
        sizes = np.abs(column_correlations(found)) if found.shape[1] > 1 else np.zeros(1)
        row |= {f"{correlation} mean": sizes.mean(), f"{correlation} largest": sizes.max()}
        graph = _row_correlations(found) if graphs is None else graphs[side]
        for share, recovered in zip(EDGE_SHARES, edge_recovery(precision, graph, EDGE_SHARES), strict=True):
            row[f"{edges} {100 * share:.0f} %"] = recovered
    return row


def _principal_angles(data: MatrixNormalData, factors: Factors, n_directions: int) -> tuple[float, float]:
    """E5 and E6 of the first principal directions of an estimate without its means; it has to have as many."""
    X, W = factors
    left, _, right = np.linalg.svd(X @ W.T, full_matrices=False)
    return (
        subspace_angle(data.sample_factors, left[:, :n_directions]),
        subspace_angle(data.feature_factors, right[:n_directions].T),
    )


def _row_correlations(factor: FloatArray) -> scipy.sparse.csr_array:
    """Where a method has no graph, its strongest correlations between rows stand for edges."""
    products = factor_correlations(factor)
    np.fill_diagonal(products, 1.0)
    return scipy.sparse.csr_array((products + products.T) / 2)

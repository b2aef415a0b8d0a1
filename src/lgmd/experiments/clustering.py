"""Digits and documents by their factors: Tables 4 and 5 of the paper."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.datasets import LabelledData, load_mnist, load_tdt2
from lgmd.experiments.base import Cell, Experiment, Row, Section
from lgmd.experiments.clustering_methods import (
    FACTOR_METHODS,
    along_graph,
    clusters,
    draw,
    factor_method,
    scores,
    tf_idf,
    unit_rows,
)
from lgmd.experiments.figures import draw_curves, new_figure, save_figure
from lgmd.experiments.methods import fit
from lgmd.experiments.paper_numbers import CLUSTERING
from lgmd.experiments.summaries import mean_table, paired_table
from lgmd.metrics import clustering_accuracy, normalized_mutual_information

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Clustering"]

_DATA = {"MNIST": "digits", "TDT2": "topics"}
_RAW, _TABLE, _PLAIN = "k-means, raw", "k-means", "PMF, as it is"
_METHODS = (_RAW, _TABLE, _PLAIN, *FACTOR_METHODS)
_SHOWN = (_TABLE, *FACTOR_METHODS)
_NOT_SMOOTHED = "accuracy, no smoothing"


@dataclass(frozen=True)
class Clustering(Experiment):
    """Accuracy of clusters of 2000 samples of random classes, for k-means and four ways to find factors first.

    Attributes
    ----------
    digits, topics : tuple of int
        How many classes of MNIST and of TDT2 are drawn; topics are drawn from as many of the largest as the most.
    n_repetitions : int
        Draws of classes and samples for each.
    n_samples : int
    n_terms : int
        Terms of TDT2 that are kept.
    rank : int
        Factors for each class.
    max_iter : int
    smoothing : float
        How far samples are drawn together along the graph of their method.
    n_starts : int
        Runs of k-means, of which the best counts.
    first_seed : int
        Of the draws. The choices above were made on seeds from 1000 on.
    """

    name: ClassVar[str] = "clustering"
    title: ClassVar[str] = "Clustering of digits and documents"

    digits: tuple[int, ...] = (10, 9, 8, 7, 6)
    topics: tuple[int, ...] = (20, 18, 16, 14, 12)
    n_repetitions: int = 20
    n_samples: int = 2000
    n_terms: int = 2000
    rank: int = 2
    max_iter: int = 5
    smoothing: float = 100.0
    n_starts: int = 10
    first_seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        """Two draws of the most and the fewest classes, with 1600 samples: below 1500 LGMD+ is exact, and slower."""
        return cls((10, 6), (20, 12), n_repetitions=2, n_samples=1600, n_terms=1000, n_starts=5)

    def cells(self) -> list[Cell]:
        """One for each draw."""
        return [
            {"data": data, "n_classes": n_classes, "repetition": repetition}
            for data, levels in (("MNIST", self.digits), ("TDT2", self.topics))
            for n_classes in levels
            for repetition in range(self.n_repetitions)
        ]

    def check_data(self, cells: Sequence[Cell]) -> None:
        """A cell needs its set."""
        for name in dict.fromkeys(str(cell["data"]) for cell in cells):
            self._data(name)

    def run(self, cell: Cell) -> list[Row]:
        """Clusters of all methods for one draw."""
        name, n_classes, repetition = str(cell["data"]), int(cell["n_classes"]), int(cell["repetition"])
        seed = self.first_seed + repetition
        raw, table, labels = self._tables(name, n_classes, seed)

        def row(method: str, points: FloatArray, **more: Any) -> Row:
            found = self._clusters(points, n_classes, seed)
            accuracy, information = clustering_accuracy(labels, found), normalized_mutual_information(labels, found)
            return {"method": method, "accuracy": accuracy, "information": information, **more}

        rows = [row(_RAW, raw), row(_TABLE, table)]
        for method in FACTOR_METHODS:
            start = time.perf_counter()
            model = fit(factor_method(method, self.rank * n_classes, self.max_iter), table)
            seconds = time.perf_counter() - start
            factors = scores(model)
            if method == "PMF":
                rows.append(row(_PLAIN, factors))
            plain = self._clusters(unit_rows(factors), n_classes, seed)
            smooth = unit_rows(along_graph(factors, model.sample_graph_, self.smoothing))
            more = {
                _NOT_SMOOTHED: clustering_accuracy(labels, plain),
                "edges": (model.sample_graph_.nnz - len(labels)) // 2,
                "fit_seconds": seconds,
            }
            rows.append(row(method, smooth, **more))
        return rows

    def _tables(self, name: str, n_classes: int, seed: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """Raw values, the table of all other methods, and labels."""
        values, labels = draw(self._data(name), n_classes, self.n_samples, seed)
        if name == "MNIST":
            raw = values.astype(np.float32)
            return raw, unit_rows(raw), labels
        table = tf_idf(values, self.n_terms).astype(np.float32)
        return values, table, labels

    def _data(self, name: str) -> LabelledData:
        return _load(name, max(self.topics, default=0), os.environ.get("LGMD_DATA"))

    def _clusters(self, points: FloatArray, n_classes: int, seed: int) -> IntArray:
        return clusters(points, n_classes, self.n_starts, seed)

    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """Tables 4 and 5 with the paper's numbers, comparisons in pairs, and what smoothing does."""
        parts = [Section("What was run", self._what())]
        for data, levels in (("MNIST", self.digits), ("TDT2", self.topics)):
            rows = results[results["data"] == data]
            if len(rows):
                parts += _sections_of(data, rows, levels, folder)
        return parts

    def _what(self) -> str:
        return (
            f"Each repetition draws classes, and {self.n_samples:,} samples of them (all there are, where they are "
            f"fewer): digits from the 10,000 test digits of MNIST, stories from the {max(self.topics, default=0)} "
            f"largest topics of TDT2. All methods see the same table, with rows at unit length: pixels, and tf-idf "
            f"weights of the {self.n_terms:,} terms with the largest weight, in which zeros are zeros, not gaps. "
            f"{_RAW} sees pixels and counts of all terms as they are.\n\n"
            f"The factor methods have {self.rank} factors for each class and a mean for each column. PMF and dGRMD are "
            "as published, with penalties of 1 at unit scale; LGMD and LGMD+ learn the graph over samples with their "
            "defaults, once, and none over columns: it would take LGMD+ minutes a draw, and factors of samples that "
            "are known from all their columns do not need it. All four go the same way from factors to clusters. The "
            "factors X are turned so that those of the columns are orthonormal, and drawn together along the method's "
            f"own graph A over samples: (I + s A)^-1 X, with s = {self.smoothing:g} and A at unit scale. PMF has "
            "A = I, for which this changes nothing. Rows are then brought to unit length, and the best of "
            f"{self.n_starts} runs of k-means counts. The line {_PLAIN} leaves rows at their length, which often suits "
            "factors without a graph better. No method sees more of the labels than the number of classes.\n\n"
            "The number of factors and s are the same for all sets and methods. They were chosen on a few draws with "
            "seeds from 1000 on. These are not among those shown, but come from the same 10,000 digits and 20 topics. "
            "Accuracy is the share of samples in the right "
            "cluster under the best match of clusters and classes; information is the normalised mutual information."
        )


@lru_cache(maxsize=2)
def _load(name: str, n_topics: int, folder: str | None) -> LabelledData:
    """A set, kept for the next cell; the folder is there to tell one from another."""
    return load_mnist() if name == "MNIST" else load_tdt2(n_topics)


def _sections_of(data: str, rows: pd.DataFrame, levels: tuple[int, ...], folder: Path) -> list[Section]:
    paper = "4" if data == "MNIST" else "5"
    figure, panels = new_figure(2)
    for axes, value, label in zip(panels, ("accuracy", "information"), ("accuracy", "mutual information"), strict=True):
        draw_curves(axes, rows, "n_classes", value, _SHOWN, x_label=f"number of {_DATA[data]}", y_label=label)
        axes.set_title(data)
        if axes.get_legend() is not None:
            axes.set_xticks(sorted(rows["n_classes"].unique()))
            axes.get_legend().remove()
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", frameon=False, fontsize=8)
    picture = save_figure(figure, folder, f"accuracy_{data.lower()}")
    return [
        Section(
            f"{data}: accuracy (Table {paper})",
            f"Mean and standard error over the repetitions, for each number of {_DATA[data]}; below, the paper's.",
            _beside_paper(data, mean_table(rows, "accuracy", "n_classes", _METHODS, digits=3), levels),
            (picture,),
        ),
        Section(
            f"{data}: normalised mutual information",
            "The paper does not give it.",
            mean_table(rows, "information", "n_classes", _METHODS, digits=3),
        ),
        Section(
            f"{data}: pairs on the same draws",
            "Difference in accuracy, in per cent of the rival's, and the number of draws that the first one wins.",
            _pairs(rows),
        ),
        Section(
            f"{data}: without smoothing",
            "The same factors, rows at unit length, not drawn together along the graph. What the first table has more "
            "is what the graph knows beyond the factors.",
            mean_table(rows, _NOT_SMOOTHED, "n_classes", FACTOR_METHODS, digits=3),
        ),
    ]


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """LGMD+ and LGMD against the methods before them."""
    import pandas as pd

    parts = []
    for ours, rivals in (("LGMD+", _METHODS[:-1]), ("LGMD", _METHODS[:-2])):
        part = paired_table(rows, "accuracy", "n_classes", ours, rivals, ["repetition"], larger_is_better=True)
        part.insert(0, "pair", [f"{ours} against {rival}" for rival in rivals])
        parts.append(part.drop(columns=f"{ours} against"))
    return pd.concat(parts, ignore_index=True)


def _beside_paper(data: str, ours: pd.DataFrame, levels: tuple[int, ...]) -> pd.DataFrame:
    """Our rows, and the paper's under them."""
    import pandas as pd

    numbers = CLUSTERING[data]
    printed = [
        {"method": f"{method}, paper"}
        | {
            str(level): f"{numbers[method][numbers['classes'].index(level)]:.3f}" if level in numbers["classes"] else ""
            for level in levels
        }
        for method in _SHOWN
    ]
    return pd.concat([ours, pd.DataFrame(printed)], ignore_index=True)

"""Four fixed splits of ratings with given graphs: who predicts the test ratings best.

The methods are in :mod:`lgmd.experiments.completion_methods`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from lgmd._typing import FloatArray
from lgmd.datasets import load_graph_completion
from lgmd.experiments.base import Cell, Experiment, Row, Section
from lgmd.experiments.completion_methods import Size, predict
from lgmd.experiments.figures import COLOURS, new_figure, save_figure, style
from lgmd.experiments.summaries import paired_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PUBLISHED", "Completion"]

# Standard deviations either side that hold 90 % of a Gaussian.
_BAR = 1.645

PUBLISHED = {
    "GRALS": {"ml_100k": 0.945, "flixster": 1.245, "douban": 0.833, "yahoo_music": 38.0},
    "sRGCNN": {"ml_100k": 0.929, "flixster": 0.926, "douban": 0.801, "yahoo_music": 22.4},
    "GC-MC": {"ml_100k": 0.905, "flixster": 0.917, "douban": 0.734, "yahoo_music": 20.5},
    "IGMC": {"ml_100k": 0.905, "flixster": 0.872, "douban": 0.721, "yahoo_music": 19.1},
    "GLocal-K": {"ml_100k": 0.889, "douban": 0.721},
}
"""Test RMSE as the methods' papers print it; none was run here."""

_TEXT = """\
Root mean squared error on the test ratings of four splits that others fixed. No method has more factor columns than \
any other may have, and nothing is clipped to the scale of the ratings. "means" are ridge means of users and items. \
"PMF" and "given graphs, MAP" (as GRALS) have penalties and rank chosen on tenths of the training ratings that are put \
aside. "given graphs, variational" learns how far each given graph is to be trusted. "LGMD" and "LGMD+" run as they \
come and see no given graph. myfm sees users and items one-hot and standardised ratings. All but the means start from \
several seeds: shown is the mean error, and in brackets the smallest and the largest where they differ.

Published numbers are shown as their papers print them and were not run here. Read them with care: on some splits \
the means of users and items alone, which know nothing of graphs or factors, are below several of them, so they \
say as much about how the methods were tuned as about graphs."""

_PAIRED_TEXT = """\
Test users are dealt into groups once, at random. Shown is by how many per cent LGMD's error is above (+) or below (-) \
that of each method in the mean over the groups, each the mean over the starts, its standard error, and in how many \
groups it is lower."""


@dataclass(frozen=True)
class Completion(Experiment):
    """Test ratings of four fixed splits."""

    name: ClassVar[str] = "completion"
    title: ClassVar[str] = "Ratings with given graphs: four fixed splits"

    splits: tuple[str, ...] = ("ml_100k", "flixster", "douban", "yahoo_music")
    methods: tuple[str, ...] = (
        "means",
        "PMF",
        "PMF, variational",
        "given graphs, MAP",
        "given graphs, variational",
        "LGMD",
        "LGMD+",
        "myfm, variational",
        "myfm, Gibbs",
    )
    n_components: int = 20
    n_trials: int = 20
    n_splits: int = 2
    map_iterations: int = 30
    rival_iterations: tuple[int, int] = (100, 300)
    n_starts: int = 3
    n_groups: int = 10
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        """One split and few trials."""
        methods = ("means", "PMF", "PMF, variational", "given graphs, MAP", "LGMD", "myfm, variational")
        size = {"n_trials": 8, "n_splits": 1, "map_iterations": 15, "n_starts": 1}
        return cls(splits=("ml_100k",), methods=methods, rival_iterations=(30, 30), **size)

    def cells(self) -> list[Cell]:
        """One method on one split."""
        return [{"split": split, "method": method} for split in self.splits for method in self.methods]

    def check_data(self, cells: Sequence[Cell]) -> None:
        """A cell needs its split."""
        for split in dict.fromkeys(str(cell["split"]) for cell in cells):
            load_graph_completion(split)

    def run(self, cell: Cell) -> list[Row]:
        """A row for each start and group of users: test ratings, their squared errors, and how many are inside bars."""
        data = load_graph_completion(str(cell["split"]))
        names = ("n_components", "n_trials", "n_splits", "map_iterations", "rival_iterations", "n_starts", "seed")
        start = time.process_time()
        predictions = predict(str(cell["method"]), data, Size(*(getattr(self, name) for name in names)))
        seconds = time.process_time() - start
        users = np.random.default_rng(self.seed).permutation(data.shape[0]) % self.n_groups
        groups = users[data.test.coords[0]]
        rows = []
        for number, found in enumerate(predictions):
            common = {"start": number, "seconds": seconds, "note": found.note}
            if found.values is None:
                rows.append(common | {"group": 0, "n": 0})
                continue
            residuals = data.test.data - found.values
            for group in np.unique(groups):
                chosen = groups == group
                squares = float(np.sum(residuals[chosen] ** 2))
                row: Row = common | {"group": group, "n": int(chosen.sum()), "squares": squares}
                row["rmse"] = np.sqrt(squares / row["n"])
                if found.deviations is not None:
                    row["inside"] = int(np.sum(np.abs(residuals[chosen]) < _BAR * found.deviations[chosen]))
                rows.append(row)
        return rows

    def is_final(self, rows: list[Row]) -> bool:
        """Unless the method was not installed, which it may be now."""
        return any(row["n"] for row in rows)

    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """Errors beside the published ones, paired differences, bars, time and settings."""
        import pandas as pd

        # A frame in which nothing could be run has no such column.
        measured = results.dropna(subset=["rmse"]) if "rmse" in results else results.head(0)
        sums = measured.groupby(["method", "split", "start"])[["squares", "n"]].sum()
        by_start = np.sqrt(sums["squares"] / sums["n"]).groupby(["method", "split"])
        errors = {key: values.to_numpy() for key, values in by_start}
        notes = {(row["method"], row["split"]): str(row["note"]) for _, row in results.iterrows()}
        table = [
            {"method": method, "from": "run here"}
            | {split: _shown(errors.get((method, split)), notes[method, split], split) for split in self.splits}
            for method in self.methods
        ]
        table += [
            {"method": method, "from": "published"}
            | {split: f"{known[split]}" if split in known else "" for split in self.splits}
            for method, known in PUBLISHED.items()
        ]
        sections = [
            Section(
                "Test RMSE",
                _TEXT,
                pd.DataFrame(table),
                (self._draw({key: float(values.mean()) for key, values in errors.items()}, folder),),
            ),
        ]
        done = [method for method in self.methods if method in set(measured["method"])]
        if "LGMD" in done and len(done) > 1:
            rivals = [method for method in done if method != "LGMD"]
            groups = measured.groupby(["split", "method", "group"], sort=False)["rmse"].mean().reset_index()
            paired = paired_table(groups, "rmse", "split", "LGMD", rivals, ["group"])
            sections.append(Section("LGMD against the others", _PAIRED_TEXT, paired))
        if "inside" in measured:
            text = "Share of the test ratings that lie inside their 90 % error bars; 90 % would be right."
            sections.append(Section("Error bars", text, self._coverage(measured)))
        text = "Processor seconds of all starts and of the search, and what was chosen or, by the first start, found."
        sections.append(Section("Time and settings", text, self._settings(measured)))
        return sections

    def _coverage(self, measured: pd.DataFrame) -> pd.DataFrame:
        import pandas as pd

        sums = measured.dropna(subset=["inside"]).groupby(["method", "split"])[["inside", "n"]].sum()
        lines = []
        for method in self.methods:
            if method in sums.index.get_level_values("method"):
                shares = {split: sums.loc[(method, split)] for split in self.splits if (method, split) in sums.index}
                lines.append({"method": method} | {s: f"{100 * x['inside'] / x['n']:.1f} %" for s, x in shares.items()})
        return pd.DataFrame(lines).fillna("")

    def _settings(self, measured: pd.DataFrame) -> pd.DataFrame:
        columns = {"split": "split", "method": "method", "seconds": "seconds", "note": "settings"}
        table = measured.drop_duplicates(["split", "method"])[list(columns)].rename(columns=columns)
        table["seconds"] = table["seconds"].map("{:.1f}".format)
        return table

    def _draw(self, errors: dict[Any, float], folder: Path) -> str:
        """Dots of all methods, a panel a split; what lies far off is written at the edge."""
        figure, panels = new_figure(len(self.splits), width=3.0, height=4.2)
        labels = [*self.methods, *PUBLISHED]
        for position, (axes, split) in enumerate(zip(panels, self.splits, strict=True)):
            ours = [errors.get((method, split)) for method in self.methods]
            values = [*ours, *(known.get(split) for known in PUBLISHED.values())]
            # Where nothing was run, the published numbers are all there is to see.
            near = [value for value in ours if value is not None] or [value for value in values if value is not None]
            width = max(max(near) - min(near), 0.04 * min(near))
            low, high = min(near) - 0.4 * width, max(near) + 0.8 * width
            for line, (label, value) in enumerate(zip(labels, values, strict=True)):
                if value is None:
                    word = "not run" if label in self.methods else "not published"
                    axes.text(
                        0.5, line, word, ha="center", va="center", fontsize=8, color="#666666", transform=_row(axes)
                    )
                    continue
                if not low <= value <= high:
                    side = (0.98, "right", f"{value:g} →") if value > high else (0.02, "left", f"← {value:g}")
                    axes.text(side[0], line, side[2], ha=side[1], va="center", fontsize=8, transform=_row(axes))
                    continue
                look = style(label)
                fill = look["color"] if label in self.methods else "white"
                axes.plot(value, line, **look, markerfacecolor=fill, markersize=6)
            if "means" in self.methods and errors.get(("means", split)):
                axes.axvline(errors["means", split], color=COLOURS["means"], linewidth=0.8, linestyle=":")
            axes.axhline(len(self.methods) - 0.5, color="#cccccc", linewidth=0.8)
            axes.set(xlim=(low, high), ylim=(len(labels) - 0.5, -0.5), title=split, xlabel="test RMSE")
            axes.set_yticks(range(len(labels)), labels if position == 0 else [""] * len(labels), fontsize=8)
            axes.tick_params(axis="x", labelsize=8)
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        return save_figure(figure, folder, "completion")


def _row(axes: Any) -> Any:
    """Across in shares of the panel, down in lines."""
    return axes.get_yaxis_transform()


def _shown(errors: FloatArray | None, note: str, split: str) -> str:
    """The mean over the starts, and how far they differ where they do."""
    if errors is None:
        return note
    mean, low, high = (f"{value:.{2 if split == 'yahoo_music' else 4}f}" for value in (errors.mean(), *_ends(errors)))
    return mean if low == high else f"{mean} ({low} to {high})"


def _ends(values: FloatArray) -> tuple[float, float]:
    return float(values.min()), float(values.max())

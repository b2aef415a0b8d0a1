"""``lgmd demo``: fill in a photograph of which 70 % of the pixels are hidden."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lgmd._typing import Array, FloatArray
from lgmd.cli._output import naming
from lgmd.estimators import LGMD, PMF
from lgmd.estimators.factorization import Factorization
from lgmd.exceptions import ConvergenceWarning
from lgmd.graphs import ThresholdGraph
from lgmd.metrics import rmse

__all__ = ["demo"]

_RANK = 60


@dataclass(frozen=True)
class Photograph:
    """A picture as a table: its rows are rows, its columns columns in three colours.

    Attributes
    ----------
    picture : ndarray of shape (height, width, 3)
    table : ndarray of shape (height, 3 * width)
        NaN where hidden.
    seen : ndarray of bool, shape (height, width)
    """

    picture: FloatArray
    table: FloatArray
    seen: Array

    def as_picture(self, table: FloatArray) -> FloatArray:
        """A table of colours as a picture."""
        return np.clip(table.reshape(self.picture.shape), 0, 1)

    def hidden_error(self, table: FloatArray) -> float:
        """Root mean squared error of the hidden pixels, colours from 0 to 1."""
        return rmse(self.picture[~self.seen], self.as_picture(table)[~self.seen])


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for pictures and report.")] = Path("lgmd-demo"),
    hidden: Annotated[float, typer.Option(min=0.1, max=0.95, help="Share of hidden pixels.")] = 0.7,
    seed: Annotated[int, typer.Option(help="Which pixels are hidden.")] = 0,
) -> None:
    """Fill in a photograph with holes, with and without learned graphs, and draw the result."""
    from lgmd.cli.pictures import draw_inpainting, draw_row_graph
    from lgmd.report import HeldOutScores, write_report

    console = Console()
    output.mkdir(parents=True, exist_ok=True)
    photograph = _hide_pixels(hidden, seed)
    height, width, _ = photograph.picture.shape
    console.print(f"A photograph of {height} x {width} pixels, {hidden:.0%} of them hidden, {_RANK} factors.")
    console.print("The penalties are chosen on a tenth of the visible pixels; the hidden ones are only scored.")
    models = _fit_best(photograph, seed, console)
    errors = {name: photograph.hidden_error(model.reconstruct()) for name, model in models.items()}
    console.print(_error_table(models, errors))
    pictures = {name: photograph.as_picture(model.reconstruct()) for name, model in models.items()}
    inpainting, graph = output / "inpainting.png", output / "row_graph.png"
    with naming(inpainting):
        draw_inpainting(photograph.picture, photograph.seen, pictures, errors, inpainting)
    with naming(graph):
        draw_row_graph(photograph.picture, models["LGMD"].sample_graph_, graph)
    gain = 1 - errors["LGMD"] / errors["PMF"]
    console.print(f"The error of LGMD on the hidden pixels is {gain:.0%} below that of PMF.")
    rows, columns = np.nonzero(np.isnan(photograph.table))
    truth = photograph.picture.reshape(photograph.table.shape)
    report = write_report(
        models["LGMD"],
        output / "report.html",
        table=photograph.table,
        title="A photograph with hidden pixels",
        held_out=HeldOutScores.of(models["LGMD"], rows, columns, truth[rows, columns]),
        settings={"command": "lgmd demo", "hidden": hidden, "seed": seed},
    )
    console.print(f"Pictures: {inpainting} and {graph}", soft_wrap=True)
    console.print(f"Report: {report}", soft_wrap=True)


def _hide_pixels(hidden: float, seed: int) -> Photograph:
    from sklearn.datasets import load_sample_image

    picture = load_sample_image("flower.jpg").astype(np.float32) / 255
    seen = np.random.default_rng(seed).random(picture.shape[:2]) >= hidden
    table = np.where(seen[..., None], picture, np.nan).reshape(len(picture), -1)
    return Photograph(picture, table, seen)


def _candidates() -> dict[str, list[Factorization]]:
    """What is tried of each model."""

    def settings(penalty: float) -> dict[str, Any]:
        return {
            "inference": "map",
            "sample_penalty": penalty,
            "feature_penalty": penalty,
            "max_iter": 60,
            "tol": 1e-4,
            "random_state": 0,
        }

    def graphs(eta: float) -> dict[str, Any]:
        return {"sample_graph": ThresholdGraph(eta=eta), "feature_graph": ThresholdGraph(eta=eta)}

    return {
        "PMF": [PMF(_RANK, **settings(penalty)) for penalty in (1.5, 3.0, 6.0, 12.0)],
        "LGMD": [
            LGMD(_RANK, **graphs(eta), **settings(penalty))
            for penalty, eta in itertools.product((3.0, 6.0, 12.0), (0.5, 0.7))
        ],
    }


def _fit_best(photograph: Photograph, seed: int, console: Console) -> dict[str, Factorization]:
    """Of each model the candidate that is best on held-out visible pixels, fitted on all visible ones."""
    rng = np.random.default_rng(seed + 1)
    held_out = photograph.seen & (rng.random(photograph.seen.shape) < 0.1)
    wide = np.repeat(held_out, 3, axis=1)
    training = np.where(wide, np.nan, photograph.table)
    candidates = _candidates()
    n_fits = sum(map(len, candidates.values())) + len(candidates)
    best: dict[str, Factorization] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("fitting", total=n_fits)
        for name, models in candidates.items():
            scores = []
            for model in models:
                progress.update(task, description=f"choosing {name}'s penalty")
                estimate = _quiet_fit(model, training).reconstruct()
                scores.append(rmse(photograph.table[wide], estimate[wide]))
                progress.advance(task)
            progress.update(task, description=f"fitting {name}")
            best[name] = _quiet_fit(models[int(np.argmin(scores))], photograph.table)
            progress.advance(task)
    return best


def _quiet_fit(model: Factorization, table: FloatArray) -> Factorization:
    with warnings.catch_warnings():
        # Sixty iterations are plenty for a picture.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table)
    # A model ends its fit on Ctrl-C with what it has; here the demonstration is to end.
    if model.status_ == "interrupted":
        raise KeyboardInterrupt
    return model


def _error_table(models: dict[str, Factorization], errors: dict[str, float]) -> Table:
    table = Table(title="Hidden pixels, colours from 0 to 1")
    for heading in ("model", "RMSE", "PSNR / dB", "penalty", "edges between rows", "between columns"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for name, model in models.items():
        final = model.history_.records[-1]
        table.add_row(
            name,
            f"{errors[name]:.4f}",
            f"{-20 * np.log10(errors[name]):.1f}",
            f"{model.sample_penalty:g}",
            f"{final.sample_edges:,}",
            f"{final.feature_edges:,}",
        )
    return table

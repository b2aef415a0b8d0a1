"""``lgmd reproduce``: run an experiment of the paper and write its page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lgmd.experiments.registry import EXPERIMENTS, find_experiment

__all__ = ["reproduce"]

_HELP = "Which experiment: " + ", ".join(EXPERIMENTS) + ", or all."


def reproduce(
    name: Annotated[str, typer.Argument(help=_HELP)],
    quick: Annotated[bool, typer.Option("--quick", help="A small version, within three minutes.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Folder for tables, pictures and page. [default: lgmd-reproduce]")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes at the same time.")] = 2,
) -> None:
    """Run an experiment of the paper: tables, pictures and a page with the paper's numbers beside ours.

    A run that was interrupted goes on where it stopped when it is started again with the same folder.
    """
    from lgmd.experiments import reproduce as run

    console = Console()
    folder = output or Path("lgmd-reproduce")
    for each in EXPERIMENTS if name == "all" else [name]:
        kind = find_experiment(each)
        experiment = kind.quick() if quick else kind()
        done = run(experiment, folder / (f"{each}-quick" if quick else each), workers=workers)
        console.print(f"{experiment.title}: {done.page}", soft_wrap=True, highlight=False)

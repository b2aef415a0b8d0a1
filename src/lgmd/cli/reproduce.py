"""``lgmd reproduce``: run an experiment of the paper and write its page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lgmd.cli._errors import Interrupted
from lgmd.cli._groups import with_groups
from lgmd.cli._output import naming
from lgmd.cli._talk import Talk
from lgmd.experiments.registry import EXPERIMENTS, find_experiment

__all__ = ["reproduce"]

_HELP = "Which experiment: " + ", ".join(EXPERIMENTS) + ", or all."


@with_groups
def reproduce(
    name: Annotated[str, typer.Argument(help=_HELP)],
    quick: Annotated[bool, typer.Option("--quick", help="A small version, within three minutes.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for tables, pictures and page (default: lgmd-reproduce)."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes at the same time.")] = 2,
    *,
    talk: Talk,
) -> None:
    """Run an experiment of the paper: tables, pictures and a page with the paper's numbers beside ours.

    A run that was interrupted goes on where it stopped when it is started again with the same folder.
    """
    from rich.console import Console

    from lgmd.experiments import reproduce as run

    console = Console(stderr=True, quiet=talk.quiet)
    folder = output or Path("lgmd-reproduce")
    pages: dict[str, Path] = {}
    lines: list[str] = []
    for each in EXPERIMENTS if name == "all" else [name]:
        kind = find_experiment(each)
        experiment = kind.quick() if quick else kind()
        place = folder / (f"{each}-quick" if quick else each)
        try:
            with naming(place):
                done = run(experiment, place, workers=workers, console=console)
        except KeyboardInterrupt:
            raise Interrupted(
                f"Interrupted. What is finished is in {place}; the same command goes on from there."
            ) from None
        pages[each] = done.page
        lines.append(f"{experiment.title}: {done.page}")
    talk.outcome(lines, outcome="reproduced", pages=pages)

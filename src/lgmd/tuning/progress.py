"""A line on the terminal that says how the search is going."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lgmd.tuning.result import Trial

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(n_trials: int, done: int, best: float, show: bool | None) -> Iterator[Callable[[Trial], None]]:
    """A function to call with each trial that has ended; it draws on a terminal, unless told otherwise."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console()
    columns = (
        TextColumn("tuning"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    disabled = not (console.is_terminal if show is None else show)
    with Progress(*columns, console=console, transient=True, disable=disabled) as bar:
        task = bar.add_task(_best_so_far(best), total=n_trials, completed=done)

        def advance(trial: Trial) -> None:
            nonlocal best
            if trial.state == "complete":
                best = min(best, trial.value)
            bar.update(task, advance=1, description=_best_so_far(best))

        yield advance


def _best_so_far(error: float) -> str:
    return f"held-out error {error:.4g}" if error < float("inf") else ""

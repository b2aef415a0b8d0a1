"""How a fit is getting on: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

__all__ = ["Pace", "fit_progress", "spoken_time", "trial_progress"]

# Seconds between two lines where there is no terminal.
_BETWEEN_LINES = 15.0
_FIRST_LINE = 1.0


class Pace:
    """
    Guesses the time left from how fast the changes fall.

    Parameters
    ----------
    tol : float
        Change at which the fit ends.
    """

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._points: list[tuple[float, float]] = []

    def seconds_left(self, iteration: int, max_iter: int, change: float, seconds: float) -> float:
        """Seconds until the change has fallen to ``tol``, at most until ``max_iter``."""
        each = seconds / iteration
        most = (max_iter - iteration) * each
        if not math.isfinite(change) or change == 0:  # graphs are new, and what was learned about the pace is old
            self._points.clear()
            return most
        self._points.append((float(iteration), math.log(abs(change))))
        recent = self._points[-8:]
        if len(recent) < 4 or self._tol <= 0:
            return most
        (first, start), (last, end) = recent[0], recent[-1]
        slope = (end - start) / (last - first)
        if slope >= 0:
            return most
        return min(most, max(0.0, (math.log(self._tol) - end) / slope) * each)


@contextmanager
def fit_progress(label: str, tol: float, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """A callback for ``fit`` that shows where it stands."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(label, tol) as callback:
            yield callback
    else:
        yield _lines(label, tol)


@contextmanager
def _bar(label: str, tol: float) -> Iterator[Callable[[Any], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    pace = Pace(tol)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None, status="starting")

        def show(progress: Any) -> None:
            record = progress.record
            left = pace.seconds_left(progress.iteration, progress.max_iter, record.change, record.seconds)
            status = f"iteration {progress.iteration}, about {spoken_time(left)} left"
            bar.update(task, completed=record.seconds, total=record.seconds + left, status=status)

        yield show


def _lines(label: str, tol: float) -> Callable[[Any], None]:
    pace = Pace(tol)
    told = time.monotonic() - _BETWEEN_LINES + _FIRST_LINE

    def show(progress: Any) -> None:
        nonlocal told
        record = progress.record
        left = pace.seconds_left(progress.iteration, progress.max_iter, record.change, record.seconds)
        if time.monotonic() - told >= _BETWEEN_LINES:
            told = time.monotonic()
            line = f"{label}: iteration {progress.iteration} of at most {progress.max_iter}"
            typer.echo(f"{line}, about {spoken_time(left)} left", err=True)

    return show


@contextmanager
def trial_progress(n_trials: int, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """A callback for ``tune`` that shows how many trials are done and the best error so far."""
    best = math.inf
    started: tuple[float, int] | None = None

    def status(trial: Any) -> str:
        nonlocal best, started
        if trial.state == "complete":
            best = min(best, trial.value)
        done = trial.number + 1
        now = time.monotonic()
        started = started or (now - trial.seconds, trial.number)
        left = (now - started[0]) / (done - started[1]) * max(0, n_trials - done)
        since = " since it was taken up again" if started[1] else ""
        error = f", best held-out error{since} {best:.4g}" if best < math.inf else ""
        return f"trial {done} of {n_trials}{error}, about {spoken_time(left)} left"

    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("trial 1") as line:
            yield lambda trial: line.update(status(trial))
    else:
        told = -math.inf

        def show(trial: Any) -> None:
            nonlocal told
            text = status(trial)
            if time.monotonic() - told >= _BETWEEN_LINES or trial.number + 1 >= n_trials:
                told = time.monotonic()
                typer.echo(text, err=True)

        yield show


def spoken_time(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"

"""Running the cells of an experiment: in parallel, with progress, and from where it stopped the last time."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from lgmd._files import write_text
from lgmd._validation import check_integer
from lgmd.exceptions import InvalidParameterError
from lgmd.experiments.base import Cell, Experiment, Row
from lgmd.experiments.page import write_page

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Reproduction", "reproduce"]

_SETTINGS = "settings.json"
_CELLS = "cells"


@dataclass(frozen=True)
class Reproduction:
    """A finished experiment.

    Attributes
    ----------
    folder : Path
    page : Path
        The HTML page.
    results : DataFrame
        One row for each method and repetition, as in ``results.csv``.
    """

    folder: Path
    page: Path
    results: pd.DataFrame


def reproduce(
    experiment: Experiment, folder: str | os.PathLike[str], *, workers: int = 1, console: Console | None = None
) -> Reproduction:
    """Run an experiment and write its tables, pictures and page.

    Cells that an earlier run with the same settings has left in the folder are not run again, so that an interrupted
    run goes on where it stopped.

    Parameters
    ----------
    experiment : Experiment
    folder : path
        Made if it is not there.
    workers : int, default=1
        Processes that run cells at the same time, each with one thread.
    console : Console, optional
        Where progress goes; standard error by default.

    Returns
    -------
    Reproduction

    Raises
    ------
    InvalidParameterError
        If the folder holds results of other settings.
    """
    import pandas as pd

    workers = check_integer(workers, "workers", minimum=1)
    target = Path(folder)
    _claim(target, experiment)
    cells = experiment.cells()
    todo = [cell for cell in cells if not _is_done(experiment, _path(target, cell))]
    with _Report(console or Console(stderr=True), experiment, len(cells), len(cells) - len(todo)) as report:
        for cell, rows, seconds in _run_all(experiment, todo, workers):
            write_text(_path(target, cell), json.dumps({"cell": dict(cell), "seconds": seconds, "rows": rows}))
            report.advance(cell, seconds)
    stored = [json.loads(_path(target, cell).read_text()) for cell in cells]
    results = pd.DataFrame([{**each["cell"], **row} for each in stored for row in each["rows"]])
    write_text(target / "results.csv", results.to_csv(index=False))
    sections = experiment.sections(results, target)
    page = write_page(target, experiment, sections, sum(each["seconds"] for each in stored))
    return Reproduction(target, page, results)


def _claim(folder: Path, experiment: Experiment) -> None:
    """Make the folder, or see that it holds the same experiment."""
    mine = json.loads(json.dumps({"experiment": experiment.name, **experiment.settings()}))
    path = folder / _SETTINGS
    if path.exists():
        found = json.loads(path.read_text())
        if found != mine:
            different = sorted(key for key in {*found, *mine} if found.get(key) != mine.get(key))
            raise InvalidParameterError(
                f"{folder} holds results of other settings: {', '.join(different)} differ. "
                "Name another folder, or remove this one."
            )
    (folder / _CELLS).mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(mine, indent=2))


def _is_done(experiment: Experiment, path: Path) -> bool:
    return path.exists() and experiment.is_final(json.loads(path.read_text())["rows"])


def _path(folder: Path, cell: Cell) -> Path:
    name = hashlib.sha256(json.dumps(dict(cell), sort_keys=True).encode()).hexdigest()[:16]
    return folder / _CELLS / f"{name}.json"


def _run_all(experiment: Experiment, cells: list[Cell], workers: int) -> Iterator[tuple[Cell, list[Row], float]]:
    if workers == 1 or len(cells) < 2:
        yield from (_run(experiment, cell) for cell in cells)
        return
    from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

    pool, ended = ProcessPoolExecutor(workers, timeout=None), False
    try:
        for future in as_completed([pool.submit(_run, experiment, cell) for cell in cells]):
            yield future.result()
        ended = True
    finally:
        # A cell takes minutes: after an error or Ctrl-C nobody waits for those that are under way.
        pool.shutdown(wait=True, kill_workers=not ended)


def _run(experiment: Experiment, cell: Cell) -> tuple[Cell, list[Row], float]:
    start = time.perf_counter()
    with threadpool_limits(1):
        rows = experiment.run(cell)
    return cell, [{key: _plain(value) for key, value in row.items()} for row in rows], time.perf_counter() - start


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else value


class _Report:
    """Progress with the time left: a bar on a terminal, a line a cell elsewhere."""

    def __init__(self, console: Console, experiment: Experiment, n_cells: int, n_done: int) -> None:
        self._console, self._n_cells, self._n_done = console, n_cells, n_done
        self._first, self._start = n_done, time.perf_counter()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(experiment.name, total=n_cells, completed=n_done)
        if n_done and n_done < n_cells:
            console.print(f"{n_done} of {n_cells} cells are there from an earlier run.")

    def __enter__(self) -> _Report:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, cell: Cell, seconds: float) -> None:
        self._n_done += 1
        self._bar.advance(self._task)
        if not self._console.is_terminal:
            pace = (time.perf_counter() - self._start) / (self._n_done - self._first)
            left = pace * (self._n_cells - self._n_done)
            what = ", ".join(f"{key} {value}" for key, value in cell.items())
            self._console.print(
                f"{self._n_done}/{self._n_cells}  {what}: {seconds:.0f} s, about {left / 60:.0f} min left",
                soft_wrap=True,
                highlight=False,
            )

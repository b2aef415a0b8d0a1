"""Running the cells of an experiment: in parallel, with progress, and from where it stopped the last time."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from lgmd._files import write_text
from lgmd._validation import check_integer
from lgmd.datasets._folder import MissingFileError
from lgmd.exceptions import InvalidParameterError, MissingDataError
from lgmd.experiments.base import Cell, Experiment, Row
from lgmd.experiments.page import write_page
from lgmd.experiments.provenance import describe, record

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
    run goes on where it stopped; one whose file is damaged is. The page says when and with which versions its cells
    were run, however long ago.

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
        If the folder holds results of other settings, or does not say of which.
    MissingDataError
        If data that is needed is not at hand; nothing is written then.
    """
    import pandas as pd

    workers = check_integer(workers, "workers", minimum=1)
    target = Path(folder)
    console = console or Console(stderr=True)
    _check_settings(target, experiment)
    cells = experiment.cells()
    todo = [cell for cell in cells if not _is_done(experiment, target, cell, console)]
    if todo:
        with _fitting_advice(experiment):
            experiment.check_data(todo)
    _claim(target, experiment)
    with _Report(console, experiment, len(cells), len(cells) - len(todo)) as report:
        for cell, rows, seconds in _run_all(experiment, todo, workers):
            content = {"cell": dict(cell), "seconds": seconds, **record(), "rows": rows}
            write_text(_path(target, cell), json.dumps(content))
            report.advance(cell, seconds)
    stored = [json.loads(_path(target, cell).read_text(encoding="utf-8")) for cell in cells]
    results = pd.DataFrame([{**each["cell"], **row} for each in stored for row in each["rows"]])
    write_text(target / "results.csv", results.to_csv(index=False))
    with _fitting_advice(experiment):
        sections = experiment.sections(results, target)
    page = write_page(target, experiment, sections, describe(stored))
    return Reproduction(target, page, results)


def _settings(experiment: Experiment) -> dict[str, Any]:
    """What a folder belongs to, as JSON gives it back."""
    settings: dict[str, Any] = json.loads(json.dumps({"experiment": experiment.name, **experiment.settings()}))
    return settings


def _check_settings(folder: Path, experiment: Experiment) -> None:
    """Raise unless the folder is new or holds the same experiment."""
    path, mine = folder / _SETTINGS, _settings(experiment)
    if not path.exists():
        return
    found = _read_json(path)
    if not isinstance(found, dict):
        raise InvalidParameterError(
            f"{path} is damaged, so that nobody can say which settings the results in {folder} are of. "
            "Name another folder, or remove this one."
        )
    if found != mine:
        different = sorted(key for key in {*found, *mine} if found.get(key) != mine.get(key))
        raise InvalidParameterError(
            f"{folder} holds results of other settings: {', '.join(different)} differ. "
            "Name another folder, or remove this one."
        )


@contextmanager
def _fitting_advice(experiment: Experiment) -> Iterator[None]:
    """Where data is not at hand, say what helps here: an experiment cannot be given another table."""
    try:
        yield
    except MissingFileError as error:
        raise MissingDataError(
            f"{error.in_short} The experiment {experiment.name} takes no other table; synthetic and laplacian need no "
            "data."
        ) from None


def _claim(folder: Path, experiment: Experiment) -> None:
    """Make the folder, and say in it what it is for."""
    (folder / _CELLS).mkdir(parents=True, exist_ok=True)
    write_text(folder / _SETTINGS, json.dumps(_settings(experiment), indent=2))


def _is_done(experiment: Experiment, folder: Path, cell: Cell, console: Console) -> bool:
    path = _path(folder, cell)
    if not path.exists():
        return False
    stored = _read_json(path)
    if not _is_whole(stored, cell):
        console.print(f"{path} is damaged; its cell is run again.", soft_wrap=True, highlight=False, markup=False)
        return False
    return experiment.is_final(stored["rows"])


def _is_whole(stored: Any, cell: Cell) -> bool:
    return (
        isinstance(stored, dict)
        and stored.get("cell") == dict(cell)
        and isinstance(stored.get("seconds"), int | float)
        and isinstance(stored.get("rows"), list)
        and all(isinstance(row, dict) for row in stored["rows"])
    )


def _read_json(path: Path) -> Any:
    """The content of a file; None where it is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None


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

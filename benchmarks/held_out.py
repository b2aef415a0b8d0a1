"""What the benchmarks of quality share: the data folder, fits with their time, and the verdict of hidden entries."""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lgmd.exceptions import ConvergenceWarning
from lgmd.metrics import rmse

FIRST_SEED = 10  # constants of the library were set while looking at tables and masks of the seeds before
BAR = 1.645  # standard deviations either side that hold 90 % of a Gaussian


@dataclass(frozen=True)
class Verdict:
    """What hidden entries say of a fit.

    Attributes
    ----------
    rmse : float
    coverage : float
        Share of the entries that lie inside their 90 % error bars.
    seconds : float
        Of the fit.
    """

    rmse: float
    coverage: float
    seconds: float


def data_file(name: str) -> Path | None:
    """A file of the data folder, or None, said aloud, where ``LGMD_DATA`` does not name one."""
    folder = os.environ.get("LGMD_DATA")
    if not folder:
        say(f"Set LGMD_DATA to the data folder: {name} is needed.")
        return None
    return Path(folder) / name


def fresh(n_seeds: int) -> range:
    """Seeds that no constant of the library was chosen with."""
    return range(FIRST_SEED, FIRST_SEED + n_seeds)


def say(text: str) -> None:
    """Progress goes to stderr, so that stdout holds the table alone."""
    print(text, file=sys.stderr, flush=True)


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def fit_seconds(model, table) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(table)
    return time.perf_counter() - start


def judge(model, table, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Verdict:
    """Fit a variational model and compare it and its error bars with entries that it has not seen."""
    seconds = fit_seconds(model, table)
    mean, std = model.predict(rows, columns, return_std=True)
    return Verdict(rmse(values, mean), float(np.mean(np.abs(values - mean) <= BAR * std)), seconds)


def average(verdicts: list[Verdict]) -> Verdict:
    return Verdict(*(float(np.mean([getattr(v, field) for v in verdicts])) for field in Verdict.__annotations__))

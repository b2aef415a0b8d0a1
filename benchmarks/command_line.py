"""`lgmd fit` on a CSV file of 20,000 x 2,000 with 10 % gaps: what the command adds to the fit, and its report."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest import mock

import numpy as np

from held_out import percent, say
from lgmd import cli
from lgmd.estimators.factorization import Factorization
from lgmd.tables import Table, write_table

SHAPE, RANK, GAPS, NOISE, COMPONENTS = (20_000, 2_000), 12, 0.1, 0.8, 20


def make_table(seed: int) -> np.ndarray:
    """Rows in groups of ten that share two thirds of their variance, columns along a path."""
    rng = np.random.default_rng(seed)
    n, p = SHAPE
    groups = np.repeat(rng.standard_normal((n // 10, RANK)), 10, axis=0)
    rows = 0.8 * groups + 0.6 * rng.standard_normal((n, RANK))
    path = np.cumsum(rng.standard_normal((p, RANK)), axis=0)
    columns = (path - path.mean(axis=0)) / path.std(axis=0)
    table = rows @ columns.T + rng.standard_normal((n, 1)) + NOISE * rng.standard_normal(SHAPE) + 10
    table[rng.random(SHAPE) < GAPS] = np.nan
    return np.round(table, 3)


def main() -> list[str]:
    """Measure and return the lines of a table."""
    seconds = []
    fit = Factorization.fit

    def timed(self: Factorization, *args: object, **parameters: object) -> Factorization:
        start = time.perf_counter()
        model = fit(self, *args, **parameters)
        seconds.append(time.perf_counter() - start)
        return model

    with tempfile.TemporaryDirectory() as folder:
        path, results = Path(folder) / "table.csv", Path(folder) / "results"
        names = [
            np.array([f"{kind} {i}" for i in range(size)]) for kind, size in zip(("unit", "day"), SHAPE, strict=True)
        ]
        write_table(Table(make_table(0), *names), path)
        size = path.stat().st_size
        say(f"{path.name}: {size / 1e6:.0f} MB")
        command = ["fit", str(path), "--output", str(results), "--components", str(COMPONENTS)]
        start = time.perf_counter()
        with mock.patch.object(Factorization, "fit", timed), redirect_stdout(sys.stderr), suppress(SystemExit):
            cli.main(command)
        total = time.perf_counter() - start
        written = sum(file.stat().st_size for file in results.iterdir())
        report = (results / "report.html").stat().st_size
    beyond = total - sum(seconds)
    return [
        "| read | whole command | of it the fit | beyond the fit | written | report |",
        "|---|---|---|---|---|---|",
        f"| {size / 1e6:.0f} MB | {total:.0f} s | {sum(seconds):.0f} s | {beyond:.0f} s, {percent(beyond / total)} "
        f"| {written / 1e6:.0f} MB | {report / 1e6:.1f} MB |",
    ]


if __name__ == "__main__":
    print("\n".join(main()))

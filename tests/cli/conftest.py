"""Running commands as users do, and tables to run them on."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from lgmd.cli import main


@dataclass
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command within this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Ended(ended.value.code or 0, written.out, written.err)

    return run


@pytest.fixture
def start_command(tmp_path):
    """Start the command in a process of its own, in the same folder."""
    running = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "lgmd", *map(str, arguments)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def frame():
    """A small table with names and gaps."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 12)) + 5 + 0.1 * rng.standard_normal((20, 12))
    gaps = rng.random(values.shape) < 0.2
    gaps[np.arange(20), np.arange(20) % 12] = False
    values[gaps] = np.nan
    return pd.DataFrame(
        values, index=[f"station {i}" for i in range(20)], columns=[f"day {j}, noon" for j in range(12)]
    )


@pytest.fixture
def table_file(tmp_path, frame):
    """The small table as a CSV file."""
    path = tmp_path / "table.csv"
    frame.to_csv(path, index_label="station")
    return path


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """Shells start background jobs with Ctrl-C ignored, and what they start inherits that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

"""Ctrl-C and the end of a batch job: the state is kept, and the command goes on from it."""

import json
import os
import shlex
import signal

import numpy as np
import pandas as pd
import pytest

import lgmd
from lgmd import PMF
from lgmd.experiments.methods import search

# Even without a tolerance the bound stops rising after some hundred iterations: a large table makes these last.
LONG = ("--model", "pmf", "-k", 20, "--tol", 0, "--max-iter", 100_000_000, "--held-out", 0, "--no-report")
LONG = (*LONG, "--set", "prior=columns", "--reconstruction", "none")


@pytest.fixture
def large_table(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((120, 10)) @ rng.standard_normal((10, 80)) + rng.standard_normal((120, 80))
    values[rng.random(values.shape) < 0.3] = np.nan
    np.save(tmp_path / "t.npy", values)
    return values


@pytest.fixture
def huge_table(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((1500, 30)) @ rng.standard_normal((30, 800)) + rng.standard_normal((1500, 800))
    values[rng.random(values.shape) < 0.3] = np.nan
    np.save(tmp_path / "t.npy", values.astype(np.float32))
    return values


def wait_for(process, words):
    line = ""
    while words not in line:
        line = process.stderr.readline()
        assert line, "the command ended"
    return line


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_state_is_kept_and_gone_on_from(ending, start_command, command, huge_table, tmp_path):
    process = start_command("fit", "t.npy", "-o", "my results", *LONG)
    wait_for(process, "iteration")
    process.send_signal(ending)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "lgmd fit t.npy -o 'my results'" in err.splitlines()[-1]
    assert err.rstrip().endswith("--resume")
    assert sorted(os.listdir(tmp_path)) == ["my results.checkpoint", "t.npy"]

    # The last --max-iter counts, and is below what has been done: what follows only writes the results.
    ended = command("fit", "t.npy", "-o", "my results", *LONG, "--max-iter", 1, "--resume", "--json")
    assert ended.code == 0, ended.err
    iterations = json.loads(ended.out)["result"]["iterations"]
    assert iterations >= 1
    assert f"after {iterations} iterations" in err
    assert sorted(os.listdir(tmp_path)) == ["my results", "t.npy"]
    assert np.isfinite(PMF.load("my results/model.lgmd").predict(*np.nonzero(np.isnan(huge_table[:5])))).all()


def test_a_checkpoint_of_other_data_is_refused(command, large_table, tmp_path, monkeypatch):
    def stop(self, data, callback=None, checkpoint=None):
        return real(self, data, callback=self._stop, checkpoint=checkpoint)

    real = PMF.fit
    monkeypatch.setattr(PMF, "_stop", lambda self, progress: os.kill(os.getpid(), signal.SIGINT), raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(PMF, "fit", stop)
        ended = command("impute", "t.npy", "-o", "filled.npy", "--model", "pmf", "-k", 3)
    assert ended.code == 130
    assert "filled.npy.checkpoint" in ended.err
    assert "iteration" in ended.err
    assert sorted(os.listdir(tmp_path)) == ["filled.npy.checkpoint", "t.npy"]
    other = command("impute", "t.npy", "-o", "filled.npy", "--model", "pmf", "-k", 4, "--resume")
    assert other.code == 1
    assert "other data or other settings" in other.err
    again = command("impute", "t.npy", "-o", "filled.npy", "--model", "pmf", "-k", 3, "--max-iter", 3)
    assert again.code == 1
    assert "--resume" in again.err
    assert "--force" in again.err
    lean = ("--model", "pmf", "--max-iter", 3, "--quiet")
    assert command("impute", "t.npy", "-o", "filled.npy", "-k", 4, "--force", *lean).code == 0
    assert sorted(os.listdir(tmp_path)) == ["filled.npy", "t.npy"]
    nothing = command("impute", "t.npy", "-o", "other.npy", "--resume", *lean)
    assert nothing.code == 1
    assert "no checkpoint" in nothing.err


@pytest.mark.parametrize(
    ("verb", "output", "words"), [("fit", "out", "--held-out 0 --no-report"), ("impute", "out.npy", "")]
)
def test_the_command_that_is_printed_goes_on_as_it_stands(
    verb, output, words, command, large_table, tmp_path, monkeypatch
):
    """Also of a run that replaces older results, where --force must not throw the state away."""
    lean = (verb, "t.npy", "-o", output, "--model", "pmf", "-k", "3", "--max-iter", "3", "--quiet", *words.split())
    assert command(*lean).code == 0
    real = PMF.fit

    def stopped(self, data, callback=None, checkpoint=None):
        return real(self, data, callback=lambda _: os.kill(os.getpid(), signal.SIGINT), checkpoint=checkpoint)

    with monkeypatch.context() as patch:
        patch.setattr(PMF, "fit", stopped)
        ended = command(*lean, "--force")
    assert ended.code == 130
    assert "--force replaces old results only" in ended.err
    assert os.listdir(tmp_path / f"{output}.checkpoint")
    started = []

    def resumed(self, data, callback=None, checkpoint=None):
        started.append(checkpoint.exists())
        return real(self, data, callback=callback, checkpoint=checkpoint)

    printed = shlex.split(ended.err.rpartition("go on with: ")[2])
    assert printed[0] == "lgmd"
    monkeypatch.setattr(PMF, "fit", resumed)
    again = command(*printed[1:])
    assert again.code == 0, again.err
    assert started == [True]
    assert sorted(os.listdir(tmp_path)) == [output, "t.npy"]


def test_an_interruption_before_the_fit_leaves_nothing(command, large_table, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("lgmd.tables.read_table", stop)
    ended = command("fit", "t.npy", "-o", "out", "--json")
    assert ended.code == 130
    assert ended.err == "Interrupted. Nothing was written.\n"
    assert json.loads(ended.out)["outcome"] == "interrupted"
    assert os.listdir(tmp_path) == ["t.npy"]


def test_an_interruption_of_the_start_leaves_nothing(command, large_table, tmp_path, monkeypatch):
    def stop(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(PMF, "fit", stop)
    ended = command("fit", "t.npy", "-o", "out", "--model", "pmf", "--quiet")
    assert ended.code == 130
    assert "Nothing was written" in ended.err
    assert os.listdir(tmp_path) == ["t.npy"]


def test_an_interruption_while_writing_keeps_the_fit(command, large_table, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    lean = ("--model", "pmf", "-k", 3, "--max-iter", 3, "--held-out", 0, "--no-report", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr("lgmd.cli._fit_files.write_table", stop)
        ended = command("fit", "t.npy", "-o", "out", *lean)
    assert ended.code == 130
    assert "--resume" in ended.err
    assert sorted(os.listdir(tmp_path)) == ["out.checkpoint", "t.npy"]
    assert command("fit", "t.npy", "-o", "out", "--resume", *lean).code == 0
    assert sorted(os.listdir(tmp_path)) == ["out", "t.npy"]


def test_the_first_of_two_fits_is_gone_on_from(command, large_table, tmp_path, monkeypatch):
    """The fit without held-out entries is not done again."""
    calls = []
    real = PMF.fit

    def fit(self, data, callback=None, checkpoint=None):
        calls.append(checkpoint.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, data, callback=callback, checkpoint=checkpoint)

    lean = ("--model", "pmf", "-k", 3, "--max-iter", 3, "--no-report", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(PMF, "fit", fit)
        assert command("fit", "t.npy", "-o", "out", *lean).code == 130
        assert os.listdir(tmp_path / "out.checkpoint") == ["held_out.npz"]
        assert command("fit", "t.npy", "-o", "out", "--resume", *lean).code == 0
    assert calls == ["held_out.npz", "fit.npz"] * 2
    assert command("fit", "t.npy", "-o", "fresh", *lean).code == 0
    one, two = (pd.read_csv(tmp_path / name / "held_out.csv") for name in ("out", "fresh"))
    pd.testing.assert_frame_equal(one, two, rtol=1e-9)


@pytest.mark.parametrize("name", ["PMF", "LGMDPlus"])
def test_an_interruption_ends_an_experiment(command, tmp_path, monkeypatch, name):
    """Of a search that tunes a method, or of a fit with defaults: no figure may come from what was cut short."""
    model = getattr(lgmd, name)
    real = model.fit

    def interrupted(self, *args, **options):
        return real(self, *args, **options | {"callback": lambda _: os.kill(os.getpid(), signal.SIGINT)})

    with monkeypatch.context() as patch:
        patch.setattr(model, "fit", interrupted)
        ended = command("reproduce", "synthetic", "--quick", "--workers", 1, "--output", "out")
    assert ended.code == 130
    assert "the same command goes on" in ended.err
    assert os.listdir(tmp_path / "out" / "synthetic-quick" / "cells") == []


def test_a_search_that_is_cut_short_ends_an_experiment(large_table):
    calls = []

    class Interrupted(PMF):
        def fit(self, *args, **options):
            calls.append(self.sample_penalty)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return super().fit(*args, **options)

    with pytest.raises(KeyboardInterrupt):
        search(Interrupted(3, "map", max_iter=3), large_table, 4, space="penalty", random_state=0)
    assert len(calls) == 3


def test_an_interruption_ends_the_demonstration(command, tmp_path, monkeypatch):
    real = PMF.fit

    def interrupted(self, table):
        return real(self, table, callback=lambda _: os.kill(os.getpid(), signal.SIGINT))

    monkeypatch.setattr(PMF, "fit", interrupted)
    ended = command("demo", "--output", "out")
    assert ended.code == 130
    assert os.listdir(tmp_path / "out") == []

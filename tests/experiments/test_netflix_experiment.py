"""The Netflix experiment on a small table in the form of the real one."""

from __future__ import annotations

import os
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from lgmd.cli import app
from lgmd.datasets import make_matrix_normal
from lgmd.exceptions import MissingDataError
from lgmd.experiments import penalty_check, reproduce
from lgmd.experiments.netflix import Netflix
from lgmd.experiments.real_tables import METHODS

TINY = Netflix(40, 30, 1, (0.5,), (0.7,), n_components=3, n_trials=2)


@pytest.fixture(scope="module")
def ratings_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "netflix").mkdir()
    liking = make_matrix_normal(50, 40, 2, noise=0.3, random_state=0).noisy
    ratings = np.clip(np.rint(3 + liking / liking.std()), 1, 5)
    rated = np.random.default_rng(0).random(ratings.shape) < 0.8
    np.savez(folder / "netflix" / "netflix_1000.npz", ratings=np.where(rated, ratings, 0).astype(np.int8))
    return folder


@pytest.fixture(scope="module")
def done(ratings_folder, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LGMD_DATA", str(ratings_folder))
        return reproduce(TINY, tmp_path_factory.mktemp("netflix"), console=Console(file=StringIO()))


def test_pairs_without_a_rating_stay_gaps(ratings_folder, monkeypatch):
    monkeypatch.setenv("LGMD_DATA", str(ratings_folder))
    values = TINY.values()
    assert values.shape == (40, 30)
    assert 0.1 < np.isnan(values).mean() < 0.3
    assert set(np.unique(values[~np.isnan(values)])) <= {1, 2, 3, 4, 5}


def test_every_method_is_judged_at_every_level(done):
    assert done.results.groupby(["task", "level"])["method"].agg(list).to_dict() == {
        ("denoising", 0.5): list(METHODS),
        ("completion", 0.7): list(METHODS),
        ("penalty", 0.5): [
            "PMF, penalty / 16",
            "PMF, penalty / 4",
            "PMF",
            "PMF, penalty x 4",
            "dGRMD",
            "LGMD",
            "LGMD+",
        ],
    }
    # Ratings follow two factors closely, so that every method is nearer than the overall mean.
    assert (done.results.loc[done.results["task"] != "penalty", "relative"] < 0.9).all()


def test_cells_that_lack_a_method_are_run_again():
    assert TINY.is_final([{"method": "PMF", "rmse": 1.0}])
    assert not TINY.is_final([{"method": "PMF", "hidden": 1.0}])
    assert TINY.is_final([{"method": name, "hidden": 1.0} for name in penalty_check.METHODS])


def test_smaller_penalties_follow_the_noise_of_the_ratings(ratings_folder, monkeypatch):
    monkeypatch.setenv("LGMD_DATA", str(ratings_folder))
    rows = pd.DataFrame(penalty_check.measure(TINY.values(), 0.01, 3, 6, [0, 1])).groupby("method").mean()
    pmf = rows.loc[["PMF, penalty / 16", "PMF, penalty / 4", "PMF", "PMF, penalty x 4"]]
    assert pmf["seen"].is_monotonic_increasing
    # The penalty was tuned on held-out entries, and the hidden ones agree.
    assert pmf["hidden"].idxmin() == "PMF"
    assert (pmf["hidden"] > pmf["seen"]).all()


def test_the_page_says_what_was_run(done):
    page = done.page.read_text()
    for text in (
        "Netflix Prize",
        "standard deviation",
        "curves without numbers",
        "Here: 40 x 30",
        "What denoising measures here",
    ):
        assert text in page
    assert (done.folder / "netflix_rmse.svg").stat().st_size > 1000


def test_without_data_the_error_says_what_to_get(tmp_path, monkeypatch):
    monkeypatch.setenv("LGMD_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="Netflix Prize"):
        reproduce(TINY, tmp_path / "out", console=Console(file=StringIO()))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("LGMD_DATA"), reason="LGMD_DATA does not name the data folder")
def test_the_quick_command_for_netflix(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "netflix", "--quick", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "netflix-quick" / "index.html").exists()

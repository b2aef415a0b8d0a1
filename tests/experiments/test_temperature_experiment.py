"""The temperature experiment, and what it shares with the Netflix one, on small tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import StringIO
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from rich.console import Console
from typer.testing import CliRunner

from lgmd.cli import app
from lgmd.datasets import TemperatureData, make_matrix_normal
from lgmd.estimators import PMF, LGMDPlus
from lgmd.exceptions import MissingDataError
from lgmd.experiments import clustering, find_experiment, real_tables, reproduce, running_time
from lgmd.experiments.netflix import Netflix
from lgmd.experiments.real_tables import METHODS, RealTable, cut, damaged
from lgmd.experiments.temperature import Temperature
from lgmd.experiments.temperature_structure import edge_rows, great_circle
from lgmd.experiments.temperature_structure import section as structure_section

TINY = Temperature(20, 30, 1, (0.5,), (0.7,), 3, 2, n_printed_iterations=5, n_convex_iterations=1, n_convex_nodes=0)


def write_stations(folder):
    """A file like the real one: 5 x 6 stations on a grid, neighbours alike, 60 days from New Year 2018."""
    rng = np.random.default_rng(0)
    latitude, longitude = (each.ravel() for each in np.meshgrid(np.linspace(30, 48, 5), np.linspace(-120, -75, 6)))
    days = np.arange(60)
    waves = [np.cos(days / period) for period in (5, 9, 14)]
    pulls = [latitude / 10, longitude / 20, (latitude - 40) * (longitude + 98) / 100]
    values = 60 - latitude[:, None] + 5 * sum(np.outer(pull, wave) for pull, wave in zip(pulls, waves, strict=True))
    (folder / "temperature").mkdir()
    names = np.array([f"S{number}" for number in range(30)])
    np.savez(
        folder / "temperature" / "us_daily_mean_2017_2021.npz",
        temp_f=(values + rng.standard_normal((30, 60))).astype(np.float32),
        date=np.datetime_as_string(np.datetime64("2018-01-01") + days),
        **dict.fromkeys(("station_id", "name", "state"), names),
        lat=latitude,
        lon=longitude,
        alt_m=np.zeros(30),
        clean=np.ones(30, dtype=bool),
        idx150=np.arange(30),
        window_2018_2019=days,
    )


@pytest.fixture(scope="module")
def stations(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    write_stations(data)
    return data


@pytest.fixture(scope="module")
def done(tmp_path_factory, stations):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LGMD_DATA", str(stations))
        # Every model is timed in test_running_time.
        patch.setattr(running_time, "MODELS", {"PMF": PMF, "LGMD+": LGMDPlus})
        return reproduce(TINY, tmp_path_factory.mktemp("temperature"), console=Console(file=StringIO()))


@dataclass(frozen=True)
class Small(RealTable):
    """A table of rank two without noise, some hidden entries of which can be spoilt."""

    name: ClassVar[str] = "small"
    title: ClassVar[str] = "small"
    unit: ClassVar[str] = "units"
    story: ClassVar[str] = "A small table."

    n_rows: int = 30
    n_columns: int = 40
    n_repetitions: int = 1
    noises: tuple[float, ...] = (0.5,)
    shares: tuple[float, ...] = (0.8,)
    n_components: int = 4
    n_trials: int = 2
    spoilt: float = 0.0

    @classmethod
    def quick(cls):
        return cls()

    def values(self):
        values = make_matrix_normal(30, 40, 2, noise=0.0, random_state=5).truth
        _, judged = damaged(values, "completion", self.shares[0], self.seed)
        return np.where(judged, values + self.spoilt, values)


def test_noise_has_the_asked_for_size_and_gaps_stay():
    values = np.random.default_rng(0).normal(5.0, 3.0, (200, 200))
    values[0, :50] = np.nan
    table, judged = damaged(values, "denoising", 0.5, 7)
    assert np.array_equal(np.isnan(table), np.isnan(values))
    assert np.array_equal(judged, ~np.isnan(values))
    assert np.nanstd(table - values) == pytest.approx(1.5, rel=0.02)
    louder, _ = damaged(values, "denoising", 1.0, 7)
    np.testing.assert_allclose((louder - values)[judged], 2 * (table - values)[judged])


def test_entries_are_judged_where_they_are_hidden_and_nowhere_else():
    values = np.random.default_rng(0).standard_normal((200, 200))
    values[0, :50] = np.nan
    table, judged = damaged(values, "completion", 0.3, 7)
    seen = ~np.isnan(table)
    assert not (seen & judged).any()
    assert np.array_equal(seen | judged, ~np.isnan(values))
    assert seen.sum() / (seen | judged).sum() == pytest.approx(0.3, abs=0.01)
    more, _ = damaged(values, "completion", 0.6, 7)
    assert not np.isnan(more[seen]).any()
    assert not np.array_equal(seen, ~np.isnan(damaged(values, "completion", 0.3, 8)[0]))


@pytest.mark.slow
def test_a_table_of_low_rank_is_completed_without_a_look_at_hidden_entries():
    cell = {"task": "completion", "level": 0.8}
    errors = {"rmse", "relative", "seconds"}
    for row, other in zip(Small().run(cell), Small(spoilt=100.0).run(cell), strict=True):
        assert row["relative"] < 0.1, row["method"]
        assert other["rmse"] > 50
        assert {k: v for k, v in row.items() if k not in errors} == {k: v for k, v in other.items() if k not in errors}


def test_repetitions_have_their_own_noise_and_one_penalty(monkeypatch):
    monkeypatch.setattr(real_tables, "METHODS", ("PMF",))
    monkeypatch.setattr(real_tables, "TUNED", ("PMF",))
    rows = Small(n_repetitions=3).run({"task": "denoising", "level": 0.5})
    assert [row["repetition"] for row in rows] == [0, 1, 2]
    assert len({row["rmse"] for row in rows}) == 3
    assert len({row["sample_penalty"] for row in rows}) == 1


def test_a_cut_has_rows_from_all_over_the_table_and_the_first_columns():
    values, rows = cut(np.arange(100.0).reshape(10, 10), 4, 3)
    assert rows.tolist() == [0, 3, 6, 9]
    assert values[:, 0].tolist() == [0, 30, 60, 90]
    assert values.shape == (4, 3)


def three_stations(latitude, longitude):
    words = np.array(["a", "b", "c"])
    days = np.arange("2018-01-01", "2018-02-05", dtype="datetime64[D]")
    values = np.arange(3.0 * len(days)).reshape(3, -1)
    return TemperatureData(values, words, words, words, np.array(latitude), np.array(longitude), np.zeros(3), days)


def test_kilometres_follow_the_sphere():
    data = three_stations([0.0, 90.0, 0.0], [0.0, 0.0, 90.0])
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 0, 2])
    np.testing.assert_allclose(great_circle(data, first, second), [10007.5, 10007.5, 10007.5, 0.0], atol=1)


def test_every_method_is_judged_in_both_tasks(done):
    rows = done.results[done.results["task"].isin(["denoising", "completion"])]
    found = rows.groupby(["task", "method"])["repetition"].agg(list)
    assert set(found.index.get_level_values("method")) == set(METHODS)
    assert all(repetitions == [0] for repetitions in found)
    assert np.isfinite(rows[["rmse", "relative", "seconds", "rank", "row edges"]].to_numpy(dtype=float)).all()
    # Noise of half a standard deviation is added; whoever denoises leaves less.
    assert (rows.loc[rows["task"] == "denoising", "relative"] < 0.5).all()
    tuned = rows["method"].isin(["PMF", "dGRMD", "LGMD, MAP"])
    assert np.array_equal(rows["sample_penalty"].notna(), tuned)


def test_the_caption_of_the_map_has_the_length_of_its_edges(tmp_path):
    precision = scipy.sparse.csr_array(np.array([[2.0, -0.5, 0.3], [-0.5, 2.0, 0.0], [0.3, 0.0, 2.0]]))
    rows = edge_rows(SimpleNamespace(sample_graph_=precision))
    found = [(row["first"], row["second"], row["weight"]) for row in rows]
    assert found == [(0, 1, 0.5), (0, 2, -0.3)]
    data = three_stations([0.0, 2.0, 0.0], [0.0, 0.0, 1.0])
    text = structure_section(data, pd.DataFrame(rows), tmp_path).text
    # A degree of a great circle is 111.19 km; the third pair is the root of five degrees apart.
    assert "There are 2 edges, 50 % of them" in text
    assert "The median edge is 167 km long; the median pair of stations is 222 km apart." in text
    assert "no edge" in structure_section(data, pd.DataFrame(), tmp_path).text


def test_the_page_has_the_papers_seconds_and_all_pictures(done):
    page = done.page.read_text()
    for text in ("the paper, 1000 iterations", "2,500 s", "LGMD+ against dGRMD", "curves without numbers"):
        assert text in page
    for picture in ("temperature_rmse", "temperature_structure"):
        assert (done.folder / f"{picture}.svg").stat().st_size > 1000
        assert (done.folder / f"{picture}.png").stat().st_size > 1000


def test_the_page_of_a_cut_is_headed_by_its_own_size(done):
    page = done.page.read_text()
    assert "<h1>Temperature: 20 weather stations over 30 days</h1>" in page
    assert "denoising: the paper, 1000 iterations, 150 x 669" in page
    assert "denoising: ours by MAP, to convergence, 20 x 30" in page
    assert Temperature().heading() == "Temperature: 150 weather stations over 669 days"
    assert Netflix.quick().heading() == "Netflix: 200 users and 200 films"


@pytest.mark.parametrize("name", ["temperature", "netflix", "clustering", "completion"])
def test_without_data_nothing_is_written_and_the_advice_can_be_followed(name, tmp_path, monkeypatch):
    monkeypatch.setenv("LGMD_DATA", str(tmp_path / "nowhere"))
    clustering._load.cache_clear()
    experiment = find_experiment(name).quick()
    with pytest.raises(
        MissingDataError, match=r"Set LGMD_DATA to the folder that holds .*a numpy archive of"
    ) as caught:
        reproduce(experiment, tmp_path / "out", workers=2, console=Console(file=StringIO()))
    assert not list(tmp_path.iterdir())
    assert "lgmd.datasets" not in str(caught.value)
    assert "folder=" not in str(caught.value)
    assert f"{name} takes no other table" in str(caught.value)


def test_the_page_of_a_finished_run_needs_the_data_too(done, tmp_path, monkeypatch):
    monkeypatch.setenv("LGMD_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="temperature takes no other table"):
        reproduce(TINY, done.folder, console=Console(file=StringIO()))


def test_a_finished_run_is_not_run_again(done, stations, monkeypatch):
    monkeypatch.setenv("LGMD_DATA", str(stations))
    monkeypatch.setattr(Temperature, "run", lambda *_: pytest.fail("a cell was run again"))
    again = reproduce(TINY, done.folder, console=Console(file=StringIO()))
    assert again.results.equals(done.results)


def test_quick_and_full_runs_have_the_same_kinds_of_cells():
    quick, full = Temperature.quick().cells(), Temperature().cells()
    assert {cell["task"] for cell in quick} == {cell["task"] for cell in full}
    assert len(full) == 15


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("LGMD_DATA"), reason="LGMD_DATA does not name the data folder")
def test_the_quick_command_for_temperature(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "temperature", "--quick", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "temperature-quick" / "index.html").exists()

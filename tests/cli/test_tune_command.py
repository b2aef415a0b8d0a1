"""``lgmd tune`` and ``lgmd report``."""

import json
import os
import re
import shutil
import signal

import numpy as np
import pandas as pd
import pytest

from lgmd import LGMD, PMF, LGMDImputer
from lgmd.cli._search_space import parse_space
from lgmd.exceptions import InvalidParameterError
from lgmd.tuning.parameters import targets

SMALL = ("--model", "pmf", "-k", 2, "--max-iter", 3, "--quiet")


def test_the_best_settings_can_be_fitted(command, table_file, tmp_path):
    ended = command("tune", table_file, "-o", "tuned", "--trials", 3, "--scale", "--json", *SMALL)
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert sorted(os.listdir("tuned")) == ["best.json", "trials.csv", "trials.sqlite", "tuning.png", "tuning.svg"]
    trials = pd.read_csv("tuned/trials.csv")
    assert len(trials) == found["trials"] == 3
    assert found["held_out_rmse"] == pytest.approx(trials["value"].min())
    best = json.loads((tmp_path / "tuned/best.json").read_text())
    assert best["parameters"]["penalty"] == pytest.approx(trials.loc[trials["value"].idxmin(), "param_penalty"])
    fitted = command("fit", table_file, "-o", "out", "--settings", "tuned/best.json", "--held-out", 0, "--no-report")
    assert fitted.code == 0, fitted.err
    model = PMF.load("out/model.lgmd")
    assert model.sample_penalty == model.feature_penalty == best["parameters"]["penalty"]
    assert model.max_iter == 3
    assert json.loads((tmp_path / "out/settings.json").read_text())["reading"] == {"scale": True}


def test_a_search_goes_on_after_its_end_and_after_an_interruption(command, table_file, tmp_path, monkeypatch):
    search = ("--search", "penalty=0.1:10:log")
    assert command("tune", table_file, "-o", "all", "--trials", 5, *search, *SMALL).code == 0
    assert command("tune", table_file, "-o", "tuned", "--trials", 2, *search, *SMALL).code == 0
    assert command("tune", table_file, "-o", "tuned", "--trials", 3, *search, *SMALL).code == 1
    assert command("tune", table_file, "-o", "tuned", "--trials", 3, "--resume", *search, *SMALL).code == 0
    assert len(pd.read_csv("tuned/trials.csv")) == 3

    real = PMF.fit
    fits = []

    def fit(self, *arguments, **options):
        fits.append(self)
        if len(fits) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(PMF, "fit", fit)
        ended = command("tune", table_file, "-o", "tuned", "--trials", 5, "--resume", *search, *SMALL)
    assert ended.code == 130
    assert "--resume --trials 4" in ended.err
    assert len(pd.read_csv("tuned/trials.csv")) == 3
    assert command("tune", table_file, "-o", "tuned", "--trials", 5, "--resume", *search, *SMALL).code == 0
    one, two = (pd.read_csv(f"{name}/trials.csv") for name in ("all", "tuned"))
    assert len(two) == 5
    pd.testing.assert_frame_equal(one[["param_penalty", "value"]][:4], two[["param_penalty", "value"]][:4])
    assert sorted(os.listdir(tmp_path)) == ["all", "table.csv", "tuned"]


def test_failures_leave_nothing(command, table_file, tmp_path):
    for options, words in (
        (("--search", "magic"), "magic"),
        (("--search", "penalty=1:2:3"), "LOW:HIGH"),
        (("--held-out", "2"), "--held-out"),
        (("--settings", "nowhere.json"), "nowhere.json"),
        (("--search", "penalty=1:2", "--inference", "variational"), "penalties belong to --inference map"),
        (("--resume",), "no checkpoint"),
    ):
        ended = command("tune", table_file, "-o", "tuned", *options, *SMALL)
        assert ended.code == 1
        assert words in ended.err
        assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("name", ["n_components", "components", "--components"])
def test_a_parameter_is_searched_by_either_of_its_names(name, command, table_file):
    searched = (f"--search={name}=1:2", "--trials", 2, "--model", "pmf", "--inference", "map", "--max-iter", 2, "-q")
    ended = command("tune", table_file, "-o", "tuned", *searched)
    assert ended.code == 0, ended.err
    assert "param_n_components" in pd.read_csv("tuned/trials.csv")


def test_the_names_that_an_error_lists_are_accepted(command, table_file):
    ended = command("tune", table_file, "-o", "tuned", "--search", "magic", *SMALL)
    assert "has no parameter 'magic'. It has" in ended.err
    assert "--" not in ended.err.partition("It has")[2]
    listed = re.findall(r"'(\w+)'", ended.err.partition("It has")[2].partition(". The")[0])
    assert {"n_components", "random_state", "max_iter", "allow_empty"} <= set(listed)
    for name in parse_space(listed):
        assert targets(PMF(), name) == (name,)


def test_settings_are_named_either_way_and_not_tuned(command, table_file):
    lean = ("--max-iter", 2, "--model", "pmf", "--held-out", 0, "--no-report", "-q")
    refused = command("fit", table_file, "-o", "out", "--set", "nope=3", *lean)
    assert refused.code == 1
    assert "PMF has no parameter 'nope'. It has" in refused.err
    assert "tune" not in refused.err
    for number, name in enumerate(("n_components", "components", "--components")):
        assert command("fit", table_file, "-o", f"out{number}", "--set", f"{name}=3", *lean).code == 0
        with open(f"out{number}/settings.json", encoding="utf-8") as file:
            assert json.load(file)["parameters"]["n_components"] == 3


def test_a_search_that_cannot_go_on_says_what_to_do_in_options(command, table_file, tmp_path):
    lean = ("--model", "pmf", "--inference", "map", "--max-iter", 2, "--trials", 2, "-q")
    assert command("tune", table_file, "-o", "tuned", "--search", "penalty=1:2", *lean).code == 0
    ended = command("tune", table_file, "-o", "tuned", "--search", "penalty=1:3", "--held-out", 0.2, "--resume", *lean)
    assert ended.code == 1
    assert "was begun with another --search and another --held-out" in ended.err
    assert "or --force without --resume to start anew" in ended.err
    assert "study_name" not in ended.err
    assert "storage" not in ended.err
    assert os.path.join("tuned", "trials.sqlite") in ended.err
    assert "checkpoint" not in ended.err
    assert sorted(os.listdir(tmp_path)) == ["table.csv", "tuned"]
    gone = command("tune", "nowhere.csv", "-o", "tuned", "--search", "penalty=1:2", "--resume", *lean)
    assert gone.code == 1
    assert sorted(os.listdir(tmp_path)) == ["table.csv", "tuned"]
    assert command("tune", table_file, "-o", "tuned", "--search", "penalty=1:3", "--force", *lean).code == 0


def test_spaces_are_written_as_people_write_them():
    assert parse_space([]) is None
    assert parse_space(["penalty", "prior=columns,shared", "k=1:5", "eta=0.1:1:log"]) == {
        "penalty": None,
        "prior": ["columns", "shared"],
        "k": (1, 5),
        "eta": (0.1, 1, "log"),
    }
    for bad in ("", "=1:2", "a=", "a=1:x", "a=1:2:linear"):
        with pytest.raises(InvalidParameterError, match="--search"):
            parse_space([bad])


def test_reports_of_folders_and_of_files(command, table_file, frame, tmp_path):
    assert command("fit", table_file, "-o", "out", "--scale", *SMALL).code == 0
    assert command("report", "out", "-o", "whole.html", "--table", table_file).out == "Report: whole.html\n"
    assert command("report", "out/model.lgmd", "-o", "bare.html", "--title", "My <b>title</b>", "-q").code == 0
    whole, bare = ((tmp_path / name).read_text(encoding="utf-8") for name in ("whole.html", "bare.html"))
    assert "PMF of table.csv" in whole
    assert "My &lt;b&gt;title" in bare
    assert "station 7" in bare
    assert len(bare) < len(whole)
    refused = command("report", "out", "-o", "bare.html")
    assert refused.code == 1
    assert "--force" in refused.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda frame: frame.iloc[::-1],
            "rows stand in another order. Row 1 is 'station 19', where the model has 'station 0'",
        ),
        (lambda frame: frame.rename({"station 3": "x"}), "rows have other names. Row 4 is 'x', .* has 'station 3'"),
        (lambda frame: frame.rename(columns={"day 7, noon": "x"}), "columns have other names. Column 8 is 'x', where"),
    ],
)
@pytest.mark.parametrize("model", ["out", "imputer.lgmd"])
def test_reports_refuse_tables_of_other_names(model, change, words, command, table_file, frame, tmp_path):
    if model == "out":
        assert command("fit", table_file, "-o", "out", "--held-out", 0, "--no-report", *SMALL).code == 0
    else:
        LGMDImputer(PMF(2, tol=1e-2)).fit(frame).save(tmp_path / model)
    change(frame).to_csv("other.csv", index_label="station")
    refused = command("report", model, "-o", "page.html", "--table", "other.csv")
    assert refused.code == 1
    assert re.search(f"other.csv is not the table that was fitted: its {words}", refused.err)
    assert not (tmp_path / "page.html").exists()
    assert command("report", model, "-o", "page.html", "--table", table_file, "-q").code == 0


def test_days_are_the_same_with_and_without_their_midnights(command, frame, tmp_path):
    frame.index = pd.date_range("2018-01-01", periods=len(frame))
    PMF(2, tol=1e-2).fit(frame.set_axis(frame.index.map(lambda day: f"{day.date()} 00:00:00"))).save("days.lgmd")
    frame.to_csv("t.csv", index_label="date")
    assert command("report", "days.lgmd", "-o", "page.html", "--table", "t.csv", "-q").code == 0


def test_reports_of_imputers(command, frame, tmp_path):
    LGMDImputer(PMF(2, tol=1e-2)).fit(frame).save(tmp_path / "imputer.lgmd")
    assert command("report", "imputer.lgmd", "-o", "page.html", "--quiet").code == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.lgmd", None, "There is no file"),
        ("junk.lgmd", b"junk", "cannot be loaded"),
        ("table.csv", b"n,a,b\nx,1,2\ny,3,4\n", "table.csv is no model of lgmd, so it cannot be loaded"),
        ("folder", "folder", "has no model.lgmd"),
    ],
)
def test_what_is_no_model(name, content, words, command, tmp_path):
    if content == "folder":
        (tmp_path / name).mkdir()
    elif content:
        (tmp_path / name).write_bytes(content)
    ended = command("report", name, "-o", "page.html")
    assert ended.code == 1
    assert words in ended.err
    assert "pickle" not in ended.err
    assert not (tmp_path / "page.html").exists()


def test_a_table_of_another_shape(command, table_file, frame, tmp_path):
    assert command("fit", table_file, "-o", "out", "--held-out", 0, "--no-report", *SMALL).code == 0
    frame.iloc[:10].to_csv(tmp_path / "part.csv")
    ended = command("report", "out", "-o", "page.html", "--table", "part.csv")
    assert ended.code == 1
    assert "10 x 12" in ended.err
    assert not (tmp_path / "page.html").exists()


def test_choices_may_mix_whole_and_decimal_numbers(command, table_file):
    ended = command("tune", table_file, "-o", "tuned", "--search", "penalty=0.1,1,10", "--trials", 6, *SMALL)
    assert ended.code == 0, ended.err
    assert {"0.1", "1", "10"} >= set(pd.read_csv("tuned/trials.csv", dtype=str)["param_penalty"])
    assert os.path.exists("tuned/tuning.png")


def test_results_are_kept_where_pictures_cannot_be_drawn(command, table_file, monkeypatch):
    def draw(result):
        raise ValueError("no ink")

    monkeypatch.setattr("lgmd.tuning.plots.draw_trials", draw)
    ended = command("tune", table_file, "-o", "tuned", "--trials", 2, "--json", *SMALL)
    assert ended.code == 0, ended.err
    assert sorted(os.listdir("tuned")) == ["best.json", "trials.csv", "trials.sqlite"]
    found = json.loads(ended.out)
    assert sorted(found["files"]) == ["best.json", "trials.csv", "trials.sqlite"]
    assert "could not be drawn (ValueError: no ink)" in found["warnings"][-1]


def test_failed_trials_are_told(command, table_file):
    search = ("tune", table_file, "--search", "components=2,50", "--trials", 4, "--model", "pmf", "--max-iter", 2)
    told = command(*search, "-o", "one")
    assert told.code == 0, told.err
    trials = pd.read_csv("one/trials.csv")
    failed = int((trials["state"] == "failed").sum())
    assert 0 < failed < 4
    assert f"{failed} of 4 trials failed, most often for this: InvalidParameterError: --components 50" in told.out
    found = json.loads(command(*search, "-o", "two", "--json").out)
    assert found["failed"] == failed
    assert found["most_frequent_failure"].startswith("InvalidParameterError: --components 50")
    sound = json.loads(command("tune", table_file, "-o", "three", "--trials", 2, "--json", *SMALL).out)
    assert (sound["failed"], sound["most_frequent_failure"]) == (0, None)


LEAN = ("--inference", "map", "-k", 2, "--max-iter", 2, "-q")


def test_graphs_in_files_are_searched(command, table_file, tmp_path, monkeypatch):
    (tmp_path / "near.csv").write_text("from,to\nstation 0,station 1\nstation 2,station 3\n")
    both = command("tune", table_file, "-o", "both", "--search", "sample_graph=none,near.csv", "--trials", 4, *LEAN)
    assert both.code == 0, both.err
    trials = pd.read_csv("both/trials.csv", keep_default_na=False)
    assert set(trials["param_sample_graph"]) == {"none", "near.csv"}
    assert set(trials["state"]) == {"complete"}
    alone = ("tune", table_file, "-o", "one", "--search", "sample-graph=near.csv", "--json", *LEAN)
    assert json.loads(command(*alone, "--trials", 1).out)["best_parameters"] == {"sample_graph": "near.csv"}
    assert len(pd.read_csv("one/trials.csv")) == 1
    assert command(*alone, "--trials", 2, "--resume").code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    settings = ("--settings", "../one/best.json", "--held-out", 0, "--no-report", "-q")
    fitted = command("fit", table_file, "-o", "out", *settings)
    assert fitted.code == 0, fitted.err
    assert LGMD.load("out/model.lgmd").sample_graph.adjacency.nnz == 4


def test_graphs_that_are_none_are_refused_before_the_search(command, table_file, tmp_path):
    for name in ("sample_graph", "feature-graph", "graph"):
        ended = command("tune", table_file, "-o", "tuned", "--search", f"{name}=none,evidnce", *LEAN)
        assert ended.code == 1
        assert "there is no file evidnce" in ended.err
        assert os.listdir(tmp_path) == ["table.csv"]


def test_a_range_that_is_none_is_quoted_as_it_was_typed(command, table_file):
    ended = command("tune", table_file, "-o", "tuned", "--search", "prior=a:b", *SMALL)
    assert ended.code == 1
    assert "--search 'prior=a:b': a range is" in ended.err


def test_a_file_is_no_graph_for_both_sides(command, table_file, tmp_path):
    (tmp_path / "graph.csv").write_text("from,to\nstation 0,station 1\n")
    ended = command("tune", table_file, "-o", "tuned", "--search", "graph=none,graph.csv", *SMALL)
    assert ended.code == 1
    assert "'graph.csv'. Name the side of a file" in ended.err


@pytest.fixture
def complete(frame, tmp_path):
    """A table without gaps and another one of the same names, both as files."""
    values = np.random.default_rng(2).standard_normal((2, *frame.shape)) + 9
    for name, part in zip(("right.csv", "wrong.csv"), values, strict=True):
        pd.DataFrame(part, frame.index, frame.columns).to_csv(tmp_path / name, index_label="station")


BARE = ("--held-out", 0, "--no-report", "--reconstruction", "none", *SMALL)


@pytest.mark.parametrize("model", ["out", "out/model.lgmd"])
def test_reports_refuse_another_table_of_the_same_names(model, complete, command, tmp_path):
    assert command("fit", "right.csv", "-o", "out", "--scale", *BARE).code == 0
    gaps = pd.read_csv("wrong.csv", index_col=0)
    gaps.iloc[0, 0] = np.nan
    gaps.to_csv("gaps.csv")
    refused = command("report", model, "-o", "page.html", "--table", "gaps.csv")
    assert "it is 20 x 12 with 239 observed entries, where out/settings.json has one of 20 x 12 with 240" in refused.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("name", ["wrong.csv", "right.parquet"])
def test_reports_warn_of_another_file_that_may_hold_the_same_numbers(name, complete, command, tmp_path):
    pd.read_csv("right.csv", index_col=0).to_parquet("right.parquet")
    assert command("fit", "right.csv", "-o", "out", "--scale", *BARE).code == 0
    ended = command("report", "out", "-o", "page.html", "--table", name)
    assert ended.code == 0
    assert f"{name} is not the file that was fitted: it has the size of right.csv, but not the checksum" in ended.err
    assert "scale=True" in (tmp_path / "page.html").read_text()


def test_reports_do_not_take_outliers_for_another_table(command, tmp_path):
    rng = np.random.default_rng(3)
    values = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20)) + 0.1 * rng.standard_normal((30, 20))
    values[rng.random(values.shape) < 0.05] = 60.0
    pd.DataFrame(values).add_prefix("c").to_csv("outliers.csv", index=False)
    student = ("--likelihood", "student", "-k", 3, "--held-out", 0, "--no-report", "--reconstruction", "none")
    assert command("fit", "outliers.csv", "-o", "out", *student).code == 0
    shutil.copy("out/model.lgmd", "alone.lgmd")
    assert command("report", "alone.lgmd", "-o", "page.html", "--table", "outliers.csv").err == ""


@pytest.mark.parametrize("model", ["out", "out/model.lgmd"])
def test_reports_read_the_table_as_the_fit_did(model, complete, command, tmp_path):
    assert command("fit", "right.csv", "-o", "out", "--scale", *BARE).code == 0
    ended = command("report", model, "-o", "page.html", "--table", "right.csv")
    assert (ended.code, ended.err) == (0, "")
    assert "scale=True" in (tmp_path / "page.html").read_text()
    for said, words in (
        ("--no-scale", "read with --scale, as out/settings.json says, but now --no-scale is given"),
        ("--log1p", "read without --log1p, as out/settings.json says, but now --log1p is given"),
    ):
        refused = command("report", model, "-o", "other.html", "--table", "right.csv", said)
        assert refused.code == 1
        assert words in refused.err
    assert command("report", model, "-o", "same.html", "--table", "right.csv", "--scale", "--no-log1p").code == 0


def test_reports_warn_of_tables_that_do_not_look_like_the_one_of_the_fit(complete, command):
    assert command("fit", "right.csv", "-o", "out", "--scale", *BARE).code == 0
    shutil.copy("out/model.lgmd", "alone.lgmd")
    read_otherwise = command("report", "alone.lgmd", "-o", "one.html", "--table", "right.csv")
    assert read_otherwise.code == 0
    assert re.search(r"explains -[\d,]+% of the variance of the entries of right.csv.*--scale", read_otherwise.err)
    assert command("report", "alone.lgmd", "-o", "two.html", "--table", "right.csv", "--scale").err == ""

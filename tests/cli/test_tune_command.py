"""``lgmd tune`` and ``lgmd report``."""

import json
import os
import signal

import pandas as pd
import pytest

from lgmd import PMF, LGMDImputer
from lgmd.cli._search_space import parse_space
from lgmd.exceptions import InvalidParameterError

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
    ):
        ended = command("tune", table_file, "-o", "tuned", *options, *SMALL)
        assert ended.code == 1
        assert words in ended.err
        assert os.listdir(tmp_path) == ["table.csv"]


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


def test_reports_of_imputers(command, frame, tmp_path):
    LGMDImputer(PMF(2, tol=1e-2)).fit(frame).save(tmp_path / "imputer.lgmd")
    assert command("report", "imputer.lgmd", "-o", "page.html", "--quiet").code == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.lgmd", None, "There is no file"),
        ("junk.lgmd", b"junk", "cannot be loaded"),
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
    assert not (tmp_path / "page.html").exists()


def test_a_table_of_another_shape(command, table_file, frame, tmp_path):
    assert command("fit", table_file, "-o", "out", "--held-out", 0, "--no-report", *SMALL).code == 0
    frame.iloc[:10].to_csv(tmp_path / "part.csv")
    ended = command("report", "out", "-o", "page.html", "--table", "part.csv")
    assert ended.code == 1
    assert "10 x 12" in ended.err
    assert not (tmp_path / "page.html").exists()

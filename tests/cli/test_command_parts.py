"""The start of the command, what it says, and ``bench`` and ``doctor``."""

import json
import math
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer

from lgmd.cli import main
from lgmd.cli._flags import in_flags
from lgmd.cli._progress import Pace, fit_progress, spoken_time
from lgmd.cli._verbs import VERBS, LazyGroup


def test_help_loads_no_verb():
    code = (
        "import sys\n"
        "from lgmd.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'matplotlib', 'optuna'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"
    for verb in VERBS:
        assert re.search(rf"\b{verb}\b", ended.stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_says_what_the_list_says(verb, command):
    ended = command(verb, "--help")
    assert ended.code == 0
    assert "Usage" in ended.out
    assert "--help" in ended.out
    loaded = LazyGroup(name="lgmd").get_command(None, verb)
    assert loaded.help


def test_help_says_what_the_defaults_are(command):
    """What stands in square brackets would be taken for markup, and be lost."""
    text = " ".join(re.sub("[^ -~]", " ", command("fit", "--help").out).split())
    for words in ("default: lgmd", "default: 200", "default: 1e-5", "default: utf-8"):
        assert words in text


def test_nothing_typed_is_a_cry_for_help(command):
    ended = command()
    assert ended.code == 0
    assert "reproduce" in ended.out


def test_exit_codes_are_documented(command):
    text = " ".join(command("--help").out.split())
    assert "0 success" in text
    assert "130 interrupted" in text


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("pass header=False.", "pass --no-header."),
        ("set header=, row_names= or delimiter=.", "set --header, --row-names or --delimiter."),
        ("Pass encoding='latin-1' or 'cp1252'", "Pass --encoding latin-1 or 'cp1252'"),
        ("above tol=1e-05. Raise max_iter, or", "above --tol 1e-05. Raise --max-iter, or"),
        ("PMF was stopped by max_iter after 504 steps", "PMF was stopped by --max-iter after 504 steps"),
        ("held_out=0.1 leaves", "--held-out 0.1 leaves"),
        ("Drop it, or use a model with allow_empty=True.", "Drop it, or use a model with --allow-empty."),
        ("(force=True, --force)", "(--force)"),
        ('noise="samples" needs inference="variational": the', "--noise samples needs --inference variational: the"),
        ("prior='shared' is", "--set prior=shared is"),
        ("/data/max_iter/t.csv has no column 'row_names'", "/data/max_iter/t.csv has no column 'row_names'"),
        ("max_iter.csv is empty", "max_iter.csv is empty"),
        ("Leave log1p out, or shift", "Leave --log1p out, or shift"),
        ("--search 'prior=a:b': a range is", "--search 'prior=a:b': a range is"),
        ('but is "my prior=a of max_iter" and seed\'s', 'but is "my prior=a of max_iter" and seed\'s'),
        ("rows' own tol=1 and '1'", "rows' own --tol 1 and '1'"),
    ],
)
def test_messages_speak_of_options(message, expected):
    assert in_flags(message) == expected


def test_time_left_is_guessed_from_the_fall_of_the_changes():
    pace = Pace(1e-6)
    for iteration in range(1, 11):
        left = pace.seconds_left(iteration, 1000, 10.0 ** -(iteration / 4), 2.0 * iteration)
    # Ten in four iterations of two seconds each; from 10^-2.5 to 10^-6 they are fourteen.
    assert left == pytest.approx(28, rel=1e-6)
    assert pace.seconds_left(11, 1000, math.nan, 22.0) == pytest.approx(989 * 2)
    assert Pace(1e-6).seconds_left(99, 100, 0.1, 99.0) == pytest.approx(1)
    flat = Pace(1e-6)
    assert [flat.seconds_left(i, 10, 0.1, float(i)) for i in range(1, 9)][-1] == pytest.approx(2)


def test_progress_is_a_line_now_and_then_without_a_terminal(capsys, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("lgmd.cli._progress.time.monotonic", lambda: clock.now)
    record = SimpleNamespace(change=0.1, seconds=1.0)
    with fit_progress("fitting", 1e-5, quiet=False) as show:
        for iteration in range(1, 41):
            clock.now += 1.0
            show(SimpleNamespace(iteration=iteration, max_iter=50, record=record))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("fitting: iteration 1 of at most 50, about 49 s left")
    with fit_progress("fitting", 1e-5, quiet=True) as show:
        show(SimpleNamespace(iteration=1, max_iter=50, record=record))
    assert capsys.readouterr().err == ""


def test_progress_is_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    record = SimpleNamespace(change=0.1, seconds=1.0)
    with fit_progress("fitting LGMD", 1e-5, quiet=False) as show:
        show(SimpleNamespace(iteration=3, max_iter=50, record=record))
    written = capsys.readouterr()
    assert written.out == ""
    assert "fitting LGMD" in written.err


def test_durations_are_spoken():
    assert [spoken_time(seconds) for seconds in (0.2, 42, 600, 9000)] == ["0 s", "42 s", "10 min", "2.5 h"]


def test_bench_measures(command):
    ended = command("bench", "--rows", 30, "--columns", 20, "-k", 2, "--nodes", 50, "--iterations", 3, "--json", "-q")
    found = json.loads(ended.out)
    assert ended.code == 0
    assert ended.err == ""
    assert set(found["seconds_per_iteration"]) == {"map", "variational"}
    assert all(seconds > 0 for seconds in found["seconds_per_iteration"].values())
    assert found["threads"] >= 1
    plain = command("bench", "--rows", 30, "--columns", 20, "-k", 2, "--nodes", 50, "--iterations", 2)
    assert "make bench" in plain.out
    assert "30 x 20" in plain.err


def test_doctor_finds_a_sound_installation(command, monkeypatch):
    monkeypatch.delenv("LGMD_DATA", raising=False)
    ended = command("doctor")
    assert ended.code == 0, ended.out
    for words in ("numpy", "threads", "numba", "GiB", "LGMD_DATA", "All is well"):
        assert words in ended.out


def test_doctor_finds_what_is_wrong(command, monkeypatch, tmp_path):
    monkeypatch.setenv("LGMD_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr("lgmd.estimators.LGMD.fit", lambda *_: (_ for _ in ()).throw(ArithmeticError("bad kernel")))
    monkeypatch.setattr("lgmd.cli._checkup.requires", lambda _: ["numpy>=99", "no-such-package>=1", "rich"])
    ended = command("doctor", "--json")
    assert ended.code == 1
    found = json.loads(ended.out)
    assert found["outcome"] == "wrong"
    assert found["wrong"] == ["packages", "data sets", "a small fit"]
    assert "older than 99" in found["findings"]["packages"]
    assert "no-such-package is missing" in found["findings"]["packages"]
    assert "bad kernel" in found["findings"]["a small fit"]


@pytest.mark.parametrize("verb", ["demo", "fit", "impute", "report", "reproduce", "tune"])
def test_every_verb_with_an_output_has_the_short_option_for_it(verb, command):
    assert re.search(r"--output +-o", command(verb, "--help").out)


def test_the_installed_command_is_this_one():
    from importlib.metadata import entry_points

    [found] = entry_points(group="console_scripts", name="lgmd")
    assert found.load() is main


def test_the_app_is_for_other_tools_too():
    from typer.testing import CliRunner

    from lgmd.cli import app

    ended = CliRunner().invoke(app, ["doctor", "--help"])
    assert ended.exit_code == 0
    assert isinstance(app, typer.Typer)

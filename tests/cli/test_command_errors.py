"""Bad files, bad commands and bad surroundings: one paragraph, an exit code, no traceback, nothing written."""

import errno
import gzip
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from lgmd.exceptions import LGMDError

GOOD = b"station,a,b,c\ns1,1.5,2,3\ns2,4,NA,6\ns3,7,8,9.25\ns4,1,2,4\n"
ENOUGH = ("--max-iter", "2", "-k", "2", "--model", "pmf")


def array(values, **options):
    buffer = io.BytesIO()
    np.save(buffer, values, **options)
    return buffer.getvalue()


BAD = {
    "a short row": ("t.csv", b"n,a,b\nx,1,2\ny,3\nz,5,6\n", (), "line 3"),
    "a long row": ("t.csv", b"n,a,b\nx,1,2\ny,3,4,5\n", (), "line 3"),
    "an open quote": ("t.csv", b'n,a,b\nx,1,2\n"y,3,4\nz,5,6\n', (), "quote"),
    "binary junk": ("t.csv", bytes(range(256)) * 4, (), "--format"),
    "a zip archive": ("t.csv", b"PK\x03\x04" + bytes(50), (), "zip archive"),
    "nothing": ("t.csv", b"", (), "is empty"),
    "a header alone": ("t.csv", b"station,a,b\n", (), "--no-header"),
    "text alone": ("t.csv", b"name,city\na,Rome\nb,Oslo\n", (), "no numbers"),
    "repeated rows": ("t.csv", b"n,a,b\nx,1,2\ny,3,4\nx,5,6\n", (), "--no-row-names"),
    "repeated columns": ("t.csv", b"n,a,b,a\nx,1,2,3\ny,4,5,6\n", (), "--no-header"),
    "text in numbers": ("t.csv", b"n,a,b\nx,1,2\ny,3,abc\n", (), "--missing"),
    "text in a first row": ("t.csv", b"1.5,2.5,3.5,x\n4,5,6,7\n8,9,1,2\n", (), "pass --header"),
    "text in a first column": ("t.csv", b"a,b\n1.5,2\noops,4\n3.5,4\n4.5,4\n", (), "pass --row-names"),
    "UTF-16": ("t.csv", GOOD.decode().encode("utf-16"), (), "--encoding utf-16"),
    "Latin-1": ("t.csv", "n,a,b\nx,1,2\nKöln,3,4\n".encode("latin-1"), (), "--encoding latin-1"),
    "an unknown encoding": ("t.csv", GOOD, ("--encoding", "klingon"), "klingon"),
    "all gaps": ("t.csv", b"n,a,b\nx,NA,\ny,?,-\n", (), "Check --missing, and"),
    "infinity": ("t.csv", b"n,a,b\nx,1,2\ny,-inf,4\n", (), "finite"),
    "a date": ("t.csv", b"n,a,b\nx,1,2018-01-31\ny,3,4\n", (), "a date"),
    "decimal commas": ("t.csv", b"n;a;b\nx;1,5;2,25\ny;3,5;4\n", (), "decimal"),
    "one row": ("t.csv", b"n,a,b\nx,1,2\n", (), "--header, --row-names or --delimiter."),
    "commas in a tab file": ("t.tsv", GOOD, (), "--delimiter"),
    "no gzip": ("t.csv.gz", GOOD, (), "not compressed"),
    "half a gzip": ("t.csv.gz", gzip.compress(os.urandom(3000).hex().encode())[:-40], (), "cut off"),
    "an unknown ending": ("t.foo", GOOD, (), "with --format"),
    "an old Excel file": ("t.xls", GOOD, (), ".xlsx"),
    "no Excel file": ("t.xlsx", b"junk" * 20, (), "t.xlsx"),
    "no Parquet file": ("t.parquet", b"junk" * 20, (), "t.parquet"),
    "no array": ("t.npy", b"junk" * 20, (), "numpy"),
    "objects": ("t.npy", array(np.array([[1, "a"], [2, None]], dtype=object), allow_pickle=True), (), "objects"),
    "three dimensions": ("t.npy", array(np.ones((2, 3, 4))), (), "2 x 3 x 4"),
    "complex numbers": ("t.npy", array(np.eye(3) * 1j), (), "complex"),
    "an archive by another name": ("t.npz", array(np.eye(3)), (), "--format npy"),
    "a broken matrix": ("t.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 9\n1 1 1\n", (), "t.mtx"),
    "a missing column": ("t.csv", b"user,film,rating\nu,f,1\n", ("--long", "user", "movie", "rating"), "'movie'"),
    "a pair twice": ("t.csv", b"u,f,r\na,x,1\na,x,2\nb,y,3\n", ("--long", "u", "f", "r"), "'a'"),
    "long arrays": ("t.npy", array(np.eye(3)), ("--long", "0", "1", "2"), "leave --long out"),
    "negative counts": ("t.csv", b"n,a,b\nx,1,2\ny,-3,4\n", ("--log1p",), "Leave --log1p out"),
    "a constant column": ("t.csv", b"n,a,b\nx,1,2\ny,1,4\nz,,1\n", ("--scale",), "leave --scale out"),
    "a long delimiter": ("t.csv", GOOD, ("--delimiter", "ab"), "--delimiter"),
    "an empty row": ("t.csv", b"n,a,b,c\nx,1,2,3\ny,,,\nz,3,4,6\nw,5,6,8\n", (), "--allow-empty"),
    "too many factors": ("t.csv", GOOD, ("-k", "7"), "Lower --components"),
    "an unknown setting": ("t.csv", GOOD, ("--set", "magic=1"), "magic"),
    "no setting": ("t.csv", GOOD, ("--set", "magic"), "NAME=VALUE"),
    "no file": ("t.csv", None, (), "There is no file"),
    "a folder": ("t.csv", "folder", (), "is a folder"),
    "no settings file": ("t.csv", GOOD, ("--settings", "none.json"), "none.json"),
    "settings that are no JSON": ("t.csv", GOOD, ("--settings", "t.csv"), "not JSON"),
}


def check_refusal(ended, folder, before, words):
    assert ended.code == 1, ended
    assert ended.out == ""
    assert "Traceback" not in ended.err
    [line] = [line for line in ended.err.splitlines() if line.startswith("Error: ")]
    assert ended.err.splitlines()[-1] == line
    assert words in line
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_end_in_one_paragraph_and_leave_nothing(kind, command, tmp_path):
    name, content, options, words = BAD[kind]
    if content == "folder":
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    before = sorted(os.listdir(tmp_path))
    check_refusal(command("impute", name, "--output", "filled.csv", *ENOUGH, *options), tmp_path, before, words)
    check_refusal(command("fit", name, "--output", "results", *ENOUGH, *options), tmp_path, before, words)


def test_there_are_enough_kinds_of_bad_tables():
    assert len(BAD) >= 30


def test_outputs_are_checked_before_the_table_is_read(command, tmp_path):
    (tmp_path / "t.csv").write_bytes(GOOD)
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))
    for output, words in {
        "there.csv": "(--force)",
        "folder": "no ending",
        "nowhere/filled.csv": "no folder",
        "filled.doc": "'.doc'",
    }.items():
        check_refusal(command("impute", "missing.csv", "-o", output), tmp_path, before, words)
    for output, words in {"there.csv": "is a file", "nowhere/results": "no folder"}.items():
        check_refusal(command("fit", "missing.csv", "-o", output), tmp_path, before, words)
    assert (tmp_path / "there.csv").read_text() == "mine"
    ended = command("impute", "t.csv", "-o", "there.csv", "--force", *ENOUGH)
    assert ended.code == 0
    assert (tmp_path / "there.csv").read_text().startswith("station,a,b,c")


def test_unwritable_folders_are_found_out_first(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for arguments in (
        ("impute", "t.csv", "-o", "filled.csv"),
        ("fit", "t.csv", "-o", "out"),
        ("tune", "t.csv", "-o", "x"),
    ):
        check_refusal(command(*arguments), tmp_path, ["t.csv"], "may not be written to")


@pytest.mark.parametrize(
    "place", ["_fit_files.write_fit_tables", "_record.write_json", "_reports.write_report", "_output.os.replace"]
)
def test_a_full_disk_leaves_nothing(place, command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)

    def full(*arguments, **_):
        # What was begun on the disk stays there, as it would.
        if isinstance(arguments[0], pathlib.Path) and arguments[0].suffix == ".json":
            arguments[0].write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device", str(arguments[0]))

    monkeypatch.setattr(f"lgmd.cli.{place}", full)
    ended = command("fit", "t.csv", "-o", "results", "--held-out", "0", *ENOUGH)
    check_refusal(ended, tmp_path, ["t.csv"], "disk is full")


def test_a_disk_that_fills_while_tables_are_written(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)
    import lgmd.tables._text_output as output

    def full(table, file, delimiter):
        file.write("half a line")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "_write_wide", full)
    ended = command("impute", "t.csv", "-o", "filled.csv", *ENOUGH)
    check_refusal(ended, tmp_path, ["t.csv"], "filled.csv could not be written: the disk is full")


LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True  # half a file of it would be read by other tests
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from lgmd.cli import main
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize(
    ("verb", "output"), [("fit", "results"), ("impute", "filled.csv"), ("report", "page.html"), ("tune", "tuned")]
)
def test_a_write_that_fails_half_way_names_its_place(verb, output, command, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "t.npy", rng.standard_normal((40, 30)))
    lean = ("--model", "pmf", "-k", "2", "--max-iter", "2", "-q")
    model = command("fit", "t.npy", "-o", "model", "--held-out", 0, "--no-report", *lean)
    assert model.code == 0, model.err
    arguments = (verb, "model", "-o", output) if verb == "report" else (verb, "t.npy", "-o", output, *lean)
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert output in ended.stderr.splitlines()[-1].partition("Error: ")[2], ended.stderr
    assert "Traceback" not in ended.stderr
    assert "SQL:" not in ended.stderr
    assert f".{output}." not in ended.stderr
    assert not (tmp_path / output).exists()


def test_a_full_disk_is_told_with_the_file_that_did_not_fit(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for place, name in {
        "lgmd.estimators.persistence.write_archive": "results/model.lgmd",
        "pandas.DataFrame.to_csv": "results/sample_factors.csv",
        "lgmd.cli._record._plain": "results/settings.json",
        "lgmd.report.rendering.write_text": "results/report.html",
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(place, full)
            ended = command("fit", "t.csv", "-o", "results", "--held-out", "0", *ENOUGH)
        check_refusal(ended, tmp_path, ["t.csv"], f"Error: {name}: The disk is full.")


def test_what_was_there_survives_a_failure(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)
    lean = ("--held-out", "0", "--no-report", "--quiet", *ENOUGH)
    assert command("fit", "t.csv", "-o", "results", *lean).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()}

    def fail(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("lgmd.cli._fit_files.write_table", fail)
    assert command("fit", "t.csv", "-o", "results", "--force", *lean).code == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()} == before
    assert sorted(os.listdir(tmp_path)) == ["results", "t.csv"]


def test_a_long_fit_is_kept_when_its_results_cannot_be_written(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)
    monkeypatch.setattr("lgmd.cli._checkpoints._WORTH_KEEPING", 0.0)
    lean = ("--held-out", "0", "--no-report", *ENOUGH)
    with monkeypatch.context() as patch:
        patch.setattr(
            "lgmd.cli._fit_files.write_table", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full"))
        )
        ended = command("fit", "t.csv", "-o", "results", *lean)
    check_refusal(ended, tmp_path, ["results.checkpoint", "t.csv"], "--resume")
    refused = command("fit", "t.csv", "-o", "results", *lean)
    check_refusal(refused, tmp_path, ["results.checkpoint", "t.csv"], "Add --resume to go on with it")
    assert command("fit", "t.csv", "-o", "results", "--resume", *lean).code == 0
    assert sorted(os.listdir(tmp_path)) == ["results", "t.csv"]


def test_a_table_that_vanishes(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)
    import lgmd.tables._text_file as text_file

    original = pathlib.Path.open

    def vanished(self, *arguments, **options):
        if self.name == "t.csv":
            self.unlink(missing_ok=True)
        return original(self, *arguments, **options)

    assert text_file
    monkeypatch.setattr(pathlib.Path, "open", vanished)
    ended = command("impute", "t.csv", "-o", "filled.csv", *ENOUGH)
    check_refusal(ended, tmp_path, [], "There is no file")


def test_commands_typed_wrongly(command, tmp_path):
    for arguments, words in {
        ("fit",): "Missing",
        ("fti", "t.csv"): "fti",
        ("fit", "t.csv"): "--output",
        ("fit", "t.csv", "-o", "x", "--components", "many"): "--components",
        ("fit", "t.csv", "-o", "x", "--model", "pca"): "--model",
        ("impute", "t.csv", "-o", "x.csv", "--no-such-option"): "--no-such-option",
    }.items():
        ended = command(*arguments)
        assert ended.code == 2
        assert words in ended.err
        assert ended.err.count("\n") == 1
        assert "--help" in ended.err
        assert ended.out == ""
    assert os.listdir(tmp_path) == []


def test_errors_for_programs(command):
    ended = command("impute", "missing.csv", "-o", "filled.csv", "--json")
    found = json.loads(ended.out)
    assert found["outcome"] == "error"
    assert found["exit_code"] == ended.code == 1
    assert "missing.csv" in found["message"]
    assert found["message"] in ended.err


def test_bugs_are_told_apart_and_debug_shows_where(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)

    def broken(*_, **__):
        raise KeyError("surprise")

    monkeypatch.setattr("lgmd.tables.read_table", broken)
    arguments = ("impute", "t.csv", "-o", "filled.csv")
    quiet = command(*arguments)
    assert quiet.code == 1
    assert "KeyError: 'surprise'" in quiet.err
    assert "--debug" in quiet.err
    assert "Traceback" not in quiet.err
    for asked in ((*arguments, "--debug"), ("--debug", *arguments)):
        loud = command(*asked)
        assert loud.code == 1
        assert "Traceback" in loud.err
        assert "in broken" in loud.err


def test_too_little_memory(command, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(GOOD)
    monkeypatch.setattr("lgmd.tables.read_table", lambda *_, **__: (_ for _ in ()).throw(MemoryError()))
    check_refusal(command("impute", "t.csv", "-o", "filled.csv"), tmp_path, ["t.csv"], "memory")


def test_errors_of_output_are_errors_of_this_package():
    from lgmd.cli._output import OutputError

    assert issubclass(OutputError, LGMDError)


def test_the_real_command_ends_the_same_way(tmp_path):
    (tmp_path / "t.csv").write_bytes(BAD["text in numbers"][1])
    ended = subprocess.run(
        [sys.executable, "-m", "lgmd", "fit", "t.csv", "--output", "results"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: t.csv, line 3, column 3 ('b')")
    assert ended.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["t.csv"]

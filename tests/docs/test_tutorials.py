"""Every example of the tutorials and guides runs, in the order in which a reader would run it.

A comment above a block says what it needs: ``<!-- needs LGMD_DATA -->`` and ``<!-- needs anndata -->`` mark Python that
stands alone and runs where that is there; ``<!-- run -->`` marks commands that are run. Of all other commands the
options are looked up.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHORT = [DOCS / name for name in ("index.md", "extending.md", "faq.md", "maths.md")]
LONG = sorted((DOCS / "tutorials").glob("*.md"))
PAGES = [*SHORT, *LONG]


class Block(NamedTuple):
    """A block of code, what the comment above it says, and the line where it starts."""

    language: str
    code: str
    note: str
    line: int


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"(?:<!-- ([^\n]*?) -->\n+)?^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [Block(one[2], one[3], one[1] or "", text.count("\n", 0, one.start(3)) + 1) for one in found]


def commands(block):
    """The words of each line that starts with ``lgmd``."""
    lines = block.code.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words[:1] == ["lgmd"]]


def execute(page, block, names):
    # Line numbers of a traceback are those of the page.
    exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)


def run_page(page, folder):
    """Run what stands unmarked, and the commands that are to be run; return the names that were made."""
    names = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "python" and not block.note:
            execute(page, block, names)
        elif block.language == "sh" and block.note == "run":
            for words in commands(block):
                done = subprocess.run(
                    [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, timeout=200, check=False
                )
                assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
    return names


@pytest.mark.parametrize("page", SHORT, ids=lambda page: page.stem)
def test_the_examples_of_a_guide_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page(page, tmp_path)
    if page.stem == "extending":  # rows of a chain: its learner finds most of them
        assert (names["found"]["target"] - names["found"]["source"] == 1).mean() > 0.5


@pytest.mark.slow
def test_stations_are_filled_in_and_a_map_helps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page(DOCS / "tutorials" / "sensors.md", tmp_path)
    assert names["better"] < names["error"]
    assert 0.8 < names["inside"] < 0.97
    assert len(names["edges"]) > 0
    pd, table = names["pd"], names["table"]
    filled, bars = (pd.read_csv(tmp_path / name, index_col=0) for name in ("filled.csv", "bars.csv"))
    pd.testing.assert_frame_equal(filled.where(table.notna()), table)
    assert filled.notna().all(axis=None)
    assert ((bars == 0) == table.notna()).all(axis=None)
    written = (tmp_path / "stations.csv").read_text().splitlines()
    (shown,) = (block.code for block in blocks(DOCS / "tutorials" / "sensors.md") if block.language == "text")
    for line, beginning in zip(written, shown.splitlines(), strict=False):
        assert line.startswith(beginning.removesuffix(" ..."))
    assert {"map.png", "neighbours.csv"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_ratings_are_foreseen_and_friends_help(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page(DOCS / "tutorials" / "ratings.md", tmp_path)
    assert names["better"] < names["error"] < names["average"]
    found = {path.name for path in (tmp_path / "tastes").iterdir()}
    assert {"held_out.csv", "reconstruction.csv", "reconstruction_std.csv", "sample_factors.csv"} <= found
    assert "report.html" not in found


@pytest.mark.slow
def test_cells_are_clustered_and_denoised(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run_page(DOCS / "tutorials" / "single_cells.md", tmp_path)
    assert names["metrics"].clustering_accuracy(names["kind"], names["clusters"]) > 0.8
    before, after = map(float, re.search(r"counts (\S+), denoised (\S+)", capsys.readouterr().out).groups())
    assert after < before


@pytest.mark.slow
def test_pictures_are_filled_in_and_graphs_help(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page(DOCS / "tutorials" / "images.md", tmp_path)
    rmse, picture, hidden = names["metrics"].rmse, names["picture"], names["hidden"]
    without_order = rmse(picture[hidden], names["found"].reconstruct()[hidden])
    assert names["learned"] < without_order < names["without"]
    assert names["steps"].median() <= 5
    assert rmse(picture, names["cleaned"].reconstruct()) < rmse(picture, names["noisy"])


def marked():
    found = [(page, block.note) for page in PAGES for block in blocks(page) if block.note.startswith("needs ")]
    return sorted(set(found))


@pytest.mark.parametrize(("page", "note"), marked(), ids=lambda value: getattr(value, "stem", value))
def test_examples_that_need_more_run_where_it_is_there(page, note, tmp_path, monkeypatch):
    need = note.removeprefix("needs ")
    if need == "LGMD_DATA":
        if not os.environ.get(need):
            pytest.skip("LGMD_DATA is not set")
    elif find_spec(need) is None:
        pytest.skip(f"{need} is not installed")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(page):
        if block.note == note:
            execute(page, block, names)


def test_every_page_with_examples_is_run():
    ran_by_another_test = {"choosing_a_graph.md"}
    with_python = [page for page in DOCS.rglob("*.md") if any(block.language == "python" for block in blocks(page))]
    assert len(with_python) > 5
    for page in with_python:
        assert page in PAGES or page.name in ran_by_another_test, page.name


def test_notes_above_blocks_are_known():
    for page in DOCS.rglob("*.md"):
        for block in blocks(page):
            assert block.note in ("", "run") or block.note.startswith(("needs ", "end ")), f"{page.name}:{block.line}"


def test_commands_have_the_options_that_pages_say():
    import click
    import typer

    from lgmd.cli import app

    group = typer.main.get_command(app)
    context = click.Context(group)
    seen = 0
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for block in blocks(page):
            for words in commands(block) if block.language == "sh" else []:
                verb = group.get_command(context, words[1])
                assert verb is not None, f"{page.name}:{block.line}: {shlex.join(words)}"
                known = {name for option in verb.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
                given = {word.split("=")[0] for word in words[2:] if word.startswith("-") and not is_number(word)}
                assert given <= known, f"{page.name}:{block.line}: {given - known}"
                seen += 1
    assert seen > 5


def is_number(word):
    return bool(re.fullmatch(r"-\d+(\.\d+)?", word))


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_the_scripts_draw_their_pictures(script, tmp_path, monkeypatch):
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(script), str(picture)])
    runpy.run_path(str(script), run_name="__main__")
    assert picture.stat().st_size > 5_000


def test_every_script_has_a_small_picture_that_a_page_shows():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(EXAMPLES) >= 4
    for script in EXAMPLES:
        picture = script.parent / "pictures" / f"{script.stem}.png"
        assert picture.stat().st_size < 100_000, picture.name
        assert f"examples/pictures/{picture.name}" in pages, picture.name
        assert f"examples/{script.name}" in pages, script.name
    assert {path.stem for path in (ROOT / "examples" / "pictures").iterdir()} == {path.stem for path in EXAMPLES}

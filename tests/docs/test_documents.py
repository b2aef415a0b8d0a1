"""What the documents say can be run and found."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    error, deviation = (float(figure) for figure in re.findall(r"\d\.\d+", printed)[:2])
    assert error < 0.6 * deviation
    assert "+-" in printed
    assert (tmp_path / "model.npz").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_test_named_in_the_paper_notes_exists():
    notes = (ROOT / "docs" / "paper_notes.md").read_text()
    names = re.findall(r"`(?:[\w/]+\.py)?::(\w+)`", notes)
    assert len(names) > 15
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in names:
        assert f"def {name}(" in sources, name
    for path in re.findall(r"`(tests/[\w/]+\.py)", notes):
        assert (ROOT / path).exists(), path


def test_the_benchmark_page_has_its_tables():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    names = re.findall(r"<!-- (?!end )(\w+) -->", page)
    assert {"als_iteration", "paper_update", "edge_search", "temperature", "calibration"} <= set(names)
    for name in names:
        assert (ROOT / "benchmarks" / f"{name}.py").exists(), name
        table = re.search(f"(?s)<!-- {name} -->(.*?)<!-- end {name} -->", page)
        assert table, name
        assert table.group(1).count("|") > 10, name

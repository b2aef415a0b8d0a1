"""What the documents say can be run and found."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def run(page, folder, monkeypatch, capsys):
    """Run the examples of a page one after the other, as a reader would; return what each printed."""
    monkeypatch.chdir(folder)
    names, printed = {}, []
    for code in python_blocks(page):
        exec(compile(code, page.name, "exec"), names)
        printed.append(capsys.readouterr().out)
    return printed


def test_the_readme_examples_run(tmp_path, monkeypatch, capsys):
    first, second = run(ROOT / "README.md", tmp_path, monkeypatch, capsys)
    error, deviation = (float(figure) for figure in re.findall(r"\d\.\d+", first)[:2])
    assert error < 0.6 * deviation
    assert "+-" in first
    assert (tmp_path / "model.npz").exists()
    assert float(re.search(r"strength (\S+)", second).group(1)) > 1


def test_the_examples_of_graphs_run_and_show_what_the_text_says(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs" / "choosing_a_graph.md"
    orders, strengths, limited, edges, solved = run(page, tmp_path, monkeypatch, capsys)
    (lower, all_edges), (higher, few) = re.findall(r"error (\S+), (\S+) %", orders)
    assert float(lower) < float(higher)
    assert float(all_edges) > 20 > 10 > float(few)
    true, wrong = (float(figure) for figure in re.findall(r"strength (\S+)", strengths))
    assert true > 10
    assert wrong == 0
    assert limited.strip().endswith("60 nodes, no edges")
    in_networkx, in_summary = edges.split("\n")[-2].split()
    assert in_networkx == in_summary
    assert len(solved.strip().split("\n")) == 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_pictures_are_small_and_shown_somewhere():
    pages = "\n".join(page.read_text() for page in PAGES)
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        assert picture.stat().st_size < 150_000, picture.name
        assert picture.name in pages, picture.name


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

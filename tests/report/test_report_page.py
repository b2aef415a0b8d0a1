"""The page as text: whole, offline, and with names that stay names."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from lgmd import PMF
from lgmd.exceptions import InvalidParameterError
from lgmd.report import HeldOutScores, render, summarize, write_report
from lgmd.report.rendering import embedded_json


class Page(HTMLParser):
    """Elements, text of scripts, and every address a browser would load."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.addresses, self.scripts, self.ids = [], [], [], []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.elements.append(tag)
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")
        if tag != "a":
            self.addresses += [values[name] for name in ("src", "href", "data", "poster") if values.get(name)]
        if "id" in values:
            self.ids.append(values["id"])

    def handle_endtag(self, tag):
        self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def text(named_model, named_table, scores):
    return render(summarize(named_model, named_table, held_out=scores, settings={"command": "lgmd fit <x>"}))


def test_nothing_is_loaded_from_elsewhere(text):
    page = Page(text)
    assert page.addresses
    assert all(address.startswith("data:") for address in page.addresses)
    assert "@import" not in text
    assert not re.findall(r"url\(|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src 'none'" in text


def test_names_are_text_and_the_data_can_be_read_back(text, named_table):
    page = Page(text)
    assert page.elements.count("script") == 2
    assert "<b>" not in text
    assert "onerror=alert(1)>" not in text
    data = json.loads(page.scripts[0])
    assert data["networks"][0]["labels"] == list(named_table.index)
    assert data["maps"]["table"]["columns"] == list(named_table.columns)
    assert "&lt;script&gt;" in text
    assert "lgmd fit &lt;x&gt;" in text


def test_embedded_data_cannot_end_its_element():
    nasty = ["</script>", "<!--", "\u2028\u2029", "&amp;"]
    embedded = embedded_json(nasty)
    assert not set("<>&\u2028\u2029") & set(embedded)
    assert json.loads(embedded) == nasty
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json(float("nan"))


def test_headings_tables_and_pictures_can_be_read_aloud(text):
    page = Page(text)
    assert page.elements.count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    assert text.count("<img ") == len(re.findall(r"<img [^>]*alt=", text))
    assert text.count("<canvas ") == len(re.findall(r"<canvas [^>]*aria-label=", text))
    assert page.elements.count("table") == page.elements.count("caption") == page.elements.count("thead")
    for target in re.findall(r'<a href="#([^"]+)"', text):
        assert target in page.ids


def test_a_graph_without_edges_says_so(text):
    assert "No edge was found or given: each of the columns stands for itself." in text
    assert text.count('class="network"') == 1


def test_a_point_estimate_has_no_calibration_plot(make_table):
    table, _ = make_table()
    model = PMF(2, random_state=0).fit(table)
    plain = render(summarize(model, table, held_out=HeldOutScores(np.arange(3.0), np.arange(3.0) + 1)))
    assert 'id="calibration"' not in plain
    assert 'id="predictions"' in plain
    assert "Error bars" not in plain
    assert 'id="held-out"' not in render(summarize(model))


def test_a_report_replaces_an_older_one_in_one_move(named_model, named_table, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(named_model, path, table=named_table, title="A <title>") == path
    assert "<title>A &lt;title&gt;</title>" in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size < 500_000


def test_a_report_needs_a_place(named_model, tmp_path):
    with pytest.raises(InvalidParameterError, match="is a folder"):
        write_report(named_model, tmp_path)
    with pytest.raises(InvalidParameterError, match="does not exist"):
        write_report(named_model, tmp_path / "missing" / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_the_package_can_be_imported_without_drawing_libraries():
    code = "import sys, lgmd.report; print([m for m in ('matplotlib', 'jinja2', 'PIL', 'optuna') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"

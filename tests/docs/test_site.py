"""The documentation as a site: it builds without a warning, its links lead somewhere, and it needs no network."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings", "latex2mathml")),
        reason="the packages of the documentation are not installed: pip install '.[docs]'",
    ),
]


class Page(HTMLParser):
    """Links, anchors, and what a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.fetched, self.tags = [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found.get("class") or ""))
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next", "alternate"):
            self.fetched.append(found.get("href", ""))
        elif tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.fetched.append(found["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    # The page of errors is for servers, which show it under any address.
    found = [path for path in site.rglob("*.html") if path.name != "404.html"]
    return {path: Page(path.read_text(encoding="utf-8")) for path in found}


def test_every_page_is_there(site, pages):
    sources = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.relative_to(site) for path in pages} == sources


def test_links_and_anchors_lead_somewhere(site, pages):
    seen = 0
    for path, page in pages.items():
        for link in [*page.links, *page.fetched]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            assert target.is_file(), f"{path.relative_to(site)}: {link}"
            # Some links of the theme go to the top of a page.
            if parts.fragment and target in pages and parts.fragment != "__skip":
                assert unquote(parts.fragment) in pages[target].anchors, f"{path.relative_to(site)}: {link}"
                seen += 1
    assert seen > 100


def test_nothing_is_fetched_from_elsewhere(site, pages):
    for path, page in pages.items():
        for address in page.fetched:
            assert not urlsplit(address).netloc, f"{path.relative_to(site)}: {address}"
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert "@import" not in text
        assert "url(http" not in text.replace("url('", "url(").replace('url("', "url("), style.name


def test_formulas_are_drawn_by_the_browser_alone(site, pages):
    by_name = {path.relative_to(site).as_posix(): page for path, page in pages.items()}
    assert sum(tag == "math" for tag, _ in by_name["maths.html"].tags) > 60
    assert sum(tag == "math" for tag, _ in by_name["api/graphs.html"].tags) > 10
    for name, page in by_name.items():
        assert not any("arithmatex" in kind for _, kind in page.tags), name


def test_the_reference_has_the_public_names(site, pages):
    import lgmd

    anchors = set().union(*(page.anchors for page in pages.values()))
    names = [f"lgmd.{name}" for name in lgmd.__all__ if name[0].isupper()]
    for module in ("graphs", "metrics", "datasets", "tuning", "plot", "exceptions"):
        public = __import__(f"lgmd.{module}", fromlist=["__all__"]).__all__
        names += [f"lgmd.{module}.{name}" for name in public]
    left_aside = {"lgmd.graphs.LEARNERS", "lgmd.graphs.candidates", "lgmd.exceptions.ConvergenceWarning"}
    assert set(names) - left_aside <= anchors


def test_docstrings_leave_no_restructured_text_behind(site, pages):
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for role in (":class:", ":func:", ":meth:", ":mod:", ":math:", ".. math::"):
            assert role not in text, f"{path.relative_to(site)}: {role}"

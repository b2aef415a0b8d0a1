"""Messages have the beginnings under which the page of errors lists them."""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lgmd import GPCA, LGMD, PMF, datasets
from lgmd.estimators import _memory
from lgmd.graphs import EvidenceGraph, PriorGraph, candidates, laplacian
from lgmd.tables import read_table, write_table

PAGE = Path(__file__).parent.parent.parent / "docs" / "faq.md"
Y = np.random.default_rng(0).standard_normal((12, 8))
NAMES = "abcdefghijkl"


def with_value(value, rows, columns=slice(None)):
    table = Y.copy()
    table[rows, columns] = value
    return table


def read(content, **options):
    path = Path("table.csv")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, **options)


def quick(**settings):
    return LGMD(2, tol=1.0, **settings).fit(Y)


def resume_other_run():
    LGMD(2, tol=1.0).fit(Y, checkpoint="run.npz")
    LGMD(3, tol=1.0).fit(Y, checkpoint="run.npz")


def load_other_file():
    Path("model.npz").write_bytes(b"no model")
    LGMD.load("model.npz")


def chain_backwards():
    graph = pd.DataFrame(candidates.chain(12).toarray().astype(float), list(NAMES), list(NAMES))
    return graph.iloc[::-1, ::-1]


def twice_in_one_place():
    places = ([0, 0, 1, 2], [1, 1, 0, 2])
    return LGMD(2).fit(scipy.sparse.coo_array((np.ones(4), places), shape=(3, 3)))


CASES = {
    "... no observed entry": lambda: LGMD(2).fit(with_value(np.nan, 3)),
    "All ... entries are missing": lambda: LGMD(2).fit(np.full((4, 4), np.nan)),
    "The table holds text": lambda: LGMD(2).fit(Y.astype(str).astype(object)),
    "... entries are infinity": lambda: LGMD(2).fit(with_value(np.inf, 3, 1)),
    "... entries are stored more": twice_in_one_place,
    "Found array with ... sample(s)": lambda: LGMD(1).fit([[1.0, 2.0, 3.0]]),
    "n_components=...": lambda: LGMD(9).fit(Y),
    "X has ... features": lambda: quick().transform(Y[:, :4]),
    "rows must be between": lambda: quick().predict(20, 0),
    "The columns of the table": lambda: LGMD(2, tol=1.0).fit(pd.DataFrame(Y)).transform(pd.DataFrame(Y).iloc[:, ::-1]),
    "..., line ..., column": lambda: read("name,a,b\nx,1,2\ny,1,oops\n"),
    "..., line ...: there are": lambda: read("name,a,b,c\nx,1,2,3\ny,1,3\nz,1,2,3\n"),
    "...: the column name": lambda: read("name,a,b,a\nx,1,2,3\ny,1,2,3\n"),
    "... is not UTF-8": lambda: read("name,a,b\nÅ,1,2\ny,1,3\n".encode("latin-1")),
    "...: row ... and column": lambda: read("u,f,r\na,x,1\na,x,2\nb,x,1\nb,y,3\n", long=("u", "f", "r")),
    "... has no column": lambda: read("u,f,r\na,x,1\nb,x,1\nb,y,3\n", long=("user", "f", "r")),
    "... is there already": lambda: write_table(read("name,a,b\nx,1,2\ny,1,3\n"), "table.csv"),
    "...: log1p is": lambda: read("name,a,b\nx,1,-2\ny,1,3\n", log1p=True),
    "sample_graph is ... x": lambda: LGMD(2, sample_graph=np.eye(5)).fit(Y),
    "sample_graph has the rows": lambda: LGMD(2, sample_graph=chain_backwards()).fit(pd.DataFrame(Y, list(NAMES))),
    "sample_graph is not symmetric": lambda: LGMD(2, sample_graph=np.triu(np.ones((12, 12)))).fit(Y),
    "sample_graph looks like": lambda: quick(sample_graph=PriorGraph(laplacian(candidates.chain(12).astype(float)))),
    "sample_graph must be one of": lambda: LGMD(2, sample_graph="knnn").fit(Y),
    "sample_graph.candidates": lambda: quick(sample_graph=EvidenceGraph(candidates=candidates.chain)).save("model.npz"),
    "LGMD was stopped by max_iter after": lambda: LGMD(2, max_iter=2).fit(Y),
    "return_std=True": lambda: PMF(2, tol=1.0).fit(Y).reconstruct(return_std=True),
    "likelihood='student'": lambda: LGMD(2, inference="map", likelihood="student").fit(Y),
    "The factor updates": lambda: LGMD(2, inference="map", update="paper", sample_penalty=1e4, feature_penalty=1e4).fit(
        Y
    ),
    "The checkpoint": resume_other_run,
    "GPCA needs": lambda: GPCA(2).fit(with_value(np.nan, 3, 1)),
    "This LGMD instance": lambda: LGMD().reconstruct(),
    "... cannot be loaded": load_other_file,
    "The full table": lambda: _memory.refuse_oversized(2**30, 2**30, 8),
    "... is not at hand": lambda: datasets.load_temperature(folder="."),
    "lgmd.anndata needs": lambda: __import__("lgmd.anndata", fromlist=["fit"]).fit(None),
}


def listed():
    """Messages of the page: its headings that are code and nothing else."""
    return re.findall(r"^### `([^`]+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("beginning", listed())
def test_a_message_is_as_the_page_says(beginning, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LGMD_DATA", raising=False)
    if beginning.startswith("lgmd.anndata"):
        monkeypatch.setitem(sys.modules, "anndata", None)
    provoke = [case for start, case in CASES.items() if beginning.startswith(start)]
    assert len(provoke) == 1, "a message without a case, or with two"
    expected = ".*".join(re.escape(part) for part in beginning.split("..."))
    with warnings.catch_warnings():
        warnings.simplefilter("error" if "stopped" in beginning else "ignore")
        with pytest.raises(Exception, match=f"(?s)^{expected}"):
            provoke[0]()


def test_every_case_is_on_the_page():
    for start in CASES:
        assert any(beginning.startswith(start) for beginning in listed()), start

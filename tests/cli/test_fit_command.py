"""``lgmd fit``: what the folder holds, and that it agrees with the same fit in Python."""

import itertools
import json
import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lgmd import DGRMD, LGMD, PMF, LGMDPlus
from lgmd.graphs import PriorGraph
from lgmd.tables import read_table

FAST = ("--set", "prior=columns")
QUICK = ("--max-iter", 4, "-k", 3, "--quiet", *FAST)
PLAIN = ("--model", "pmf", "--max-iter", 2, "-k", 2)
ALL = {
    "model.lgmd",
    "sample_factors.csv",
    "feature_factors.csv",
    "edges_samples.csv",
    "edges_features.csv",
    "reconstruction.csv",
    "reconstruction_std.csv",
    "held_out.csv",
    "history.csv",
    "settings.json",
    "report.html",
}


def test_the_folder_holds_everything_and_agrees_with_python(command, table_file, frame, tmp_path):
    ended = command("fit", table_file, "--output", "out", *QUICK)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert set(os.listdir("out")) == ALL
    assert sorted(os.listdir(tmp_path)) == ["out", "table.csv"]
    with pytest.warns(match="max_iter"):
        model = LGMD(3, max_iter=4, prior="columns", random_state=0).fit(frame)
    stored = LGMD.load("out/model.lgmd")
    values, bars = model.reconstruct(return_std=True)
    np.testing.assert_allclose(stored.reconstruct(), values)
    assert list(stored.sample_names_in_) == list(frame.index)
    for name, expected in (("reconstruction", values), ("reconstruction_std", bars)):
        written = pd.read_csv(f"out/{name}.csv", index_col=0)
        assert list(written.index) == list(frame.index)
        assert list(written.columns) == list(frame.columns)
        # As text they have the digits that mean something.
        np.testing.assert_allclose(written.to_numpy(), expected, rtol=0, atol=1e-4 * bars.min())
        assert np.char.str_len(written.to_numpy().astype(str)).max() < 10
    factors = pd.read_csv("out/sample_factors.csv", index_col="name")
    loadings = pd.read_csv("out/feature_factors.csv", index_col="name")
    assert list(loadings.index) == list(frame.columns)
    settings = json.loads((tmp_path / "out/settings.json").read_text())
    names = [name for name in factors if name.startswith("factor_")]
    rebuilt = factors[names].to_numpy() @ loadings[names].to_numpy().T + settings["result"]["intercept"]
    rebuilt += factors["intercept"].to_numpy()[:, None] + loadings["intercept"].to_numpy()
    np.testing.assert_allclose(rebuilt, values)
    history = pd.read_csv("out/history.csv")
    np.testing.assert_allclose(history["objective"], model.history_.objective)
    held_out = pd.read_csv("out/held_out.csv")
    known = frame.stack()
    assert 0 < len(held_out) < 0.2 * len(known)
    for row, column, value in zip(held_out["row"], held_out["column"], held_out["value"], strict=True):
        assert frame.loc[row, column] == pytest.approx(value, rel=1e-12)
    error = np.sqrt(np.mean((held_out["value"] - held_out["prediction"]) ** 2))
    assert settings["result"]["held_out"]["rmse"] == pytest.approx(error)
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "LGMD of table.csv" in page
    assert "day 3, noon" in page


def test_edges_have_names_and_partial_correlations(command, tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat(rng.standard_normal((6, 8)), 5, axis=0) + 0.2 * rng.standard_normal((30, 8))
    table = groups @ rng.standard_normal((8, 20)) + 0.05 * rng.standard_normal((30, 20))
    frame = pd.DataFrame(table, index=[f"r{i}" for i in range(30)], columns=[f"c{j}" for j in range(20)])
    frame.to_csv(tmp_path / "groups.csv")
    lean = ("--held-out", 0, "--no-report", "--reconstruction", "none", "--quiet")
    options = ("--sample-graph", "knn", "--feature-graph", "none", "-k", 8, "--max-iter", 3, *FAST)
    assert command("fit", "groups.csv", "-o", "out", *options, *lean).code == 0
    assert not ({"report.html", "reconstruction.csv", "held_out.csv"} & set(os.listdir("out")))
    edges = pd.read_csv("out/edges_samples.csv")
    assert list(edges.columns) == ["source", "target", "weight", "partial_correlation"]
    assert set(edges["source"]) <= set(frame.index)
    same = edges["source"].str[1:].astype(int) // 5 == edges["target"].str[1:].astype(int) // 5
    assert same.mean() > 0.5
    assert edges["partial_correlation"].abs().is_monotonic_decreasing
    assert pd.read_csv("out/edges_features.csv").empty


def test_settings_repeat_a_fit(command, table_file, tmp_path):
    options = ("--held-out", 0, "--no-report", "--quiet")
    first = ("-k", 2, "--max-iter", 3, *FAST, "--noise", "features", "--set", "sample_graph__fdr=0.3", "--transpose")
    assert command("fit", table_file, "-o", "one", *first, *options).code == 0
    assert command("fit", table_file, "-o", "two", "--settings", "one/settings.json", *options).code == 0
    one, two = (json.loads((tmp_path / name / "settings.json").read_text()) for name in ("one", "two"))
    assert one["parameters"] == two["parameters"]
    assert one["parameters"]["sample_graph__fdr"] == 0.3
    assert one["parameters"]["noise"] == "features"
    assert one["reading"] == two["reading"] == {"transpose": True}
    assert one["result"]["objective"] == two["result"]["objective"]
    assert (tmp_path / "one/reconstruction.csv").read_bytes() == (tmp_path / "two/reconstruction.csv").read_bytes()
    assert LGMD.load("two/model.lgmd").sample_graph.fdr == 0.3
    third = ("-o", "three", "--settings", "one/settings.json", "--max-iter", 2)
    assert command("fit", table_file, *third, *options).code == 0
    assert LGMD.load("three/model.lgmd").n_iter_ == 2


def test_every_model(command, table_file):
    options = ("--held-out", 0, "--no-report", *QUICK)
    for name, kind in {"pmf": PMF, "dgrmd": DGRMD}.items():
        assert command("fit", table_file, "-o", name, "--model", name, *options).code == 0
        assert kind.load(f"{name}/model.lgmd").rank_ == 3
        assert "reconstruction_std.csv" not in os.listdir(name)
    assert command("fit", table_file, "-o", "plus", "--model", "lgmd+", *options).code == 0
    assert LGMDPlus.load("plus/model.lgmd").sample_graph == "laplacian"
    refused = command("fit", table_file, "-o", "none", "--model", "pmf", "--sample-graph", "knn", *options)
    assert refused.code == 1
    assert "pmf" in refused.err
    assert "--sample-graph" in refused.err


@pytest.mark.parametrize("kind", ["edges", "weights", "spaces", "adjacency", "sparse"])
def test_graphs_come_from_files(kind, command, table_file, frame, tmp_path):
    n = len(frame)
    chain = np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    names = list(frame.index)
    weight = 2.0 if kind == "weights" else 1.0
    if kind == "adjacency":
        path = tmp_path / "graph.csv"
        order = list(reversed(range(n)))
        pd.DataFrame(chain[order][:, order], index=names[::-1], columns=names[::-1]).to_csv(path)
    elif kind == "sparse":
        path = tmp_path / "graph.npz"
        np.savez(path, values=chain)
    elif kind == "spaces":
        path = tmp_path / "graph.txt"
        path.write_text("".join(f'"{one}" "{other}"\n' for one, other in itertools.pairwise(names)))
    else:
        path = tmp_path / "graph.csv"
        rows = [f"{one},{other}{',2' * (kind == 'weights')}" for one, other in itertools.pairwise(names)]
        header = "from,to,strength" if kind == "weights" else "from,to"
        path.write_text("\n".join([header, *rows, f"{names[0]},elsewhere{',2' * (kind == 'weights')}"]))
    lean = ("--held-out", 0, "--no-report", "--reconstruction", "none", "--max-iter", 3, "-k", 3, *FAST)
    ended = command("fit", table_file, "-o", "out", "--sample-graph", path, *lean)
    assert ended.code == 0, ended.err
    assert ("'elsewhere'" in ended.err) == (kind in ("edges", "weights"))
    learner = LGMD.load("out/model.lgmd").sample_graph
    assert isinstance(learner, PriorGraph)
    np.testing.assert_array_equal(learner.adjacency.toarray(), weight * chain)


def test_what_fit_writes_is_a_graph_it_reads(command, table_file):
    lean = ("--held-out", 0, "--no-report", "--reconstruction", "none", *QUICK)
    assert command("fit", table_file, "-o", "one", "--sample-graph", "knn", *lean).code == 0
    assert command("fit", table_file, "-o", "two", "--sample-graph", "one/edges_samples.csv", *lean).code == 0
    edges = pd.read_csv("one/edges_samples.csv")
    assert LGMD.load("two/model.lgmd").sample_graph.adjacency.nnz == 2 * len(edges)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\nb,c\nc,a\nd,e\n", "no edge between two rows"),
        ("station 0,station 1,1\nstation 1,station 0,2\nstation 2,station 3,1\nstation 4,station 5,1\n", "two weights"),
        ("station 0,station 1,1\nstation 2,station 3,x\nstation 4,station 5,1\nstation 6,station 7,1\n", "no number"),
        ("station 0,station 1\nstation 2\nstation 3,station 4\n", "line 2"),
        ("", "is empty"),
        ("a,b,c,d\n1,2,3,4\n5,6,7,8\n", "20 x 20"),
        (None, "no file"),
    ],
)
def test_bad_graphs_are_refused(content, words, command, table_file, tmp_path):
    if content is not None:
        (tmp_path / "graph.csv").write_text(content)
    ended = command("fit", table_file, "-o", "out", "--sample-graph", "graph.csv", *QUICK)
    assert ended.code == 1
    assert words in ended.err
    assert not (tmp_path / "out").exists()


def test_a_misspelt_graph_is_no_file(command, table_file):
    ended = command("fit", table_file, "-o", "out", "--feature-graph", "evidenec")
    assert ended.code == 1
    assert "--feature-graph must be one of" in ended.err
    assert "evidence" in ended.err


def test_compressed_text_and_parquet_come_back_in_their_own_form(command, frame, tmp_path):
    frame.to_csv(tmp_path / "t.tsv.gz", sep="\t")
    frame.astype("float32").to_parquet(tmp_path / "t.parquet")
    lean = ("--held-out", 0, "--no-report", *QUICK)
    assert command("fit", "t.tsv.gz", "-o", "one", "--log1p", *lean).code == 0
    assert command("fit", "t.parquet", "-o", "two", *lean).code == 0
    one, two = read_table("one/reconstruction.tsv.gz"), read_table("two/reconstruction_std.parquet")
    assert one.shape == two.shape == frame.shape
    assert list(two.column_names) == list(frame.columns)
    assert abs(np.nanmean(one.values) - np.nanmean(frame)) < 0.5


def test_ratings_stay_sparse(command, tmp_path, monkeypatch):
    """Where the full table would be long, only observed entries are written, in the order of the file."""
    rng = np.random.default_rng(2)
    pairs = rng.permutation([(u, f) for u in range(30) for f in range(20) if rng.random() < 0.3 or u % 20 == f])
    stars = rng.integers(1, 6, len(pairs))
    ratings = pd.DataFrame({"user": [f"u{u}" for u in pairs[:, 0]], "film": pairs[:, 1], "stars": stars})
    ratings.to_csv(tmp_path / "ratings.csv", index=False)
    lean = ("--long", "user", "film", "stars", "--scale", "--held-out", 0, "--no-report", *QUICK)
    assert command("fit", "ratings.csv", "-o", "full", *lean).code == 0
    monkeypatch.setattr("lgmd.cli._fit_files.RECONSTRUCTION_UP_TO", 100)
    assert command("fit", "ratings.csv", "-o", "part", *lean).code == 0
    for name in ("reconstruction", "reconstruction_std"):
        full, part = (pd.read_csv(f"{folder}/{name}.csv") for folder in ("full", "part"))
        assert len(full) == 600
        assert list(part["user"]) == list(ratings["user"])
        joined = part.merge(full, on=["user", "film"])
        np.testing.assert_allclose(joined["stars_x"], joined["stars_y"], atol=2e-4)
    model = LGMD.load("part/model.lgmd")
    assert set(model.sample_names_in_) == set(ratings["user"])


def test_a_hundred_thousand_ratings(command, tmp_path):
    rng = np.random.default_rng(5)
    places = rng.choice(1000 * 500, 100_000, replace=False)
    places = np.union1d(places, np.concatenate([np.arange(1000) * 500, np.arange(500)]))
    users, films = np.divmod(places, 500)
    lines = "".join(f"{u}\t{f}\t{s}\n" for u, f, s in zip(users, films, rng.integers(1, 6, len(users)), strict=True))
    (tmp_path / "u.data.tsv").write_text(lines)
    options = ("--long", "0", "1", "2", "--model", "pmf", "--max-iter", 2, "-k", 2, "--held-out", 0)
    lean = ("--no-report", "--reconstruction", "observed")
    ended = command("fit", "u.data.tsv", "-o", "out", *options, *lean)
    assert ended.code == 0, ended.err
    assert "1,000 rows x 500 columns" in ended.err
    assert len(pd.read_csv("out/reconstruction.tsv", sep="\t", header=None)) == len(users)


def test_held_out_entries_are_left_out_of_large_tables(command, table_file, monkeypatch):
    monkeypatch.setattr("lgmd.cli._fitting.HELD_OUT_UP_TO", 100)
    lean = ("--no-report", "--reconstruction", "none", *PLAIN)
    ended = command("fit", table_file, "-o", "one", *lean)
    assert "No entries are held out" in ended.err
    assert "held_out.csv" not in os.listdir("one")
    assert command("fit", table_file, "-o", "two", "--held-out", 0.2, *lean).code == 0
    assert len(pd.read_csv("two/held_out.csv")) > 20
    assert "--held-out" in command("fit", table_file, "-o", "three", "--held-out", 1.5, *lean).err


def test_results_are_replaced_only_when_told_to(command, table_file, tmp_path):
    lean = ("--held-out", 0, "--no-report", "--quiet", *PLAIN)
    assert command("fit", table_file, "-o", "out", *lean).code == 0
    before = (tmp_path / "out/settings.json").read_bytes()
    refused = command("fit", table_file, "-o", "out", *lean)
    assert refused.code == 1
    assert "--force" in refused.err
    assert (tmp_path / "out/settings.json").read_bytes() == before
    assert command("fit", table_file, "-o", "out", "--force", "--reconstruction", "none", *lean).code == 0
    assert not (tmp_path / "out/reconstruction.csv").exists()
    (tmp_path / "out/notes.txt").write_text("mine")
    refused = command("fit", table_file, "-o", "out", "--force", *lean)
    assert refused.code == 1
    assert "'notes.txt'" in refused.err
    assert (tmp_path / "out/notes.txt").read_text() == "mine"
    assert command("fit", table_file, "-o", ".", "--force", *lean).code == 1
    assert sorted(os.listdir(tmp_path)) == ["out", "table.csv"]


def test_the_outcome_for_people_and_for_programs(command, table_file, frame):
    people = command("fit", table_file, "-o", "one", "--max-iter", 2, "-k", 2, *FAST)
    assert "did not converge after 2 iterations" in people.out
    assert "held-out entries (RMSE)" in people.out
    assert "report.html" in people.out
    assert people.err.count("Warning:") == 1
    assert "stopped by --max-iter after 2 iterations" in people.err
    programs = command("fit", table_file, "-o", "two", "--max-iter", 2, "-k", 2, "--json", "--quiet", *FAST)
    found = json.loads(programs.out)
    assert programs.err == ""
    assert found["outcome"] == "fitted"
    assert set(found["files"]) == {name.partition(".")[0] for name in ALL}
    assert all(os.path.exists(path) for path in found["files"].values())
    assert found["table"]["observed"] == int(frame.notna().to_numpy().sum())


def test_cells_and_genes_of_an_anndata_file(command, frame, tmp_path):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    data = anndata.AnnData(frame.to_numpy(), obs=pd.DataFrame(index=frame.index), var=pd.DataFrame(index=frame.columns))
    data.write_h5ad(tmp_path / "t.h5ad")
    ended = command("fit", "t.h5ad", "-o", "out", "--model", "pmf", "-k", 2, "--max-iter", 3, "--held-out", 0)
    assert ended.code == 0, ended.err
    assert list(pd.read_csv("out/sample_factors.csv", index_col=0).index) == list(frame.index)
    assert anndata.read_h5ad("out/reconstruction.h5ad").shape == frame.shape
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_what_a_sparse_file_leaves_out_is_a_gap_or_zero(command, tmp_path, rng):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    counts = rng.poisson(1.0, (20, 8)).astype(float)
    anndata.AnnData(scipy.sparse.csr_matrix(counts)).write_h5ad(tmp_path / "t.h5ad")
    settings = ("--model", "pmf", "-k", 2, "--max-iter", 3, "--held-out", 0)
    ended = command("fit", "t.h5ad", "-o", "gaps", *settings)
    assert ended.code == 0
    assert "gaps (what is not stored; --zeros takes it for zero)" in " ".join((ended.out + ended.err).split())
    ended = command("fit", "t.h5ad", "-o", "zeros", "--zeros", *settings)
    assert ended.code == 0
    assert "no gaps" in ended.out + ended.err


@pytest.fixture
def small(tmp_path):
    """A table of three named rows as a file."""
    values = np.random.default_rng(0).standard_normal((3, 6))
    path = tmp_path / "small.csv"
    pd.DataFrame(values, index=["a", "b", "c"], columns=list("uvwxyz")).to_csv(path)
    return path


LEAN = ("--held-out", 0, "--no-report", "--reconstruction", "none", "--max-iter", 2, "-k", 2, "--quiet")
JOINED = {"a": [0, 2.0, 0], "b": [2.0, 0, 3.0], "c": [0, 3.0, 0]}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("from,to,weight\na,b,2\nb,c,3\n", JOINED),
        ("a,b,2\nb,c,3\nb,a,2\n", JOINED),
        ("a,b\nb,c\n", {"a": [0, 1, 0], "b": [1, 0, 1], "c": [0, 1, 0]}),
        ("0,2,0\n2,0,3\n0,3,0\n", JOINED),
        (",a,b,c\na,0,2,0\nb,2,0,3\nc,0,3,0\n", JOINED),
    ],
)
def test_lists_of_edges_and_adjacencies_of_three_nodes_are_told_apart(content, expected, command, small, tmp_path):
    (tmp_path / "graph.csv").write_text(content)
    ended = command("fit", small, "-o", "out", "--sample-graph", "graph.csv", *LEAN)
    assert ended.code == 0, ended.err
    np.testing.assert_array_equal(LGMD.load("out/model.lgmd").sample_graph.adjacency.toarray(), list(expected.values()))


@pytest.mark.parametrize("lines", ["from,to,weight\nstation 0,station 1,2\nstation 2,station 3,2", "{},2\n{},2\n{},2"])
def test_a_list_may_have_as_many_lines_as_columns(lines, command, table_file, tmp_path):
    pairs = [f"station {i},station {i + 1}" for i in range(0, 6, 2)]
    (tmp_path / "graph.csv").write_text(lines.format(*pairs))
    ended = command("fit", table_file, "-o", "out", "--sample-graph", "graph.csv", *LEAN)
    assert ended.code == 0, ended.err
    adjacency = LGMD.load("out/model.lgmd").sample_graph.adjacency.tocoo()
    assert set(adjacency.data) == {2.0}
    assert adjacency.nnz == (4 if "from" in lines else 6)


@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_lists_of_edges_and_adjacencies_come_in_other_formats_too(ending, command, small, tmp_path):
    edges = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "weight": [2.0, 3.0]})
    adjacency = pd.DataFrame(JOINED, index=list("abc"))
    for name, frame, indexed in (("edges", edges, False), ("adjacency", adjacency, True)):
        path = tmp_path / f"{name}.{ending}"
        (frame.to_parquet if ending == "parquet" else frame.to_excel)(path, index=indexed)
        ended = command("fit", small, "-o", name, "--sample-graph", path, *LEAN)
        assert ended.code == 0, ended.err
        found = LGMD.load(f"{name}/model.lgmd").sample_graph.adjacency.toarray()
        np.testing.assert_array_equal(found, list(JOINED.values()))


@pytest.fixture
def unnamed(tmp_path):
    """A table of eight rows without names."""
    path = tmp_path / "plain.csv"
    values = np.random.default_rng(0).standard_normal((8, 6))
    pd.DataFrame(values, columns=list("uvwxyz")).to_csv(path, index=False)
    return path


def test_columns_of_parquet_are_no_edge_and_a_weight_that_is_missing_is_one(command, unnamed, tmp_path):
    edges = pd.DataFrame([["0", "3", 5], ["2", "3", 2], ["4", "5", None]], columns=["0", "1", "2"])
    edges = edges.astype({"2": "Int64"})
    edges[edges["0"] != "0"].to_parquet(tmp_path / "edges.parquet")
    ended = command("fit", unnamed, "-o", "out", "--sample-graph", "edges.parquet", *LEAN)
    assert ended.code == 0, ended.err
    expected = np.zeros((8, 8))
    expected[2, 3] = expected[3, 2] = 2.0
    expected[4, 5] = expected[5, 4] = 1.0
    np.testing.assert_array_equal(LGMD.load("out/model.lgmd").sample_graph.adjacency.toarray(), expected)


def test_a_first_line_that_counts_is_an_edge_and_the_user_is_told(command, unnamed, tmp_path):
    (tmp_path / "edges.csv").write_text("0,1\n2,3\n")
    ended = command("fit", unnamed, "-o", "out", "--sample-graph", "edges.csv", *LEAN[:-1])
    assert "the first line, 0,1, is taken for an edge. If it is a header, call it source,target" in ended.err
    assert LGMD.load("out/model.lgmd").sample_graph.adjacency.nnz == 4


def test_an_adjacency_whose_first_row_counts_keeps_it(command, unnamed, tmp_path):
    adjacency = np.zeros((8, 8))
    adjacency[0] = adjacency[:, 0] = np.arange(8)
    adjacency[1, 2] = adjacency[2, 1] = 0.5
    np.savetxt(tmp_path / "graph.csv", adjacency, delimiter=",", fmt="%g")
    ended = command("fit", unnamed, "-o", "out", "--sample-graph", "graph.csv", *LEAN)
    assert (ended.code, ended.err) == (0, "")
    np.testing.assert_array_equal(LGMD.load("out/model.lgmd").sample_graph.adjacency.toarray(), adjacency)


def test_days_join_rows_whose_names_are_days(command, tmp_path):
    days = pd.date_range("2018-01-01", periods=5)
    values = np.random.default_rng(0).standard_normal((5, 6))
    pd.DataFrame(values, index=days, columns=list("uvwxyz")).to_csv(tmp_path / "days.csv", index_label="day")
    pd.DataFrame({"source": days[:-1], "target": days[1:]}).to_excel(tmp_path / "next.xlsx", index=False)
    ended = command("fit", "days.csv", "-o", "out", "--sample-graph", "next.xlsx", *LEAN)
    assert ended.code == 0, ended.err
    chain = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    np.testing.assert_array_equal(LGMD.load("out/model.lgmd").sample_graph.adjacency.toarray(), chain)


def test_settings_name_graphs_in_files_wherever_they_are_read(command, small, tmp_path, monkeypatch):
    (tmp_path / "graph.csv").write_text("from,to\na,b\n")
    assert command("fit", small, "-o", "out", "--sample-graph", "graph.csv", *LEAN).code == 0
    stored = json.loads((tmp_path / "out/settings.json").read_text())["parameters"]
    assert stored["sample_graph"] == str(tmp_path / "graph.csv")
    assert stored["feature_graph"] == "evidence"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = command("fit", small, "-o", "out", "--settings", "../out/settings.json", *LEAN)
    assert again.code == 0, again.err
    assert LGMD.load("out/model.lgmd").sample_graph.adjacency.nnz == 2

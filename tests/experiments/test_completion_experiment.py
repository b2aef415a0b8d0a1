"""Ratings with given graphs: the methods on small tables, and the experiment on a folder of data that is made here."""

import os

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from lgmd import datasets
from lgmd.cli import app
from lgmd.exceptions import MissingDataError
from lgmd.experiments import completion_methods, reproduce
from lgmd.experiments.completion import PUBLISHED, Completion
from lgmd.experiments.completion_methods import METHODS, Size, predict, ridge_means

SIZE = Size(n_components=3, n_trials=3, n_splits=1, map_iterations=20, rival_iterations=(5, 5), n_starts=1, seed=0)
OURS = tuple(method for method in METHODS if not method.startswith("myfm"))


def write_split(folder, name="ml_100k", *, test_shift=0.0, n=40, p=30):
    """A split in the form of the data folder, of a table that is smooth over its rows' graph."""
    data = datasets.make_matrix_normal(n, p, rank=3, sample_graph="blocks", noise=0.3, random_state=5)
    table = data.noisy + np.linspace(-2, 2, n)[:, None] + 3
    rng = np.random.default_rng(0)
    seen = rng.random(table.shape) < 0.5
    tested = ~seen & (rng.random(table.shape) < 0.4)
    graph = scipy.sparse.triu(data.sample_precision, 1).tocoo()
    arrays = {"shape": np.array(table.shape), "graph_user_i": graph.row, "graph_user_j": graph.col}
    for part, chosen, shift in (("train", seen, 0.0), ("test", tested, test_shift)):
        arrays[f"{part}_user"], arrays[f"{part}_item"] = np.nonzero(chosen)
        arrays[f"{part}_rating"] = table[chosen] + shift
    (folder / "graph_mc").mkdir(exist_ok=True)
    np.savez(folder / "graph_mc" / f"{name}.npz", **arrays)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with one small split."""
    write_split(tmp_path)
    monkeypatch.setenv("LGMD_DATA", str(tmp_path))
    return tmp_path


def test_ridge_means_solve_the_normal_equations(rng):
    table = scipy.sparse.coo_array(np.where(rng.random((8, 6)) < 0.6, rng.standard_normal((8, 6)) + 3, 0.0))
    overall, rows, columns = ridge_means(table, (2.0, 0.5))
    design = np.zeros((table.nnz, 14))
    design[np.arange(table.nnz), table.coords[0]] = 1
    design[np.arange(table.nnz), 8 + table.coords[1]] = 1
    ridge = np.diag([2.0] * 8 + [0.5] * 6)
    expected = np.linalg.solve(design.T @ design + ridge, design.T @ (table.data - table.data.mean()))
    assert overall == pytest.approx(table.data.mean())
    np.testing.assert_allclose(np.concatenate([rows, columns]), expected, atol=1e-5)


@pytest.mark.parametrize("method", OURS)
def test_no_method_looks_at_test_ratings(method, folder):
    (first,) = predict(method, datasets.load_graph_completion("ml_100k"), SIZE)
    write_split(folder, test_shift=100.0)
    (second,) = predict(method, datasets.load_graph_completion("ml_100k"), SIZE)
    np.testing.assert_array_equal(first.values, second.values)
    assert first.note == second.note
    assert (first.deviations is None) == (method in ("means", "PMF", "given graphs, MAP"))


def refuse(name):
    raise ImportError(name)


def test_a_rival_that_is_not_installed_says_so(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(completion_methods, "import_module", refuse)
    experiment = Completion(splits=("ml_100k",), methods=("means", "myfm, Gibbs"), n_groups=3)
    done = reproduce(experiment, tmp_path / "out")
    assert "| myfm, Gibbs | run here | not installed |" in (done.folder / "page.md").read_text()
    assert "not run" in (done.folder / "completion.svg").read_text()


def test_a_rival_that_was_not_installed_is_asked_again(folder, monkeypatch, tmp_path):
    asked = []
    run = Completion.run

    def recorded(experiment, cell):
        asked.append(cell["method"])
        return run(experiment, cell)

    monkeypatch.setattr(completion_methods, "import_module", refuse)
    monkeypatch.setattr(Completion, "run", recorded)
    experiment = Completion(splits=("ml_100k",), methods=("means", "myfm, Gibbs"), n_groups=3)
    for _ in range(2):
        reproduce(experiment, tmp_path / "out")
    assert asked == ["means", "myfm, Gibbs", "myfm, Gibbs"]


def test_users_and_items_are_one_hot():
    table = scipy.sparse.coo_array((np.array([4.0, 2.0]), (np.array([1, 0]), np.array([2, 0]))), shape=(2, 3))
    expected = [[0, 1, 0, 0, 1], [1, 0, 1, 0, 0]]
    np.testing.assert_array_equal(completion_methods._one_hot(table).toarray(), expected)


def test_the_page_and_its_numbers(folder, tmp_path, monkeypatch):
    methods = ("means", "given graphs, variational", "LGMD")
    experiment = Completion(
        splits=("ml_100k",), methods=methods, n_components=3, n_trials=3, n_splits=1, n_starts=2, n_groups=4
    )
    done = reproduce(experiment, tmp_path / "out")
    data = datasets.load_graph_completion("ml_100k")
    size = Size(3, 3, 1, experiment.map_iterations, experiment.rival_iterations, 1, 0)
    page = (done.folder / "page.md").read_text()
    errors = {}
    for method in methods:
        (found,) = predict(method, data, size)
        errors[method] = np.sqrt(np.mean((found.values - data.test.data) ** 2))
        assert f"| {method} | run here | {errors[method]:.4f} |" in page
        rows = done.results[(done.results["method"] == method) & (done.results["start"] == 0)]
        assert rows["n"].sum() == data.test.nnz
        if found.deviations is not None:
            inside = np.abs(found.values - data.test.data) < 1.645 * found.deviations
            assert rows["inside"].sum() == inside.sum()
    # The table has factors that means do not know, and ratings of low noise.
    assert errors["LGMD"] < 0.8 * errors["means"]
    for method, known in PUBLISHED.items():
        assert f"| {method} | published | {known['ml_100k']} |" in page
    assert "completion.svg" in done.page.read_text()
    monkeypatch.setattr(Completion, "run", lambda self, cell: pytest.fail("the cell is there already"))
    assert reproduce(experiment, done.folder).results.equals(done.results)


def test_groups_do_not_share_users(folder):
    rows = Completion(methods=("means",), n_groups=4).run({"split": "ml_100k", "method": "means"})
    data = datasets.load_graph_completion("ml_100k")
    counts = np.bincount(data.test.coords[0], minlength=40)
    groups = np.random.default_rng(0).permutation(40) % 4
    assert [row["n"] for row in rows] == [counts[groups == group].sum() for group in range(4)]


def test_without_data_the_error_says_what_to_do(monkeypatch):
    monkeypatch.delenv("LGMD_DATA", raising=False)
    with pytest.raises(MissingDataError, match="LGMD_DATA"):
        Completion().run({"split": "douban", "method": "means"})


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("LGMD_DATA"), reason="LGMD_DATA does not name the data folder")
def test_means_are_as_good_as_measured_elsewhere():
    rows = Completion().run({"split": "flixster", "method": "means"})
    error = np.sqrt(sum(row["squares"] for row in rows) / sum(row["n"] for row in rows))
    assert error == pytest.approx(0.877, abs=0.002)
    assert error < PUBLISHED["GC-MC"]["flixster"]


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("LGMD_DATA"), reason="LGMD_DATA does not name the data folder")
def test_the_quick_command(tmp_path):
    options = ["--quick", "--output", str(tmp_path), "--workers", "1"]
    outcome = CliRunner().invoke(app, ["reproduce", "completion", *options])
    assert outcome.exit_code == 0, outcome.output
    assert "LGMD" in (tmp_path / "completion-quick" / "page.md").read_text()

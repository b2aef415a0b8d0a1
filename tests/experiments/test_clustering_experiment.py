"""The clustering experiment: fair draws, the same way to clusters for all, and graphs that help where there are any."""

from __future__ import annotations

import os
from io import StringIO

import numpy as np
import pytest
import scipy.sparse
from rich.console import Console
from sklearn.feature_extraction.text import TfidfTransformer
from typer.testing import CliRunner

from lgmd import DGRMD, PMF
from lgmd.cli import app
from lgmd.datasets import LabelledData
from lgmd.exceptions import MissingDataError
from lgmd.experiments import reproduce
from lgmd.experiments.clustering import Clustering
from lgmd.experiments.clustering_methods import (
    FACTOR_METHODS,
    along_graph,
    clusters,
    draw,
    factor_method,
    scores,
    tf_idf,
    unit_rows,
)
from lgmd.experiments.methods import fit
from lgmd.metrics import clustering_accuracy

DATA = pytest.mark.skipif(not os.environ.get("LGMD_DATA"), reason="LGMD_DATA does not name the data folder")
TINY = Clustering((3,), (4, 3), n_repetitions=2, n_samples=90, n_terms=100, n_starts=2)


def write_digits(folder, rng):
    """Four digits as noisy pictures of 6 x 6 pixels, unevenly many of each."""
    labels = np.repeat([0, 3, 4, 7], [60, 50, 40, 30])
    pictures = rng.uniform(0, 200, (10, 36))
    pixels = np.clip(pictures[labels] + rng.normal(0, 60, (len(labels), 36)), 0, 255)
    (folder / "images").mkdir()
    np.savez(folder / "images" / "mnist_test.npz", X=pixels.astype(np.uint8), y=labels)


def write_stories(folder, rng):
    """Five topics over 120 terms, half of them common to all."""
    labels = np.repeat(np.arange(1, 6), [70, 60, 50, 40, 30])
    topics = rng.gamma(0.2, 1.0, (6, 120))
    topics[:, :60] = 0.5
    counts = scipy.sparse.csr_array(rng.poisson(topics[labels]).astype(np.uint8))
    (folder / "tdt2").mkdir()
    np.savez(
        folder / "tdt2" / "tdt2_top30.npz",
        data=counts.data,
        indices=counts.indices,
        indptr=counts.indptr,
        shape=counts.shape,
        y=labels,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    write_digits(folder, rng)
    write_stories(folder, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LGMD_DATA", str(folder))
        target = tmp_path_factory.mktemp("clustering")
        return reproduce(TINY, target, console=Console(file=StringIO()))


def test_every_method_is_measured_on_every_draw(done):
    rows = done.results
    assert len(rows) == 6 * 7
    for _, of_draw in rows.groupby(["data", "n_classes", "repetition"]):
        assert list(of_draw["method"]) == ["k-means, raw", "k-means", "PMF, as it is", *FACTOR_METHODS]
    assert rows["accuracy"].between(1 / 4, 1).all()
    assert rows["information"].between(0, 1).all()


def test_a_method_without_a_graph_is_not_smoothed(done):
    rows = done.results.set_index("method")
    assert (rows.loc["PMF", "edges"] == 0).all()
    assert (rows.loc["dGRMD", "edges"] > 0).all()
    assert (rows.loc["PMF", "accuracy"] == rows.loc["PMF", "accuracy, no smoothing"]).all()


def test_cells_that_are_there_are_not_run_again(done, monkeypatch):
    monkeypatch.setattr(Clustering, "run", lambda self, cell: pytest.fail("a cell was run again"))
    again = reproduce(TINY, done.folder, console=Console(file=StringIO()))
    assert again.results.equals(done.results)


def test_the_page_shows_the_papers_numbers_where_it_has_them(done):
    assert "LGMD+, paper" in done.page.read_text()
    for data in ("mnist", "tdt2"):
        assert (done.folder / f"accuracy_{data}.svg").stat().st_size > 1000
    full = Clustering(n_repetitions=1)
    rows = done.results[done.results["data"] == "MNIST"].assign(n_classes=10)
    table = full.sections(rows, done.folder)[1].table.set_index("method")
    few = TINY.sections(done.results, done.folder)[1].table.set_index("method")
    assert few.loc["LGMD+, paper", "3"] == ""
    assert table.loc["LGMD+, paper", "10"] == "0.648"
    assert table.loc["k-means, paper", "6"] == "0.690"


def test_pairs_are_compared_on_the_same_draws(done):
    sections = TINY.sections(done.results, done.folder)
    titles = [section.title for section in sections]
    assert len(set(titles)) == len(titles)
    table = next(section.table for section in sections if section.title == "TDT2: pairs on the same draws")
    wide = done.results[done.results["n_classes"] == 4].pivot(index="repetition", columns="method", values="accuracy")
    wins = (wide["LGMD"] > wide["k-means"]).sum()
    assert f"({wins} of 2)" in table.set_index("pair").loc["LGMD against k-means", "4"]


def test_a_missing_set_says_how_to_get_it(monkeypatch):
    monkeypatch.delenv("LGMD_DATA", raising=False)
    with pytest.raises(MissingDataError, match="LGMD_DATA"):
        TINY.run(TINY.cells()[0])


def test_draws_have_as_many_classes_and_samples_as_asked_for_and_depend_on_the_seed_alone():
    labels = np.repeat(np.arange(5), 20)
    data = LabelledData("toy", np.column_stack([labels, np.arange(100)]), labels, np.arange(5).astype(str))
    values, found = draw(data, 3, 30, 7)
    assert len(found) == 30
    assert len(np.unique(found)) == 3
    assert len(np.unique(values[:, 1])) == 30
    assert np.array_equal(values[:, 0], found)
    assert np.array_equal(draw(data, 3, 30, 7)[0], values)
    assert not np.array_equal(draw(data, 3, 30, 8)[0], values)
    assert len(draw(data, 2, 1000, 0)[1]) == 40


def test_tf_idf_is_that_of_scikit_learn():
    counts = scipy.sparse.csr_array(np.random.default_rng(0).poisson(0.4, (30, 20)).astype(float))
    expected = TfidfTransformer().fit_transform(counts).toarray()
    assert tf_idf(counts, 20) == pytest.approx(expected)
    kept = np.sort(np.argsort(-(expected**2).sum(axis=0))[:8])
    assert tf_idf(counts, 8) == pytest.approx(unit_rows(expected[:, kept]))


def test_distances_of_scores_are_those_of_the_fitted_table():
    table = np.random.default_rng(0).normal(size=(30, 12))
    model = fit(PMF(3, intercept="features"), table)
    fitted, points = model.reconstruct(), scores(model)
    expected = np.linalg.norm(fitted[:, None] - fitted, axis=2)
    assert np.linalg.norm(points[:, None] - points, axis=2) == pytest.approx(expected)


def test_smoothing_minimises_its_objective_and_leaves_directions_without_a_graph():
    rng = np.random.default_rng(0)
    points, table = rng.normal(size=(15, 3)), rng.normal(size=(15, 6))
    graph = fit(DGRMD(2), table).sample_graph_
    smooth = along_graph(points, graph, 5.0)
    A = graph.toarray() / graph.diagonal().mean()
    assert smooth - points + 5.0 * A @ smooth == pytest.approx(0, abs=1e-10)
    plain = along_graph(points, scipy.sparse.eye_array(15, format="csr"), 5.0)
    assert unit_rows(plain) == pytest.approx(unit_rows(points))


def test_unit_rows_leave_zero_rows():
    assert unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])) == pytest.approx(np.array([[0.6, 0.8], [0.0, 0.0]]))


@pytest.mark.parametrize("name", FACTOR_METHODS)
def test_classes_that_lie_far_apart_are_found_by_all_methods(name):
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(4), 25)
    table = unit_rows(rng.normal(size=(4, 30))[labels] + 0.2 * rng.normal(size=(100, 30)))
    model = fit(factor_method(name, 8, 5), table)
    points = unit_rows(along_graph(scores(model), model.sample_graph_, 100.0))
    assert clustering_accuracy(labels, clusters(points, 4, 10, 0)) == 1.0


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="k-medians"):
        factor_method("k-medians", 3, 5)


@DATA
@pytest.mark.data
@pytest.mark.slow
def test_learned_graphs_group_digits_better_than_their_pixels_do():
    experiment = Clustering(first_seed=1000)
    accuracy = {row["method"]: row["accuracy"] for row in experiment.run(experiment.cells()[0])}
    for method in ("LGMD", "LGMD+"):
        assert accuracy[method] > max(accuracy["k-means"], accuracy["PMF"]) + 0.03


@DATA
@pytest.mark.data
@pytest.mark.slow
def test_the_quick_command(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "clustering", "--quick", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "clustering-quick" / "index.html").exists()

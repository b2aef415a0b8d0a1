"""The paper's two illustrations and the matrices side by side, in miniature."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from lgmd import PMF, datasets
from lgmd.cli import app
from lgmd.exceptions import ConvergenceWarning
from lgmd.experiments import reproduce
from lgmd.experiments.laplacian import Laplacian
from lgmd.experiments.laplacian_graphs import (
    correlation_edges,
    edges_along_a_run,
    edges_of,
    factor_correlations,
    nearest_edges,
    row_correlations,
    threshold_for,
)
from lgmd.graphs import NoGraph

TINY = Laplacian(
    families=("blocks",),
    noise_levels=(0.1, 1.0),
    missing_shares=(0.0, 0.6),
    n_nodes=30,
    n_components=5,
    n_neighbors=3,
    n_repetitions=1,
    run_missing=(0.0,),
    n_iterations=6,
    n_samples=30,
)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return reproduce(TINY, tmp_path_factory.mktemp("laplacian"))


def test_correlations_use_the_columns_that_both_rows_have(make_table):
    _, table = make_table(n=12, p=20, missing=0.3)
    found = row_correlations(table)
    for i in range(12):
        for j in range(12):
            both = ~np.isnan(table[i]) & ~np.isnan(table[j])
            assert found[i, j] == pytest.approx(np.corrcoef(table[i, both], table[j, both])[0, 1], abs=1e-10)


def test_rows_without_common_columns_or_without_variation_correlate_with_nothing():
    table = np.array([[1.0, 2.0, 3.0, np.nan], [np.nan, np.nan, 1.0, 5.0], [4.0, 4.0, 4.0, 4.0]])
    found = row_correlations(table)
    assert found[0, 1] == found[0, 2] == found[2, 2] == 0


def test_the_threshold_leaves_the_asked_number_of_edges(rng):
    table = rng.standard_normal((15, 30))
    for n_edges in (0, 7, 40):
        threshold = threshold_for(row_correlations(table), n_edges)
        assert correlation_edges(table, threshold).sum() == n_edges


def test_edges_are_counted_once_and_nearest_ones_join_every_row():
    chain = datasets.chain_precision(6)
    assert edges_of(chain).sum() == 5
    table = np.arange(6.0)[:, None] + np.zeros(8)
    joined = nearest_edges(table, 2)
    assert not np.tril(joined).any()
    assert (joined | joined.T).sum(axis=1).min() >= 2


def test_a_run_from_random_factors_ends_where_the_estimator_does():
    data = datasets.make_matrix_normal(30, 25, rank=4, sample_graph="blocks", noise=0.3, random_state=3)
    run = edges_along_a_run(data.observed, NoGraph(), 0.5, 4, 0.6, 200, seed=0)
    assert len(run) == 201
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PMF(4, sample_penalty=0.5, feature_penalty=0.5, intercept="none", max_iter=500, tol=1e-12)
        model.fit(data.observed)
    expected = np.triu(factor_correlations(model.sample_factors_) > 0.6, 1)
    assert expected.any()
    np.testing.assert_array_equal(run[-1], expected)
    assert (run[0] != run[-1]).any()


def test_every_graph_level_and_repetition_has_a_row(done):
    rows = done.results
    sweep = rows[rows["part"] == "sweep"]
    assert len(sweep) == 4 * 4
    runs = rows[rows["part"] == "run"]
    assert len(runs) == 3 * 7
    assert (rows["true_found"] <= rows[["edges", "true_edges"]].min(axis=1)).all()


def test_noise_lowers_correlations_and_gaps_scatter_them(done):
    rows = done.results
    graph = rows[(rows["part"] == "sweep") & (rows["method"] == "correlation graph")]
    means = graph.groupby(["sweep", "level"])[["edges", "kept"]].mean()
    assert means.loc[("noise", 1.0), "edges"] < means.loc[("noise", 0.1), "edges"]
    assert means.loc[("missing", 0.6), "edges"] > means.loc[("missing", 0.0), "edges"]
    assert means.loc[("missing", 0.6), "kept"] < means.loc[("missing", 0.0), "kept"]


def test_factors_learn_the_graph_along_the_iterations(done):
    runs = done.results[done.results["part"] == "run"]
    found = runs.groupby(["method", "iteration"])["true_found"].mean()
    for method in ("no penalty", "PMF", "LGMD, MAP"):
        assert found[method, 6] > 2 * found[method, 0]


def test_laplacians_join_no_opposites_and_the_truth_is_all_true(done):
    matrices = done.results[done.results["part"] == "matrices"].set_index("method")
    assert (matrices.loc[["kNN Laplacian", "LGMD+ Laplacian"], "positive"] == 0).all()
    assert matrices.loc["true precision", ["found", "precision"]].tolist() == [1, 1]


def test_the_page_has_all_pictures_and_a_second_run_takes_up_the_first(done, monkeypatch):
    names = ["laplacian_blocks_noise", "laplacian_blocks_missing", "laplacian_iterations", "laplacian_matrices"]
    html = done.page.read_text()
    for name in names:
        assert f"{name}.svg" in html
        assert (done.folder / f"{name}.png").stat().st_size > 5000
    monkeypatch.setattr(Laplacian, "run", lambda self, cell: pytest.fail("the cell is there already"))
    assert reproduce(TINY, done.folder).results.equals(done.results)


@pytest.mark.slow
def test_the_quick_command(tmp_path):
    outcome = CliRunner().invoke(
        app, ["reproduce", "laplacian", "--quick", "--output", str(tmp_path), "--workers", "1"]
    )
    assert outcome.exit_code == 0, outcome.output
    assert (tmp_path / "laplacian-quick" / "index.html").exists()

"""What a report says, without a browser."""

import base64
import io
import warnings

import numpy as np
import pytest
import scipy.sparse
from PIL import Image

from lgmd import DGRMD, GPCA, LGMD, PMF, LGMDImputer, metrics
from lgmd.exceptions import ConvergenceWarning, InvalidDataError, InvalidParameterError
from lgmd.graphs import EvidenceGraph, describe
from lgmd.observed import as_observed
from lgmd.report import HeldOutScores, summarize
from lgmd.report.axes import Axis, structure_order
from lgmd.report.blocks import block_error_bars, block_fit, block_table
from lgmd.report.decomposition import decompose
from lgmd.report.heat_maps import HeatMap, map_picture
from lgmd.report.names import SideNames
from lgmd.report.packing import pack_integers, pack_numbers
from lgmd.report.reproduction import python_snippet


def by_blocks(table, rows, columns, how):
    """The same as block means, one block at a time."""
    out = np.empty((rows.n_blocks, columns.n_blocks))
    for i in range(rows.n_blocks):
        for j in range(columns.n_blocks):
            out[i, j] = how(table[np.ix_(rows.block_of == i, columns.block_of == j)])
    return out


@pytest.fixture
def axes(rng):
    return Axis(rng.permutation(14), 4), Axis(rng.permutation(10), 3)


def test_blocks_of_the_table_are_means_of_what_is_observed(named_table, axes):
    values = named_table.to_numpy()
    means, share = block_table(as_observed(named_table), *axes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        np.testing.assert_allclose(means, by_blocks(values, *axes, np.nanmean))
    np.testing.assert_allclose(share, by_blocks(~np.isnan(values), *axes, np.mean))


def test_a_block_without_entries_is_unknown():
    table = np.ones((4, 4))
    table[:2, :2] = np.nan
    means, share = block_table(as_observed(table), Axis(np.arange(4), 2), Axis(np.arange(4), 2))
    assert np.isnan(means[0, 0])
    assert share[0, 0] == 0
    np.testing.assert_array_equal(means[1], 1)


def test_blocks_of_the_fit_and_of_error_bars_are_those_of_the_whole_table(named_model, axes):
    fit, bars = named_model.reconstruct(return_std=True)
    model = decompose(named_model)
    np.testing.assert_allclose(block_fit(model, *axes), by_blocks(fit, *axes, np.mean), rtol=1e-10)
    expected = by_blocks(bars, *axes, lambda block: np.sqrt(np.mean(block**2)))
    np.testing.assert_allclose(block_error_bars(model, *axes), expected, rtol=1e-8)


def test_blocks_are_as_small_as_the_limit_allows():
    axis = Axis.of(np.arange(1001), 300)
    assert axis.size == 4
    assert axis.n_blocks == 251
    assert axis.counts.sum() == 1001
    assert axis.labels(SideNames("row", 1001))[-1] == "row 1000"
    assert axis.labels(SideNames("row", 1001))[0] == "row 0 … row 3 (4 rows)"


def test_an_order_by_structure_puts_clusters_together(rng):
    groups = rng.integers(0, 3, 40)
    factors = np.eye(3)[groups] * 5 + 0.1 * rng.standard_normal((40, 3))
    order, _ = structure_order(factors, np.ones(3))
    assert np.count_nonzero(np.diff(groups[order])) == 2
    order, way = structure_order(rng.standard_normal((2001, 2)), np.array([1.0, 9.0]))
    assert sorted(order) == list(range(2001))
    assert "leading" in way


def test_facts_agree_with_the_model(named_model, named_table):
    facts = summarize(named_model, named_table).facts
    values, fit = named_table.to_numpy(), named_model.reconstruct()
    seen = ~np.isnan(values)
    assert (facts.n_rows, facts.n_columns, facts.n_observed) == (14, 10, seen.sum())
    assert facts.rank == named_model.rank_
    assert facts.noise_std == named_model.noise_std_
    assert facts.n_iter == named_model.n_iter_
    residual = np.sum((values - fit)[seen] ** 2) / np.sum((values[seen] - values[seen].mean()) ** 2)
    assert facts.explained == pytest.approx(1 - residual)
    assert dict(facts.lines())["Observed"].startswith(f"{seen.sum()} entries")


def test_the_network_is_the_graph(named_model, named_table):
    network = summarize(named_model, named_table).networks[0]
    assert network.summary == describe(named_model.sample_graph_)
    rows, columns, _ = scipy.sparse.find(scipy.sparse.triu(named_model.sample_graph_, 1))
    ends = zip(network.nodes[network.sources], network.nodes[network.targets], strict=True)
    assert {tuple(sorted(pair)) for pair in ends} == {tuple(sorted(pair)) for pair in zip(rows, columns, strict=True)}
    assert np.all(np.diff(np.abs(network.partial_correlations)) <= 0)
    first = network.top_edges[0]
    assert abs(first.partial_correlation) == pytest.approx(describe(named_model.sample_graph_).max_strength)
    assert first.source in set(named_table.index)


def test_factors_name_their_strongest_rows(named_model, named_table):
    loadings = summarize(named_model, named_table).loadings
    strongest = np.abs(named_model.sample_factors_[:, 0]).argmax()
    assert loadings[0].rows[0][0] == named_table.index[strongest]
    assert sum(loading.share for loading in loadings) == pytest.approx(1)


def test_held_out_scores_are_those_of_the_metrics(scores):
    assert scores.rmse == metrics.rmse(scores.values, scores.predictions)
    assert scores.coverage(0.5) == metrics.coverage(scores.values, scores.predictions, scores.std, 0.5)
    levels, found = scores.calibration()
    np.testing.assert_array_equal(
        found, metrics.calibration_curve(scores.values, scores.predictions, scores.std, levels)
    )
    plain = HeldOutScores(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    assert plain.coverage() is None
    assert plain.calibration() is None
    with pytest.raises(InvalidDataError, match="2 values and 1 predictions"):
        HeldOutScores(np.zeros(2), np.zeros(1))


@pytest.mark.parametrize(
    "model",
    [PMF(2), DGRMD(2, n_neighbors=2), LGMD(2, inference="map", sample_graph="none"), GPCA(2), LGMDImputer(PMF(2))],
    ids=lambda model: type(model).__name__,
)
def test_every_model_can_be_summarised(model, make_table):
    table, _ = make_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table)
    data = summarize(model, table)
    fitted = getattr(model, "estimator_", model)
    np.testing.assert_allclose(data.map_sets[0].maps[1].values, fitted.reconstruct(), rtol=1e-8)
    assert {map_.kind for map_ in data.map_sets[0].maps} == {"data", "fit"}
    assert data.map_sets[0].row_labels[3] == "row 3"
    assert summarize(model).map_sets[0].maps[0].kind == "fit"


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_the_unit_of_the_table_does_not_matter(scale, rng):
    table = rng.standard_normal((6, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain, scaled = (PMF(2, max_iter=5, random_state=0).fit(factor * table) for factor in (1.0, scale))
    expected, found = summarize(plain, table), summarize(scaled, scale * table)
    assert found.map_sets[1].row_labels == expected.map_sets[1].row_labels
    assert [entry.share for entry in found.loadings] == pytest.approx([entry.share for entry in expected.loadings])
    assert map_picture(found.map_sets[0].maps[1]) == map_picture(expected.map_sets[0].maps[1])


def test_a_gpca_of_an_adjacency_has_its_edges(make_table):
    table, _ = make_table()
    ring = np.roll(np.eye(14), 1, axis=1)
    model = GPCA(2, sample_graph=ring + ring.T).fit(table)
    data = summarize(model, table, row_names=[f"r{i}" for i in range(14)])
    assert data.networks[0].summary.n_edges == 14
    assert data.networks[1].summary.n_edges == 0
    assert data.embeddings[0].to_json()["labels"][2] == "r2"
    np.testing.assert_allclose(data.map_sets[0].maps[1].values, model.reconstruct(), rtol=1e-8)


def test_bad_arguments_are_explained(named_model, named_table):
    with pytest.raises(InvalidParameterError, match="LGMD is not fitted yet"):
        summarize(LGMD())
    with pytest.raises(InvalidParameterError, match="LGMDImputer is not fitted yet"):
        summarize(LGMDImputer())
    with pytest.raises(InvalidParameterError, match="this is a str"):
        summarize("model.npz")
    with pytest.raises(InvalidDataError, match="The table is 13 x 10, but the model was fitted on one of 14 x 10"):
        summarize(named_model, named_table.iloc[1:])
    unnamed = PMF(1, random_state=0).fit(np.outer(np.arange(4.0), np.arange(1.0, 4.0)))
    with pytest.raises(InvalidParameterError, match="Give one name a row"):
        summarize(unnamed, row_names=["a"])


def test_dates_and_long_names_become_readable():
    dates = np.arange("2024-01-01", "2024-01-04", dtype="datetime64[D]").astype("datetime64[ns]")
    assert SideNames.of(dates, 3, "column").labels == ("2024-01-01", "2024-01-02", "2024-01-03")
    long = SideNames.of(["x" * 500, "\ud800"], 2, "row").labels
    assert len(long[0]) == 60
    assert long[1].encode() == b"?"


def test_packed_numbers_come_back(rng):
    values = rng.standard_normal(50) * 1e3
    values[3] = np.nan
    packed = pack_numbers(values)
    levels = np.frombuffer(base64.b64decode(packed["data"]), "<u2").astype(float)
    back = packed["low"] + (levels - 1) / 65534 * (packed["high"] - packed["low"])
    assert levels[3] == 0
    np.testing.assert_allclose(np.delete(back, 3), np.delete(values, 3), atol=(packed["high"] - packed["low"]) / 1e5)
    integers = np.array([0, 7, 70_000])
    packed = pack_integers(integers)
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(packed["data"]), "<u4"), integers)
    assert pack_numbers(np.full(3, 2.0))["low"] == 2.0


def test_a_picture_has_a_pixel_a_cell_and_gaps_that_show_through():
    values = np.array([[0.0, 1.0, np.nan], [0.5, 2.0, -1.0]])
    address = map_picture(HeatMap("data", "", "", values, 0.0, 1.0, "viridis"))
    assert address.startswith("data:image/png;base64,")
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))).convert("RGBA"))
    assert pixels.shape == (2, 3, 4)
    np.testing.assert_array_equal(pixels[..., 3] == 0, np.isnan(values))
    np.testing.assert_array_equal(pixels[0, 1], pixels[1, 1])
    np.testing.assert_array_equal(pixels[0, 0], pixels[1, 2])
    assert tuple(pixels[0, 0, :3]) == (68, 1, 84)


def test_the_snippet_makes_a_model_with_the_same_settings(named_model):
    model = LGMD(7, sample_graph=EvidenceGraph(fdr=0.2), tol=1e-3, random_state=np.int64(4))
    code = python_snippet(model, {"source": "my table.csv"})
    assert "table = read_table('my table.csv')" in code
    fitted = next(line for line in code.splitlines() if line.startswith("model"))
    expression = fitted.removesuffix(".fit(table.to_fit())")
    names = {"LGMD": LGMD, "EvidenceGraph": EvidenceGraph}
    exec(expression, names)
    assert names["model"].get_params(deep=False) == model.get_params(deep=False)
    assert "sample_graph is a matrix of 14 x 14" in python_snippet(named_model)

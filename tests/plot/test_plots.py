"""Pictures of models: what is drawn where, and that nothing else is touched."""

import io
import subprocess
import sys

import matplotlib
import matplotlib._pylab_helpers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from lgmd import GPCA, LGMD, PMF, LGMDImputer, plot
from lgmd.exceptions import InvalidDataError, InvalidGraphError, InvalidParameterError
from lgmd.graphs import GraphEstimate, partial_correlations
from lgmd.metrics import coverage
from lgmd.plot._axes import NEGATIVE, POSITIVE

PRECISION = np.array(
    [[2.0, -0.9, 0, 0, 0], [-0.9, 2, 0.5, 0, 0], [0, 0.5, 2, -0.1, 0], [0, 0, -0.1, 1, 0], [0] * 4 + [1.0]]
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    blocks = np.repeat(rng.standard_normal((4, 6)), 6, axis=0) + 0.2 * rng.standard_normal((24, 6))
    values = blocks @ rng.standard_normal((6, 30)) + 0.3 * rng.standard_normal((24, 30)) + 5
    names = [f"row ${i}^<b>" for i in range(24)]
    table = pd.DataFrame(values, index=names, columns=[f"c{j}" for j in range(30)])
    return table.mask(rng.random(values.shape) < 0.2)


@pytest.fixture(scope="module")
def fitted(frame):
    return LGMD(n_components=6, max_iter=200, tol=1e-4, random_state=0).fit(frame)


@pytest.fixture(scope="module")
def point_estimate(frame):
    return PMF(n_components=3, inference="map", max_iter=200, tol=1e-3).fit(frame)


def rendered(axes):
    file = io.BytesIO()
    np.ravel(axes)[0].figure.savefig(file, dpi=40)
    return file.getvalue()


def lines_of(axes):
    return next(item for item in axes.collections if isinstance(item, LineCollection))


def points_of(axes):
    return [item for item in axes.collections if isinstance(item, PathCollection)]


def test_each_plot_can_be_saved_without_a_display_and_leaves_pyplot_and_settings_alone(frame, fitted):
    before, known = dict(matplotlib.rcParams), "matplotlib.pyplot" in sys.modules
    pictures = [
        plot.graph(fitted),
        plot.reconstruction(fitted, frame),
        plot.convergence(fitted),
        plot.embedding(fitted),
        plot.calibration(frame, model=fitted),
    ]
    assert all(rendered(picture).startswith(b"\x89PNG") for picture in pictures)
    assert not matplotlib._pylab_helpers.Gcf.figs
    assert dict(matplotlib.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == known


def test_matplotlib_is_loaded_only_when_something_is_drawn():
    code = "import sys, lgmd.plot; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_given_axes_are_drawn_on_and_returned(frame, fitted):
    figure = Figure()
    axes = figure.subplots(2, 3)
    assert plot.graph(fitted, ax=axes[0, 0]) is axes[0, 0]
    assert plot.convergence(fitted, ax=axes[0, 1]) is axes[0, 1]
    assert plot.embedding(fitted, ax=axes[0, 2]) is axes[0, 2]
    assert list(plot.reconstruction(fitted, frame, ax=axes[1])) == list(axes[1])
    assert plot.calibration([0.0, 1.0], [0.0, 0.0], 1.0, axes[0, 1]) is axes[0, 1]


# Graphs --------------------------------------------------------------------------------------------------------------


def test_a_graph_has_a_line_for_every_edge_coloured_by_sign_and_wider_where_stronger():
    axes = plot.graph(PRECISION)
    lines = lines_of(axes)
    strengths = np.array([0.1 / np.sqrt(2), 0.25, 0.45])  # weakest first, so that the strongest lie on top
    assert len(lines.get_segments()) == 3
    signs = [to_rgba(POSITIVE)[:3], to_rgba(NEGATIVE)[:3], to_rgba(POSITIVE)[:3]]
    np.testing.assert_allclose(lines.get_colors()[:, :3], signs)
    assert np.all(np.diff(lines.get_linewidths()) > 0)
    assert np.all(np.diff(lines.get_colors()[:, 3]) > 0)
    np.testing.assert_allclose(np.sort(scipy.sparse.triu(abs(partial_correlations(PRECISION))).tocoo().data), strengths)
    assert "5 nodes, 3 edges" in axes.get_title()
    assert {text.get_text() for text in axes.texts} == set("01234")


def test_lines_join_the_places_of_their_nodes():
    places = np.array([[0.0, 0], [1, 0], [2, 1], [3, 5], [4, 4]])
    axes = plot.graph(PRECISION, positions=pd.DataFrame(places))
    ends = {tuple(map(tuple, segment)) for segment in np.asarray(lines_of(axes).get_segments())}
    assert ends == {((0, 0), (1, 0)), ((1, 0), (2, 1)), ((2, 1), (3, 5))}
    np.testing.assert_array_equal(points_of(axes)[0].get_offsets(), places)
    assert len(axes.get_xticks())


@pytest.mark.parametrize(("limit", "left"), [({"min_strength": 0.2}, 2), ({"max_edges": 1}, 1), ({"max_edges": 0}, 0)])
def test_limits_leave_the_strongest_edges_and_say_so_and_no_node_moves(limit, left):
    axes = plot.graph(PRECISION, **limit)
    assert len(lines_of(axes).get_segments()) == left
    assert f"the {left} strongest" in axes.get_title()
    whole = points_of(plot.graph(PRECISION))[0].get_offsets()
    np.testing.assert_array_equal(points_of(axes)[0].get_offsets(), whole)


def test_the_layout_is_the_same_each_time_and_puts_neighbours_nearer_than_strangers(fitted):
    first, second = (points_of(plot.graph(fitted))[0].get_offsets() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    joined = fitted.sample_graph_.toarray() != 0
    np.fill_diagonal(joined, False)
    assert joined.any()
    distances = np.linalg.norm(np.asarray(first)[:, None] - np.asarray(first)[None], axis=2)
    strangers = ~joined & ~np.eye(len(joined), dtype=bool)
    assert np.median(distances[joined]) < 0.6 * np.median(distances[strangers])


def test_sides_matrices_estimates_and_imputers_are_all_graphs(frame, fitted):
    imputer = LGMDImputer(LGMD(n_components=2, max_iter=100, tol=1e-2)).fit(frame)
    assert "24 rows" in plot.graph(imputer).get_title()
    assert "30 columns" in plot.graph(fitted, "features").get_title()
    same = plot.graph(GraphEstimate(scipy.sparse.csr_array(PRECISION), 0.0)), plot.graph(PRECISION.tolist())
    assert len({axes.get_title() for axes in same}) == 1


def test_names_are_text_and_are_left_out_where_they_cannot_be_read(fitted):
    names = ["<script>", "$x^2", "a" * 60, "b\nc", "_"]
    axes = plot.graph(PRECISION, names=names)
    shown = [text.get_text() for text in axes.texts]
    assert shown == ["<script>", r"\$x^2", "a" * 27 + "…", "b c", "_"]
    rendered(axes)
    assert not plot.graph(np.eye(61)).texts
    assert len(plot.graph(np.eye(61), labels=True).texts) == 61
    assert not plot.graph(PRECISION, labels=False).texts


def test_large_graphs_leave_out_nodes_without_an_edge():
    rows = np.arange(20)
    weights = scipy.sparse.csr_array((np.full(20, -0.4), (rows, rows + 1)), shape=(3000, 3000))
    precision = weights + weights.T + scipy.sparse.eye_array(3000)
    axes = plot.graph(precision)
    assert len(points_of(axes)[0].get_offsets()) == 21
    assert "2,979 nodes left out" in axes.get_title()
    assert len(points_of(plot.graph(scipy.sparse.eye_array(3000)))[0].get_offsets()) == 3000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.graph(PRECISION, "rows"), "side must be one of 'samples', 'features', but is 'rows'"),
        (lambda: plot.graph(PRECISION, positions=np.zeros((4, 2))), r"each of the 5 nodes, but has shape \(4, 2\)"),
        (lambda: plot.graph(PRECISION, positions=[["a", "b"]] * 5), "two numbers for each of the 5 nodes"),
        (lambda: plot.graph(PRECISION, positions=np.full((5, 2), np.nan)), "for 5 of 5 nodes, the first is node 0"),
        (lambda: plot.graph(PRECISION, names=["a"]), "Give one name a node"),
        (lambda: plot.graph(PRECISION, labels="some"), 'labels must be "auto", True or False'),
        (lambda: plot.graph(PRECISION, max_edges=-1), "max_edges must be at least 0"),
        (lambda: plot.graph(PRECISION, min_strength=-1), "min_strength must not be negative"),
        (lambda: plot.graph(PRECISION, ax="here"), "ax must be one matplotlib Axes, but is of type str"),
        (lambda: plot.graph(PRECISION, ax=Figure().subplots(1, 2)), "one matplotlib Axes, but is an array of 2"),
        (lambda: plot.graph(LGMD()), "The LGMD is not fitted yet. Call fit first"),
    ],
)
def test_wrong_wishes_for_a_graph_are_refused(call, message):
    with pytest.raises(InvalidParameterError, match=message):
        call()


def test_what_is_no_precision_is_refused():
    with pytest.raises(InvalidGraphError):
        plot.graph(np.ones((3, 2)))


# Tables --------------------------------------------------------------------------------------------------------------


def test_before_and_after_share_one_scale_and_show_the_table_and_the_fit(frame, fitted):
    before, after, bars = plot.reconstruction(fitted, frame)
    images = [axes.images[0] for axes in (before, after, bars)]
    np.testing.assert_allclose(images[0].get_array().filled(np.nan), frame.to_numpy(), rtol=1e-6)
    table, std = fitted.reconstruct(return_std=True)
    np.testing.assert_allclose(images[1].get_array(), table, rtol=1e-6)
    np.testing.assert_allclose(images[2].get_array(), std, rtol=1e-6)
    assert images[0].get_clim() == images[1].get_clim() != images[2].get_clim()
    assert next(tick.get_text() for tick in before.get_yticklabels()) == r"row \$0^<b>"


def test_large_tables_are_means_of_blocks(frame, point_estimate):
    before, after = plot.reconstruction(point_estimate, frame, max_cells=8)
    blocks = point_estimate.reconstruct().reshape(8, 3, 30)[:, :, :28].mean(axis=1).reshape(8, 7, 4).mean(axis=2)
    np.testing.assert_allclose(after.images[0].get_array()[:, :7], blocks, rtol=1e-5)
    values = frame.to_numpy()
    assert before.images[0].get_array()[0, 0] == pytest.approx(np.nanmean(values[:3, :4]))
    assert "means of 3 x 4 entries" in before.get_title()
    assert before.images[0].get_extent() == [-0.5, 29.5, 23.5, -0.5]


def test_blocks_without_an_entry_are_grey_and_constant_tables_have_a_colour(frame, point_estimate):
    holes = frame.copy()
    holes.iloc[:6] = np.nan
    before, _ = plot.reconstruction(point_estimate, holes, max_cells=4)
    assert before.images[0].get_array().mask[0].all()
    constant = PMF(1, inference="map").fit(np.full((4, 3), 7.0))
    low, high = plot.reconstruction(constant, np.full((4, 3), 7.0))[0].images[0].get_clim()
    assert low < 7 < high


def test_models_without_error_bars_have_two_maps_and_say_why_there_is_no_third(frame, fitted, point_estimate):
    assert len(plot.reconstruction(point_estimate, frame)) == 2
    assert len(plot.reconstruction(fitted, frame, error_bars=False)) == 2
    with pytest.raises(InvalidParameterError, match="error_bars=True needs a posterior, which this PMF does not have"):
        plot.reconstruction(point_estimate, frame, error_bars=True)
    with pytest.raises(
        InvalidParameterError, match="3 axes, but 2 are needed: before and after, for there are no error"
    ):
        plot.reconstruction(point_estimate, frame, ax=Figure().subplots(1, 3))
    with pytest.raises(InvalidParameterError, match="ax holds 2 axes, but 3 are needed: before, after and error bars"):
        plot.reconstruction(fitted, frame, ax=Figure().subplots(1, 2))
    with pytest.raises(InvalidParameterError, match="ax must hold matplotlib Axes, but holds one of type int"):
        plot.reconstruction(fitted, frame, ax=[1, 2, 3])


def test_tables_that_were_not_fitted_are_refused(frame, fitted):
    with pytest.raises(InvalidDataError, match="table is 23 x 30, but the model was fitted to 24 x 30"):
        plot.reconstruction(fitted, frame.iloc[1:])
    with pytest.raises(InvalidDataError, match="The rows of the table have other names"):
        plot.reconstruction(fitted, frame.iloc[::-1])
    with pytest.raises(InvalidParameterError, match="not fitted yet"):
        plot.reconstruction(PMF(), frame)
    with pytest.raises(
        InvalidParameterError, match="A plot needs a fitted model such as LGMD or LGMDImputer, but this"
    ):
        plot.reconstruction(frame, frame)


# The course of a fit -------------------------------------------------------------------------------------------------


def test_convergence_draws_the_objective_and_marks_each_graph_step(fitted):
    axes = plot.convergence(fitted)
    curves = [line for line in axes.lines if line.get_linestyle() == "-"]
    marks = [line for line in axes.lines if line.get_linestyle() == "--"]
    np.testing.assert_array_equal(np.concatenate([line.get_ydata() for line in curves]), fitted.history_.objective)
    steps = np.flatnonzero(fitted.history_.graph_steps) + 0.5
    assert len(steps)
    np.testing.assert_array_equal([line.get_xdata()[0] for line in marks], steps)
    assert axes.get_ylabel() == "negative evidence bound"
    assert f"converged after {fitted.n_iter_} iterations" in axes.get_title()
    above = np.count_nonzero(fitted.history_.objective > axes.get_ylim()[1])
    assert (f"({above} above the picture)" in axes.get_title()) == (above > 0)


def test_convergence_of_other_models(frame, point_estimate):
    assert plot.convergence(point_estimate).get_ylabel() == "objective"
    with pytest.raises(InvalidParameterError, match="GPCA is not fitted by iterations"):
        plot.convergence(GPCA.from_model(point_estimate))
    with pytest.raises(InvalidParameterError, match="LGMDImputer is not fitted yet"):
        plot.convergence(LGMDImputer())


# Embeddings ----------------------------------------------------------------------------------------------------------


def test_an_embedding_shows_the_chosen_factors_of_the_chosen_side(fitted):
    points = points_of(plot.embedding(fitted, columns=(2, 1), side="features"))[0].get_offsets()
    np.testing.assert_array_equal(points, fitted.feature_factors_[:, [2, 1]])
    axes = plot.embedding(fitted)
    np.testing.assert_array_equal(points_of(axes)[0].get_offsets(), fitted.sample_factors_[:, :2])
    assert len(axes.texts) == 24
    rendered(axes)


def test_groups_have_a_colour_each_and_numbers_a_scale(fitted):
    groups = np.repeat(["b", "a", "c$", None], 6).astype(object)
    axes = plot.embedding(fitted, labels=groups)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["no label", "a", "b", r"c\$"]
    np.testing.assert_array_equal(points_of(axes)[1].get_offsets(), fitted.sample_factors_[6:12, :2])
    assert len({tuple(item.get_facecolor()[0]) for item in points_of(axes)}) == 4
    numbers = np.linspace(0, 1, 24)
    numbers[3] = np.nan
    axes = plot.embedding(fitted, labels=numbers)
    np.testing.assert_array_equal(points_of(axes)[1].get_array(), np.delete(numbers, 3))
    assert len(axes.figure.axes) == 2
    assert plot.embedding(fitted, labels=np.arange(24) % 3).get_legend() is not None
    assert plot.embedding(fitted, labels=np.arange(24)).get_legend() is None
    many = plot.embedding(fitted, labels=[f"group {i}" for i in range(24)])
    assert many.get_legend().get_texts()[0].get_text() == "4 others"
    assert plot.embedding(fitted, labels=pd.array([1.5, None] * 12, dtype="Float64")).get_legend() is None


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"columns": (0, 9)}, "positions go from 0 to 5"),
        ({"columns": (0,)}, "columns must be two positions"),
        ({"columns": (0.5, 1)}, "columns must be two positions"),
        ({"columns": "ab"}, "columns must be two positions"),
        ({"labels": [1, 2]}, r"labels has shape \(2,\), but there are 24 rows"),
        ({"side": "genes"}, "side must be one of"),
        ({"names": ["x"]}, "Give one name a row"),
    ],
)
def test_wrong_wishes_for_an_embedding_are_refused(fitted, wish, message):
    with pytest.raises(InvalidParameterError, match=message):
        plot.embedding(fitted, **wish)


def test_a_single_factor_is_no_plane(frame):
    with pytest.raises(InvalidParameterError, match="a single factor, but a plane needs two"):
        plot.embedding(PMF(1, inference="map", max_iter=100, tol=1e-2).fit(frame))


# Error bars ----------------------------------------------------------------------------------------------------------


def test_the_calibration_curve_is_the_coverage_at_each_level(rng):
    values, std = rng.standard_normal(200), np.full(200, 0.7)
    values[0] = np.nan
    axes = plot.calibration(values, np.zeros(200), std)
    curve = next(line for line in axes.lines if line.get_label() == "found")
    expected = [coverage(values, np.zeros(200), std, level) for level in curve.get_xdata()]
    np.testing.assert_allclose(curve.get_ydata(), expected)
    held = 100 * coverage(values, np.zeros(200), std, 0.9)
    assert axes.get_title() == f"90 % intervals hold {held:.1f} % of 199 values"
    masked = np.ma.masked_invalid(values)
    assert plot.calibration(masked, np.zeros(200), 0.7).get_title() == axes.get_title()


def test_a_model_predicts_the_held_out_entries_itself(frame, fitted):
    table, std = fitted.reconstruct(return_std=True)
    by_hand = plot.calibration(frame.to_numpy(), table, std)
    by_model = plot.calibration(scipy.sparse.csr_array(frame.notna() * 1.0 * frame.fillna(0)), model=fitted)
    curves = [axes.lines[-1].get_ydata() for axes in (by_hand, by_model)]
    np.testing.assert_allclose(*curves)


def test_calibration_says_what_it_lacks(frame, fitted, point_estimate):
    with pytest.raises(InvalidParameterError, match="needs error bars, which this PMF does not have"):
        plot.calibration(frame, model=point_estimate)
    with pytest.raises(InvalidParameterError, match="not both"):
        plot.calibration(frame, frame, model=fitted)
    with pytest.raises(InvalidParameterError, match="needs mean and std of the predictions, or model="):
        plot.calibration(frame)
    with pytest.raises(InvalidDataError, match="No value is known"):
        plot.calibration(frame * np.nan, model=fitted)
    with pytest.raises(InvalidDataError, match="values is"):
        plot.calibration([1.0, 2.0], [1.0], 1.0)

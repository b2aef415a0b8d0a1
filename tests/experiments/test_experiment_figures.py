"""Figures of the experiments: a method looks the same everywhere, and every panel can be read."""

import pandas as pd
import pytest

from lgmd.experiments import clustering_methods, laplacian_page, real_tables, synthetic
from lgmd.experiments.completion import PUBLISHED, Completion
from lgmd.experiments.figures import COLOURS, draw_curves, new_figure, style

CURVES = {
    "synthetic": synthetic.METHODS,
    "real tables": (*real_tables.TUNED, *real_tables.DEFAULTS),
    "clustering": ("k-means", *clustering_methods.FACTOR_METHODS),
    "graphs": laplacian_page.GRAPHS,
    "runs": laplacian_page.RUNS,
}


def results(methods, levels):
    """Two repetitions of every method at every level."""
    return pd.DataFrame(
        [
            {"method": method, "level": level, "error": level + number + 0.1 * repetition}
            for number, method in enumerate(methods)
            for level in levels
            for repetition in range(2)
        ]
    )


def panel_of(methods, levels, value="error"):
    _, (axes,) = new_figure()
    draw_curves(axes, results(methods, levels), "level", value, methods, x_label="noise", y_label="error")
    return axes


def looks(axes):
    lines = {container.get_label(): container.lines[0] for container in axes.containers}
    return {method: (line.get_color(), line.get_marker()) for method, line in lines.items()}


@pytest.mark.parametrize("levels", [(0.3, 0.5), (0.3,)])
def test_a_method_looks_the_same_whoever_is_drawn_beside_it(levels):
    everybody, fewer = (looks(panel_of(methods, levels)) for methods in (synthetic.METHODS, synthetic.METHODS[1:]))
    assert fewer == {method: look for method, look in everybody.items() if method != "PCA"}


@pytest.mark.parametrize("name", CURVES)
def test_methods_of_one_figure_are_told_apart_by_colour_and_by_marker(name):
    styles = [style(method) for method in CURVES[name]]
    assert all(method in COLOURS for method in CURVES[name])
    for part in ("color", "marker"):
        assert len({each[part] for each in styles}) == len(styles)


def test_methods_stand_side_by_side_where_there_is_one_level():
    axes = panel_of(("PCA", "PMF", "LGMD"), (0.5,))
    places = [float(container.lines[0].get_xdata()[0]) for container in axes.containers]
    assert places == [0, 1, 2]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["PCA", "PMF", "LGMD"]
    assert axes.get_xlabel() == "noise: 0.5"
    assert axes.get_xlim() == (-0.5, 2.5)


def test_several_levels_are_a_curve_with_a_legend():
    axes = panel_of(("PCA", "PMF"), (0.3, 1.0))
    assert [list(container.lines[0].get_xdata()) for container in axes.containers] == [[0.3, 1.0]] * 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["PCA", "PMF"]
    assert axes.get_xlabel() == "noise"


def words(picture):
    """What is written in a picture, which is drawn as paths with the words in comments."""
    return [line.strip()[5:-4] for line in picture.read_text().splitlines() if line.strip().startswith("<!-- ")]


def test_a_method_that_was_not_run_is_marked(tmp_path):
    experiment = Completion(splits=("ml_100k", "flixster"), methods=("means", "LGMD", "myfm, Gibbs"))
    errors = {("means", "ml_100k"): 0.95, ("LGMD", "ml_100k"): 0.92, ("means", "flixster"): 0.9}
    experiment._draw(errors, tmp_path)
    found = words(tmp_path / "completion.svg")
    assert found.count("not run") == 3
    assert found.count("not published") == sum(
        split not in known for split in experiment.splits for known in PUBLISHED.values()
    )


def test_a_split_on_which_nothing_was_run_has_the_published_numbers(tmp_path):
    Completion(splits=("ml_100k",), methods=("myfm, Gibbs",))._draw({}, tmp_path)
    assert words(tmp_path / "completion.svg").count("not run") == 1

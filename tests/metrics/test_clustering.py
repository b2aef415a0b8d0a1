from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from lgmd.exceptions import InvalidDataError
from lgmd.metrics import clustering_accuracy, normalized_mutual_information

MEASURES = [clustering_accuracy, normalized_mutual_information]


def best_of_all_matches(labels, clusters):
    """Every way to give clusters classes of their own; dummy classes stand for none."""
    size = max(labels.max(), clusters.max()) + 1
    return max(np.mean(np.array(match)[clusters] == labels) for match in permutations(range(size)))


@pytest.mark.parametrize("n_classes", [1, 2, 4, 6])
@pytest.mark.parametrize("n_clusters", [1, 3, 4, 6])
def test_the_accuracy_is_the_best_over_all_matches(n_classes, n_clusters):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels = rng.integers(n_classes, size=40)
        clusters = np.where(rng.random(40) < 0.5, labels % n_clusters, rng.integers(n_clusters, size=40))
        assert clustering_accuracy(labels, clusters) == pytest.approx(best_of_all_matches(labels, clusters), abs=1e-15)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (5, 3), (3, 8)])
def test_the_information_is_that_of_scikit_learn(shape):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels, clusters = rng.integers(shape[0], size=60), rng.integers(shape[1], size=60)
        expected = normalized_mutual_info_score(labels, clusters)
        assert normalized_mutual_information(labels, clusters) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_names_and_order_of_samples_do_not_matter(measure):
    rng = np.random.default_rng(1)
    labels, clusters = rng.integers(4, size=50), rng.integers(5, size=50)
    expected = measure(labels, clusters)
    assert 0 < expected < 1
    names = np.array(["oak", "ash", "elm", "yew"])[labels]
    assert measure(names, -3 * clusters) == pytest.approx(expected)
    assert measure(names.astype(object), clusters.astype(float)) == pytest.approx(expected)
    order = rng.permutation(50)
    assert measure(labels[order], clusters[order]) == pytest.approx(expected)
    assert measure(clusters, labels) == pytest.approx(expected)


@pytest.mark.parametrize("measure", MEASURES)
def test_equal_groupings_score_one_and_only_they(measure):
    labels = [0, 0, 1, 1, 2, 2]
    assert measure(labels, ["c", "c", "a", "a", "b", "b"]) == pytest.approx(1.0)
    assert measure(labels, [0, 0, 1, 1, 2, 3]) < 1
    assert measure(labels, [0, 0, 1, 1, 1, 1]) < 1
    assert measure([7], ["x"]) == 1.0


def test_samples_without_a_match_count_as_wrong():
    assert clustering_accuracy([0, 0, 0, 0], [0, 1, 2, 3]) == 0.25
    assert clustering_accuracy([0, 1, 2, 3], [5, 5, 5, 5]) == 0.25
    assert normalized_mutual_information([0, 1, 2, 3], [5, 5, 5, 5]) == 0.0


def test_the_best_match_is_not_the_greedy_one():
    # The largest count, 5, would force 0 elsewhere; together 4 + 4 is better than 5 + 0.
    labels = [0] * 9 + [1] * 4
    clusters = [0] * 5 + [1] * 4 + [0] * 4
    assert clustering_accuracy(labels, clusters) == pytest.approx(8 / 13)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("labels", "clusters", "message"),
    [
        ([0, 1, 2], [0, 1], "labels is of length 3 but clusters is of length 2"),
        ([], [], "labels is 0. Pass an array of one dimension with at least one sample"),
        ([[0, 1], [1, 0]], [0, 1], "labels is 2 x 2"),
        ([0, 1], 3, "clusters is a single value"),
        ([0.0, float("nan")], [0, 1], "1 of 2 entries of labels are NaN"),
        ([0, 1], [1j, 2j], "clusters holds complex128 values"),
        (np.array(["a", None, "b"], dtype=object), [0, 1, 1], "1 of 3 entries of labels are NaN or None"),
        (np.array(["a", np.nan, None], dtype=object), [0, 1, 1], "2 of 3 entries of labels are NaN or None"),
        (["a", float("nan")], [0, 1], "1 of 2 entries of labels are NaN or None"),
        ([0, 1], [None, 1], "1 of 2 entries of clusters are NaN or None"),
        (np.ma.array([0, 1, 5], mask=[0, 0, 1]), [0, 1, 1], "1 of 3 entries of labels are NaN or None, or masked"),
        ([0, 1], np.ma.array(["a", "b"], mask=[1, 1]), "2 of 2 entries of clusters are NaN or None, or masked"),
        (np.array([{}, {}], dtype=object), [0, 1], "labels holds more than plain values .*unhashable"),
    ],
)
def test_what_is_no_grouping_is_refused(measure, labels, clusters, message):
    with pytest.raises(InvalidDataError, match=message):
        measure(labels, clusters)


def test_the_word_nan_is_a_class_like_any_other():
    assert clustering_accuracy(["nan", "None", "nan"], [0, 1, 0]) == 1.0


def as_objects(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("as_form", [lambda *values: list(values), as_objects])
def test_labels_are_one_class_if_and_only_if_they_are_equal(measure, as_form):
    assert measure(as_form(1, 1.0, 2, np.int64(2)), [0, 0, 1, 1]) == pytest.approx(1.0)
    assert measure(as_form("1", 1, "1", 1), [0, 1, 0, 1]) == pytest.approx(1.0)
    assert measure(as_form(2**53, 2**53 + 1, 0.5), [0, 1, 2]) == pytest.approx(1.0)
    assert measure(as_form(True, 1, 0), [1, 1, 0]) == pytest.approx(1.0)


def test_masked_arrays_without_masked_entries_are_arrays():
    assert clustering_accuracy(np.ma.array([3, 3, 1], mask=False), [0, 0, 1]) == 1.0

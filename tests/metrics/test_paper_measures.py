import numpy as np
import pytest

from lgmd import metrics
from lgmd.datasets import make_matrix_normal
from lgmd.metrics import PAPER_MEASURES


@pytest.fixture(scope="module")
def data():
    return make_matrix_normal(30, 25, 4, noise=0.3, random_state=0)


def test_the_eight_labels_are_there_in_order_with_a_meaning():
    assert list(PAPER_MEASURES) == [f"E{number}" for number in range(1, 9)]
    for label, measure in PAPER_MEASURES.items():
        assert measure.label == label
        assert len(measure.meaning) > 20
        assert "\n" not in measure.meaning
    assert len({measure.meaning for measure in PAPER_MEASURES.values()}) == 8


def test_errors_follow_the_papers_formula(data):
    held_out = np.random.default_rng(1).random(data.truth.shape) < 0.2
    residual = data.noisy - data.truth
    expected = np.sqrt(np.sum((held_out * residual) ** 2) / held_out.sum())
    assert PAPER_MEASURES["E1"](data.noisy, data.truth, where=held_out) == pytest.approx(expected)
    assert PAPER_MEASURES["E2"](data.truth, data.noisy) == pytest.approx(
        np.linalg.norm(residual) / np.sqrt(residual.size)
    )


def test_correlations_are_all_pairs_of_pearson(data):
    for label, factors in (("E3", data.sample_factors), ("E4", data.feature_factors)):
        expected = np.corrcoef(factors.T)[np.triu_indices(4, k=1)]
        np.testing.assert_allclose(PAPER_MEASURES[label](factors), expected, atol=1e-12)


def test_the_truth_itself_has_no_angle_and_all_edges(data):
    for label, factors in (("E5", data.sample_factors), ("E6", data.feature_factors)):
        assert PAPER_MEASURES[label](factors, -2 * factors) < 1e-7
        assert PAPER_MEASURES[label](factors, factors[::-1]) > 0.1
    for label, precision in (("E7", data.sample_precision), ("E8", data.feature_precision)):
        np.testing.assert_array_equal(PAPER_MEASURES[label](precision, precision), [1, 1, 1])


def test_the_registry_cannot_be_changed_by_accident():
    with pytest.raises(TypeError):
        PAPER_MEASURES["E9"] = metrics.rmse
    assert {measure.function.__name__ for measure in PAPER_MEASURES.values()} <= set(metrics.__all__)

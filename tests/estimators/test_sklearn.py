"""scikit-learn's own checks, and the habits it taught its users."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lgmd import DGRMD, GPCA, LGMD, PMF, LGMDImputer
from lgmd.graphs import ThresholdGraph

LEARNED = {"sample_graph": "threshold", "feature_graph": "threshold"}
INFERENCES = ["map", "variational"]


class _PredictHidden:
    """``predict(rows, columns)`` addresses entries; it is not the ``predict(X)`` that the checks would call."""

    @property
    def predict(self):
        raise AttributeError("hidden from the checks")


class CheckedLGMD(_PredictHidden, LGMD):
    pass


class CheckedPMF(_PredictHidden, PMF):
    pass


class CheckedDGRMD(_PredictHidden, DGRMD):
    pass


_SPARSE = (
    "stored entries are the observed ones, so the check's random sparse matrix has rows without any, which we refuse"
)


def expected_failures(estimator):
    if isinstance(estimator, GPCA):
        return {}
    checks = ("check_estimator_sparse_tag", "check_estimator_sparse_array", "check_estimator_sparse_matrix")
    return dict.fromkeys(checks, _SPARSE)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        CheckedLGMD(n_components=2),
        CheckedLGMD(n_components=2, inference="map", **LEARNED),
        CheckedPMF(n_components=2),
        CheckedDGRMD(n_components=2),
        GPCA(n_components=2),
        LGMDImputer(PMF(n_components=2)),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [CheckedDGRMD(n_components=2, inference="variational", max_iter=20), LGMDImputer()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_where_they_take_longer(estimator, check):
    check(estimator)


@pytest.mark.parametrize("inference", INFERENCES)
def test_clones_keep_parameters_and_forget_the_fit(make_table, inference):
    complete, _ = make_table()
    model = LGMD(n_components=3, inference=inference, sample_graph=ThresholdGraph(eta=0.4), tol=1e-3).fit(complete)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "sample_factors_")
    assert not hasattr(copy, "posterior_")


@pytest.mark.parametrize("inference", INFERENCES)
def test_names_of_rows_and_columns_are_kept(make_table, inference):
    _, gappy = make_table()
    frame = pd.DataFrame(gappy, index=[f"station {i}" for i in range(14)], columns=[f"day {j}" for j in range(11)])
    model = PMF(n_components=3, inference=inference).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.sample_names_in_) == list(frame.index)
    assert list(model.get_feature_names_out()) == ["pmf0", "pmf1", "pmf2"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame.rename(columns={"day 3": "night 3"}))
    with pytest.raises(ValueError, match="feature names should match"):
        model.score(frame.rename(columns={"day 3": "night 3"}))
    model.fit(gappy)
    assert not hasattr(model, "sample_names_in_")


@pytest.mark.parametrize("inference", INFERENCES)
def test_set_output_gives_frames(make_table, inference):
    _, gappy = make_table()
    frame = pd.DataFrame(gappy, columns=[f"day {j}" for j in range(11)])
    model = PMF(n_components=3, inference=inference)
    factors = model.set_output(transform="pandas").fit_transform(frame)
    assert list(factors.columns) == ["pmf0", "pmf1", "pmf2"]
    filled = LGMDImputer(model).set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == list(frame.columns)
    assert not filled.isna().any().any()


@pytest.mark.parametrize("inference", INFERENCES)
def test_works_in_a_pipeline(make_table, inference):
    _, gappy = make_table()
    first, second = PMF(n_components=3, inference=inference), PMF(n_components=2, inference=inference)
    pipeline = make_pipeline(StandardScaler(), LGMDImputer(first), second)
    assert pipeline.fit_transform(gappy).shape == (14, 2)


def test_the_rank_can_be_chosen_on_held_out_entries(make_table, rng):
    complete, _ = make_table(n=40, p=30, rank=2, noise=0.3)
    held_out = rng.random(complete.shape) < 0.2
    training, validation = np.where(held_out, np.nan, complete), np.where(held_out, complete, np.nan)
    for inference in INFERENCES:
        scores = [
            PMF(n_components=k, inference=inference, sample_penalty=0.3, feature_penalty=0.3)
            .fit(training)
            .score(validation)
            for k in (1, 2)
        ]
        assert scores[1] > scores[0] + 0.1


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_fit_does_not_change_parameters_or_data(make_table, index, inference):
    gappy = make_table()[index]
    before = gappy.copy()
    model = LGMD(n_components=3, inference=inference, **LEARNED)
    parameters = dict(model.get_params())
    model.fit(gappy)
    assert model.get_params() == parameters
    np.testing.assert_array_equal(gappy, before)

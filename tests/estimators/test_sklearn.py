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
        CheckedPMF(n_components=2),
        CheckedDGRMD(n_components=2),
        GPCA(n_components=2),
        LGMDImputer(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_clones_keep_parameters_and_forget_the_fit(make_table):
    complete, _ = make_table()
    model = LGMD(n_components=3, sample_graph=ThresholdGraph(eta=0.4), tol=1e-3).fit(complete)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "sample_factors_")


def test_names_of_rows_and_columns_are_kept(make_table):
    _, gappy = make_table()
    frame = pd.DataFrame(gappy, index=[f"station {i}" for i in range(14)], columns=[f"day {j}" for j in range(11)])
    model = PMF(n_components=3).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.sample_names_in_) == list(frame.index)
    assert list(model.get_feature_names_out()) == ["pmf0", "pmf1", "pmf2"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame.rename(columns={"day 3": "night 3"}))
    model.fit(gappy)
    assert not hasattr(model, "sample_names_in_")


def test_set_output_gives_frames(make_table):
    _, gappy = make_table()
    frame = pd.DataFrame(gappy, columns=[f"day {j}" for j in range(11)])
    factors = PMF(n_components=3).set_output(transform="pandas").fit_transform(frame)
    assert list(factors.columns) == ["pmf0", "pmf1", "pmf2"]
    filled = LGMDImputer(PMF(n_components=3)).set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == list(frame.columns)
    assert not filled.isna().any().any()


def test_works_in_a_pipeline(make_table):
    _, gappy = make_table()
    pipeline = make_pipeline(StandardScaler(), LGMDImputer(PMF(n_components=3)), PMF(n_components=2))
    assert pipeline.fit_transform(gappy).shape == (14, 2)


def test_fit_does_not_change_parameters_or_data(make_table):
    _, gappy = make_table()
    before = gappy.copy()
    model = LGMD(n_components=3)
    parameters = dict(model.get_params())
    model.fit(gappy)
    assert model.get_params() == parameters
    np.testing.assert_array_equal(gappy, before)

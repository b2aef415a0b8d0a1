"""Every model can be tuned, those of other people too, and by several workers."""

import os
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.impute import KNNImputer

from lgmd import DGRMD, LGMD, PMF, LGMDImputer, LGMDPlus
from lgmd.tuning import TuningError, tune, with_parameters
from lgmd.tuning.parameters import spelled_out

pytestmark = pytest.mark.filterwarnings("ignore::lgmd.exceptions.ConvergenceWarning")


@pytest.fixture
def gappy(make_table):
    return make_table(n=24, p=18, rank=2, missing=0.2, noise=1.0, seed=3)[1]


class ColumnMeans(BaseEstimator):
    """A model in scikit-learn's manner that knows nothing of this package."""

    def __init__(self, shrinkage=0.0, power=1):
        self.shrinkage = shrinkage
        self.power = power

    def fit(self, X, y=None):
        self.means_ = np.nanmean(X, axis=0) * (1 - self.shrinkage) ** self.power
        self.shape_ = np.shape(X)
        return self

    def reconstruct(self):
        return np.broadcast_to(self.means_, self.shape_)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (PMF(3), ["penalty"]),
        (PMF(3, inference="variational"), ["prior", "noise"]),
        (DGRMD(3), ["penalty", "n_neighbors"]),
        (LGMD(3, inference="map"), ["penalty", "sample_graph__fdr", "feature_graph__fdr"]),
        (
            LGMD(3, inference="map", sample_graph="threshold", feature_graph="glasso"),
            ["penalty", "sample_graph__eta", "feature_graph__eta"],
        ),
        (LGMD(3, feature_graph="none"), ["prior", "noise", "sample_graph__fdr"]),
        (
            LGMDPlus(3, inference="map", feature_graph="knn"),
            ["penalty", "sample_graph__rho", "feature_graph__n_neighbors"],
        ),
        (LGMDImputer(PMF(3)), ["estimator__penalty"]),
        (
            LGMDImputer(),
            [f"estimator__{name}" for name in ("prior", "noise", "sample_graph__fdr", "feature_graph__fdr")],
        ),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_every_model_has_a_default_space(model, names, make_table):
    result = tune(model, make_table()[1], n_trials=3, random_state=0)
    assert list(result.best_params_) == names
    assert set(result.trials_["state"]) == {"complete"}
    assert result.trials_["value"].gt(0).all()


def test_an_imputer_is_tuned_with_the_model_that_it_would_fit(gappy):
    assert spelled_out(LGMDImputer()).estimator.get_params() == LGMDImputer().fit(gappy).estimator_.get_params()
    imputer = LGMDImputer()
    assert with_parameters(imputer, {"estimator__n_components": 3}).estimator.n_components == 3
    assert imputer.estimator is None


def test_models_of_other_people_are_tuned_too(gappy):
    result = tune(ColumnMeans(), gappy, n_trials=12, space={"shrinkage": (0.0, 1.0)}, random_state=0)
    assert result.best_params_["shrinkage"] < 0.2
    neighbors = tune(KNNImputer(), gappy, n_trials=4, space={"n_neighbors": (1, 10)}, random_state=0)
    assert isinstance(neighbors.best_params_["n_neighbors"], int)
    assert set(neighbors.trials_["state"]) == {"complete"}


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("indicators", [False, True])
def test_imputers_that_drop_empty_columns_are_refused(indicators, gappy):
    gappy[:, [2, 5]] = np.nan
    options = {"n_trials": 2, "space": {"n_neighbors": (1, 10)}, "random_state": 0}
    with pytest.raises(TuningError, match=r"KNNImputer returned .* 2 columns have no entry \(2, 5\).*drop them first"):
        tune(KNNImputer(add_indicator=indicators), gappy, **options)
    kept = tune(KNNImputer(add_indicator=indicators, keep_empty_features=True), gappy, **options)
    full = np.delete(gappy, [2, 5], axis=1)
    assert set(kept.trials_["state"]) == {"complete"}
    assert 0 < kept.best_score_ < 2 * np.nanstd(full)


def test_columns_that_an_imputer_appends_are_left_aside(gappy):
    options = {"n_trials": 3, "space": {"n_neighbors": (1, 10)}, "random_state": 0}
    plain, marked = (tune(KNNImputer(add_indicator=added), gappy, **options) for added in (False, True))
    assert plain.best_score_ == marked.best_score_


def test_empty_columns_are_named_where_they_have_names(gappy):
    frame = pd.DataFrame(gappy, columns=[f"station {number}" for number in range(18)])
    frame["station 3"] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping features")
        with pytest.raises(TuningError, match=r"1 column has no entry \('station 3'\).*drop it first"):
            tune(KNNImputer(), frame, n_trials=1, space={"n_neighbors": (1, 10)}, random_state=0)


class FirstRows(ColumnMeans):
    def reconstruct(self):
        return np.zeros((5, self.shape_[1]))


def test_tables_of_another_shape_are_refused(gappy):
    with pytest.raises(TuningError, match=r"FirstRows returned a table of 5 x 18 for one of 24 x 18.*keeps every row"):
        tune(FirstRows(), gappy, n_trials=1, space={"shrinkage": (0.0, 1.0)}, random_state=0)


def test_two_workers_fit_the_same_settings(gappy):
    result = tune(PMF(3, max_iter=20), gappy, n_trials=5, n_workers=2, random_state=0, prune=False)
    alone = tune(PMF(3, max_iter=20), gappy, n_trials=5, random_state=0, prune=False)
    # The first settings do not depend on outcomes.
    assert sorted(result.trials_["param_penalty"]) == pytest.approx(sorted(alone.trials_["param_penalty"]))
    assert result.best_params_ == alone.best_params_
    np.testing.assert_allclose(result.best_score_, alone.best_score_)


class Dying(ColumnMeans):
    """A process that the system ends."""

    def fit(self, X, y=None):
        os._exit(1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker:UserWarning")
def test_a_worker_that_dies_is_no_mystery(gappy):
    with pytest.raises(TuningError, match=r"sudden end.*Lower n_workers"):
        tune(Dying(), gappy, n_trials=4, n_workers=2, space={"shrinkage": (0.0, 1.0)}, random_state=0)

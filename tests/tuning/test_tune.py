"""The search finds what a grid finds, on entries of the table alone, the same each time."""

import warnings

import numpy as np
import optuna
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from lgmd import DGRMD, PMF, LGMDImputer
from lgmd.exceptions import ConvergenceWarning
from lgmd.observed import as_observed
from lgmd.tuning import TuningError, tune
from lgmd.tuning.splits import make_splits

pytestmark = pytest.mark.filterwarnings("ignore::lgmd.exceptions.ConvergenceWarning")


@pytest.fixture
def gappy(make_table):
    return make_table(n=24, p=18, rank=2, missing=0.2, noise=1.0, seed=3)[1]


def held_out_error(model, table, seed, share=0.1):
    """The score of a setting, computed without the search."""
    (split,) = make_splits(table, as_observed(table), share, 1, seed)
    i, j = split.held_out.rows, split.held_out.columns
    assert np.isnan(split.training[i, j]).all()
    return np.sqrt(np.mean((model.fit(split.training).reconstruct()[i, j] - table[i, j]) ** 2))


def test_the_best_penalty_is_that_of_a_fine_grid(gappy):
    result = tune(PMF(6), gappy, n_trials=14, random_state=1)
    grid = [
        held_out_error(PMF(6, sample_penalty=penalty, feature_penalty=penalty), gappy, 1)
        for penalty in np.geomspace(0.3, 20, 15)
    ]
    assert max(grid) > 1.1 * min(grid)
    assert result.best_score_ <= 1.01 * min(grid)
    penalty = result.best_params_["penalty"]
    assert result.best_score_ == pytest.approx(
        held_out_error(PMF(6, sample_penalty=penalty, feature_penalty=penalty), gappy, 1)
    )


def test_a_penalty_for_each_side_changes_nothing_but_their_product(gappy):
    def table(sample_penalty, feature_penalty):
        model = DGRMD(3, sample_penalty=sample_penalty, feature_penalty=feature_penalty, max_iter=100, tol=1e-8)
        return model.fit(gappy).reconstruct()

    np.testing.assert_allclose(table(4.0, 1.0), table(2.0, 2.0), atol=1e-3)
    assert np.abs(table(4.0, 4.0) - table(2.0, 2.0)).max() > 1e-2


def test_the_best_estimator_is_fitted_on_all_entries(gappy):
    model = PMF(4, sample_penalty=3.0)
    result = tune(model, gappy, n_trials=4, random_state=0)
    penalty = result.best_params_["penalty"]
    expected = PMF(4, sample_penalty=penalty, feature_penalty=penalty).fit(gappy)
    np.testing.assert_allclose(result.best_estimator_.reconstruct(), expected.reconstruct())
    assert model.sample_penalty == 3.0
    assert not hasattr(model, "sample_factors_")
    unfitted = tune(model, gappy, n_trials=4, random_state=0, refit=False).best_estimator_
    assert unfitted.sample_penalty == penalty
    assert not hasattr(unfitted, "sample_factors_")


def test_the_first_trial_is_the_estimator_as_given(gappy):
    result = tune(PMF(4, sample_penalty=2.5, feature_penalty=2.5), gappy, n_trials=1, random_state=5)
    assert result.best_params_ == {"penalty": 2.5}
    model = PMF(4, sample_penalty=2.5, feature_penalty=2.5)
    assert result.best_score_ == pytest.approx(held_out_error(model, gappy, 5))


def test_the_same_seed_gives_the_same_trials_and_another_seed_others(gappy):
    def values(seed):
        return tune(PMF(2, max_iter=10), gappy, n_trials=9, random_state=seed).trials_.drop(columns="seconds")

    pd.testing.assert_frame_equal(values(0), values(0))
    assert not values(0)["value"].equals(values(1)["value"])
    pd.testing.assert_frame_equal(values(np.random.RandomState(4)), values(np.random.RandomState(4)))


def test_values_outside_the_observed_entries_are_never_seen(gappy):
    mask = np.isnan(gappy)
    hidden = np.ma.masked_array(np.where(mask, 1e6, gappy), mask)
    masked = tune(PMF(3, max_iter=30), hidden, n_trials=4, random_state=0)
    plain = tune(PMF(3, max_iter=30), gappy, n_trials=4, random_state=0)
    np.testing.assert_allclose(masked.trials_["value"], plain.trials_["value"])


def test_every_form_of_the_table_gives_the_same_scores(gappy):
    rows, columns = np.nonzero(~np.isnan(gappy))
    forms = [
        gappy.tolist(),
        pd.DataFrame(gappy, index=[f"r{i}" for i in range(24)], columns=[f"c{j}" for j in range(18)]),
        scipy.sparse.csc_array((gappy[rows, columns], (rows, columns)), shape=gappy.shape),
        scipy.sparse.coo_matrix((gappy[rows, columns], (rows, columns)), shape=gappy.shape),
    ]
    expected = tune(PMF(3, max_iter=30), gappy, n_trials=3, random_state=0)
    for form in forms:
        found = tune(PMF(3, max_iter=30), form, n_trials=3, random_state=0)
        np.testing.assert_allclose(found.trials_["value"], expected.trials_["value"])
    assert list(tune(PMF(3), forms[1], n_trials=1, random_state=0).best_estimator_.feature_names_in_)[:2] == [
        "c0",
        "c1",
    ]


def test_no_row_or_column_loses_all_its_entries(rng):
    table = np.full((30, 30), np.nan)
    table[np.arange(30), np.arange(30)] = rng.standard_normal(30)
    table[0] = rng.standard_normal(30)
    for split in make_splits(table, as_observed(table), 0.9, 3, 0):
        observed = ~np.isnan(split.training)
        assert observed.any(axis=0).all()
        assert observed.any(axis=1).all()


class ColumnMeans(BaseEstimator):
    """A model in scikit-learn's manner that knows nothing of this package."""

    def __init__(self, shrinkage=0.0, power=1):
        self.shrinkage = shrinkage
        self.power = power

    def fit(self, X, y=None):
        if self.shrinkage > 5:
            raise ArithmeticError("too much shrinkage")
        self.means_ = np.nanmean(X, axis=0) * (1 - self.shrinkage) ** self.power
        self.shape_ = np.shape(X)
        return self

    def reconstruct(self):
        return np.broadcast_to(self.means_, self.shape_)


def test_failing_trials_are_listed_and_do_not_stop_the_search(gappy):
    space = {"shrinkage": [0.0, 7.0, 9.0]}
    result = tune(ColumnMeans(), gappy, n_trials=8, space=space, random_state=0)
    failed = result.trials_[result.trials_["state"] == "failed"]
    assert len(result.trials_) == 8
    assert set(failed["param_shrinkage"]) == {7.0, 9.0}
    assert set(failed["message"]) == {"ArithmeticError: too much shrinkage"}
    assert failed["value"].isna().all()
    assert result.best_params_ == {"shrinkage": 0.0}
    with pytest.raises(TuningError, match=r"None of the 3 trials of ColumnMeans .*\n- 3 x ArithmeticError: too much"):
        tune(ColumnMeans(), gappy, n_trials=3, space={"shrinkage": (6.0, 9.0)}, random_state=0)


def test_an_update_that_diverges_is_a_failed_trial(gappy):
    model = PMF(3, update="paper")
    result = tune(model, gappy[:, ~np.isnan(gappy).all(axis=0)], n_trials=6, random_state=0, prune=False)
    failed = result.trials_[result.trials_["state"] == "failed"]
    assert len(failed)
    assert failed["message"].str.startswith("DivergenceError").all()


def test_a_setting_that_was_tried_is_not_fitted_again(gappy):
    class Counted(ColumnMeans):
        fits = 0

        def fit(self, X, y=None):
            Counted.fits += 1
            return super().fit(X)

    result = tune(Counted(), gappy, n_trials=9, space={"power": [1, 2]}, random_state=0, refit=False)
    assert len(result.trials_) == 9
    assert Counted.fits == 2


def test_hopeless_runs_are_given_up_and_the_best_is_the_same(make_table):
    table = make_table(n=30, p=24, rank=2, missing=0.3, noise=1.0, seed=1)[1]
    pruned = tune(PMF(6), table, n_trials=10, random_state=0)
    whole = tune(PMF(6), table, n_trials=10, random_state=0, prune=False)
    given_up = pruned.trials_[pruned.trials_["state"] == "pruned"]
    assert len(given_up) >= 2
    assert given_up["message"].str.contains("heading for more than").all()
    assert pruned.best_params_ == whole.best_params_
    # What was given up would indeed have been above the median then, had it gone on with the same setting.
    first = int(given_up["number"].iloc[0])
    assert pruned.trials_["param_penalty"][first] == whole.trials_["param_penalty"][first]
    assert whole.trials_["value"][first] > whole.trials_["value"][:first].median()


def test_several_splits_are_scored_together(gappy):
    three = tune(ColumnMeans(), gappy, n_trials=1, space={"shrinkage": (0.0, 1.0)}, n_splits=3, random_state=7)
    squares = []
    for split in make_splits(gappy, as_observed(gappy), 0.1, 3, 7):
        i, j = split.held_out.rows, split.held_out.columns
        squares.extend((ColumnMeans().fit(split.training).reconstruct()[i, j] - gappy[i, j]) ** 2)
    assert three.best_score_ == pytest.approx(np.sqrt(np.mean(squares)))


def test_the_callback_sees_each_trial_and_can_end_the_search(gappy):
    seen = []
    result = tune(
        PMF(2, max_iter=10),
        gappy,
        n_trials=9,
        random_state=0,
        callback=lambda trial: seen.append(trial) or len(seen) == 4,
    )
    assert [trial.number for trial in seen] == [0, 1, 2, 3]
    assert [trial.value for trial in seen] == result.trials_["value"].tolist()


def test_time_that_is_up_begins_no_trial(gappy):
    with pytest.raises(TuningError, match="Raise timeout"):
        tune(PMF(2), gappy, timeout=0.0)
    assert len(tune(PMF(2, max_iter=10), gappy, n_trials=3, timeout=600, random_state=0).trials_) == 3


class Interrupting(ColumnMeans):
    """Ctrl-C during the fit with a large shrinkage."""

    def fit(self, X, y=None):
        if self.shrinkage > 0.5:
            raise KeyboardInterrupt
        return super().fit(X)


def test_an_interrupted_search_returns_the_best_so_far(gappy):
    with pytest.warns(UserWarning, match=r"interrupted after \d of 40 trials"):
        result = tune(Interrupting(), gappy, n_trials=40, space={"shrinkage": (0.0, 1.0)}, random_state=0)
    assert 1 <= len(result.trials_) < 40
    with pytest.raises(KeyboardInterrupt):
        tune(Interrupting(), gappy, space={"shrinkage": (0.6, 1.0)}, random_state=0)


def test_an_interrupted_imputer_ends_the_search_too(gappy, monkeypatch):
    real = PMF.fit
    fits = []

    def interrupt(progress):
        raise KeyboardInterrupt

    def fit(self, table):
        fits.append(self)
        return real(self, table, callback=None if len(fits) < 3 else interrupt)

    monkeypatch.setattr(PMF, "fit", fit)
    with pytest.warns(UserWarning, match="interrupted after 2 of 5 trials"):
        result = tune(LGMDImputer(PMF(2, max_iter=10)), gappy, n_trials=5, refit=False, random_state=0)
    assert len(fits) == 3
    assert set(result.trials_["state"]) == {"complete"}


def test_nothing_is_written_where_there_is_no_terminal(gappy, capfd):
    level = optuna.logging.get_verbosity()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        tune(PMF(2, max_iter=10), gappy, n_trials=8, random_state=0)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == level


def test_a_terminal_gets_a_progress_bar_unless_it_is_not_wanted(gappy, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    tune(PMF(2, max_iter=10), gappy, n_trials=2, random_state=0)
    assert "held-out error" in capfd.readouterr().out
    tune(PMF(2, max_iter=10), gappy, n_trials=2, random_state=0, progress=False)
    assert capfd.readouterr().out == ""

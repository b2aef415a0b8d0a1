"""Searches that stop today and go on tomorrow, and what they leave on disk."""

import numpy as np
import optuna
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator
from sqlalchemy.pool import NullPool

from lgmd import LGMD, PMF, graphs
from lgmd.exceptions import CheckpointError, InvalidParameterError
from lgmd.tuning import tune
from lgmd.tuning.store import _digest

TABLE = np.random.default_rng(0).standard_normal((12, 9))
SPACE = {"offset": (0.0, 1.0), "power": (1, 3)}


class Offset(BaseEstimator):
    """A constant table: fits in no time."""

    fits = 0

    def __init__(self, offset=0.5, power=1):
        self.offset = offset
        self.power = power

    def fit(self, X, y=None):
        Offset.fits += 1
        self.shape_ = X.shape
        return self

    def reconstruct(self):
        return np.full(self.shape_, self.offset**self.power)


def opened(path):
    """A file as Optuna opens it, without connections that stay open."""
    return optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"poolclass": NullPool})


def test_a_search_that_is_taken_up_again_tries_what_it_would_have_tried(tmp_path):
    whole = tune(Offset(), TABLE, n_trials=14, space=SPACE, random_state=3).trials_
    Offset.fits = 0
    for n_trials in (3, 14):
        parts = tune(Offset(), TABLE, n_trials=n_trials, space=SPACE, random_state=3, storage=tmp_path / "search.db")
        assert len(parts.trials_) == n_trials
    assert Offset.fits <= 14 + 3
    pd.testing.assert_frame_equal(parts.trials_.drop(columns="seconds"), whole.drop(columns="seconds"))


def test_a_finished_search_does_nothing_more(tmp_path):
    first = tune(Offset(), TABLE, n_trials=6, space=SPACE, storage=tmp_path / "search.db")
    Offset.fits = 0
    # Without a seed the stored one is taken, and with it the same split.
    again = tune(Offset(), TABLE, n_trials=4, space=SPACE, storage=str(tmp_path / "search.db"), refit=False)
    assert Offset.fits == 0
    assert again.best_params_ == first.best_params_
    assert again.best_score_ == first.best_score_


def test_a_trial_that_was_cut_off_is_done_again(tmp_path):
    path = tmp_path / "search.db"
    tune(Offset(), TABLE, n_trials=3, space=SPACE, random_state=3, storage=path)
    optuna.load_study(study_name="lgmd", storage=opened(path)).ask()
    resumed = tune(Offset(), TABLE, n_trials=8, space=SPACE, random_state=3, storage=path)
    whole = tune(Offset(), TABLE, n_trials=8, space=SPACE, random_state=3)
    pd.testing.assert_frame_equal(resumed.trials_.drop(columns="seconds"), whole.trials_.drop(columns="seconds"))


def test_pruned_and_failed_trials_are_kept(tmp_path):
    table = np.random.default_rng(1).standard_normal((24, 2)) @ np.random.default_rng(2).standard_normal((2, 18))
    table += np.random.default_rng(3).standard_normal(table.shape)
    settings = {"n_trials": 12, "random_state": 0, "storage": tmp_path / "search.db", "refit": False}
    first = tune(PMF(8), table, **settings)
    assert "pruned" in set(first.trials_["state"])
    pd.testing.assert_frame_equal(tune(PMF(8), table, **settings).trials_, first.trials_)


def test_trials_of_another_search_are_refused(tmp_path):
    begun = {"estimator": Offset(), "Y": TABLE, "n_trials": 1, "space": SPACE, "random_state": 3}
    tune(**begun, storage=tmp_path / "search.db")
    for changed, part in (
        ({"Y": TABLE + 1}, "table"),
        ({"estimator": Offset(power=2)}, "estimator"),
        ({"space": {"offset": (0.0, 2.0), "power": (1, 3)}}, "space"),
        ({"held_out": 0.2}, "held_out"),
        ({"n_splits": 2}, "held_out"),
        ({"random_state": 4}, "random_state"),
    ):
        with pytest.raises(CheckpointError, match=f"was begun with another {part}, so"):
            tune(**{**begun, **changed}, storage=tmp_path / "search.db")
    # Under another name the file takes it.
    other = tune(**{**begun, "Y": TABLE + 1}, storage=tmp_path / "search.db", study_name="other")
    assert len(other.trials_) == 1


def test_files_that_hold_no_trials_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look like something" * 50)
    for storage, message in (
        (tmp_path / "notes.txt", "cannot be used to keep trials"),
        (tmp_path / "nowhere" / "search.db", "does not exist"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(CheckpointError, match=message):
            tune(Offset(), TABLE, space=SPACE, storage=storage)
    assert (tmp_path / "notes.txt").read_text().startswith("not a database")
    theirs = optuna.create_study(storage=opened(tmp_path / "theirs.db"), study_name="lgmd")
    theirs.add_trial(optuna.trial.create_trial(value=1.0))
    with pytest.raises(CheckpointError, match="was not written by lgmd"):
        tune(Offset(), TABLE, space=SPACE, storage=tmp_path / "theirs.db")


def test_fingerprints_depend_on_values_alone():
    learner = graphs.FixedGraph(np.eye(3))
    assert _digest(PMF(3)) == _digest(PMF(3))
    assert _digest(PMF(3)) != _digest(PMF(4))
    assert _digest(learner) == _digest(graphs.FixedGraph(np.eye(3)))
    assert _digest(learner) != _digest(graphs.FixedGraph(2 * np.eye(3)))
    assert _digest([1, [2]]) != _digest([[1], 2])
    assert _digest(np.mean) != _digest(np.median)


def test_tables_and_pictures_are_saved(tmp_path):
    space = {"offset": (1e-3, 1.0, "log"), "power": [1, 2, 3]}
    result = tune(Offset(), TABLE, n_trials=6, space=space, random_state=0)
    paths = result.save(tmp_path / "a" / "folder")
    assert sorted(path.name for path in paths) == ["trials.csv", "tuning.png", "tuning.svg"]
    assert sorted(path.name for path in (tmp_path / "a" / "folder").iterdir()) == sorted(path.name for path in paths)
    pd.testing.assert_frame_equal(pd.read_csv(paths[0]).drop(columns="message"), result.trials_.drop(columns="message"))
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    result.save(tmp_path / "a" / "folder")
    with pytest.raises(InvalidParameterError, match="is a file"):
        result.save(paths[0])


def test_the_picture_shows_the_course_and_each_parameter():
    space = {"offset": (1e-3, 1.0, "log"), "power": [1, 2, 3]}
    result = tune(Offset(), TABLE, n_trials=6, space=space, random_state=0)
    course, offset, power = result.plot().axes
    best = course.get_lines()[0].get_ydata()
    np.testing.assert_allclose(best, np.minimum.accumulate(result.trials_["value"]))
    assert offset.get_xscale() == "log"
    assert [label.get_text() for label in power.get_xticklabels()] == ["1", "2", "3"]
    assert offset.get_lines()[0].get_ydata() == pytest.approx([result.best_score_])
    assert "offset=" in repr(result)


def ticks(axis):
    return [label.get_text() for label in axis.get_xticklabels()]


def test_choices_of_several_types_keep_them(tmp_path):
    space = {"offset": [0.1, 1, 10], "power": [None, 1, 2]}
    result = tune(Offset(), TABLE, n_trials=12, space=space, random_state=0)
    assert {type(value) for value in result.trials_["param_offset"]} == {float, int}
    assert set(result.trials_["param_power"]) == {None, 1, 2}
    _, offset, power = result.plot().axes
    assert ticks(offset) == ["0.1", "1", "10"]
    assert ticks(power) == ["None", "1", "2"]
    assert len(result.save(tmp_path)) == 3


def test_choices_that_look_alike_have_places_of_their_own():
    one, two = (scipy.sparse.csr_array(scale * np.eye(len(TABLE))) for scale in (1.0, 2.0))
    learners = [graphs.KNNGraph(n_neighbors=2, ridge=0.1), graphs.KNNGraph(n_neighbors=2, ridge=0.2)]
    space = {"sample_graph": [graphs.FixedGraph(one), graphs.FixedGraph(two), *learners]}
    model = LGMD(2, inference="map", feature_graph="none", max_iter=2)
    result = tune(model, TABLE, n_trials=12, space=space, random_state=0, refit=False)
    _, axis = result.plot().axes
    assert len(set(ticks(axis))) == 4
    drawn = {float(place) for points in axis.collections for place, _ in points.get_offsets()}
    assert drawn == {0.0, 1.0, 2.0, 3.0}
    assert result.trials_["param_sample_graph"].nunique() == 4


def test_trials_are_saved_where_pictures_cannot_be_drawn(tmp_path, monkeypatch):
    result = tune(Offset(), TABLE, n_trials=2, space=SPACE, random_state=0)
    monkeypatch.setattr("lgmd.tuning.plots.draw_trials", lambda _: 1 / 0)
    with pytest.warns(UserWarning, match=r"could not be drawn \(ZeroDivisionError"):
        paths = result.save(tmp_path)
    assert [path.name for path in paths] == ["trials.csv"]

"""Columns on their way out are dropped at the end, where that raises the bound."""

import numpy as np
import pytest

from lgmd import PMF
from lgmd.solver import VariationalInference


def low_rank(n, p, rank, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    return truth + noise * rng.standard_normal(truth.shape)


@pytest.fixture
def table():
    full = low_rank(400, 120, 3)
    return np.where(np.random.default_rng(1).random(full.shape) < 0.2, np.nan, full)


def fitted(table, **parameters):
    return PMF(8, inference="variational", prior="columns", **parameters).fit(table)


@pytest.fixture
def short_start(monkeypatch):
    """As in a large table: the start does not last until spare columns are dead."""
    monkeypatch.setattr("lgmd.solver.variational_starter._TRIAL", 1)


def test_a_loose_tolerance_leaves_no_spare_columns(table, short_start, monkeypatch):
    found = fitted(table, tol=5e-4)
    assert found.rank_ == 3
    assert np.all(np.diff(found.history_.objective) < 0)
    monkeypatch.setattr(VariationalInference, "without_weak_columns", lambda self, state: None)
    assert fitted(table, tol=5e-4).rank_ > 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_run_that_was_stopped_before_the_drop_drops_later(table, short_start, tmp_path):
    whole = fitted(table, tol=5e-4)
    for max_iter in range(whole.n_iter_ - 2, whole.n_iter_ + 1):
        path = tmp_path / f"run {max_iter}"
        model = PMF(8, inference="variational", prior="columns", tol=5e-4, max_iter=max_iter)
        model.fit(table, checkpoint=path)
        model.set_params(max_iter=200).fit(table, checkpoint=path)
        assert (model.rank_, model.n_iter_) == (3, whole.n_iter_)
        np.testing.assert_allclose(model.reconstruct(), whole.reconstruct(), rtol=1e-9)


def test_columns_that_carry_something_stay(table, monkeypatch):
    monkeypatch.setattr("lgmd.solver.variational.WEAK", 1.0)
    assert fitted(table, tol=1e-7).rank_ == 3


def test_a_table_of_noise_ends(rng):
    found = PMF(4, inference="variational", prior="columns", tol=1e-2).fit(rng.standard_normal((30, 20)))
    assert found.rank_ == 1
    assert found.n_iter_ < found.max_iter

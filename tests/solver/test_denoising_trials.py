"""Stein's estimate of how far short runs end from the truth, and the prior that it chooses for complete tables."""

import numpy as np
import pytest

from lgmd import LGMD, PMF, datasets
from lgmd.factors import Intercepts, InterceptTerms, NoiseModel
from lgmd.graphs import GraphEstimate, NoGraph
from lgmd.metrics import rmse
from lgmd.observed import DenseObserved, random_signs
from lgmd.solver.denoising_trials import denoising_trials
from lgmd.solver.prior_choice import NoiseBelief
from lgmd.solver.variational import VariationalInference
from lgmd.solver.variational_starter import Starter

NONE = {"sample_graph": "none", "feature_graph": "none"}
BELIEFS = ("bold", NoiseBelief())


def starter(values, rank):
    n, p = values.shape
    problem = VariationalInference(
        DenseObserved(values), rank, InterceptTerms.parse("none"), NoGraph(), NoGraph(), NoiseModel("homoscedastic")
    )
    graphs = (GraphEstimate.identity(n), GraphEstimate.identity(p))
    return Starter(problem, Intercepts(0.0, np.zeros(n), np.zeros(p)), graphs, 0)


def estimates(state):
    return state.X @ state.W.T


@pytest.mark.parametrize("belief", BELIEFS)
def test_signs_see_the_divergence(belief):
    """On average over signs: the sum of derivatives, each by a change of one entry."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((8, 3)) @ rng.standard_normal((3, 6)) + 0.5 * rng.standard_normal((8, 6))
    first = starter(values, 3)
    n_iter = max(first._on_complete(each, DenseObserved(values), None).n_iter for each in BELIEFS)
    base = first._on_complete(belief, DenseObserved(values), n_iter)
    step, exact = 1e-4, 0.0
    for place in np.ndindex(values.shape):
        changed = values.copy()
        changed[place] += step
        moved = first._on_complete(belief, DenseObserved(changed), n_iter).state
        exact += (estimates(moved) - estimates(base.state))[place] / step
    trials = denoising_trials(DenseObserved(values), first._on_complete, BELIEFS)

    left = np.sum((values - estimates(base.state)) ** 2)
    variance = min(first._on_complete(each, DenseObserved(values), n_iter).state.noise.level for each in BELIEFS)
    added = np.array([trials(belief, part).losses.sum() - left for part in range(50)])
    seen = (added / variance + values.size) / 2
    assert abs(seen.mean() - exact) < 4 * seen.std(ddof=1) / np.sqrt(len(seen))


@pytest.mark.parametrize("belief", BELIEFS)
def test_the_estimate_is_right_on_average(belief):
    """Over tables it is the squared error against the truth, but for what the learned variance of the noise is off."""
    wrong = []
    for seed in range(30):
        data = datasets.make_matrix_normal(
            40, 30, 4, sample_graph="none", feature_graph="none", noise=0.7, random_state=seed
        )
        first = starter(data.noisy, 6)
        trial = denoising_trials(DenseObserved(data.noisy), first._on_complete, BELIEFS)(belief, 0)
        state = first._on_complete(belief, DenseObserved(data.noisy), None).state
        wrong.append((trial.losses.mean() - np.mean((estimates(state) - data.truth) ** 2)) / data.noise_variance)
    assert abs(np.mean(wrong)) < 3 * np.std(wrong, ddof=1) / np.sqrt(len(wrong)) + 0.02


def test_no_run_has_longer_to_go_than_its_rivals():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 10)) + rng.standard_normal((12, 10))
    first, lengths = starter(values, 3), {}

    def run(start, table, n_iter):
        found = first._on_complete(start, table, n_iter)
        lengths.setdefault(start, []).append(found.n_iter)
        return found

    trials = denoising_trials(DenseObserved(values), run, BELIEFS)
    other = NoiseBelief(optimism=0.02)
    for start in (*BELIEFS, other):
        trials(start, 0)
    longest = max(lengths[start][0] for start in BELIEFS)
    shorter, longer = sorted((lengths[start] for start in BELIEFS), key=lambda runs: runs[0])
    # Each is run on the table and on the changed one; what ends before is run again.
    assert shorter == [shorter[0], longest, longest]
    assert shorter[0] < longest
    assert longer == lengths[other] == [longest, longest]


def test_weak_columns_stay_where_they_take_noise_away():
    """Held-out entries would let them die: nothing is to be foreseen here, and much to be denoised."""
    chosen, best = [], []
    for seed in range(4):
        data = datasets.make_matrix_normal(
            100, 100, 20, sample_graph="geometric", feature_graph="geometric", noise=0.5, random_state=seed
        )
        error = {
            prior: rmse(data.truth, LGMD(20, prior=prior, **NONE).fit(data.noisy).reconstruct())
            for prior in ("auto", "shared", "columns")
        }
        chosen.append(error.pop("auto"))
        best.append(min(error.values()))
        assert error["shared"] < 0.99 * error["columns"]
    assert np.mean(chosen) < 1.005 * np.mean(best)


@pytest.mark.parametrize("seed", [0, 2, 6, 12])  # what is left for a shared prior to explain is smallest in the last
def test_columns_that_are_noise_still_die(seed):
    data = datasets.make_matrix_normal(
        60, 50, 4, sample_graph="none", feature_graph="none", noise=0.5, random_state=seed
    )
    model = PMF(20, "variational").fit(data.noisy)
    assert model.rank_ == 4


@pytest.mark.parametrize("noise", [pytest.param(0.5, marks=pytest.mark.slow), 1.5])
def test_the_choice_is_that_of_the_table_and_not_of_how_it_stands(noise):
    data = datasets.make_matrix_normal(
        40, 30, 5, sample_graph="blocks", feature_graph="none", noise=noise, random_state=3
    )
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(40), rng.permutation(30)
    here = PMF(8, "variational", tol=1e-8, max_iter=2000).fit(data.noisy)
    there = PMF(8, "variational", tol=1e-8, max_iter=2000).fit(7 * data.noisy[rows][:, columns].T)
    assert here.rank_ == there.rank_
    scale = np.abs(here.reconstruct()).max()
    np.testing.assert_allclose(
        there.reconstruct().T / 7, here.reconstruct()[rows][:, columns], atol=1e-3 * scale, rtol=0
    )


def test_exactly_low_rank_tables_are_followed():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 15))
    model = PMF(5, "variational").fit(table)
    assert np.abs(model.reconstruct() - table).max() < 1e-3


class TestRandomSigns:
    values = np.random.default_rng(1).standard_normal((30, 20))

    def test_are_signs_of_either_kind(self):
        signs = random_signs(DenseObserved(self.values), 0)
        assert set(signs) == {-1.0, 1.0}
        assert abs(signs.mean()) < 4 / np.sqrt(signs.size)
        assert np.abs(np.mean(signs * random_signs(DenseObserved(self.values), 1))) < 4 / np.sqrt(signs.size)

    def test_go_with_their_entries(self):
        rows = np.random.default_rng(2).permutation(30)
        signs = random_signs(DenseObserved(self.values), 0).reshape(30, 20)
        moved = random_signs(DenseObserved(np.ascontiguousarray(3 * self.values[rows].T)), 0).reshape(20, 30)
        np.testing.assert_array_equal(moved.T, signs[rows])

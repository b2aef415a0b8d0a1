"""The paper's iteration as printed: against independent forms of the same steps, and in the table of running times."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lgmd import graphs
from lgmd.datasets import make_matrix_normal
from lgmd.experiments import running_time
from lgmd.experiments.printed_algorithm import printed_iterations, printed_threshold
from lgmd.factors import Half, PaperUpdate
from lgmd.observed import as_observed

PENALTY = 0.05


def held(_, graph):
    return graph


def table_of(missing):
    return make_matrix_normal(12, 15, 3, noise=0.5, missing=missing, random_state=1).observed


def two_graphs():
    chains = [scipy.sparse.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in (12, 15)]
    return tuple(chain.tocsr() for chain in chains)


def test_without_a_penalty_a_complete_table_stays_at_its_truncated_decomposition():
    table = table_of(0.0)
    run = printed_iterations(table, 3, two_graphs(), held, 0.0, 20)
    left, singular, right = np.linalg.svd(table - table.mean(), full_matrices=False)
    best = table.mean() + (left[:, :3] * singular[:3]) @ right[:3]
    np.testing.assert_allclose(run.estimate, best, atol=1e-5)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_plain_loop_takes_the_steps_of_the_paper_update(missing):
    table, (A, B) = table_of(missing), two_graphs()
    run = printed_iterations(table, 3, (A, B), held, PENALTY, 4)
    mean, scale = np.nanmean(table), np.nanstd(table)
    data = as_observed((table - mean) / scale)
    left, singular, right = np.linalg.svd(np.nan_to_num((table - mean) / scale), full_matrices=False)
    X, W = left[:, :3], right[:3].T * singular[:3]
    update_rows = PaperUpdate().prepare(Half(data, PENALTY, A, None))
    update_columns = PaperUpdate().prepare(Half(data.T, PENALTY, B, None))
    for _ in range(4):
        X, _ = update_rows(X, W, np.zeros(15))
        W, _ = update_columns(W, X, np.zeros(12))
    np.testing.assert_allclose(run.estimate, mean + scale * X @ W.T, rtol=1e-6)


def test_the_printed_closed_form_is_that_of_the_library_up_to_scale():
    factor = np.random.default_rng(3).standard_normal((20, 10))
    printed = printed_threshold(factor)
    covariance = factor @ factor.T / 10
    n_edges = np.count_nonzero(np.triu(printed, 1))
    assert n_edges == 12  # 6 % of 190 pairs, and what the quantile leaves of the next
    sizes = np.sort(np.abs(covariance[np.triu_indices(20, 1)]))
    eta = np.quantile(sizes, 0.94)
    estimate = graphs.threshold_precision(covariance, eta)
    assert estimate.converged
    expected = estimate.precision.toarray()
    np.testing.assert_allclose(printed, expected / np.diag(expected).mean(), rtol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_large_penalty_makes_the_printed_iteration_diverge(missing):
    run = printed_iterations(table_of(missing), 3, two_graphs(), held, 100.0, 1000)
    assert run.estimate is None
    assert run.n_iterations < 1000


def test_the_general_solver_is_given_the_problem_of_the_exact_one():
    import cvxpy

    S = np.corrcoef(np.random.default_rng(0).standard_normal((6, 8)))
    problem, precision = running_time.convex_problem(cvxpy, S, 0.1)
    problem.solve(solver=cvxpy.SCS, eps=1e-8)
    exact = graphs.laplacian_precision(S, 0.1)
    assert -problem.value == pytest.approx(exact.objective, abs=1e-5)
    np.testing.assert_allclose(precision.value, exact.precision.toarray(), atol=1e-3)


def test_without_cvxpy_there_is_no_general_solver(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(running_time, "import_module", missing)
    assert np.isnan(running_time.cvx_seconds(table_of(0.0), 3))


@pytest.fixture(scope="module")
def measured():
    data = make_matrix_normal(20, 24, 3, noise=0.3, missing=0.3, random_state=0)
    rows = running_time.measure(data.noisy, data.observed, ~data.mask, 3, 10, 1, 0)
    return pd.DataFrame(rows).assign(setting="completion")


def test_every_method_is_timed_in_every_way(measured):
    methods = {"PMF", "dGRMD", "LGMD", "LGMD+"}
    found = measured.groupby("variant")["method"].agg(set).to_dict()
    assert found == {"map": methods, "printed": methods, "variational": methods}
    assert (measured["seconds"] > 0).all()
    printed = measured[measured["variant"] == "printed"].set_index("method")["iterations"]
    assert printed.to_dict() == {"PMF": 10, "dGRMD": 10, "LGMD": 10, "LGMD+": 1}


def test_the_table_has_the_papers_seconds_and_says_what_is_extrapolated(measured):
    diverged = measured.assign(setting="denoising", converged=False, rmse=float("nan"))
    shown = running_time.section(pd.concat([measured, diverged])).table.set_index("")
    assert shown.loc["denoising: the paper, 1000 iterations"].tolist() == ["10 s", "20 s", "230 s", "2,500 s"]
    printed = shown.loc["completion: the printed iteration here, 1000 iterations"]
    assert "RMSE" in printed["PMF"]
    assert "extrapolated" in printed["LGMD+"]
    assert "diverged after 10 it." in shown.loc["denoising: the printed iteration here, 1000 iterations", "LGMD"]
    assert not any("SCS" in name for name in shown.index)


def test_times_of_a_cut_are_not_shown_as_if_they_were_the_papers(measured):
    solver = {"method": "LGMD+", "variant": "general solver", "seconds": 3.0, "iterations": 1, "setting": "completion"}
    rows = pd.concat([measured, pd.DataFrame([solver])])
    cut = running_time.section(rows, (60, 120), 30)
    assert "150 x 669, all others those of a cut of 60 x 120: they are not to be compared" in cut.text
    for name in cut.table[""]:
        expected = ", 150 x 669" if ": the paper," in name else ", 30 stations" if "SCS" in name else ", 60 x 120"
        assert name.endswith(expected)
    whole = running_time.section(rows)
    assert " x 669" not in whole.text + " ".join(whole.table[""])

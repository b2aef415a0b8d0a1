"""Every way to take a half-step against a brute-force solve of the same normal equations."""

import numpy as np
import pytest
import scipy.sparse

from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.factors import ConjugateGradientUpdate, Half, PaperUpdate, SylvesterUpdate, select_update
from lgmd.linalg import sylvester
from lgmd.observed import as_observed

EXACT_CG = ConjugateGradientUpdate(tol=1e-14, max_iter=1000)
LOOSE = {"allow_empty_rows": True, "allow_empty_columns": True}


def brute_force(table, design, offsets, precision, penalty, ridge):
    """Solve for all rows and their intercepts at once, as one dense system with Kronecker structure."""
    n, k = len(table), design.shape[1]
    width = k + (ridge is not None)
    extended = design if ridge is None else np.column_stack([design, np.ones(len(design))])
    on_factors = np.diag([1.0] * k + [0.0] * (width - k))
    system = penalty * np.kron(precision.toarray(), on_factors)
    right = np.zeros(n * width)
    for i in range(n):
        seen = ~np.isnan(table[i])
        block = slice(i * width, (i + 1) * width)
        system[block, block] += extended[seen].T @ extended[seen]
        if ridge is not None:
            system[i * width + k, i * width + k] += ridge
        right[block] = extended[seen].T @ (table[i, seen] - offsets[seen])
    solution = np.linalg.solve(system, right).reshape(n, width)
    return solution[:, :k], solution[:, k] if ridge is not None else np.zeros(n)


@pytest.fixture
def setting(make_table, make_precision, rng):
    complete, gappy = make_table(n=13, p=10)
    return complete, gappy, rng.standard_normal((10, 4)), rng.standard_normal(10), make_precision(13)


@pytest.mark.parametrize("ridge", [None, 0.0, 1.3])
@pytest.mark.parametrize("penalty", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("update", [SylvesterUpdate(), EXACT_CG])
def test_half_step_on_a_complete_table_equals_brute_force(setting, rng, update, penalty, ridge):
    complete, _, design, offsets, precision = setting
    step = update.prepare(Half(as_observed(complete), penalty, precision, ridge))
    X, intercepts = step(rng.standard_normal((13, 4)), design, offsets)
    expected_X, expected_intercepts = brute_force(complete, design, offsets, precision, penalty, ridge)
    np.testing.assert_allclose(X, expected_X, atol=1e-8)
    np.testing.assert_allclose(intercepts, expected_intercepts, atol=1e-8)


@pytest.mark.parametrize("ridge", [None, 1.3])
@pytest.mark.parametrize("penalty", [0.01, 1.0, 50.0])
def test_half_step_with_gaps_equals_brute_force(setting, rng, penalty, ridge):
    _, gappy, design, offsets, precision = setting
    step = EXACT_CG.prepare(Half(as_observed(gappy), penalty, precision, ridge))
    X, intercepts = step(rng.standard_normal((13, 4)), design, offsets)
    expected_X, expected_intercepts = brute_force(gappy, design, offsets, precision, penalty, ridge)
    np.testing.assert_allclose(X, expected_X, atol=1e-8)
    np.testing.assert_allclose(intercepts, expected_intercepts, atol=1e-8)


def test_rows_with_and_without_edges_are_solved_together(setting, rng, make_precision):
    _, gappy, design, offsets, _ = setting
    dense = np.eye(13)
    dense[:6, :6] = make_precision(6, density=0.9).toarray()
    precision = scipy.sparse.csr_array(dense)
    X, _ = EXACT_CG.prepare(Half(as_observed(gappy), 2.0, precision, 1.0))(np.zeros((13, 4)), design, offsets)
    expected, _ = brute_force(gappy, design, offsets, precision, 2.0, 1.0)
    np.testing.assert_allclose(X, expected, atol=1e-8)


def test_a_row_without_entries_follows_its_neighbours(setting, make_precision):
    _, gappy, design, offsets, precision = setting
    gappy = gappy.copy()
    gappy[5] = np.nan
    data = as_observed(gappy, **LOOSE)
    X, intercepts = EXACT_CG.prepare(Half(data, 0.7, precision, 1.0))(np.zeros((13, 4)), design, offsets)
    expected, expected_intercepts = brute_force(gappy, design, offsets, precision, 0.7, 1.0)
    np.testing.assert_allclose(X, expected, atol=1e-8)
    assert intercepts[5] == 0.0 == expected_intercepts[5]


def test_the_three_sylvester_solvers_give_the_same_half_step(setting, monkeypatch):
    complete, _, design, offsets, precision = setting
    half = Half(as_observed(complete), 1.5, precision, 1.0)
    spectral, _ = SylvesterUpdate().prepare(half)(np.zeros((13, 4)), design, offsets)
    monkeypatch.setattr(sylvester, "SPECTRAL_LIMIT", 5)
    assert isinstance(sylvester.prepare(precision), sylvester.IterativeSylvester)
    iterative, _ = SylvesterUpdate().prepare(half)(np.zeros((13, 4)), design, offsets)
    np.testing.assert_allclose(iterative, spectral, atol=1e-10)


def test_without_a_graph_a_half_step_is_ridge_regression(setting):
    complete, _, design, offsets, _ = setting
    identity = scipy.sparse.eye_array(13, format="csr")
    X, _ = SylvesterUpdate().prepare(Half(as_observed(complete), 0.8, identity, None))(
        np.zeros((13, 4)), design, offsets
    )
    ridge = np.linalg.solve(design.T @ design + 0.8 * np.eye(4), design.T @ (complete - offsets).T).T
    np.testing.assert_allclose(X, ridge, atol=1e-10)


def test_single_precision_stays_single_and_agrees(setting):
    complete, gappy, design, offsets, precision = setting
    for table, update in ((complete, SylvesterUpdate()), (gappy, ConjugateGradientUpdate())):
        data = as_observed(table.astype(np.float32))
        step = update.prepare(Half(data, 1.0, precision, 1.0))
        X, intercepts = step(np.zeros((13, 4), np.float32), design.astype(np.float32), offsets.astype(np.float32))
        assert X.dtype == intercepts.dtype == np.float32
        expected, _ = brute_force(table, design, offsets, precision, 1.0, 1.0)
        np.testing.assert_allclose(X, expected, atol=2e-3)


@pytest.mark.parametrize("with_gaps", [False, True])
def test_the_printed_update_has_the_exact_solution_as_its_fixed_point(setting, with_gaps):
    complete, gappy, design, offsets, precision = setting
    table = gappy if with_gaps else complete
    design = np.vstack([3 * np.eye(4), 3 * np.eye(4), np.ones((2, 4))])
    half = Half(as_observed(table), 0.01, precision, None)
    exact, _ = EXACT_CG.prepare(half)(np.zeros((13, 4)), design, offsets)
    step = PaperUpdate(epsilon=1e-12).prepare(half)
    X = np.zeros((13, 4))
    for _ in range(200):
        X, _ = step(X, design, offsets)
    np.testing.assert_allclose(X, exact, atol=1e-8)


def test_the_printed_update_runs_away_at_the_stated_penalty(setting):
    complete, _, design, offsets, precision = setting
    largest = np.linalg.eigvalsh(precision.toarray())[-1]
    smallest = np.linalg.eigvalsh(design.T @ design)[0]

    def distance_after(penalty, n_steps):
        half = Half(as_observed(complete), penalty, precision, None)
        exact, _ = SylvesterUpdate().prepare(half)(np.zeros((13, 4)), design, offsets)
        step = PaperUpdate().prepare(half)
        X = np.zeros((13, 4))
        for _ in range(n_steps):
            X, _ = step(X, design, offsets)
        return np.abs(X - exact).max()

    assert distance_after(0.5 * smallest / largest, 100) < 1e-6
    assert distance_after(2.0 * smallest / largest, 100) > 1e6


def test_sylvester_refuses_a_table_with_gaps(make_table, make_precision):
    _, gappy = make_table()
    missing = int(np.isnan(gappy).sum())
    with pytest.raises(InvalidDataError, match=rf"but {missing} of 154 entries are missing. Use update=\"auto\""):
        SylvesterUpdate().prepare(Half(as_observed(gappy), 1.0, make_precision(14), None))


def test_select_update_says_what_it_picks_and_why(make_table):
    complete, gappy = make_table()
    choice = select_update("auto", as_observed(complete))
    assert (choice.name, type(choice.update)) == ("sylvester", SylvesterUpdate)
    assert "nothing is missing" in choice.reason
    choice = select_update("auto", as_observed(gappy))
    assert (choice.name, type(choice.update)) == ("cg", ConjugateGradientUpdate)
    assert f"{int(np.isnan(gappy).sum())} of 154 entries are missing" in choice.reason
    assert select_update("paper", as_observed(gappy)).update == PaperUpdate()
    assert select_update(EXACT_CG, as_observed(gappy)).update is EXACT_CG
    with pytest.raises(InvalidParameterError, match="'auto', 'sylvester', 'cg', 'paper'"):
        select_update("newton", as_observed(gappy))

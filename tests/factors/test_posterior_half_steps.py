"""The half-step of variational inference against one dense Gaussian over all unknowns of all rows."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from lgmd.factors import (
    DiagonalCovariances,
    Noise,
    RowCovariances,
    SidePosterior,
    SpectralCovariance,
    VariationalHalf,
    coupling,
    prediction_features,
    prepare_posterior,
    variational,
)
from lgmd.factors.tails import Tails
from lgmd.linalg import coupled_rows
from lgmd.linalg.cholesky import TooEntangledError
from lgmd.linalg.packed import pack, unpack
from lgmd.observed import DenseObserved, SparseObserved, as_observed

N, P, K = 9, 8, 2
D = K + 1
SHIFT = 0.4
EVERY_ROW = np.arange(N)

# Row 4 has no edge, all others hang together.
EDGES = [(0, 1, -0.9), (1, 2, 0.7), (2, 3, -0.8), (3, 5, -0.5), (5, 6, 0.9), (6, 7, -0.7), (7, 8, -0.6), (0, 8, 0.4)]


@pytest.fixture(autouse=True)
def solved_to_the_end(monkeypatch):
    """The equations are what is tested here, not how far a run solves them in each iteration."""
    monkeypatch.setattr(coupling, "_MEAN_TOL", 1e-10)


def graph():
    edges = np.zeros((N, N))
    for i, j, value in EDGES:
        edges[i, j] = edges[j, i] = value
    return scipy.sparse.csr_array(edges + np.diag(np.abs(edges).sum(axis=1) + np.linspace(0.5, 1.5, N)))


def no_graph(scale=1.0):
    return scipy.sparse.csr_array(scale * scipy.sparse.eye_array(N, format="csr"))


def positive(rng, count, d=D, scale=0.3):
    roots = scale * rng.standard_normal((count, d, d))
    return roots @ roots.transpose(0, 2, 1)


def other_covariance(form, rng):
    if form == "shared":
        return RowCovariances(pack(positive(rng, 1)), P)
    if form == "pending":
        return RowCovariances(pack(positive(rng, P)), P, np.eye(D) + 0.3 * rng.standard_normal((D, D)))
    if form == "diagonal":
        return DiagonalCovariances(rng.uniform(0.02, 0.3, (P, D)))
    if form == "spectral":
        vectors = np.linalg.qr(rng.standard_normal((P, P)))[0]
        return SpectralCovariance(vectors, positive(rng, P))
    return RowCovariances(pack(positive(rng, P)), P)


class Problem(NamedTuple):
    """A half-step with all that it is given."""

    table: np.ndarray
    weights: np.ndarray
    """Of the entries, (n, p); ones where they have none."""
    half: VariationalHalf
    own: SidePosterior
    other: SidePosterior
    noise: Noise

    @property
    def seen(self):
        return ~np.isnan(self.table)

    def step(self):
        return prepare_posterior(self.half)(self.own, self.other, self.noise, SHIFT)

    def cross_covariance(self, rows, others, own=None):
        own = self.own if own is None else own
        return prepare_posterior(self.half).joint(own, self.other, self.noise).between(rows, others)


def make_problem(
    *,
    gaps=False,
    precision=None,
    row_noise=False,
    column_noise=True,
    weighted=False,
    intercept=True,
    form="one each",
    diagonal=False,
    dtype=np.float64,
    seed=0,
):
    rng = np.random.default_rng(seed)
    table = (1.0 + rng.standard_normal((N, P))).astype(dtype)
    if gaps:
        missing = rng.random((N, P)) < 0.4
        missing[0, 1:] = True  # one entry
        missing[3] = True  # none
        missing[:, 0] = [False] * 3 + [True] + [False] * 5
        table[missing] = np.nan
    data = as_observed(table, allow_empty_rows=True, allow_empty_columns=True)
    weights = np.where(np.isnan(table), 1.0, rng.uniform(0.2, 2.0, (N, P))) if weighted else np.ones((N, P))
    own = SidePosterior(
        rng.standard_normal((N, D)).astype(dtype) * ([1.0] * K + [float(intercept)]),
        RowCovariances(np.zeros((1, 6), dtype), N),
        float("nan"),
        np.array([0.3, 2.5]),
        1.7 if intercept else None,
    )
    other = SidePosterior(
        rng.standard_normal((P, D)).astype(dtype), other_covariance(form, rng), float("nan"), np.ones(K), 1.0
    )
    noise = Noise(
        rng.uniform(2.0, 6.0, N) if row_noise else np.full(N, 3.0),
        rng.uniform(0.5, 2.0, P) if column_noise else np.ones(P),
    )
    if weighted:
        by_rows, by_columns = weights[~np.isnan(table)], weights.T[~np.isnan(table.T)]
        noise = replace(noise, tails=Tails(5.0), weights=by_rows, other_weights=by_columns)
    half = VariationalHalf(data, no_graph() if precision is None else precision, weighted, not row_noise, diagonal)
    own = replace(own, mean=own.mean.astype(dtype))
    return Problem(table.astype(float), weights, half, own, other, noise)


class Dense(NamedTuple):
    """The Gaussian over all rows."""

    precision: np.ndarray
    """(n, d, n, d)."""
    mean: np.ndarray
    covariance: np.ndarray
    """(n, d, n, d), zero for intercepts that the model does not have."""
    logdet: float

    @property
    def blocks(self):
        return self.covariance[EVERY_ROW, :, EVERY_ROW, :]


def active_unknowns(own):
    return np.flatnonzero(np.tile([True] * K + [own.intercept_variance is not None], N))


def dense_posterior(problem, rows_independent=False, diagonal=False):
    """The posterior of all rows at once, or the best one whose rows, or whose numbers, are independent."""
    own, other, noise = problem.own, problem.other, problem.noise
    precision, right = np.zeros((N, D, N, D)), np.zeros((N, D))
    spread = unpack(other.covariance.packed_rows(np.arange(P)).astype(float))
    for i, j in np.argwhere(problem.seen):
        weight = problem.weights[i, j] / (noise.samples[i] * noise.features[j])
        w, b = other.mean[j, :K].astype(float), float(other.mean[j, K])
        moment = np.outer(np.append(w, 1.0), np.append(w, 1.0))
        moment[:K, :K] += spread[j, :K, :K]
        with_offset = np.append(w, 1.0) * (problem.table[i, j] - SHIFT - b)
        with_offset[:K] -= spread[j, :K, K]
        precision[i, :, i, :] += weight * moment
        right[i] += weight * with_offset
    for a in range(K):
        precision[:, a, :, a] += problem.half.precision.toarray() / own.prior_variance[a]
    precision[EVERY_ROW, K, EVERY_ROW, K] += 1.0 / (own.intercept_variance or 1.0)
    active = active_unknowns(own)
    block = np.ix_(active, active)
    joint = precision.reshape(N * D, N * D)[block]
    mean, covariance = np.zeros(N * D), np.zeros((N * D, N * D))
    mean[active] = np.linalg.solve(joint, right.ravel()[active])
    if diagonal:
        joint = np.diag(np.diag(joint))
    elif rows_independent:
        joint = np.where(np.equal.outer(active // D, active // D), joint, 0.0)
    covariance[block] = np.linalg.inv(joint)
    return Dense(
        precision, mean.reshape(N, D), covariance.reshape(N, D, N, D), float(np.linalg.slogdet(covariance[block])[1])
    )


def points(mean, covariance):
    """Points over which the plain average of a quadratic is its expectation under a Gaussian, (m, 2 d, d)."""
    values, vectors = np.linalg.eigh(covariance)
    roots = np.swapaxes(vectors * np.sqrt(mean.shape[1] * np.maximum(values, 0.0))[:, None, :], 1, 2)
    return np.concatenate([mean[:, None] + roots, mean[:, None] - roots], axis=1)


def predictions(rows, columns):
    """Of all entries at all points, (n, 2 d, p, 2 d)."""
    return np.einsum("ira,jca->irjc", rows[:, :, :K], columns[:, :, :K]) + rows[:, :, K, None, None] + columns[:, :, K]


def entry_expectations(problem, mean, blocks):
    """Expected square and plain residual of every entry, NaN in the gaps."""
    other = problem.other
    spread = unpack(other.covariance.packed_rows(np.arange(P)).astype(float))
    predicted = predictions(points(mean, blocks), points(other.mean.astype(float), spread))
    squares = np.mean((problem.table[:, None, :, None] - SHIFT - predicted) ** 2, axis=(1, 3))
    at_mean = mean[:, :K] @ other.mean[:, :K].T + mean[:, K:] + other.mean[:, K]
    return squares, problem.table - SHIFT - at_mean


def assert_step_agrees(problem, expected, tol=1e-9, rows=True):
    """Everything that a half-step finds; without ``rows`` only the sum of the rows' squares."""
    step = problem.step()
    close = {"rtol": tol, "atol": tol}
    np.testing.assert_allclose(step.posterior.mean, expected.mean, **close)
    np.testing.assert_allclose(unpack(step.posterior.covariance.packed_rows(EVERY_ROW)), expected.blocks, **close)
    assert step.posterior.logdet == pytest.approx(expected.logdet, rel=tol)
    squares, residuals = entry_expectations(problem, expected.mean, expected.blocks)
    weights = problem.weights / problem.noise.features
    if rows:
        np.testing.assert_allclose(step.squares, np.nansum(weights * squares, axis=1), **close)
    assert step.squares.sum() == pytest.approx(np.nansum(weights * squares), rel=tol)
    np.testing.assert_allclose(step.residual, np.nansum(weights * residuals, axis=1), rtol=tol, atol=30 * tol)
    np.testing.assert_allclose(step.weight, np.nansum(weights * problem.seen, axis=1), **close)
    kept = (step.posterior.prior_variance, step.posterior.intercept_variance)
    assert kept == (problem.own.prior_variance, problem.own.intercept_variance)
    return step


FORMS = ["one each", "shared", "pending", "diagonal", "spectral"]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_rows_with_gaps_and_without_a_graph_have_their_exact_posterior(form, intercept):
    problem = make_problem(gaps=True, row_noise=True, form=form, intercept=intercept)
    step = assert_step_agrees(problem, dense_posterior(problem))
    assert isinstance(step.posterior.covariance, RowCovariances)
    assert not step.posterior.covariance.is_shared


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_a_complete_table_share_their_covariance(form, intercept):
    problem = make_problem(precision=no_graph(1.3), form=form, intercept=intercept)
    step = assert_step_agrees(problem, dense_posterior(problem))
    assert step.posterior.covariance.is_shared


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_of_a_complete_table_with_scales_of_their_own_do_not(intercept):
    scales = scipy.sparse.csr_array(np.diag(np.linspace(0.5, 2.0, N)))
    for problem in (
        make_problem(precision=scales, intercept=intercept),
        make_problem(row_noise=True, intercept=intercept),
    ):
        step = assert_step_agrees(problem, dense_posterior(problem))
        assert not step.posterior.covariance.is_shared


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_a_complete_table_with_a_graph_has_its_exact_joint_posterior(form, intercept):
    problem = make_problem(precision=graph(), form=form, intercept=intercept)
    expected = dense_posterior(problem)
    step = assert_step_agrees(problem, expected, tol=1e-8, rows=False)
    found = step.posterior.covariance
    assert isinstance(found, SpectralCovariance)
    rows, others = np.divmod(np.arange(N * N), N)
    joint = found.between(rows, others).reshape(N, N, D, D).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(joint, expected.covariance, rtol=0, atol=1e-8)
    assert np.abs(joint[0, :K, 1, :K]).max() > 1e-3  # rows do depend on each other


def test_the_dense_posterior_is_the_kronecker_sum_of_the_model():
    """The reference against the formula, for a complete table with equal noise."""
    problem = make_problem(precision=graph(), column_noise=False)
    other, own = problem.other, problem.own
    design = np.column_stack([other.factors, np.ones(P)])
    moments = design.T @ design
    moments[:K, :K] += unpack(other.covariance.packed)[:, :K, :K].sum(axis=0)
    formula = np.kron(np.eye(N), moments / 3.0 + np.diag([0.0] * K + [1 / 1.7]))
    formula += np.kron(graph().toarray(), np.diag(np.append(1 / own.prior_variance, 0.0)))
    np.testing.assert_allclose(dense_posterior(problem).precision.reshape(N * D, N * D), formula, rtol=0, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_squares_are_those_of_each_row_under_a_graph_too(intercept):
    problem = make_problem(precision=graph(), intercept=intercept)
    assert_step_agrees(problem, dense_posterior(problem), tol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gaps", [True, False])
def test_rows_with_systems_of_their_own_have_joint_means_and_separate_covariances(gaps, form, intercept):
    problem = make_problem(gaps=gaps, precision=graph(), row_noise=True, form=form, intercept=intercept)
    expected = dense_posterior(problem, rows_independent=True)
    joint = dense_posterior(problem)
    np.testing.assert_array_equal(expected.mean, joint.mean)
    assert np.abs(expected.blocks - joint.blocks).max() > 1e-3
    step = assert_step_agrees(problem, expected, tol=1e-8)
    assert isinstance(step.posterior.covariance, RowCovariances)


def test_more_rows_than_the_eigenbasis_takes_have_joint_means_and_separate_covariances(monkeypatch):
    monkeypatch.setattr(variational, "SPECTRAL_ROWS", N - 1)
    problem = make_problem(precision=graph())
    step = assert_step_agrees(problem, dense_posterior(problem, rows_independent=True), tol=1e-8)
    assert isinstance(step.posterior.covariance, RowCovariances)


@pytest.mark.parametrize("with_graph", [True, False])
@pytest.mark.parametrize("gaps", [True, False])
@pytest.mark.parametrize("form", ["one each", "diagonal"])
def test_entries_may_have_weights_of_their_own(form, gaps, with_graph):
    problem = make_problem(
        gaps=gaps, weighted=True, row_noise=True, form=form, precision=graph() if with_graph else None
    )
    assert_step_agrees(problem, dense_posterior(problem, rows_independent=True), tol=1e-8)
    unweighted = dense_posterior(problem._replace(weights=np.ones((N, P))))
    assert np.abs(unweighted.mean - problem.step().posterior.mean).max() > 0.01


def test_the_transposed_half_step_sees_the_weights_in_column_order():
    problem = make_problem(gaps=True, weighted=True)
    turned = problem.half.data.T
    rng = np.random.default_rng(1)
    own = replace(problem.other, covariance=RowCovariances(np.zeros((1, 6)), P))
    other = replace(problem.own, covariance=RowCovariances(pack(positive(rng, N)), N))
    identity = scipy.sparse.eye_array(P, format="csr")
    found = prepare_posterior(VariationalHalf(turned, identity, True))(own, other, problem.noise.T, SHIFT)
    for j in range(P):
        seen = problem.seen[:, j]
        weights = problem.weights[seen, j] / problem.noise.samples[seen]
        design = np.column_stack([other.factors[seen], np.ones(seen.sum())])
        system = (design.T * weights) @ design
        system[:K, :K] += np.einsum("i,iab->ab", weights, unpack(other.covariance.packed)[seen][:, :K, :K])
        system = system / problem.noise.features[j] + np.diag(np.append(1 / own.prior_variance, 1.0))
        covariance = unpack(found.posterior.covariance.packed)[j]
        np.testing.assert_allclose(covariance, np.linalg.inv(system), rtol=0, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("with_graph", [True, False])
@pytest.mark.parametrize("case", ["gaps", "weighted", "row noise"])
@pytest.mark.parametrize("form", ["one each", "diagonal"])
def test_numbers_may_be_taken_as_independent(form, case, with_graph, intercept):
    problem = make_problem(
        gaps=case == "gaps",
        weighted=case == "weighted",
        row_noise=case == "row noise",
        form=form,
        diagonal=True,
        intercept=intercept,
        precision=graph() if with_graph else None,
    )
    step = assert_step_agrees(problem, dense_posterior(problem, diagonal=True), tol=1e-8)
    assert isinstance(step.posterior.covariance, DiagonalCovariances)


@pytest.mark.parametrize("gaps", [True, False])
def test_the_half_step_does_not_depend_on_where_it_starts(gaps):
    problem = make_problem(gaps=gaps, precision=graph(), row_noise=True)
    elsewhere = problem._replace(own=replace(problem.own, mean=100.0 * problem.own.mean))
    np.testing.assert_allclose(elsewhere.step().posterior.mean, problem.step().posterior.mean, rtol=0, atol=1e-6)


@pytest.mark.parametrize("gaps", [True, False])
def test_a_rough_half_step_goes_part_of_the_way(gaps):
    problem = make_problem(gaps=gaps, precision=graph(), row_noise=True)
    rough = problem._replace(half=replace(problem.half, reduction=0.3)).step().posterior.mean
    exact = problem.step().posterior.mean
    assert 1e-3 < np.linalg.norm(rough - exact) < 0.5 * np.linalg.norm(problem.own.mean - exact)


def test_a_row_without_entries_follows_its_neighbours():
    problem = make_problem(gaps=True, precision=graph())
    assert not problem.seen[3].any()
    step, alone = problem.step(), make_problem(gaps=True).step()
    assert np.all(alone.posterior.mean[3] == 0.0)
    assert np.abs(step.posterior.factors[3]).max() > 0.01
    assert step.posterior.intercepts[3] == pytest.approx(0.0, abs=1e-9)  # what no entry and no edge moves
    for found in (step, alone):
        assert found.squares[3] == found.residual[3] == found.weight[3] == 0.0


@pytest.mark.parametrize("row_noise", [True, False])
@pytest.mark.parametrize("with_graph", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_complete_table_entry_by_entry_is_the_same_as_all_at_once(intercept, with_graph, row_noise, monkeypatch):
    monkeypatch.setattr(variational, "SPECTRAL_ROWS", 0)
    problem = make_problem(precision=graph() if with_graph else None, row_noise=row_noise, intercept=intercept)
    assert isinstance(problem.half.data, DenseObserved)
    whole = problem.step()
    stored = SparseObserved.from_csr(scipy.sparse.csr_array(problem.table))
    assert stored.is_complete
    ones = np.ones(N * P)
    for half, noise in (
        (replace(problem.half, data=stored), problem.noise),
        (replace(problem.half, by_entries=True), problem.noise),
        (replace(problem.half, by_entries=True), replace(problem.noise, weights=ones, other_weights=ones)),
    ):
        single = problem._replace(half=half, noise=noise).step()
        close = {"rtol": 1e-9, "atol": 1e-9}
        np.testing.assert_allclose(single.posterior.mean, whole.posterior.mean, **close)
        covariances = (step.posterior.covariance.packed_rows(EVERY_ROW) for step in (single, whole))
        np.testing.assert_allclose(*covariances, **close)
        assert single.posterior.logdet == pytest.approx(whole.posterior.logdet, rel=1e-11)
        for found, wanted in zip(single[1:], whole[1:], strict=True):
            np.testing.assert_allclose(found, wanted, **close)


@pytest.mark.parametrize("gaps", [True, False])
@pytest.mark.parametrize("with_graph", [True, False])
def test_single_precision_stays_single_and_agrees(gaps, with_graph):
    problem = make_problem(gaps=gaps, precision=graph() if with_graph else None, dtype=np.float32)
    step = problem.step()
    assert step.posterior.mean.dtype == np.float32
    expected = dense_posterior(problem, rows_independent=gaps and with_graph)
    active = active_unknowns(problem.own)
    condition = np.linalg.cond(expected.precision.reshape(N * D, N * D)[np.ix_(active, active)])
    # Moments and products with the table are rounded to single precision: some units in the last place of the system.
    tolerance = 16 * float(np.finfo(np.float32).eps) * condition
    assert tolerance < 2e-3
    np.testing.assert_allclose(step.posterior.mean, expected.mean, rtol=0, atol=tolerance)
    covariance = unpack(step.posterior.covariance.packed_rows(EVERY_ROW))
    np.testing.assert_allclose(covariance, expected.blocks, rtol=0, atol=tolerance)
    squares, _ = entry_expectations(problem, expected.mean, expected.blocks)
    wanted = np.nansum(squares / problem.noise.features)
    assert step.squares.sum() == pytest.approx(wanted, rel=tolerance)


# The free energy: what a half-step is the minimum of.


def free_energy(problem, posterior):
    """Negative bound, but for what no posterior of the rows changes."""
    blocks = unpack(posterior.covariance.packed_rows(EVERY_ROW))
    squares, _ = entry_expectations(problem, posterior.mean, blocks)
    weights = problem.weights / np.outer(problem.noise.samples, problem.noise.features)
    logdet = float(np.linalg.slogdet(problem.half.precision.toarray())[1])
    return 0.5 * np.nansum(weights * squares) + posterior.divergence(problem.half.precision, logdet)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("with_graph", [True, False])
@pytest.mark.parametrize("case", ["gaps", "weighted", "complete", "row noise"])
def test_no_posterior_nearby_of_the_same_form_has_a_lower_free_energy(case, with_graph, diagonal, intercept):
    problem = make_problem(
        gaps=case == "gaps",
        weighted=case == "weighted",
        row_noise=case == "row noise",
        precision=graph() if with_graph else None,
        diagonal=diagonal,
        intercept=intercept,
    )
    best = problem.step().posterior
    lowest = free_energy(problem, best)
    rng = np.random.default_rng(2)
    active = D if intercept else K
    for _ in range(6):
        change = np.eye(D)
        turn = 1e-3 * rng.standard_normal((active, active))
        change[:active, :active] += turn if best.covariance.rotates else np.diag(np.diag(turn))
        moved = np.zeros((N, D))
        moved[:, :active] = 1e-3 * rng.standard_normal((N, active))
        for other in (
            replace(best.transformed(change), mean=best.mean),
            replace(best, mean=best.mean + moved),
            replace(best.transformed(change), mean=best.mean + moved),
        ):
            # A thousandth off costs about a millionth times the number of unknowns; rounding is at 1e-13.
            assert free_energy(problem, other) > lowest + 1e-8


# Covariance between rows.


def pairs():
    rows, others = np.triu_indices(N, 1)
    return rows, others


def expected_cross(problem):
    rows, others = pairs()
    blocks = dense_posterior(problem).covariance[rows, :, others, :]
    return np.einsum("maa,a->m", blocks[:, :K, :K], 1.0 / problem.own.prior_variance)


COUPLED = {
    "gaps": {"gaps": True},
    "weighted": {"weighted": True},
    "row noise": {"row_noise": True},
    "gaps and row noise": {"gaps": True, "row_noise": True},
    "diagonal columns": {"gaps": True, "form": "diagonal"},
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", COUPLED)
def test_the_covariance_of_two_rows_is_that_of_the_joint_posterior(case, intercept):
    problem = make_problem(precision=graph(), intercept=intercept, **COUPLED[case])
    expected = expected_cross(problem)
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(problem.cross_covariance(*pairs()), expected, rtol=0, atol=1e-10)
    # Pairs in any order, more than once.
    rows, others = pairs()
    order = np.random.default_rng(3).integers(0, len(rows), 20)
    np.testing.assert_allclose(
        problem.cross_covariance(others[order], rows[order]), expected[order], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_the_covariance_of_two_rows_of_a_complete_table_is_read_off_its_posterior(intercept):
    problem = make_problem(precision=graph(), intercept=intercept)
    expected = expected_cross(problem)
    found = problem.cross_covariance(*pairs(), own=problem.step().posterior)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    # Before there is such a posterior it is computed.
    np.testing.assert_allclose(problem.cross_covariance(*pairs()), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("case", [*COUPLED, "complete"])
def test_rows_without_an_edge_have_no_covariance(case):
    problem = make_problem(precision=graph(), **COUPLED.get(case, {}))
    others = np.array([0, 1, 2, 3, 5])
    alone = np.full(len(others), 4)
    np.testing.assert_allclose(problem.cross_covariance(alone, others), 0.0, atol=1e-14)
    np.testing.assert_allclose(problem.cross_covariance(others, alone), 0.0, atol=1e-14)
    found = problem.cross_covariance(alone, others, own=problem.step().posterior)
    np.testing.assert_allclose(found, 0.0, atol=1e-14)  # eigenvectors that are zero there, to round-off


@pytest.mark.parametrize("gaps", [True, False])
def test_without_a_graph_no_rows_have_a_covariance(gaps):
    for row_noise in (True, False):
        problem = make_problem(gaps=gaps, row_noise=row_noise)
        np.testing.assert_array_equal(problem.cross_covariance(*pairs()), np.zeros(N * (N - 1) // 2))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", ["weighted", "row noise", "gaps and row noise"])
def test_many_rows_are_compared_by_draws(case, intercept, monkeypatch):
    problem = make_problem(precision=graph(), intercept=intercept, **COUPLED[case])
    expected, (rows, others) = expected_cross(problem), pairs()
    monkeypatch.setattr(coupling, "DENSE_UNKNOWNS", 0)
    monkeypatch.setattr(coupling, "_N_DRAWS", 200)
    found = problem.cross_covariance(rows, others)
    assert np.abs(found - expected).max() > 1e-6  # these are draws indeed
    # The mean of 200 sums over a of w_a x_a y_a, whose variance is that of a quadratic form of Gaussian numbers.
    covariance = dense_posterior(problem).covariance[:, :K, :, :K]
    weights = np.outer(1.0 / problem.own.prior_variance, 1.0 / problem.own.prior_variance)
    own, other, cross = covariance[rows, :, rows, :], covariance[others, :, others, :], covariance[rows, :, others, :]
    variances = np.einsum("ab,mab,mab->m", weights, own, other) + np.einsum("ab,mab,mba->m", weights, cross, cross)
    joined = (rows != 4) & (others != 4)
    deviations = (found - expected)[joined] / np.sqrt(variances[joined] / 200)
    assert np.all(found[~joined] == 0.0)
    # 28 pairs: four and a half standard errors are met by all but once in five thousand seeds.
    assert np.abs(deviations).max() < 4.5
    assert 0.3 < np.sqrt(np.mean(deviations**2)) < 2.0
    np.testing.assert_array_equal(problem.cross_covariance(rows, others), found)


def marginals(problem):
    posterior = problem.step().posterior
    covariance = prepare_posterior(problem.half).joint(posterior, problem.other, problem.noise).covariance
    return unpack(np.asarray(covariance.packed_rows(np.arange(N)), dtype=float)), posterior


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", ["weighted", "row noise", "gaps and row noise"])
def test_rows_that_a_graph_couples_have_their_marginal_covariance(case, intercept):
    problem = make_problem(precision=graph(), intercept=intercept, **COUPLED[case])
    found, posterior = marginals(problem)
    dense = dense_posterior(problem).covariance[np.arange(N), :, np.arange(N), :]
    d = K + intercept
    np.testing.assert_allclose(found[:, :d, :d], dense[:, :d, :d], rtol=0, atol=1e-10)
    # What is known while the neighbours are held is less uncertain, but for the row without any.
    held = unpack(posterior.covariance.packed_rows(np.arange(N)))
    excess = np.linalg.eigvalsh(found - held)
    assert excess.min() > -1e-10
    assert np.all(excess.max(axis=1) > 1e-4) != (4 in range(N))
    np.testing.assert_allclose(found[4], held[4], atol=1e-12)


@pytest.mark.parametrize("case", ["weighted", "gaps and row noise"])
@pytest.mark.parametrize("dominant", [True, False])
def test_marginal_covariances_of_many_rows_are_drawn(case, dominant, monkeypatch):
    precision = graph() if dominant else 4.0 * indefinite_looking(graph())
    problem = make_problem(precision=precision, **COUPLED[case])
    monkeypatch.setattr(coupling, "DENSE_UNKNOWNS", 0)
    monkeypatch.setattr(coupling, "_N_DRAWS", 2000)
    found, posterior = marginals(problem)
    dense = dense_posterior(problem).covariance[np.arange(N), :, np.arange(N), :]
    held = unpack(posterior.covariance.packed_rows(np.arange(N)))
    # Only what the neighbours add is drawn: its relative error is of the order of sqrt(2 / 2000).
    assert np.abs(found - dense).max() > 1e-8
    np.testing.assert_allclose(found, dense, rtol=0, atol=0.2 * np.abs(dense - held).max())


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", ["weighted", "row noise", "gaps and row noise"])
def test_rows_that_a_graph_couples_are_drawn_jointly(case, intercept, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(coupled_rows, "DENSE_UNKNOWNS", 0)
    problem = make_problem(precision=graph(), intercept=intercept, **COUPLED[case])
    posterior = problem.step().posterior
    change = np.diag([*np.linspace(-2.0, 2.0, K), 1.0])
    change[0, 1] = 0.3
    update = prepare_posterior(problem.half)
    found = update.joint(posterior, problem.other, problem.noise, for_draws=True).covariance
    assert type(update.joint(posterior, problem.other, problem.noise).covariance) is RowCovariances
    n_draws = 4000
    rows = np.array([1, 0, 4, 2])  # row 4 has no edge
    draws = found.transformed(change).applied().draw(n_draws, np.random.default_rng(0), rows).reshape(n_draws, -1)
    expected = dense_posterior(problem).covariance[rows][:, :, rows]
    expected = np.einsum("iajb,ac,bd->icjd", expected, change, change)
    if not intercept:
        expected[:, K] = expected[:, :, :, K] = 0.0
    expected = expected.reshape(draws.shape[1], draws.shape[1])
    # A mean of n products of Gaussian numbers has variance (C_ii C_jj + C_ij^2) / n.
    errors = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / n_draws)
    deviations = np.abs(draws.T @ draws / n_draws - expected)
    assert np.all(deviations <= 5 * errors + 1e-12)
    between = expected[: K + 1, K + 1 : 2 * (K + 1)]  # rows 1 and 0
    assert np.abs(between).max() > 10 * errors[: K + 1, K + 1 : 2 * (K + 1)].max()


def indefinite_looking(precision):
    """Positive definite, but not diagonally dominant."""
    full = precision.toarray()
    edges = full - np.diag(np.diag(full))
    smallest = np.linalg.eigvalsh(edges).min()
    matrix = edges + (0.2 - smallest) * np.eye(len(full))
    assert np.any(np.diag(matrix) < np.abs(edges).sum(axis=1))
    return scipy.sparse.csr_array(matrix)


def test_a_graph_that_can_be_neither_summed_over_edges_nor_factored_leaves_the_rows_as_they_are(monkeypatch):
    def refuse(precision):
        raise TooEntangledError

    monkeypatch.setattr(coupling, "DENSE_UNKNOWNS", 0)
    monkeypatch.setattr(coupled_rows, "factorize", refuse)
    problem = make_problem(gaps=True, precision=indefinite_looking(graph()))
    found, posterior = marginals(problem)
    np.testing.assert_array_equal(found, unpack(posterior.covariance.packed_rows(np.arange(N))))
    np.testing.assert_array_equal(problem.cross_covariance(*pairs()), 0.0)
    assert np.abs(make_problem(gaps=True, precision=graph()).cross_covariance(*pairs())).max() > 1e-3


# What a posterior says of itself.


def random_posterior(rng, form, intercept=True, n=N, precision=None):
    """A posterior of rows and the dense covariance that it stands for."""
    blocks = positive(rng, n, scale=0.7)
    if not intercept:
        blocks[:, K] = blocks[:, :, K] = 0.0
    if form == "spectral":
        _, vectors = np.linalg.eigh((graph() if precision is None else precision).toarray())
        covariance = SpectralCovariance(vectors, blocks)
        dense = sum(np.kron(np.outer(u, u), block) for u, block in zip(vectors.T, blocks, strict=True))
    else:
        if form == "shared":
            blocks = np.repeat(blocks[:1], n, axis=0)
            covariance = RowCovariances(pack(blocks[:1]), n)
        elif form == "diagonal":
            blocks = blocks * np.eye(D)
            covariance = DiagonalCovariances(np.diagonal(blocks, axis1=1, axis2=2).copy())
        else:
            covariance = RowCovariances(pack(blocks), n)
        dense = np.zeros((n, D, n, D))
        dense[np.arange(n), :, np.arange(n), :] = blocks
        dense = dense.reshape(n * D, n * D)
    active = np.flatnonzero(np.tile([True] * K + [intercept], n))
    mean = rng.standard_normal((n, D)) * ([1.0] * K + [float(intercept)])
    logdet = float(np.linalg.slogdet(dense[np.ix_(active, active)])[1])
    posterior = SidePosterior(mean, covariance, logdet, rng.uniform(0.5, 2.0, K), 1.3 if intercept else None)
    return posterior, dense.reshape(n, D, n, D)


POSTERIORS = ["one each", "shared", "diagonal", "spectral"]


def prior_precision(posterior, precision):
    full = np.einsum("ij,ab->iajb", precision.toarray(), np.diag(np.append(1.0 / posterior.prior_variance, 0.0)))
    full[EVERY_ROW, K, EVERY_ROW, K] = 1.0 / (posterior.intercept_variance or 1.0)
    return full.reshape(N * D, N * D)


def dense_divergence(posterior, dense, precision):
    """Kullback-Leibler divergence of two Gaussians, in full."""
    active = active_unknowns(posterior)
    block = np.ix_(active, active)
    prior, covariance = prior_precision(posterior, precision)[block], dense.reshape(N * D, N * D)[block]
    mean = posterior.mean.ravel()[active]
    logdets = np.linalg.slogdet(prior)[1] + np.linalg.slogdet(covariance)[1]
    return 0.5 * (np.trace(prior @ covariance) + mean @ prior @ mean - len(active) - logdets)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", POSTERIORS)
def test_the_divergence_is_that_of_two_gaussians(form, intercept, rng):
    posterior, dense = random_posterior(rng, form, intercept)
    logdet = float(np.linalg.slogdet(graph().toarray())[1])
    found = posterior.divergence(graph(), logdet)
    assert found == pytest.approx(dense_divergence(posterior, dense, graph()), rel=1e-11)
    assert found > 0


@pytest.mark.parametrize("intercept", [True, False])
def test_the_divergence_of_the_prior_from_itself_is_zero(intercept):
    values, vectors = np.linalg.eigh(graph().toarray())
    variance = np.array([0.7, 2.0])
    blocks = np.zeros((N, D, D))
    blocks[:, range(K), range(K)] = variance / values[:, None]
    blocks[:, K, K] = 1.3 if intercept else 0.0
    logdet = N * np.log(variance).sum() - K * np.log(values).sum() + (N * np.log(1.3) if intercept else 0.0)
    prior = SidePosterior(
        np.zeros((N, D)), SpectralCovariance(vectors, blocks), logdet, variance, 1.3 if intercept else None
    )
    assert prior.divergence(graph(), np.log(values).sum()) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("form", POSTERIORS)
def test_moments_are_expected_products(form, rng):
    posterior, dense = random_posterior(rng, form)
    Z, A = posterior.mean, graph().toarray()
    np.testing.assert_allclose(posterior.moments(), Z.T @ Z + np.einsum("iaib->ab", dense), rtol=0, atol=1e-11)
    expected = Z.T @ A @ Z + np.einsum("ij,iajb->ab", A, dense)
    np.testing.assert_allclose(posterior.graph_moments(graph()), expected[:K, :K], rtol=0, atol=1e-11)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", POSTERIORS)
def test_transforming_a_posterior_transforms_its_mean_its_covariance_and_its_determinant(form, intercept, rng):
    posterior, dense = random_posterior(rng, form, intercept)
    change = np.diag([1.5, -0.5, 1.0])[[1, 0, 2]]
    if form != "diagonal":
        change[:K, :K] = rng.standard_normal((K, K))
        if intercept:
            change[:K, K] = rng.standard_normal(K)
    moved = posterior.transformed(change)
    np.testing.assert_allclose(moved.mean, posterior.mean @ change, rtol=0, atol=1e-12)
    wanted = np.einsum("ac,iajb,bd->icjd", change, dense, change)
    blocks = unpack(moved.covariance.packed_rows(EVERY_ROW))
    np.testing.assert_allclose(blocks, wanted[EVERY_ROW, :, EVERY_ROW, :], rtol=0, atol=1e-12)
    active = active_unknowns(posterior)
    logdet = np.linalg.slogdet(wanted.reshape(N * D, N * D)[np.ix_(active, active)])[1]
    assert moved.logdet == pytest.approx(logdet, rel=1e-11)
    np.testing.assert_array_equal(unpack(moved.applied().covariance.packed_rows(EVERY_ROW)), blocks)
    np.testing.assert_array_equal(moved.standard_deviations(), np.sqrt(np.diagonal(blocks, axis1=1, axis2=2)))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", POSTERIORS)
def test_the_best_prior_variances_are_where_the_divergence_is_smallest(form, intercept, rng):
    posterior, _ = random_posterior(rng, form, intercept)
    logdet = float(np.linalg.slogdet(graph().toarray())[1])

    def divergence(logs):
        intercept_variance = float(np.exp(logs[K])) if intercept else None
        moved = replace(posterior, prior_variance=np.exp(logs[:K]), intercept_variance=intercept_variance)
        return moved.divergence(graph(), logdet)

    start = np.zeros(K + intercept)
    searched = scipy.optimize.minimize(divergence, start, method="BFGS", options={"gtol": 1e-7})
    best = posterior.with_priors(graph())
    found = best.prior_variance if not intercept else np.append(best.prior_variance, best.intercept_variance)
    # A search by differences finds a minimum to the root of its rounding.
    np.testing.assert_allclose(np.log(found), searched.x, rtol=0, atol=1e-5)
    assert divergence(np.log(found)) <= searched.fun + 1e-12
    assert (best.intercept_variance is None) == (not intercept)
    np.testing.assert_array_equal(best.mean, posterior.mean)


def test_the_share_of_the_mean_is_one_where_all_is_known_and_zero_where_nothing_is(rng):
    posterior, _ = random_posterior(rng, "one each")
    certain = replace(posterior, covariance=RowCovariances(np.zeros((1, 6)), N)).with_priors(graph())
    np.testing.assert_allclose(certain.mean_shares(graph()), 1.0, rtol=1e-12)
    lost = replace(posterior, mean=posterior.mean * [1.0, 0.0, 1.0]).with_priors(graph())
    shares = lost.mean_shares(graph())
    X = posterior.factors[:, 0]
    assert shares[0] == pytest.approx(X @ graph() @ X / lost.graph_moments(graph())[0, 0], rel=1e-12)
    assert 0 < shares[0] < 1
    assert shares[1] == 0.0


@pytest.mark.parametrize("form", POSTERIORS)
def test_factors_may_be_left_out(form, rng):
    posterior, dense = random_posterior(rng, form)
    kept = posterior.kept(np.array([1]))
    assert kept.rank == 1
    np.testing.assert_array_equal(kept.mean, posterior.mean[:, [1, 2]])
    np.testing.assert_array_equal(kept.prior_variance, posterior.prior_variance[[1]])
    wanted = dense[EVERY_ROW, :, EVERY_ROW, :][:, [1, 2]][:, :, [1, 2]]
    np.testing.assert_allclose(unpack(kept.covariance.packed_rows(EVERY_ROW)), wanted, rtol=0, atol=1e-12)
    assert np.isnan(kept.logdet)


@pytest.mark.parametrize("form", POSTERIORS)
def test_an_independent_posterior_keeps_the_variances(form, rng):
    posterior, dense = random_posterior(rng, form)
    independent = posterior.independent()
    variances = np.diagonal(dense[EVERY_ROW, :, EVERY_ROW, :], axis1=1, axis2=2)
    np.testing.assert_allclose(independent.covariance.variances, variances, rtol=1e-12)
    assert isinstance(independent.covariance, DiagonalCovariances)


def test_an_independent_posterior_does_not_keep_a_determinant_that_is_not_its_own(rng):
    posterior, dense = random_posterior(rng, "one each")
    independent = posterior.independent()
    variances = np.diagonal(dense[EVERY_ROW, :, EVERY_ROW, :], axis1=1, axis2=2)
    assert np.isnan(independent.logdet) or independent.logdet == pytest.approx(np.log(variances).sum(), rel=1e-11)


# Error bars of predicted entries.

SIDES = [("one each", "one each"), ("shared", "spectral"), ("diagonal", "diagonal"), ("diagonal", "one each")]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("forms", SIDES)
def test_products_of_features_are_the_variances_of_predicted_entries(forms, intercept, rng):
    samples, row_dense = random_posterior(rng, forms[0], intercept)
    features, column_dense = random_posterior(rng, forms[1])
    by_rows, by_columns = prediction_features(samples, features)
    found = by_rows @ by_columns.T
    diagonals = (dense[EVERY_ROW, :, EVERY_ROW, :] for dense in (row_dense, column_dense))
    predicted = predictions(
        *(points(side.mean, blocks) for side, blocks in zip((samples, features), diagonals, strict=True))
    )
    at_mean = samples.factors @ features.factors.T + samples.intercepts[:, None] + features.intercepts
    expected = np.mean((predicted - at_mean[:, None, :, None]) ** 2, axis=(1, 3))
    # Variances and squares of the size of ten.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    some, few = prediction_features(samples, features, np.array([5, 1]), np.array([0, 2, 2]))
    np.testing.assert_allclose(some @ few.T, expected[[5, 1]][:, [0, 2, 2]], rtol=0, atol=1e-11)


@pytest.mark.parametrize("forms", SIDES)
def test_drawn_predictions_vary_as_the_features_say(forms, rng):
    samples, _ = random_posterior(rng, forms[0])
    features, _ = random_posterior(rng, forms[1])
    by_rows, by_columns = prediction_features(samples, features)
    expected = by_rows @ by_columns.T
    n_draws = 20_000
    generator = np.random.default_rng(4)
    X = samples.mean + samples.covariance.draw(n_draws, generator, np.arange(len(samples.mean)))
    W = features.mean + features.covariance.draw(n_draws, generator, np.arange(len(features.mean)))
    predicted = np.einsum("sia,sja->sij", X[:, :, :K], W[:, :, :K]) + X[:, :, K:] + W[:, None, :, K]
    at_mean = samples.factors @ features.factors.T + samples.intercepts[:, None] + features.intercepts
    squares = (predicted - at_mean) ** 2
    # The error of a mean of squares is estimated from the squares themselves: they have heavy tails. Of 81 entries,
    # which share draws, none is off by more than five.
    errors = squares.std(axis=0) / np.sqrt(n_draws)
    deviations = (squares.mean(axis=0) - expected) / errors
    assert np.abs(deviations).max() < 5.0
    assert errors.max() < 0.05 * expected.max()

"""Variational factors of a complete table in closed form, beside those of coordinate ascent."""

from dataclasses import astuple, dataclass, fields

import numpy as np
import pytest

from lgmd.linalg.analytic_factorization import analytic_factorization


@dataclass
class Posterior:
    """A factorised posterior of the model, with k x k covariances that all rows of a side share."""

    X: np.ndarray
    W: np.ndarray
    X_covariance: np.ndarray
    W_covariance: np.ndarray
    X_prior: np.ndarray
    W_prior: np.ndarray
    noise: float

    @property
    def X_squares(self):
        return self.X.T @ self.X + len(self.X) * self.X_covariance

    @property
    def W_squares(self):
        return self.W.T @ self.W + len(self.W) * self.W_covariance

    def residual_squares(self, Y):
        """Expectation of |Y - X W'|^2."""
        return np.sum(Y**2) - 2 * np.sum((Y.T @ self.X) * self.W) + np.sum(self.X_squares * self.W_squares)


def free_energy(Y, posterior):
    """Minus the evidence lower bound."""
    n, p = Y.shape
    energy = n * p * np.log(2 * np.pi * posterior.noise) + posterior.residual_squares(Y) / posterior.noise
    sides = (
        (n, posterior.X_squares, posterior.X_covariance, posterior.X_prior),
        (p, posterior.W_squares, posterior.W_covariance, posterior.W_prior),
    )
    for size, squares, covariance, prior in sides:
        energy += np.sum(np.diag(squares) / prior) + size * np.sum(np.log(prior))
        energy -= size * (np.linalg.slogdet(covariance)[1] + len(prior))
    return energy / 2


def analytic_posterior(Y, solution):
    """The closed form as a posterior of this table."""
    U, _, Vt = np.linalg.svd(Y, full_matrices=False)
    return Posterior(
        X=U[:, : solution.rank] * solution.sample_scales,
        W=Vt[: solution.rank].T * solution.feature_scales,
        X_covariance=np.diag(solution.sample_variances),
        W_covariance=np.diag(solution.feature_variances),
        X_prior=solution.sample_prior_variances,
        W_prior=solution.feature_prior_variances,
        noise=solution.noise_variance,
    )


def coordinate_ascent(Y, rank, seed=0, max_sweeps=20_000):
    """Alternate the optimal q(X), q(W), prior variances and noise, from the leading singular vectors, a bit mixed."""
    n, p = Y.shape
    U, values, Vt = np.linalg.svd(Y, full_matrices=False)
    mixing = 0.01 * np.random.default_rng(seed).standard_normal((2, rank, rank))
    roots = np.sqrt(values[:rank])
    q = Posterior(
        X=U[:, :rank] * roots @ (np.eye(rank) + mixing[0]),
        W=Vt[:rank].T * roots @ (np.eye(rank) + mixing[1]),
        X_covariance=0.01 * np.eye(rank),
        W_covariance=0.01 * np.eye(rank),
        X_prior=roots**2 / n,
        W_prior=roots**2 / p,
        noise=np.sum(values[rank:] ** 2) / (n * p),
    )
    previous = np.inf
    for _ in range(max_sweeps):
        q.X_covariance = q.noise * np.linalg.inv(q.W_squares + q.noise * np.diag(1 / q.X_prior))
        q.X = Y @ q.W @ q.X_covariance / q.noise
        q.X_prior = np.diag(q.X_squares) / n
        q.W_covariance = q.noise * np.linalg.inv(q.X_squares + q.noise * np.diag(1 / q.W_prior))
        q.W = Y.T @ q.X @ q.W_covariance / q.noise
        q.W_prior = np.diag(q.W_squares) / p
        q.noise = q.residual_squares(Y) / (n * p)
        # A column whose mean has vanished only shrinks, but as slowly as one over the number of sweeps.
        alive = np.linalg.norm(q.X, axis=0) * np.linalg.norm(q.W, axis=0) > 1e-6 * values[0]
        if not alive.all():
            q.X, q.W, q.X_prior, q.W_prior = q.X[:, alive], q.W[:, alive], q.X_prior[alive], q.W_prior[alive]
            q.X_covariance, q.W_covariance = (
                covariance[np.ix_(alive, alive)] for covariance in (q.X_covariance, q.W_covariance)
            )
        state = np.append(np.linalg.norm(q.X, axis=0) * np.linalg.norm(q.W, axis=0), q.noise)
        if np.shape(previous) == state.shape and np.all(np.abs(state - previous) <= 1e-11 * state):
            return q
        previous = state
    raise AssertionError("coordinate ascent did not converge")


def make_table(n, p, rank, noise=1.0, growth=1.0, seed=0):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, rank)) * growth ** np.arange(rank) @ rng.standard_normal((rank, p))
    return signal + noise * rng.standard_normal((n, p))


def solve(Y, **options):
    return analytic_factorization(np.linalg.svd(Y, compute_uv=False), Y.shape, **options)


def assert_close(first, second, rel):
    assert first.rank == second.rank
    for field, one, other in zip(fields(first), astuple(first), astuple(second), strict=True):
        assert one == pytest.approx(other, rel=rel), field.name


@pytest.mark.parametrize(("n", "p", "rank"), [(40, 30, 3), (30, 40, 3), (30, 30, 4), (60, 12, 2), (25, 40, 0)])
@pytest.mark.parametrize("n_more", [0, 3])
def test_coordinate_ascent_ends_at_the_closed_form(n, p, rank, n_more):
    Y = make_table(n, p, rank, growth=1.6, seed=1)  # well separated components, or the ascent takes ever so long
    solution = solve(Y)
    reached = coordinate_ascent(Y, rank + n_more)
    assert solution.rank == reached.X.shape[1] == rank
    # It stops when a sweep changes 1e-11 and converges linearly, slowest in the directions of the columns.
    close = {"rel": 1e-6}
    order = np.argsort(-np.linalg.norm(reached.X, axis=0) * np.linalg.norm(reached.W, axis=0))
    variances = np.diag(reached.X_covariance) * np.diag(reached.W_covariance)
    assert solution.noise_variance == pytest.approx(reached.noise, **close)
    mean = reached.X @ reached.W.T
    assert solution.singular_values == pytest.approx(np.linalg.svd(mean, compute_uv=False)[:rank], **close)
    assert solution.sample_variances * solution.feature_variances == pytest.approx(variances[order], **close)
    priors = solution.sample_prior_variances * solution.feature_prior_variances
    assert priors == pytest.approx((reached.X_prior * reached.W_prior)[order], **close)
    own = analytic_posterior(Y, solution)
    assert np.abs(own.X @ own.W.T - mean).max() <= 1e-5 * np.abs(Y).max()
    least = free_energy(Y, own)
    assert least == pytest.approx(free_energy(Y, reached), rel=1e-9)
    assert least <= free_energy(Y, reached) + 1e-9 * abs(least)


def test_both_columns_of_a_component_carry_the_same_squares():
    n, p = 40, 15
    solution = solve(make_table(n, p, 3))
    x_squares = solution.sample_scales**2 + n * solution.sample_variances
    w_squares = solution.feature_scales**2 + p * solution.feature_variances
    assert x_squares == pytest.approx(w_squares)
    assert x_squares == pytest.approx(n * solution.sample_prior_variances)
    assert w_squares == pytest.approx(p * solution.feature_prior_variances)
    assert solution.singular_values == pytest.approx(solution.sample_scales * solution.feature_scales)


def test_a_component_that_ascent_would_keep_is_left_out_where_that_is_better():
    # Of a square table a component has a local minimum from 4 times the noise's edge on, but pays only from 4.9.
    n = 100
    Y = np.diag(np.sqrt(n * np.append(4.6, np.ones(n - 1))))
    kept = coordinate_ascent(Y, 1)
    solution = solve(Y)
    assert kept.X.shape[1] == 1
    assert solution.rank == 0
    assert free_energy(Y, analytic_posterior(Y, solution)) < free_energy(Y, kept) - 0.1


@pytest.mark.parametrize("shape", [(20, 20), (20, 30), (2000, 20), (1, 50)])
def test_a_component_is_kept_from_where_it_pays(shape):
    def alone(value, **options):
        Y = np.zeros(shape)
        Y[0, 0] = value
        return Y, solve(Y, noise_variance=1.0, **options)

    below, above = 0.0, 10 * np.sqrt(max(shape))
    while above - below > 1e-12 * above:
        middle = (below + above) / 2
        below, above = (below, middle) if alone(middle)[1].rank else (middle, above)
    Y, kept = alone(above)
    assert kept.rank == 1
    without = alone(above, max_rank=0)[1]
    assert free_energy(Y, analytic_posterior(Y, kept)) == pytest.approx(
        free_energy(Y, analytic_posterior(Y, without)), abs=1e-6
    )


SPECTRA = {
    "geometric": 0.8 ** np.arange(20),
    "harmonic": 1 / np.arange(1, 21),
    "steps": np.repeat([30.0, 6.0, 1.5, 0.5], 5),
    "linear": np.linspace(3, 0.1, 20),
    "tied": np.ones(20),
    "gap": np.repeat([1.0, 0.001], [9, 11]),  # as many components as a square table can have
}


@pytest.mark.parametrize("p", [20, 35, 400])
@pytest.mark.parametrize("name", SPECTRA)
def test_no_other_noise_has_less_free_energy(name, p):
    values = SPECTRA[name]
    Y = np.zeros((20, p))
    np.fill_diagonal(Y, values)

    def energy(noise_variance=None):
        return free_energy(Y, analytic_posterior(Y, solve(Y, noise_variance=noise_variance)))

    estimate = solve(Y).noise_variance
    grid = np.geomspace(1e-9, 2, 400) * np.mean(Y**2)
    others = np.array([energy(noise) for noise in np.append(grid, estimate * np.array([1 - 1e-4, 1 + 1e-4]))])
    assert energy() <= others.min() + 1e-9 * abs(others.min())


@pytest.mark.parametrize(("n_tied", "p", "position"), [(2, 35, 1), (5, 100, 0)])
def test_the_lowest_of_several_minima_is_found(n_tied, p, position):
    Y = np.zeros((20, p))
    np.fill_diagonal(Y, np.repeat(0.5 ** np.arange(20 // n_tied), n_tied))
    grid = np.geomspace(1e-7, 1, 400) * np.mean(Y**2)
    energies = np.array([free_energy(Y, analytic_posterior(Y, solve(Y, noise_variance=noise))) for noise in grid])
    inner = energies[1:-1]
    minima = np.flatnonzero((inner < energies[:-2]) & (inner < energies[2:])) + 1
    assert len(minima) == 2
    assert np.argmin(energies[minima]) == position
    best = minima[position]
    assert grid[best - 1] < solve(Y).noise_variance < grid[best + 1]


@pytest.mark.parametrize("shape", [(200, 100), (100, 200), (150, 150)])
@pytest.mark.parametrize("rank", [0, 5, 20])
def test_the_true_rank_and_noise_are_found(shape, rank):
    solution = solve(make_table(*shape, rank, seed=rank))
    assert solution.rank == rank
    # The estimate varies by sqrt(2 / (n p)) = 1 % and takes a little of the weakest components for noise.
    assert solution.noise_variance == pytest.approx(1.0, rel=0.06)


def test_all_directions_but_one_may_be_components():
    solution = solve(make_table(100, 4, 3, noise=0.1))
    assert solution.rank == 3
    # A single direction is left to tell the noise: 100 squares, which vary by 14 %.
    assert solution.noise_variance == pytest.approx(0.01, rel=0.4)


def test_transposition_swaps_the_sides():
    Y = make_table(50, 20, 4)
    direct, turned = solve(Y), solve(Y.T)
    assert turned.noise_variance == pytest.approx(direct.noise_variance)
    assert turned.singular_values == pytest.approx(direct.singular_values)
    for name in ("scales", "variances", "prior_variances"):
        assert getattr(turned, f"sample_{name}") == pytest.approx(getattr(direct, f"feature_{name}"))
        assert getattr(turned, f"feature_{name}") == pytest.approx(getattr(direct, f"sample_{name}"))


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e9])
def test_units_of_the_table_carry_over(factor):
    Y = make_table(50, 20, 4)
    plain, scaled = solve(Y), solve(factor * Y)
    assert scaled.rank == plain.rank == 4
    assert scaled.noise_variance == pytest.approx(factor**2 * plain.noise_variance)
    for name in ("scales", "variances", "prior_variances"):
        for side in ("sample", "feature"):
            power = 0.5 if name == "scales" else 1.0
            expected = factor**power * getattr(plain, f"{side}_{name}")
            assert getattr(scaled, f"{side}_{name}") == pytest.approx(expected)


@pytest.mark.parametrize("n_given", [5, 6, 40])
def test_leading_singular_values_suffice(n_given):
    Y = make_table(80, 60, 5)
    values = np.linalg.svd(Y, compute_uv=False)
    leading = analytic_factorization(values[:n_given], Y.shape, total_squares=np.sum(Y**2))
    # The same function of the noise up to rounding, and a root found to 2e-12.
    assert_close(leading, solve(Y), rel=1e-10)


def test_components_beyond_the_most_count_as_noise():
    Y = make_table(40, 30, 5, growth=1.6)
    values = np.linalg.svd(Y, compute_uv=False)
    capped = solve(Y, max_rank=3)
    assert capped.rank == 3
    assert_close(capped, analytic_factorization(values[:3], Y.shape, total_squares=np.sum(Y**2)), rel=1e-10)
    reached = coordinate_ascent(Y, 3)
    assert capped.noise_variance == pytest.approx(reached.noise, rel=1e-7)
    nothing = solve(Y, max_rank=0)
    assert nothing.rank == 0
    assert nothing.noise_variance == pytest.approx(np.mean(Y**2))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (3, 5), (5, 3), (6, 6), (2, 1000)])
@pytest.mark.parametrize("noise_variance", [None, 1e-12, 1.0, 1e12])
@pytest.mark.filterwarnings("error")
def test_small_tables_stay_finite(shape, noise_variance):
    Y = make_table(*shape, 1)
    solution = solve(Y, noise_variance=noise_variance)
    assert all(np.all(np.isfinite(value)) for value in astuple(solution))
    assert solution.noise_variance > 0
    if noise_variance == 1e-12:  # every direction stands out
        assert solution.rank == min(shape)
        assert solution.singular_values == pytest.approx(np.linalg.svd(Y, compute_uv=False), rel=1e-6)
    elif noise_variance == 1e12 or (noise_variance is None and min(shape) == 1):
        assert solution.rank == 0


def test_singular_values_may_vanish():
    solution = solve(np.diag([5.0, 1.0, 1.0, 1e-150, 1e-200, 0.0]))
    assert_close(solution, solve(np.diag([5.0, 1.0, 1.0, 0.0, 0.0, 0.0])), rel=1e-12)
    assert solution.rank == 1
    # The noise has the squares that the component does not explain.
    assert solution.noise_variance == pytest.approx((27 - 5 * solution.singular_values[0]) / 36)


@pytest.mark.parametrize("noise_variance", [None, 0.5])
def test_zeros_have_no_components(noise_variance):
    solution = solve(np.zeros((6, 4)), noise_variance=noise_variance)
    assert solution.rank == 0
    assert solution.noise_variance == (noise_variance or 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_given", [20, 8])
def test_noise_of_an_exactly_low_rank_table_ends_at_the_rounding_unit(dtype, n_given):
    Y = make_table(30, 20, 3, noise=0.0)
    values = np.linalg.svd(Y, compute_uv=False)
    solution = analytic_factorization(values[:n_given].astype(dtype), Y.shape, total_squares=np.sum(Y**2))
    assert solution.rank == 3
    assert solution.singular_values == pytest.approx(values[:3], rel=1e-5)
    floor = np.finfo(dtype).eps * np.mean(Y**2)
    if n_given == 20:
        assert solution.noise_variance == pytest.approx(floor, rel=1e-6)
    else:  # the difference of two sums leaves some units of rounding, which stand for noise
        assert 0.99 * floor < solution.noise_variance < 10 * floor


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([2.0, 1.0], {}, "total_squares"),
        ([4.0, 3.0, 2.0, 1.0], {}, "shape"),
        ([1.0, 2.0, 3.0], {}, "sorted"),
        ([3.0, 2.0, np.nan], {}, "finite"),
        ([3.0, 2.0, -1.0], {}, "negative"),
        ([3.0, 2.0, 1.0], {"noise_variance": 0.0}, "noise_variance"),
    ],
)
def test_senseless_input_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        analytic_factorization(values, (3, 5), **options)

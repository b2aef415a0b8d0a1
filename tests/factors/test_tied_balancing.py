"""The basis that factors like best whose prior variances are given, the same ones on both sides."""

import numpy as np
import pytest
import scipy.optimize

from lgmd.factors import balancing, tied_balancing

SHAPES = [(20, 35), (30, 30), (35, 20), (400, 3), (3, 400)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
# The powers with which prior variances fall; the same for all columns with the first.
powers = pytest.mark.parametrize("power", [0.0, 0.7, 3.0])


def moments(seed, k, scale=1.0):
    """Second moments of random factors of both sides, of different sizes."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((40, k)) * rng.uniform(0.2, 3, k), rng.standard_normal((40, k))
    return first.T @ first, scale * second.T @ second


def falling(k, power):
    return np.arange(1.0, k + 1) ** -power


def objective(S, P, Q, shape, spectrum):
    inverse = np.linalg.inv(S)
    squares = np.diag(S.T @ P @ S) + np.diag(inverse @ Q @ inverse.T)
    return 0.5 * np.sum(squares / spectrum) - (shape[0] - shape[1]) * np.linalg.slogdet(S)[1]


def smallest(P, Q, shape, spectrum, seed):
    """The objective minimised over all S."""
    k = len(P)

    def unpacked(numbers):
        return numbers.reshape(k, k)

    start = np.linalg.qr(np.random.default_rng(seed).standard_normal((k, k)))[0].ravel()
    found = scipy.optimize.minimize(
        lambda numbers: objective(unpacked(numbers), P, Q, shape, spectrum),
        start,
        method="BFGS",
        options={"gtol": 1e-7},
    )
    return found.fun, unpacked(found.x)


@shapes
@powers
@pytest.mark.parametrize("k", [1, 2, 3])
def test_it_is_the_minimum_that_a_search_finds(shape, k, power):
    spectrum = falling(k, power)
    for seed in range(3):
        P, Q = moments(seed, k)
        S, _ = tied_balancing(P, Q, shape, spectrum)
        # Bases in which columns have another order are minima too, of which a search finds one.
        lowest, found = min((smallest(P, Q, shape, spectrum, start) for start in range(6)), key=lambda pair: pair[0])
        size = abs(lowest) + np.trace(P) + np.trace(Q)
        assert objective(S, P, Q, shape, spectrum) <= lowest + 1e-9 * size
        # BFGS with differences for gradients finds the place to the root of its accuracy.
        K = (found / spectrum) @ found.T
        np.testing.assert_allclose((S / spectrum) @ S.T, K, rtol=1e-2, atol=1e-3 * np.abs(K).max())


@shapes
@powers
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_both_moments_become_diagonal_and_fall_and_their_difference_is_that_of_the_entropies(shape, scale, power):
    P, Q = moments(0, 6, scale)
    spectrum = falling(6, power)
    S, inverse = tied_balancing(P, Q, shape, spectrum)
    after = S.T @ P @ S, inverse.T @ Q @ inverse
    for each in after:
        np.testing.assert_allclose(each, np.diag(np.diag(each)), atol=1e-7 * np.diag(each).max())
        assert np.all(np.diag(each) > 0)
    excess = (shape[0] - shape[1]) * spectrum
    size = abs(shape[0] - shape[1]) + np.trace(after[0]) + np.trace(after[1])
    np.testing.assert_allclose(np.diag(after[0]) - np.diag(after[1]), excess, atol=1e-7 * size)
    assert np.all(np.diff(np.diag(after[0]) * np.diag(after[1])) <= 0)


@shapes
def test_of_a_shared_variance_only_the_square_of_the_basis_counts(shape):
    """``K P K - (n - p) K - Q = 0`` with ``K = S S'``."""
    P, Q = moments(0, 6)
    S, _ = tied_balancing(P, Q, shape, np.ones(6))
    K, excess = S @ S.T, shape[0] - shape[1]
    parts = (K @ P @ K, excess * K, Q)
    assert np.abs(parts[0] - parts[1] - parts[2]).max() < 1e-9 * max(np.abs(part).max() for part in parts)


@shapes
@powers
def test_it_changes_no_prediction(rng, shape, power):
    P, Q = moments(1, 4)
    S, inverse = tied_balancing(P, Q, shape, falling(4, power))
    np.testing.assert_allclose(S.T @ inverse, np.eye(4), atol=1e-9)
    X, W = rng.standard_normal((9, 4)), rng.standard_normal((7, 4))
    np.testing.assert_allclose((X @ S) @ (W @ inverse).T, X @ W.T, atol=1e-9)


@shapes
@powers
def test_what_is_balanced_stays(shape, power):
    P, Q = moments(2, 4)
    spectrum = falling(4, power)
    S, inverse = tied_balancing(P, Q, shape, spectrum)
    again = tied_balancing(S.T @ P @ S, inverse.T @ Q @ inverse, shape, spectrum)
    np.testing.assert_allclose(np.abs(again[0]), np.eye(4), atol=1e-7)
    np.testing.assert_allclose(np.abs(again[1]), np.eye(4), atol=1e-7)


@powers
def test_transposing_the_table_swaps_the_two_changes(power):
    P, Q = moments(3, 4)
    spectrum = falling(4, power)
    S, inverse = tied_balancing(P, Q, (35, 20), spectrum)
    other, other_inverse = tied_balancing(Q, P, (20, 35), spectrum)
    np.testing.assert_allclose(np.abs(other), np.abs(inverse), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.abs(other_inverse), np.abs(S), rtol=1e-6, atol=1e-9)


@powers
def test_of_a_square_table_it_is_the_balance_whatever_the_variances(power):
    P, Q = moments(4, 4)
    (first, _), (second, _) = tied_balancing(P, Q, (25, 25), falling(4, power)), balancing(P, Q)
    np.testing.assert_allclose(first @ first.T, second @ second.T, rtol=1e-6)


@shapes
def test_moments_that_are_singular_have_no_basis(shape):
    P, Q = moments(5, 3)
    dead = np.diag([1.0, 1.0, 0.0])
    assert tied_balancing(dead @ P @ dead, Q, shape, np.ones(3)) is None
    assert tied_balancing(P, np.zeros((3, 3)), shape, np.ones(3)) is None

"""The basis that factors like best whose prior variances are the same for all columns."""

import numpy as np
import pytest
import scipy.optimize

from lgmd.factors import balancing, shared_balancing

SHAPES = [(20, 35), (30, 30), (35, 20), (400, 3), (3, 400)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def moments(seed, k, scale=1.0):
    """Second moments of random factors of both sides, of different sizes."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((40, k)) * rng.uniform(0.2, 3, k), rng.standard_normal((40, k))
    return first.T @ first, scale * second.T @ second


def objective(S, P, Q, shape):
    inverse = np.linalg.inv(S)
    traces = np.trace(S.T @ P @ S) + np.trace(inverse @ Q @ inverse.T)
    return 0.5 * traces - (shape[0] - shape[1]) * np.linalg.slogdet(S)[1]


def smallest(P, Q, shape, seed):
    """The objective minimised over lower triangular S, which is no restriction: only S S' counts."""
    k = len(P)
    rows, columns = np.tril_indices(k)

    def unpacked(numbers):
        S = np.zeros((k, k))
        S[rows, columns] = numbers
        S[np.arange(k), np.arange(k)] = np.exp(np.diag(S))
        return S

    start = 0.3 * np.random.default_rng(seed).standard_normal(len(rows))
    found = scipy.optimize.minimize(
        lambda numbers: objective(unpacked(numbers), P, Q, shape), start, method="BFGS", options={"gtol": 1e-7}
    )
    S = unpacked(found.x)
    return found.fun, S @ S.T


@shapes
@pytest.mark.parametrize("k", [1, 2, 3])
def test_it_is_the_minimum_that_a_search_finds(shape, k):
    for seed in range(3):
        P, Q = moments(seed, k)
        S, _ = shared_balancing(P, Q, shape)
        lowest, K = min((smallest(P, Q, shape, start) for start in range(2)), key=lambda pair: pair[0])
        size = abs(lowest) + np.trace(P) + np.trace(Q)
        assert objective(S, P, Q, shape) <= lowest + 1e-9 * size
        # BFGS with differences for gradients finds the place to the root of its accuracy.
        np.testing.assert_allclose(S @ S.T, K, rtol=1e-2, atol=1e-3 * np.abs(K).max())


@shapes
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_its_condition_of_optimality_holds_and_both_moments_become_diagonal(shape, scale):
    P, Q = moments(0, 6, scale)
    S, inverse = shared_balancing(P, Q, shape)
    K, excess = S @ S.T, shape[0] - shape[1]
    parts = (K @ P @ K, excess * K, Q)
    assert np.abs(parts[0] - parts[1] - parts[2]).max() < 1e-9 * max(np.abs(part).max() for part in parts)
    for after in (S.T @ P @ S, inverse.T @ Q @ inverse):
        np.testing.assert_allclose(after, np.diag(np.diag(after)), atol=1e-7 * np.diag(after).max())
        assert np.all(np.diag(after) > 0)
    # The sum of squares is split by the numbers of rows and columns.
    np.testing.assert_allclose(
        np.diag(S.T @ P @ S) - np.diag(inverse.T @ Q @ inverse), excess, atol=1e-7 * (abs(excess) + np.trace(P))
    )


@shapes
def test_it_changes_no_prediction(rng, shape):
    P, Q = moments(1, 4)
    S, inverse = shared_balancing(P, Q, shape)
    np.testing.assert_allclose(S.T @ inverse, np.eye(4), atol=1e-9)
    X, W = rng.standard_normal((9, 4)), rng.standard_normal((7, 4))
    np.testing.assert_allclose((X @ S) @ (W @ inverse).T, X @ W.T, atol=1e-9)


@shapes
def test_what_is_balanced_stays(shape):
    P, Q = moments(2, 4)
    S, inverse = shared_balancing(P, Q, shape)
    again = shared_balancing(S.T @ P @ S, inverse.T @ Q @ inverse, shape)
    np.testing.assert_allclose(np.abs(again[0]), np.eye(4), atol=1e-7)
    np.testing.assert_allclose(np.abs(again[1]), np.eye(4), atol=1e-7)


def test_transposing_the_table_swaps_the_two_changes():
    P, Q = moments(3, 4)
    S, inverse = shared_balancing(P, Q, (35, 20))
    other, other_inverse = shared_balancing(Q, P, (20, 35))
    np.testing.assert_allclose(other @ other.T, inverse @ inverse.T, rtol=1e-8)
    np.testing.assert_allclose(other_inverse @ other_inverse.T, S @ S.T, rtol=1e-8)


def test_of_a_square_table_it_is_the_balance_without_shared_variances():
    P, Q = moments(4, 4)
    (first, _), (second, _) = shared_balancing(P, Q, (25, 25)), balancing(P, Q)
    np.testing.assert_allclose(first @ first.T, second @ second.T, rtol=1e-6)


@shapes
def test_moments_that_are_singular_have_no_basis(shape):
    P, Q = moments(5, 3)
    dead = np.diag([1.0, 1.0, 0.0])
    assert shared_balancing(dead @ P @ dead, Q, shape) is None
    assert shared_balancing(P, np.zeros((3, 3)), shape) is None

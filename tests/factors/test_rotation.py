"""Which factor pair is reported."""

import numpy as np
import pytest
import scipy.sparse

from lgmd.factors import balancing, generalized_components, principal_rotation, translation
from lgmd.linalg.cholesky import DenseFactor, factorize


def test_principal_rotation_is_orthogonal_and_diagonalises(rng):
    X, W = rng.standard_normal((12, 4)), rng.standard_normal((9, 4))
    rotated_X, rotated_W, rotation = principal_rotation(X, W)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(rotated_X @ rotated_W.T, X @ W.T, atol=1e-12)
    balance = rotated_X.T @ rotated_X + rotated_W.T @ rotated_W
    np.testing.assert_allclose(balance, np.diag(np.diag(balance)), atol=1e-10)
    assert np.all(np.diff(np.diag(balance)) < 0)


def test_principal_rotation_forgets_the_rotation_it_was_given(rng):
    X, W = rng.standard_normal((12, 4)), rng.standard_normal((9, 4))
    turn, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    first, second = principal_rotation(X, W), principal_rotation(X @ turn, W @ turn)
    np.testing.assert_allclose(first[0], second[0], atol=1e-10)
    np.testing.assert_allclose(first[1], second[1], atol=1e-10)


@pytest.mark.parametrize("dead", [False, True])
def test_generalized_components_satisfy_their_constraints(rng, make_precision, dead):
    X, W = rng.standard_normal((12, 4)), rng.standard_normal((9, 4))
    if dead:
        X[:, 3] = 0
    A, B = make_precision(12, seed=1), make_precision(9, seed=2)
    U, values, V = generalized_components(X, W, factorize(A), DenseFactor(B))
    np.testing.assert_allclose((U * values) @ V.T, X @ W.T, atol=1e-10)
    np.testing.assert_allclose(U.T @ np.linalg.solve(A.toarray(), U), np.eye(4), atol=1e-10)
    np.testing.assert_allclose(V.T @ np.linalg.solve(B.toarray(), V), np.eye(4), atol=1e-10)
    assert np.all(np.diff(values) <= 0)


def test_balancing_makes_both_priors_one_diagonal(rng):
    first, second = rng.standard_normal((30, 4)), rng.standard_normal((30, 4)) * [1, 3, 0.1, 2]
    P, Q = first.T @ first, second.T @ second
    for_samples, for_features = balancing(P, Q)
    np.testing.assert_allclose(for_samples.T @ for_features, np.eye(4), atol=1e-10)
    after = for_samples.T @ P @ for_samples
    np.testing.assert_allclose(after, np.diag(np.diag(after)), atol=1e-8)
    np.testing.assert_allclose(for_features.T @ Q @ for_features, after, atol=1e-8)
    # Twice the sum of the roots of the eigenvalues of PQ is the smallest that the two traces can be.
    smallest = 2 * np.sqrt(np.linalg.eigvals(P @ Q).real).sum()
    assert 2 * np.trace(after) == pytest.approx(smallest)
    assert smallest < np.trace(P) + np.trace(Q)


def test_balancing_knows_when_there_is_nothing_to_gain():
    # What is balanced is left as it is, and there is no basis in which nothing could be balanced.
    for change in balancing(np.diag([3.0, 2.0, 1.0]), np.diag([3.0, 2.0, 1.0])):
        np.testing.assert_allclose(change, np.eye(3), atol=1e-12)
    assert balancing(np.zeros((2, 2)), np.zeros((2, 2))) is None


def test_balancing_with_a_dead_column_never_raises_the_priors(rng):
    factor = rng.standard_normal((20, 3))
    factor[:, 2] = 0
    P, Q = factor.T @ factor, np.eye(3)
    change = balancing(P, Q)
    assert change is not None
    after = np.trace(change[0].T @ P @ change[0]) + np.trace(change[1].T @ Q @ change[1])
    assert after < np.trace(P) + np.trace(Q)
    assert np.all(np.isfinite(change[0]))


@pytest.mark.parametrize("penalties", [np.full(3, 0.7), np.array([0.7, 2.0, 0.1])], ids=["one penalty", "each its own"])
def test_translation_is_the_minimum_of_the_two_priors(rng, make_precision, penalties):
    X, W, intercepts = rng.standard_normal((12, 3)), rng.standard_normal((9, 3)), rng.standard_normal(12)
    B = make_precision(9)

    def priors(shift):
        moved = W + shift
        return penalties @ np.diag(moved.T @ B @ moved) + 1.3 * np.sum((intercepts - X @ shift) ** 2)

    shift = translation(1.3 * X.T @ X, 1.3 * X.T @ intercepts, W, B, penalties)
    best = priors(shift)
    for direction in np.vstack([np.eye(3), -np.eye(3), rng.standard_normal((5, 3))]):
        assert priors(shift + 1e-3 * direction) > best


def test_translation_leaves_directions_alone_that_no_prior_sees(rng):
    X, W, intercepts = rng.standard_normal((12, 3)), rng.standard_normal((9, 3)), rng.standard_normal(12)
    X[:, 2] = 0
    laplacian = scipy.sparse.csr_array(
        np.diag([1.0, *[2.0] * 7, 1.0]) - np.diag(np.ones(8), 1) - np.diag(np.ones(8), -1)
    )
    shift = translation(X.T @ X, X.T @ intercepts, W, laplacian, np.ones(3))
    np.testing.assert_allclose(shift[:2], np.linalg.lstsq(X[:, :2], intercepts)[0])
    assert shift[2] == 0

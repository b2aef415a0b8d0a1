"""Which factor pair is reported."""

import numpy as np
import pytest

from lgmd.factors import generalized_components, principal_rotation
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

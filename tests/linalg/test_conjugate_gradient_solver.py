import numpy as np
import pytest

from lgmd.linalg.conjugate_gradients import conjugate_gradients


def make_system(n=12, k=3, seed=0, dtype=np.float64):
    """A matrix of known spectrum, right-hand sides and a start."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = (basis * np.linspace(0.5, 3.0, n)) @ basis.T
    right, start = rng.standard_normal((2, n, k))
    return matrix.astype(dtype), right.astype(dtype), start.astype(dtype)


@pytest.mark.parametrize("separate_columns", [False, True])
def test_the_solution_is_exact(separate_columns):
    matrix, right, start = make_system()
    result = conjugate_gradients(
        lambda x: matrix @ x, right, start, tol=1e-13, max_iter=100, separate_columns=separate_columns
    )
    np.testing.assert_allclose(result.solution, np.linalg.solve(matrix, right), rtol=1e-10, atol=1e-12)
    assert result.n_iter <= 3 * 12
    assert result.residual <= 1e-13


def test_an_operator_that_mixes_the_columns_is_one_joint_system():
    n, k = 7, 2
    matrix, _, _ = make_system(n * k)
    rng = np.random.default_rng(1)
    right = rng.standard_normal((n, k))
    result = conjugate_gradients(
        lambda x: (matrix @ x.ravel()).reshape(n, k), right, np.zeros((n, k)), tol=1e-13, max_iter=100
    )
    np.testing.assert_allclose(result.solution.ravel(), np.linalg.solve(matrix, right.ravel()), rtol=1e-9)


def test_separate_columns_take_the_steps_they_would_take_alone():
    matrix, right, start = make_system()
    right[:, 1] *= 1e6
    together = conjugate_gradients(lambda x: matrix @ x, right, start, tol=0.0, max_iter=4, separate_columns=True)
    for column in range(right.shape[1]):
        chosen = slice(column, column + 1)
        alone = conjugate_gradients(lambda x: matrix @ x, right[:, chosen], start[:, chosen], tol=0.0, max_iter=4)
        np.testing.assert_allclose(together.solution[:, chosen], alone.solution, rtol=1e-12)
    joint = conjugate_gradients(lambda x: matrix @ x, right, start, tol=0.0, max_iter=4)
    assert not np.allclose(joint.solution, together.solution, rtol=1e-6)


@pytest.mark.parametrize("separate_columns", [False, True])
def test_every_iteration_lowers_the_energy(separate_columns):
    matrix, right, start = make_system(n=10)
    energies = []
    for max_iter in range(9):
        result = conjugate_gradients(
            lambda x: matrix @ x, right, start, tol=0.0, max_iter=max_iter, separate_columns=separate_columns
        )
        assert result.n_iter == max_iter
        x = result.solution
        energies.append(0.5 * np.sum(x * (matrix @ x)) - np.sum(x * right))
    assert np.all(np.diff(energies) < 0)


def test_no_iteration_returns_a_copy_of_the_start():
    matrix, right, start = make_system()
    given = start.copy()
    result = conjugate_gradients(lambda x: matrix @ x, right, start, tol=1e-8, max_iter=0)
    np.testing.assert_array_equal(result.solution, given)
    assert not np.shares_memory(result.solution, start)
    expected = np.linalg.norm(right - matrix @ start) / np.linalg.norm(right)
    assert result.residual == pytest.approx(expected, rel=1e-12)


def test_neither_the_start_nor_the_right_hand_side_is_changed():
    matrix, right, start = make_system()
    for array in (matrix, right, start):
        array.setflags(write=False)
    result = conjugate_gradients(lambda x: matrix @ x, right, start, tol=1e-10, max_iter=50)
    assert result.n_iter > 0


def test_a_start_at_the_solution_is_left_at_once():
    matrix, right, _ = make_system()
    result = conjugate_gradients(
        lambda x: matrix @ x, right, np.linalg.solve(matrix, right), tol=1e-10, max_iter=50, separate_columns=True
    )
    assert result.n_iter == 0


@pytest.mark.parametrize("separate_columns", [False, True])
def test_a_reduction_ends_where_that_share_of_the_first_residual_is_left(separate_columns):
    matrix, right, start = make_system()

    def solve(max_iter, **limits):
        return conjugate_gradients(
            lambda x: matrix @ x, right, start, max_iter=max_iter, separate_columns=separate_columns, **limits
        )

    def left(solution):
        axis = 0 if separate_columns else None
        return np.linalg.norm(right - matrix @ solution, axis=axis) / np.linalg.norm(right - matrix @ start, axis=axis)

    result = solve(50, tol=1e-12, reduction=0.05)
    assert 0 < result.n_iter < solve(50, tol=1e-12).n_iter
    assert np.max(left(result.solution)) <= 0.05
    assert np.max(left(solve(result.n_iter - 1, tol=0.0).solution)) > 0.05
    # Whichever of the two is reached first ends it.
    assert solve(50, tol=0.2, reduction=1e-9).n_iter == solve(50, tol=0.2).n_iter


@pytest.mark.parametrize("separate_columns", [False, True])
def test_a_zero_right_hand_side_has_the_solution_zero(separate_columns):
    matrix, right, start = make_system()
    zero = np.zeros_like(right)
    at_once = conjugate_gradients(
        lambda x: matrix @ x, zero, zero, tol=1e-8, max_iter=50, separate_columns=separate_columns
    )
    assert at_once.n_iter == 0
    assert at_once.residual == 0.0
    assert np.all(at_once.solution == 0)
    from_afar = conjugate_gradients(
        lambda x: matrix @ x, zero, start, tol=1e-8, max_iter=500, separate_columns=separate_columns
    )
    np.testing.assert_allclose(from_afar.solution, 0, atol=1e-6)
    assert from_afar.n_iter <= 40
    assert 0 < from_afar.residual <= 1e-8


def test_one_zero_column_does_not_hold_up_the_others():
    matrix, right, start = make_system()
    right[:, 1] = 0
    result = conjugate_gradients(lambda x: matrix @ x, right, start, tol=1e-10, max_iter=500, separate_columns=True)
    np.testing.assert_allclose(result.solution, np.linalg.solve(matrix, right), atol=1e-8)
    assert result.n_iter <= 40


@pytest.mark.parametrize("separate_columns", [False, True])
def test_single_precision_stays(separate_columns):
    matrix, right, start = make_system(dtype=np.float32)
    result = conjugate_gradients(
        lambda x: matrix @ x, right, start, tol=1e-6, max_iter=100, separate_columns=separate_columns
    )
    assert result.solution.dtype == np.float32
    np.testing.assert_allclose(result.solution, np.linalg.solve(matrix, right), rtol=1e-3, atol=1e-4)

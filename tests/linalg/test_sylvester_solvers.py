import numpy as np
import pytest
import scipy.sparse

from lgmd.linalg import sylvester
from lgmd.linalg.sylvester import DiagonalSylvester, IterativeSylvester, SpectralSylvester, prepare


def chain(n, ridge=0.1):
    """Laplacian of a path with random weights, and a ridge."""
    weights = np.random.default_rng(n).uniform(0.1, 2.0, n - 1)
    degrees = np.concatenate([weights, [0]]) + np.concatenate([[0], weights])
    return scipy.sparse.csr_array(scipy.sparse.diags_array([-weights, degrees + ridge, -weights], offsets=[-1, 0, 1]))


def diagonal(n):
    return scipy.sparse.csr_array(scipy.sparse.diags_array(np.random.default_rng(n).uniform(0.2, 3.0, n)))


def make_right(n, k, rank=None, seed=0):
    """Gram matrix of the other side, right-hand side and a start."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((2 * k, k)) @ np.diag(np.arange(k) < (k if rank is None else rank)).astype(float)
    mixing = np.linalg.qr(rng.standard_normal((k, k)))[0]
    gram = mixing.T @ W.T @ W @ mixing
    return gram, rng.standard_normal((n, k)), rng.standard_normal((n, k))


def kronecker_solve(precision, penalty, gram, right):
    """The n k x n k system of ``penalty A X + X G = C``, written out."""
    n, k = right.shape
    system = np.kron(penalty * precision.toarray(), np.eye(k)) + np.kron(np.eye(n), gram)
    return np.linalg.solve(system, right.ravel()).reshape(n, k)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 50.0])
def test_all_solvers_agree_with_the_kronecker_system(k, penalty):
    precision = chain(25)
    gram, right, start = make_right(25, k)
    expected = kronecker_solve(precision, penalty, gram, right)
    scale = np.abs(expected).max()
    found = [solver(precision).solve(penalty, gram, right, start) for solver in (SpectralSylvester, IterativeSylvester)]
    for solution in found:
        np.testing.assert_allclose(solution, expected, atol=1e-8 * scale)
        np.testing.assert_allclose(
            penalty * (precision @ solution) + solution @ gram, right, atol=1e-8 * np.abs(right).max()
        )
    np.testing.assert_allclose(found[0], found[1], atol=1e-8 * scale)


@pytest.mark.parametrize("k", [1, 4])
def test_a_diagonal_is_solved_alike_by_all_three(k):
    precision = diagonal(25)
    gram, right, start = make_right(25, k)
    expected = kronecker_solve(precision, 0.7, gram, right)
    for solver in (DiagonalSylvester, SpectralSylvester, IterativeSylvester):
        np.testing.assert_allclose(solver(precision).solve(0.7, gram, right, start), expected, atol=1e-9)


def test_a_gram_matrix_of_lower_rank_is_no_obstacle():
    gram, right, start = make_right(20, 5, rank=2)
    assert np.linalg.matrix_rank(gram) == 2
    for precision, solvers in (
        (chain(20), (SpectralSylvester, IterativeSylvester)),
        (diagonal(20), (DiagonalSylvester,)),
    ):
        expected = kronecker_solve(precision, 1.3, gram, right)
        for solver in solvers:
            found = solver(precision).solve(1.3, gram, right, start)
            np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_without_edges_the_rows_are_ridge_regressions():
    gram, right, start = make_right(10, 3)
    identity = scipy.sparse.eye_array(10, format="csr")
    expected = np.linalg.solve(gram + 0.5 * np.eye(3), right.T).T
    np.testing.assert_allclose(prepare(identity).solve(0.5, gram, right, start), expected, rtol=1e-10)


def test_one_preparation_serves_many_solves_and_changes_no_input():
    precision = chain(15)
    for solver in (SpectralSylvester(precision), IterativeSylvester(precision)):
        for seed in range(3):
            arrays = make_right(15, 3, seed=seed)
            copies = [array.copy() for array in arrays]
            found = solver.solve(1.0 + seed, *arrays)
            expected = kronecker_solve(precision, 1.0 + seed, *arrays[:2])
            np.testing.assert_allclose(found, expected, atol=1e-8)
            for array, copy in zip(arrays, copies, strict=True):
                np.testing.assert_array_equal(array, copy)


def test_iterations_begin_at_the_start():
    precision = chain(15)
    gram, right, start = make_right(15, 3)
    untouched = IterativeSylvester(precision, max_iter=0).solve(0.7, gram, right, start)
    np.testing.assert_allclose(untouched, start, rtol=1e-10)


@pytest.mark.parametrize("solver", [DiagonalSylvester, SpectralSylvester, IterativeSylvester])
def test_single_precision_stays(solver):
    precision = diagonal(30) if solver is DiagonalSylvester else chain(30)
    gram, right, start = make_right(30, 4)
    expected = kronecker_solve(precision, 1.0, gram, right)
    found = solver(precision).solve(1.0, gram, right.astype(np.float32), start.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_prepare_picks_by_the_structure_of_the_graph(monkeypatch):
    assert isinstance(prepare(diagonal(12)), DiagonalSylvester)
    assert isinstance(prepare(chain(12)), SpectralSylvester)
    monkeypatch.setattr(sylvester, "SPECTRAL_LIMIT", 11)
    assert isinstance(prepare(chain(11)), SpectralSylvester)
    assert isinstance(prepare(chain(12)), IterativeSylvester)
    assert isinstance(prepare(diagonal(12)), DiagonalSylvester)


def test_stored_zeros_are_no_edges():
    precision = chain(12)
    rows = np.repeat(np.arange(12), np.diff(precision.indptr))
    precision.data[rows != precision.indices] = 0.0
    assert precision.nnz > 12
    solver = prepare(precision)
    assert isinstance(solver, DiagonalSylvester)
    gram, right, start = make_right(12, 3)
    np.testing.assert_allclose(
        solver.solve(1.0, gram, right, start), kronecker_solve(precision, 1.0, gram, right), rtol=1e-9
    )


def test_edges_count_even_where_the_diagonal_has_zeros():
    # Two entries in all, like a diagonal, but beside it.
    swap = scipy.sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert not isinstance(prepare(swap), DiagonalSylvester)

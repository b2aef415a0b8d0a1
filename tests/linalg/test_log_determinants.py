import numpy as np
import pytest
import scipy.sparse

from lgmd.linalg import cholesky
from lgmd.linalg.logdet import lanczos_log_determinant, log_determinant


def random_precision(n, degree=4, ridge=0.5, seed=0):
    """A ridged Laplacian on a random graph, with a different scale for each node."""
    rng = np.random.default_rng(seed)
    half = scipy.sparse.triu(scipy.sparse.random_array((n, n), density=min(1, degree / n), rng=rng), k=1)
    adjacency = half + half.T
    diagonal = np.asarray(adjacency.sum(axis=1)).ravel() + ridge
    scale = scipy.sparse.diags_array(10.0 ** rng.uniform(-1, 1, n))
    return scipy.sparse.csr_array(scale @ (scipy.sparse.diags_array(diagonal) - adjacency) @ scale)


def exact(precision):
    sign, value = np.linalg.slogdet(precision.toarray())
    assert sign == 1
    return value


@pytest.fixture
def too_entangled(monkeypatch):
    """No graph has a factor of bearable size."""
    monkeypatch.setattr(cholesky, "DENSE_LIMIT", 0)
    monkeypatch.setattr(cholesky, "FILL_LIMIT", 0)


@pytest.mark.parametrize("n", [1, 2, 40, 300])
def test_small_graphs_have_an_exact_determinant(n):
    precision = random_precision(n)
    found = log_determinant(precision)
    assert found.value == pytest.approx(exact(precision), rel=1e-11, abs=1e-11)
    assert found.standard_error == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_lanczos_is_within_its_standard_error(seed):
    precision = random_precision(500, seed=seed)
    found = lanczos_log_determinant(precision, seed=seed)
    expected = exact(precision)
    assert 0 < found.standard_error < 0.02 * abs(expected)
    assert abs(found.value - expected) < 4 * found.standard_error


def test_more_probes_make_the_error_smaller():
    precision = random_precision(400)
    few = lanczos_log_determinant(precision, n_probes=8)
    many = lanczos_log_determinant(precision, n_probes=512)
    assert many.standard_error < few.standard_error / 4
    assert abs(many.value - exact(precision)) < 4 * many.standard_error


def test_entangled_graphs_are_left_to_lanczos(too_entangled):
    precision = random_precision(300)
    found = log_determinant(precision)
    assert found == lanczos_log_determinant(precision)
    assert abs(found.value - exact(precision)) < 4 * found.standard_error


def test_a_diagonal_is_taken_out_exactly():
    diagonal = 10.0 ** np.random.default_rng(1).uniform(-8, 8, 60)
    found = lanczos_log_determinant(scipy.sparse.csr_array(scipy.sparse.diags_array(diagonal)))
    assert found.value == pytest.approx(np.log(diagonal).sum(), rel=1e-12)
    assert found.standard_error < 1e-10


@pytest.mark.parametrize("n_pairs", [1, 2, 3, 20])
def test_a_spectrum_of_two_values_is_exhausted_by_some_probes_before_others(n_pairs):
    pair = np.array([[1.0, 0.6], [0.6, 1.0]])
    precision = scipy.sparse.csr_array(scipy.sparse.block_diag([pair] * n_pairs))
    found = lanczos_log_determinant(precision, n_probes=256)
    assert abs(found.value - exact(precision)) < 4 * found.standard_error + 1e-10


def test_fewer_nodes_than_steps_is_fine():
    precision = random_precision(6)
    found = lanczos_log_determinant(precision, n_probes=512)
    assert abs(found.value - exact(precision)) < 4 * found.standard_error


def test_the_estimate_is_the_same_every_time():
    precision = random_precision(100)
    assert lanczos_log_determinant(precision) == lanczos_log_determinant(precision)
    assert lanczos_log_determinant(precision) != lanczos_log_determinant(precision, seed=1)


def not_positive():
    indefinite = random_precision(200).tolil()
    indefinite[3, 4] = indefinite[4, 3] = 3 * np.sqrt(indefinite[3, 3] * indefinite[4, 4])
    negative = random_precision(50).tolil()
    negative[7, 7] = -1.0
    zero = random_precision(50).tolil()
    zero[7, 7] = 0.0
    return [scipy.sparse.csr_array(matrix) for matrix in (indefinite, negative, zero)]


@pytest.mark.parametrize("matrix", not_positive(), ids=["indefinite", "negative diagonal", "zero diagonal"])
def test_what_is_not_positive_definite_is_refused_by_both(matrix):
    with pytest.raises(np.linalg.LinAlgError):
        log_determinant(matrix)
    with pytest.raises(np.linalg.LinAlgError):
        lanczos_log_determinant(matrix)

"""Spectra of sparse matrices: eigenvalues where that is cheap, a quadrature where it is not."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from lgmd.linalg.logdet import DECOMPOSED, Spectrum, spectrum

N_PROBES = 12


def random_laplacian(n, degree=4, seed=0):
    rng = np.random.default_rng(seed)
    half = scipy.sparse.triu(scipy.sparse.random_array((n, n), density=min(1.0, degree / n), rng=rng), k=1)
    adjacency = half + half.T
    return scipy.sparse.csr_array(scipy.sparse.diags_array(adjacency.sum(axis=1)) - adjacency)


def chain_laplacian(n):
    degrees = np.full(n, 2.0)
    degrees[[0, -1]] = 1.0
    return scipy.sparse.diags_array([-np.ones(n - 1), degrees, -np.ones(n - 1)], offsets=[-1, 0, 1], format="csr")


def chain_eigenvalues(n):
    return 2 - 2 * np.cos(np.pi * np.arange(n) / n)


def trace_and_error(matrix, function, n_probes=N_PROBES):
    """The exact trace of a function of a matrix, and the standard error of its estimate by random signs.

    Of one vector of signs z the variance of ``z'Fz`` is twice the sum of squares off the diagonal of F.
    """
    values, vectors = np.linalg.eigh(matrix.toarray())
    dense = (vectors * function(np.maximum(values, 0.0))) @ vectors.T
    off = dense - np.diag(np.diag(dense))
    return np.trace(dense), np.sqrt(2 * np.sum(off**2) / n_probes)


@pytest.mark.parametrize("n", [1, 2, 5, 60, 300])
def test_a_small_matrix_has_its_eigenvalues(n):
    matrix = random_laplacian(n)
    found = spectrum(matrix)
    np.testing.assert_allclose(
        np.sort(found.nodes), np.maximum(np.linalg.eigvalsh(matrix.toarray()), 0), atol=1e-12 * n
    )
    np.testing.assert_array_equal(found.weights, 1.0)


def test_the_sum_is_the_trace_of_a_function():
    matrix = random_laplacian(80)
    found = spectrum(matrix)
    assert found.sum(found.nodes) == pytest.approx(matrix.diagonal().sum())
    assert found.sum(found.nodes**2) == pytest.approx((matrix.multiply(matrix)).sum())
    assert found.sum(np.log1p(3 * found.nodes)) == pytest.approx(
        np.linalg.slogdet(np.eye(80) + 3 * matrix.toarray())[1]
    )
    assert Spectrum(np.array([1.0, 2.0]), np.array([3.0, 0.5])).sum(np.array([10.0, 4.0])) == 32.0


@pytest.mark.parametrize("ratio", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_quadrature_is_within_the_error_of_its_probes(ratio, seed):
    # Thirty Lanczos steps are exact up to ((sqrt(c) - 1) / (sqrt(c) + 1))^60 with c the condition, here below 400: a
    # thousandth of the error of the probes at most.
    matrix = random_laplacian(400, seed=seed)
    found = spectrum(matrix, seed=seed, decomposed_up_to=50)
    expected, error = trace_and_error(matrix, lambda values: np.log1p(ratio * values))
    assert len(found.nodes) != 400
    assert abs(found.sum(np.log1p(ratio * found.nodes)) - expected) < 4 * error
    # Far below what the strength of a graph depends on.
    assert error < 0.05 * expected


@pytest.mark.parametrize("n", [DECOMPOSED + 1, 20_000])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_a_long_chain_has_the_spectrum_that_is_known_in_closed_form(n, ratio):
    found = spectrum(chain_laplacian(n))
    values = np.log1p(ratio * chain_eigenvalues(n))
    error = np.sqrt(2 * np.sum(values**2) / N_PROBES)  # with the diagonal, so a little too much
    assert len(found.nodes) == N_PROBES * 30
    assert abs(found.sum(np.log1p(ratio * found.nodes)) - values.sum()) < 4 * error
    # Random signs have unit length: nothing is left out of a constant, and little of a trace.
    assert found.weights.sum() == pytest.approx(n)
    assert found.sum(found.nodes) == pytest.approx(2 * (n - 1), rel=4 * np.sqrt(2 / (N_PROBES * n)))


def test_more_probes_come_closer():
    matrix = random_laplacian(300, seed=3)
    expected, error = trace_and_error(matrix, np.log1p, n_probes=800)
    many = spectrum(matrix, n_probes=800, decomposed_up_to=0)
    assert abs(many.sum(np.log1p(many.nodes)) - expected) < 4 * error
    assert error < 0.01 * expected


@pytest.mark.parametrize("decomposed_up_to", [1000, 0], ids=["eigenvalues", "quadrature"])
def test_rows_without_entries_off_the_diagonal_are_their_own_eigenvalues(decomposed_up_to):
    rng = np.random.default_rng(5)
    inner, diagonal = random_laplacian(40, degree=8), np.array([0.0, 0.0, 7.5, 2.0])
    order = rng.permutation(44)
    matrix = scipy.sparse.block_diag([inner, scipy.sparse.diags_array(diagonal)], format="csr")[order][:, order]
    found = spectrum(scipy.sparse.csr_array(matrix), decomposed_up_to=decomposed_up_to)
    for value in (7.5, 2.0):
        assert found.weights[found.nodes == value].sum() == 1.0
    assert found.weights.sum() == pytest.approx(44)
    rest = spectrum(inner, decomposed_up_to=decomposed_up_to)
    if decomposed_up_to:
        np.testing.assert_allclose(np.sort(found.nodes), np.sort(np.concatenate([rest.nodes, diagonal])), atol=1e-12)


def test_only_joined_rows_count_towards_what_is_decomposed():
    # A graph with few edges among many nodes is exact.
    n = 50_000
    edges = scipy.sparse.csr_array((np.ones(3), ([5, 70, 49_000], [9, 71, 100])), shape=(n, n))
    adjacency = edges + edges.T
    matrix = scipy.sparse.csr_array(scipy.sparse.diags_array(adjacency.sum(axis=1)) - adjacency)
    found = spectrum(matrix)
    np.testing.assert_allclose(np.sort(found.nodes)[-3:], 2.0)
    np.testing.assert_allclose(np.sort(found.nodes)[:-3], 0.0, atol=1e-15)
    assert len(found.nodes) == n


@pytest.mark.parametrize("decomposed_up_to", [1000, 0], ids=["eigenvalues", "quadrature"])
def test_a_disconnected_graph_is_the_union_of_its_parts(decomposed_up_to):
    parts = [random_laplacian(60, degree=6, seed=1), chain_laplacian(50), random_laplacian(90, degree=6, seed=2)]
    matrix = scipy.sparse.csr_array(scipy.sparse.block_diag(parts))
    found = spectrum(matrix, decomposed_up_to=decomposed_up_to)
    expected = sum(np.linalg.slogdet(np.eye(part.shape[0]) + part.toarray())[1] for part in parts)
    _, error = trace_and_error(matrix, np.log1p)
    tolerance = 4 * error if decomposed_up_to == 0 else 1e-10 * expected
    assert abs(found.sum(np.log1p(found.nodes)) - expected) < tolerance


def test_pairs_exhaust_the_quadrature_after_two_steps():
    # There are two eigenvalues, 0 and 2, and no other node has any weight.
    pair = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = spectrum(scipy.sparse.csr_array(scipy.sparse.block_diag([pair] * 30)), decomposed_up_to=0)
    weighty = found.weights > 1e-9
    np.testing.assert_allclose(found.nodes[weighty], 2 * np.round(found.nodes[weighty] / 2), atol=1e-7)
    assert found.sum(found.nodes) == pytest.approx(60, abs=4 * np.sqrt(2 * 60 / N_PROBES))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_matrix_without_entries_has_zeros(n):
    for decomposed_up_to in (1000, 0):
        found = spectrum(scipy.sparse.csr_array((n, n)), decomposed_up_to=decomposed_up_to)
        np.testing.assert_array_equal(found.nodes, np.zeros(n))
        np.testing.assert_array_equal(found.weights, np.ones(n))


def test_eigenvalues_that_round_below_zero_are_zero():
    # Which side of zero the smallest one falls on depends on the machine, and of twenty some fall below.
    for seed in range(20):
        matrix = random_laplacian(200, degree=10, seed=seed)
        assert 0.0 <= spectrum(matrix).nodes.min() < 1e-12
        quadrature = spectrum(matrix, decomposed_up_to=0)
        assert quadrature.nodes.min() >= 0.0
        assert np.all(np.isfinite(np.log1p(1e4 * quadrature.nodes)))


def test_it_is_the_same_every_time_and_leaves_the_matrix_alone():
    matrix = random_laplacian(300)
    before = (matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy())
    for one, other in zip(spectrum(matrix, decomposed_up_to=0), spectrum(matrix, decomposed_up_to=0), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(spectrum(matrix, decomposed_up_to=0)[0], spectrum(matrix, seed=1, decomposed_up_to=0)[0])
    for array, expected in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_a_hundred_thousand_nodes_take_memory_for_the_probes_alone():
    matrix = chain_laplacian(100_000)
    tracemalloc.start()
    try:
        found = spectrum(matrix)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200e6  # a dense array would be 80 GB
    assert found.weights.sum() == pytest.approx(100_000)

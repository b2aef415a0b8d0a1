import numpy as np
import pytest
import scipy.sparse

from lgmd.linalg import cholesky
from lgmd.linalg.cholesky import DenseFactor, SparseFactor, TooEntangledError, envelope, factorize


def laplacian(adjacency):
    adjacency = scipy.sparse.csr_array(adjacency)
    return scipy.sparse.csr_array(scipy.sparse.diags_array(np.asarray(adjacency.sum(axis=1)).ravel()) - adjacency)


def path(n, seed=0):
    weights = np.random.default_rng(seed).uniform(0.2, 2.0, n - 1)
    return scipy.sparse.csr_array(scipy.sparse.diags_array([weights, weights], offsets=[-1, 1], shape=(n, n)))


def grid(side):
    line = scipy.sparse.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    eye = scipy.sparse.eye_array(side)
    return scipy.sparse.csr_array(scipy.sparse.kron(line, eye) + scipy.sparse.kron(eye, line))


def random_adjacency(n, degree, seed=0):
    rng = np.random.default_rng(seed)
    half = scipy.sparse.triu(scipy.sparse.random_array((n, n), density=degree / n, rng=rng), k=1)
    return scipy.sparse.csr_array(half + half.T)


def random_signed(n, seed=0):
    """Signed weights, diagonally dominant, of very different scales."""
    rng = np.random.default_rng(seed)
    graph = random_adjacency(n, 3, seed)
    signs = scipy.sparse.csr_array(graph)
    signs.data = rng.standard_normal(len(graph.data))
    signed = scipy.sparse.csr_array((signs + signs.T) / 2)
    dominant = scipy.sparse.diags_array(np.asarray(abs(signed).sum(axis=1)).ravel() + 0.1)
    scale = scipy.sparse.diags_array(10.0 ** rng.uniform(-2, 2, n))
    return scipy.sparse.csr_array(scale @ (dominant + signed) @ scale)


def ridged(adjacency, ridge=0.05):
    return scipy.sparse.csr_array(laplacian(adjacency) + ridge * scipy.sparse.eye_array(adjacency.shape[0]))


PRECISIONS = {
    "one node": scipy.sparse.csr_array([[2.5]]),
    "diagonal": scipy.sparse.csr_array(scipy.sparse.diags_array(np.arange(1.0, 9.0))),
    "chain": ridged(path(60)),
    "shuffled chain": ridged(path(60))[np.random.default_rng(1).permutation(60)][
        :, np.random.default_rng(1).permutation(60)
    ],
    "grid": ridged(grid(9)),
    "random": ridged(random_adjacency(80, 4)),
    "signed": random_signed(70),
    "disconnected": scipy.sparse.csr_array(
        scipy.sparse.block_diag([ridged(path(10)), ridged(grid(4)), scipy.sparse.eye_array(3), random_signed(20)])
    ),
    "star": ridged(scipy.sparse.csr_array(([1.0] * 38, ([0] * 19 + list(range(1, 20)), [*range(1, 20), *[0] * 19])))),
}


@pytest.fixture(params=PRECISIONS.values(), ids=PRECISIONS.keys())
def precision(request):
    return request.param


@pytest.fixture(params=["dense", "sparse"])
def factor(request, precision):
    return DenseFactor(precision) if request.param == "dense" else SparseFactor(precision, envelope(precision)[0])


def test_the_log_determinant_is_that_of_numpy(factor, precision):
    sign, expected = np.linalg.slogdet(precision.toarray())
    assert sign == 1
    assert factor.logdet == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_systems_are_solved(factor, precision):
    right = np.random.default_rng(2).standard_normal((precision.shape[0], 3))
    expected = np.linalg.solve(precision.toarray(), right)
    np.testing.assert_allclose(factor.solve(right), expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(
        factor.solve(right[:, 0]), expected[:, 0], rtol=1e-8, atol=1e-10 * np.abs(expected).max()
    )


def test_the_root_times_its_transpose_is_the_precision(factor, precision):
    n = precision.shape[0]
    root = factor.color(np.eye(n))
    np.testing.assert_allclose(root @ root.T, precision.toarray(), rtol=1e-11, atol=1e-11 * precision.max())


def test_whitening_and_colouring_undo_each_other(factor, precision):
    right = np.random.default_rng(3).standard_normal((precision.shape[0], 4))
    np.testing.assert_allclose(factor.color(factor.whiten(right)), right, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(factor.whiten(factor.color(right)), right, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(factor.whiten(factor.color(right[:, 0])), right[:, 0], rtol=1e-8, atol=1e-9)


def test_whitened_rows_are_independent(factor, precision):
    n = precision.shape[0]
    np.testing.assert_allclose(factor.whiten(factor.whiten(precision.toarray()).T), np.eye(n), atol=1e-9)


def test_inputs_are_not_changed(factor, precision):
    right = np.random.default_rng(4).standard_normal((precision.shape[0], 2))
    given = right.copy()
    right.setflags(write=False)
    for operation in (factor.solve, factor.whiten, factor.color):
        operation(right)
    np.testing.assert_array_equal(right, given)


def test_single_precision_graphs_are_factored_in_double():
    single = PRECISIONS["grid"].astype(np.float32)
    expected = np.linalg.slogdet(single.toarray().astype(float))[1]
    for found in (DenseFactor(single), SparseFactor(single, envelope(single)[0])):
        assert found.logdet == pytest.approx(expected, rel=1e-13)


def indefinite(n=12):
    graph = ridged(path(n)).tolil()
    graph[n - 1, n - 1] = 0.1
    graph[0, n - 1] = graph[n - 1, 0] = 3.0
    return scipy.sparse.csr_array(graph)


NOT_POSITIVE = {
    "indefinite": indefinite(),
    "negative": scipy.sparse.csr_array(-ridged(path(12))),
    "zero on the diagonal": scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]),
    "zero row": scipy.sparse.csr_array(np.diag([1.0, 0.0, 2.0])),
    "chain without ridge": laplacian(path(12)),
    "integer grid without ridge": laplacian(grid(5)),
    "random without ridge": laplacian(path(40) + random_adjacency(40, 3)),
    "one component without ridge": scipy.sparse.csr_array(
        scipy.sparse.block_diag([ridged(path(8)), laplacian(path(9, seed=5)), ridged(grid(3))])
    ),
    "large without ridge": laplacian(path(250) + random_adjacency(250, 1)),
}


@pytest.mark.parametrize("kind", [DenseFactor, lambda matrix: SparseFactor(matrix, envelope(matrix)[0])])
@pytest.mark.parametrize("name", NOT_POSITIVE)
def test_what_is_not_positive_definite_is_refused(kind, name):
    matrix = NOT_POSITIVE[name]
    assert np.linalg.eigvalsh(matrix.toarray())[0] < 1e-10
    with pytest.raises(np.linalg.LinAlgError):
        kind(matrix)


@pytest.mark.parametrize("ridge", [1e-10, 1e-6])
def test_a_small_ridge_is_enough(ridge):
    matrix = ridged(path(250) + random_adjacency(250, 1), ridge)
    expected = np.linalg.slogdet(matrix.toarray())[1]
    for found in (DenseFactor(matrix), SparseFactor(matrix, envelope(matrix)[0])):
        assert found.logdet == pytest.approx(expected, abs=1e-4)


def fill_of_elimination(pattern):
    """Entries of the Cholesky factor, diagonal included, by eliminating nodes one after the other."""
    neighbours = [set(np.flatnonzero(row)) for row in pattern]
    total = 0
    for node, around in enumerate(neighbours):
        later = {other for other in around if other > node}
        total += len(later) + 1
        for other in later:
            neighbours[other] |= later - {other}
    return total


def test_the_envelope_bounds_the_fill(precision):
    order, bound = envelope(precision)
    assert sorted(order) == list(range(precision.shape[0]))
    permuted = precision.toarray()[np.ix_(order, order)]
    assert bound == sum(i - np.flatnonzero(row)[0] + 1 for i, row in enumerate(np.tril(permuted)))
    assert fill_of_elimination(permuted != 0) <= bound
    assert SparseFactor(precision, order)._unit_lower.nnz <= bound


def test_the_envelope_of_a_shuffled_chain_is_tight():
    shuffle = np.random.default_rng(7).permutation(200)
    precision = ridged(path(200))[shuffle][:, shuffle]
    order, bound = envelope(precision)
    assert bound == 2 * 200 - 1
    assert SparseFactor(precision, order)._unit_lower.nnz == bound


def test_nodes_of_equal_degree_stand_in_the_order_of_their_numbers():
    # By numpy's unstable sort it depends on the processor, and so would tables that are drawn along it.
    nodes = np.arange(300)
    np.testing.assert_array_equal(envelope(ridged(scipy.sparse.csr_array((300, 300))))[0], nodes[::-1])
    pairs = scipy.sparse.block_diag([np.ones((2, 2)) - np.eye(2)] * 150, format="csr")
    np.testing.assert_array_equal(envelope(ridged(pairs))[0], nodes[::-1])
    edges = [0, 0, 0, 3], [1, 2, 3, 4]
    half = scipy.sparse.csr_array((np.ones(4), edges), shape=(5, 5))
    fork = ridged(half + half.T)
    np.testing.assert_array_equal(envelope(fork)[0], [4, 3, 2, 0, 1])
    # However its entries are stored.
    graph = ridged(random_adjacency(300, 4))
    unsorted = graph.copy()
    for first, last in zip(graph.indptr[:-1], graph.indptr[1:], strict=True):
        for entries in (unsorted.indices, unsorted.data):
            entries[first:last] = entries[first:last][::-1].copy()
    np.testing.assert_array_equal(envelope(unsorted)[0], envelope(graph)[0])


def test_factorize_is_dense_where_the_graph_is_small_and_entangled():
    assert isinstance(factorize(ridged(random_adjacency(100, 20))), DenseFactor)
    assert isinstance(factorize(np.eye(4)), DenseFactor)
    assert isinstance(factorize(PRECISIONS["one node"]), DenseFactor)


def test_factorize_is_sparse_where_the_factor_stays_small(monkeypatch):
    chain = ridged(path(400))
    assert isinstance(factorize(chain), SparseFactor)
    monkeypatch.setattr(cholesky, "DENSE_LIMIT", 50)
    assert isinstance(factorize(chain), SparseFactor)
    # Dense no longer, but within the limit on the fill.
    assert isinstance(factorize(ridged(random_adjacency(100, 20))), SparseFactor)


def test_factorize_gives_up_on_large_entangled_graphs(monkeypatch):
    graph = ridged(random_adjacency(300, 6))
    fill = envelope(graph)[1]
    monkeypatch.setattr(cholesky, "DENSE_LIMIT", 299)
    monkeypatch.setattr(cholesky, "FILL_LIMIT", fill)
    assert isinstance(factorize(graph), SparseFactor)
    monkeypatch.setattr(cholesky, "FILL_LIMIT", fill - 1)
    with pytest.raises(TooEntangledError, match=f"300 nodes and {graph.nnz:,} entries .* up to {fill:,} entries"):
        factorize(graph)


def test_factorize_refuses_what_is_not_positive_definite():
    for matrix in NOT_POSITIVE.values():
        with pytest.raises(np.linalg.LinAlgError):
            factorize(matrix)

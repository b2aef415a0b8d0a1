import numpy as np
import pytest
from scipy import sparse

from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.metrics import edge_recovery


def random_precision(n_nodes, n_edges, seed):
    """A diagonally dominant matrix with edges of different strengths and an uneven diagonal."""
    rng = np.random.default_rng(seed)
    rows, columns = np.triu_indices(n_nodes, k=1)
    chosen = rng.choice(len(rows), size=n_edges, replace=False)
    matrix = np.zeros((n_nodes, n_nodes))
    matrix[rows[chosen], columns[chosen]] = rng.standard_normal(n_edges)
    matrix += matrix.T
    return matrix + np.diag(np.abs(matrix).sum(axis=1) + rng.uniform(0.5, 2.0, n_nodes))


def brute_force(true, estimate, share):
    """The definition, pair by pair."""

    def ranked(matrix):
        strengths = {
            (i, j): abs(matrix[i, j]) / np.sqrt(matrix[i, i] * matrix[j, j])
            for i in range(len(matrix))
            for j in range(i + 1, len(matrix))
            if matrix[i, j] != 0
        }
        return sorted(strengths, key=lambda pair: (-round(strengths[pair], 12), pair))

    wanted = ranked(true)
    found = set(ranked(estimate)[: len(wanted)])
    wanted = wanted[: max(1, round(share * len(wanted)))]
    return sum(pair in found for pair in wanted) / len(wanted)


@pytest.mark.parametrize("n_estimated", [5, 40, 190])
def test_it_agrees_with_the_definition_pair_by_pair(n_estimated):
    true, estimate = random_precision(20, 40, seed=0), random_precision(20, n_estimated, seed=1)
    shares = (0.05, 0.1, 0.3, 1.0)
    expected = [brute_force(true, estimate, share) for share in shares]
    assert 0 < max(expected) < 1
    np.testing.assert_allclose(edge_recovery(true, estimate, shares), expected)


def test_a_graph_recovers_itself_and_nothing_of_its_complement():
    true = random_precision(15, 30, seed=2)
    complement = np.where(true == 0, 0.01, 0.0) + np.eye(15)
    np.testing.assert_array_equal(edge_recovery(true, true), [1, 1, 1])
    np.testing.assert_array_equal(edge_recovery(true, complement), [0, 0, 0])
    np.testing.assert_array_equal(edge_recovery(true, np.eye(15)), [0, 0, 0])


def test_fractions_come_in_the_order_of_the_shares():
    true = random_precision(20, 40, seed=3)
    estimate = random_precision(20, 60, seed=4)
    forwards, backwards = edge_recovery(true, estimate, (0.1, 1.0)), edge_recovery(true, estimate, (1.0, 0.1))
    assert forwards[0] != forwards[1]
    np.testing.assert_array_equal(forwards, backwards[::-1])


def test_only_the_strongest_true_edges_are_looked_for():
    true = np.eye(4)
    true[0, 1] = true[1, 0] = 0.5
    true[2, 3] = true[3, 2] = 0.1
    weak_only = np.eye(4)
    weak_only[2, 3] = weak_only[3, 2] = 0.9
    np.testing.assert_array_equal(edge_recovery(true, weak_only, (0.5, 1.0)), [0.0, 0.5])


def test_a_dense_estimate_is_cut_to_as_many_edges_as_are_true():
    true = random_precision(12, 10, seed=5)
    noise = np.random.default_rng(6).uniform(0.5, 1.0, (12, 12))
    dense = noise + noise.T + 20 * np.eye(12)
    truth_below_noise = np.where((true != 0) & ~np.eye(12, dtype=bool), 1e-3, dense)
    truth_above_noise = np.where((true != 0) & ~np.eye(12, dtype=bool), 5.0, dense)
    assert edge_recovery(true, truth_below_noise, [1.0]) == 0.0
    assert edge_recovery(true, truth_above_noise, [1.0]) == 1.0


def test_rescaling_nodes_changes_nothing():
    true, estimate = random_precision(20, 40, seed=7), random_precision(20, 100, seed=8)
    scale = np.diag(10.0 ** np.random.default_rng(9).uniform(-3, 3, 20))
    expected = edge_recovery(true, estimate)
    assert 0 < expected.max() < 1
    np.testing.assert_array_equal(edge_recovery(scale @ true @ scale, estimate), expected)
    np.testing.assert_array_equal(edge_recovery(true, scale @ estimate @ scale), expected)


def test_the_sign_of_an_edge_does_not_matter():
    true = random_precision(20, 40, seed=10)
    flipped = 2 * np.diag(true.diagonal()) - true
    np.testing.assert_array_equal(edge_recovery(true, flipped), [1, 1, 1])


def test_ties_go_to_the_smaller_indices():
    all_equal = np.full((4, 4), 0.1) + 0.9 * np.eye(4)
    first_three, last_three = np.eye(4), np.eye(4)
    for i, j in [(0, 1), (0, 2), (0, 3)]:
        first_three[i, j] = first_three[j, i] = 0.2
    for i, j in [(1, 2), (1, 3), (2, 3)]:
        last_three[i, j] = last_three[j, i] = 0.2
    np.testing.assert_array_equal(edge_recovery(first_three, all_equal, [1.0]), [1.0])
    np.testing.assert_array_equal(edge_recovery(last_three, all_equal, [1.0]), [0.0])
    np.testing.assert_array_equal(edge_recovery(all_equal, first_three, [0.5, 1.0]), [1.0, 0.5])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_storage_gives_what_dense_storage_gives(kind):
    true, estimate = random_precision(20, 40, seed=11), random_precision(20, 80, seed=12)
    expected = edge_recovery(true, estimate)
    np.testing.assert_array_equal(edge_recovery(kind(true), kind(estimate)), expected)
    np.testing.assert_array_equal(edge_recovery(true, kind(estimate)), expected)


def test_stored_zeros_and_rounding_dust_are_no_edges():
    true = random_precision(20, 40, seed=13)
    dusty = true + np.where(true == 0, 1e-15, 0.0)
    stored_zeros = sparse.csr_array(dusty)
    stored_zeros.data[stored_zeros.data == 1e-15] = 0.0
    estimate = random_precision(20, 100, seed=14)
    expected = edge_recovery(true, estimate)
    np.testing.assert_array_equal(edge_recovery(dusty, estimate), expected)
    np.testing.assert_array_equal(edge_recovery(stored_zeros, estimate), expected)


def test_a_hundred_thousand_nodes_need_no_dense_matrix():
    n_nodes = 100_000  # dense, this would be 80 GB
    chain = sparse.diags_array(
        [np.full(n_nodes, 2.5), np.full(n_nodes - 1, -1.0), np.full(n_nodes - 1, -1.0)], offsets=[0, 1, -1]
    )
    np.testing.assert_array_equal(edge_recovery(chain, chain), [1, 1, 1])


def test_inputs_are_left_alone():
    true = random_precision(10, 20, seed=15)
    dense, stored = true.copy(), sparse.csr_array(true)
    before = stored.copy()
    edge_recovery(dense, stored)
    np.testing.assert_array_equal(dense, true)
    assert (stored != before).nnz == 0


def test_matrices_that_are_no_precisions_are_refused():
    eye = np.eye(3)
    with pytest.raises(InvalidGraphError, match="true_precision is 2 x 3"):
        edge_recovery(np.zeros((2, 3)), eye)
    with pytest.raises(InvalidGraphError, match="true_precision has 3 nodes but estimated_precision has 4"):
        edge_recovery(eye, np.eye(4))
    with pytest.raises(InvalidGraphError, match=r"estimated_precision is not symmetric: entry \(0, 1\) is 0\.5"):
        edge_recovery(eye, eye + np.diag([0.5, 0.0], k=1))
    with pytest.raises(InvalidGraphError, match="estimated_precision has 1 diagonal entries that are not positive"):
        edge_recovery(eye, np.diag([1.0, 0.0, 1.0]))
    with pytest.raises(InvalidGraphError, match="true_precision has 1 entries that are NaN or infinite"):
        edge_recovery(np.diag([1.0, np.nan, 1.0]), eye)
    with pytest.raises(InvalidGraphError, match="true_precision has no edges"):
        edge_recovery(eye, eye)


@pytest.mark.parametrize(
    "shares", [(0.0, 0.1), (1.1,), (float("nan"),), 0.1, ["x"], ["0.5"], np.array([0.5j]), [[0.1], [0.2, 0.3]]]
)
def test_shares_outside_the_unit_interval_are_refused(shares):
    graph = random_precision(5, 4, seed=16)
    with pytest.raises(InvalidParameterError, match="shares must lie above 0 and at most at 1"):
        edge_recovery(graph, graph, shares)

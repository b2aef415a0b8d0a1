"""Given graphs of unknown worth: their strength is found, and useless ones are left out."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from lgmd.exceptions import InvalidGraphError
from lgmd.graphs import FactorMoments, GraphEstimate, PriorGraph, Side, as_learner, candidates
from lgmd.graphs import summary as graph_summary
from lgmd.graphs.laplacians import laplacian
from lgmd.graphs.strength import WeightedGraph, likeliest_ratio
from lgmd.observed import as_observed

COLUMNS = Side("feature_graph", "columns")


def chain(n):
    return candidates.chain(n).astype(float)


def grid(side):
    places = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    return candidates.within(places, 1.0).astype(float)


def random_graph(n, degree, rng):
    upper = np.triu(rng.random((n, n)) < degree / n, 1).astype(float)
    return upper + upper.T


def signed_laplacian(adjacency):
    adjacency = scipy.sparse.csr_array(adjacency).toarray()
    return np.diag(np.abs(adjacency).sum(axis=1)) - adjacency


def draw(adjacency, ratio, k, rng):
    """Columns from ``N(0, (I + r L)^-1)``."""
    lower = np.linalg.cholesky(np.eye(adjacency.shape[0]) + ratio * signed_laplacian(adjacency))
    return np.linalg.solve(lower.T, rng.standard_normal((len(lower), k)))


def learned(X, adjacency, **moments):
    return PriorGraph(adjacency).learn(FactorMoments(X, **moments), GraphEstimate.identity(len(X)))


def relative_error(adjacency, ratio, k):
    """Standard error of the ratio's logarithm by its Fisher information, with scale and mean row unknown too."""
    values = np.linalg.eigvalsh(signed_laplacian(adjacency))[1:]
    slopes = ratio * values / (1 + ratio * values)
    return 1 / np.sqrt(k * len(values) * slopes.var() / 2)


# Strength


@pytest.mark.parametrize("ratio", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("adjacency", [chain(100), grid(10)], ids=["chain", "grid"])
def test_the_strength_of_the_graph_that_made_the_factor_is_found(adjacency, ratio, rng):
    estimate = learned(draw(adjacency, ratio, 3000, rng), adjacency)
    assert np.log(estimate.strength / ratio) == pytest.approx(0, abs=4 * relative_error(adjacency, ratio, 3000))
    expected = np.eye(100) + estimate.strength * signed_laplacian(adjacency)
    deviations = np.sqrt(np.diag(np.linalg.inv(expected)))
    np.testing.assert_allclose(
        estimate.precision.toarray(), deviations[:, None] * expected * deviations, atol=1e-12 * expected.max()
    )
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(estimate.precision.toarray())[1])


@pytest.mark.parametrize("ratio", [0.3, 3.0])
def test_opposite_nodes_have_negative_weights(ratio, rng):
    # The rows' mean, which the model of a signed graph does not leave out, is one direction of a hundred.
    signs = rng.choice([-1.0, 1.0], 100)
    adjacency = signs[:, None] * grid(10).toarray() * signs
    X = draw(adjacency, ratio, 3000, rng)
    error = 4 * relative_error(adjacency, ratio, 3000) + 0.06
    assert np.log(learned(X, adjacency).strength / ratio) == pytest.approx(0, abs=error)
    # With the signs forgotten it says next to nothing: of 180 edges half join equal signs, give or take a tenth.
    assert learned(X, np.abs(adjacency)).strength < 0.25 * ratio


@pytest.mark.parametrize("n", [8, 20, 50])
def test_taking_rows_about_their_mean_does_not_weaken_small_graphs(n, rng):
    X = draw(chain(n), 5.0, 20_000, rng)
    assert learned(X, chain(n)).strength == pytest.approx(5.0, rel=4 * relative_error(chain(n), 5.0, 20_000))


def test_what_all_rows_have_in_common_does_not_count(rng):
    X = draw(chain(80), 2.0, 20, rng)
    expected = learned(X, chain(80)).strength
    assert learned(X + 10 * rng.standard_normal(20), chain(80)).strength == pytest.approx(expected, rel=2e-3)


def test_the_scale_of_the_factor_does_not_matter(rng):
    X = draw(chain(60), 2.0, 20, rng)
    expected = learned(X, chain(60))
    for scale in (1e-12, 1e12, -3.0):
        found = learned(scale * X, chain(60))
        assert found.strength == pytest.approx(expected.strength, rel=1e-6)
        np.testing.assert_allclose(found.precision.toarray(), expected.precision.toarray(), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_the_unit_of_the_weights_does_not_matter(unit, rng):
    X = draw(grid(8), 2.0, 20, rng)
    expected, found = learned(X, grid(8)), learned(X, unit * grid(8))
    assert found.strength * unit == pytest.approx(expected.strength, rel=1e-6)
    np.testing.assert_allclose(found.precision.toarray(), expected.precision.toarray(), atol=1e-7)


def test_permuting_nodes_permutes_the_graph(rng):
    weights = grid(7).toarray() * rng.uniform(0.5, 2.0, (49, 49))
    adjacency = (weights + weights.T) / 2
    X, order = draw(adjacency, 2.0, 20, rng), rng.permutation(49)
    expected = learned(X, adjacency)
    found = learned(X[order], adjacency[np.ix_(order, order)])
    np.testing.assert_allclose(found.precision.toarray(), expected.precision.toarray()[np.ix_(order, order)], rtol=1e-6)
    assert found.logdet == pytest.approx(expected.logdet)


def test_rotating_the_columns_changes_nothing(rng):
    X = draw(chain(50), 2.0, 10, rng)
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    assert learned(X @ rotation, chain(50)).strength == pytest.approx(learned(X, chain(50)).strength, rel=1e-6)


def test_weights_say_how_close_two_nodes_are(rng):
    # Half of the edges of the chain are a hundred times stronger than the others.
    weights = np.where(np.arange(99) % 2, 10.0, 0.1)
    adjacency = np.diag(weights, 1) + np.diag(weights, -1)
    X = draw(adjacency, 1.0, 500, rng)
    weighted, plain = learned(X, adjacency), learned(X, (adjacency > 0).astype(float))
    assert weighted.strength == pytest.approx(1.0, rel=4 * relative_error(adjacency, 1.0, 500) + 0.02)
    partial = graph_summary.partial_correlations(weighted.precision).diagonal(1)
    # Inner nodes have the same degree, so that the partial correlations differ as the weights do.
    assert partial[51] / partial[50] == pytest.approx(100)

    def fit(estimate):
        """Log-likelihood a column at the best scale, for rows of unit variance."""
        scaled = (X - X.mean(axis=0)) / np.sqrt(np.diag(np.linalg.inv(np.eye(100) + signed_laplacian(adjacency))))[
            :, None
        ]
        quadratic = np.sum(scaled * (estimate.precision @ scaled))
        return estimate.logdet / 2 - 50 * np.log(quadratic / (100 * 500))

    assert fit(weighted) > fit(plain) + 1
    assert fit(plain) > fit(GraphEstimate.identity(100)) + 1


# Factors that are known with error


def posterior_of(X, precision):
    """Mean and summed variance of each row where it was seen once a column with this precision, each row on its own."""
    rng = np.random.default_rng(99)
    n, k = X.shape
    seen = X + rng.standard_normal((n, k)) / np.sqrt(precision)[:, None]
    share = precision / (1 + precision)
    return share[:, None] * seen, k / (1 + precision), seen


def at_unit_variance(adjacency, ratio, k, rng):
    """Columns of that graph whose rows have unit variance on average."""
    covariance = np.linalg.inv(np.eye(adjacency.shape[0]) + ratio * signed_laplacian(adjacency))
    return draw(adjacency, ratio, k, rng) / np.sqrt(np.diag(covariance).mean())


@pytest.mark.parametrize("ratio", [1.0, 10.0])
@pytest.mark.parametrize("accuracy", [0.3, 3.0, 100.0])
def test_the_strength_is_found_through_uncertainty(ratio, accuracy, rng):
    adjacency = grid(10)
    precision = accuracy * rng.uniform(0.3, 3.0, 100)
    mean, variance, _ = posterior_of(at_unit_variance(adjacency, ratio, 1500, rng), precision)
    found = learned(mean, adjacency, variance=variance)
    # The search stops within a fifth of the logarithm.
    assert np.log(found.strength / ratio) == pytest.approx(0, abs=0.25)


def test_the_likelihood_is_that_of_what_was_seen(rng):
    adjacency, n, k = grid(5), 25, 30
    precision = rng.uniform(0.5, 5.0, n)
    mean, variance, seen = posterior_of(at_unit_variance(adjacency, 3.0, k, rng), precision)
    graph = WeightedGraph.of_adjacency(adjacency)
    ratio, gain = likeliest_ratio(graph, graph.spectrum(), FactorMoments(mean, variance))
    # Contrasts of the rows have the likelihood that is left when the mean row is integrated out.
    contrasts = np.linalg.svd(np.ones((1, n)))[2][1:]

    def log_likelihood(ratio):
        covariance = np.linalg.inv(np.eye(n) + ratio * signed_laplacian(adjacency))
        covariance = covariance / np.diag(covariance).mean() + np.diag(1 / precision)
        covariance = contrasts @ covariance @ contrasts.T
        quadratic = np.sum(contrasts @ seen * np.linalg.solve(covariance, contrasts @ seen)) / k
        return -(np.linalg.slogdet(covariance)[1] + quadratic) / 2

    assert gain == pytest.approx(log_likelihood(ratio) - log_likelihood(0.0), abs=1e-8)
    best = max(log_likelihood(each) for each in 10 ** np.linspace(-3, 3, 200)) - log_likelihood(0.0)
    # A fifth of the logarithm from the top of a parabola of this width.
    assert 0.98 * best < gain <= best + 1e-3


def test_uncertain_rows_say_nothing(rng):
    X = draw(chain(60), 5.0, 20, rng)
    assert learned(0.01 * X, chain(60), variance=np.full(60, 20.0)).strength == 0.0
    assert learned(np.zeros((60, 20)), chain(60), variance=np.full(60, 20.0)).strength == 0.0
    assert learned(X, chain(60), variance=np.full(60, 1.0), effective_columns=0.2).strength == 0.0


def test_random_edges_are_left_out_of_uncertain_factors_too():
    kept = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        mean, variance, _ = posterior_of(rng.standard_normal((80, 15)), rng.uniform(0.3, 10.0, 80))
        kept += learned(mean, random_graph(80, 4, rng), variance=variance).n_edges > 0
    assert kept == 0


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_the_unit_of_the_weights_does_not_matter_under_uncertainty(unit, rng):
    mean, variance, _ = posterior_of(at_unit_variance(grid(8), 2.0, 40, rng), np.full(64, 4.0))
    expected = learned(mean, grid(8), variance=variance)
    found = learned(mean, unit * grid(8), variance=variance)
    assert expected.strength > 0.5
    np.testing.assert_allclose(found.precision.toarray(), expected.precision.toarray(), atol=1e-6)


# Graphs that say nothing


@pytest.mark.parametrize(("n", "k"), [(20, 20), (60, 5), (150, 20)])
def test_random_edges_are_left_out(n, k):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        estimate = learned(rng.standard_normal((n, k)), random_graph(n, 4, rng))
        assert estimate.strength == 0.0
        assert (estimate.precision != scipy.sparse.eye_array(n, format="csr")).nnz == 0
        assert estimate.logdet == 0.0


def test_random_edges_are_left_out_however_much_structure_there_is():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = draw(chain(120), 5.0, 20, rng)
        assert learned(X, chain(120)).strength > 1.0
        # What the random graph shares with the chain is as strong as two in a hundred edges can be.
        assert learned(X, random_graph(120, 2, rng)).strength < 0.1


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_a_common_mode_does_not_make_random_edges_strong(size):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((100, 15)) + size * rng.standard_normal(15)
        assert learned(X, random_graph(100, 5, rng)).strength == 0.0


def test_rows_that_are_zero_or_alike_say_nothing():
    for X in (np.zeros((30, 3)), np.ones((30, 3)), np.tile([1.0, -2.0], (30, 1))):
        estimate = learned(X, chain(30))
        assert estimate.strength == 0.0
        assert estimate.n_edges == 0


def test_a_graph_is_given_up_when_the_factors_do(rng):
    X = draw(chain(60), 5.0, 20, rng)
    strong = learned(X, chain(60))
    found = PriorGraph(chain(60)).learn(FactorMoments(rng.standard_normal((60, 20))), strong)
    assert strong.strength > 1
    assert found.strength == 0.0
    assert found.n_edges == 0


def test_the_answer_does_not_depend_on_the_graph_before(rng):
    X = draw(chain(60), 5.0, 20, rng)
    estimate = learned(X, chain(60))
    again = PriorGraph(chain(60)).learn(FactorMoments(X), estimate)
    assert again.strength == estimate.strength


# What may be passed


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        scipy.sparse.csr_array,
        scipy.sparse.coo_matrix,
        scipy.sparse.lil_array,
        lambda a: a.astype(int),
        lambda a: a.astype(bool),
        lambda a: a.tolist(),
        lambda a: a + np.diag(np.arange(40.0)),
    ],
    ids=["dense", "csr", "coo", "lil", "int", "bool", "list", "with a diagonal"],
)
def test_any_symmetric_matrix_will_do_and_is_left_alone(form, rng):
    X = draw(chain(40), 2.0, 20, rng)
    adjacency = form(chain(40).toarray())
    before = scipy.sparse.csr_array(adjacency).toarray() if scipy.sparse.issparse(adjacency) else np.array(adjacency)
    expected = learned(X, chain(40))
    np.testing.assert_allclose(learned(X, adjacency).precision.toarray(), expected.precision.toarray(), rtol=1e-9)
    start = PriorGraph(adjacency).start(as_observed(rng.standard_normal((40, 7))), COLUMNS)
    assert start.n_edges == 0
    after = scipy.sparse.csr_array(adjacency).toarray() if scipy.sparse.issparse(adjacency) else np.array(adjacency)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("form", [np.zeros, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_a_graph_without_edges_is_no_graph(form, rng):
    adjacency = form((9, 9))
    start = PriorGraph(adjacency).start(as_observed(rng.standard_normal((9, 5))), COLUMNS)
    found = learned(rng.standard_normal((9, 4)), adjacency)
    for estimate in (start, found):
        np.testing.assert_array_equal(estimate.precision.toarray(), np.eye(9))
        assert (estimate.logdet, estimate.strength, estimate.n_edges) == (0.0, 0.0, 0)


def test_isolated_nodes_are_fine(rng):
    adjacency = np.zeros((60, 60))
    adjacency[:50, :50] = chain(50).toarray()
    X = np.vstack([draw(chain(50), 5.0, 30, rng), rng.standard_normal((10, 30))])
    estimate = learned(X, adjacency)
    assert estimate.strength > 1
    assert estimate.n_edges == 49
    assert np.linalg.eigvalsh(estimate.precision.toarray())[0] > 0


def broken_laplacian():
    """Of a graph with a node that has no edge."""
    adjacency = chain(6).toarray()
    adjacency[5] = adjacency[:, 5] = 0
    return laplacian(scipy.sparse.csr_array(adjacency))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.eye(5), "^feature_graph is 5 x 5 but the data has 6 columns. A graph over columns must be 6 x 6.$"),
        (scipy.sparse.eye_array(7), "^feature_graph is 7 x 7 but the data has 6 columns"),
        (np.ones((6, 5)), "^feature_graph is 6 x 5, but a graph over n nodes is an n x n matrix"),
        (np.full((6, 6), np.nan), "^feature_graph has 36 entries that are NaN or infinite"),
        (np.diag([np.inf] * 6), "^feature_graph has 6 entries that are NaN or infinite"),
        (np.triu(np.ones((6, 6))), r"^feature_graph is not symmetric: entry \(0, 1\) is 1, but \(1, 0\) is 0"),
        (np.eye(6) * 1j, "^feature_graph holds complex128 values"),
        (None, "^feature_graph needs an adjacency matrix, but was given None. Pass the matrix itself, 6 x 6.$"),
        (chain, "^feature_graph needs an adjacency matrix, but was given a function, which is taken for candidates al"),
        (laplacian(chain(6)), "^feature_graph looks like a Laplacian: its rows sum to zero. What is needed is the adj"),
        (1e-8 * laplacian(chain(6)).toarray(), "^feature_graph looks like a Laplacian"),
        (broken_laplacian(), "^feature_graph looks like a Laplacian"),
    ],
    ids=[
        "small",
        "large",
        "oblong",
        "nan",
        "inf",
        "asymmetric",
        "complex",
        "none",
        "function",
        "laplacian",
        "tiny",
        "isolated node",
    ],
)
def test_what_is_no_adjacency_of_these_nodes_is_refused(wrong, message, rng):
    with pytest.raises(InvalidGraphError, match=message):
        PriorGraph(wrong).start(as_observed(rng.standard_normal((6, 9))), COLUMNS)


def test_signs_that_cancel_make_no_laplacian(rng):
    # Rows of a ring with alternating signs sum to zero too, but nothing is on the diagonal.
    ring = np.zeros((6, 6))
    for i in range(6):
        ring[i, (i + 1) % 6] = ring[(i + 1) % 6, i] = (-1.0) ** i
    assert PriorGraph(ring).start(as_observed(rng.standard_normal((6, 9))), COLUMNS).n_edges == 0


def test_it_is_a_value_and_known_by_no_name():
    assert PriorGraph(chain(5)) == PriorGraph(chain(5))
    assert PriorGraph(chain(5)) != PriorGraph(2 * chain(5))
    assert as_learner(PriorGraph(chain(5)), "sample_graph") == PriorGraph(chain(5))
    assert PriorGraph(chain(5)).rounds == 1


# Size


@pytest.fixture(scope="module")
def long_walks():
    """Thirty thousand nodes in a chain, as stationary walks with a correlation of 0.8 between neighbours."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 10))
    for i in range(1, len(X)):
        X[i] = 0.8 * X[i - 1] + 0.6 * X[i]
    return X


def test_thirty_thousand_nodes_need_no_dense_array(long_walks):
    n = len(long_walks)
    adjacency = chain(n)
    tracemalloc.start()
    try:
        estimate = learned(long_walks, adjacency)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150e6  # a dense array would be 7.2 GB
    # The precision of such walks has 1 + 0.8^2 on the diagonal and -0.8 beside it: (1 - 0.8)^2 I + 0.8 L. Neighbours
    # say it to a hundredth of a per cent, twelve random probes of the log-determinant to some per cent.
    assert estimate.strength == pytest.approx(0.8 / 0.04, rel=0.1)
    assert estimate.n_edges == n - 1
    exact = np.sum(np.log1p(estimate.strength * (2 - 2 * np.cos(np.pi * np.arange(n) / n))))
    variances = estimate.precision.diagonal() / (1 + estimate.strength * adjacency.sum(axis=1))
    # In the middle of the chain, where the variance is 1 / sqrt(1 + 4 r).
    assert variances[n // 2] == pytest.approx(1 / np.sqrt(1 + 4 * estimate.strength), rel=1e-4)
    # Half a per cent of the log-determinant is two standard errors of the probes.
    assert estimate.logdet - np.log(variances).sum() == pytest.approx(exact, rel=0.01)


def test_random_edges_among_thirty_thousand_are_left_out(long_walks):
    rng = np.random.default_rng(1)
    n = len(long_walks)
    rows, columns = rng.integers(0, n, 60_000), rng.integers(0, n, 60_000)
    different = rows != columns
    half = scipy.sparse.csr_array((np.ones(different.sum()), (rows[different], columns[different])), shape=(n, n))
    estimate = learned(long_walks, half + half.T)
    assert estimate.strength == 0.0

"""The evidence graph: edges where the factor shows them, none where it does not."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from lgmd import LGMD
from lgmd.datasets import make_matrix_normal
from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs import EvidenceGraph, FactorMoments, GraphEstimate, PriorGraph, Side, as_learner, candidates
from lgmd.graphs import evidence as evidence_module
from lgmd.graphs import neighborhoods as neighborhoods_module
from lgmd.observed import as_observed

ROWS = Side("sample_graph", "rows")


def learned(X, learner=None, **moments):
    """The graph of a factor; nobody asks for the order of its rows, in which blocks and chains would stand."""
    learner = EvidenceGraph() if learner is None else learner
    learner = replace(learner, order=False) if isinstance(learner, EvidenceGraph) else learner
    return learner.learn(FactorMoments(X, **moments), GraphEstimate.identity(len(X)))


def factors(family, seed=0, n=100, k=40):
    """Rows drawn from a family of graphs, and which pairs are joined."""
    data = make_matrix_normal(n, k, rank=k, sample_graph=family, feature_graph="none", random_state=seed)
    return data.sample_factors, data.sample_precision.toarray() != 0


def edges(estimate):
    upper = scipy.sparse.triu(estimate.precision, k=1).tocoo()
    kept = upper.data != 0
    return upper.coords[0][kept], upper.coords[1][kept], upper.data[kept]


def pair_set(estimate):
    rows, columns, _ = edges(estimate)
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


def assert_precision(estimate):
    """Symmetric, positive definite, with unit variances and its log-determinant."""
    dense = estimate.precision.toarray()
    assert isinstance(estimate.precision, scipy.sparse.csr_array)
    np.testing.assert_allclose(dense, dense.T, atol=1e-14)
    assert np.linalg.eigvalsh(dense)[0] > 0
    np.testing.assert_allclose(np.diag(np.linalg.inv(dense)), 1.0, rtol=1e-6)
    assert estimate.logdet == pytest.approx(np.linalg.slogdet(dense)[1], abs=1e-8)


def assert_no_graph(estimate, n):
    assert estimate.n_edges == 0
    assert (estimate.logdet, estimate.strength) == (0.0, 0.0)
    np.testing.assert_array_equal(estimate.precision.toarray(), np.eye(n))


# Nothing


@pytest.mark.parametrize(("n", "k"), [(30, 10), (60, 3), (60, 40), (100, 20), (300, 5)])
def test_independent_rows_have_no_graph(n, k):
    # In one table of a hundred some edges are found, give or take; three of thirty would be a sign of more.
    found = [learned(np.random.default_rng(seed).standard_normal((n, k))).n_edges for seed in range(30)]
    assert sum(count == 0 for count in found) >= 28


@pytest.mark.parametrize("n", [2, 3, 4, 6, 10, 15])
@pytest.mark.parametrize("k", [3, 20, 200])
def test_few_independent_rows_have_no_graph_either(n, k):
    # About their mean two rows are opposite, and three are half so, whatever they are.
    found = [learned(np.random.default_rng(seed).standard_normal((n, k))).n_edges for seed in range(15)]
    assert sum(count == 0 for count in found) >= 13


def test_what_all_rows_have_in_common_makes_no_neighbours():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        assert learned(rng.standard_normal((80, 20)) + 5 * rng.standard_normal(20)).n_edges == 0


def test_neither_do_columns_or_rows_of_different_size():
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 20)) * np.exp(rng.standard_normal(20)) * np.exp(rng.standard_normal((80, 1)) / 2)
        found += learned(X).n_edges > 0
    assert found <= 2


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("k", [2, 5, 12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_on_a_line_or_in_a_plane_have_no_graph(rank, k, dtype):
    # On a line any two rows are alike or opposite, in held-out columns too.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rotated = (rng.standard_normal((40, rank)) @ rng.standard_normal((rank, k))).astype(dtype)
        assert_no_graph(learned(rotated), 40)
        round_off = np.finfo(dtype).eps * np.outer(rotated[:, 0], np.ones(k))
        round_off[:, :rank] += rotated[:, :rank]
        assert_no_graph(learned(round_off.astype(dtype), EvidenceGraph(neighbors=3)), 40)


@pytest.mark.parametrize("k", [3, 5])
def test_three_directions_are_enough_for_a_graph(k):
    X = in_blocks(120, 3, np.random.default_rng(0), size=30) + np.repeat(10 * np.eye(4)[:, :3], 30, axis=0)
    estimate = learned(np.hstack([X, np.zeros((120, k - 3))]))
    rows, columns, _ = edges(estimate)
    assert len(rows) > 60
    assert np.mean(rows // 30 == columns // 30) > 0.9


def test_a_table_of_rank_one_has_no_graph(rng):
    table = np.outer(rng.standard_normal(40), rng.standard_normal(30))
    model = LGMD(n_components=5, inference="map", intercept="none", random_state=0).fit(table)
    for graph in (model.sample_graph_, model.feature_graph_):
        np.testing.assert_array_equal(graph.toarray(), np.eye(graph.shape[0]))


# Something


@pytest.mark.parametrize("family", ["chain", "blocks", "geometric"])
@pytest.mark.parametrize("seed", range(3))
def test_edges_that_are_there_are_found(family, seed):
    X, joined = factors(family, seed)
    estimate = learned(X)
    rows, columns, weights = edges(estimate)
    assert_precision(estimate)
    assert len(rows) > 90
    # Of all pairs one in a hundred is joined in the chain, six in the other two.
    assert joined[rows, columns].mean() > 0.6
    # The factors are positively correlated over edges, so the precision is negative there.
    assert (weights < 0).mean() > 0.75
    assert estimate.strength > 0.5


@pytest.mark.parametrize(("noise", "true_share", "found_share"), [(0.0, 0.95, 0.86), (0.3, 0.8, 0.78)])
def test_edges_that_chance_found_are_left_out(noise, true_share, found_share):
    """In columns that found them they explain as much as others, so that those held out have to speak.

    Rows are known exactly, or as a posterior knows them that has seen them with noise.
    """
    shares = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        causes = np.repeat(rng.standard_normal((10, 15)), 7, axis=0)
        X = np.sqrt(0.7) * causes + np.sqrt(0.3) * rng.standard_normal((70, 15))
        doubt = noise**2 / (1 + noise**2)
        known = {"variance": np.full(70, 15 * doubt)} if noise else {}
        found = pair_set(learned((1 - doubt) * (X + noise * rng.standard_normal(X.shape)), **known))
        right = sum(i // 7 == j // 7 for i, j in found)
        shares.append((right / len(found), right / 210))
    assert np.all(np.mean(shares, axis=0) > (true_share, found_share))


def test_nearly_every_edge_of_a_chain_is_found():
    X, _ = factors("chain")
    found = pair_set(learned(X))
    assert sum((i, i + 1) in found for i in range(99)) > 95


def test_single_precision_finds_the_same_edges():
    X, _ = factors("blocks")
    single, double = learned(X.astype(np.float32)), learned(X)
    assert pair_set(single) == pair_set(double)
    assert single.strength == pytest.approx(double.strength, rel=1e-3)


@pytest.mark.parametrize("family", ["chain", "blocks", "geometric"])
def test_opposite_rows_are_joined_by_negative_edges(family):
    X, joined = factors(family, seed=1)
    signs = np.random.default_rng(3).choice([-1.0, 1.0], 100)
    estimate = learned(signs[:, None] * X)
    rows, columns, weights = edges(estimate)
    assert_precision(estimate)
    assert joined[rows, columns].mean() > 0.6
    true = joined[rows, columns]
    assert np.mean(weights[true] < 0) == pytest.approx(0.5, abs=0.15)
    assert np.mean(np.sign(-weights[true]) == (signs[rows] * signs[columns])[true]) > 0.95


@pytest.mark.parametrize("family", ["chain", "blocks"])
def test_flipping_rows_flips_the_signs_of_their_edges(family):
    X, _ = factors(family)
    rng = np.random.default_rng(0)
    one, other = rng.choice([-1.0, 1.0], (2, 100))
    # The mean row is taken out first, which no flip leaves alone: start with none on either side.
    basis = np.linalg.qr(np.stack([one, other], axis=1))[0]
    X = X - basis @ (basis.T @ X)
    learner = EvidenceGraph(neighbors=3)
    first, second = learned(one[:, None] * X, learner), learned(other[:, None] * X, learner)
    flip = one * other
    assert first.n_edges > 90
    assert pair_set(first) == pair_set(second)
    # Only how much two independent rows differ about their mean, a hundredth, does not flip with them.
    np.testing.assert_allclose(second.precision.toarray(), flip[:, None] * first.precision.toarray() * flip, rtol=0.03)


# Limits


def test_only_candidates_become_edges():
    X, _ = factors("blocks")
    rows, columns = np.triu_indices(100, 1)
    allowed = np.random.default_rng(0).random(len(rows)) < 0.3
    adjacency = scipy.sparse.csr_array((np.ones(allowed.sum()), (rows[allowed], columns[allowed])), shape=(100, 100))
    estimate = learned(X, EvidenceGraph(candidates=adjacency))
    assert 20 < estimate.n_edges < learned(X).n_edges
    assert pair_set(estimate) <= set(zip(rows[allowed].tolist(), columns[allowed].tolist(), strict=True))


def test_candidates_may_be_a_function_and_must_not_be_taken():
    X, _ = factors("chain")
    estimate = learned(X, EvidenceGraph(candidates=candidates.chain))
    assert pair_set(estimate) == {(i, i + 1) for i in range(99)}
    noise = np.random.default_rng(0).standard_normal((100, 20))
    assert_no_graph(learned(noise, EvidenceGraph(candidates=candidates.chain)), 100)


def test_where_no_pair_may_be_joined_there_is_no_graph():
    X, _ = factors("blocks")
    assert_no_graph(learned(X, EvidenceGraph(candidates=np.zeros((100, 100)))), 100)
    assert_no_graph(learned(X, EvidenceGraph(candidates=np.eye(100))), 100)


@pytest.mark.parametrize("m", [1, 2, 4, 12])
@pytest.mark.parametrize("flipped", [False, True])
def test_each_edge_joins_a_row_to_one_of_its_nearest(m, flipped):
    X, _ = factors("blocks")
    X = X * np.random.default_rng(1).choice([-1.0, 1.0], (100, 1)) if flipped else X
    estimate = learned(X, EvidenceGraph(neighbors=m))
    centred = X - X.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = unit @ unit.T
    rows, columns, weights = edges(estimate)
    assert len(rows) > 30
    scores = np.abs(cosines) if np.any(weights > 0) else cosines.copy()
    np.fill_diagonal(scores, -np.inf)
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    assert np.all(np.minimum(ranks[rows, columns], ranks[columns, rows]) < m)
    np.testing.assert_array_equal(np.sign(-weights), np.sign(cosines[rows, columns]))


def test_more_neighbours_than_rows_are_all_of_them():
    X, _ = factors("blocks", n=20, k=20)
    every, more = (learned(X, EvidenceGraph(neighbors=neighbors)) for neighbors in (19, 50))
    np.testing.assert_array_equal(more.precision.toarray(), every.precision.toarray())


def test_a_smaller_rate_is_more_careful_among_pairs_that_are_tested(monkeypatch):
    monkeypatch.setattr(neighborhoods_module, "ALL_ROWS", 50)
    monkeypatch.setattr(evidence_module, "ALL_ROWS", 50)
    X, joined = factors("blocks", k=30)
    counts = []
    for fdr in (1e-3, 0.02, 0.4):
        rows, columns, _ = edges(learned(X, EvidenceGraph(fdr=fdr, neighbors=8)))
        counts.append(len(rows))
        assert np.mean(~joined[rows, columns]) <= max(2 * fdr, 0.05)
    assert 0 < counts[0] < counts[1] < counts[2]


# What was there before


def test_learning_from_the_same_factor_again_changes_nothing():
    X, _ = factors("blocks")
    first = learned(X)
    again = EvidenceGraph(order=False).learn(FactorMoments(X), first)
    np.testing.assert_array_equal(again.precision.toarray(), first.precision.toarray())


def test_it_is_the_same_every_time_and_leaves_the_factor_alone():
    X, _ = factors("geometric")
    before = X.copy()
    np.testing.assert_array_equal(learned(X).precision.toarray(), learned(X).precision.toarray())
    np.testing.assert_array_equal(X, before)


# A graph that is given


def drawn(laplacians, k, rng):
    precision = np.eye(len(laplacians[0])) + sum(laplacians)
    values, vectors = np.linalg.eigh(precision)
    return vectors @ (rng.standard_normal((len(values), k)) / np.sqrt(values)[:, None])


def dense_laplacian(adjacency):
    return np.diag(adjacency.sum(axis=1)) - adjacency


def test_learned_edges_are_added_to_a_given_graph(rng):
    chain = candidates.chain(80).toarray().astype(float)
    partners = np.zeros((80, 80))
    partners[np.arange(40), np.arange(40) + 40] = 1.0
    partners += partners.T
    X = drawn([2 * dense_laplacian(chain), 15 * dense_laplacian(partners)], 60, rng)
    estimate = learned(X, EvidenceGraph(prior=chain))
    found = pair_set(estimate)
    assert {(i, i + 1) for i in range(79)} <= found
    assert sum((i, i + 40) in found for i in range(40)) > 35
    assert_precision(estimate)
    assert estimate.strength > 0.3
    # Both say more than either.

    def fit(estimate):
        centred = X - X.mean(axis=0)
        return estimate.logdet / 2 - 40 * np.log(np.sum(centred * (estimate.precision @ centred)) / (80 * 60))

    assert fit(estimate) > fit(learned(X, PriorGraph(chain))) + 1
    assert fit(estimate) > fit(learned(X))


def test_a_given_graph_stays_alone_where_nothing_is_found(rng):
    chain = candidates.chain(80).astype(float)
    X = drawn([0.5 * dense_laplacian(chain.toarray())], 30, rng)
    nowhere = np.zeros((80, 80))
    estimate = learned(X, EvidenceGraph(candidates=nowhere, prior=chain))
    alone = learned(X, PriorGraph(chain))
    assert alone.strength > 0.1
    np.testing.assert_array_equal(estimate.precision.toarray(), alone.precision.toarray())
    assert (estimate.strength, estimate.logdet) == (alone.strength, alone.logdet)


def test_a_useless_graph_and_nothing_found_is_no_graph():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.random((60, 60)) < 0.05, 1).astype(float)
        assert_no_graph(learned(rng.standard_normal((60, 20)), EvidenceGraph(prior=upper + upper.T)), 60)


def test_a_useless_graph_beside_real_edges_is_left_out():
    X, _ = factors("blocks")
    rng = np.random.default_rng(5)
    upper = np.triu(rng.random((100, 100)) < 0.02, 1).astype(float)
    beside = learned(X, EvidenceGraph(prior=upper + upper.T))
    np.testing.assert_array_equal(beside.precision.toarray(), learned(X).precision.toarray())


# Awkward factors


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 3, 9])
def test_tiny_factors_will_do(n, k):
    rng = np.random.default_rng(n * 10 + k)
    for learner in (EvidenceGraph(), EvidenceGraph(neighbors=1), EvidenceGraph(candidates=candidates.chain)):
        estimate = learned(rng.standard_normal((n, k)), learner)
        assert np.all(np.isfinite(estimate.precision.toarray()))
        assert np.linalg.eigvalsh(estimate.precision.toarray())[0] > 0


def test_one_column_cannot_be_held_out():
    assert_no_graph(learned(np.linspace(-1, 1, 50)[:, None]), 50)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((40, 6)),
        np.ones((40, 6)),
        np.tile(np.arange(6.0), (40, 1)),
        np.full((40, 6), 1e-200),
    ],
    ids=["zeros", "ones", "equal rows", "tiny"],
)
def test_rows_without_differences_have_no_graph(X):
    assert_no_graph(learned(X), 40)
    assert learned(X, EvidenceGraph(prior=candidates.chain(40).astype(float))).n_edges == 0


def test_rows_and_columns_of_zeros_do_no_harm():
    X, joined = factors("blocks")
    with_zeros = X.copy()
    with_zeros[[3, 50, 98]] = 0.0
    estimate = learned(with_zeros)
    rows, columns, _ = edges(estimate)
    assert_precision(estimate)
    assert joined[rows, columns].mean() > 0.8
    wide = np.hstack([X, np.zeros((100, 5))])
    estimate = learned(wide)
    rows, columns, _ = edges(estimate)
    assert joined[rows, columns].mean() > 0.8


def test_rows_that_are_the_same_are_joined(rng):
    X = np.repeat(rng.standard_normal((30, 20)), 2, axis=0)
    estimate = learned(X)
    assert_precision(estimate)
    assert {(2 * i, 2 * i + 1) for i in range(30)} <= pair_set(estimate)
    assert np.isfinite(estimate.strength)


# Symmetries


@pytest.mark.parametrize("family", ["chain", "blocks", "geometric"])
def test_permuting_rows_permutes_the_graph(family):
    X, _ = factors(family)
    order = np.random.default_rng(2).permutation(100)
    expected, found = learned(X), learned(X[order])
    np.testing.assert_allclose(found.precision.toarray(), expected.precision.toarray()[np.ix_(order, order)], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-20, 3.0, -0.7, 1e20])
def test_the_scale_of_the_factor_does_not_matter(scale):
    X, _ = factors("blocks")
    np.testing.assert_allclose(learned(scale * X).precision.toarray(), learned(X).precision.toarray(), atol=1e-9)


def test_what_all_rows_share_does_not_matter():
    X, _ = factors("blocks")
    shifted = X + 10 * np.random.default_rng(0).standard_normal(40)
    np.testing.assert_allclose(learned(shifted).precision.toarray(), learned(X).precision.toarray(), atol=1e-9)


# Uncertainty


def test_an_uncertain_factor_has_a_weaker_graph_and_then_none():
    X, _ = factors("blocks")
    # Rows of 40 columns with unit variance have squares near 40.
    found = [learned(X, EvidenceGraph(neighbors=5), variance=np.full(100, v)) for v in (1e-9, 10.0, 40.0, 400.0, 1e5)]
    strengths = [estimate.strength for estimate in found]
    assert np.all(np.diff(strengths) <= 0)
    assert strengths[0] > strengths[1] > strengths[2] > 0
    assert strengths[-1] == 0.0
    assert_no_graph(found[-1], 100)


def test_fewer_columns_that_say_something_ask_for_more_agreement():
    # A chain so weak that its neighbours agree by some standard errors only.
    rng = np.random.default_rng(0)
    X = drawn([0.25 * dense_laplacian(candidates.chain(60).toarray().astype(float))], 60, rng)
    learner = EvidenceGraph(candidates=candidates.chain)
    assert learned(X, learner).n_edges > 0
    assert learned(X, learner, effective_columns=2.0).n_edges == 0


# What may be passed


@pytest.mark.parametrize("fdr", [0, 0.0, 1.0, 1, -0.1, 2.0])
def test_a_rate_is_between_nothing_and_all(fdr):
    with pytest.raises(
        InvalidParameterError, match=r"fdr is a share of false edges, so it must be in \(0, 1\), but is"
    ):
        EvidenceGraph(fdr=fdr).validate()


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (EvidenceGraph(fdr="0.1"), "fdr must be a number, but is '0.1'"),
        (EvidenceGraph(fdr=None), "fdr must be a number, but is None"),
        (EvidenceGraph(fdr=np.nan), "^fdr must be a finite number, but is nan"),
        (EvidenceGraph(fdr=-np.inf), "^fdr must be a finite number, but is -inf"),
        (EvidenceGraph(neighbors="many"), "neighbors must be 'auto' or an integer, but is 'many'"),
        (EvidenceGraph(neighbors=0), "neighbors must be at least 1, but is 0"),
        (EvidenceGraph(neighbors=2.5), "neighbors must be an integer, but is 2.5"),
        (EvidenceGraph(neighbors=None), "neighbors must be an integer, but is None"),
        (EvidenceGraph(order="days"), "order must be True or False, but is 'days'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(learner, message):
    with pytest.raises(InvalidParameterError, match=message):
        as_learner(learner, "sample_graph")


def test_candidates_and_graphs_that_do_not_fit_are_refused():
    data = as_observed(np.random.default_rng(0).standard_normal((6, 9)))
    with pytest.raises(InvalidGraphError, match=r"^candidates of sample_graph is 5 x 5 but the data has 6 rows"):
        EvidenceGraph(candidates=np.ones((5, 5))).start(data, ROWS)
    with pytest.raises(InvalidGraphError, match=r"^prior of sample_graph is 5 x 5 but the data has 6 rows"):
        EvidenceGraph(prior=np.ones((5, 5))).start(data, ROWS)
    with pytest.raises(InvalidGraphError, match=r"^prior of sample_graph looks like a Laplacian(?!.*PriorGraph)"):
        EvidenceGraph(prior=dense_laplacian(candidates.chain(6).toarray().astype(float))).start(data, ROWS)
    with pytest.raises(InvalidGraphError, match=r"^prior of sample_graph needs an adjacency matrix, but was given a"):
        EvidenceGraph(prior=candidates.chain).start(data, ROWS)


def test_it_starts_without_edges_and_goes_by_its_name():
    data = as_observed(np.random.default_rng(0).standard_normal((6, 9)))
    assert_no_graph(EvidenceGraph().start(data, ROWS), 6)
    assert as_learner("evidence", "sample_graph") == EvidenceGraph()
    assert EvidenceGraph(candidates=candidates.chain(4)) == EvidenceGraph(candidates=candidates.chain(4))
    assert EvidenceGraph(prior=candidates.chain(4)) != EvidenceGraph(prior=candidates.chain(5))
    assert EvidenceGraph().rounds == 2


# A second look


def test_it_looks_again_as_it_did_the_first_time():
    X, _ = factors("blocks")
    first, second = learned(X[:, :20]), learned(X, variance=np.zeros(100))
    assert pair_set(first) != pair_set(second)
    again = EvidenceGraph(order=False).relearn(FactorMoments(X, np.zeros(100)), first)
    assert pair_set(again) == pair_set(second)
    # Points without error bars confirm what has shaped them.
    assert EvidenceGraph(order=False).relearn(FactorMoments(X), first) is first


def test_what_is_not_found_again_stays():
    graph = learned(factors("blocks")[0])
    noise = np.random.default_rng(1).standard_normal((100, 40))
    assert EvidenceGraph().relearn(FactorMoments(noise, np.zeros(100)), graph) is graph


def test_a_graph_that_was_known_beforehand_and_stands_alone_stays_as_it_is():
    X, _ = factors("chain")
    identity, chain = GraphEstimate.identity(100), candidates.chain(100)
    given = PriorGraph(chain).learn(FactorMoments(X), identity)
    assert given.n_edges == 99
    for learner in (EvidenceGraph(), EvidenceGraph(prior=chain)):
        assert not learner.looks_again(given)
        assert learner.looks_again(learned(factors("blocks")[0]))
    assert EvidenceGraph(order=False).looks_again(given)


def test_a_graph_that_is_found_again_is_not_much_stronger():
    """Factors that a graph has shaped would find it stronger each time."""
    X, _ = factors("geometric")
    first, identity = learned(X), GraphEstimate.identity(100)
    assert 0 < first.strength < 100
    # As alike as a strong graph makes them, and as if nothing were uncertain.
    smooth = np.linalg.solve(first.precision.toarray() @ first.precision.toarray(), X)
    moments = FactorMoments(smooth, np.zeros(100))
    stronger = EvidenceGraph(order=False).learn(moments, identity)
    again = EvidenceGraph(order=False).relearn(moments, first)
    degrees = [2 * graph.n_edges / 100 for graph in (first, again, stronger)]
    assert stronger.strength * degrees[2] > 2 * first.strength * degrees[0]
    assert again.strength * degrees[1] == pytest.approx(1.5 * first.strength * degrees[0])


# Many rows


@pytest.fixture
def many(monkeypatch):
    """Every table is one of many rows."""
    monkeypatch.setattr(neighborhoods_module, "ALL_ROWS", 50)
    monkeypatch.setattr(evidence_module, "ALL_ROWS", 50)


def test_among_many_rows_blocks_are_found_too(many):
    X, joined = factors("blocks", n=300, k=40)
    estimate = learned(X)
    rows, columns, _ = edges(estimate)
    assert_precision(estimate)
    assert len(rows) > 200
    assert joined[rows, columns].mean() > 0.85
    for seed in range(10):
        noise = np.random.default_rng(seed).standard_normal((300, 20))
        assert learned(noise).n_edges < 5


def in_blocks(n, k, rng, size=10):
    shared = np.repeat(rng.standard_normal((n // size, k)), size, axis=0)
    return np.sqrt(0.8) * shared + np.sqrt(0.2) * rng.standard_normal((n, k))


def test_six_thousand_rows_need_no_square_array():
    rng = np.random.default_rng(0)
    X = in_blocks(6000, 25, rng).astype(np.float32)
    tracemalloc.start()
    try:
        estimate = learned(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    rows, columns, _ = edges(estimate)
    assert peak < 150e6  # a square array would be 288 MB
    assert np.mean(rows // 10 == columns // 10) > 0.9
    assert len(rows) > 10_000
    assert estimate.precision.diagonal().min() >= 1.0  # a row's variance is at least that which its others leave
    assert learned(rng.standard_normal((6000, 25)).astype(np.float32)).n_edges < 20


def test_twenty_thousand_rows_will_do():
    rng = np.random.default_rng(0)
    X = in_blocks(20_000, 25, rng).astype(np.float32)
    signs = rng.choice([-1.0, 1.0], 20_000).astype(np.float32)
    estimate = learned(signs[:, None] * X)
    rows, columns, weights = edges(estimate)
    assert np.mean(rows // 10 == columns // 10) > 0.9
    assert np.mean(np.sign(-weights) == signs[rows] * signs[columns]) > 0.95
    assert len(rows) > 30_000
    assert learned(rng.standard_normal((20_000, 25)).astype(np.float32)).n_edges < 20


def test_a_graph_that_nothing_proves_leaves_out_rows_of_which_little_is_known(rng):
    X = rng.standard_normal((60, 4))
    X[40:] *= 0.3  # a tenth of their squares is known, the rest is variance
    variance = np.where(np.arange(60) < 40, 0.1, 4 * 0.91)
    offered = EvidenceGraph().unproven(FactorMoments(X, variance), GraphEstimate.identity(60))
    degrees = (offered.precision != 0).sum(axis=1) - 1
    assert offered.logdet == pytest.approx(np.linalg.slogdet(offered.precision.toarray())[1])
    assert degrees[:40].max() > 1
    assert not degrees[40:].any()

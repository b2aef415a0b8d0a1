"""The order of the rows: a graph where rows that follow each other are alike, nothing where they are not."""

import numpy as np
import pytest
import scipy.sparse

from lgmd import LGMD, LGMDPlus
from lgmd.datasets import make_matrix_normal
from lgmd.exceptions import InvalidParameterError
from lgmd.graphs import EvidenceGraph, FactorMoments, GraphEstimate, LaplacianGraph, PriorGraph, candidates, evidence
from lgmd.graphs.order import order_of_rows
from lgmd.graphs.strength import WeightedGraph, best_ratio
from lgmd.metrics import rmse

LEARNERS = [EvidenceGraph(), LaplacianGraph()]


def adjacency(n):
    return candidates.chain(n).toarray().astype(float)


def in_order(n, k, rng, ratio=3.0, *others):
    """Columns drawn with the precision I + ratio L of a chain, and of other graphs."""
    precision = np.eye(n)
    for graph, strength in [(adjacency(n), ratio), *others]:
        precision += strength * (np.diag(graph.sum(axis=1)) - graph)
    return np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal((n, k)))


def learned(learner, X, **moments):
    return learner.learn(FactorMoments(X, **moments), GraphEstimate.identity(len(X)))


def steps(estimate):
    """How far apart the ends of edges are in the order."""
    upper = scipy.sparse.triu(estimate.precision, k=1).tocoo()
    rows, columns = (each[upper.data != 0] for each in upper.coords)
    return columns - rows


def test_rows_in_order_have_the_strength_of_a_given_chain(rng):
    X = in_order(80, 6, rng)
    found = order_of_rows(FactorMoments(X))
    expected = learned(PriorGraph(adjacency(80)), X)
    np.testing.assert_allclose(found.precision.toarray(), expected.precision.toarray(), rtol=1e-9)
    assert found.strength == pytest.approx(expected.strength)
    assert found.strength > 1
    assert found.n_edges == 79


@pytest.mark.parametrize(("n", "k"), [(3, 4), (20, 3), (100, 20), (500, 6)])
def test_rows_in_no_order_have_none(n, k):
    found = [
        order_of_rows(FactorMoments(np.random.default_rng(seed).standard_normal((n, k)))).n_edges for seed in range(40)
    ]
    # Five nats are gained by chance once in a thousand times.
    assert np.count_nonzero(found) <= 1


def test_rows_in_order_that_are_shuffled_have_none(rng):
    X = in_order(200, 10, rng)
    assert order_of_rows(FactorMoments(X)).n_edges == 199
    assert order_of_rows(FactorMoments(rng.permutation(X))).n_edges == 0


def test_what_the_order_hardly_explains_is_left_out(rng):
    def n_edges(n, correlation, k=4):
        return order_of_rows(FactorMoments(in_chain(n, k, correlation, rng))).n_edges

    # By any test these are certain, but of little use.
    assert n_edges(5000, 0.04) == 0
    assert n_edges(5000, 0.2) == 4999
    # The more rows, the more it costs to couple them.
    assert n_edges(20_000, 0.2) == 0
    assert n_edges(20_000, 0.5) == 19_999
    assert n_edges(20_000, 0.5, k=50) == 0


def in_chain(n, k, correlation, rng):
    """An autoregressive process of unit variance."""
    noise = rng.standard_normal((n, k))
    X = np.empty((n, k))
    X[0] = noise[0]
    for i in range(1, n):
        X[i] = correlation * X[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
    return X


@pytest.mark.parametrize("X", [np.zeros((20, 3)), np.ones((20, 3)), np.ones((2, 3)), np.ones((1, 3))])
@pytest.mark.parametrize("learner", LEARNERS, ids=["evidence", "laplacian"])
def test_rows_without_differences_are_in_no_order(learner, X):
    assert order_of_rows(FactorMoments(X)).n_edges == 0
    if X.any() and len(X) > 2:
        assert np.isfinite(learned(learner, X).logdet)


def test_repeated_columns_count_once(rng):
    column = rng.standard_normal((40, 1))
    # A column whose neighbours are alike a little, by chance: ten copies of it say no more than one.
    column = column + 0.25 * np.roll(column, 1, axis=0)
    repeated = column @ np.ones((1, 30))
    assert order_of_rows(FactorMoments(repeated)).n_edges == order_of_rows(FactorMoments(column)).n_edges == 0


def test_uncertain_rows_say_less(rng):
    X = in_order(100, 6, rng)
    squares = float(np.mean(X**2))
    gains = [
        order_of_rows(FactorMoments(share * X / np.sqrt(squares), np.full(100, 6 * (1 - share)))).n_edges
        for share in (0.9, 0.5, 0.01)
    ]
    assert gains == [99, 99, 0]


def test_the_evidence_graph_finds_the_order_where_it_finds_no_neighbours(rng):
    # Four columns are too few to find neighbours among 300 rows by.
    X = in_order(300, 4, rng)
    assert learned(EvidenceGraph(order=False), X).n_edges == 0
    found = learned(EvidenceGraph(), X)
    assert found.n_edges == 299
    assert np.all(steps(found) == 1)
    expected = learned(PriorGraph(adjacency(300)), X)
    np.testing.assert_allclose(found.precision.toarray(), expected.precision.toarray(), rtol=1e-9)


def test_neighbours_are_found_beside_the_order(rng):
    partners = np.zeros((80, 80))
    partners[np.arange(40), np.arange(40) + 40] = 1.0
    X = in_order(80, 20, rng, 20.0, (partners + partners.T, 20.0))
    found = learned(EvidenceGraph(), X)
    assert np.sum(steps(found) == 1) == 79
    assert np.sum(steps(found) == 40) > 35
    np.testing.assert_allclose(np.diag(np.linalg.inv(found.precision.toarray())), 1.0, rtol=1e-6)
    assert found.logdet == pytest.approx(np.linalg.slogdet(found.precision.toarray())[1], abs=1e-8)


@pytest.mark.parametrize("family", ["blocks", "geometric"])
def test_an_order_that_adds_nothing_to_what_is_found_is_left_out(family):
    data = make_matrix_normal(100, 40, rank=40, sample_graph=family, feature_graph="none", random_state=0)
    X = data.sample_factors
    found, alone = learned(EvidenceGraph(), X), learned(EvidenceGraph(order=False), X)
    np.testing.assert_array_equal(found.precision.toarray(), alone.precision.toarray())


def test_groups_end_where_rows_that_follow_each_other_are_neither_joined_nor_alike(rng):
    groups = WeightedGraph.of_adjacency(scipy.sparse.block_diag([np.ones((6, 6)) - np.eye(6)] * 10, format="csr"))
    noise = 0.3 * rng.standard_normal((60, 20))
    sorted_by_groups = np.repeat(rng.standard_normal((10, 20)), 6, axis=0) + noise
    assert evidence._ends_with_groups(groups, FactorMoments(sorted_by_groups))
    # The order goes on between them, edges join few of the rows that follow each other, or there are no ends.
    assert not evidence._ends_with_groups(groups, FactorMoments(in_order(60, 20, rng, 30.0)))
    pairs = WeightedGraph.of_adjacency(scipy.sparse.block_diag([np.ones((2, 2)) - np.eye(2)] * 30, format="csr"))
    assert not evidence._ends_with_groups(pairs, FactorMoments(sorted_by_groups))
    all_joined = WeightedGraph.of_adjacency(scipy.sparse.csr_array(adjacency(60)))
    assert not evidence._ends_with_groups(all_joined, FactorMoments(sorted_by_groups))


def test_a_table_is_not_joined_where_the_ends_of_its_groups_decide(monkeypatch):
    data = make_matrix_normal(100, 100, 20, sample_graph="blocks", feature_graph="blocks", noise=0.3, random_state=7)

    def graph(**settings):
        model = LGMD(20, sample_graph=EvidenceGraph(**settings), feature_graph="none")
        return model.fit(data.noisy).sample_graph_.toarray()

    # On most tables like this one edges explain more than the order, or join too few rows that follow each other.
    np.testing.assert_array_equal(graph(), graph(order=False))
    monkeypatch.setattr(evidence, "_ends_with_groups", lambda *_: False)
    assert np.all(np.diag(graph(), 1) != 0)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_groups_that_edges_join_in_part_does_no_harm(seed):
    data = make_matrix_normal(100, 100, 20, sample_graph="blocks", feature_graph="blocks", noise=0.5, random_state=seed)
    with_order, without = (
        LGMD(20, sample_graph=EvidenceGraph(order=order), feature_graph="none").fit(data.noisy).reconstruct()
        for order in (True, False)
    )
    # On ten tables errors were from 0.4 % lower to 0.2 % higher.
    assert rmse(data.truth, with_order) < 1.005 * rmse(data.truth, without)


def test_groups_in_an_order_that_goes_on_between_them_are_joined(rng):
    groups = np.kron(np.eye(14), np.ones((7, 7))) - np.eye(98)
    X = in_order(98, 20, rng, 5.0, (groups, 1.0))
    found = learned(EvidenceGraph(), X)
    assert np.sum(steps(found) == 1) == 97
    assert np.sum(steps(found) > 1) > 50


def test_two_rows_that_are_unlike_by_chance_do_not_end_an_order():
    kept = [learned(EvidenceGraph(), in_chain(100, 10, 0.7, np.random.default_rng(seed))) for seed in range(22)]
    assert all(np.sum(steps(estimate) == 1) == 99 for estimate in kept if estimate.n_edges)


def test_rows_that_are_the_same_as_the_next_do_no_harm(rng):
    X = np.repeat(rng.standard_normal((30, 20)), 2, axis=0)
    for learner in LEARNERS:
        estimate = learned(learner, X)
        assert np.linalg.eigvalsh(estimate.precision.toarray())[0] > 0


@pytest.mark.parametrize("learner", [EvidenceGraph, LaplacianGraph])
def test_candidates_and_given_graphs_leave_the_order_alone(learner, rng):
    X = in_order(100, 12, rng)
    far = candidates.chain(100, 30).toarray() & ~candidates.chain(100).toarray()
    assert np.all(steps(learned(learner(candidates=far), X)) > 1)
    with pytest.raises(InvalidParameterError, match="order must be True or False, but is 1"):
        learner(order=1).validate()


def test_a_given_graph_takes_the_place_of_the_order(rng):
    X = in_order(60, 12, rng)
    skipping = np.zeros((60, 60))
    skipping[np.arange(30), np.arange(30) + 30] = 1.0
    learner = EvidenceGraph(prior=skipping + skipping.T)
    with_order, without = (learned(each, X) for each in (learner, EvidenceGraph(prior=learner.prior, order=False)))
    np.testing.assert_array_equal(with_order.precision.toarray(), without.precision.toarray())


def test_lgmd_plus_joins_rows_in_order_and_no_others(rng):
    X = in_order(100, 8, rng)
    everywhere, found = learned(LaplacianGraph(order=False), X), learned(LaplacianGraph(), X)
    assert steps(everywhere).max() > 1
    assert np.all(steps(found) == 1)
    expected = learned(LaplacianGraph(candidates=candidates.chain), X)
    np.testing.assert_array_equal(found.precision.toarray(), expected.precision.toarray())
    # The next rounds stay with it, and factors whose graph joins others stay with that.
    for first in (found, everywhere):
        again = LaplacianGraph().learn(FactorMoments(X), first)
        assert (steps(again).max() == 1) == (first is found)


def test_lgmd_plus_joins_any_rows_where_that_explains_more():
    data = make_matrix_normal(100, 100, rank=100, sample_graph="blocks", feature_graph="none", random_state=0)
    found = learned(LaplacianGraph(), data.sample_factors)
    assert order_of_rows(FactorMoments(data.sample_factors)).n_edges == 99
    assert steps(found).max() > 1


def test_a_factor_of_one_column_has_nothing_to_judge_with(rng):
    X = in_order(60, 1, rng, 30.0)
    np.testing.assert_array_equal(
        learned(LaplacianGraph(), X).precision.toarray(), learned(LaplacianGraph(order=False), X).precision.toarray()
    )


@pytest.mark.parametrize("ratio", [0.2, 3.0, 50.0])
def test_the_roughness_of_a_ratio_is_that_to_which_it_suits_best(ratio):
    rows = np.arange(49)
    graph = WeightedGraph(50, rows, rows + 1, np.ones(49))
    found, _ = best_ratio(50, graph.spectrum(), graph.roughness_of(ratio))
    assert found == pytest.approx(ratio, rel=0.01)


@pytest.mark.parametrize("model", [LGMD, LGMDPlus])
@pytest.mark.parametrize("axis", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_model_is_better_for_the_order_of_its_table(model, axis):
    """Either side; the same table in another order is fitted as if nobody had asked."""
    rng = np.random.default_rng(3)
    truth = in_order(120, 4, rng, 10.0) @ rng.standard_normal((4, 40))
    truth /= truth.std()
    noisy = truth + rng.standard_normal(truth.shape)
    if axis:
        truth, noisy = truth.T, noisy.T
    order = [rng.permutation(n) if i == axis else np.arange(n) for i, n in enumerate(truth.shape)]

    def error(table, truth, **settings):
        return rmse(truth, model(8, **settings).fit(table).reconstruct())

    shuffled = np.ix_(*order)
    without = {"LGMD": EvidenceGraph, "LGMDPlus": LaplacianGraph}[model.__name__](order=False)
    plain = error(noisy, truth, sample_graph=without, feature_graph=without)
    assert error(noisy, truth) < (0.96 if model is LGMD else 0.97) * plain
    if model is LGMD:
        assert error(noisy[shuffled], truth[shuffled]) == pytest.approx(plain, rel=1e-3)

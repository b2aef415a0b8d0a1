"""Neighbours among the rows of a factor: who they are, how surely, and how alike in other columns."""

import numpy as np
import pytest
import scipy.stats

from lgmd.graphs import FactorMoments, neighborhoods
from lgmd.graphs.neighborhoods import Agreement, NeighborhoodSearch


def search(X, most=5, fdr=0.1, allowed=None, **moments):
    return NeighborhoodSearch(FactorMoments(X, **moments), most, fdr, allowed)


def everything(X, absolute=False, **options):
    return search(X, **options).among(np.arange(X.shape[1]), absolute)


def all_cosines(X):
    lengths = np.linalg.norm(X, axis=1)
    unit = X / np.where(lengths > 0, lengths, 1.0)[:, None]
    return unit @ unit.T


def in_blocks(n, k, rng, size=5, shared=0.7):
    causes = np.repeat(rng.standard_normal((-(-n // size), k)), size, axis=0)[:n]
    return np.sqrt(shared) * causes + np.sqrt(1 - shared) * rng.standard_normal((n, k))


def by_brute_force(X, most, absolute, allowed=None):
    """Pairs with ranks and cosines, the slow way."""
    n = len(X)
    cosines = all_cosines(X)
    scores = np.abs(cosines) if absolute else cosines.copy()
    possible = ~np.eye(n, dtype=bool)
    if allowed is not None:
        possible = np.zeros((n, n), dtype=bool)
        possible[allowed] = True
        possible |= possible.T
    found = {}
    for i in range(n):
        others = np.flatnonzero(possible[i])
        for rank, j in enumerate(others[np.argsort(-scores[i, others], kind="stable")][:most]):
            if scores[i, j] > 0:
                pair = (min(i, int(j)), max(i, int(j)))
                found[pair] = min(rank, found.get(pair, n))
    return {pair: (rank, cosines[pair]) for pair, rank in found.items()}


def as_dict(found):
    pairs = zip(found.rows.tolist(), found.columns.tolist(), strict=True)
    return dict(zip(pairs, zip(found.ranks.tolist(), found.cosines.tolist(), strict=True), strict=True))


def assert_same(found, expected):
    found = as_dict(found)
    assert found.keys() == expected.keys()
    for pair, (rank, cosine) in expected.items():
        assert found[pair][0] == rank
        assert found[pair][1] == pytest.approx(cosine, abs=1e-12)


# Who is near


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(("n", "k", "most"), [(2, 3, 1), (12, 2, 11), (40, 6, 1), (60, 5, 8)])
def test_neighbours_their_ranks_and_cosines_are_those_of_a_full_sort(rng, n, k, most, absolute):
    X = rng.standard_normal((n, k))
    found = everything(X, absolute, most=most)
    assert_same(found, by_brute_force(X, most, absolute))
    assert np.all(found.rows < found.columns)
    assert np.all(np.diff(found.rows * n + found.columns) > 0)
    assert found.n == n


@pytest.mark.parametrize("absolute", [False, True])
def test_only_allowed_pairs_are_neighbours(rng, absolute):
    X = rng.standard_normal((40, 6))
    rows, columns = np.triu_indices(40, 1)
    chosen = np.sort(rng.choice(len(rows), 90, replace=False))
    allowed = (rows[chosen], columns[chosen])
    found = everything(X, absolute, most=3, allowed=allowed)
    assert_same(found, by_brute_force(X, 3, absolute, allowed))
    assert set(zip(found.rows, found.columns, strict=True)) <= set(zip(*allowed, strict=True))
    assert search(X, allowed=allowed).n_tests == 90
    assert search(X).n_tests == 40 * 39 // 2


@pytest.mark.parametrize("absolute", [False, True])
def test_all_pairs_allowed_is_no_limit(rng, absolute):
    X = rng.standard_normal((30, 5))
    free, given = everything(X, absolute), everything(X, absolute, allowed=np.triu_indices(30, 1))
    for name in ("rows", "columns", "ranks", "certain"):
        np.testing.assert_array_equal(getattr(free, name), getattr(given, name))
    np.testing.assert_allclose(free.p_values, given.p_values)


def test_only_the_columns_asked_for_are_looked_at(rng):
    X, columns = rng.standard_normal((30, 10)), np.array([7, 2, 3, 9])
    assert_same(search(X, most=4).among(columns, True), by_brute_force(X[:, columns], 4, True))


def test_opposite_rows_are_near_by_size_and_joined_by_a_negative_edge():
    X = np.array([[1.0, 0.0, 0.1], [-1.0, 0.1, 0.0], [0.0, 0.1, 1.0], [0.05, 0.0, 1.0]])
    found = everything(X, True, most=1)
    assert as_dict(found).keys() == {(0, 1), (2, 3)}
    graph = found.graph(found.near(1))
    np.testing.assert_array_equal(graph.weights, [-1.0, 1.0])
    assert (0, 1) not in as_dict(everything(X, False, most=3))


def test_rows_of_zeros_are_nobodys_neighbours(rng):
    X = rng.standard_normal((20, 4))
    X[[3, 8]] = 0.0
    for absolute in (False, True):
        found = everything(X, absolute, most=19)
        assert not np.isin([3, 8], np.concatenate([found.rows, found.columns])).any()
    nothing = everything(np.zeros((20, 4)))
    assert len(nothing.rows) == len(nothing.certain) == 0


def test_length_does_not_matter(rng):
    X = rng.standard_normal((40, 5))
    assert_same(everything(X * 10 ** rng.uniform(-6, 6, (40, 1)), True), by_brute_force(X, 5, True))


def test_near_are_those_of_low_rank_and_certainly_so_those_that_pass_the_test(rng):
    found = everything(in_blocks(60, 12, rng), most=8)
    assert 0 < found.certain.sum() < len(found.rows)
    for size in (1, 3, 8):
        np.testing.assert_array_equal(found.near(size), found.ranks < size)
        np.testing.assert_array_equal(found.certainly_near(size), (found.ranks < size) & found.certain)
    assert len(found.graph(found.certain)) == found.certain.sum()


# Who shares neighbours


def shared_by_brute_force(X, size, absolute):
    """How many of the nearest of two rows are the same, with signs, the slow way."""
    n, cosines = len(X), all_cosines(X)
    scores = np.abs(cosines) if absolute else cosines.copy()
    np.fill_diagonal(scores, -np.inf)
    nearest = []
    for i in range(n):
        those = np.argsort(-scores[i], kind="stable")[:size].tolist()
        nearest.append({i: 1.0} | {j: np.sign(cosines[i, j]) for j in those if absolute or cosines[i, j] > 0})
    return np.array(
        [[sum(ours[m] * theirs[m] for m in ours.keys() & theirs.keys()) for theirs in nearest] for ours in nearest]
    )


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(("size", "fewest"), [(2, 2), (3, 2), (5, 3), (8, 5)])
def test_rows_that_share_half_of_their_nearest_are_those_of_a_full_count(rng, size, fewest, absolute):
    X = in_blocks(60, 12, rng) * rng.choice([-1.0, 1.0], (60, 1))
    found = everything(X, absolute, most=16)
    shared = shared_by_brute_force(X, size, absolute)[found.rows, found.columns] * np.sign(found.cosines)
    np.testing.assert_array_equal(found.sharing(size), shared >= fewest)
    assert 0 < found.sharing(size).sum() < len(found.rows)


def test_edges_between_rows_that_share_neighbours_are_more_often_true_and_miss_fewer():
    right, found_of = {"near": [], "sharing": []}, {"near": [], "sharing": []}
    for seed in range(20):
        found = everything(in_blocks(70, 12, np.random.default_rng(seed), size=7, shared=0.6), most=16)
        together = found.rows // 7 == found.columns // 7
        for rule in right:
            chosen = getattr(found, rule)(5)
            right[rule].append(together[chosen].mean())
            found_of[rule].append(together[chosen].sum() / (10 * 21))
    assert np.mean(right["sharing"]) > np.mean(right["near"]) + 0.05
    assert np.mean(found_of["sharing"]) > np.mean(found_of["near"])


def test_rows_of_zeros_share_nothing_and_leave_the_others_as_they_are(rng):
    X = in_blocks(40, 12, rng)
    with_zeros = np.insert(X, [7, 20, 40], 0.0, axis=0)
    moved = np.delete(np.arange(43), [7, 21, 42])
    found, alone = everything(with_zeros, most=16), everything(X, most=16)
    for size in (3, 5):
        pairs = {tuple(pair) for pair in np.stack([found.rows, found.columns], axis=1)[found.sharing(size)].tolist()}
        assert pairs == set(zip(*(moved[end[alone.sharing(size)]] for end in (alone.rows, alone.columns)), strict=True))


def test_rows_with_few_candidates_have_little_to_share(rng):
    X = in_blocks(30, 12, rng)
    chain = (np.arange(29), np.arange(1, 30))
    found = everything(X, True, most=16, allowed=chain)
    # Two rows that follow each other, and each is the other's neighbour: two of four, and never three of six.
    np.testing.assert_array_equal(found.sharing(3), np.ones(29, dtype=bool))
    assert not found.sharing(5).any()


# How surely


@pytest.mark.parametrize("k", [2, 3, 5, 20, 100])
def test_p_values_of_independent_rows_are_uniform(k):
    # Each row is in one pair, so that the pairs are independent of each other too.
    n = 6000
    X = np.random.default_rng(k).standard_normal((n, k))
    found = everything(X, True, most=1, allowed=(np.arange(0, n, 2), np.arange(1, n, 2)))
    assert len(found.p_values) == n // 2
    assert scipy.stats.kstest(found.p_values, "uniform").pvalue > 1e-3
    # The tail too, which is all that matters: 30 expected, give or take 5.5.
    assert abs(np.sum(found.p_values < 0.01) - 30) < 4 * 5.5


@pytest.mark.parametrize("k", [4, 30])
def test_p_values_are_those_of_the_known_distribution_of_a_cosine(rng, k):
    # (1 + c) / 2 has a beta distribution with both parameters (k - 1) / 2.
    X = rng.choice([-1.0, 1.0], (50, k))  # every column has the same energy, so k columns count as k
    found = everything(X, True, most=49)
    expected = 2 * scipy.stats.beta.sf((1 + np.abs(found.cosines)) / 2, (k - 1) / 2, (k - 1) / 2)
    np.testing.assert_allclose(found.p_values, np.maximum(expected, found.p_values * (expected < 1e-12)), rtol=1e-6)


def test_columns_that_hold_little_count_for_little(rng):
    X = rng.standard_normal((400, 20)) * np.where(np.arange(20) < 5, 1.0, 1e-4)
    found, five = everything(X, True), everything(np.ascontiguousarray(X[:, :5]), True)
    np.testing.assert_array_equal(found.rows, five.rows)
    np.testing.assert_allclose(found.p_values, five.p_values, rtol=1e-3, atol=1e-9)


def test_the_larger_the_cosine_the_smaller_the_p_value(rng):
    found = everything(rng.standard_normal((80, 6)), True)
    order = np.argsort(np.abs(found.cosines))
    assert np.all(np.diff(found.p_values[order]) <= 0)
    assert np.all((found.p_values >= 0) & (found.p_values <= 1))


def test_rows_that_are_one_have_a_p_value(rng):
    X = np.repeat(rng.standard_normal((10, 4)), 2, axis=0)
    found = everything(X, most=1)
    twins = found.columns == found.rows + 1
    assert np.all(np.isfinite(found.p_values))
    assert found.p_values[twins & (found.rows % 2 == 0)].max() < 1e-12
    # One column tells nothing: every cosine is one.
    flat = everything(rng.standard_normal((10, 1)), most=9)
    assert flat.p_values.min() > 0.5
    assert not flat.certain.any()


def benjamini_hochberg(p_values, n_tests, fdr):
    """The largest p-value that passes takes all smaller ones with it."""
    ordered = np.sort(p_values)
    limit = max((p for rank, p in enumerate(ordered, 1) if p <= fdr * rank / n_tests), default=-1.0)
    return p_values <= limit


@pytest.mark.parametrize("fdr", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("with_limits", [False, True])
def test_certain_pairs_are_those_of_benjamini_and_hochberg(rng, fdr, absolute, with_limits):
    X = in_blocks(60, 14, rng, shared=0.85)
    allowed = None
    if with_limits:
        rows, columns = np.triu_indices(60, 1)
        near = columns - rows < 12
        allowed = (rows[near], columns[near])
    found = everything(X, absolute, most=59, fdr=fdr, allowed=allowed)
    n_tests = 60 * 59 // 2 if allowed is None else len(allowed[0])
    expected = benjamini_hochberg(found.p_values, n_tests, fdr)
    np.testing.assert_array_equal(found.certain, expected)
    assert 0 < expected.sum() < len(expected)


def test_a_larger_rate_finds_more(rng):
    X = in_blocks(60, 15, rng, shared=0.7)
    counts = [everything(X, most=59, fdr=fdr).certain.sum() for fdr in (1e-3, 0.05, 0.5)]
    assert counts[0] < counts[1] < counts[2]


def test_the_rate_of_false_discoveries_holds():
    # Blocks are known, so it is known which pairs are false. The mean share over fits is at most the rate.
    shares = []
    for seed in range(30):
        X = in_blocks(60, 12, np.random.default_rng(seed))
        found = everything(X, most=59, fdr=0.2)
        false = found.rows[found.certain] // 5 != found.columns[found.certain] // 5
        shares.append(false.mean() if len(false) else 0.0)
    assert 0.01 < np.mean(shares) < 0.2


def test_rows_without_structure_have_no_certain_neighbours():
    found = [everything(np.random.default_rng(seed).standard_normal((80, 15)), True) for seed in range(30)]
    # One in ten tables is allowed a discovery: more than eight of thirty is a chance of one in a thousand.
    assert sum(each.certain.any() for each in found) <= 8


# Many rows


@pytest.fixture
def many(monkeypatch):
    """Every table is one of many rows."""
    monkeypatch.setattr(neighborhoods, "ALL_ROWS", 10)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("fdr", [0.01, 0.1])
def test_among_many_rows_the_certain_pairs_are_the_same(rng, monkeypatch, absolute, fdr):
    X = in_blocks(300, 20, rng, shared=0.85) * rng.choice([-1.0, 1.0], (300, 1))
    small = everything(X, absolute, most=8, fdr=fdr)
    monkeypatch.setattr(neighborhoods, "ALL_ROWS", 10)
    large = everything(X, absolute, most=8, fdr=fdr)
    assert small.certain.sum() > 100
    for name in ("rows", "columns", "ranks", "cosines", "p_values"):
        np.testing.assert_allclose(getattr(large, name)[large.certain], getattr(small, name)[small.certain])
    # Of the others only those are there that could have become certain.
    assert len(large.rows) < len(small.rows)


def test_where_too_many_pairs_are_certain_the_nearest_are_looked_for(rng, monkeypatch):
    X = in_blocks(300, 15, rng, size=50)
    small = everything(X, True, most=3)
    monkeypatch.setattr(neighborhoods, "ALL_ROWS", 10)
    monkeypatch.setattr(neighborhoods, "_MOST_A_ROW", 1)
    large = everything(X, True, most=3)
    for name in ("rows", "columns", "ranks", "certain"):
        np.testing.assert_array_equal(getattr(large, name), getattr(small, name))


def test_many_rows_of_nothing_have_no_neighbours(many):
    for X in (np.zeros((50, 3)), np.ones((50, 1)), np.random.default_rng(0).standard_normal((50, 1))):
        assert not everything(X, True).certain.any()


@pytest.mark.parametrize("absolute", [False, True])
def test_some_rows_have_the_neighbours_that_they_have_among_all(rng, absolute):
    X, some = in_blocks(80, 10, rng), np.array([2, 17, 40, 79])
    columns = np.arange(1, 10)
    found = search(X, most=4).of_some(columns, absolute, some, p_limit=0.01)
    cosines = all_cosines(X[:, columns])
    scores = np.abs(cosines) if absolute else cosines.copy()
    np.fill_diagonal(scores, -np.inf)
    expected = set()
    for i in some.tolist():
        for j in np.argsort(-scores[i])[:4].tolist():
            expected.add((min(i, j), max(i, j)))
    assert as_dict(found).keys() == expected
    np.testing.assert_array_equal(found.certain, found.p_values <= 0.01)
    assert 0 < found.certain.sum() < len(found.certain)


# How alike in other columns


def test_agreement_is_the_mean_correlation_of_the_ends(rng):
    X = rng.standard_normal((200, 12))
    X -= X.mean(axis=0)
    found, held = everything(X, True, most=3), np.array([1, 5, 6])
    chosen = found.near(2)
    agreement = found.agreement(chosen, FactorMoments(X), held)
    one, other = X[found.rows[chosen]][:, held], X[found.columns[chosen]][:, held]
    squares = (np.sum(one**2) + np.sum(other**2)) / 2
    products = np.sign(found.cosines[chosen]) * np.sum(one * other, axis=1)
    assert agreement.n_edges == chosen.sum()
    assert agreement.squares == pytest.approx(squares)
    # Rows about their mean lack one direction of two hundred.
    assert agreement.correlation == pytest.approx(products.sum() / squares, abs=2 / 200)


@pytest.mark.parametrize("n", [2, 3, 6, 30])
def test_independent_rows_agree_in_nothing_however_few_they_are(n):
    # About their mean two rows are opposite, three half so. Pairs are taken as they come, with either sign.
    rng = np.random.default_rng(n)
    total = Agreement()
    for _ in range(300):
        X = rng.standard_normal((n, 8))
        found = everything(X - X.mean(axis=0), True, most=n - 1)
        everyone = np.ones(len(found.rows), dtype=bool)
        fresh = rng.standard_normal((n, 8))
        agreement = found.agreement(everyone, FactorMoments(fresh - fresh.mean(axis=0)), np.arange(8))
        total += agreement
    n_products = 300 * 8 * max(1, n * (n - 1) // 2)
    assert total.correlation == pytest.approx(0, abs=4 / np.sqrt(n_products) * np.sqrt(n))


def test_neighbours_agree_more_where_they_were_found_than_elsewhere():
    X = np.random.default_rng(0).standard_normal((200, 20))
    X -= X.mean(axis=0)
    seen, held = np.arange(15), np.arange(15, 20)
    found = search(X, most=3).among(seen, True)
    chosen = found.near(3)
    assert found.agreement(chosen, FactorMoments(X), seen).correlation > 0.5
    # About 450 edges and 5 columns: a standard error of 0.02.
    assert abs(found.agreement(chosen, FactorMoments(X), held).correlation) < 0.08


def test_posterior_variance_lowers_the_agreement(rng):
    X = in_blocks(60, 10, rng)
    X -= X.mean(axis=0)
    found, held = everything(X), np.arange(4)
    chosen = found.near(3)
    certain = found.agreement(chosen, FactorMoments(X), held)
    unsure = found.agreement(chosen, FactorMoments(X, variance=np.full(60, 10.0)), held)
    # A variance of 10 over ten columns is one a column.
    assert unsure.squares == pytest.approx(certain.squares + chosen.sum() * 4)
    assert 0 < unsure.correlation < certain.correlation


def test_agreements_add_up():
    total = Agreement(1.0, 2.0, 3.0) + Agreement(0.5, 2.0, 1.0)
    assert total == Agreement(1.5, 4.0, 4.0)
    assert total.correlation == 0.375
    assert Agreement().correlation == 0.0

"""Each row with the others that it is paired with, nearest first."""

import numpy as np

from lgmd.linalg.neighbors import nearest_of_pairs, ranked_pairs


def test_ranks_are_those_of_a_full_sort(rng):
    rows, columns = np.triu_indices(12, 1)
    chosen = rng.random(len(rows)) < 0.5
    rows, columns = rows[chosen], columns[chosen]
    distances = rng.integers(0, 4, len(rows)).astype(float)  # with ties
    expected = []
    for i in range(12):
        met = [(d, int(b if a == i else a)) for a, b, d in zip(rows, columns, distances, strict=True) if i in (a, b)]
        expected += [(i, other, rank) for rank, (_, other) in enumerate(sorted(met))]
    own, others, ranks = ranked_pairs(rows, columns, distances)
    assert list(zip(own.tolist(), others.tolist(), ranks.tolist(), strict=True)) == expected
    near = nearest_of_pairs(rows, columns, distances, 2)
    assert list(zip(*(part.tolist() for part in near), strict=True)) == [pair[:2] for pair in expected if pair[2] < 2]


def test_no_pairs_have_no_ranks():
    none = np.empty(0, dtype=np.int64)
    assert [len(part) for part in ranked_pairs(none, none, np.empty(0))] == [0, 0, 0]

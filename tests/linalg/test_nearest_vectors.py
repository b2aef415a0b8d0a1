"""Nearest rows by inner product against a full sort."""

import numpy as np
import pytest

from lgmd.linalg.nearest_vectors import nearest_pairs, nearest_vectors


@pytest.mark.parametrize(("n", "m"), [(1, 0), (2, 1), (40, 39), (700, 5), (1500, 12)])
def test_they_are_those_of_a_full_sort(rng, n, m):
    vectors = rng.standard_normal((n, 6))
    products = vectors @ vectors.T
    np.fill_diagonal(products, -np.inf)
    expected = np.argsort(-products, axis=1, kind="stable")[:, :m]
    np.testing.assert_array_equal(nearest_vectors(vectors, m), expected)


def test_ties_go_to_the_lower_row():
    np.testing.assert_array_equal(nearest_vectors(np.ones((5, 2)), 2), [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]])


def test_pairs_are_sorted_and_each_is_there_once(rng):
    vectors = rng.standard_normal((60, 4)).astype(np.float32)
    rows, columns = nearest_pairs(vectors, 3)
    joined = np.zeros((60, 60), dtype=bool)
    np.put_along_axis(joined, nearest_vectors(vectors, 3), True, axis=1)
    expected = np.nonzero(np.triu(joined | joined.T, 1))
    np.testing.assert_array_equal((rows, columns), expected)

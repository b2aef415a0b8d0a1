"""Entries put aside to judge by: a random share, but the same one however the table is written down."""

import numpy as np
import pytest
import scipy.sparse

from lgmd.observed import as_observed, hold_out


def observed(table):
    return as_observed(table, allow_empty_rows=True, allow_empty_columns=True)


def held_places(table, share=0.1, seed=0):
    """Which entries are held out, as an array of the table's shape."""
    _, held = hold_out(observed(table), share, seed)
    places = np.zeros(table.shape, bool)
    places[held.rows, held.columns] = True
    return places


def with_gaps(table, missing, seed=0):
    return np.where(np.random.default_rng(seed).random(table.shape) < missing, np.nan, table)


def numbers(shape=(60, 45)):
    return np.random.default_rng(1).standard_normal(shape)


def ratings(shape=(60, 45)):
    return np.random.default_rng(2).integers(1, 6, shape).astype(float)


def answers(shape=(60, 45)):
    """Yes and no."""
    return np.random.default_rng(3).integers(0, 2, shape).astype(float)


TABLES = {
    "numbers": numbers(),
    "numbers with gaps": with_gaps(numbers(), 0.5),
    "few numbers": with_gaps(numbers(), 0.95),
    "ratings": ratings(),
    "ratings with gaps": with_gaps(ratings(), 0.6),
    "answers": answers(),
    "answers with gaps": with_gaps(answers(), 0.5),
    "square": numbers((40, 40)),
}
tables = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@tables
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_the_order_of_rows_and_columns_does_not_matter(rng, table, share):
    held = held_places(table, share)
    assert held.any()
    rows, columns = rng.permutation(table.shape[0]), rng.permutation(table.shape[1])
    np.testing.assert_array_equal(held_places(table[rows], share), held[rows])
    np.testing.assert_array_equal(held_places(table[:, columns], share), held[:, columns])
    np.testing.assert_array_equal(held_places(table[rows][:, columns], share), held[rows][:, columns])


@tables
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_rows_and_columns_may_change_places(table, share):
    # At the larger share many rows and columns would lose all: which entry they keep must not depend on who is asked.
    for seed in range(3):
        np.testing.assert_array_equal(held_places(table.T, share, seed), held_places(table, share, seed).T)


@tables
@pytest.mark.parametrize("factor", [1e-12, 3.7, -1.0, -250.0])
def test_the_unit_of_the_data_does_not_matter(table, factor):
    np.testing.assert_array_equal(held_places(factor * table), held_places(table))


@tables
def test_storage_does_not_matter(table):
    rows, columns = np.nonzero(~np.isnan(table))
    sparse = scipy.sparse.csr_array((table[rows, columns], (rows, columns)), shape=table.shape)
    np.testing.assert_array_equal(held_places(sparse), held_places(table))


@tables
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_nothing_is_lost_and_nothing_is_there_twice(table, share):
    kept, held = hold_out(observed(table), share)
    entries = kept.entries()
    rows = np.repeat(np.arange(table.shape[0]), np.diff(entries.indptr))
    both = np.full(table.shape, np.nan)
    both[rows, entries.indices] = entries.values
    assert np.isnan(both[held.rows, held.columns]).all()
    both[held.rows, held.columns] = held.values
    np.testing.assert_array_equal(both, table)
    assert kept.n_observed + len(held.values) == np.count_nonzero(~np.isnan(table))
    assert kept.shape == table.shape


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("missing", [0.5, 0.95, 0.99])
def test_every_row_and_column_with_entries_keeps_one(share, missing):
    for table in (with_gaps(numbers(), missing, seed=5), with_gaps(ratings(), missing, seed=5)):
        seen = ~np.isnan(table)
        for seed in range(4):
            kept = seen & ~held_places(table, share, seed)
            np.testing.assert_array_equal(kept.any(axis=1), seen.any(axis=1))
            np.testing.assert_array_equal(kept.any(axis=0), seen.any(axis=0))


def test_a_row_of_one_entry_is_never_asked_for_it():
    assert not held_places(np.diag(np.arange(1.0, 31.0)) + np.where(np.eye(30), 0, np.nan), 0.99).any()


# What no permutation of rows and columns can change tells entries apart only where the table does.
ALIKE = {
    "constant": np.full((60, 45), 7.5),
    "constant rows": np.repeat(numbers((60, 1)), 45, axis=1),
    "each row twice": np.repeat(numbers((30, 45)), 2, axis=0),
    "sum of two levels": (np.arange(60)[:, None] % 2 + np.arange(45) % 2).astype(float),
    "one in each row": (np.arange(60)[:, None] % 45 == np.arange(45)).astype(float),
}


@pytest.mark.parametrize("table", [*TABLES.values(), *ALIKE.values()], ids=[*TABLES, *ALIKE])
def test_the_share_is_the_one_asked_for_and_no_row_is_preferred(table):
    seen = ~np.isnan(table)
    expected = 0.1 * seen.sum()
    for seed in range(3):
        held = held_places(table, 0.1, seed)
        # The number is binomial, but for rows that keep their only entry.
        assert abs(held.sum() - expected) < 4 * np.sqrt(0.9 * expected)
        for axis in (0, 1):
            counts, mean = held.sum(axis=axis), 0.1 * seen.sum(axis=axis)
            if mean.min() > 2:
                # Squared deviations of at least 40 binomial numbers average one, give or take 0.25.
                assert np.mean((counts - mean) ** 2 / (0.9 * mean)) < 2


@pytest.mark.parametrize("table", [TABLES["ratings"], TABLES["ratings with gaps"], TABLES["answers"]])
def test_no_value_is_preferred(table):
    held = held_places(table)
    for value in np.unique(table[~np.isnan(table)]):
        there = table == value
        expected = 0.1 * there.sum()
        assert abs(held[there].sum() - expected) < 4 * np.sqrt(0.9 * expected)


def test_rows_that_are_the_same_are_held_out_apart():
    held = held_places(ALIKE["each row twice"])
    # One in ten of those held out in a row is held out in its twin too.
    assert (held[::2] & held[1::2]).sum() < 0.3 * held[::2].sum()


@tables
def test_another_seed_is_another_choice(table):
    first, second = held_places(table, 0.3, 0), held_places(table, 0.3, 1)
    np.testing.assert_array_equal(held_places(table, 0.3, 0), first)
    expected = first.sum() * second.sum() / np.count_nonzero(~np.isnan(table))
    assert abs((first & second).sum() - expected) < 5 * np.sqrt(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_keep_their_precision(dtype):
    kept, held = hold_out(observed(numbers().astype(dtype)), 0.1)
    assert kept.dtype == held.values.dtype == dtype


@pytest.mark.parametrize("table", [[[1.0, 2.0], [3.0, 5.0]], [[1.0, np.nan], [2.0, 3.0]], [[1.0, np.nan]] * 2])
def test_the_smallest_tables_keep_what_they_need(table):
    table = np.array(table)
    seen = ~np.isnan(table)
    kept = seen & ~held_places(table, 0.99)
    for axis in (0, 1):
        np.testing.assert_array_equal(kept.any(axis=axis), seen.any(axis=axis))

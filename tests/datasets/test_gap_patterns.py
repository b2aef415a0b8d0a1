import numpy as np
import pytest

from lgmd.datasets._gaps import PATTERNS, draw_mask
from lgmd.exceptions import InvalidParameterError

SHAPES = [(100, 100), (40, 7), (7, 40), (3, 2), (1, 5), (2, 2)]


def draw(shape=(100, 100), missing=0.3, pattern="random", seed=0):
    return draw_mask(shape, missing, pattern, np.random.default_rng(seed))


def gap_shares_of_rows(mask):
    return 1 - mask.mean(axis=1)


def hidden_neighbours(mask):
    """Share of hidden entries whose right-hand, and whose lower, neighbour is hidden too."""
    hidden = ~mask
    right = np.mean(hidden[:, 1:][hidden[:, :-1]])
    below = np.mean(hidden[1:][hidden[:-1]])
    return right, below


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("share_of_most", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_number_of_gaps_is_exact_and_no_row_or_column_is_empty(pattern, shape, share_of_most):
    n_entries = shape[0] * shape[1]
    missing = share_of_most * (1 - max(shape) / n_entries)
    for seed in range(3):
        mask = draw(shape, missing, pattern, seed)
        assert mask.dtype == bool
        assert np.count_nonzero(~mask) == round(missing * n_entries)
        assert mask.any(axis=0).all()
        assert mask.any(axis=1).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_seed_gives_one_mask_and_another_seed_another(pattern):
    np.testing.assert_array_equal(draw(pattern=pattern), draw(pattern=pattern))
    assert np.any(draw(pattern=pattern) != draw(pattern=pattern, seed=1))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_place_is_favoured(pattern):
    n_draws = 1_000
    frequency = sum(~draw((6, 6), 0.5, pattern, seed) for seed in range(n_draws)) / n_draws
    # Each entry is hidden half of the time; 5 standard deviations of a fair coin are 5 / sqrt(4 * 1000) = 0.079.
    assert np.abs(frequency - 0.5).max() < 0.08


def test_random_gaps_are_spread_evenly():
    mask = draw(missing=0.3)
    # A row's share of 100 entries has a standard deviation of sqrt(0.3 * 0.7 / 100) = 0.046.
    assert gap_shares_of_rows(mask).std() == pytest.approx(0.046, rel=0.3)
    np.testing.assert_allclose(hidden_neighbours(mask), 0.3, atol=0.05)


def test_gaps_in_rows_range_from_none_to_almost_all():
    shares = gap_shares_of_rows(draw(missing=0.5, pattern="rows"))
    assert shares.std() > 0.25
    assert shares.min() < 0.05
    assert shares.max() > 0.95


def test_gaps_in_rows_are_one_run_a_row():
    hidden = ~draw((100, 50), 0.4, "rows")
    n_starts = np.count_nonzero(hidden & ~np.roll(hidden, 1, axis=1), axis=1)
    assert set(n_starts) <= {0, 1}


def test_gaps_in_blocks_have_hidden_neighbours_on_both_sides():
    right, below = hidden_neighbours(draw(missing=0.3, pattern="blocks"))
    assert right > 0.85
    assert below > 0.85


def test_a_single_small_block_is_a_rectangle_but_for_its_last_row():
    hidden = ~draw((100, 100), 0.002, "blocks", seed=3)
    rows, columns = np.nonzero(hidden)
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    assert len(rows) == 20
    assert width * (height - 1) < 20 <= width * height


def test_a_table_at_the_limit_keeps_one_entry_a_line():
    mask = draw((30, 30), 1 - 30 / 900, "random")
    np.testing.assert_array_equal(mask.sum(axis=0), 1)
    np.testing.assert_array_equal(mask.sum(axis=1), 1)


def test_repairs_move_only_the_gaps_they_must():
    # 95 % missing leaves about 0.6 of 100 rows and as many columns empty; each costs one entry shown and one hidden.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        untouched = ~PATTERNS["random"]((100, 100), 9_500, rng)
        n_empty = np.count_nonzero(~untouched.any(axis=0)) + np.count_nonzero(~untouched.any(axis=1))
        n_moved = np.count_nonzero(untouched != draw(missing=0.95, seed=seed))
        assert n_moved <= 2 * n_empty


@pytest.mark.parametrize("pattern", PATTERNS)
def test_too_many_gaps_are_refused_with_the_largest_share_that_works(pattern):
    with pytest.raises(InvalidParameterError) as caught:
        draw((100, 50), 0.99, pattern)
    assert str(caught.value) == (
        "missing=0.99 hides 4,950 of 5,000 entries, but 100 must stay to leave one in each of 100 rows and "
        "50 columns. Use missing=0.98 or less."
    )
    assert np.count_nonzero(draw((100, 50), 0.98, pattern)) == 100

"""Which belief about noise goes on, told from the losses of trials alone."""

from dataclasses import replace

import numpy as np
import pytest

from lgmd.solver.prior_choice import NoiseBelief, Trial, better_shared, does_better, n_parts

LEARNED, OPTIMISTIC, MORE_SO = NoiseBelief(), NoiseBelief(0.02), NoiseBelief(0.08)
HELD = [NoiseBelief(level=level) for level in (0.4, 0.2, 0.1)]


def choice(columns, losses, *, rank=20, n_dead=0, n_observed=2000, may_hold_noise=True):
    """What is chosen with a loss for each entry, and the trials that it took."""
    asked = []

    def trial(belief, part):
        asked.append((belief, part))
        loss = columns if belief == "bold" else losses[belief]
        noise = 0.1 * np.random.default_rng(part).standard_normal(100)
        return Trial(np.maximum(loss * (1 + noise), 0), 0.3, rank, n_dead)

    return better_shared(trial, "bold", n_observed, may_hold_noise=may_hold_noise), {belief for belief, _ in asked}


def test_while_all_columns_live_less_noise_is_believed_in_where_that_foresees_more():
    found, asked = choice(1.0, {LEARNED: 0.8, MORE_SO: 0.8})
    assert found == LEARNED
    assert asked == {"bold", LEARNED, MORE_SO}
    found = choice(1.0, {LEARNED: 0.8, MORE_SO: 0.7})[0]
    # The short runs expected 0.3 and met 0.7.
    assert found == replace(MORE_SO, unexplained=found.unexplained)
    assert found.unexplained == pytest.approx(0.4, abs=0.02)


def test_without_held_out_entries_for_the_bars_all_noise_is_believed_in():
    found, asked = choice(1.0, {LEARNED: 0.8}, may_hold_noise=False)
    assert found == LEARNED
    assert asked == {"bold", LEARNED}
    losses = {LEARNED: 1.0, OPTIMISTIC: 0.9}
    assert choice(1.1, losses, n_dead=5, may_hold_noise=False)[0] == OPTIMISTIC


def test_few_entries_cannot_tell_less_noise_from_luck():
    assert choice(1.0, {LEARNED: 0.8, MORE_SO: 0.7}, n_observed=20_000)[0] == LEARNED


def test_nothing_is_believed_where_each_column_should_have_its_own_prior():
    found, asked = choice(1.0, {LEARNED: 1.0 + 1e-9})
    assert found is None
    assert asked == {"bold", LEARNED}


def test_the_smallest_tables_are_asked_more_often():
    assert [n_parts(n) for n in (500, 2000, 4000, 10_000, 20_000, 10**6)] == [10, 10, 5, 5, 3, 1]


def test_the_belief_that_foresees_most_goes_on():
    losses = {LEARNED: 1.0, OPTIMISTIC: 0.9, HELD[0]: 0.7, HELD[1]: 0.5, HELD[2]: 0.6}
    found = choice(0.98, losses, n_dead=5)[0]
    assert found.level == 0.2
    # The short runs expected 0.3 and met 0.5.
    assert found.unexplained == pytest.approx(0.2, abs=0.02)
    assert choice(0.4, losses, n_dead=19, rank=1)[0] is None


def test_lower_levels_are_tried_as_long_as_they_help():
    losses = {LEARNED: 1.0, OPTIMISTIC: 1.0, HELD[0]: 0.70, HELD[1]: 0.71, HELD[2]: 0.1}
    found, asked = choice(0.9, losses, n_dead=19, rank=1)
    assert found.level == 0.4
    assert HELD[2] not in asked


@pytest.mark.parametrize("rank", [1, 5])
def test_little_time_is_spent_on_what_loses_anyway(rank):
    losses = {LEARNED: 1.0, **dict.fromkeys([OPTIMISTIC, *HELD], 2.0)}
    found, asked = choice(0.9, losses, n_dead=20 - rank, rank=rank)
    assert found is None
    assert asked == {"bold", LEARNED, HELD[0]}


def test_a_clear_case_needs_one_part():
    parts = []

    def trial(belief, part):
        parts.append(part)
        return Trial(np.full(500, {"bold": 1.0, LEARNED: 0.5}.get(belief, 0.6)), 1.0, 20, 0)

    assert better_shared(trial, "bold", 10_000, may_hold_noise=True) == LEARNED
    assert set(parts) == {0}


@pytest.mark.parametrize("difference", [-0.01, 0.01])
def test_of_two_starts_that_with_less_error_does_better(difference):
    parts = []

    def trial(start, part):
        parts.append(part)
        noise = np.random.default_rng([part, start == "bold"]).standard_normal(1000)
        return Trial(1.0 + 0.1 * noise + (difference if start == "bold" else 0.0), 0.0, 20, 0)

    assert does_better(trial, "cautious", "bold", 20_000) == (difference > 0)
    # A part says it within four standard errors, or another is asked.
    assert set(parts) >= {0, 1}


def test_without_held_out_entries_nothing_does_better():
    assert not does_better(lambda start, part: Trial(np.zeros(0), 0.0, 20, 0), "cautious", "bold", 10)

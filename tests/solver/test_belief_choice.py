"""Which belief about noise goes on, told from the losses of trials alone."""

import numpy as np
import pytest

from lgmd.solver.prior_choice import (
    NoiseBelief,
    Trial,
    better_falling,
    better_shared,
    does_better,
    does_clearly_better,
    unexplained,
)

LEARNED, OPTIMISTIC, MORE_SO = NoiseBelief(), NoiseBelief(0.02), NoiseBelief(0.08)
HELD = [NoiseBelief(level=level) for level in (0.4, 0.2, 0.1)]


def choice(columns, losses, *, curve=None, rank=20, n_dead=0, n_observed=2000, may_doubt_noise=True):
    """What is chosen with a loss for each entry, of held noise by a curve over its levels, and the trials it took."""
    asked = []

    def trial(belief, part):
        asked.append((belief, part))
        # Between the levels that are tried noise is as good as the best of them.
        best = min((losses[held] for held in HELD if held in losses), default=np.inf)
        if belief == "bold":
            loss = columns
        elif curve is not None and belief.level is not None:
            loss = curve(belief.level)
        else:
            loss = losses.get(belief, best)
        noise = 0.1 * np.random.default_rng(part).standard_normal(n_observed // 20)
        return Trial(np.maximum(loss * (1 + noise), 0), lambda: 0.3, rank, n_dead)

    return better_shared(trial, "bold", n_observed, may_doubt_noise=may_doubt_noise), {belief for belief, _ in asked}


def test_while_all_columns_live_less_noise_is_believed_in_where_that_foresees_more():
    found, asked = choice(1.0, {LEARNED: 0.8, MORE_SO: 0.8})
    assert found == LEARNED
    assert asked == {"bold", LEARNED, MORE_SO}
    assert choice(1.0, {LEARNED: 0.8, MORE_SO: 0.7})[0] == MORE_SO


def test_without_held_out_entries_for_the_bars_all_noise_is_believed_in():
    found, asked = choice(1.0, {LEARNED: 0.8}, may_doubt_noise=False)
    assert found == LEARNED
    assert asked == {"bold", LEARNED}
    losses = {LEARNED: 1.0, OPTIMISTIC: 0.9}
    assert choice(1.1, losses, n_dead=5, may_doubt_noise=False)[0] == OPTIMISTIC


def test_few_entries_cannot_tell_less_noise_from_luck():
    assert choice(1.0, {LEARNED: 0.8, MORE_SO: 0.7}, n_observed=1000)[0] == LEARNED
    assert choice(1.0, {LEARNED: 0.8, MORE_SO: 0.7}, n_observed=1400)[0].optimism == MORE_SO.optimism


@pytest.mark.parametrize(
    ("gains", "is_chosen", "n_asked"),
    [
        ([0.5, 0.5], False, 2),  # in standard errors of a part: 0.7 of both
        ([1.5, 1.5], True, 2),
        ([-0.5, 3.5], True, 2),
        ([-1.5, 9.0], False, 1),  # nobody asks a second part
    ],
)
def test_a_lead_counts_in_standard_errors(gains, is_chosen, n_asked):
    """Of a belief in less noise, as two parts of 500 entries see it."""
    asked = []

    def trial(belief, part):
        if belief != MORE_SO:
            return Trial(np.full(500, 2.0 if belief == "bold" else 1.0), lambda: 0.3, 20, 0)
        asked.append(part)
        signs = np.resize([1.0, -1.0], 500)
        return Trial(1.0 - 0.1 * (signs + gains[part] / np.sqrt(500)), lambda: 0.3, 20, 0)

    found = better_shared(trial, "bold", 10_000, may_doubt_noise=True)
    assert (found.optimism == MORE_SO.optimism) == is_chosen
    assert len(set(asked)) == n_asked


def test_nothing_is_believed_where_each_column_should_have_its_own_prior():
    found, asked = choice(1.0, {LEARNED: 1.0 + 1e-9})
    assert found is None
    assert asked == {"bold", LEARNED}


@pytest.mark.parametrize(("n_observed", "n_asked"), [(500, 10), (2000, 10), (4000, 5), (10_000, 5), (20_000, 3)])
def test_the_smallest_tables_are_asked_more_often(n_observed, n_asked):
    parts = set()

    def trial(start, part):
        parts.add(part)
        noise = np.random.default_rng([part, start == "bold"]).standard_normal(n_observed // 20)
        return Trial(1.0 + 0.1 * noise, lambda: 0.0, 20, 0)

    does_better(trial, "cautious", "bold", n_observed)
    assert len(parts) == n_asked


@pytest.mark.parametrize("level", [None, 0.4])
@pytest.mark.parametrize("expected", [0.5, 0.9, 5.0])
def test_bars_get_what_they_lack_and_give_back_what_noise_allows(level, expected):
    belief = NoiseBelief(level=level, optimism=0.08 if level is None else 0.0)
    found = unexplained(lambda start, part: Trial(np.full(100, 0.7), lambda: expected, 20, 0), belief, 2000)
    least = 0.0 if level is None else -0.36
    assert found == pytest.approx(max(0.7 - expected, least))


@pytest.mark.parametrize("start", ["bold", "cautious", LEARNED])
@pytest.mark.parametrize(
    ("n_observed", "lead", "counts"), [(4000, 1.5, True), (4000, 0.5, False), (4000, -3.0, False), (3999, 9.0, False)]
)
def test_where_noise_is_learned_bars_get_what_is_beyond_chance(start, n_observed, lead, counts):
    """The lead is in standard errors of what a thousand held-out entries vary beyond what was expected."""
    beyond = 0.1 * lead / np.sqrt(1000)

    def trial(of, part):
        assert of == start
        return Trial(1.0 + beyond + 0.1 * np.resize([1.0, -1.0], 200), lambda: 1.0, 20, 0)

    assert unexplained(trial, start, n_observed) == pytest.approx(beyond if counts else 0.0)


def test_the_belief_that_foresees_most_goes_on():
    losses = {LEARNED: 1.0, OPTIMISTIC: 0.9, HELD[0]: 0.7, HELD[1]: 0.5, HELD[2]: 0.6}
    assert choice(0.98, losses, n_dead=5)[0].level is not None
    assert choice(0.4, losses, n_dead=19, rank=1)[0] is None


@pytest.mark.parametrize("at", [0.45, 0.3, 0.16, 0.08])
def test_the_best_level_lies_between_those_tried_or_a_little_beyond(at):
    found, asked = choice(
        0.98, {LEARNED: 1.0, OPTIMISTIC: 1.0}, curve=lambda level: 0.5 + 0.05 * np.log2(level / at) ** 2, n_dead=5
    )
    assert asked >= set(HELD)
    assert found.level == pytest.approx(at)


@pytest.mark.parametrize(("at", "nearest"), [(2.0, 0.4 * np.sqrt(2)), (0.01, 0.1 / np.sqrt(2))])
def test_nobody_goes_far_beyond_the_levels_that_were_tried(at, nearest):
    found, _ = choice(
        0.98, {LEARNED: 1.0, OPTIMISTIC: 1.0}, curve=lambda level: 0.5 + 0.01 * np.log2(level / at) ** 2, n_dead=5
    )
    assert found.level == pytest.approx(nearest)


def test_no_noise_is_held_under_which_all_columns_die_whatever_lower_levels_promise():
    found, asked = choice(
        0.98,
        {LEARNED: 1.0, OPTIMISTIC: 1.0},
        curve=lambda level: 0.99 if level > 0.4 else 0.5 + 0.05 * np.log2(level / 0.45) ** 2,
        n_dead=5,
    )
    assert max(belief.level or 0.0 for belief in asked - {"bold"}) == pytest.approx(0.45)
    assert found.level == 0.4


def test_lower_levels_are_taken_as_long_as_they_help():
    losses = {LEARNED: 1.0, OPTIMISTIC: 1.0, HELD[0]: 0.70, HELD[1]: 0.71, HELD[2]: 0.1}
    assert choice(0.9, losses, n_dead=19, rank=1)[0].level == 0.4


@pytest.mark.parametrize(("rank", "is_held"), [(1, True), (15, False)])
def test_any_gain_is_enough_to_hold_noise_under_which_all_columns_die_and_a_chance_one_elsewhere_is_not(rank, is_held):
    """The lead of the first level is half a standard error of what a thousand held-out entries gain."""
    gain = 0.1 * 0.5 / np.sqrt(1000)

    def trial(belief, part):
        losses = {"bold": 1.1, HELD[1]: 1.05, HELD[2]: 1.2}.get(belief, 1.0)
        if isinstance(belief, NoiseBelief) and belief.level is not None and losses == 1.0:
            losses = 1.0 - gain + 0.1 * np.resize([1.0, -1.0], 100)
        return Trial(np.full(100, losses), lambda: 0.3, rank, 20 - rank)

    found = better_shared(trial, "bold", 2000, may_doubt_noise=True)
    assert (found.level is not None) == is_held


def test_nothing_is_believed_where_nobody_may():
    def trial(belief, part):
        assert belief in ("bold", LEARNED)
        return Trial(np.full(100, 1.0 if belief == "bold" else 0.9), lambda: 0.3, 5, 15)

    assert better_shared(trial, "bold", 2000, may_doubt_noise=True, may_believe=False) == LEARNED


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
        return Trial(np.full(500, {"bold": 1.0, LEARNED: 0.5}.get(belief, 0.6)), lambda: 1.0, 20, 0)

    assert better_shared(trial, "bold", 10_000, may_doubt_noise=True) == LEARNED
    assert set(parts) == {0}


@pytest.mark.parametrize("difference", [-0.01, 0.01])
def test_of_two_starts_that_with_less_error_does_better(difference):
    parts = []

    def trial(start, part):
        parts.append(part)
        noise = np.random.default_rng([part, start == "bold"]).standard_normal(1000)
        return Trial(1.0 + 0.1 * noise + (difference if start == "bold" else 0.0), lambda: 0.0, 20, 0)

    assert does_better(trial, "cautious", "bold", 20_000) == (difference > 0)
    # One that is behind by a standard error is given up; one that is ahead has to be so by four, or is asked again.
    assert set(parts) == ({0} if difference < 0 else {0, 1})


@pytest.mark.parametrize("other", ["bold", NoiseBelief(0.02)], ids=str)
@pytest.mark.parametrize("difference", [-0.02, 0.004])
def test_falling_variances_are_asked_about_in_more_parts(difference, other):
    parts = set()

    def trial(start, part):
        parts.add(part)
        noise = np.random.default_rng([part, start == other]).standard_normal(500)
        return Trial(1.0 + 0.1 * noise + (difference if start == other else 0.0), lambda: 0.0, 20, 0)

    found = better_falling(trial, other, 20_000)
    assert found == (NoiseBelief(law="falling") if difference > 0 else None)
    # Of other starts three parts are enough here; once variances that fall are behind by a standard error nobody asks.
    assert parts == (set(range(5)) if difference > 0 else {0})


def test_the_smallest_tables_are_asked_about_falling_variances_as_often_as_about_other_starts():
    parts = set()

    def trial(start, part):
        parts.add(part)
        return Trial(1.0 + 0.1 * np.resize([1.0, -1.0], 100) * (start == "bold"), lambda: 0.0, 20, 0)

    better_falling(trial, "bold", 2_000)
    assert parts == set(range(10))


def test_no_law_is_told_from_what_does_not_tell_the_noise():
    def never(start, part):
        raise AssertionError

    assert better_falling(never, NoiseBelief(level=0.4), 10_000) is None


def test_without_held_out_entries_nothing_does_better():
    assert not does_better(lambda start, part: Trial(np.zeros(0), lambda: 0.0, 20, 0), "cautious", "bold", 10)


@pytest.mark.parametrize(
    ("gains", "is_clear", "n_asked"),
    [
        ([1.0, 1.0, 1.0], False, 3),  # in standard errors of a part: 1.7 of all three
        ([1.3, 1.3, 1.3], True, 3),
        ([0.2, 2.0, 2.0], True, 3),
        ([4.5], True, 1),
        ([-0.1], False, 1),  # nobody asks a second part
    ],
)
def test_what_does_clearly_better_leads_by_two_standard_errors(gains, is_clear, n_asked):
    asked = set()

    def trial(start, part):
        asked.add(part)
        if start == "all":
            return Trial(np.ones(400), lambda: 0.0, 20, 0)
        return Trial(1.0 - 0.1 * (np.resize([1.0, -1.0], 400) + gains[part] / 20), lambda: 0.0, 12, 0)

    assert does_clearly_better(trial, "fewer", "all", 20_000) == is_clear
    assert len(asked) == n_asked


@pytest.mark.parametrize(("n_observed", "beyond"), [(3_000, 0.5), (10_000, 0.01)], ids=["small", "by chance"])
@pytest.mark.parametrize("law", ["shared", "falling"])
def test_a_tie_of_prior_variances_is_no_belief_about_the_noise(law, n_observed, beyond):
    losses = 1.0 + beyond + np.resize([1.0, -1.0], 500)

    def trial(start, part):
        return Trial(losses, lambda: 1.0, 20, 0)

    assert unexplained(trial, NoiseBelief(law=law), n_observed) == 0.0
    assert unexplained(trial, NoiseBelief(0.02, law=law), n_observed) == pytest.approx(beyond)


def test_a_table_too_small_to_hold_anything_out_has_nothing_to_explain():
    nothing = Trial(np.empty(0), lambda: float(np.mean(np.empty(0))), 1, 0)
    assert unexplained(lambda start, part: nothing, OPTIMISTIC, 9) == 0

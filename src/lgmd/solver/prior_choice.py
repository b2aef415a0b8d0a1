"""Whether all factors of a side share one prior variance, and what is then believed of the noise.

Short runs on most of the entries are judged by how well they foresee the rest, those on a complete table by how close
they seem to come to the truth behind it (:mod:`lgmd.solver.denoising_trials`).

Where there are hardly more entries than numbers to learn, a factorised posterior takes signal for noise: the weakest
columns die that should live, or all of them together. A prior that believes in a little less noise saves the former,
noise that is held at some level the latter. Both are tried where columns die under a shared prior variance. Where all
live, a prior that believes in less noise may still foresee more. What error bars lack then, or because a factorised
posterior is too sure of itself, they get back from held-out entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from lgmd._typing import FloatArray
from lgmd.factors import FALLING, SHARED
from lgmd.solver.variational_state import VariationalState

__all__ = [
    "FIRST_NOISE",
    "HELD_OUT",
    "NoiseBelief",
    "Start",
    "Trial",
    "Trials",
    "better_falling",
    "better_shared",
    "does_better",
    "does_clearly_better",
    "n_parts",
    "unexplained",
]

# Share of the variance that is noise at first.
FIRST_NOISE = 0.1

# Share of the entries that judge a short run. Parts are asked until they have more than enough entries: of small
# tables up to five, of the smallest up to ten that have too few.
HELD_OUT = 0.05
_ENOUGH, _MOST_PARTS = 2000, 5
_TOO_FEW, _MOST_PARTS_OF_FEW = 1000, 10

# Held-out entries that are enough where prior variances that fall are in question.
_ENOUGH_FOR_FALLING = 5000

# Held-out entries that are enough to choose between beliefs, and fewer than which nobody believes in less noise where
# all columns live.
_ENOUGH_FOR_BELIEFS, _FEWEST_FOR_LESS_NOISE = 1000, 600

# Standard errors that settle the matter before all parts were asked. Errors of one row or column go together, so
# that these are larger than they seem.
_CLEAR = 4.0

# Relative difference of squared errors that is none.
_MARGIN = 1e-3

# Standard errors that a belief may be behind, or a start that has to be better, before nothing more is asked.
_HOPELESS = 1.0

# Standard errors by which fewer columns have to be better: under a graph weak ones may be about to live.
_WORTH_OF_FEWER = 2.0

# Standard errors by which held noise has to be better than learned noise, and less noise where all columns live anyway.
_WORTH = 1.0

# Share of the held noise that error bars can do without.
_MOST_OF_IT = 0.9

# Entries that a table must have for those that are held out to tell what bars lack where noise is learned.
_FEWEST_FOR_BARS = 4000

# Entries without error that a prior adds to each observed one, where columns die and where they live, and shares of the
# variance at which noise is held.
_OPTIMISM, _OPTIMISM_OF_ALL = 0.02, 0.08
_LEVELS = (0.4, 0.2, 0.1)

# How far beyond these the best level may be, in powers of two.
_BEYOND = 0.5


@dataclass(frozen=True)
class NoiseBelief:
    """What is believed of the noise beforehand, where prior variances are tied: nothing, that it is small, or its size.

    Attributes
    ----------
    optimism : float
        Entries without error that a prior adds to each observed one.
    level : float or None
        Share of the variance at which the noise is held; None where it is learned.
    law : {"shared", "falling"}
        What ties the prior variances.
    """

    optimism: float = 0.0
    level: float | None = None
    law: str = SHARED

    @property
    def is_none(self) -> bool:
        """Whether nothing is believed."""
        return self.level is None and not self.optimism

    def imposed_on(self, start: VariationalState) -> VariationalState:
        """A start whose noise is still the first, with this belief."""
        noise = replace(start.noise, optimism=self.optimism)
        if self.level is None:
            return replace(start, noise=noise)
        held = replace(noise, samples=noise.samples * (self.level / FIRST_NOISE))
        return replace(start, noise=held, holds_noise=True)


@dataclass(frozen=True)
class Trial:
    """What a short run led to.

    Attributes
    ----------
    losses : ndarray
        Squared errors of the entries that were held out from it, or what is estimated of them in a complete table.
    expected : callable
        Gives what the posterior takes for their mean.
    rank, n_dead : int
        How many columns live and died.
    """

    losses: FloatArray
    expected: Callable[[], float]
    rank: int
    n_dead: int


Start: TypeAlias = str | NoiseBelief
"""The name of a start with a prior variance for each column, or a belief under which they are tied to each other."""

Trials: TypeAlias = Callable[[Start, int], Trial]
"""Where a start leads, and the number of a part: entries that are held out, or a draw of signs in a complete table."""


def does_better(trial: Trials, start: Start, other: Start, n_observed: int) -> bool:
    """Whether a start leads to less error than another; nobody asks further once it is behind by a standard error."""
    return bool(np.concatenate(_gains(trial, start, other, _n_trials(n_observed), hopeless=_HOPELESS)).sum() > 0)


def does_clearly_better(trial: Trials, start: Start, other: Start, n_observed: int) -> bool:
    """The same, by two standard errors; nobody asks further once it is behind at all."""
    gains = np.concatenate(_gains(trial, start, other, _n_trials(n_observed), hopeless=0.0))
    return bool(gains.sum() > _WORTH_OF_FEWER * float(np.linalg.norm(gains)))


def better_shared(
    trial: Trials, other: str, n_observed: int, *, may_doubt_noise: bool, may_believe: bool = True
) -> NoiseBelief | None:
    """The belief with which a shared prior variance does better in short runs than one for each column.

    Parameters
    ----------
    trial : callable
        Of a start and the number of a part.
    other : str
        The start with a prior variance for each column.
    n_observed : int
        Entries of the table.
    may_doubt_noise : bool
        Whether noise can be held at a level, or be believed to be less than it seems: error bars then lack something,
        which has to be told by entries that were held out.
    may_believe : bool, default=True
        Whether anything may be believed of the noise.

    Returns
    -------
    belief : NoiseBelief or None
        None if each column should have a prior variance of its own.
    """
    belief = NoiseBelief()
    if may_believe:
        belief = _best_belief(trial, other, n_observed, may_doubt_noise=may_doubt_noise)
    gains = _gains(trial, belief, other, _n_trials(n_observed), _MARGIN)
    return belief if np.concatenate(gains).sum() > 0 else None


def better_falling(trial: Trials, other: Start, n_observed: int) -> NoiseBelief | None:
    """Prior variances that fall, if they lead to less error than another start; None if they do not.

    The difference is small where both are right, so that no table is asked less often than about other starts, and
    those of 10,000 to 200,000 entries more often.
    """
    falling = NoiseBelief(law=FALLING)
    if isinstance(other, NoiseBelief) and other.level is not None:  # what does not tell the noise tells no law either
        return None
    parts = max(_n_trials(n_observed), n_parts(n_observed, enough=_ENOUGH_FOR_FALLING))
    gains = _gains(trial, falling, other, parts, _MARGIN, _HOPELESS)
    return falling if np.concatenate(gains).sum() > 0 else None


def unexplained(trial: Trials, start: Start, n_observed: int) -> float:
    """What held-out entries vary beyond what noise and posterior say after a start.

    That may be less than nothing where the noise is held. Where it is learned and nothing is believed of it, a
    factorised posterior may be too sure of itself; that counts if it is beyond a standard error, of which small tables
    cannot tell.
    """
    belief = start if isinstance(start, NoiseBelief) else NoiseBelief()
    if belief.is_none and n_observed < _FEWEST_FOR_BARS:
        return 0.0
    trials = [trial(start, part) for part in _parts_for_beliefs(trial(start, 0), n_observed)]
    trials = [each for each in trials if len(each.losses)]
    if not trials:  # too small a table to hold anything out
        return 0.0
    beyond = np.concatenate([each.losses - each.expected() for each in trials])
    mean = float(beyond.mean())
    if not belief.is_none:
        return max(mean, 0.0 if belief.level is None else -_MOST_OF_IT * belief.level)
    return mean if mean > float(beyond.std()) / math.sqrt(len(beyond)) else 0.0


def n_parts(n_observed: int, most: int = _MOST_PARTS, enough: int = _ENOUGH) -> int:
    """How many parts of a table are asked at most, one after the other."""
    return min(most, 1 + int(enough / max(1.0, HELD_OUT * n_observed)))


def _n_trials(n_observed: int) -> int:
    """The same for starts, of which short runs take the least time in the smallest tables."""
    enough = math.ceil(_TOO_FEW / max(1.0, HELD_OUT * n_observed))
    return n_parts(n_observed, max(_MOST_PARTS, min(_MOST_PARTS_OF_FEW, enough)))


def _parts_for_beliefs(first: Trial, n_observed: int) -> range:
    return range(min(_n_trials(n_observed), math.ceil(_ENOUGH_FOR_BELIEFS / max(1, len(first.losses)))))


def _gains(
    trial: Trials, start: Start, other: Start, parts: int, margin: float = 0.0, hopeless: float = _CLEAR
) -> list[FloatArray]:
    """What a start leads to less error by than another, beyond a margin, in as many parts as make that clear."""
    gains: list[FloatArray] = []
    for part in range(parts):
        gains.append(trial(other, part).losses - trial(start, part).losses * (1 + margin))
        so_far = np.concatenate(gains)
        lead, error = float(so_far.sum()), float(np.linalg.norm(so_far))
        if not len(so_far) or lead > _CLEAR * error or lead < -hopeless * error:
            break
    return gains


def _best_belief(trial: Trials, other: str, n_observed: int, *, may_doubt_noise: bool) -> NoiseBelief:
    """To learn the noise from the data alone, unless less noise foresees more than anything else."""
    best = NoiseBelief()
    first, of_columns = trial(best, 0), trial(other, 0)
    if not len(first.losses):
        return best
    parts = _parts_for_beliefs(first, n_observed)

    def foresees_more(belief: NoiseBelief, rival: Start, standard_errors: float, hopeless: float = _HOPELESS) -> bool:
        gains, error = np.zeros(0), 0.0
        for part in parts:
            gains = np.append(gains, trial(rival, part).losses - trial(belief, part).losses)
            error = float(np.linalg.norm(gains))
            if gains.sum() < -hopeless * error:
                return False
        return bool(gains.sum() > standard_errors * error)

    rival: Start = other if of_columns.losses.sum() < first.losses.sum() else best
    if first.n_dead == 0:
        less = NoiseBelief(_OPTIMISM_OF_ALL)
        can_tell = may_doubt_noise and len(parts) * len(first.losses) >= _FEWEST_FOR_LESS_NOISE
        return less if can_tell and rival is best and foresees_more(less, best, _WORTH) else best
    if rival is best and first.rank > 1 and foresees_more(NoiseBelief(_OPTIMISM), rival, 0.0):
        best = rival = NoiseBelief(_OPTIMISM)
    if not may_doubt_noise:
        return best
    # Noise is less than the errors of any prediction.
    levels = [level for level in _LEVELS if level <= trial(rival, 0).losses.mean()]
    # Where all columns die of the noise that is learned, longer runs only lose more.
    worth = _WORTH if first.rank > 1 else 0.0
    for level in levels:
        held = NoiseBelief(level=level)
        if not foresees_more(held, rival, worth, hopeless=math.inf):
            break
        best = rival = held
        worth = 0.0
    if best.level is None:
        return best
    losses = [np.concatenate([trial(NoiseBelief(level=level), part).losses for part in parts]) for level in levels]
    level = _between(levels, [float(each.mean()) for each in losses], best.level)
    # Of a little more noise than a table can stand all columns die: above the levels a parabola promises too much.
    if level > max(levels) and not foresees_more(NoiseBelief(level=level), best, 0.0, hopeless=math.inf):
        return best
    return NoiseBelief(level=level)


def _between(levels: list[float], losses: list[float], best: float) -> float:
    """The level at which a parabola through the losses is lowest, or the best if it has no minimum."""
    if len(levels) < len(_LEVELS):
        return best
    logs = np.log2(levels)
    curvature, slope, _ = np.polyfit(logs - np.log2(best), losses, 2)
    if curvature <= 0:
        return best
    minimum = np.log2(best) - slope / (2 * curvature)
    return float(2 ** np.clip(minimum, logs.min() - _BEYOND, logs.max() + _BEYOND))

r"""Short runs on a complete table, judged by how far they end from the truth behind it.

Held-out entries say how well a run foresees what nobody saw. In a complete table there is nothing to foresee: what
counts is how much of the noise a run takes away from entries that it sees, and weak columns are worth more there.
Stein's unbiased estimate of the squared error of estimates F is

.. math:: |Y - F|^2 - N v + 2 v \sum_{ij} \partial F_{ij} / \partial Y_{ij},

with v the variance of the noise. The sum is seen by changing all entries a little, with random signs (Ramani, Blu and
Unser, 2008).

All runs are equally long: one that starts near its end is soon said to be there, and its rivals would win by what it
still has to gain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from lgmd._typing import FloatArray
from lgmd.observed import DenseObserved, random_signs
from lgmd.solver.prior_choice import Trial
from lgmd.solver.variational_state import VariationalState

__all__ = ["ShortRun", "denoising_trials"]

# Size of the change of entries, in standard deviations of the noise.
_STEP = 0.05

StartT = TypeVar("StartT", bound=Hashable)


class ShortRun(NamedTuple):
    """Where a short run ended.

    Attributes
    ----------
    state : VariationalState
    loss : float
        The objective.
    n_iter : int
    n_dead : int
        How many columns died.
    """

    state: VariationalState
    loss: float
    n_iter: int
    n_dead: int


def denoising_trials(
    data: DenseObserved,
    run: Callable[[StartT, DenseObserved, int | None], ShortRun],
    references: Sequence[StartT],
) -> Callable[[StartT, int], Trial]:
    """Trials whose losses are what each entry adds to Stein's estimate; parts are draws of signs.

    Parameters
    ----------
    data : DenseObserved
    run : callable
        From a start, on a table, for a number of iterations or None.
    references : sequence
        Starts of runs of which the longest says how long all are, and the one that takes the least for noise how much
        there is: the others have signal in it.
    """

    @cache
    def as_they_end() -> dict[StartT, ShortRun]:
        return {start: run(start, data, None) for start in references}

    @cache
    def n_iter() -> int:
        return max(found.n_iter for found in as_they_end().values())

    @cache
    def on_table(start: StartT) -> tuple[ShortRun, FloatArray, FloatArray]:
        """A run, its estimates, and what they leave."""
        found = as_they_end().get(start)
        if found is None or found.n_iter < n_iter():
            found = run(start, data, n_iter())
        estimates = _estimates(found.state)
        return found, estimates, data.values - estimates

    @cache
    def noise_variance() -> float:
        return min(on_table(start)[0].state.noise.level for start in references)

    @cache
    def changed(part: int) -> DenseObserved:
        change = _STEP * np.sqrt(noise_variance()) * random_signs(data, part).reshape(data.shape)
        return DenseObserved((data.values + change).astype(data.dtype))

    def following(start: StartT, part: int) -> FloatArray:
        """How far each estimate follows its own entry, on average over signs."""
        _, estimates, _ = on_table(start)
        table = changed(part)
        change = table.values - data.values
        if not change.all():
            return np.ones(data.shape)
        return np.asarray((_estimates(run(start, table, n_iter()).state) - estimates) / change)

    @cache
    def trial(start: StartT, part: int) -> Trial:
        found, _, rest = on_table(start)
        losses = np.square(rest, dtype=np.float64) + noise_variance() * (2 * following(start, part) - 1)
        return Trial(losses.ravel(), lambda: 0.0, found.state.samples.rank, found.n_dead)

    return trial


def _estimates(state: VariationalState) -> FloatArray:
    intercepts = state.overall + state.samples.intercepts[:, None] + state.features.intercepts
    return np.asarray(intercepts + state.X @ state.W.T)

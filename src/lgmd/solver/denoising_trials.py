r"""Short runs on a complete table, judged by how far they end from the truth behind it.

Held-out entries say how well a run foresees what nobody saw. In a complete table there is nothing to foresee: what
counts is how much of the noise a run takes away from entries that it sees, and weak columns are worth more there.
Stein's unbiased estimate of the squared error of estimates F is

.. math:: |Y - F|^2 - N v + 2 v \sum_{ij} \partial F_{ij} / \partial Y_{ij},

with v the variance of the noise. The sum is seen by changing all entries a little, with random signs (Ramani, Blu and
Unser, 2008), while graphs are held.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from lgmd._typing import FloatArray
from lgmd.observed import DenseObserved, random_signs
from lgmd.solver.prior_choice import NoiseBelief, Trial, Trials
from lgmd.solver.variational_state import VariationalState

__all__ = ["ShortRun", "denoising_trials"]

# Size of the change of entries, relative to what a run does not explain of them.
_STEP = 0.05


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
    data: DenseObserved, run: Callable[[NoiseBelief | None, DenseObserved, int | None], ShortRun]
) -> Trials:
    """Trials whose losses are what each entry adds to Stein's estimate; parts are draws of signs.

    Parameters
    ----------
    data : DenseObserved
    run : callable
        Of a belief, or None for prior variances of each column, a table, and the number of iterations, or None.
    """

    @cache
    def on_table(belief: NoiseBelief | None) -> tuple[ShortRun, FloatArray, FloatArray]:
        """A run, its estimates, and what they leave."""
        found = run(belief, data, None)
        estimates = _estimates(found.state)
        return found, estimates, data.values - estimates

    @cache
    def signs(part: int) -> FloatArray:
        return random_signs(data, part).reshape(data.shape)

    @cache
    def following(belief: NoiseBelief | None, part: int) -> FloatArray:
        """How far each estimate follows its own entry, on average over signs."""
        found, estimates, rest = on_table(belief)
        step = _STEP * float(np.sqrt(np.mean(np.square(rest, dtype=np.float64))))
        if step == 0:
            return np.ones(data.shape)
        changed = DenseObserved((data.values + step * signs(part)).astype(data.dtype))
        moved = _estimates(run(belief, changed, found.n_iter).state) - estimates
        return signs(part) * moved / step

    @cache
    def noise_variance() -> float:
        """The smaller one of what runs with the two kinds of prior take for noise: the other has signal in it."""
        return min(on_table(belief)[0].state.noise.level for belief in (None, NoiseBelief()))

    @cache
    def trial(belief: NoiseBelief | None, part: int) -> Trial:
        found, _, rest = on_table(belief)
        losses = np.square(rest, dtype=np.float64) + noise_variance() * (2 * following(belief, part) - 1)
        return Trial(losses.ravel(), 0.0, found.state.samples.rank, found.n_dead)

    return trial


def _estimates(state: VariationalState) -> FloatArray:
    intercepts = state.overall + state.samples.intercepts[:, None] + state.features.intercepts
    return np.asarray(intercepts + state.X @ state.W.T)

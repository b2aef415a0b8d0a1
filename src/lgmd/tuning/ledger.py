"""The trials of a search as they come in, and what to try next."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from lgmd.tuning.evaluation import Outcome
from lgmd.tuning.parameters import present_value
from lgmd.tuning.pruning import Bar
from lgmd.tuning.result import Trial
from lgmd.tuning.sampling import n_start_points, sampler, start_point
from lgmd.tuning.spaces import Space

__all__ = ["Ledger"]

_OUTCOME = "outcome"
_STATES = {"pruned": TrialState.PRUNED, "failed": TrialState.FAIL}

# Trials that must have ended before others are given up for being worse.
_ENOUGH_TO_COMPARE = 5


class Ledger:
    """Asks for settings and keeps the outcomes.

    The search runs on a study in memory. Only trials that have ended go into the one that is kept, each in one piece: a
    trial that is cut off by Ctrl-C or by the end of its process leaves no trace, and a file is written to once a trial.
    """

    def __init__(self, kept: optuna.Study, space: Space, estimator: Any, seed: int) -> None:
        self._kept = kept
        self._study = optuna.create_study(direction="minimize", pruner=optuna.pruners.NopPruner())
        self._space = space
        self._seed = seed
        self._distributions = {name: dimension.distribution() for name, dimension in space.items()}
        self._present = {name: space[name].encoded(present_value(estimator, name)) for name in space}
        self._ended: list[tuple[dict[str, Any], Outcome]] = []
        for stored in kept.get_trials(deepcopy=False):
            if _OUTCOME in stored.user_attrs:
                self._study.add_trial(stored)
                self._ended.append((stored.params, _outcome(stored)))

    def __len__(self) -> int:
        return len(self._ended)

    @property
    def trials(self) -> list[Trial]:
        """All that ended, in their order."""
        return [self._trial(number) for number in range(len(self._ended))]

    @property
    def best(self) -> Trial | None:
        """The complete trial with the least error, the first of equals; None where there is none."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        return min(complete, key=lambda trial: trial.value, default=None)

    def ask(self, number: int) -> tuple[optuna.trial.Trial, dict[str, Any]]:
        """The setting of the trial with a number, as Optuna keeps it and as estimators take it.

        The first is the estimator as it was given, if that lies in the space: the search then ends no worse than it
        began.
        """
        if number < n_start_points(self._space):
            as_given = number == 0 and all(value is not None for value in self._present.values())
            point = self._present if as_given else start_point(self._space, number, self._seed)
            self._study.enqueue_trial(point)
        self._study.sampler = sampler(self._seed, number)
        trial = self._study.ask(self._distributions)
        return trial, self._decoded(trial.params)

    def known(self, trial: optuna.trial.Trial) -> Outcome | None:
        """The outcome of the same setting earlier on."""
        for number, (params, outcome) in enumerate(self._ended):
            if params == trial.params:
                message = outcome.message or f"the same setting as trial {number}"
                return Outcome(outcome.value, outcome.scores, outcome.state, message, 0.0, outcome.scales)
        return None

    def bars(self) -> tuple[Bar, ...]:
        """For each split the median error of the complete trials, from the time on when these are enough."""
        complete = [outcome for _, outcome in self._ended if outcome.state == "complete"]
        if len(complete) < _ENOUGH_TO_COMPARE:
            return ()
        return tuple(
            Bar(statistics.median(outcome.scores[split] for outcome in complete), scale)
            for split, scale in enumerate(complete[0].scales)
        )

    def tell(self, trial: optuna.trial.Trial, outcome: Outcome) -> Trial:
        """Keep an outcome."""
        trial.set_user_attr(_OUTCOME, asdict(outcome))
        if outcome.state == "complete":
            ended = self._study.tell(trial, outcome.value)
        else:
            if outcome.state == "pruned":
                trial.report(outcome.value, step=0)
            ended = self._study.tell(trial, state=_STATES[outcome.state])
        self._kept.add_trial(ended)
        self._ended.append((trial.params, outcome))
        return self._trial(len(self._ended) - 1)

    def _trial(self, number: int) -> Trial:
        params, outcome = self._ended[number]
        return Trial(number, self._decoded(params), outcome.value, outcome.state, outcome.seconds, outcome.message)

    def _decoded(self, stored: dict[str, Any]) -> dict[str, Any]:
        return {name: dimension.decoded(stored[name]) for name, dimension in self._space.items()}


def _outcome(stored: FrozenTrial) -> Outcome:
    values = dict(stored.user_attrs[_OUTCOME])
    return Outcome(**{**values, "scores": tuple(values["scores"]), "scales": tuple(values["scales"])})

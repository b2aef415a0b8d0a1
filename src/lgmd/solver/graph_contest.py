"""Graphs that the factors do not prove, where held-out entries speak for them.

Where data is noisy, a factor's few columns cannot say which of its rows are alike, and still a graph with many weak
edges can lower errors by some per cent; or raise them. Entries that were held out decide: short runs without the
graph and with it, each learned from the entries that were left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lgmd._typing import FloatArray
from lgmd.factors import Intercepts
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.observed import HeldOut, hold_out
from lgmd.solver.prior_choice import n_parts
from lgmd.solver.variational_starter import SHARED_ENTRIES, Graphs, Starter, losses
from lgmd.solver.variational_state import VariationalState

if TYPE_CHECKING:
    from lgmd.solver.variational import VariationalInference

__all__ = ["with_unproven"]

# Entries that a table must have for those that are held out to say anything, and the share that is in each part.
_FEWEST_ENTRIES, _HELD_OUT = 2000, 0.1

# Standard errors by which a graph has to foresee more, and at which no further part is asked. Where there is no graph
# the most likely one foresees less, by two or three of them.
_WORTH, _CLEAR, _HOPELESS = 1.5, 3.0, -1.0

# Which sides get what their learners offer.
Sides = tuple[bool, bool]
_ALONE: tuple[Sides, Sides] = ((True, False), (False, True))


def with_unproven(problem: VariationalInference, state: VariationalState, graphs: Graphs) -> Graphs:
    """Graphs that were learned from a state; on sides without edges those that learners offer, if they are worth it.

    Tables with more than a million entries know their factors well enough; those with few entries, and those whose
    noise has to be held, know them too little.
    """
    if state.holds_noise or not _FEWEST_ENTRIES <= problem.data.n_observed <= SHARED_ENTRIES:
        return graphs
    offered = _offered(problem, state, graphs, (graphs[0].n_edges == 0, graphs[1].n_edges == 0))
    sides = (offered[0] is not graphs[0], offered[1] is not graphs[1])
    if not any(sides):
        return graphs
    intercepts = Intercepts(state.overall, state.samples.intercepts, state.features.intercepts)
    n, p = problem.data.shape
    if n < p:
        # Short runs depend on which side comes first: a table and its transpose are judged by the same ones.
        chosen = _Contest(problem.T, intercepts.T, graphs[::-1], state).winner(sides[::-1])[::-1]
    else:
        chosen = _Contest(problem, intercepts, graphs, state).winner(sides)
    return (offered if chosen[0] else graphs)[0], (offered if chosen[1] else graphs)[1]


@dataclass(frozen=True, eq=False)
class _Contest:
    """Short runs on most of the entries, with the prior of a state and the graphs that were learned from it."""

    problem: VariationalInference
    intercepts: Intercepts
    graphs: Graphs
    like: VariationalState

    def winner(self, offered: Sides) -> Sides:
        """The sides whose offered graphs foresee held-out entries; of two, both, one or none."""
        parts: list[_Part] = []
        gains = {offered: np.zeros(0)}
        for number in range(n_parts(self.problem.data.n_observed)):
            parts.append(self._part(number))
            gains[offered] = np.append(gains[offered], parts[-1].gains(offered))
            lead = _lead(gains[offered])
            if lead >= _CLEAR or lead <= _HOPELESS:
                break
        if _lead(gains[offered]) <= _WORTH:
            return False, False
        if all(offered):
            # What one side gains must not pay for what the other loses.
            gains |= {alone: np.concatenate([part.gains(alone) for part in parts]) for alone in _ALONE}
        return max(gains, key=lambda sides: float(gains[sides].sum()))

    def _part(self, number: int) -> _Part:
        kept, held = hold_out(self.problem.data, _HELD_OUT, number)
        problem = replace(self.problem, data=kept)
        # A complete table knows the bold start alone, also where entries are held out from it.
        may_be_cautious = not self.problem.data.is_complete

        def after_a_run(graphs: Graphs) -> VariationalState:
            return Starter(problem, self.intercepts, graphs, 0).short_run(
                shared=self.like.shared, optimism=self.like.noise.optimism, may_be_cautious=may_be_cautious
            )

        return _Part(problem, self.graphs, held, after_a_run, after_a_run(self.graphs))


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the entries that is held out, and where a run on the others leads."""

    problem: VariationalInference
    graphs: Graphs
    held: HeldOut
    after_a_run: Callable[[Graphs], VariationalState]
    plain: VariationalState

    def gains(self, sides: Sides) -> FloatArray:
        """What squared errors of held-out entries fall by under the graphs of these sides; zeros if none is offered."""
        # Columns that are about to die would hide what rows have in common.
        state = self.problem.without_weak_columns(self.plain) or self.plain
        offered = _offered(self.problem, state, self.graphs, sides)
        if all(mine is theirs for mine, theirs in zip(offered, self.graphs, strict=True)):
            return np.zeros(len(self.held.rows))
        return losses(self.plain, self.held) - losses(self.after_a_run(offered), self.held)


def _lead(gains: FloatArray) -> float:
    """A sum of gains in standard errors."""
    error = float(np.linalg.norm(gains))
    return float(gains.sum()) / error if error > 0 else 0.0


def _offered(problem: VariationalInference, state: VariationalState, graphs: Graphs, sides: Sides) -> Graphs:
    sample_graph, feature_graph = graphs
    if sides[0]:
        sample_graph = _unproven(problem.sample_learner, problem.sample_moments(state), sample_graph)
    if sides[1]:
        feature_graph = _unproven(problem.feature_learner, problem.feature_moments(state), feature_graph)
    return sample_graph, feature_graph


def _unproven(learner: GraphLearner, moments: FactorMoments, graph: GraphEstimate) -> GraphEstimate:
    """What a learner offers, or the graph itself where that has no edge either."""
    offered = learner.unproven(moments, graph)
    return offered if offered.n_edges else graph

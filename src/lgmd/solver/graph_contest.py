"""Graphs that the factors do not prove, where the entries of the table speak for them.

Where data is noisy, a factor's few columns cannot say which of its rows are alike, and still a graph with many weak
edges can lower errors by some per cent; or raise them. Short runs without the graph and with it decide. Where there are
gaps, they are judged by entries that were held out; in a complete table by an estimate of how far they end from the
truth (:mod:`lgmd.solver.denoising_trials`), for which the graph is learned anew from each changed table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lgmd._typing import FloatArray
from lgmd.factors import Intercepts
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.observed import DenseObserved, HeldOut, hold_out
from lgmd.solver.denoising_trials import ShortRun, denoising_trials
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

# The first part of a complete table says little alone: what signs add varies as much between draws as between entries.
# It is never clear, and hopeless only here.
_HOPELESS_ALONE = -2.0

# Which sides get what their learners offer.
Sides: TypeAlias = tuple[bool, bool]
_NEITHER: Sides = (False, False)
_ALONE: tuple[Sides, Sides] = ((True, False), (False, True))

# What squared errors fall by under the graphs of some sides, as so many parts say.
Gains: TypeAlias = Callable[[Sides, int], FloatArray]


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
    """Short runs with the prior of a state and the graphs that were learned from it."""

    problem: VariationalInference
    intercepts: Intercepts
    graphs: Graphs
    like: VariationalState

    def winner(self, offered: Sides) -> Sides:
        """The sides whose offered graphs lower errors; of two, both, one or none."""
        data = self.problem.data
        fewest = 1
        if isinstance(data, DenseObserved) and self.problem.noise.has_one_variance:
            gains, fewest = self._on_complete(data, offered), 2
        else:
            gains = self._foreseen()
        for parts in range(1, max(fewest, n_parts(data.n_observed)) + 1):
            lead = _lead(gains(offered, parts))
            clear, hopeless = (np.inf, _HOPELESS_ALONE) if parts < fewest else (_CLEAR, _HOPELESS)
            if not hopeless < lead < clear:
                break
        if lead <= _WORTH:
            return _NEITHER
        # What one side gains must not pay for what the other loses.
        rivals: tuple[Sides, ...] = (offered, *_ALONE) if all(offered) else (offered,)
        return max(rivals, key=lambda sides: float(gains(sides, parts).sum()))

    def _foreseen(self) -> Gains:
        """By entries that were held out."""

        @cache
        def part(number: int) -> tuple[VariationalInference, HeldOut, VariationalState]:
            kept, held = hold_out(self.problem.data, _HELD_OUT, number)
            problem = replace(self.problem, data=kept)
            return problem, held, self._after_a_run(problem, self.graphs).state

        @cache
        def gains(sides: Sides, number: int) -> FloatArray:
            problem, held, plain = part(number)
            graphs = self._offered(problem, plain, sides)
            if graphs is None:
                return np.zeros(len(held.rows))
            return losses(plain, held) - losses(self._after_a_run(problem, graphs).state, held)

        return lambda sides, parts: np.concatenate([gains(sides, number) for number in range(parts)])

    def _on_complete(self, data: DenseObserved, offered: Sides) -> Gains:
        """By Stein's estimate."""

        @cache
        def plain(table: DenseObserved, n_iter: int | None) -> ShortRun:
            return self._after_a_run(replace(self.problem, data=table), self.graphs, n_iter)

        def run(sides: Sides, table: DenseObserved, n_iter: int | None) -> ShortRun:
            problem = replace(self.problem, data=table)
            before = plain(table, None if table is data else plain(data, None).n_iter)
            graphs = self._offered(problem, before.state, sides)
            return plain(table, n_iter) if graphs is None else self._after_a_run(problem, graphs, n_iter)

        trial = denoising_trials(data, run, (_NEITHER, offered))

        def gains(sides: Sides, parts: int) -> FloatArray:
            each = [trial(_NEITHER, number).losses - trial(sides, number).losses for number in range(parts)]
            return np.asarray(np.mean(each, axis=0))

        return gains

    def _after_a_run(self, problem: VariationalInference, graphs: Graphs, n_iter: int | None = None) -> ShortRun:
        return Starter(problem, self.intercepts, graphs, 0).short_run(
            shared=self.like.shared,
            optimism=self.like.noise.optimism,
            # A complete table knows the bold start alone, also where entries are held out from it.
            may_be_cautious=not self.problem.data.is_complete,
            n_iter=n_iter,
        )

    def _offered(self, problem: VariationalInference, plain: VariationalState, sides: Sides) -> Graphs | None:
        """The graphs of these sides as a run without them shows them; None if there are none."""
        # Columns that are about to die would hide what rows have in common.
        state = problem.without_weak_columns(plain) or plain
        graphs = _offered(problem, state, self.graphs, sides)
        return None if all(mine is theirs for mine, theirs in zip(graphs, self.graphs, strict=True)) else graphs


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
    return replace(offered, proven=False) if offered.n_edges else graph

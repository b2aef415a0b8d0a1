"""Graphs that the factors do not prove: the entries of the table speak for them or against them.

Where data is noisy, a factor's few columns cannot say which of its rows are alike, and still a graph with many weak
edges can lower errors by some per cent; or raise them. Short runs without the graph and with it decide. A graph that a
learner merely offers has to be worth it; one that it learned, and lets entries judge, only has to do no harm, unless
data is so thin that noise is held.

Where there are gaps, runs are judged by entries that were held out; in a complete table by an estimate of how far they
end from the truth (:mod:`lgmd.solver.denoising_trials`), for which the graph is learned anew from each changed table.
"""

from __future__ import annotations

import math
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
from lgmd.solver.variational_starter import TIED_ENTRIES, Graphs, Starter, losses
from lgmd.solver.variational_state import VariationalState

if TYPE_CHECKING:
    from lgmd.solver.variational import VariationalInference

__all__ = ["as_entries_say"]

# Entries that a table must have for those that are held out to say anything, and the share that is in each part.
_FEWEST_ENTRIES, _HELD_OUT = 1000, 0.1

# Standard errors by which a graph has to foresee more, and at which no further part is asked. Where there is no graph
# the most likely one foresees less, by two or three of them.
_WORTH, _CLEAR, _HOPELESS = 1.5, 3.0, -1.0

# Standard errors by which a graph that was learned may foresee less.
_HARMLESS = -1.0

# Iterations after which runs on the entries of a large table may end: it soon changes by little an entry, and columns
# that are about to die still foresee.
_FEWEST_ITERATIONS = 10

# The first part of a complete table says little alone: what signs add varies as much between draws as between entries.
# It is never clear, and hopeless only here.
_HOPELESS_ALONE = -2.0

# Which sides get what their learners offer.
Sides: TypeAlias = tuple[bool, bool]
_NEITHER: Sides = (False, False)
_ALONE: tuple[Sides, Sides] = ((True, False), (False, True))

# What squared errors fall by under the graphs of some sides, as each of so many parts says.
Gains: TypeAlias = Callable[[Sides, int], list[FloatArray]]

# Parts as one: other entries each, or the same ones seen with other signs.
Together: TypeAlias = Callable[[list[FloatArray]], FloatArray]


def as_entries_say(problem: VariationalInference, state: VariationalState, graphs: Graphs) -> Graphs:
    """Graphs that were learned from a state, without those that do harm and with those that are worth it.

    Learners say which of their graphs may be left out, and offer some where they found none. Tables with more than a
    million entries know their factors well enough; those with few entries know them too little.
    """
    if not _FEWEST_ENTRIES <= problem.data.n_observed <= TIED_ENTRIES:
        return graphs
    without, learned = (state.sample_graph, state.feature_graph), graphs
    doubted = (
        learned[0].n_edges > 0 and problem.sample_learner.may_be_left_out,
        learned[1].n_edges > 0 and problem.feature_learner.may_be_left_out,
    )
    graphs = _decided(problem, state, _chosen(doubted, without, learned), learned, doubted, are_learned=True)
    empty = (learned[0].n_edges == 0, learned[1].n_edges == 0)
    offered = _found(problem, state, graphs, empty, are_learned=False)
    sides = (offered[0] is not graphs[0], offered[1] is not graphs[1])
    return _decided(problem, state, graphs, offered, sides, are_learned=False)


def _decided(
    problem: VariationalInference,
    state: VariationalState,
    graphs: Graphs,
    rivals: Graphs,
    sides: Sides,
    *,
    are_learned: bool,
) -> Graphs:
    """Graphs, or on these sides their rivals, as a contest ends."""
    if not any(sides):
        return graphs
    intercepts = Intercepts(state.overall, state.samples.intercepts, state.features.intercepts)
    n, p = problem.data.shape
    if n < p:
        # Short runs depend on which side comes first: a table and its transpose are judged by the same ones.
        chosen = _Contest(problem.T, intercepts.T, graphs[::-1], state, are_learned).winner(sides[::-1])[::-1]
    else:
        chosen = _Contest(problem, intercepts, graphs, state, are_learned).winner(sides)
    return _chosen(chosen, rivals, graphs)


@dataclass(frozen=True, eq=False)
class _Contest:
    """Short runs with the prior of a state.

    Attributes
    ----------
    problem : VariationalInference
    intercepts : Intercepts
    graphs : tuple of GraphEstimate
        Those that nobody doubts.
    like : VariationalState
    are_learned : bool
        Whether their rivals were learned and have to do no harm, or are merely offered and have to be worth it. Where
        data is so thin that noise is held, both have to be: runs on nine tenths of the entries lose so much there that
        harm is hard to see.
    """

    problem: VariationalInference
    intercepts: Intercepts
    graphs: Graphs
    like: VariationalState
    are_learned: bool

    def winner(self, judged: Sides) -> Sides:
        """The sides whose graphs are worth it, or were learned and do no harm; of two, both, one or none."""
        data = self.problem.data
        together: Together = np.concatenate
        gains, fewest = self._foreseen(judged), 1
        if isinstance(data, DenseObserved) and self.problem.noise.has_one_variance:
            gains, together, fewest = self._on_complete(data, judged), _mean, 2
        parts = range(fewest, max(fewest, n_parts(data.n_observed)) + 1)
        if self.are_learned:
            judged = _harmless(gains, judged, parts)
            if not self.like.holds_noise or not any(judged):
                return judged
        return _worth_it(gains, judged, parts, together)

    def _foreseen(self, judged: Sides) -> Gains:
        """By entries that were held out."""

        @cache
        def part(number: int) -> tuple[VariationalInference, HeldOut, VariationalState, Graphs]:
            kept, held = hold_out(self.problem.data, _HELD_OUT, number)
            problem = replace(self.problem, data=kept)
            plain = self._after_a_run(problem, self.graphs, at_least=_FEWEST_ITERATIONS).state
            return problem, held, plain, self._found(problem, plain, judged)

        @cache
        def gains(sides: Sides, number: int) -> FloatArray:
            problem, held, plain, found = part(number)
            graphs = _chosen(sides, found, self.graphs)
            if _are_same(graphs, self.graphs):
                return np.zeros(len(held.rows))
            run = self._after_a_run(problem, graphs, at_least=_FEWEST_ITERATIONS)
            return losses(plain, held) - losses(run.state, held)

        return lambda sides, parts: [gains(sides, number) for number in range(parts)]

    def _on_complete(self, data: DenseObserved, judged: Sides) -> Gains:
        """By Stein's estimate."""

        @cache
        def plain(table: DenseObserved, n_iter: int | None) -> ShortRun:
            return self._after_a_run(replace(self.problem, data=table), self.graphs, n_iter)

        @cache
        def found(table: DenseObserved) -> Graphs:
            before = plain(table, None if table is data else plain(data, None).n_iter)
            return self._found(replace(self.problem, data=table), before.state, judged)

        def run(sides: Sides, table: DenseObserved, n_iter: int | None) -> ShortRun:
            graphs = _chosen(sides, found(table), self.graphs)
            if _are_same(graphs, self.graphs):
                return plain(table, n_iter)
            return self._after_a_run(replace(self.problem, data=table), graphs, n_iter)

        trial = denoising_trials(data, run, (_NEITHER, judged))

        return lambda sides, parts: [
            trial(_NEITHER, number).losses - trial(sides, number).losses for number in range(parts)
        ]

    def _after_a_run(
        self, problem: VariationalInference, graphs: Graphs, n_iter: int | None = None, at_least: int = 1
    ) -> ShortRun:
        return Starter(problem, self.intercepts, graphs, 0).short_run(
            self.like,
            # A complete table knows the bold start alone, also where entries are held out from it.
            may_be_cautious=not self.problem.data.is_complete,
            n_iter=n_iter,
            at_least=at_least,
        )

    def _found(self, problem: VariationalInference, plain: VariationalState, judged: Sides) -> Graphs:
        """The graphs to judge as a run without them shows them; where there are none, those that nobody doubts."""
        # Columns that are about to die would hide what rows have in common.
        state = problem.without_weak_columns(plain) or plain
        return _found(problem, state, self.graphs, judged, are_learned=self.are_learned)


def _worth_it(gains: Gains, judged: Sides, numbers: range, together: Together) -> Sides:
    """Sides whose graphs lower errors by some standard errors of all parts together, of which there may be so many."""
    for parts in range(1, numbers.stop):
        lead = _lead(together(gains(judged, parts)))
        clear, hopeless = (_CLEAR, _HOPELESS) if parts in numbers else (np.inf, _HOPELESS_ALONE)
        if not hopeless < lead < clear:
            break
    if lead <= _WORTH:
        return _NEITHER
    # What one side gains must not pay for what the other loses.
    rivals: tuple[Sides, ...] = (judged, *_ALONE) if all(judged) else (judged,)
    return max(rivals, key=lambda sides: float(together(gains(sides, parts)).sum()))


def _harmless(gains: Gains, judged: Sides, numbers: range) -> Sides:
    """Sides whose graphs do not raise errors beyond doubt: each beside that of the other side, and together.

    Either of two graphs may do no harm beside the other that does the same. Parts count alike: short runs may end in
    different optima, and one part would outweigh all others.
    """
    leads = [0.0, 0.0]
    for parts in numbers:
        for side, rest in enumerate(((False, judged[1]), (judged[0], False))):
            leads[side] = _lead_of_parts(gains(judged, parts), gains(rest, parts))
        if all(abs(lead) > _CLEAR for lead, is_judged in zip(leads, judged, strict=True) if is_judged):
            break
    stay = judged[0] and leads[0] > _HARMLESS, judged[1] and leads[1] > _HARMLESS
    return stay if _lead_of_parts(gains(stay, parts), gains(_NEITHER, parts)) > _HARMLESS else _NEITHER


def _lead_of_parts(gains: list[FloatArray], others: list[FloatArray]) -> float:
    """What some gains are ahead of others by, in standard errors, each part counting alike."""
    leads = [_lead(mine - theirs) for mine, theirs in zip(gains, others, strict=True)]
    return sum(leads) / math.sqrt(len(leads))


def _mean(parts: list[FloatArray]) -> FloatArray:
    return np.asarray(np.mean(parts, axis=0))


def _lead(gains: FloatArray) -> float:
    """A sum of gains in standard errors."""
    error = float(np.linalg.norm(gains))
    return float(gains.sum()) / error if error > 0 else 0.0


def _chosen(sides: Sides, graphs: Graphs, others: Graphs) -> Graphs:
    """The graphs on some sides, the others elsewhere."""
    return (graphs if sides[0] else others)[0], (graphs if sides[1] else others)[1]


def _are_same(graphs: Graphs, others: Graphs) -> bool:
    return graphs[0] is others[0] and graphs[1] is others[1]


def _found(
    problem: VariationalInference, state: VariationalState, graphs: Graphs, sides: Sides, *, are_learned: bool
) -> Graphs:
    """Graphs with what the learners of some sides learn from a state, or offer."""
    sample_graph, feature_graph = graphs
    if sides[0]:
        sample_graph = _of_learner(problem.sample_learner, problem.sample_moments(state), sample_graph, are_learned)
    if sides[1]:
        feature_graph = _of_learner(problem.feature_learner, problem.feature_moments(state), feature_graph, are_learned)
    return sample_graph, feature_graph


def _of_learner(learner: GraphLearner, moments: FactorMoments, graph: GraphEstimate, is_learned: bool) -> GraphEstimate:
    """What a learner learns or offers; the graph itself where that has no edge."""
    found = learner.learn(moments, graph) if is_learned else replace(learner.unproven(moments, graph), proven=False)
    return found if found.n_edges else graph

"""Graphs that the factors do not prove, where held-out entries speak for them.

Where data is noisy, a factor's few columns cannot say which of its rows are alike, and still a graph with many weak
edges can lower errors by some per cent; or raise them. Entries that were held out decide: short runs without the
graph and with it, each learned from the entries that were left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lgmd.factors import Intercepts
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.observed import hold_out
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


def with_unproven(problem: VariationalInference, state: VariationalState, graphs: Graphs) -> Graphs:
    """Graphs that were learned from a state; on sides without edges those that learners offer, if they are worth it.

    Tables with more than a million entries know their factors well enough; those with few entries, and those whose
    noise has to be held, know them too little.
    """
    if state.holds_noise or not _FEWEST_ENTRIES <= problem.data.n_observed <= SHARED_ENTRIES:
        return graphs
    offered = _offered(problem, state, graphs)
    if all(mine is theirs for mine, theirs in zip(offered, graphs, strict=True)):
        return graphs
    intercepts = Intercepts(state.overall, state.samples.intercepts, state.features.intercepts)
    n, p = problem.data.shape
    if n < p:
        # Short runs depend on which side comes first: a table and its transpose are judged by the same ones.
        is_better = _foresees_more(problem.T, intercepts.T, graphs[::-1], state)
    else:
        is_better = _foresees_more(problem, intercepts, graphs, state)
    return offered if is_better else graphs


def _foresees_more(
    problem: VariationalInference, intercepts: Intercepts, graphs: Graphs, like: VariationalState
) -> bool:
    """Whether offered graphs foresee held-out entries better, with the prior that a state has."""
    # A complete table knows the bold start alone, also where entries are held out from it.
    may_be_cautious = not problem.data.is_complete

    def after_a_run(problem: VariationalInference, graphs: Graphs) -> VariationalState:
        starter = Starter(problem, intercepts, graphs, 0)
        return starter.short_run(shared=like.shared, optimism=like.noise.optimism, may_be_cautious=may_be_cautious)

    gains = np.zeros(0)
    for part in range(n_parts(problem.data.n_observed)):
        kept, held = hold_out(problem.data, _HELD_OUT, part)
        of_part = replace(problem, data=kept)
        plain = after_a_run(of_part, graphs)
        shaped = after_a_run(of_part, _offered(of_part, plain, graphs))
        gains = np.append(gains, losses(plain, held) - losses(shaped, held))
        balance, error = float(gains.sum()), float(np.linalg.norm(gains))
        if balance >= _CLEAR * error or balance <= _HOPELESS * error:
            break
    return balance > _WORTH * error


def _offered(problem: VariationalInference, state: VariationalState, graphs: Graphs) -> Graphs:
    sample_graph, feature_graph = graphs
    if not sample_graph.n_edges:
        sample_graph = _unproven(problem.sample_learner, problem.sample_moments(state), sample_graph)
    if not feature_graph.n_edges:
        feature_graph = _unproven(problem.feature_learner, problem.feature_moments(state), feature_graph)
    return sample_graph, feature_graph


def _unproven(learner: GraphLearner, moments: FactorMoments, graph: GraphEstimate) -> GraphEstimate:
    """What a learner offers, or the graph itself where that has no edge either."""
    offered = learner.unproven(moments, graph)
    return offered if offered.n_edges else graph

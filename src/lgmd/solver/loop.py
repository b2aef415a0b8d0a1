"""Algorithm 1 of the paper: graphs and factors in turn.

One iteration updates both factors once. When they have settled, the graphs are learned from them, a few times in all;
then the factors run to convergence. With exact half-steps the objective falls in every iteration in which the graphs
are held.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias

from lgmd.linalg.threads import blas_threads_worth
from lgmd.solver.checkpoint import Checkpoint
from lgmd.solver.convergence import Status
from lgmd.solver.graph_updates import updates_left
from lgmd.solver.history import History, Record
from lgmd.solver.problem import Inference, Iteration, State, StateT

__all__ = ["Callback", "Progress", "Schedule", "Solution", "solve"]


@dataclass(frozen=True)
class Schedule:
    """When to do what.

    Attributes
    ----------
    max_iter : int
    tol : float
        Change of the objective, in the measure of the inference, below which the run has converged.
    graph_updates : int
        How often the graphs are learned.
    settle_tol : float
        Change below which the factors are fit to learn a graph from. In any case the updates of the graphs
        are spread over ``max_iter``, so that none is left out.
    """

    max_iter: int = 200
    tol: float = 1e-5
    graph_updates: int = 3
    settle_tol: float = 1e-3


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each iteration."""

    iteration: int
    max_iter: int
    record: Record
    state: State


Callback: TypeAlias = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Solution(Generic[StateT]):
    """The end of a run."""

    state: StateT
    history: History
    status: Status
    graph_updates_left: int
    """How often the graphs were still to be learned."""


def solve(
    problem: Inference[StateT],
    state: StateT,
    schedule: Schedule,
    *,
    history: History | None = None,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> Solution[StateT]:
    """Run from ``state`` until convergence, ``max_iter``, a callback that returns True, or Ctrl-C.

    ``history`` is that of an earlier run to go on with.
    """
    n, p = problem.data.shape
    with blas_threads_worth(n * p * problem.n_components if problem.data.is_complete else 0):
        return _alternate(problem, state, schedule, history, callback, checkpoint)


def _alternate(
    problem: Inference[StateT],
    state: StateT,
    schedule: Schedule,
    history: History | None,
    callback: Callback | None,
    checkpoint: Checkpoint | None,
) -> Solution[StateT]:
    history = History() if history is None else history
    before = history.records[-1].seconds if history.records else 0.0
    started = time.perf_counter()
    status = Status.MAX_ITER
    try:
        iterate = problem.prepare(state)
        state = problem.settle(state)
        while status is Status.MAX_ITER and len(history) < schedule.max_iter:
            graph_step = False
            if _has_converged(problem, schedule, state, history):
                smaller = _smaller(problem, iterate, state)
                if smaller is None:
                    break
                following, terms = smaller
            else:
                graph_step, following = _graphs_due(problem, schedule, state, history), state
                if graph_step:
                    following = problem.learn_graphs(following, int(history.graph_steps.sum()))
                    iterate = problem.prepare(following)
                following, terms = iterate(following)
            seconds = before + time.perf_counter() - started
            record = _record(problem, following, terms, history, graph_step, seconds)
            first = history.records[0] if history.records else record
            problem.refuse_divergence(terms, first.terms, len(history) + 1)
            state, history = following, history.append(record)
            if checkpoint is not None:
                checkpoint.save(problem, state, history)
            if callback is not None and callback(Progress(len(history), schedule.max_iter, record, state)):
                status = Status.STOPPED
        if _has_converged(problem, schedule, state, history):
            status = Status.CONVERGED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        state = problem.settle(state)
    if checkpoint is not None:
        checkpoint.save(problem, state, history, force=True)
    return Solution(state, history, status, _graph_updates_left(problem, schedule, state, history))


def _smaller(
    problem: Inference[StateT], iterate: Iteration[StateT], state: StateT
) -> tuple[StateT, dict[str, float]] | None:
    """What an iteration makes of the state without its weak columns, if that is better than with them."""
    smaller = problem.without_weak_columns(state)
    if smaller is None:
        return None
    (following, terms), (_, terms_of_all) = iterate(smaller), iterate(state)
    return (following, terms) if sum(terms.values()) < sum(terms_of_all.values()) else None


def _graph_updates_left(problem: Inference[StateT], schedule: Schedule, state: StateT, history: History) -> int:
    done = int(history.graph_steps.sum())
    return updates_left(_graph_updates(problem, schedule), done, (state.sample_graph, state.feature_graph))


def _graph_updates(problem: Inference[StateT], schedule: Schedule) -> int:
    return min(schedule.graph_updates, max(problem.sample_learner.rounds, problem.feature_learner.rounds))


def _graphs_due(problem: Inference[StateT], schedule: Schedule, state: StateT, history: History) -> bool:
    """Whether a graph is left to learn, and the factors have settled or have had their share of the iterations."""
    left = _graph_updates_left(problem, schedule, state, history)
    if left <= 0:
        return False
    settled = abs(history.last_change) <= max(schedule.settle_tol, schedule.tol)
    share = 1 - left / (_graph_updates(problem, schedule) + 1)
    return settled or len(history) >= max(1, share * schedule.max_iter)


def _has_converged(problem: Inference[StateT], schedule: Schedule, state: StateT, history: History) -> bool:
    change = history.last_change
    # Where every step is an improvement, a loss is round-off: there is nothing left to gain.
    settled = abs(change) <= schedule.tol or (problem.only_improves and change < 0 < schedule.tol)
    return settled and _graph_updates_left(problem, schedule, state, history) <= 0


def _record(
    problem: Inference[StateT],
    state: StateT,
    terms: dict[str, float],
    history: History,
    graph_step: bool,
    seconds: float,
) -> Record:
    objective = sum(terms.values())
    change = math.nan
    if history.records and not graph_step:
        previous = history.records[-1]
        size = max(problem.size(previous.terms), problem.size(terms), 1e-300)
        change = (previous.objective - objective) / size
    return Record(
        objective,
        terms,
        change,
        graph_step,
        state.sample_graph.n_edges,
        state.feature_graph.n_edges,
        seconds,
    )

"""Algorithm 1 of the paper: graphs and factors in turn.

One iteration updates both factors once. When they have settled, the graphs are learned from them, a few times in all;
then the factors run to convergence. With exact half-steps the objective falls in every iteration in which the graphs
are held.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from lgmd.exceptions import DivergenceError
from lgmd.factors import PreparedUpdate, balancing, translation
from lgmd.graphs import FactorMoments
from lgmd.linalg.threads import blas_threads_worth
from lgmd.solver.checkpoint import Checkpoint
from lgmd.solver.convergence import Status
from lgmd.solver.history import History, Record
from lgmd.solver.objective import gram, objective_terms, settle_mean
from lgmd.solver.problem import Problem, State

__all__ = ["Callback", "Progress", "Schedule", "Solution", "solve"]

# An update that multiplies what it should lower by this much is not coming back.
_DIVERGED = 1e3


@dataclass(frozen=True)
class Schedule:
    """When to do what.

    Attributes
    ----------
    max_iter : int
    tol : float
        Relative decrease of the objective below which the run has converged.
    graph_updates : int
        How often the graphs are learned.
    settle_tol : float
        Relative decrease below which the factors are fit to learn a graph from. In any case the updates of the graphs
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
class Solution:
    """The end of a run."""

    state: State
    history: History
    status: Status
    squares: float
    """Sum of squared residuals at the end."""
    graph_updates_left: int
    """How often the graphs were still to be learned."""


def solve(
    problem: Problem,
    state: State,
    schedule: Schedule,
    *,
    history: History | None = None,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> Solution:
    """Run from ``state`` until convergence, ``max_iter``, a callback that returns True, or Ctrl-C.

    ``history`` is that of an earlier run to go on with.
    """
    n, p = problem.data.shape
    with blas_threads_worth(n * p * problem.n_components if problem.data.is_complete else 0):
        return _alternate(problem, state, schedule, history, callback, checkpoint)


def _alternate(
    problem: Problem,
    state: State,
    schedule: Schedule,
    history: History | None,
    callback: Callback | None,
    checkpoint: Checkpoint | None,
) -> Solution:
    history = History() if history is None else history
    before = history.records[-1].seconds if history.records else 0.0
    started = time.perf_counter()
    # A finished run that is taken up again has nothing left to do.
    status = Status.CONVERGED if _has_converged(problem, schedule, history) else Status.MAX_ITER
    squares = math.nan
    try:
        updates = _prepare(problem, state)
        state, squares = settle_mean(problem, state)
        while status is Status.MAX_ITER and len(history) < schedule.max_iter:
            graph_step = _graphs_due(problem, schedule, history)
            following = state
            if graph_step:
                following = _learn_graphs(problem, following)
                updates = _prepare(problem, following)
            following = _sweep(following, *updates)
            if problem.update.balances:
                following = _balance(problem, following)
            following, squares = settle_mean(problem, following)
            record = _record(problem, following, squares, history, graph_step, before + time.perf_counter() - started)
            _refuse_divergence(problem, record, history)
            state, history = following, history.append(record)
            if checkpoint is not None:
                checkpoint.save(problem, state, history)
            stop = callback is not None and callback(Progress(len(history), schedule.max_iter, record, state))
            if _has_converged(problem, schedule, history):
                status = Status.CONVERGED
            elif stop:
                status = Status.STOPPED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        squares = settle_mean(problem, state)[1]
    if checkpoint is not None:
        checkpoint.save(problem, state, history, force=True)
    return Solution(state, history, status, squares, _graph_updates_left(problem, schedule, history))


def _sweep(state: State, update_samples: PreparedUpdate, update_features: PreparedUpdate) -> State:
    """Both half-steps: rows with the columns held, then columns with the new rows held."""
    means = state.intercepts
    X, rows = update_samples(state.X, state.W, means.column_offsets)
    means = replace(means, rows=rows)
    W, columns = update_features(state.W, X, means.T.column_offsets)
    return replace(state, X=X, W=W, intercepts=replace(means, columns=columns))


def _balance(problem: Problem, state: State) -> State:
    """Lower the priors without touching the fit.

    Factors and intercepts pass to each other what both can express, then the basis between the factors is balanced.
    """
    X, W, means, dtype = state.X, state.W, state.intercepts, state.X.dtype
    samples, features = problem.sample_half(state.sample_graph), problem.feature_half(state.feature_graph)
    if samples.intercept_ridge:
        shift = translation(X, means.rows, samples.intercept_ridge, W, features.precision, features.penalty)
        W, means = W + shift.astype(dtype), replace(means, rows=means.rows - X @ shift.astype(dtype))
    if features.intercept_ridge:
        shift = translation(W, means.columns, features.intercept_ridge, X, samples.precision, samples.penalty)
        X, means = X + shift.astype(dtype), replace(means, columns=means.columns - W @ shift.astype(dtype))
    change = balancing(samples.penalty * gram(X, state.sample_graph), features.penalty * gram(W, state.feature_graph))
    if change is not None:
        X, W = X @ change[0].astype(dtype), W @ change[1].astype(dtype)
    return replace(state, X=X, W=W, intercepts=means)


def _prepare(problem: Problem, state: State) -> tuple[PreparedUpdate, PreparedUpdate]:
    """What the half-steps can do once for as long as the graphs are held."""
    return (
        problem.update.prepare(problem.sample_half(state.sample_graph)),
        problem.update.prepare(problem.feature_half(state.feature_graph)),
    )


def _learn_graphs(problem: Problem, state: State) -> State:
    return replace(
        state,
        sample_graph=problem.sample_learner.learn(FactorMoments(state.X), state.sample_graph),
        feature_graph=problem.feature_learner.learn(FactorMoments(state.W), state.feature_graph),
    )


def _graph_updates_left(problem: Problem, schedule: Schedule, history: History) -> int:
    return schedule.graph_updates - int(history.graph_steps.sum()) if problem.learns_graphs else 0


def _graphs_due(problem: Problem, schedule: Schedule, history: History) -> bool:
    """Whether a graph is left to learn, and the factors have settled or have had their share of the iterations."""
    left = _graph_updates_left(problem, schedule, history)
    if left <= 0:
        return False
    settled = abs(history.last_change) <= max(schedule.settle_tol, schedule.tol)
    share = 1 - left / (schedule.graph_updates + 1)
    return settled or len(history) >= max(1, share * schedule.max_iter)


def _has_converged(problem: Problem, schedule: Schedule, history: History) -> bool:
    settled = abs(history.last_change) <= schedule.tol
    return settled and _graph_updates_left(problem, schedule, history) <= 0


def _record(
    problem: Problem, state: State, squares: float, history: History, graph_step: bool, seconds: float
) -> Record:
    terms = objective_terms(problem, state, squares)
    objective = sum(terms.values())
    change = math.nan
    if history.records and not graph_step:
        previous = history.records[-1]
        # The log-determinants are constants here, of any size and sign: what changes is judged by what is positive.
        change = (previous.objective - objective) / max(_size(previous.terms), _size(terms), 1e-300)
    return Record(
        objective,
        terms,
        change,
        graph_step,
        state.sample_graph.n_edges,
        state.feature_graph.n_edges,
        seconds,
    )


def _size(terms: dict[str, float]) -> float:
    """The objective without the terms of the graphs alone: a sum of squares."""
    return terms["fit"] + terms["sample_prior"] + terms["feature_prior"] + terms["intercepts"]


def _refuse_divergence(problem: Problem, record: Record, history: History) -> None:
    """Stop at once where an update without a guarantee runs away."""
    first = history.records[0] if history.records else record
    if math.isfinite(record.objective):
        if problem.update.balances or _size(record.terms) <= _DIVERGED * max(_size(first.terms), 1e-300):
            return
    elif problem.update.balances:
        raise DivergenceError(
            f"The objective became {record.objective} in iteration {len(history) + 1}. The penalties may be too small "
            "for this table: raise sample_penalty, feature_penalty or intercept_penalty."
        )
    raise DivergenceError(
        f"The factor updates diverged in iteration {len(history) + 1}: the objective went from "
        f'{first.objective:.3g} to {record.objective:.3g}. The printed update (update="paper") converges only while '
        "each penalty times the largest eigenvalue of its graph stays below the smallest eigenvalue of the other "
        "factor's Gram matrix. "
        'Lower the penalties, or use update="auto", which is exact.'
    )

"""The objective and its terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lgmd._typing import FloatArray
from lgmd.graphs import GraphEstimate
from lgmd.solver.problem import Problem, State

__all__ = ["gram", "objective_terms", "settle_mean"]


def settle_mean(problem: Problem, state: State) -> tuple[State, float]:
    """Move the overall mean to its minimum, which needs nothing but the residuals' sum, and centre the other means.

    Returns the state and the sum of squared residuals after the move.
    """
    means = state.intercepts
    squares, total = problem.data.residual_sums(means.rows, means.column_offsets, state.X, state.W)
    if not problem.intercepts.overall:
        return state, squares
    shift = total / problem.data.n_observed
    return replace(state, intercepts=means.settled(shift)), squares - problem.data.n_observed * shift**2


def objective_terms(problem: Problem, state: State, squares: float) -> dict[str, float]:
    r"""The terms of the MAP objective.

    .. math::
        \tfrac12 \|P_O(Y - XW^T - \ldots)\|^2
        + \tfrac{\lambda_1}{2} (\mathrm{tr}\, X^T A X - k \ln|A| + k \eta_1 \|A\|_{1,\mathrm{off}})
        + \tfrac{\lambda_2}{2} (\mathrm{tr}\, W^T B W - k \ln|B| + k \eta_2 \|B\|_{1,\mathrm{off}})
        + \tfrac{\tau}{2} (\|a\|^2 + \|b\|^2)

    ``squares`` is the sum of squared residuals. The objective is the sum of the terms.
    """
    means = state.intercepts
    return {
        "fit": 0.5 * squares,
        "sample_prior": 0.5 * problem.sample_penalty * _quadratic(state.X, state.sample_graph),
        "sample_graph": 0.5 * problem.sample_penalty * _graph_term(state.X, state.sample_graph),
        "feature_prior": 0.5 * problem.feature_penalty * _quadratic(state.W, state.feature_graph),
        "feature_graph": 0.5 * problem.feature_penalty * _graph_term(state.W, state.feature_graph),
        "intercepts": 0.5 * problem.intercept_penalty * (_squares(means.rows) + _squares(means.columns)),
    }


def gram(factor: FloatArray, graph: GraphEstimate) -> FloatArray:
    """``X'AX``, (k, k), in double precision."""
    factor = factor.astype(np.float64, copy=False)
    return np.asarray(factor.T @ (graph.precision @ factor))


def _quadratic(factor: FloatArray, graph: GraphEstimate) -> float:
    """``tr X'AX``."""
    factor = factor.astype(np.float64, copy=False)
    return float(np.sum(factor * (graph.precision @ factor)))


def _graph_term(factor: FloatArray, graph: GraphEstimate) -> float:
    return float(factor.shape[1] * (graph.penalty - graph.logdet))


def _squares(vector: FloatArray) -> float:
    return float(np.sum(np.square(vector, dtype=np.float64)))

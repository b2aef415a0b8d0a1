r"""Maximum a posteriori inference: the most probable factors, as in the paper.

.. math::
    \tfrac12 \|P_O(Y - XW^T - \ldots)\|^2
    + \tfrac{\lambda_1}{2} (\mathrm{tr}\, X^T A X - k \ln|A| + k \eta_1 \|A\|_{1,\mathrm{off}})
    + \tfrac{\lambda_2}{2} (\mathrm{tr}\, W^T B W - k \ln|B| + k \eta_2 \|B\|_{1,\mathrm{off}})
    + \tfrac{\tau}{2} (\|a\|^2 + \|b\|^2)

With exact half-steps it falls in every iteration in which the graphs are held.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray, RandomState
from lgmd.exceptions import DivergenceError
from lgmd.factors import (
    FactorUpdate,
    Half,
    Intercepts,
    InterceptTerms,
    PreparedUpdate,
    balancing,
    initial_factors,
    translation,
)
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.observed import Observed
from lgmd.solver.graph_updates import known_rows, updated
from lgmd.solver.problem import FEATURES, SAMPLES, Iteration

__all__ = ["MapInference", "MapState"]

# An update that multiplies what it should lower by this much is not coming back.
_DIVERGED = 1e3


@dataclass(frozen=True)
class MapState:
    """Where the minimisation stands.

    Attributes
    ----------
    X : ndarray of shape (n, k)
    W : ndarray of shape (p, k)
    intercepts : Intercepts
    sample_graph, feature_graph : GraphEstimate
    squares : float
        Sum of squared residuals; NaN before the overall mean has been settled.
    """

    X: FloatArray
    W: FloatArray
    intercepts: Intercepts
    sample_graph: GraphEstimate
    feature_graph: GraphEstimate
    squares: float = math.nan


@dataclass(frozen=True)
class MapInference:
    """The decomposition to find.

    Attributes
    ----------
    data : Observed
        The table at unit scale.
    n_components : int
    sample_penalty, feature_penalty : float
        Strength of the two graph terms, positive.
    intercepts : InterceptTerms
    intercept_penalty : float
        Ridge on row and column intercepts.
    sample_learner, feature_learner : GraphLearner
    update : FactorUpdate
        How half-steps are taken.
    """

    data: Observed
    n_components: int
    sample_penalty: float
    feature_penalty: float
    intercepts: InterceptTerms
    intercept_penalty: float
    sample_learner: GraphLearner
    feature_learner: GraphLearner
    update: FactorUpdate

    @property
    def only_improves(self) -> bool:
        """Whether the update is exact."""
        return self.update.balances

    def start(self, intercepts: Intercepts, random_state: RandomState) -> MapState:
        """Truncated singular value decomposition and the graphs that need no factor."""
        sample_graph = self.sample_learner.start(self.data, SAMPLES)
        feature_graph = self.feature_learner.start(self.data.T, FEATURES)
        X, W = initial_factors(self.data, intercepts, self.n_components, random_state)
        return MapState(X, W, intercepts, sample_graph, feature_graph)

    def prepare(self, state: MapState) -> Iteration[MapState]:
        """What the half-steps can do once for as long as the graphs are held."""
        update_samples = self.update.prepare(self._sample_half(state.sample_graph))
        update_features = self.update.prepare(self._feature_half(state.feature_graph))

        def iterate(state: MapState) -> tuple[MapState, dict[str, float]]:
            state = _sweep(state, update_samples, update_features)
            if self.update.balances:
                state = self._balance(state)
            state = self.settle(state)
            return state, self.terms(state)

        return iterate

    def without_weak_columns(self, state: MapState) -> None:
        """The penalties alone say what a column is worth."""

    def settle(self, state: MapState) -> MapState:
        """Move the overall mean to its minimum, which needs nothing but the residuals' sum, and centre the others."""
        means, data = state.intercepts, self.data
        squares, total = data.residual_sums(means.rows, means.column_offsets, state.X, state.W)
        if not self.intercepts.overall:
            return replace(state, squares=squares)
        shift = total / data.n_observed
        return replace(state, intercepts=means.settled(shift), squares=squares - data.n_observed * shift**2)

    def learn_graphs(self, state: MapState, times_before: int) -> MapState:
        """The graphs anew from the factors."""
        return replace(
            state,
            sample_graph=updated(
                self.sample_learner,
                lambda: FactorMoments(known_rows(state.X, self.data, state.sample_graph.precision)),
                state.sample_graph,
                times_before,
            ),
            feature_graph=updated(
                self.feature_learner,
                lambda: FactorMoments(known_rows(state.W, self.data.T, state.feature_graph.precision)),
                state.feature_graph,
                times_before,
            ),
        )

    def terms(self, state: MapState) -> dict[str, float]:
        """The terms of the objective, which is their sum."""
        means = state.intercepts
        return {
            "fit": 0.5 * state.squares,
            "sample_prior": 0.5 * self.sample_penalty * _quadratic(state.X, state.sample_graph),
            "sample_graph": 0.5 * self.sample_penalty * _graph_term(state.X, state.sample_graph),
            "feature_prior": 0.5 * self.feature_penalty * _quadratic(state.W, state.feature_graph),
            "feature_graph": 0.5 * self.feature_penalty * _graph_term(state.W, state.feature_graph),
            "intercepts": 0.5 * self.intercept_penalty * (_squares(means.rows) + _squares(means.columns)),
        }

    def size(self, terms: dict[str, float]) -> float:
        """The objective without the terms of the graphs alone, a sum of squares.

        The log-determinants are constants of any size and sign: what changes is judged by what is positive.
        """
        return terms["fit"] + terms["sample_prior"] + terms["feature_prior"] + terms["intercepts"]

    def refuse_divergence(self, terms: dict[str, float], first: dict[str, float], iteration: int) -> None:
        """Stop at once where an update without a guarantee runs away."""
        objective = sum(terms.values())
        if math.isfinite(objective):
            if self.update.balances or self.size(terms) <= _DIVERGED * max(self.size(first), 1e-300):
                return
        elif self.update.balances:
            raise DivergenceError(
                f"The objective became {objective} in iteration {iteration}. The penalties may be too small "
                "for this table: raise sample_penalty, feature_penalty or intercept_penalty."
            )
        raise DivergenceError(
            f"The factor updates diverged in iteration {iteration}: the objective went from "
            f'{sum(first.values()):.3g} to {objective:.3g}. The printed update (update="paper") converges only while '
            "each penalty times the largest eigenvalue of its graph stays below the smallest eigenvalue of the other "
            "factor's Gram matrix. "
            'Lower the penalties, or use update="auto", which is exact.'
        )

    def pack(self, state: MapState) -> tuple[dict[str, Any], dict[str, Array]]:
        """The state as JSON values and arrays, without the graphs."""
        means = state.intercepts
        arrays = {"X": state.X, "W": state.W, "rows": means.rows, "columns": means.columns}
        return {"overall": means.overall}, arrays

    def unpack(
        self,
        values: dict[str, Any],
        arrays: dict[str, Array],
        sample_graph: GraphEstimate,
        feature_graph: GraphEstimate,
    ) -> MapState:
        """The inverse of :meth:`pack`."""
        means = Intercepts(values["overall"], arrays["rows"], arrays["columns"])
        return MapState(arrays["X"], arrays["W"], means, sample_graph, feature_graph)

    def _sample_half(self, graph: GraphEstimate) -> Half:
        ridge = self.intercept_penalty if self.intercepts.rows else None
        return Half(self.data, self.sample_penalty, graph.precision, ridge)

    def _feature_half(self, graph: GraphEstimate) -> Half:
        ridge = self.intercept_penalty if self.intercepts.columns else None
        return Half(self.data.T, self.feature_penalty, graph.precision, ridge)

    def _balance(self, state: MapState) -> MapState:
        """Lower the priors without touching the fit.

        Factors and intercepts pass to each other what both can express, then the basis between the factors is balanced.
        """
        X, W, means, dtype = state.X, state.W, state.intercepts, state.X.dtype
        samples, features = self._sample_half(state.sample_graph), self._feature_half(state.feature_graph)
        if samples.intercept_ridge:
            shift = _passed_on(X, means.rows, samples.intercept_ridge, W, features).astype(dtype)
            W, means = W + shift, replace(means, rows=means.rows - X @ shift)
        if features.intercept_ridge:
            shift = _passed_on(W, means.columns, features.intercept_ridge, X, samples).astype(dtype)
            X, means = X + shift, replace(means, columns=means.columns - W @ shift)
        sample_prior = samples.penalty * _gram(X, state.sample_graph)
        feature_prior = features.penalty * _gram(W, state.feature_graph)
        change = balancing(sample_prior, feature_prior)
        if change is not None:
            before, after = np.trace(sample_prior) + np.trace(feature_prior), 0.0
            for prior, basis in zip((sample_prior, feature_prior), change, strict=True):
                after += float(np.sum(basis * (prior @ basis)))
            if after < before:  # round-off may leave nothing to gain
                X, W = X @ change[0].astype(dtype), W @ change[1].astype(dtype)
        return replace(state, X=X, W=W, intercepts=means)


def _sweep(state: MapState, update_samples: PreparedUpdate, update_features: PreparedUpdate) -> MapState:
    """Both half-steps: rows with the columns held, then columns with the new rows held."""
    means = state.intercepts
    X, rows = update_samples(state.X, state.W, means.column_offsets)
    means = replace(means, rows=rows)
    W, columns = update_features(state.W, X, means.T.column_offsets)
    return replace(state, X=X, W=W, intercepts=replace(means, columns=columns))


def _passed_on(
    factor: FloatArray, intercepts: FloatArray, ridge: float, other: FloatArray, other_half: Half
) -> FloatArray:
    factor = factor.astype(np.float64, copy=False)
    penalties = np.full(factor.shape[1], other_half.penalty)
    moments, cross = factor.T @ factor, intercepts @ factor
    return translation(ridge * moments, ridge * cross, other, other_half.precision, penalties)


def _gram(factor: FloatArray, graph: GraphEstimate) -> FloatArray:
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

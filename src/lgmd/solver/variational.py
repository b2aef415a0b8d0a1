r"""Variational inference: Gaussian posteriors of both sides, and nothing to tune.

The posterior is approximated by q(X, a) q(W, b). Noise, prior variances (one a factor column and side, one for the
intercepts of each side) and the overall mean take the values that maximise the evidence lower bound

.. math::
    E[\ln p(Y \mid X, W, a, b)] - \mathrm{KL}(q(X, a) \| p) - \mathrm{KL}(q(W, b) \| p),

whose negative is the objective. Columns that the data does not ask for shrink to nothing and are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from lgmd._typing import Array, FloatArray, RandomState
from lgmd.exceptions import DivergenceError
from lgmd.factors import (
    Intercepts,
    InterceptTerms,
    Noise,
    NoiseModel,
    RowCovariances,
    SidePosterior,
    TablePosterior,
    VariationalHalf,
    VariationalStart,
    analytic_start,
    prepare_posterior,
    singular_start,
)
from lgmd.factors.storage import pack_noise, pack_posterior, unpack_noise, unpack_posterior
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.observed import Observed
from lgmd.solver.problem import FEATURES, SAMPLES, Iteration
from lgmd.solver.variational_state import VariationalState, balanced, without_dead_columns

__all__ = ["VariationalInference", "VariationalState"]

# Share of the variance that the bold start takes for noise.
_BOLD = 0.1

# Entries of a table with gaps on which starts are tried; larger tables are sampled.
_SAMPLE_ENTRIES = 4_000_000

# Iterations for which the cautious start holds the noise.
_HELD = 10

# Most iterations of each start before the better one goes on, and the change at which it is judged earlier.
_TRIAL, _TRIAL_TOL = 30, 3e-4


class _Iterate(Protocol):
    def __call__(self, state: VariationalState, *, hold_noise: bool) -> tuple[VariationalState, dict[str, float]]:
        """The next state and the terms of its objective."""
        ...


@dataclass(frozen=True)
class VariationalInference:
    """The posterior to find.

    Attributes
    ----------
    data : Observed
        The table at unit scale.
    n_components : int
        Most columns of the factors.
    intercepts : InterceptTerms
    sample_learner, feature_learner : GraphLearner
    noise : NoiseModel
    diagonal : bool
        Whether all numbers are taken as independent: for many factors.
    """

    data: Observed
    n_components: int
    intercepts: InterceptTerms
    sample_learner: GraphLearner
    feature_learner: GraphLearner
    noise: NoiseModel
    diagonal: bool = False

    @property
    def only_improves(self) -> bool:
        """Always."""
        return True

    def start(self, intercepts: Intercepts, random_state: RandomState) -> VariationalState:
        """The analytic solution of a complete table without graphs; otherwise singular vectors, boldly or cautiously.

        The bold start takes a tenth of the variance for noise. The cautious one takes all of it and holds that for a
        while: columns then have to earn their place, as they should where data is thin. Without a graph that joins the
        thin data both are tried, and the better bound goes on.
        """
        graphs = (
            self.sample_learner.start(self.data, SAMPLES),
            self.feature_learner.start(self.data.T, FEATURES),
        )
        if not self.data.is_complete and self.data.n_observed > _SAMPLE_ENTRIES:
            return self._start_from_sample(intercepts, graphs, random_state)
        return self._start_from_all(intercepts, graphs, random_state)

    def _start_from_all(
        self, intercepts: Intercepts, graphs: tuple[GraphEstimate, GraphEstimate], random_state: RandomState
    ) -> VariationalState:
        has_edges = graphs[0].n_edges + graphs[1].n_edges > 0
        arguments = (self.data, intercepts, self.intercepts, self.n_components)
        if self.data.is_complete and not has_edges and not self.noise.by_entries:
            return self._state(analytic_start(*arguments, random_state), intercepts, graphs)
        variance, weights = self.noise.first_look(self.data, intercepts)
        start = singular_start(*arguments, _BOLD * variance, random_state, weights)
        start = start.under(graphs[0].precision, graphs[1].precision)
        bold = self._state(start, intercepts, graphs, weights)
        if self.data.is_complete or has_edges:
            return bold
        cautious = self._state(_flattened(start, variance), intercepts, graphs, weights)
        iterate = self._prepare(bold)
        for _ in range(_HELD):
            cautious, _ = iterate(cautious, hold_noise=True)
        bold, bold_loss = self._tried(bold, iterate)
        cautious, cautious_loss = self._tried(cautious, iterate)
        return bold if bold_loss <= cautious_loss else cautious

    def _start_from_sample(
        self, intercepts: Intercepts, graphs: tuple[GraphEstimate, GraphEstimate], random_state: RandomState
    ) -> VariationalState:
        """The same on some rows of a large table, or some columns of a wide one, without their graph.

        The first half-step asks for nothing but the posterior of the other side, which a sample tells well enough.
        """
        n, p = self.data.shape
        weights = self.noise.first_look(self.data, intercepts)[1]
        if n < p:
            found = self.T._start_from_sample(intercepts.T, graphs[::-1], random_state)
            noise = self.noise.start(self.data, found.noise.level, weights)
            # Iterations begin with the rows, for which the columns have to be known.
            update = prepare_posterior(self._feature_half(graphs[1]))
            features = update(found.samples, found.features, noise.T, found.overall).posterior
            return VariationalState(found.features, features, found.overall, noise, *graphs)
        size = max(self.n_components, int(n * _SAMPLE_ENTRIES / self.data.n_observed))
        rows = np.sort(check_random_state(random_state).choice(n, size, replace=False))
        part = replace(self, data=self.data.rows(rows))
        found = part._start_from_all(
            replace(intercepts, rows=intercepts.rows[rows]), (GraphEstimate.identity(size), graphs[1]), random_state
        )
        mean = np.zeros((n, found.samples.rank + 1), self.data.dtype)
        mean[:, -1] = intercepts.rows
        samples = replace(found.samples, mean=mean, covariance=RowCovariances.zero(mean.shape, mean.dtype))
        if self.diagonal:
            samples = samples.independent()
        noise = self.noise.start(self.data, found.noise.level, weights)
        return VariationalState(samples, found.features, found.overall, noise, *graphs)

    @property
    def T(self) -> VariationalInference:  # noqa: N802
        """The same for the transposed table."""
        return VariationalInference(
            self.data.T,
            self.n_components,
            self.intercepts.T,
            self.feature_learner,
            self.sample_learner,
            self.noise.T,
            self.diagonal,
        )

    def _tried(self, state: VariationalState, iterate: _Iterate) -> tuple[VariationalState, float]:
        """The state after a short run, and its objective."""
        loss = math.inf
        for _ in range(_TRIAL):
            before = loss
            state, terms = iterate(state, hold_noise=False)
            loss = sum(terms.values())
            if before - loss <= _TRIAL_TOL * self.size(terms):
                break
        return state, loss

    def _state(
        self,
        start: VariationalStart,
        intercepts: Intercepts,
        graphs: tuple[GraphEstimate, GraphEstimate],
        weights: FloatArray | None = None,
    ) -> VariationalState:
        samples, features = start.samples, start.features
        if self.diagonal:
            samples, features = samples.independent(), features.independent()
        noise = self.noise.start(self.data, start.noise_variance, weights)
        return VariationalState(samples, features, intercepts.overall, noise, *graphs)

    def prepare(self, state: VariationalState) -> Iteration[VariationalState]:
        """What the half-steps can do once for as long as the graphs are held."""
        iterate = self._prepare(state)
        return lambda state: iterate(state, hold_noise=False)

    def settle(self, state: VariationalState) -> VariationalState:
        """Nothing: the overall mean is settled within an iteration."""
        return state

    def learn_graphs(self, state: VariationalState) -> VariationalState:
        """The graphs anew from the second moments of the factors."""
        noise = state.noise
        for_samples = _moments(self._sample_half(state.sample_graph), state.samples, state.features, noise)
        for_features = _moments(self._feature_half(state.feature_graph), state.features, state.samples, noise.T)
        return replace(
            state,
            sample_graph=self.sample_learner.learn(for_samples, state.sample_graph),
            feature_graph=self.feature_learner.learn(for_features, state.feature_graph),
        )

    def posterior(self, state: VariationalState, new_row_variance: float) -> TablePosterior:
        """What a run leaves behind: rows that a graph couples get the covariances that they have jointly."""
        samples, features, noise = state.samples, state.features, state.noise
        of_samples = prepare_posterior(self._sample_half(state.sample_graph)).joint(samples, features, noise)
        of_features = prepare_posterior(self._feature_half(state.feature_graph)).joint(features, samples, noise.T)
        state = replace(
            state,
            samples=replace(samples, covariance=of_samples.covariance),
            features=replace(features, covariance=of_features.covariance),
        )
        return state.posterior(new_row_variance)

    def size(self, terms: dict[str, float]) -> float:
        """The number of entries: changes are measured in nats an entry."""
        return float(self.data.n_observed)

    def refuse_divergence(self, terms: dict[str, float], first: dict[str, float], iteration: int) -> None:
        """Every step raises the bound; only numbers beyond the range of floating point can end it."""
        objective = sum(terms.values())
        if not math.isfinite(objective):
            raise DivergenceError(
                f"The evidence bound became {objective} in iteration {iteration}. Look for values of very different "
                "size in the table, or pass it in double precision."
            )

    def pack(self, state: VariationalState) -> tuple[dict[str, Any], dict[str, Array]]:
        """The state as JSON values and arrays, without the graphs."""
        arrays: dict[str, Array] = {}
        values = {
            "overall": state.overall,
            "samples": pack_posterior(state.samples, "samples", arrays),
            "features": pack_posterior(state.features, "features", arrays),
            "noise": pack_noise(state.noise, "noise", arrays, weights=True),
        }
        return values, arrays

    def unpack(
        self,
        values: dict[str, Any],
        arrays: dict[str, Array],
        sample_graph: GraphEstimate,
        feature_graph: GraphEstimate,
    ) -> VariationalState:
        """The inverse of :meth:`pack`."""
        return VariationalState(
            unpack_posterior(values["samples"], "samples", arrays),
            unpack_posterior(values["features"], "features", arrays),
            values["overall"],
            unpack_noise(values["noise"], "noise", arrays),
            sample_graph,
            feature_graph,
        )

    def _sample_half(self, graph: GraphEstimate) -> VariationalHalf:
        equal_noise = self.noise.kind != "samples"
        return VariationalHalf(self.data, graph.precision, self.noise.by_entries, equal_noise, self.diagonal)

    def _feature_half(self, graph: GraphEstimate) -> VariationalHalf:
        equal_noise = self.noise.kind != "features"
        return VariationalHalf(self.data.T, graph.precision, self.noise.by_entries, equal_noise, self.diagonal)

    def _prepare(self, state: VariationalState) -> _Iterate:
        data, model = self.data, self.noise
        A, B = state.sample_graph, state.feature_graph
        update_samples, update_features = (
            prepare_posterior(half) for half in (self._sample_half(A), self._feature_half(B))
        )
        row_counts, column_counts = data.row_counts.astype(np.float64), data.T.row_counts.astype(np.float64)
        order = data.column_order() if model.by_entries else None

        def iterate(state: VariationalState, *, hold_noise: bool) -> tuple[VariationalState, dict[str, float]]:
            noise, overall = state.noise, state.overall
            step = update_samples(state.samples, state.features, noise, overall)
            samples = step.posterior.with_priors(A.precision)
            if not hold_noise:
                noise = model.after_samples(noise, step.squares, row_counts)
            step = update_features(state.features, samples, noise.T, overall)
            features, squares = step.posterior.with_priors(B.precision), step.squares
            if self.intercepts.overall:
                shift = float(np.sum(step.residual / noise.features) / np.sum(step.weight / noise.features))
                overall += shift
                squares = squares - 2 * shift * step.residual + shift**2 * step.weight
            if hold_noise:
                total = float(np.sum(squares / noise.features))
            else:
                noise, total = model.after_features(noise, squares, column_counts)
            if order is not None:
                noise, fit = model.reweighed(noise, data, samples, features, overall, order)
            else:
                fit = model.gaussian_loss(noise, data, total)
            state = replace(state, samples=samples, features=features, overall=overall, noise=noise)
            state = balanced(state)
            terms = {
                "fit": fit,
                "noise_prior": model.prior_loss(noise),
                "sample_divergence": state.samples.divergence(A.precision, A.logdet),
                "feature_divergence": state.features.divergence(B.precision, B.logdet),
            }
            return without_dead_columns(state), terms

        return iterate


def _flattened(start: VariationalStart, variance: float) -> VariationalStart:
    """All of the variance is noise, and no column is preferred."""
    samples, features = (
        replace(side, prior_variance=np.full_like(side.prior_variance, side.prior_variance.max()))
        for side in (start.samples, start.features)
    )
    return VariationalStart(samples, features, variance)


def _moments(half: VariationalHalf, own: SidePosterior, other: SidePosterior, noise: Noise) -> FactorMoments:
    """What a learner is shown: factors at unit prior variance, so that all columns count alike."""
    joint = prepare_posterior(half).joint(own, other, noise)
    of_mean = np.sum(np.square(own.factors, dtype=np.float64), axis=0)
    of_spread = np.diag(joint.covariance.total(np.ones(len(own.mean))))[:-1]
    return FactorMoments(
        own.factors * np.sqrt(joint.weights[:-1]).astype(own.mean.dtype),
        joint.traces(),
        effective_columns=float(np.sum(of_mean / (of_mean + of_spread))),
        cross=joint.between,
    )

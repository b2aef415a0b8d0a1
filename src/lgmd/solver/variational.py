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

from lgmd._typing import Array, FloatArray, IntArray, RandomState
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
    balancing,
    prepare_posterior,
    singular_start,
    translation,
)
from lgmd.factors.storage import pack_noise, pack_posterior, unpack_noise, unpack_posterior
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner, NoGraph
from lgmd.observed import Observed
from lgmd.solver.problem import FEATURES, SAMPLES, Iteration

__all__ = ["VariationalInference", "VariationalState"]

# A column whose mean holds less than this share of its second moment, on either side, says nothing.
_DEAD = 1e-3

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
class VariationalState:
    """Where the inference stands.

    Attributes
    ----------
    samples, features : SidePosterior
    overall : float
        The overall mean.
    noise : Noise
    sample_graph, feature_graph : GraphEstimate
    """

    samples: SidePosterior
    features: SidePosterior
    overall: float
    noise: Noise
    sample_graph: GraphEstimate
    feature_graph: GraphEstimate

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """Means of the row factors."""
        return self.samples.factors

    @property
    def W(self) -> FloatArray:  # noqa: N802
        """Means of the column factors."""
        return self.features.factors

    @property
    def T(self) -> VariationalState:  # noqa: N802
        """The same for the transposed table."""
        return VariationalState(
            self.features, self.samples, self.overall, self.noise.T, self.feature_graph, self.sample_graph
        )

    def posterior(self, new_row_variance: float) -> TablePosterior:
        """What a run leaves behind, with the sign of each column set by the largest entry of W's."""
        k, W = self.features.rank, self.features.factors
        leading = W[np.abs(W).argmax(axis=0), np.arange(k)]
        signs = np.diag(np.append(np.where(leading < 0, -1.0, 1.0), 1.0))
        samples, features = (side.transformed(signs).applied() for side in (self.samples, self.features))
        noise = replace(self.noise, weights=np.empty(0), other_weights=np.empty(0))
        return TablePosterior(samples, features, self.overall, noise, new_row_variance)


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

    def start(self, intercepts: Intercepts, random_state: RandomState) -> VariationalState:
        """The analytic solution of a complete table without graphs; with gaps the better of two short runs.

        The bold one starts from the singular vectors with a tenth of the variance taken for noise, the cautious one
        takes all of it for noise and holds that for a while: columns then have to earn their place. Which one leads to
        the higher bound depends on how thin the data is.
        """
        graphs = (
            self.sample_learner.start(self.data, SAMPLES),
            self.feature_learner.start(self.data.T, FEATURES),
        )
        has_edges = graphs[0].n_edges + graphs[1].n_edges > 0
        arguments = (self.data, intercepts, self.intercepts, self.n_components)
        if self.data.is_complete and not has_edges and not self.noise.by_entries:
            return self._state(analytic_start(*arguments, random_state), intercepts, graphs)
        if not self.data.is_complete and self.data.n_observed > _SAMPLE_ENTRIES:
            return self._start_from_sample(intercepts, graphs, random_state)
        variance, weights = self.noise.first_look(self.data, intercepts)
        start = singular_start(*arguments, _BOLD * variance, random_state, weights)
        bold = self._state(start, intercepts, graphs, weights)
        if self.data.is_complete:
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
        if n < p:
            return self.T._start_from_sample(intercepts.T, graphs[::-1], random_state).T
        size = max(self.n_components, int(n * _SAMPLE_ENTRIES / self.data.n_observed))
        rows = np.sort(check_random_state(random_state).choice(n, size, replace=False))
        part = replace(self, data=self.data.rows(rows), sample_learner=NoGraph())
        found = part.start(replace(intercepts, rows=intercepts.rows[rows]), random_state)
        mean = np.zeros((n, found.samples.rank + 1), self.data.dtype)
        mean[:, -1] = intercepts.rows
        samples = replace(found.samples, mean=mean, covariance=RowCovariances.zero(mean.shape, mean.dtype))
        if self.diagonal:
            samples = samples.independent()
        variance = float(found.noise.samples.mean() * found.noise.features.mean())
        noise = self.noise.start(self.data, variance, self.noise.first_look(self.data, intercepts)[1])
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
        for_samples = self._moments(self.data, state.sample_graph, state.samples, state.features, noise)
        for_features = self._moments(self.data.T, state.feature_graph, state.features, state.samples, noise.T)
        return replace(
            state,
            sample_graph=self.sample_learner.learn(for_samples, state.sample_graph),
            feature_graph=self.feature_learner.learn(for_features, state.feature_graph),
        )

    def _moments(
        self, data: Observed, graph: GraphEstimate, own: SidePosterior, other: SidePosterior, noise: Noise
    ) -> FactorMoments:
        """What a learner is shown: factors at unit prior variance, so that all columns count alike."""
        weights = np.append(1.0 / own.prior_variance, 0.0)

        def cross_covariance(rows: IntArray, others: IntArray) -> FloatArray:
            update = prepare_posterior(VariationalHalf(data, graph.precision, self.noise.by_entries, self.diagonal))
            return update.cross_covariance(own, other, noise, rows, others)

        return FactorMoments(
            own.factors * np.sqrt(weights[:-1]).astype(own.mean.dtype),
            own.covariance.weighted_traces(weights),
            effective_columns=float(own.mean_shares(graph.precision).sum()),
            cross=cross_covariance,
        )

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

    def _prepare(self, state: VariationalState) -> _Iterate:
        data, model = self.data, self.noise
        A, B = state.sample_graph, state.feature_graph
        update_samples = prepare_posterior(VariationalHalf(data, A.precision, model.by_entries, self.diagonal))
        update_features = prepare_posterior(VariationalHalf(data.T, B.precision, model.by_entries, self.diagonal))
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
            state = _balance(state)
            terms = {
                "fit": fit,
                "noise_prior": model.prior_loss(noise),
                "sample_divergence": state.samples.divergence(A.precision, A.logdet),
                "feature_divergence": state.features.divergence(B.precision, B.logdet),
            }
            return _drop_dead(state), terms

        return iterate


def _balance(state: VariationalState) -> VariationalState:
    """Raise the bound without touching a prediction.

    What means, intercepts and factors can pass to each other goes where its prior likes it best; then the basis between
    the factors becomes the one in which each column needs only one prior variance. All of it is optimal in closed form.
    """
    state = _centre(state)
    if not (state.samples.covariance.rotates and state.features.covariance.rotates):
        return state
    A, B = state.sample_graph.precision, state.feature_graph.precision
    samples, features = state.samples, state.features
    samples, features = _translate(samples, features, B)
    features, samples = _translate(features, samples, A)
    change = balancing(samples.graph_moments(A), features.graph_moments(B))
    if change is not None:
        samples, features = (
            side.transformed(_extended(basis)) for side, basis in zip((samples, features), change, strict=True)
        )
    return replace(state, samples=samples.with_priors(A), features=features.with_priors(B))


def _centre(state: VariationalState) -> VariationalState:
    """What all intercepts of a side have in common belongs to the overall mean."""
    overall, sides = state.overall, []
    for side in (state.samples, state.features):
        if side.intercept_variance is not None:
            common = float(side.intercepts.mean(dtype=np.float64))
            mean = side.mean.copy()
            mean[:, -1] -= mean.dtype.type(common)
            overall += common
            side = replace(side, mean=mean)
        sides.append(side)
    return replace(state, overall=overall, samples=sides[0], features=sides[1])


def _translate(own: SidePosterior, other: SidePosterior, precision: Any) -> tuple[SidePosterior, SidePosterior]:
    """Pass what fits better from one side's intercepts to the other's factors, or back."""
    if own.intercept_variance is None:
        return own, other
    k = own.rank
    moments = own.moments() / own.intercept_variance
    v = translation(moments[:k, :k], moments[:k, k], other.factors, precision, 1.0 / other.prior_variance)
    change = np.eye(k + 1)
    change[:k, k] = -v
    return own.transformed(change), replace(other, mean=other.mean + np.append(v, 0.0).astype(other.mean.dtype))


def _extended(basis: FloatArray) -> FloatArray:
    """A change of basis of the factors that leaves the intercept alone."""
    k = len(basis)
    change = np.eye(k + 1)
    change[:k, :k] = basis
    return change


def _drop_dead(state: VariationalState) -> VariationalState:
    """Leave out columns that are as uncertain as before any data; the strongest always stays."""
    shares = np.minimum(
        state.samples.mean_shares(state.sample_graph.precision),
        state.features.mean_shares(state.feature_graph.precision),
    )
    alive: IntArray = np.flatnonzero(shares > _DEAD)
    if len(alive) == len(shares):
        return state
    if not len(alive):
        alive = np.array([int(np.argmax(state.samples.prior_variance * state.features.prior_variance))])
    return replace(state, samples=state.samples.kept(alive), features=state.features.kept(alive))


def _flattened(start: VariationalStart, variance: float) -> VariationalStart:
    """All of the variance is noise, and no column is preferred."""
    samples, features = (
        replace(side, prior_variance=np.full_like(side.prior_variance, side.prior_variance.max()))
        for side in (start.samples, start.features)
    )
    return VariationalStart(samples, features, variance)

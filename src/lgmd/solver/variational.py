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
from typing import Any

import numpy as np

from lgmd._typing import Array, RandomState
from lgmd.exceptions import DivergenceError
from lgmd.factors import (
    LAWS,
    Intercepts,
    InterceptTerms,
    Noise,
    NoiseModel,
    PosteriorUpdate,
    SidePosterior,
    TablePosterior,
    VariationalHalf,
    prepare_posterior,
)
from lgmd.factors.storage import pack_noise, pack_posterior, unpack_noise, unpack_posterior
from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.observed import Observed
from lgmd.solver.graph_contest import as_entries_say
from lgmd.solver.graph_updates import known_rows, updated
from lgmd.solver.problem import FEATURES, SAMPLES, Iteration
from lgmd.solver.variational_starter import Starter, belief_of
from lgmd.solver.variational_state import WEAK, VariationalState, balanced, without_dead_columns

__all__ = ["VariationalInference", "VariationalState"]


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
    prior : {"auto", "columns", "shared", "falling"}
        What ties the prior variances of the factors of a side to each other.
    """

    data: Observed
    n_components: int
    intercepts: InterceptTerms
    sample_learner: GraphLearner
    feature_learner: GraphLearner
    noise: NoiseModel
    diagonal: bool = False
    prior: str = "auto"

    @property
    def only_improves(self) -> bool:
        """Always."""
        return True

    def start(self, intercepts: Intercepts, random_state: RandomState) -> VariationalState:
        """The start that does best in short runs; of a complete table without graphs, the analytic solution is one."""
        graphs = (
            self.sample_learner.start(self.data, SAMPLES),
            self.feature_learner.start(self.data.T, FEATURES),
        )
        return Starter(self, intercepts, graphs, random_state).state()

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
            self.prior,
        )

    def settle(self, state: VariationalState) -> VariationalState:
        """Nothing: the overall mean is settled within an iteration."""
        return state

    def without_weak_columns(self, state: VariationalState) -> VariationalState | None:
        """Columns take their time to die in large tables, where what that gains is little for so many entries."""
        smaller = without_dead_columns(state, WEAK)
        return smaller if smaller.samples.rank < state.samples.rank else None

    def learn_graphs(self, state: VariationalState, times_before: int) -> VariationalState:
        """The graphs anew from the second moments of the factors; the first edges of all start the factors anew."""
        graphs = (
            updated(self.sample_learner, lambda: self.sample_moments(state), state.sample_graph, times_before),
            updated(self.feature_learner, lambda: self.feature_moments(state), state.feature_graph, times_before),
        )
        if times_before == 0:
            graphs = as_entries_say(self, state, graphs)
        if _n_edges(state.sample_graph, state.feature_graph) == 0 < _n_edges(*graphs):
            return self._restarted(state, graphs)
        return replace(state, sample_graph=graphs[0], feature_graph=graphs[1])

    def _restarted(self, state: VariationalState, graphs: tuple[GraphEstimate, GraphEstimate]) -> VariationalState:
        """From the beginning, but under graphs: factors found without them would stay where they are.

        Graphs help weak columns to live, so that what tied prior variances to each other still does, though they need
        not fall, and columns that had died come back. With gaps these may also live on noise; where that is seen, they
        are left out. Whether noise has to be held is another question under graphs.
        """
        intercepts = Intercepts(state.overall, state.samples.intercepts, state.features.intercepts)
        starter = Starter(self, intercepts, graphs, 0)
        if state.holds_noise:
            return starter.state()
        known = starter.under_graphs(belief_of(state))
        alive = (self.without_weak_columns(state) or state).samples.rank
        fewer = starter.with_columns(alive)
        if alive < self.n_components and starter.should_yield_to(fewer, known):
            starter = fewer
        return starter.state(known)

    def posterior(self, state: VariationalState, new_row_variance: float, *, reduction: float = 0.0) -> TablePosterior:
        """What a run leaves behind: rows that a graph couples get the covariances that they have jointly."""
        samples, features, noise = state.samples, state.features, state.noise
        of_rows, of_columns = self._halves(state, reduction)
        of_samples = of_rows.joint(samples, features, noise, for_draws=True)
        of_features = of_columns.joint(features, samples, noise.T, for_draws=True)
        state = replace(
            state,
            samples=replace(samples, covariance=of_samples.covariance),
            features=replace(features, covariance=of_features.covariance),
            noise=self.noise.for_new_observations(noise, self.data),
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
            "law": state.law.name,
            "holds_noise": state.holds_noise,
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
            LAWS[values["law"]],
            values["holds_noise"],
        )

    def sample_moments(self, state: VariationalState) -> FactorMoments:
        """What the learner of the rows' graph is shown."""
        return _moments(self.sample_half(state.sample_graph), state.samples, state.features, state.noise)

    def feature_moments(self, state: VariationalState) -> FactorMoments:
        """What the learner of the columns' graph is shown."""
        return _moments(self.feature_half(state.feature_graph), state.features, state.samples, state.noise.T)

    def sample_half(self, graph: GraphEstimate) -> VariationalHalf:
        """What the rows' posterior depends on."""
        equal_noise = self.noise.kind != "samples"
        return VariationalHalf(self.data, graph.precision, self.noise.by_entries, equal_noise, self.diagonal)

    def feature_half(self, graph: GraphEstimate) -> VariationalHalf:
        """What the columns' posterior depends on."""
        equal_noise = self.noise.kind != "features"
        return VariationalHalf(self.data.T, graph.precision, self.noise.by_entries, equal_noise, self.diagonal)

    def _halves(self, state: VariationalState, reduction: float) -> tuple[PosteriorUpdate, PosteriorUpdate]:
        """The half-steps of rows and columns under the graphs of a state."""
        rows, columns = self.sample_half(state.sample_graph), self.feature_half(state.feature_graph)
        return (
            prepare_posterior(replace(rows, reduction=reduction)),
            prepare_posterior(replace(columns, reduction=reduction)),
        )

    def prepare(self, state: VariationalState, reduction: float = 0.0) -> Iteration[VariationalState]:
        """What the half-steps can do once for as long as the graphs are held.

        ``reduction`` is the share of their first residual that coupled means may be left with in an iteration.
        """
        data, model = self.data, self.noise
        A, B = state.sample_graph, state.feature_graph
        update_samples, update_features = self._halves(state, reduction)
        row_counts, column_counts = data.row_counts.astype(np.float64), data.T.row_counts.astype(np.float64)
        order = data.column_order() if model.by_entries else None

        def iterate(state: VariationalState) -> tuple[VariationalState, dict[str, float]]:
            noise, overall = state.noise, state.overall
            step = update_samples(state.samples, state.features, noise, overall)
            samples = step.posterior.with_priors(A.precision, state.law)
            if not state.holds_noise:
                noise = model.after_samples(noise, step.squares, row_counts)
            step = update_features(state.features, samples, noise.T, overall)
            features, squares = step.posterior.with_priors(B.precision, state.law), step.squares
            if self.intercepts.overall:
                shift = float(np.sum(step.residual / noise.features) / np.sum(step.weight / noise.features))
                overall += shift
                squares = squares - 2 * shift * step.residual + shift**2 * step.weight
            if state.holds_noise:
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
                "noise_prior": model.prior_loss(noise, data),
                "sample_divergence": state.samples.divergence(A.precision, A.logdet),
                "feature_divergence": state.features.divergence(B.precision, B.logdet),
            }
            return without_dead_columns(state), terms

        return iterate


def _n_edges(sample_graph: GraphEstimate, feature_graph: GraphEstimate) -> int:
    return sample_graph.n_edges + feature_graph.n_edges


def _moments(half: VariationalHalf, own: SidePosterior, other: SidePosterior, noise: Noise) -> FactorMoments:
    """What a learner is shown: factors at unit prior variance, so that all columns count alike."""
    joint = prepare_posterior(half).joint(own, other, noise)
    of_mean = np.sum(np.square(own.factors, dtype=np.float64), axis=0)
    of_spread = np.diag(joint.covariance.total(np.ones(len(own.mean))))[:-1]
    factors = known_rows(own.factors, half.data, half.precision)
    return FactorMoments(
        factors * np.sqrt(joint.weights[:-1]).astype(own.mean.dtype),
        joint.traces(),
        effective_columns=float(np.sum(of_mean / (of_mean + of_spread))),
        cross=joint.between,
    )

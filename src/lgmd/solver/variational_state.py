"""Where variational inference stands, and the moves that change no prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.factors import LAWS, Noise, PriorLaw, SidePosterior, TablePosterior, translation
from lgmd.graphs import GraphEstimate

__all__ = ["WEAK", "VariationalState", "balanced", "without_dead_columns"]

# A column whose mean holds less than this share of its second moment, on either side, says nothing.
_DEAD = 1e-3

#: With less than this share it may be on its way there.
WEAK = 0.05


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
    law : PriorLaw
        What ties the prior variances of the factors of a side to each other.
    holds_noise : bool
        Whether the variances of the noise stay as they are.
    """

    samples: SidePosterior
    features: SidePosterior
    overall: float
    noise: Noise
    sample_graph: GraphEstimate
    feature_graph: GraphEstimate
    law: PriorLaw = LAWS["columns"]
    holds_noise: bool = False

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """Means of the row factors."""
        return self.samples.factors

    @property
    def W(self) -> FloatArray:  # noqa: N802
        """Means of the column factors."""
        return self.features.factors

    def posterior(self, new_row_variance: float) -> TablePosterior:
        """What a run leaves behind, with the sign of each column set by the largest entry of W's."""
        k, W = self.features.rank, self.features.factors
        leading = W[np.abs(W).argmax(axis=0), np.arange(k)]
        signs = np.diag(np.append(np.where(leading < 0, -1.0, 1.0), 1.0))
        samples, features = (side.transformed(signs).applied() for side in (self.samples, self.features))
        noise = replace(self.noise, weights=np.empty(0), other_weights=np.empty(0))
        return TablePosterior(samples, features, self.overall, noise, new_row_variance)


def balanced(state: VariationalState) -> VariationalState:
    """Raise the bound without touching a prediction.

    What means, intercepts and factors can pass to each other goes where its prior likes it best; then the basis between
    the factors becomes the one that their prior variances like best. All of it is optimal in closed form.
    """
    state = _centre(state)
    if not (state.samples.covariance.rotates and state.features.covariance.rotates):
        return _sorted(state) if state.law.is_tied else state
    A, B = state.sample_graph.precision, state.feature_graph.precision
    samples, features = state.samples, state.features
    samples, features = _translate(samples, features, B)
    features, samples = _translate(features, samples, A)
    change = state.law.balancing(
        (samples.graph_moments(A), features.graph_moments(B)),
        (samples.prior_variance, features.prior_variance),
        (len(samples.mean), len(features.mean)),
    )
    if change is not None:
        samples, features = (
            side.transformed(_extended(basis)) for side, basis in zip((samples, features), change, strict=True)
        )
    return _tied(replace(state, samples=samples, features=features))


def _tied(state: VariationalState) -> VariationalState:
    """Prior variances at their best under the law of the state."""
    samples = state.samples.with_priors(state.sample_graph.precision, state.law)
    features = state.features.with_priors(state.feature_graph.precision, state.law)
    return replace(state, samples=samples, features=features)


def _sorted(state: VariationalState) -> VariationalState:
    """Factors in the order in which tied prior variances like them best, where their basis cannot change."""
    moments = np.diag(state.samples.graph_moments(state.sample_graph.precision)) / state.samples.prior_variance[0]
    moments = moments + (
        np.diag(state.features.graph_moments(state.feature_graph.precision)) / state.features.prior_variance[0]
    )
    order = np.argsort(-moments, kind="stable")
    samples, features = (
        replace(side.kept(order), logdet=side.logdet, prior_variance=side.prior_variance)
        for side in (state.samples, state.features)
    )
    return _tied(replace(state, samples=samples, features=features))


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


def _translate(own: SidePosterior, other: SidePosterior, precision: SparseGraph) -> tuple[SidePosterior, SidePosterior]:
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


def without_dead_columns(state: VariationalState, share: float = _DEAD) -> VariationalState:
    """Leave out columns of whose second moment the mean holds no more than a share; the strongest always stays."""
    shares = np.minimum(
        state.samples.mean_shares(state.sample_graph.precision),
        state.features.mean_shares(state.feature_graph.precision),
    )
    alive: IntArray = np.flatnonzero(shares > share)
    if len(alive) == len(shares):
        return state
    if not len(alive):
        alive = np.array([int(np.argmax(state.samples.prior_variance * state.features.prior_variance))])
    # Variances that are tied follow in the next iteration: those that go on higher at once let columns live on noise.
    return replace(state, samples=state.samples.kept(alive), features=state.features.kept(alive))

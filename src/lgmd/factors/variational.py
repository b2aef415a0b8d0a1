r"""The half-step of variational inference: the posterior of one side with that of the other held.

A complete table has one system for all rows, whose posterior is exact also under a graph; with gaps every row has its
own, and a graph couples their means. Read ``linalg.row_posteriors`` for the algebra of a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.factors.coupling import Coupling, JointRows
from lgmd.factors.covariance import (
    CoupledCovariances,
    Covariance,
    DiagonalCovariances,
    RowCovariances,
    SpectralCovariance,
)
from lgmd.factors.noise import Noise
from lgmd.factors.posterior import SidePosterior
from lgmd.linalg.packed import doubled, pack, packed_size
from lgmd.linalg.row_posteriors import (
    RowPosteriors,
    RowPrior,
    RowSums,
    accumulate_rows,
    diagonal_moments,
    expected_squares,
    posteriors_of_rows,
    posteriors_of_sums,
    second_moments,
)
from lgmd.observed import DenseObserved, Observed

__all__ = ["HalfStep", "JointPosterior", "PosteriorUpdate", "VariationalHalf", "prepare_posterior"]

# Up to this many rows the posterior of a complete table under a graph is found in the graph's eigenbasis.
SPECTRAL_ROWS = 1000

# Entries up to which second moments are kept in double precision whatever the table has.
_PRECISE_ENTRIES = 2_000_000


@dataclass(frozen=True)
class VariationalHalf:
    """One side of the problem, as long as its graph is held.

    Attributes
    ----------
    data : Observed
        The table with this side as its rows.
    precision : csr_array of shape (n, n)
        The graph over the rows.
    by_entries : bool
        Whether entries have weights of their own, so that no two rows share a system.
    equal_noise : bool
        Whether all rows have the same noise.
    diagonal : bool
        Whether all numbers of rows with a system of their own are taken as independent.
    reduction : float
        Share of the first residual that the means of rows which a graph couples may be left with. Where it is not zero,
        what these rows know of each other is told by few draws.
    """

    data: Observed
    precision: SparseGraph
    by_entries: bool = False
    equal_noise: bool = True
    diagonal: bool = False
    reduction: float = 0.0


class HalfStep(NamedTuple):
    """What a half-step finds."""

    posterior: SidePosterior
    squares: FloatArray
    """Expected squared residuals of each row, weighted by the columns' noise and the entries' weights, (n,)."""
    residual: FloatArray
    """Residuals of the mean, summed with the same weights, (n,)."""
    weight: FloatArray
    """Sum of these weights, (n,)."""


class PosteriorUpdate(Protocol):
    """A half-step whose side is fixed."""

    def __call__(self, own: SidePosterior, other: SidePosterior, noise: Noise, shift: float) -> HalfStep:
        """The posterior of the rows; ``own`` is the current one, for its prior and a warm start."""
        ...

    def joint(
        self, own: SidePosterior, other: SidePosterior, noise: Noise, *, for_draws: bool = False
    ) -> JointPosterior:
        """What rows that a graph couples know of each other: for error bars, draws and for learning graphs.

        The half-step itself gives such rows the covariance that they have while the others are held.
        """
        ...


@dataclass(frozen=True)
class JointPosterior:
    """Covariances of rows, with what ties them to each other taken into account.

    Attributes
    ----------
    covariance : Covariance
        Of each row.
    weights : ndarray of shape (k + 1,)
        What brings factors to unit prior variance; zero for the intercept.
    coupled : JointRows or None
    """

    covariance: Covariance
    weights: FloatArray
    coupled: JointRows | None = None

    def traces(self) -> FloatArray:
        """Variance of each row, summed over factors at unit prior variance, (n,)."""
        return self.covariance.weighted_traces(self.weights)

    def between(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Covariance of pairs of rows, summed over factors at unit prior variance, (m,)."""
        if isinstance(self.covariance, SpectralCovariance):
            return self.covariance.between_sums(rows, others, self.weights)
        found = np.zeros(len(rows)) if self.coupled is None else self.coupled.between(rows, others)
        return np.where(rows == others, self.traces()[rows], found)


def prepare_posterior(half: VariationalHalf) -> PosteriorUpdate:
    """The half-step that suits the table and the graph."""
    data, precision = half.data, scipy.sparse.csr_array(half.precision)
    diagonal = np.asarray(precision.diagonal(), dtype=np.float64)
    has_edges = precision.count_nonzero() > np.count_nonzero(diagonal)
    if not isinstance(data, DenseObserved) or half.by_entries:
        return _EntriesUpdate(data, Coupling(precision, half.reduction), half.diagonal)
    if half.equal_noise and not half.diagonal:
        if not has_edges and bool(np.all(diagonal == diagonal[0])):
            return _SharedUpdate(data, float(diagonal[0]))
        if has_edges and len(diagonal) <= SPECTRAL_ROWS:
            return _SpectralUpdate(data, precision)
    return _CompleteUpdate(data, Coupling(precision, half.reduction), half.diagonal)


class _CompleteUpdate:
    """A complete table whose rows have a graph or a noise of their own: independent rows with coupled means."""

    def __init__(self, data: DenseObserved, coupling: Coupling, diagonal: bool) -> None:
        self._data = data
        self._coupling = coupling
        self._diagonal = diagonal

    def __call__(self, own: SidePosterior, other: SidePosterior, noise: Noise, shift: float) -> HalfStep:
        system = _CompleteSystem(self._data, other, noise, shift)
        mean, covariance, logdet, lower = posteriors_of_sums(
            system.sums(), 1.0 / noise.samples, _row_prior(own, self._coupling.diagonal), diagonal=self._diagonal
        )
        mean = self._coupling.means(lower, mean, own, np.arange(len(mean)))
        posterior = _posterior(own, mean, _as_covariance(covariance, own), float(logdet.sum()))
        return HalfStep(posterior, *system.expected(posterior, system.spread_squares(covariance)))

    def joint(
        self, own: SidePosterior, other: SidePosterior, noise: Noise, *, for_draws: bool = False
    ) -> JointPosterior:
        """From the joint precision of all rows."""
        sums = _CompleteSystem(self._data, other, noise, 0.0).sums()
        shared = np.broadcast_to(sums.moments, (len(self._coupling.coupled), sums.moments.shape[1]))
        return _joint(self._coupling, shared, own, noise, for_draws)


class _SharedUpdate:
    """A complete table without a graph whose rows have the same noise: one covariance for all of them."""

    def __init__(self, data: DenseObserved, scale: float) -> None:
        self._data = data
        self._scale = scale

    def __call__(self, own: SidePosterior, other: SidePosterior, noise: Noise, shift: float) -> HalfStep:
        system = _CompleteSystem(self._data, other, noise, shift)
        tau = 1.0 / noise.samples[0]
        active = _active(own)
        P = tau * system.gram[np.ix_(active, active)] + np.diag(_prior(own, self._scale)[active])
        factor = scipy.linalg.cho_factor(P)
        covariance = np.zeros((own.rank + 1, own.rank + 1))
        covariance[np.ix_(active, active)] = scipy.linalg.cho_solve(factor, np.eye(len(active)))
        mean = tau * system.right @ covariance
        logdet = -2.0 * len(mean) * float(np.log(np.diag(factor[0])).sum())
        packed = pack(covariance[None])
        posterior = _posterior(own, mean, _as_covariance(packed, own), logdet)
        return HalfStep(posterior, *system.expected(posterior, system.spread_squares(packed)))

    def joint(
        self, own: SidePosterior, other: SidePosterior, noise: Noise, *, for_draws: bool = False
    ) -> JointPosterior:
        """Nothing ties rows to each other."""
        return JointPosterior(own.covariance, _unit_weights(own))


class _SpectralUpdate:
    """A complete table with a graph whose rows have the same noise: exact in the eigenbasis of the graph."""

    def __init__(self, data: DenseObserved, precision: SparseGraph) -> None:
        self._data = data
        self._precision = precision

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues and eigenvectors of the graph: not needed by those who only ask what was found."""
        values, vectors = scipy.linalg.eigh(self._precision.toarray().astype(np.float64))
        return values, vectors

    def __call__(self, own: SidePosterior, other: SidePosterior, noise: Noise, shift: float) -> HalfStep:
        system = _CompleteSystem(self._data, other, noise, shift)
        blocks, logdet = self._blocks(system, own, noise)
        vectors = self._spectrum[1]
        turned = np.einsum("md,mde->me", vectors.T @ system.right / noise.samples[0], blocks)
        covariance = SpectralCovariance(vectors, blocks)
        posterior = _posterior(own, vectors @ turned, covariance, logdet)
        spread = np.square(vectors) @ np.einsum("mab,ab->m", blocks, system.gram)
        return HalfStep(posterior, *system.expected(posterior, spread))

    def joint(
        self, own: SidePosterior, other: SidePosterior, noise: Noise, *, for_draws: bool = False
    ) -> JointPosterior:
        """The half-step has found it."""
        covariance = own.covariance
        if not isinstance(covariance, SpectralCovariance):
            system = _CompleteSystem(self._data, other, noise, 0.0)
            covariance = SpectralCovariance(self._spectrum[1], self._blocks(system, own, noise)[0])
        return JointPosterior(covariance, _unit_weights(own))

    def _blocks(self, system: _CompleteSystem, own: SidePosterior, noise: Noise) -> tuple[FloatArray, float]:
        """Posterior covariance along each eigenvector of the graph, (n, d, d), and the log-determinant of all."""
        values = self._spectrum[0]
        active, n = _active(own), len(values)
        priors = np.repeat(_prior(own, 1.0)[None], n, axis=0)
        priors[:, : own.rank] *= values[:, None]
        P = np.repeat(system.gram[np.ix_(active, active)][None] / noise.samples[0], n, axis=0)
        P[:, np.arange(len(active)), np.arange(len(active))] += priors[:, active]
        inverse = np.linalg.inv(P)
        blocks = np.zeros((n, own.rank + 1, own.rank + 1))
        blocks[np.ix_(np.arange(n), active, active)] = (inverse + inverse.transpose(0, 2, 1)) / 2
        return blocks, -float(np.linalg.slogdet(P)[1].sum())


class _EntriesUpdate:
    """A table with gaps: every row has its own system."""

    def __init__(self, data: Observed, coupling: Coupling, diagonal: bool) -> None:
        self._entries = data.entries()
        self._coupling = coupling
        self._diagonal = diagonal
        # Expected squares are differences of large sums. Single precision is for tables whose moments fill the memory.
        self._precise = np.dtype(np.float64) if data.n_observed <= _PRECISE_ENTRIES else data.dtype

    def __call__(self, own: SidePosterior, other: SidePosterior, noise: Noise, shift: float) -> HalfStep:
        dtype, (n, d) = own.mean.dtype, own.mean.shape
        tau, prior, coupled = 1.0 / noise.samples, _row_prior(own, self._coupling.diagonal), self._coupling.coupled
        moments = self._moments(other, noise)
        weights = noise.weights.astype(dtype, copy=False)
        spread = np.empty((n, d if self._diagonal else packed_size(d)), dtype)
        found = RowPosteriors(np.empty((n, d), dtype), spread, *(np.empty(n) for _ in range(4)))
        posteriors_of_rows(self._coupling.free, self._entries, weights, shift, moments, tau, prior, found)
        if len(coupled):
            sums = accumulate_rows(coupled, self._entries, weights, shift, moments, d - 1)
            alone, covariance, logdet, lower = posteriors_of_sums(
                sums, tau[coupled], prior._replace(scale=prior.scale[coupled]), diagonal=self._diagonal
            )
            mean = self._coupling.means(lower, alone, own, coupled)
            parts = (mean, covariance, logdet, *expected_squares(sums, mean, covariance))
            for whole, part in zip(found, parts, strict=True):
                whole[coupled] = part
        posterior = _posterior(own, found.mean, _as_covariance(found.covariance, own), float(found.logdet.sum()))
        return HalfStep(posterior, found.squares, found.residual, found.weight)

    def joint(
        self, own: SidePosterior, other: SidePosterior, noise: Noise, *, for_draws: bool = False
    ) -> JointPosterior:
        """From the joint precision of all rows."""
        if not len(self._coupling.coupled):
            return JointPosterior(own.covariance, _unit_weights(own))
        weights = noise.weights.astype(own.mean.dtype, copy=False)
        sums = accumulate_rows(
            self._coupling.coupled, self._entries, weights, 0.0, self._moments(other, noise), own.rank
        )
        return _joint(self._coupling, sums.moments, own, noise, for_draws)

    def _moments(self, other: SidePosterior, noise: Noise) -> FloatArray:
        covariance, kappa = other.covariance, 1.0 / noise.features
        if isinstance(covariance, DiagonalCovariances):
            return diagonal_moments(other.mean, covariance.variances, kappa, self._precise)
        if isinstance(covariance, RowCovariances):
            packed = covariance.applied().packed
        else:
            packed = covariance.packed_rows(np.arange(len(other.mean)))
        return second_moments(other.mean, packed, kappa, self._precise)


class _CompleteSystem:
    """The normal equations of all rows of a complete table."""

    def __init__(self, data: DenseObserved, other: SidePosterior, noise: Noise, shift: float) -> None:
        k, kappa = other.rank, 1.0 / noise.features
        design = np.column_stack([other.factors, np.ones(len(other.mean))]).astype(np.float64)
        spread = other.covariance.total(kappa)
        weighted = design * kappa[:, None]
        #: ``sum_j kappa_j E[h_j h_j']`` over the factors and the constant, (k + 1, k + 1).
        self.gram = weighted.T @ design
        self.gram[:k, :k] += spread[:k, :k]
        offsets = (other.intercepts.astype(np.float64) + shift) @ weighted
        offsets[:k] += spread[k, :k]
        #: ``sum_j kappa_j (y_ij E[h_j] - E[h_j b_j])``, (n, k + 1).
        self.right = data.product(weighted.astype(data.dtype)).astype(np.float64) - offsets
        self._data, self._other, self._kappa, self._shift, self._spread = data, other, kappa, shift, spread

    def sums(self) -> RowSums:
        """The same as the compiled rows want it; the columns' intercepts are already taken off."""
        n, d = self.right.shape
        padded = np.zeros((d + 1, d + 1))
        padded[:d, :d] = self.gram
        return RowSums(pack(padded[None]), np.column_stack([self.right, np.zeros(n)]), np.zeros(n))

    def spread_squares(self, covariances: FloatArray) -> FloatArray:
        """What packed covariances, or variances, of rows add to their expected squares, (n,) or (1,)."""
        diagonal = covariances.shape[1] == len(self.gram)
        return np.asarray(covariances @ (np.diag(self.gram) if diagonal else doubled(pack(self.gram[None]))[0]))

    def expected(self, posterior: SidePosterior, spread: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The last three fields of a :class:`HalfStep`; nothing large is subtracted."""
        other, n = self._other, len(posterior.mean)
        squares, residual = self._data.residual_rows(
            posterior.intercepts,
            other.intercepts + other.mean.dtype.type(self._shift),
            posterior.factors,
            other.factors,
            self._kappa,
        )
        # Row intercepts meet a constant, column intercepts are met by one.
        seen = np.column_stack([posterior.factors, np.ones(n)]).astype(np.float64)
        squares = squares + np.einsum("id,id->i", seen @ self._spread, seen) + spread
        return squares, residual, np.full(n, self._kappa.sum())


def _joint(
    coupling: Coupling, moments: FloatArray, own: SidePosterior, noise: Noise, for_draws: bool
) -> JointPosterior:
    """Covariances of the rows that a graph couples replaced by their marginal ones."""
    rows = coupling.joint(moments, 1.0 / noise.samples, own, for_draws=for_draws)
    covariance = own.covariance
    if rows is not None:
        covariance = covariance.with_rows(coupling.coupled, rows.marginals)
        if isinstance(covariance, RowCovariances) and rows.blocks is not None:
            covariance = _drawn_jointly(covariance, rows, rows.blocks, own)
    return JointPosterior(covariance, _unit_weights(own), rows)


def _drawn_jointly(
    marginals: RowCovariances, rows: JointRows, blocks: FloatArray, own: SidePosterior
) -> CoupledCovariances:
    graph, turn = rows.coupling.precision, np.eye(own.rank + 1)
    if own.intercept_variance is None:
        turn[-1, -1] = 0.0
    return CoupledCovariances(
        marginals.packed,
        marginals.n,
        coupled=rows.coupling.coupled,
        blocks=blocks,
        weights=rows.weights,
        edges=graph.data,
        ends=graph.indices,
        starts=graph.indptr,
        turn=turn,
    )


def _unit_weights(own: SidePosterior) -> FloatArray:
    return np.append(1.0 / own.prior_variance, 0.0)


def _active(own: SidePosterior) -> IntArray:
    """Positions of the unknowns that the model has."""
    return np.arange(own.rank + (own.intercept_variance is not None))


def _prior(own: SidePosterior, scale: float) -> FloatArray:
    """Prior precision of each unknown of a row, (k + 1,)."""
    intercept = 0.0 if own.intercept_variance is None else 1.0 / own.intercept_variance
    return np.append(scale / own.prior_variance, intercept)


def _row_prior(own: SidePosterior, diagonal: FloatArray) -> RowPrior:
    intercept = -1.0 if own.intercept_variance is None else 1.0 / own.intercept_variance
    return RowPrior(diagonal, 1.0 / own.prior_variance, intercept)


def _as_covariance(spread: FloatArray, own: SidePosterior) -> Covariance:
    spread = spread.astype(own.mean.dtype, copy=False)
    if spread.shape[1] == own.mean.shape[1] and own.rank > 0:
        return DiagonalCovariances(spread)
    return RowCovariances(spread, len(own.mean))


def _posterior(own: SidePosterior, mean: FloatArray, covariance: Covariance, logdet: float) -> SidePosterior:
    return replace(own, mean=mean.astype(own.mean.dtype, copy=False), covariance=covariance, logdet=logdet)

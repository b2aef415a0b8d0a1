"""Where variational inference begins.

Four beginnings are known. The bold one takes a tenth of the variance for noise. The cautious one takes all of it and
holds that for a while: columns then have to earn their place, as they should where data is thin. Of the two the better
bound goes on; a graph that joins the thin data can make the bold one better though its bound is not, which entries that
are held out from short runs say. The other two tie the prior variances of a side to each other, so that weak columns
live by the strong ones: all factors share one, which is right where columns are alike, or variances fall from factor to
factor. Their bound is always lower, so held-out entries decide; in a complete table, where nothing is to be foreseen,
an estimate of how far short runs end from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state

from lgmd._typing import FloatArray, RandomState
from lgmd.factors import (
    FALLING,
    LAWS,
    SHARED,
    Intercepts,
    RowCovariances,
    VariationalStart,
    analytic_start,
    prepare_posterior,
    shared_analytic_start,
    singular_start,
)
from lgmd.graphs import GraphEstimate
from lgmd.linalg.threads import blas_threads_worth
from lgmd.observed import DenseObserved, HeldOut, Observed, hold_out
from lgmd.solver.denoising_trials import ShortRun, denoising_trials
from lgmd.solver.prior_choice import (
    FIRST_NOISE,
    HELD_OUT,
    NoiseBelief,
    Start,
    Trial,
    Trials,
    better_falling,
    better_shared,
    does_better,
    does_clearly_better,
    unexplained,
)
from lgmd.solver.variational_state import VariationalState

if TYPE_CHECKING:
    from lgmd.solver.variational import VariationalInference

__all__ = ["TIED_ENTRIES", "Graphs", "Starter", "belief_of", "losses"]

Graphs: TypeAlias = tuple[GraphEstimate, GraphEstimate]

# The states of starts by their names, of which those with tied prior variances have the names of their laws.
Starts: TypeAlias = Callable[[str], VariationalState]


# Iterations for which a start may hold the noise.
_HELD = 10

# Entries of a table with gaps on which starts are tried; larger tables are sampled.
_SAMPLE_ENTRIES = 4_000_000

TIED_ENTRIES = 1_000_000
"""Entries up to which prior variances that are tied are tried: with more, each column's own is known well."""

_TIED = tuple(name for name, law in LAWS.items() if law.is_tied)

# Most iterations of each start before it is judged, and the change at which it is judged earlier.
_TRIAL, _TRIAL_TOL = 40, 2e-4

# Share of their first residual that a short run leaves coupled means with in an iteration: the next one goes on.
_TRIAL_REDUCTION = 0.05


@dataclass(frozen=True)
class Starter:
    """Makes the first state of a run.

    Attributes
    ----------
    problem : VariationalInference
    intercepts : Intercepts
    graphs : tuple of GraphEstimate
        Over rows and over columns.
    random_state : RandomState
    """

    problem: VariationalInference
    intercepts: Intercepts
    graphs: Graphs
    random_state: RandomState

    def state(self, known: NoiseBelief | None = None) -> VariationalState:
        """From all entries, or from a sample of a large table with gaps.

        Parameters
        ----------
        known : NoiseBelief or None, default=None
            What was found to believe of the noise where prior variances were found to be tied.
        """
        data = self.problem.data
        n, p = data.shape
        with blas_threads_worth(n * p * self.problem.n_components if data.is_complete else 0):
            if not data.is_complete and data.n_observed > _SAMPLE_ENTRIES:
                return self._from_sample()
            return self._from_all(known)

    def short_run(
        self, like: VariationalState, *, may_be_cautious: bool, n_iter: int | None = None, at_least: int = 1
    ) -> ShortRun:
        """A short run with the kind of prior that a state has and what it believes of the noise.

        It is as long as is asked for if that is said, and otherwise no shorter than ``at_least`` iterations.
        """
        starts = self._starts()
        if not like.law.is_tied and may_be_cautious and not self._has_edges:
            runs = (self._tried(starts(name), n_iter, at_least) for name in ("bold", "cautious"))
            return min(runs, key=lambda run: run.loss)
        state = starts(like.law.name if like.law.is_tied else "bold")
        noise = replace(state.noise, optimism=like.noise.optimism)
        if like.holds_noise:
            noise = replace(noise, samples=noise.samples * (like.noise.level / noise.level))
        return self._tried(replace(state, noise=noise, holds_noise=like.holds_noise), n_iter, at_least)

    def with_columns(self, n_components: int) -> Starter:
        """The same with another number of columns."""
        return replace(self, problem=replace(self.problem, n_components=n_components))

    def should_yield_to(self, fewer: Starter, known: NoiseBelief | None) -> bool:
        """Whether fewer columns clearly foresee more than all, with the tie of prior variances that was found, if any.

        Tables too large to ask need no others if they have an entry for each number to learn. In complete ones columns
        die that are not needed.
        """
        data = self.problem.data
        if data.is_complete:
            return False
        if data.n_observed > TIED_ENTRIES:
            return data.n_observed >= sum(data.shape) * self.problem.n_components
        start: Start = known or "bold"

        def trial(which: Start, part: int) -> Trial:
            return (fewer if which == "fewer" else self)._trials(start, part)

        return does_clearly_better(trial, "fewer", "all", data.n_observed)

    def _from_all(self, known: NoiseBelief | None = None) -> VariationalState:
        n_observed = self.problem.data.n_observed
        start, state = self._chosen(known)
        if not self._may_doubt_noise or n_observed > TIED_ENTRIES:
            return state
        return replace(state, noise=replace(state.noise, unexplained=unexplained(self._trials, start, n_observed)))

    def _chosen(self, known: NoiseBelief | None) -> tuple[Start, VariationalState]:
        """The start that goes on, and where it leads."""
        problem, starts = self.problem, self._starts()
        if known is None and problem.prior in _TIED:
            known = NoiseBelief(law=problem.prior)
        if known is not None:
            return known, _made(known, starts)
        name, state = self._of_columns(starts)
        if problem.prior == "auto" and problem.data.n_observed <= TIED_ENTRIES:
            found = self._tied_belief(name)
            if found is not None:
                return found, _made(found, starts)
        return name, state

    def under_graphs(self, known: NoiseBelief | None) -> NoiseBelief | None:
        """Where variances fell because of weak columns that graphs now keep alive, they may well be the same."""
        if self.problem.prior != "auto" or known is None or known.law != FALLING:
            return known
        shared = replace(known, law=SHARED)
        return better_falling(self._trials, shared, self.problem.data.n_observed) or shared

    @cached_property
    def _trials(self) -> Trials:
        """Short runs that are judged by entries held out from them, each done once."""
        # Of a copy: what refers to itself would keep all of their states until the garbage is collected.
        return replace(self)._judge()._foreseeing()

    def _judge(self) -> Starter:
        """Short runs depend on which side comes first: a table and its transpose are judged by the same ones."""
        problem = self.problem
        n, p = problem.data.shape
        return self if n >= p else Starter(problem.T, self.intercepts.T, self.graphs[::-1], self.random_state)

    @property
    def _is_narrow(self) -> bool:
        """Whether a complete table has so few rows or columns that factors may take more than half of its dimensions.

        The few that are left hardly tell noise from factors, and iterations would take hundreds to find out. So the
        noise is that of the solution, as it is without graphs and outliers.
        """
        data = self.problem.data
        return data.is_complete and 2 * self.problem.n_components > min(data.shape)

    @property
    def _may_doubt_noise(self) -> bool:
        """Whether held-out entries can tell what error bars lack."""
        return self.problem.noise.has_one_variance and not isinstance(self.problem.data, DenseObserved)

    def _of_columns(self, starts: Starts) -> tuple[str, VariationalState]:
        """The bold or the cautious start, by name, and where it leads: by the bound, and under graphs by trials too."""
        data = self.problem.data
        if data.is_complete or (self._has_edges and data.n_observed > TIED_ENTRIES):
            return "bold", starts("bold")
        bold, cautious = (self._tried(starts(name)) for name in ("bold", "cautious"))
        is_bold = bold.loss <= cautious.loss
        if not is_bold and self._has_edges:
            is_bold = not does_better(self._trials, "cautious", "bold", data.n_observed)
        return ("bold", bold.state) if is_bold else ("cautious", cautious.state)

    def _tied_belief(self, other: str) -> NoiseBelief | None:
        """The tie and the belief about noise with which it is better than another start; None if none is."""
        judge, trials = self._judge(), self._trials
        data = judge.problem.data
        if isinstance(data, DenseObserved) and self.problem.noise.has_one_variance:
            trials = denoising_trials(data, judge._on_complete, ("bold", NoiseBelief()))
        found = better_shared(
            trials, other, data.n_observed, may_doubt_noise=self._may_doubt_noise, may_believe=not self._is_narrow
        )
        if data.is_complete or self.problem.n_components == 1:
            return found
        return better_falling(trials, found or other, data.n_observed) or found

    def _on_complete(self, start: Start, data: DenseObserved, n_iter: int | None) -> ShortRun:
        """A short run from a start, on a complete table."""
        starter = replace(self, problem=replace(self.problem, data=data), random_state=0)
        return starter._tried(_made(start, starter._starts()), n_iter)

    def _foreseeing(self) -> Trials:
        """Trials that are judged by entries held out from them."""
        problem = self.problem

        @cache
        def part(seed: int) -> tuple[Starter, HeldOut, Starts]:
            kept, held = hold_out(problem.data, HELD_OUT, seed)
            starter = replace(self, problem=replace(problem, data=kept))
            return starter, held, starter._starts()

        @cache
        def trial(start: Start, seed: int) -> Trial:
            starter, held, starts = part(seed)
            run = starter._tried(_made(start, starts))

            def expected() -> float:
                posterior = starter.problem.posterior(run.state, 1.0, reduction=_TRIAL_REDUCTION)
                return float(posterior.variances(held.rows, held.columns).mean())

            return Trial(losses(run.state, held), expected, run.state.samples.rank, run.n_dead)

        return trial

    def _starts(self) -> Starts:
        """What they share is done once."""
        problem, graphs = self.problem, self.graphs
        arguments = (self.intercepts, problem.intercepts, problem.n_components)
        analytic = problem.data.is_complete and not self._has_edges and not problem.noise.by_entries

        @cache
        def singular() -> tuple[VariationalStart, float, FloatArray | None]:
            variance, weights = problem.noise.first_look(problem.data, self.intercepts)
            start = singular_start(problem.data, *arguments, FIRST_NOISE * variance, self.random_state, weights)
            return start.under(graphs[0].precision, graphs[1].precision), variance, weights

        def solution(name: str, data: Observed, noise_variance: float) -> VariationalStart:
            """Of a complete table without graphs and weights of entries."""
            if name == "bold":
                return analytic_start(data, *arguments, self.random_state)
            return shared_analytic_start(data, *arguments, noise_variance, problem.noise.floor, self.random_state)

        @cache
        def of(name: str) -> VariationalState:
            law = LAWS[name if name in _TIED else "columns"]
            takes_solution = name == "bold" or (law.is_tied and self._is_narrow)
            if analytic and takes_solution:
                return replace(self._state(solution(name, problem.data, FIRST_NOISE)), law=law)
            start, variance, weights = singular()
            if self._is_narrow and name != "cautious":
                tame = problem.data if weights is None else _tamed(problem.data, self.intercepts, weights)
                noise = solution(name, tame, FIRST_NOISE * variance).noise_variance
                state = self._state(start._replace(noise_variance=noise), weights)
                return self._after_holding_noise(replace(state, law=law))
            if name == "cautious":
                return self._after_holding_noise(self._state(_flattened(start, variance), weights))
            return replace(self._state(start, weights), law=law)

        return of

    def _after_holding_noise(self, state: VariationalState) -> VariationalState:
        state = replace(state, holds_noise=True)
        iterate = self.problem.prepare(state, _TRIAL_REDUCTION)
        for _ in range(_HELD):
            state, _ = iterate(state)
        return replace(state, holds_noise=False)

    def _state(self, start: VariationalStart, weights: FloatArray | None = None) -> VariationalState:
        samples, features = start.samples, start.features
        if self.problem.diagonal:
            samples, features = samples.independent(), features.independent()
        noise = self.problem.noise.start(self.problem.data, start.noise_variance, weights)
        return VariationalState(samples, features, self.intercepts.overall, noise, *self.graphs)

    @property
    def _has_edges(self) -> bool:
        return any(graph.n_edges for graph in self.graphs)

    def _tried(self, start: VariationalState, n_iter: int | None = None, at_least: int = 1) -> ShortRun:
        """A short run: until little changes, or for as many iterations as are asked for."""
        iterate, state = self.problem.prepare(start, _TRIAL_REDUCTION), start
        loss, count, settled = math.inf, 0, False
        while count < (n_iter or _TRIAL) and not settled:
            before, count = loss, count + 1
            state, terms = iterate(state)
            loss = sum(terms.values())
            small = before - loss <= _TRIAL_TOL * self.problem.size(terms)
            settled = small and n_iter is None and count >= at_least
        return ShortRun(state, loss, count, start.samples.rank - state.samples.rank)

    def _from_sample(self) -> VariationalState:
        """From some rows of a large table, or some columns of a wide one, without their graph.

        The first half-step asks for nothing but the posterior of the other side, which a sample tells well enough.
        """
        problem, intercepts, graphs = self.problem, self.intercepts, self.graphs
        n, p = problem.data.shape
        weights = problem.noise.first_look(problem.data, intercepts)[1]
        if n < p:
            found = Starter(problem.T, intercepts.T, graphs[::-1], self.random_state)._from_sample()
            noise = problem.noise.start(problem.data, found.noise.level, weights)
            # Iterations begin with the rows, for which the columns have to be known.
            update = prepare_posterior(problem.feature_half(graphs[1]))
            features = update(found.samples, found.features, noise.T, found.overall).posterior
            return VariationalState(found.features, features, found.overall, noise, *graphs, found.law)
        size = max(problem.n_components, int(n * _SAMPLE_ENTRIES / problem.data.n_observed))
        rows = np.sort(check_random_state(self.random_state).choice(n, size, replace=False))
        # The table is too large to ask whether prior variances are shared, and so is its sample.
        prior = "columns" if problem.prior == "auto" else problem.prior
        found = Starter(
            replace(problem, data=problem.data.rows(rows), prior=prior),
            replace(intercepts, rows=intercepts.rows[rows]),
            (GraphEstimate.identity(size), graphs[1]),
            self.random_state,
        )._from_all()
        mean = np.zeros((n, found.samples.rank + 1), problem.data.dtype)
        mean[:, -1] = intercepts.rows
        samples = replace(found.samples, mean=mean, covariance=RowCovariances.zero(mean.shape, mean.dtype))
        if problem.diagonal:
            samples = samples.independent()
        noise = problem.noise.start(problem.data, found.noise.level, weights)
        return VariationalState(samples, found.features, found.overall, noise, *graphs, found.law)


def belief_of(state: VariationalState) -> NoiseBelief | None:
    """What a state whose noise is learned believes of it, if its prior variances are tied."""
    return NoiseBelief(state.noise.optimism, law=state.law.name) if state.law.is_tied else None


def losses(state: VariationalState, held: HeldOut) -> FloatArray:
    """Squared errors of held-out entries, of which outliers count for no more than three standard deviations."""
    rows, columns = held.rows, held.columns
    mean = state.overall + state.samples.intercepts[rows] + state.features.intercepts[columns]
    mean = mean + np.einsum("ij,ij->i", state.X[rows], state.W[columns])
    squares = np.square(held.values - mean, dtype=np.float64)
    # The median of a squared standard normal variable is 0.455.
    most = 9 * float(np.median(squares)) / 0.455 if len(squares) else 0.0
    return np.asarray(np.minimum(squares, most))


def _made(start: Start, starts: Starts) -> VariationalState:
    return starts(start) if isinstance(start, str) else start.imposed_on(starts(start.law))


def _tamed(data: Observed, intercepts: Intercepts, weights: FloatArray) -> DenseObserved:
    """A complete table whose outliers are no further off than is common."""
    residuals = data.residual_matrix(intercepts.rows, intercepts.column_offsets)
    residuals = residuals.toarray() if scipy.sparse.issparse(residuals) else residuals
    fitted = intercepts.rows[:, None] + intercepts.column_offsets
    return DenseObserved((fitted + residuals * weights.reshape(data.shape) ** 0.25).astype(data.dtype))


def _flattened(start: VariationalStart, variance: float) -> VariationalStart:
    """All of the variance is noise, and no column is preferred."""
    samples, features = (
        replace(side, prior_variance=np.full_like(side.prior_variance, side.prior_variance.max()))
        for side in (start.samples, start.features)
    )
    return VariationalStart(samples, features, variance)

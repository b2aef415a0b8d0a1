"""What every factorisation shares: fitting, new rows, chosen entries, files."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from lgmd._typing import FloatArray, SparseGraph
from lgmd._validation import check_choice, check_flag, check_integer, check_real, check_seed
from lgmd.estimators.fitted_table import FittedTable, floored
from lgmd.estimators.labels import remember_labels
from lgmd.estimators.notebook import NotebookDisplay, size_with_names
from lgmd.estimators.persistence import SavedAsFile, refuse_mismatch, refuse_missing
from lgmd.exceptions import ConvergenceWarning, InvalidDataError, InvalidParameterError
from lgmd.factors import (
    LAWS,
    LIKELIHOODS,
    NOISES,
    Intercepts,
    InterceptTerms,
    NoiseModel,
    initial_intercepts,
    principal_rotation,
    select_update,
)
from lgmd.graphs import GraphEstimate, GraphLearner
from lgmd.linalg.marginals import mean_marginal_variance
from lgmd.observed import Observed, as_observed
from lgmd.solver import (
    Callback,
    Checkpoint,
    History,
    Inference,
    MapInference,
    MapState,
    Schedule,
    Solution,
    Status,
    VariationalInference,
    VariationalState,
    solve,
)

__all__ = ["COVARIANCES", "INFERENCES", "Factorization", "check_rank"]

INFERENCES = ("variational", "map")
COVARIANCES = ("auto", "full", "diagonal")
PRIORS = ("auto", *LAWS)

# Numbers up to which "auto" keeps a covariance matrix of every row and column.
_FULL_COVARIANCE_NUMBERS = 300_000_000

# Where outliers are expected, values this many robust standard deviations off the median do not say where means and
# scale of a table lie.
_EXTREME = 10.0

DEFAULT_COMPONENTS = 20
"""Most columns of the factors, unless a number is asked for."""

_BY_POSTERIORS = "variational: posteriors of rows and columns in turn"

# Columns whose product is this small beside the largest have died.
_DEAD = 1e-7


class Factorization(FittedTable, SavedAsFile, NotebookDisplay, BaseEstimator):
    """Base of the models ``Y = intercepts + X W' + E``.

    A subclass says which graphs it has. For the parameters see :class:`lgmd.LGMD`.
    """

    sample_graph_: SparseGraph
    feature_graph_: SparseGraph
    n_iter_: int
    converged_: bool
    status_: str
    history_: History
    update_: str
    sample_noise_variance_: FloatArray
    feature_noise_variance_: FloatArray

    def __init__(
        self,
        n_components: int = DEFAULT_COMPONENTS,
        inference: str = "map",
        noise: str = "homoscedastic",
        likelihood: str = "gaussian",
        prior: str = "auto",
        covariance: str = "auto",
        sample_penalty: float = 1.0,
        feature_penalty: float = 1.0,
        intercept: str = "both",
        intercept_penalty: float = 1.0,
        update: Any = "auto",
        allow_empty: bool = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.inference = inference
        self.noise = noise
        self.likelihood = likelihood
        self.prior = prior
        self.covariance = covariance
        self.sample_penalty = sample_penalty
        self.feature_penalty = feature_penalty
        self.intercept = intercept
        self.intercept_penalty = intercept_penalty
        self.update = update
        self.allow_empty = allow_empty
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @abstractmethod
    def _learners(self) -> tuple[GraphLearner, GraphLearner]:
        """The learners of the two graphs."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn factors, intercepts and graphs.

        Parameters
        ----------
        X : array-like, masked array, DataFrame or sparse matrix of shape (n, p)
            The table. NaN and masked entries are gaps; of a sparse matrix the stored entries are the observed ones.
        y : None
            Ignored; there so that pipelines work.
        callback : callable, optional
            Called with a :class:`~lgmd.solver.Progress` after each iteration; returning True stops the run.
        checkpoint : path, optional
            Where to keep the state of the run. If the file exists, the run goes on from it.

        Notes
        -----
        Ctrl-C leaves a model with the last complete iteration. While the starting factors are still being made it ends
        ``fit`` without one.

        Returns
        -------
        self
        """
        learners, schedule = self._check_parameters(), self._schedule()
        if callback is not None and not callable(callback):
            raise InvalidParameterError(
                f"callback must be a function of one argument, the progress of the run, or None, but is {callback!r}."
            )
        _refuse_equal_names(X)
        # Names that scikit-learn refuses are refused before the work, and kept after it.
        validate_data(BaseEstimator(), X, skip_check_array=True)
        observed = as_observed(X, allow_empty_rows=self.allow_empty, allow_empty_columns=self.allow_empty)
        n_components = most_components(self.n_components, observed)
        data, intercepts, scale = self._standardize(observed)
        del observed  # only the table at unit scale is needed from here on
        problem = self._problem(data, n_components, learners)
        saver = None if checkpoint is None else Checkpoint(checkpoint)
        stored = None if saver is None else saver.load(problem)
        start = problem.start(intercepts, self.random_state) if stored is None else stored[0]
        solution = solve(
            problem,
            start,
            schedule,
            history=None if stored is None else stored[1],
            callback=callback,
            checkpoint=saver,
        )
        validate_data(self, X, skip_check_array=True, reset=True)
        remember_labels(self, X, "sample", problem.data.row_names)
        remember_labels(self, X, "feature", getattr(self, "feature_names_in_", None))
        self._keep(problem, solution, scale)
        return self

    def _check_parameters(self) -> tuple[GraphLearner, GraphLearner]:
        check_integer(self.n_components, "n_components", minimum=1)
        check_choice(self.inference, "inference", INFERENCES)
        check_choice(self.noise, "noise", NOISES)
        check_choice(self.likelihood, "likelihood", LIKELIHOODS)
        check_choice(self.prior, "prior", PRIORS)
        check_choice(self.covariance, "covariance", COVARIANCES)
        if self.inference == "map":
            for name, plain in (("noise", "homoscedastic"), ("likelihood", "gaussian")):
                if getattr(self, name) != plain:
                    raise InvalidParameterError(
                        f'{name}={getattr(self, name)!r} needs inference="variational": the most probable factors '
                        f"alone say nothing about the noise. Use that, or {name}={plain!r}."
                    )
        elif self.update != "auto":
            raise InvalidParameterError(
                f'update={self.update!r} belongs to inference="map". Use that, or leave update="auto".'
            )
        check_real(self.sample_penalty, "sample_penalty")
        check_real(self.feature_penalty, "feature_penalty")
        check_real(self.intercept_penalty, "intercept_penalty")
        check_integer(self.max_iter, "max_iter", minimum=1)
        check_real(self.tol, "tol")
        InterceptTerms.parse(self.intercept)
        check_flag(self.allow_empty, "allow_empty")
        check_seed(self.random_state)
        return self._learners()

    def _standardize(self, observed: Observed) -> tuple[Observed, Intercepts, float]:
        """The table at unit scale, its starting intercepts, and the scale."""
        terms = InterceptTerms.parse(self.intercept)
        largest = observed.largest()
        # Squares of very large or very small numbers leave the range of floating point.
        first = largest if largest > 0 and not 1e-15 < largest < 1e15 else 1.0
        data = observed if first == 1.0 else observed.divided(first)
        bulk = data.without_extremes(_EXTREME) if self.likelihood == "student" else data
        intercepts, mean_square = initial_intercepts(bulk, terms, self.intercept_penalty)
        second = float(np.sqrt(mean_square))
        # A table that its means explain to the last digits has no scale but its own; the least noise is then what
        # rounding takes.
        digit = float(np.finfo(observed.dtype).eps) * largest / first
        if second <= 10 * digit:
            second = digit / float(np.sqrt(_least_noise(observed.dtype))) or 1.0
        return data.divided(second), intercepts.scaled(1.0 / second), first * second

    def _problem(
        self, data: Observed, n_components: int, learners: tuple[GraphLearner, GraphLearner]
    ) -> Inference[Any]:
        terms = InterceptTerms.parse(self.intercept)
        if self.inference == "variational":
            noise = NoiseModel(self.noise, self.likelihood, _least_noise(data.dtype))
            n, p = data.shape
            numbers = (n + p) * (n_components + 1) * (n_components + 2) // 2
            diagonal = self.covariance == "diagonal" or (
                self.covariance == "auto" and not data.is_complete and numbers > _FULL_COVARIANCE_NUMBERS
            )
            return VariationalInference(data, n_components, terms, *learners, noise, diagonal, self.prior)
        return MapInference(
            data,
            n_components,
            floored(self.sample_penalty, data),
            floored(self.feature_penalty, data),
            terms,
            floored(self.intercept_penalty, data),
            *learners,
            select_update(self.update, data).update,
        )

    def _schedule(self) -> Schedule:
        return Schedule(max_iter=self.max_iter, tol=self.tol)

    def _keep(self, problem: Inference[Any], solution: Solution[Any], scale: float) -> None:
        """Attributes of a finished run, at the scale of the data."""
        data = problem.data
        state, history = solution.state, solution.history
        self.scale_ = scale
        self.sample_graph_, self.feature_graph_ = state.sample_graph.precision, state.feature_graph.precision
        self.sample_strength_, self.feature_strength_ = state.sample_graph.strength, state.feature_graph.strength
        self.sample_prior_variance_ = mean_marginal_variance(self.sample_graph_)
        if isinstance(problem, VariationalInference):
            self._keep_posterior(problem, state, scale)
        else:
            self._keep_estimate(data, state, scale)
        self.rank_ = self.sample_factors_.shape[1]
        self.history_ = history
        self.n_iter_ = len(history)
        self.status_ = solution.status.value
        self.converged_ = solution.status is Status.CONVERGED
        if data.row_names is not None:
            self.sample_names_in_ = data.row_names
        elif hasattr(self, "sample_names_in_"):
            del self.sample_names_in_
        measure = "relative change" if self.inference == "map" else "change per entry"
        message = solution.status.message(type(self).__name__, history, self.tol, solution.graph_updates_left, measure)
        if message:
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        doubt = problem.noise.doubt(state.noise) if isinstance(problem, VariationalInference) else ""
        if doubt:
            warnings.warn(
                f'Error bars of {type(self).__name__} with likelihood="student" may be too narrow: {doubt} Use '
                'likelihood="gaussian" unless they are errors.',
                ConvergenceWarning,
                stacklevel=3,
            )

    def _keep_estimate(self, data: Observed, state: MapState, scale: float) -> None:
        choice = select_update(self.update, data)
        self.update_ = f"{choice.name}: {choice.reason}"
        for name in ("posterior_", "sample_noise_variance_", "feature_noise_variance_"):
            if hasattr(self, name):
                delattr(self, name)
        X, W, _ = principal_rotation(state.X, state.W)
        X, W = _drop_dead(X, W, data.n_observed)
        root = X.dtype.type(np.sqrt(scale))
        means = state.intercepts.scaled(scale)
        self.sample_factors_, self.feature_factors_ = X * root, W * root
        self.intercept_ = means.overall
        self.sample_intercepts_, self.feature_intercepts_ = means.rows, means.columns
        self.noise_std_ = scale * float(np.sqrt(state.squares / data.n_observed))
        with np.errstate(over="ignore"):  # a variance beyond the range of floating point is infinite
            self.noise_variance_ = float(np.square(np.float64(self.noise_std_)))

    def _keep_posterior(self, problem: VariationalInference, state: VariationalState, scale: float) -> None:
        self.update_ = _BY_POSTERIORS
        self.posterior_ = problem.posterior(state, self.sample_prior_variance_)
        samples, features = self.posterior_.samples, self.posterior_.features
        root, unit = samples.mean.dtype.type(np.sqrt(scale)), samples.mean.dtype.type(scale)
        self.sample_factors_, self.feature_factors_ = samples.factors * root, features.factors * root
        self.intercept_ = state.overall * scale
        self.sample_intercepts_, self.feature_intercepts_ = samples.intercepts * unit, features.intercepts * unit
        noise = state.noise
        self.noise_std_ = scale * float(np.sqrt(noise.level))
        with np.errstate(over="ignore"):
            squared = np.square(np.float64(scale))
            self.noise_variance_ = float(noise.level * squared)
            self.sample_noise_variance_ = noise.samples * noise.features.mean() * squared
            self.feature_noise_variance_ = noise.features * noise.samples.mean() * squared

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sample_factors_")

    def _summary(self) -> dict[str, str]:
        if not self.__sklearn_is_fitted__():
            return {}
        names = (getattr(self, f"{side}_names_in_", None) for side in ("sample", "feature"))
        edges = (GraphEstimate(graph, float("nan")).n_edges for graph in (self.sample_graph_, self.feature_graph_))
        converged = "converged" if self.converged_ else f"not converged ({self.status_})"
        return {
            "rows": size_with_names(len(self.sample_factors_), next(names)),
            "columns": size_with_names(len(self.feature_factors_), next(names)),
            "rank": f"{self.rank_} of at most {self.n_components}",
            "noise": f"{self.noise_std_:.4g} (standard deviation)",
            "inference": self.inference if self._has_posterior else f"{self.inference} (no error bars)",
            "edges": f"{next(edges):,} between rows, {next(edges):,} between columns",
            "fit": f"{converged}, {self.n_iter_:,} iteration{'' if self.n_iter_ == 1 else 's'}",
        }

    def _check_loaded(self) -> None:
        n, p, k = len(self.sample_factors_), self.n_features_in_, self.rank_
        found = {
            "sample_factors_": (self.sample_factors_.shape, (n, k)),
            "feature_factors_": (self.feature_factors_.shape, (p, k)),
            "sample_intercepts_": (self.sample_intercepts_.shape, (n,)),
            "feature_intercepts_": (self.feature_intercepts_.shape, (p,)),
            "sample_graph_": (self.sample_graph_.shape, (n, n)),
            "feature_graph_": (self.feature_graph_.shape, (p, p)),
        }
        refuse_missing(self, ("update_",))
        if self.update_ == _BY_POSTERIORS:  # inference may have been set to something else since
            refuse_missing(self, ("posterior_",))
            found |= self.posterior_.shapes((n, p, k))
        refuse_mismatch(found)
        refuse_missing(
            self, ("scale_", "intercept_", "noise_variance_", "noise_std_", "sample_prior_variance_", "history_")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _refuse_equal_names(table: Any) -> None:
    """Raise where columns of a DataFrame cannot be told apart."""
    columns = getattr(table, "columns", None)
    if columns is None or getattr(columns, "is_unique", True):
        return
    name = columns[columns.duplicated()].tolist()[0]
    raise InvalidDataError(f"More than one column has the name {name!r}. Rename them, or drop all but one.")


def _least_noise(dtype: np.dtype[np.floating]) -> float:
    """Variance at unit scale below which only round-off would be left: squares are sums of large terms that cancel."""
    return 1e-9 if dtype == np.float64 else 1e-5


def most_components(n_components: int, data: Observed) -> int:
    """Columns that factors may have: the default goes no further than the table, any other number is refused."""
    n, p = data.shape
    if n_components == DEFAULT_COMPONENTS:
        return min(n_components, n, p)
    check_rank(n_components, data)
    return n_components


def check_rank(n_components: int, data: Observed) -> None:
    """Refuse more components than the table has rows or columns."""
    n, p = data.shape
    if n_components > min(n, p):
        raise InvalidParameterError(
            f"n_components={n_components} is larger than the data allows: with n_samples={n} and n_features={p} "
            f"the rank is at most {min(n, p)}. Lower n_components."
        )


def _drop_dead(X: FloatArray, W: FloatArray, n_observed: int) -> tuple[FloatArray, FloatArray]:
    """Leave out columns that contribute nothing to a table at unit scale; at least one stays."""
    sizes = np.linalg.norm(X, axis=0) * np.linalg.norm(W, axis=0)
    alive = sizes > _DEAD * max(sizes.max(initial=0.0), np.sqrt(n_observed))
    alive[0] |= not alive.any()
    return np.ascontiguousarray(X[:, alive]), np.ascontiguousarray(W[:, alive])

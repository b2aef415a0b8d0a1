"""What every factorisation shares: fitting, new rows, chosen entries, files."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from lgmd._typing import Array, FloatArray, SparseGraph
from lgmd._validation import check_choice, check_integer, check_real, check_seed
from lgmd.estimators._memory import refuse_oversized
from lgmd.estimators.persistence import SavedAsFile, refuse_mismatch, refuse_missing
from lgmd.exceptions import ConvergenceWarning, InvalidDataError, InvalidParameterError
from lgmd.factors import (
    LIKELIHOODS,
    NOISES,
    Half,
    Intercepts,
    InterceptTerms,
    NoiseModel,
    TablePosterior,
    initial_intercepts,
    principal_rotation,
    select_update,
)
from lgmd.graphs import GraphLearner
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

# Numbers up to which "auto" keeps a covariance matrix of every row and column.
_FULL_COVARIANCE_NUMBERS = 300_000_000

# Columns whose product is this small beside the largest have died.
_DEAD = 1e-7

# Entries predicted at a time: 160 MB of gathered factors at k = 20.
_PREDICT_BLOCK = 500_000


class Factorization(SavedAsFile, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the models ``Y = intercepts + X W' + E``.

    A subclass says which graphs it has. For the parameters see :class:`lgmd.LGMD`.
    """

    scale_: float
    sample_factors_: FloatArray
    feature_factors_: FloatArray
    sample_graph_: SparseGraph
    feature_graph_: SparseGraph
    intercept_: float
    sample_intercepts_: FloatArray
    feature_intercepts_: FloatArray
    sample_prior_variance_: float
    noise_variance_: float
    rank_: int
    n_iter_: int
    converged_: bool
    status_: str
    history_: History
    update_: str
    posterior_: TablePosterior

    def __init__(
        self,
        n_components: int = 20,
        inference: str = "map",
        noise: str = "homoscedastic",
        likelihood: str = "gaussian",
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

        Returns
        -------
        self
        """
        learners, schedule = self._check_parameters(), self._schedule()
        # Names that scikit-learn refuses are refused before the work, and kept after it.
        validate_data(BaseEstimator(), X, skip_check_array=True)
        observed = as_observed(X, allow_empty_rows=self.allow_empty, allow_empty_columns=self.allow_empty)
        check_rank(self.n_components, observed)
        data, intercepts, scale = self._standardize(observed)
        del observed  # only the table at unit scale is needed from here on
        problem = self._problem(data, learners)
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
        self._keep(data, solution, scale)
        return self

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Factors of unseen rows, gaps allowed.

        Each row is regressed on the column factors with the prior that rows have when nothing ties them to others.

        Parameters
        ----------
        X : table of shape (m, p)
            The same columns as in ``fit``.
        return_std : bool, default=False
            Whether to return posterior standard deviations too.

        Returns
        -------
        ndarray of shape (m, rank_), or two of them
        """
        check_is_fitted(self)
        self._refuse_std(return_std)
        data = self._unseen(X)
        if not self._has_posterior:
            return self._regress(data)[0]
        unseen, root = self.posterior_.unseen(data).samples, np.sqrt(self.scale_)
        factors = unseen.factors * unseen.mean.dtype.type(root)
        if not return_std:
            return factors
        return factors, (unseen.standard_deviations()[:, :-1] * root).astype(factors.dtype)

    def inverse_transform(self, X: Any, sample_intercepts: Any = None) -> FloatArray:
        """The table that row factors stand for.

        Parameters
        ----------
        X : array-like of shape (m, rank_)
            Row factors.
        sample_intercepts : array-like of shape (m,), optional
            Intercepts of the rows; without them rows have the overall mean.

        Returns
        -------
        ndarray of shape (m, p)
        """
        check_is_fitted(self)
        factors = np.asarray(X, dtype=self.sample_factors_.dtype)
        if factors.ndim != 2 or factors.shape[1] != self.rank_:
            raise InvalidDataError(
                f"Row factors of shape {factors.shape} do not fit the model, which has rank_={self.rank_}: "
                f"pass an array of shape (m, {self.rank_})."
            )
        rows = np.zeros(len(factors)) if sample_intercepts is None else np.asarray(sample_intercepts, dtype=np.float64)
        if rows.shape != (len(factors),):
            raise InvalidDataError(
                f"sample_intercepts have shape {rows.shape}, but {len(factors)} rows need shape ({len(factors)},)."
            )
        return self._expand(factors, rows.astype(factors.dtype))

    def reconstruct(self, X: Any = None, return_std: bool = False) -> Any:
        """The denoised and completed table.

        Parameters
        ----------
        X : table of shape (m, p), optional
            Unseen rows, with gaps; without it the table that was fitted.
        return_std : bool, default=False
            Whether to return error bars too: the standard deviation of a new observation of each entry, noise
            included. They need a posterior, which ``inference="map"`` does not have.

        Returns
        -------
        ndarray of shape (n, p) or (m, p), or two of them
        """
        check_is_fitted(self)
        self._refuse_std(return_std)
        if X is None:
            table = self._expand(self.sample_factors_, self.sample_intercepts_)
            return (table, self._table_std(self.posterior_)) if return_std else table
        data = self._unseen(X)
        if not self._has_posterior:
            return self._expand(*self._regress(data))
        unseen = self.posterior_.unseen(data)
        dtype = unseen.samples.mean.dtype
        factors = unseen.samples.factors * dtype.type(np.sqrt(self.scale_))
        table = self._expand(factors, unseen.samples.intercepts * dtype.type(self.scale_))
        return (table, self._table_std(unseen)) if return_std else table

    def predict(self, rows: Any, columns: Any, return_std: bool = False) -> Any:
        """Chosen entries of the completed table.

        Parameters
        ----------
        rows, columns : array-like of int
            Positions; they are broadcast against each other.
        return_std : bool, default=False
            As in :meth:`reconstruct`.

        Returns
        -------
        ndarray of the broadcast shape, or two of them
        """
        check_is_fitted(self)
        self._refuse_std(return_std)
        i, j = self._entries(rows, columns)
        flat_i, flat_j = i.ravel(), j.ravel()
        values = self._entry_means(flat_i, flat_j)
        if not return_std:
            return values.reshape(i.shape)
        std = np.sqrt(self.posterior_.variances(flat_i, flat_j)) * self.scale_
        return values.reshape(i.shape), std.astype(values.dtype).reshape(i.shape)

    def sample_posterior(
        self,
        n_draws: int = 1,
        rows: Any = None,
        columns: Any = None,
        *,
        noise: bool = False,
        random_state: Any = None,
    ) -> FloatArray:
        """Draws from the posterior of the completed table.

        Parameters
        ----------
        n_draws : int, default=1
        rows, columns : array-like of int, optional
            Positions of chosen entries, broadcast against each other; without them the whole table. Draws of many
            entries hang together as the posterior says.
        noise : bool, default=False
            Whether to add the noise of a new observation.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        ndarray of shape (n_draws, n, p) or (n_draws, ...) with the broadcast shape
        """
        check_is_fitted(self)
        self._refuse_map("sample_posterior")
        check_integer(n_draws, "n_draws", minimum=1)
        check_seed(random_state)
        if (rows is None) != (columns is None):
            raise InvalidParameterError("rows and columns go together: pass both, or neither for the whole table.")
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        rng = np.random.default_rng(seed)
        n, p = len(self.sample_factors_), len(self.feature_factors_)
        if rows is None:
            refuse_oversized(n_draws * n, p, self.sample_factors_.dtype.itemsize)
            i, j = np.arange(n)[:, None], np.arange(p)
        else:
            i, j = self._entries(rows, columns)
        posterior = self.posterior_
        shape = np.broadcast_shapes(i.shape, j.shape)
        out = np.empty((n_draws, *shape), self.sample_factors_.dtype)
        for draw, (samples, features) in enumerate(posterior.draw(n_draws, rng)):
            if rows is None:
                entries = samples[:, :-1] @ features[:, :-1].T
            else:
                entries = np.einsum("...k,...k->...", samples[i, :-1], features[j, :-1])
            entries = entries + (posterior.overall + samples[i, -1] + features[j, -1])
            if noise:
                entries = entries + posterior.noise.draw(i, j, rng)
            out[draw] = entries * self.scale_
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """Mean predictive log-density of the entries of a table that were not fitted.

        Parameters
        ----------
        X : table of shape (n, p)
            The fitted table's rows and columns with held-out entries; the rest is missing.
        y : None
            Ignored.

        Returns
        -------
        float
            In nats an entry; higher is better. For ``inference="map"`` the noise alone spreads the prediction.
        """
        check_is_fitted(self)
        shape = (len(self.sample_factors_), len(self.feature_factors_))
        observed = as_observed(X, allow_empty_rows=True, allow_empty_columns=True, min_rows=1, min_columns=1)
        validate_data(self, X, skip_check_array=True, reset=False)
        if observed.shape != shape:
            raise InvalidDataError(
                f"The table to score is {observed.shape[0]} x {observed.shape[1]}, but the fitted one is "
                f"{shape[0]} x {shape[1]}. Pass the held-out entries in a table of that shape, with NaN elsewhere."
            )
        entries = observed.entries()
        rows = np.repeat(np.arange(shape[0]), np.diff(entries.indptr))
        columns = np.asarray(entries.indices, dtype=np.int64)
        residuals = (entries.values.astype(np.float64) - self._entry_means(rows, columns)) / self.scale_
        if self._has_posterior:
            density = self.posterior_.log_density(residuals, rows, columns)
        else:
            variance = max(self.noise_variance_ / self.scale_**2, np.finfo(np.float64).tiny)
            density = -0.5 * (np.square(residuals) / variance + np.log(2 * np.pi * variance))
        return float(density.mean() - np.log(self.scale_))

    def _check_parameters(self) -> tuple[GraphLearner, GraphLearner]:
        check_integer(self.n_components, "n_components", minimum=1)
        check_choice(self.inference, "inference", INFERENCES)
        check_choice(self.noise, "noise", NOISES)
        check_choice(self.likelihood, "likelihood", LIKELIHOODS)
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
        check_seed(self.random_state)
        return self._learners()

    def _standardize(self, observed: Observed) -> tuple[Observed, Intercepts, float]:
        """The table at unit scale, its starting intercepts, and the scale."""
        terms = InterceptTerms.parse(self.intercept)
        largest = observed.largest()
        # Squares of very large or very small numbers leave the range of floating point.
        first = largest if largest > 0 and not 1e-15 < largest < 1e15 else 1.0
        data = observed if first == 1.0 else observed.divided(first)
        intercepts, mean_square = initial_intercepts(data, terms, self.intercept_penalty)
        second = float(np.sqrt(mean_square))
        # A table that its means explain to the last digit has no scale but its own.
        if second <= 10 * float(np.finfo(observed.dtype).eps) * largest / first:
            second = 1.0
        return data.divided(second), intercepts.scaled(1.0 / second), first * second

    def _problem(self, data: Observed, learners: tuple[GraphLearner, GraphLearner]) -> Inference[Any]:
        terms = InterceptTerms.parse(self.intercept)
        if self.inference == "variational":
            floor = 1e-10 if data.dtype == np.float64 else 1e-6
            noise = NoiseModel(self.noise, self.likelihood, floor)
            n, p = data.shape
            numbers = (n + p) * (self.n_components + 1) * (self.n_components + 2) // 2
            diagonal = self.covariance == "diagonal" or (
                self.covariance == "auto" and not data.is_complete and numbers > _FULL_COVARIANCE_NUMBERS
            )
            return VariationalInference(data, self.n_components, terms, *learners, noise, diagonal)
        return MapInference(
            data,
            self.n_components,
            _floored(self.sample_penalty, data),
            _floored(self.feature_penalty, data),
            terms,
            _floored(self.intercept_penalty, data),
            *learners,
            select_update(self.update, data).update,
        )

    def _schedule(self) -> Schedule:
        return Schedule(max_iter=self.max_iter, tol=self.tol)

    def _keep(self, data: Observed, solution: Solution[Any], scale: float) -> None:
        """Attributes of a finished run, at the scale of the data."""
        state, history = solution.state, solution.history
        self.scale_ = scale
        self.sample_graph_, self.feature_graph_ = state.sample_graph.precision, state.feature_graph.precision
        self.sample_prior_variance_ = mean_marginal_variance(self.sample_graph_)
        if isinstance(state, VariationalState):
            self._keep_posterior(state, scale)
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
        message = solution.status.message(type(self).__name__, history, self.tol, solution.graph_updates_left)
        if message:
            warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _keep_estimate(self, data: Observed, state: MapState, scale: float) -> None:
        choice = select_update(self.update, data)
        self.update_ = f"{choice.name}: {choice.reason}"
        if hasattr(self, "posterior_"):
            del self.posterior_
        X, W, _ = principal_rotation(state.X, state.W)
        X, W = _drop_dead(X, W, data.n_observed)
        root = X.dtype.type(np.sqrt(scale))
        means = state.intercepts.scaled(scale)
        self.sample_factors_, self.feature_factors_ = X * root, W * root
        self.intercept_ = means.overall
        self.sample_intercepts_, self.feature_intercepts_ = means.rows, means.columns
        with np.errstate(over="ignore"):  # a variance beyond the range of floating point is infinite
            self.noise_variance_ = float(np.square(np.float64(scale) * np.sqrt(state.squares / data.n_observed)))

    def _keep_posterior(self, state: VariationalState, scale: float) -> None:
        self.update_ = "variational: posteriors of rows and columns in turn"
        self.posterior_ = state.posterior(self.sample_prior_variance_)
        samples, features = self.posterior_.samples, self.posterior_.features
        root, unit = samples.mean.dtype.type(np.sqrt(scale)), samples.mean.dtype.type(scale)
        self.sample_factors_, self.feature_factors_ = samples.factors * root, features.factors * root
        self.intercept_ = state.overall * scale
        self.sample_intercepts_, self.feature_intercepts_ = samples.intercepts * unit, features.intercepts * unit
        noise = state.noise
        with np.errstate(over="ignore"):
            squared = np.square(np.float64(scale))
            self.noise_variance_ = float(noise.samples.mean() * noise.features.mean() * squared)
            self.sample_noise_variance_ = noise.samples * noise.features.mean() * squared
            self.feature_noise_variance_ = noise.features * noise.samples.mean() * squared

    @property
    def _has_posterior(self) -> bool:
        return hasattr(self, "posterior_")

    def _unseen(self, table: Any) -> Observed:
        """A table with the fitted columns, at unit scale."""
        observed = as_observed(
            table,
            allow_empty_rows=self.allow_empty,
            allow_empty_columns=True,
            allow_all_missing=self.allow_empty,
            min_rows=1,
            min_columns=1,
        )
        validate_data(self, table, skip_check_array=True, reset=False)
        return observed.divided(self.scale_)

    def _regress(self, data: Observed) -> tuple[FloatArray, FloatArray]:
        """Most probable factors and intercepts of unseen rows, at the scale of the data."""
        dtype = self.feature_factors_.dtype
        root = dtype.type(np.sqrt(self.scale_))
        terms = InterceptTerms.parse(self.intercept)
        # A row that nothing ties to others has the marginal variance of the graph.
        half = Half(
            data,
            _floored(self.sample_penalty, data) / self.sample_prior_variance_,
            scipy.sparse.eye_array(data.shape[0], format="csr"),
            _floored(self.intercept_penalty, data) if terms.rows else None,
        )
        design = (self.feature_factors_ / root).astype(data.dtype)
        offsets = ((self.feature_intercepts_ + dtype.type(self.intercept_)) / dtype.type(self.scale_)).astype(
            data.dtype
        )
        start = np.zeros((data.shape[0], self.rank_), data.dtype)
        factors, intercepts = select_update("auto", data).update.prepare(half)(start, design, offsets)
        return factors * data.dtype.type(root), intercepts * data.dtype.type(self.scale_)

    def _entries(self, rows: Any, columns: Any) -> tuple[Array, Array]:
        i, j = np.broadcast_arrays(
            _positions(rows, "rows", len(self.sample_factors_)),
            _positions(columns, "columns", len(self.feature_factors_)),
        )
        return i, j

    def _entry_means(self, rows: Array, columns: Array) -> FloatArray:
        values = np.empty(len(rows), self.sample_factors_.dtype)
        for start in range(0, len(rows), _PREDICT_BLOCK):
            block = slice(start, start + _PREDICT_BLOCK)
            i, j = rows[block], columns[block]
            values[block] = np.einsum("ij,ij->i", self.sample_factors_[i], self.feature_factors_[j])
            values[block] += self.intercept_ + self.sample_intercepts_[i] + self.feature_intercepts_[j]
        return values

    def _table_std(self, posterior: TablePosterior) -> FloatArray:
        dtype = posterior.samples.mean.dtype
        return np.asarray(np.sqrt(posterior.table_variances()) * dtype.type(self.scale_))

    def _expand(self, factors: FloatArray, rows: FloatArray) -> FloatArray:
        """``intercepts + X W'``, after a look at the memory."""
        refuse_oversized(len(factors), len(self.feature_factors_), factors.dtype.itemsize)
        table = factors @ self.feature_factors_.T.astype(factors.dtype)
        table += rows[:, None]
        table += (self.feature_intercepts_ + self.intercept_).astype(factors.dtype)
        return np.asarray(table)

    def _refuse_std(self, return_std: bool) -> None:
        if return_std:
            self._refuse_map("return_std=True")

    def _refuse_map(self, wish: str) -> None:
        if not self._has_posterior:
            raise InvalidParameterError(
                f'{wish} needs a posterior, but inference="map" gives a point estimate without error bars. '
                'Fit with inference="variational".'
            )

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sample_factors_")

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
        refuse_mismatch(found)
        refuse_missing(self, ("scale_", "intercept_", "noise_variance_", "sample_prior_variance_", "history_"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_rank(n_components: int, data: Observed) -> None:
    """Refuse more components than the table has rows or columns."""
    n, p = data.shape
    if n_components > min(n, p):
        raise InvalidParameterError(
            f"n_components={n_components} is larger than the data allows: with n_samples={n} and n_features={p} "
            f"the rank is at most {min(n, p)}. Lower n_components."
        )


def _floored(penalty: float, data: Observed) -> float:
    """A penalty that keeps the systems of rows with few entries solvable: zero counts as the smallest of these."""
    return max(float(penalty), 1e-6 if data.dtype == np.float64 else 1e-4)


def _drop_dead(X: FloatArray, W: FloatArray, n_observed: int) -> tuple[FloatArray, FloatArray]:
    """Leave out columns that contribute nothing to a table at unit scale; at least one stays."""
    sizes = np.linalg.norm(X, axis=0) * np.linalg.norm(W, axis=0)
    alive = sizes > _DEAD * max(sizes.max(initial=0.0), np.sqrt(n_observed))
    alive[0] |= not alive.any()
    return np.ascontiguousarray(X[:, alive]), np.ascontiguousarray(W[:, alive])


def _positions(values: Any, name: str, length: int) -> Array:
    positions = np.asarray(values)
    if positions.size == 0:
        return positions.astype(np.int64)
    if positions.dtype.kind not in "iu":
        raise InvalidDataError(f"{name} must be integer positions, but hold {positions.dtype} values.")
    low, high = int(positions.min()), int(positions.max())
    if low < 0 or high >= length:
        found = low if low < 0 else high
        raise InvalidDataError(f"{name} must be between 0 and {length - 1}, but {found} is among them.")
    return positions

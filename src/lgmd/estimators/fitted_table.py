"""What a fitted factorisation can be asked: new rows, chosen entries, error bars, draws, a score."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from lgmd._typing import Array, FloatArray
from lgmd._validation import check_integer, check_seed, refuse_masked
from lgmd.estimators._memory import refuse_oversized
from lgmd.estimators.labels import refuse_reordered
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.factors import Half, InterceptTerms, TablePosterior, select_update
from lgmd.observed import Observed, as_observed

__all__ = ["FittedTable", "floored"]

# Entries predicted at a time: 160 MB of gathered factors at k = 20.
_PREDICT_BLOCK = 500_000


class FittedTable(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin of estimators that have fitted ``Y = intercepts + X W' + E``."""

    scale_: float
    sample_factors_: FloatArray
    feature_factors_: FloatArray
    intercept_: float
    sample_intercepts_: FloatArray
    feature_intercepts_: FloatArray
    sample_prior_variance_: float
    noise_variance_: float
    noise_std_: float
    rank_: int
    posterior_: TablePosterior
    intercept: str
    intercept_penalty: float
    sample_penalty: float
    allow_empty: bool

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
        if np.iscomplexobj(X):
            raise InvalidDataError("Row factors must be an array of real numbers, but are complex.")
        try:
            factors = np.asarray(X, dtype=self.sample_factors_.dtype)
        except (TypeError, ValueError) as error:
            raise InvalidDataError(f"Row factors must be an array of numbers, but are not: {error}.") from None
        if factors.ndim != 2 or factors.shape[1] != self.rank_:
            raise InvalidDataError(
                f"Row factors of shape {factors.shape} do not fit the model, which has rank_={self.rank_}: "
                f"pass an array of shape (m, {self.rank_})."
            )
        if not np.all(np.isfinite(factors)):
            raise InvalidDataError(
                f"{int((~np.isfinite(factors)).sum()):,} of the row factors are NaN or infinite. Pass what transform() "
                "gave."
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
            included, but not the gross errors of ``likelihood="student"``. They need a posterior, which
            ``inference="map"`` does not have.

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
            entries hang together as the posterior says, also between rows that a graph joins, unless
            ``covariance="diagonal"`` takes all numbers as independent.
        noise : bool, default=False
            Whether to add the noise of a new observation, without the gross errors of ``likelihood="student"``.
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
        posterior = self.posterior_
        if rows is None:
            refuse_oversized(n_draws * n, p, self.sample_factors_.dtype.itemsize)
            i, j = np.arange(n)[:, None], np.arange(p)
        else:
            i, j = self._entries(rows, columns)
        own, i_own = np.unique(i, return_inverse=True)
        met, j_met = np.unique(j, return_inverse=True)
        i_own, j_met = i_own.reshape(i.shape), j_met.reshape(j.shape)
        out = np.empty((n_draws, *np.broadcast_shapes(i.shape, j.shape)), self.sample_factors_.dtype)
        for draw, (samples, features) in enumerate(posterior.draw(n_draws, rng, own, met)):
            if rows is None:
                entries = samples[:, :-1] @ features[:, :-1].T
            else:
                entries = np.einsum("...k,...k->...", samples[i_own, :-1], features[j_met, :-1])
            entries = entries + (posterior.overall + samples[i_own, -1] + features[j_met, -1])
            if noise:
                entries = entries + posterior.noise.draw(i, j, rng)
            out[draw] = entries * self.scale_
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """Mean predictive log-density of the entries of a table that were not fitted.

        Rows are the fitted ones: hold out entries, not rows. Cross-validation over rows has no meaning here.

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
        refuse_reordered(self, X, "feature")
        if observed.shape != shape:
            raise InvalidDataError(
                f"The table to score is {observed.shape[0]} x {observed.shape[1]}, but the fitted one is "
                f"{shape[0]} x {shape[1]}. Pass the held-out entries in a table of that shape, with NaN elsewhere."
            )
        names = getattr(self, "sample_names_in_", None)
        if names is not None and observed.row_names is not None and not np.array_equal(names, observed.row_names):
            raise InvalidDataError(
                "The rows of the table to score have other names than the fitted ones, or another order. Entries are "
                "scored where they stand: reindex the table to the fitted rows."
            )
        refuse_reordered(self, X, "sample")
        entries = observed.entries()
        rows = np.repeat(np.arange(shape[0]), np.diff(entries.indptr))
        columns = np.asarray(entries.indices, dtype=np.int64)
        residuals = (entries.values.astype(np.float64) - self._entry_means(rows, columns)) / self.scale_
        if self._has_posterior:
            density = self.posterior_.log_density(residuals, rows, columns)
        else:
            variance = max((self.noise_std_ / self.scale_) ** 2, np.finfo(np.float64).tiny)
            density = -0.5 * (np.square(residuals) / variance + np.log(2 * np.pi * variance))
        return float(density.mean() - np.log(self.scale_))

    @property
    def _has_posterior(self) -> bool:
        return hasattr(self, "posterior_")

    def _unseen(self, table: Any) -> Observed:
        """A table with the fitted columns, at unit scale."""
        observed = as_observed(
            table,
            allow_empty_rows=self.allow_empty,
            allow_empty_columns=True,
            allow_all_missing=True,
            min_rows=1,
            min_columns=1,
        )
        validate_data(self, table, skip_check_array=True, reset=False)
        refuse_reordered(self, table, "feature")
        return observed.divided(self.scale_)

    def _regress(self, data: Observed) -> tuple[FloatArray, FloatArray]:
        """Most probable factors and intercepts of unseen rows, at the scale of the data."""
        dtype = self.feature_factors_.dtype
        root = dtype.type(np.sqrt(self.scale_))
        terms = InterceptTerms.parse(self.intercept)
        # A row that nothing ties to others has the marginal variance of the graph.
        half = Half(
            data,
            floored(self.sample_penalty, data) / self.sample_prior_variance_,
            scipy.sparse.eye_array(data.shape[0], format="csr"),
            floored(self.intercept_penalty, data) if terms.rows else None,
        )
        design = (self.feature_factors_ / root).astype(data.dtype)
        offsets = ((self.feature_intercepts_ + dtype.type(self.intercept_)) / dtype.type(self.scale_)).astype(
            data.dtype
        )
        start = np.zeros((data.shape[0], self.rank_), data.dtype)
        factors, intercepts = select_update("auto", data).update.prepare(half)(start, design, offsets)
        return factors * data.dtype.type(root), intercepts * data.dtype.type(self.scale_)

    def _entries(self, rows: Any, columns: Any) -> tuple[Array, Array]:
        i = _positions(rows, "rows", len(self.sample_factors_))
        j = _positions(columns, "columns", len(self.feature_factors_))
        try:
            i, j = np.broadcast_arrays(i, j)
        except ValueError:
            raise InvalidParameterError(
                f"rows of shape {i.shape} and columns of shape {j.shape} do not go together. Pass as many of each, one "
                "of the two as a single number, or rows[:, None] for all pairs."
            ) from None
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


def floored(penalty: float, data: Observed) -> float:
    """A penalty that keeps the systems of rows with few entries solvable: zero counts as the smallest of these."""
    return max(float(penalty), 1e-6 if data.dtype == np.float64 else 1e-4)


def _positions(values: Any, name: str, length: int) -> Array:
    refuse_masked(values, name, "Leave out the positions that are not wanted.")
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

"""Generalised principal components: the paper's post-processing, and a decomposition of its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd, svd_flip
from sklearn.utils.validation import check_is_fitted, validate_data

from lgmd._typing import FloatArray
from lgmd._validation import check_integer, check_seed
from lgmd.estimators.factorization import Factorization, most_components
from lgmd.estimators.labels import refuse_reordered, remember_labels
from lgmd.estimators.notebook import NotebookDisplay, size_with_names
from lgmd.estimators.persistence import SavedAsFile, refuse_mismatch
from lgmd.exceptions import InvalidDataError, InvalidGraphError, InvalidParameterError
from lgmd.factors import generalized_components
from lgmd.graphs import FixedGraph, NoGraph, Side
from lgmd.linalg.cholesky import PrecisionFactor, TooEntangledError, factorize
from lgmd.observed import DenseObserved, as_observed

__all__ = ["GPCA"]

# Smaller than this on its short side, a table is decomposed exactly.
_EXACT_LIMIT = 1000


class GPCA(SavedAsFile, NotebookDisplay, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Generalised principal component analysis in the metrics of two graphs.

    Finds the best approximation :math:`U D V^T` of a complete table in the norm :math:`\|Z\|^2 = \mathrm{tr}(A^{-1} Z
    B^{-1} Z^T)` with :math:`U^T A^{-1} U = I` and :math:`V^T B^{-1} V = I`. With no graphs this is the truncated
    singular value decomposition of the centred table, that is PCA. For a model fitted on a table with gaps use
    :meth:`from_model`.

    Parameters
    ----------
    n_components : int, default=20
    sample_graph, feature_graph : matrix of shape (n, n) and (p, p), optional
        A and B: precisions, Laplacians or adjacencies; without them the identity.
    center : bool, default=True
        Whether to subtract the mean of each column first.
    random_state : int, RandomState or None, default=None
        For the randomised decomposition of large tables.

    Attributes
    ----------
    components_ : ndarray of shape (k, p)
        The rows of :math:`V^T`.
    singular_values_ : ndarray of shape (k,)
        The diagonal of D.
    sample_components_ : ndarray of shape (n, k)
        U.
    mean_ : ndarray of shape (p,)
    weights_ : ndarray of shape (p, k)
        :math:`B^{-1} V`: what rows are multiplied with to get their scores.
    """

    def __init__(
        self,
        n_components: int = 20,
        sample_graph: Any = None,
        feature_graph: Any = None,
        center: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.sample_graph = sample_graph
        self.feature_graph = feature_graph
        self.center = center
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decompose a complete table: the singular values of ``C_A^-1 Y C_B^-T``, where ``A = C_A C_A'``.

        Cost: ``O(n p k)`` beside the triangular solves with the graphs.
        """
        _refuse_sparse(X)
        k = check_integer(self.n_components, "n_components", minimum=1)
        observed = as_observed(X)
        if not isinstance(observed, DenseObserved):
            n_entries = observed.shape[0] * observed.shape[1]
            raise InvalidDataError(
                f"GPCA needs a complete table, but {n_entries - observed.n_observed:,} of {n_entries:,} entries "
                "are NaN or missing. Fit LGMD, which takes gaps, and pass it to GPCA.from_model."
            )
        n, p = observed.shape
        k = most_components(k, observed)
        check_seed(self.random_state)
        row_factor = _factor(self.sample_graph, observed, Side("sample_graph", "rows"))
        column_factor = _factor(self.feature_graph, observed.T, Side("feature_graph", "columns"))
        mean = observed.values.mean(axis=0) if self.center else np.zeros(p, observed.dtype)
        centred = observed.values - mean
        whitened = column_factor.whiten(row_factor.whiten(centred).T).T
        if min(n, p) <= _EXACT_LIMIT:
            left, values, right = scipy.linalg.svd(whitened, full_matrices=False)
            left, right = svd_flip(left, right)
        else:
            left, values, right = randomized_svd(whitened, k, random_state=check_random_state(self.random_state))
        U, V = row_factor.color(left[:, :k]), column_factor.color(right[:k].T)
        validate_data(self, X, skip_check_array=True, reset=True)
        remember_labels(self, X, "feature", getattr(self, "feature_names_in_", None))
        self._keep(U, values[:k], V, mean, column_factor, observed.dtype)
        return self

    @classmethod
    def from_model(cls, model: Any) -> GPCA:
        """The components of a fitted model's low-rank part, in the metrics of its two graphs.

        The paper's post-processing: ``U D`` and ``V`` are the identified factors. In closed form, with gaps or
        without; the cost is ``O((n + p) k^2)`` beside the triangular solves with the graphs.
        """
        if not isinstance(model, Factorization):
            found = type(model).__name__
            raise InvalidParameterError(
                f"model must be a fitted LGMD, LGMDPlus, PMF or DGRMD, but is a {found}. Of an imputer pass estimator_."
            )
        check_is_fitted(model)
        row_factor, column_factor = _entangled(model.sample_graph_), _entangled(model.feature_graph_)
        U, values, V = generalized_components(model.sample_factors_, model.feature_factors_, row_factor, column_factor)
        result = cls(len(values), model.sample_graph_, model.feature_graph_)
        result.n_features_in_ = len(V)
        for name in ("feature_names_in_", "feature_labels_"):
            if hasattr(model, name):
                setattr(result, name, getattr(model, name))
        mean = model.feature_intercepts_ + model.intercept_
        result._keep(U, values, V, mean, column_factor, model.sample_factors_.dtype)
        return result

    def transform(self, X: Any) -> FloatArray:
        r"""Scores of rows: the coordinates :math:`Y B^{-1} V` on the components, which for the fitted rows are ``U D``.

        Parameters
        ----------
        X : array-like of shape (m, p)
            Complete rows.
        """
        check_is_fitted(self)
        _refuse_sparse(X)
        observed = as_observed(X, allow_empty_rows=True, allow_empty_columns=True, min_rows=1, min_columns=1)
        validate_data(self, X, skip_check_array=True, reset=False)
        refuse_reordered(self, X, "feature")
        if not isinstance(observed, DenseObserved):
            raise InvalidDataError(
                "GPCA needs complete rows, but some entries are NaN. Use LGMD.transform for rows with gaps."
            )
        return np.asarray((observed.values - self.mean_) @ self.weights_.astype(observed.dtype))

    def inverse_transform(self, X: Any) -> FloatArray:
        """The rows that scores (m, k) stand for."""
        check_is_fitted(self)
        scores = np.asarray(X, dtype=self.components_.dtype)
        if scores.ndim != 2 or scores.shape[1] != len(self.components_):
            raise InvalidDataError(
                f"Scores of shape {scores.shape} do not fit the model: pass an array of shape "
                f"(m, {len(self.components_)})."
            )
        return np.asarray(scores @ self.components_ + self.mean_)

    def reconstruct(self) -> FloatArray:
        """The approximation ``U D V'`` of the fitted table, with the means put back."""
        check_is_fitted(self)
        return self.inverse_transform(self.sample_components_ * self.singular_values_)

    def _keep(
        self,
        U: FloatArray,
        values: FloatArray,
        V: FloatArray,
        mean: FloatArray,
        column_factor: PrecisionFactor,
        dtype: np.dtype[Any],
    ) -> None:
        self.sample_components_ = np.asarray(U, dtype=dtype)
        self.singular_values_ = np.asarray(values, dtype=dtype)
        self.components_ = np.asarray(V.T, dtype=dtype)
        self.mean_ = np.asarray(mean, dtype=dtype)
        self.weights_ = np.asarray(column_factor.solve(np.asarray(V, dtype=np.float64)), dtype=dtype)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def _summary(self) -> dict[str, str]:
        if not self.__sklearn_is_fitted__():
            return {}
        values = self.singular_values_
        return {
            "rows": f"{len(self.sample_components_):,}",
            "columns": size_with_names(self.components_.shape[1], getattr(self, "feature_names_in_", None)),
            "components": f"{len(values):,}, singular values from {values.max():.4g} to {values.min():.4g}",
        }

    def _check_loaded(self) -> None:
        k, p = self.components_.shape
        found = {
            "sample_components_": (self.sample_components_.shape[1:], (k,)),
            "singular_values_": (self.singular_values_.shape, (k,)),
            "mean_": (self.mean_.shape, (p,)),
            "weights_": (self.weights_.shape, (p, k)),
        }
        refuse_mismatch(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _refuse_sparse(table: Any) -> None:
    if scipy.sparse.issparse(table):
        raise TypeError(
            "Sparse input is not supported by GPCA, which needs a complete table: pass table.toarray() if what is not "
            "stored is zero."
        )


def _factor(precision: Any, data: DenseObserved, side: Side) -> PrecisionFactor:
    learner = NoGraph() if precision is None else FixedGraph(precision)
    return _entangled(learner.start(data, side).precision)


def _entangled(precision: Any) -> PrecisionFactor:
    try:
        return factorize(precision)
    except TooEntangledError as error:
        raise InvalidGraphError(f"GPCA needs to factor the graphs, but {error}. Use a sparser graph.") from None

"""Filling gaps, and nothing else."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from lgmd.estimators.factorization import Factorization
from lgmd.estimators.models import LGMD
from lgmd.estimators.notebook import NotebookDisplay
from lgmd.estimators.persistence import SavedAsFile, refuse_missing
from lgmd.exceptions import InvalidParameterError
from lgmd.observed import as_observed

__all__ = ["LGMDImputer"]


class LGMDImputer(SavedAsFile, NotebookDisplay, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill the gaps of a table with what a decomposition says; observed entries stay as they are.

    Parameters
    ----------
    estimator : Factorization, optional
        What to fit: :class:`LGMD`, :class:`PMF` or :class:`DGRMD`; by default ``LGMD`` with rank 20, or the largest
        that the table allows. Pass one with ``allow_empty=True`` for tables with empty rows or columns.

    Attributes
    ----------
    estimator_ : Factorization
        The fitted decomposition.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Column names, where the table had them.
    """

    def __init__(self, estimator: Factorization | None = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None, **fit_options: Any) -> Self:
        """Fit the decomposition; options are those of :meth:`LGMD.fit`."""
        if self.estimator is None:
            estimator: Factorization = LGMD()
        elif isinstance(self.estimator, Factorization):
            estimator = clone(self.estimator)
        else:
            raise InvalidParameterError(
                f"estimator must be a factorisation such as LGMD() or PMF(), but is {self.estimator!r}."
            )
        self.estimator_ = estimator.fit(X, **fit_options)
        validate_data(self, X, skip_check_array=True, reset=True)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, return_std: bool = False, **fit_options: Any) -> Any:
        """Fit, and fill the same table: its rows then profit from their graph.

        Parameters
        ----------
        X : table of shape (n, p)
        y : None
            Ignored.
        return_std : bool, default=False
            Whether to return the uncertainty of the filled entries too; it is zero where an entry was observed.
        **fit_options
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n, p), or two of them
        """
        if return_std and getattr(self.estimator, "inference", "variational") == "map":
            raise InvalidParameterError(
                'return_std=True needs a posterior, but the estimator has inference="map". Use inference="variational".'
            )
        self.fit(X, y, **fit_options)
        return self._fill(X, self.estimator_.reconstruct(return_std=return_std))

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Fill the gaps of unseen rows.

        Parameters
        ----------
        X : table of shape (m, p)
        return_std : bool, default=False
            As in :meth:`fit_transform`.

        Returns
        -------
        ndarray of shape (m, p), or two of them
        """
        check_is_fitted(self)
        estimate = self.estimator_.reconstruct(X, return_std=return_std)
        validate_data(self, X, skip_check_array=True, reset=False)
        return self._fill(X, estimate)

    def _fill(self, table: Any, estimate: Any) -> Any:
        observed = as_observed(
            table,
            allow_empty_rows=True,
            allow_empty_columns=True,
            allow_all_missing=True,
            min_rows=1,
            min_columns=1,
        )
        if not isinstance(estimate, tuple):
            return np.asarray(observed.fill(estimate))
        filled, std = estimate
        return np.asarray(observed.fill(filled)), np.asarray(np.abs(observed.divided(np.inf).fill(std)))

    def _summary(self) -> dict[str, str]:
        return self.estimator_._summary() if hasattr(self, "estimator_") else {}

    def _check_loaded(self) -> None:
        refuse_missing(self, ("estimator_", "n_features_in_"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

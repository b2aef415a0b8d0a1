"""Any fitted model, read the same way: LGMD, LGMDPlus, PMF, DGRMD, GPCA and LGMDImputer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from lgmd._typing import FloatArray, SparseGraph
from lgmd.estimators import GPCA, LGMDImputer
from lgmd.estimators.factorization import Factorization
from lgmd.exceptions import InvalidParameterError
from lgmd.factors import TablePosterior
from lgmd.graphs import FixedGraph, NoGraph, Side
from lgmd.observed import as_observed
from lgmd.report.names import SideNames
from lgmd.solver import History

__all__ = ["Decomposition", "decompose"]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """
    ``Y = overall + row_means + column_means + X W' + E`` with two graphs, whichever model it came from.

    Attributes
    ----------
    estimator : Factorization or GPCA
        The model itself; of an imputer the one it fitted.
    X, W : ndarray of shape (n, k) and (p, k)
    overall : float
    row_means, column_means : ndarray of shape (n,) and (p,)
    row_graph, column_graph : csr_array of shape (n, n) and (p, p)
    rows, columns : SideNames
    posterior : TablePosterior or None
        At unit scale; None for models without error bars.
    scale : float
    history : History
        Empty for a model that is not fitted by iterations.
    """

    estimator: Any
    X: FloatArray
    W: FloatArray
    overall: float
    row_means: FloatArray
    column_means: FloatArray
    row_graph: SparseGraph
    column_graph: SparseGraph
    rows: SideNames
    columns: SideNames
    posterior: TablePosterior | None
    scale: float
    history: History

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return len(self.X), len(self.W)

    @property
    def sizes(self) -> FloatArray:
        """Norm of each factor's part of the table, (k,)."""
        return np.asarray(np.linalg.norm(self.X, axis=0) * np.linalg.norm(self.W, axis=0), dtype=np.float64)


def decompose(model: Any, row_names: Any = None, column_names: Any = None) -> Decomposition:
    """
    Read a fitted model.

    Parameters
    ----------
    model : Factorization, GPCA or LGMDImputer
    row_names, column_names : sequence, optional
        Used where the model has none of its own.
    """
    estimator = getattr(model, "estimator_", None) if isinstance(model, LGMDImputer) else model
    if isinstance(model, LGMDImputer) and estimator is None:
        raise InvalidParameterError("The LGMDImputer is not fitted yet. Call fit first.")
    if not isinstance(estimator, Factorization | GPCA):
        raise InvalidParameterError(
            f"A report needs a fitted model such as LGMD or LGMDImputer, but this is a {type(model).__name__}."
        )
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise InvalidParameterError(f"The {type(estimator).__name__} is not fitted yet. Call fit first.") from None
    row_names = getattr(estimator, "sample_names_in_", row_names)
    column_names = getattr(estimator, "feature_names_in_", column_names)
    if isinstance(estimator, GPCA):
        return _from_components(estimator, row_names, column_names)
    return Decomposition(
        estimator=estimator,
        X=estimator.sample_factors_,
        W=estimator.feature_factors_,
        overall=float(estimator.intercept_),
        row_means=estimator.sample_intercepts_,
        column_means=estimator.feature_intercepts_,
        row_graph=estimator.sample_graph_,
        column_graph=estimator.feature_graph_,
        rows=SideNames.of(row_names, len(estimator.sample_factors_), "row"),
        columns=SideNames.of(column_names, len(estimator.feature_factors_), "column"),
        posterior=getattr(estimator, "posterior_", None),
        scale=float(estimator.scale_),
        history=estimator.history_,
    )


def _from_components(model: GPCA, row_names: Any, column_names: Any) -> Decomposition:
    roots = np.sqrt(model.singular_values_)
    n, p = len(model.sample_components_), model.components_.shape[1]
    return Decomposition(
        estimator=model,
        X=model.sample_components_ * roots,
        W=model.components_.T * roots,
        overall=0.0,
        row_means=np.zeros(n),
        column_means=model.mean_,
        row_graph=_precision(model.sample_graph, n, Side("sample_graph", "rows")),
        column_graph=_precision(model.feature_graph, p, Side("feature_graph", "columns")),
        rows=SideNames.of(row_names, n, "row"),
        columns=SideNames.of(column_names, p, "column"),
        posterior=None,
        scale=1.0,
        history=History(),
    )


def _precision(graph: Any, n: int, side: Side) -> SparseGraph:
    """The graph of a GPCA, which may have been given as an adjacency or a Laplacian."""
    learner = NoGraph() if graph is None else FixedGraph(graph)
    # Both ask a table for nothing but its number of rows.
    return scipy.sparse.csr_array(learner.start(as_observed(np.zeros((n, 2))), side).precision)

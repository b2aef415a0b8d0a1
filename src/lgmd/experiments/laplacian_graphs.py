"""Graphs that the laplacian experiment looks at: of a table, of factors along a run, and as matrices to be drawn."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray, SparseGraph
from lgmd.datasets import MatrixNormalData
from lgmd.estimators import LGMD, LGMDPlus
from lgmd.experiments.methods import fit
from lgmd.factors import Intercepts, InterceptTerms, select_update
from lgmd.graphs import FactorMoments, GraphLearner, KNNGraph
from lgmd.linalg.ordering import reverse_cuthill_mckee
from lgmd.observed import as_observed
from lgmd.solver import MapInference, MapState, Progress, Schedule, solve
from lgmd.solver.problem import SAMPLES

__all__ = [
    "correlation_edges",
    "edges_along_a_run",
    "edges_of",
    "factor_correlations",
    "learned_edges",
    "nearest_edges",
    "precisions",
    "row_correlations",
    "threshold_for",
]

# Fewer common columns than this say nothing about two rows.
_FEWEST_COMMON = 3


def edges_of(precision: SparseGraph) -> Array:
    """Which pairs i < j are joined, (n, n) booleans."""
    return np.asarray(np.triu(precision.toarray() != 0, 1))


def row_correlations(table: FloatArray) -> FloatArray:
    """Pearson correlation of each two rows over the columns in which both are observed, (n, n).

    Zero where there are fewer than three such columns, or a row does not vary over them.
    """
    seen = (~np.isnan(table)).astype(float)
    values = np.where(seen > 0, table, 0.0)
    counts = seen @ seen.T
    # Sums of row i over the columns that it shares with row j.
    sums, squares, products = values @ seen.T, values**2 @ seen.T, values @ values.T
    shared = np.maximum(counts, 1.0)
    covariances = products - sums * sums.T / shared
    variances = np.maximum(squares - sums**2 / shared, 0.0)
    scale = np.sqrt(variances * variances.T)
    known = (counts >= _FEWEST_COMMON) & (scale > 1e-12 * np.maximum(np.sqrt(squares * squares.T), 1e-300))
    correlations = np.divide(covariances, scale, out=np.zeros_like(scale), where=known)
    return np.asarray(np.clip(correlations, -1.0, 1.0))


def threshold_for(correlations: FloatArray, n_edges: int) -> float:
    """The correlation that so many pairs exceed."""
    pairs = np.sort(correlations[np.triu_indices(len(correlations), 1)])[::-1]
    return float(pairs[min(n_edges, len(pairs) - 1)])


def correlation_edges(table: FloatArray, threshold: float) -> Array:
    """Rows of a table that correlate by more than a threshold."""
    return np.asarray(np.triu(row_correlations(table) > threshold, 1))


def nearest_edges(table: FloatArray, n_neighbors: int) -> Array:
    """The graph of dGRMD: each row joined to its nearest ones."""
    return edges_of(KNNGraph(n_neighbors).start(as_observed(table), SAMPLES).precision)


def learned_edges(table: FloatArray, n_components: int, n_neighbors: int, seed: int) -> tuple[Array, Array]:
    """The graph over rows that LGMD learns with the factors, and dGRMD's graph of the table that LGMD completes."""
    model = fit(LGMD(n_components, random_state=seed), table)
    return edges_of(model.sample_graph_), nearest_edges(model.reconstruct(), n_neighbors)


def edges_along_a_run(
    table: FloatArray,
    learner: GraphLearner,
    penalty: float,
    n_components: int,
    threshold: float,
    n_iterations: int,
    seed: int,
) -> list[Array]:
    """Pairs of rows of X whose correlation exceeds a threshold: at a random start, and after each iteration of MAP.

    Parameters
    ----------
    table : ndarray of shape (n, p)
    learner : GraphLearner
        Of the graphs of both sides; :class:`~lgmd.graphs.NoGraph` for PMF.
    penalty : float
        Of both sides, for the table at unit scale.
    n_components : int
    threshold : float
    n_iterations : int
    seed : int
        Of the random start.

    Returns
    -------
    list of ndarray of bool, (n, n)
        ``n_iterations + 1`` of them.
    """
    data = as_observed(table / np.nanstd(table))
    n, p = data.shape
    rng = np.random.default_rng(seed)
    means = InterceptTerms.parse("none")
    update = select_update("auto", data).update
    problem = MapInference(data, n_components, penalty, penalty, means, 1.0, learner, learner, update)
    first = problem.start(Intercepts.zero(data.shape, data.dtype), seed)
    X, W = rng.standard_normal((n, n_components)), rng.standard_normal((p, n_components))
    found = [_similar_rows(X, threshold)]

    def look(progress: Progress) -> None:
        found.append(_similar_rows(progress.state.X, threshold))

    start = MapState(X, W, first.intercepts, first.sample_graph, first.feature_graph)
    solve(problem, start, Schedule(max_iter=n_iterations, tol=0.0), callback=look)
    # A run that cannot improve any more ends early, and would stay where it is.
    return found + found[-1:] * (n_iterations + 1 - len(found))


def factor_correlations(X: FloatArray) -> FloatArray:
    """Correlations of the rows of a factor, whose columns have mean zero, (n, n)."""
    vectors = FactorMoments(X).correlation_vectors()
    return np.asarray(vectors @ vectors.T)


def _similar_rows(X: FloatArray, threshold: float) -> Array:
    return np.asarray(np.triu(factor_correlations(X) > threshold, 1))


def precisions(data: MatrixNormalData, n_components: int, n_neighbors: int, seed: int) -> dict[str, SparseGraph]:
    """Matrices over the rows of one table, in an order that follows the true graph.

    Laplacians are shown without the ridge that makes precisions of them; all have a diagonal of one on average.
    """
    glasso = LGMD(n_components, sample_graph="glasso", feature_graph="glasso", random_state=seed)
    nearest = KNNGraph(n_neighbors).start(as_observed(data.observed), SAMPLES).precision
    found = {
        "kNN Laplacian": _without_ridge(nearest),
        "LGMD+ Laplacian": _without_ridge(fit(LGMDPlus(n_components, random_state=seed), data.observed).sample_graph_),
        "graphical lasso precision": fit(glasso, data.observed).sample_graph_,
        "LGMD precision": fit(LGMD(n_components, random_state=seed), data.observed).sample_graph_,
        "true precision": data.sample_precision,
    }
    order = reverse_cuthill_mckee(data.sample_precision)
    return {
        name: scipy.sparse.csr_array(graph[order][:, order] / graph.diagonal().mean()) for name, graph in found.items()
    }


def _without_ridge(precision: SparseGraph) -> SparseGraph:
    """The Laplacian of a precision of the form ``L + c I``."""
    return scipy.sparse.csr_array(precision - scipy.sparse.diags_array(np.asarray(precision.sum(axis=1)).ravel()))

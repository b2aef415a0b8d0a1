"""From a table of samples to clusters: the tables, the factors seen through their graph, and k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.cluster import KMeans

from lgmd._typing import Array, FloatArray, IntArray, SparseGraph
from lgmd.datasets import LabelledData
from lgmd.estimators import DGRMD, LGMD, PMF, LGMDPlus
from lgmd.estimators.factorization import Factorization
from lgmd.graphs import EvidenceGraph, LaplacianGraph

__all__ = [
    "FACTOR_METHODS",
    "along_graph",
    "clusters",
    "draw",
    "factor_method",
    "scores",
    "tf_idf",
    "unit_rows",
]

FACTOR_METHODS = ("PMF", "dGRMD", "LGMD", "LGMD+")


def draw(data: LabelledData, n_classes: int, n_samples: int, seed: int) -> tuple[Any, IntArray]:
    """Values and labels of random samples of random classes; all there are where a draw has fewer samples."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.unique(data.labels), n_classes, replace=False)
    members: IntArray = np.flatnonzero(np.isin(data.labels, chosen))
    rows = np.sort(rng.choice(members, min(n_samples, len(members)), replace=False))
    return data.values[rows], data.labels[rows]


def unit_rows(points: FloatArray) -> FloatArray:
    """Rows at unit length; rows that are zero stay zero."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0))


def tf_idf(counts: SparseGraph, n_terms: int) -> FloatArray:
    """Counts of terms weighted by how rare a term is, dense, for the terms that carry most weight.

    A term in d of n documents has the weight ``ln((1 + n) / (1 + d)) + 1``, as in scikit-learn. Documents are brought
    to unit length before the terms are chosen, by their sums of squares, and after it.
    """
    n = counts.shape[0]
    present = np.bincount(counts.indices, minlength=counts.shape[1])
    weighted = counts @ scipy.sparse.diags_array(np.log((1 + n) / (1 + present)) + 1)
    lengths = np.sqrt(np.asarray(weighted.power(2).sum(axis=1)).ravel())
    weighted = scipy.sparse.csc_array(scipy.sparse.diags_array(1 / np.maximum(lengths, 1e-300)) @ weighted)
    weights = np.asarray(weighted.power(2).sum(axis=0)).ravel()
    kept: IntArray = np.sort(np.argsort(-weights, kind="stable")[:n_terms])
    return unit_rows(weighted[:, kept].toarray())


def factor_method(name: str, n_components: int, max_iter: int) -> Factorization:
    """A method before its fit; columns have a mean, and the graphs that are learned are those of the samples."""
    shared: dict[str, Any] = {"intercept": "features", "max_iter": max_iter, "random_state": 0}
    # Tables of this size always have a prior variance a column. Documents are filed by topic, so that the order of the
    # samples would say which belong together.
    learned: dict[str, Any] = {"feature_graph": "none", "prior": "columns", "graph_updates": 1, **shared}
    match name:
        case "PMF":
            return PMF(n_components, **shared)
        case "dGRMD":
            return DGRMD(n_components, **shared)
        case "LGMD":
            return LGMD(n_components, sample_graph=EvidenceGraph(order=False), **learned)
        case "LGMD+":
            return LGMDPlus(n_components, sample_graph=LaplacianGraph(order=False), **learned)
    raise ValueError(f"no method is called {name!r}")


def scores(model: Factorization) -> FloatArray:
    """Row factors for column factors that are orthonormal.

    Rows of these are as far apart as rows of the fitted table, however the model shares the scale between its factors.
    """
    _, triangle = np.linalg.qr(model.feature_factors_.astype(np.float64))
    return np.asarray(model.sample_factors_ @ triangle.T, dtype=np.float64)


def along_graph(points: FloatArray, precision: SparseGraph, smoothing: float) -> FloatArray:
    r"""Points drawn together along a graph: :math:`(I + s A)^{-1} Z`, with A at unit scale.

    They minimise :math:`\|Z' - Z\|^2 + s\, \mathrm{tr}\, Z'^T A Z'`. Without a graph, A = I, all points shrink alike.
    """
    scale = smoothing / float(precision.diagonal().mean())
    system: Array = scale * precision.toarray()
    system[np.diag_indices_from(system)] += 1.0
    return np.asarray(scipy.linalg.solve(system, points, assume_a="pos"))


def clusters(points: FloatArray, n_clusters: int, n_starts: int, seed: int) -> IntArray:
    """The best of some runs of k-means."""
    found: IntArray = KMeans(n_clusters, n_init=n_starts, random_state=seed).fit(points).labels_
    return found

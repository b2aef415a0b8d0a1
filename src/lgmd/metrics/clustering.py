"""Clusters against classes: how well a grouping found without labels agrees with the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from lgmd._typing import Array, IntArray
from lgmd.exceptions import InvalidDataError

__all__ = ["clustering_accuracy", "normalized_mutual_information"]


def clustering_accuracy(labels: ArrayLike, clusters: ArrayLike) -> float:
    r"""
    Share of samples whose cluster stands for their class, under the best one-to-one match of clusters and classes.

    .. math:: \max_\pi \frac{1}{n} \sum_i \mathbf{1}\{\pi(c_i) = y_i\}

    where :math:`\pi` gives each cluster a class of its own. With more clusters than classes some clusters have none,
    and their samples count as wrong; so do samples of classes that no cluster was left for. The names of classes and
    clusters do not matter. The match is an assignment problem, solved exactly in O(q^3) for q classes or clusters.

    Parameters
    ----------
    labels : array of shape (n,)
        The class of each sample: integers, strings or booleans.
    clusters : array of shape (n,)
        The cluster of each sample.

    Returns
    -------
    float
        Between 0 and 1; 1 if and only if the two groupings are the same.

    Raises
    ------
    InvalidDataError
        If the arrays are empty, not of one dimension, of different length, or contain NaN, None or masked entries.

    Examples
    --------
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    counts = _contingency(labels, clusters)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def normalized_mutual_information(labels: ArrayLike, clusters: ArrayLike) -> float:
    r"""
    Mutual information of two groupings, as a share of the mean of their entropies.

    .. math:: \frac{2\, I(y; c)}{H(y) + H(c)}

    It equals ``sklearn.metrics.normalized_mutual_info_score`` with its default, the arithmetic mean.

    Parameters
    ----------
    labels : array of shape (n,)
        The class of each sample: integers, strings or booleans.
    clusters : array of shape (n,)
        The cluster of each sample.

    Returns
    -------
    float
        Between 0 and 1: 0 for independent groupings, 1 for equal ones. Two groupings with one group each are equal.

    Raises
    ------
    InvalidDataError
        If the arrays are empty, not of one dimension, of different length, or contain NaN, None or masked entries.

    Examples
    --------
    >>> normalized_mutual_information([0, 0, 1, 1], [5, 5, 3, 3])
    1.0
    """
    joint = _contingency(labels, clusters) / np.size(labels)
    by_label, by_cluster = joint.sum(axis=1), joint.sum(axis=0)
    total = _entropy(by_label) + _entropy(by_cluster)
    if total == 0.0:
        return 1.0
    shared = total - _entropy(joint.ravel())
    return float(np.clip(2.0 * shared / total, 0.0, 1.0))


def _contingency(labels: ArrayLike, clusters: ArrayLike) -> IntArray:
    """Count the samples of each class in each cluster."""
    classes, groups = _as_groups(labels, "labels"), _as_groups(clusters, "clusters")
    if len(classes) != len(groups):
        raise InvalidDataError(
            f"labels is of length {len(classes)} but clusters is of length {len(groups)}. Pass one of each a sample."
        )
    names, rows = np.unique(classes, return_inverse=True)
    found, columns = np.unique(groups, return_inverse=True)
    counts = np.bincount(rows * len(found) + columns, minlength=len(names) * len(found))
    return counts.reshape(len(names), len(found))


def _as_groups(values: ArrayLike, name: str) -> Array:
    """A number or a string for each group; what is equal in Python is one."""
    import pandas as pd

    groups = np.asarray(values)
    if groups.ndim != 1 or not groups.size:
        shape = " x ".join(str(length) for length in groups.shape) or "a single value"
        raise InvalidDataError(f"{name} is {shape}. Pass an array of one dimension with at least one sample.")
    if groups.dtype.kind not in "biufUSO":
        raise InvalidDataError(f"{name} holds {groups.dtype} values. Pass integers, strings or booleans.")
    # In a list with strings numpy makes strings of numbers, None and NaN, so that the items themselves are looked at.
    items = np.asarray(values, dtype=object)
    n_missing = np.count_nonzero(pd.isna(items) | np.ma.getmask(values))
    if n_missing:
        raise InvalidDataError(
            f"{n_missing:,} of {groups.size:,} entries of {name} are NaN or None, or masked. Leave these samples out."
        )
    if groups.dtype != object and hasattr(values, "dtype"):
        return groups
    numbers: dict[Any, int] = {}
    try:
        return np.array([numbers.setdefault(item, len(numbers)) for item in items.tolist()])
    except TypeError as error:
        raise InvalidDataError(f"{name} holds more than plain values ({error}). Pass integers or strings.") from error


def _entropy(shares: Array) -> float:
    positive = shares[shares > 0]
    return float(abs(positive @ np.log(positive)))

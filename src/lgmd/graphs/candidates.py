"""Which edges may exist: days next to each other, stations within 100 km, a network that is known.

A learner with ``candidates`` looks at these pairs of nodes alone, and decides which of them are real and how strong.
Its cost grows with their number, not with ``n^2``. Candidates are a sparse or dense n x n adjacency, or a function
that makes one from the number of nodes; the functions here make such adjacencies. An entry that is not zero allows the
edge, in whichever direction it is written; how large it is does not matter, and neither does the diagonal.

>>> from lgmd.graphs import candidates
>>> days = candidates.chain(["2024-05-03", "2024-05-01", "2024-05-02"])
>>> candidates.candidate_pairs(days, 3)
(array([0, 1]), array([2, 2]))
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse
from scipy.spatial import cKDTree

from lgmd._typing import Array, FloatArray, IntArray, SparseGraph
from lgmd._validation import NO_EDGE, check_integer, precision_of, refuse_masked, refuse_networkx
from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.graphs.base import Side
from lgmd.graphs.labels import refuse_other_order
from lgmd.graphs.laplacians import adjacency_of
from lgmd.graphs.parameters import check_positive
from lgmd.linalg.threads import available_threads

__all__ = ["candidate_pairs", "chain", "check_candidates", "nearest", "union", "within"]

# Mean radius, in kilometres.
_EARTH = 6371.0088

# More pairs within reach than this are no sparse graph any more: a gigabyte.
_MOST_PAIRS = 50_000_000

_EXPECTED = "candidates for edges between n nodes are an n x n matrix of real numbers, zero where there may be no edge."


def candidate_pairs(candidates: Any, n: int, name: str = "candidates") -> tuple[IntArray, IntArray] | None:
    """The pairs of nodes that candidates allow.

    Parameters
    ----------
    candidates : None, sparse matrix or array-like of shape (n, n), or callable
        None allows every pair. A function is called with ``n`` and returns a matrix. An entry that is not zero, in
        either direction, allows the edge; the diagonal is ignored.
    n : int
        Number of nodes.
    name : str
        What messages call it.

    Returns
    -------
    rows, columns : ndarray of int64, shape (m,), or None
        Each pair once, ``rows < columns``, sorted by row and then by column. None for all pairs. Cost and memory are
        those of the entries given.
    """
    if candidates is None:
        return None
    pattern, name = _resolve(candidates, n, name)
    if pattern.shape[0] != n:
        raise InvalidGraphError(
            f"{name} is {_times(pattern.shape)}, but there are {n} nodes. Candidates for {n} nodes are {n} x {n}."
        )
    return _upper(pattern)


def check_candidates(
    candidates: Any, n: int, side: Side, names: Array | None = None
) -> tuple[IntArray, IntArray] | None:
    """As :func:`candidate_pairs`, with errors that name the side of the table whose ``n`` nodes they do not fit.

    Where they are a DataFrame with the names of the nodes, these are to be in the same order.
    """
    if candidates is None:
        return None
    pattern, name = _resolve(candidates, n, f"candidates of {side.parameter}", names, side.nodes)
    if pattern.shape[0] != n:
        raise InvalidGraphError(
            f"{name} is {_times(pattern.shape)} but the data has {n} {side.nodes}. Candidates for edges between "
            f"{side.nodes} must be {n} x {n}."
        )
    return _upper(pattern)


def chain(order: Any, lag: int = 1) -> SparseGraph:
    """Nodes next to each other in an order: days, years, positions along a line.

    Parameters
    ----------
    order : int or array-like of shape (n,)
        What to sort the nodes by, a value each: dates, times, depths, ordered categories, anything that can be
        sorted; equal values stand in the order given. An integer n stands for ``range(n)``, nodes that are in order
        already.
    lag : int, default=1
        How many steps apart two nodes may be.

    Returns
    -------
    csr_array of bool, shape (n, n)
        Symmetric, at most ``2 n lag`` entries.
    """
    check_integer(lag, "lag", minimum=1)
    if not isinstance(order, bool) and isinstance(order, numbers.Integral):
        n = check_integer(order, "order", minimum=2)
        sequence: IntArray = np.arange(n)
    else:
        sequence = _sorting(order)
        n = len(sequence)
    steps = range(1, min(lag, n - 1) + 1)
    rows = np.concatenate([sequence[:-step] for step in steps])
    columns = np.concatenate([sequence[step:] for step in steps])
    return _symmetric(n, rows, columns)


def within(coordinates: Any, radius: float, *, geographic: bool = False) -> SparseGraph:
    """Nodes at most a distance apart.

    Parameters
    ----------
    coordinates : array-like of shape (n, d) or (n,)
        Where each node is; distances are Euclidean.
    radius : float
        Largest distance, in the units of the coordinates; kilometres where they are geographic.
    geographic : bool, default=False
        Whether the coordinates are latitude and longitude in degrees; distances are then along great circles.

    Returns
    -------
    csr_array of bool, shape (n, n)
        Symmetric. Found with a k-d tree: no n x n array.
    """
    check_positive(radius, "radius")
    points = _points(coordinates, geographic)
    n = len(points)
    # On a sphere nearest along the surface is nearest along the chord.
    reach = 2.0 * np.sin(min(radius / _EARTH, np.pi) / 2.0) if geographic else float(radius)
    tree = cKDTree(points)
    n_pairs = (int(tree.count_neighbors(tree, reach)) - n) // 2
    if n_pairs > _MOST_PAIRS:
        raise InvalidParameterError(
            f"radius={radius:g} joins {n_pairs:,} of the {n * (n - 1) // 2:,} pairs of {n:,} nodes, more than the "
            f"{_MOST_PAIRS:,} that fit a sparse graph. Lower radius, or use nearest()."
        )
    pairs = tree.query_pairs(reach, output_type="ndarray")
    return _symmetric(n, pairs[:, 0], pairs[:, 1])


def nearest(coordinates: Any, m: int, *, geographic: bool = False) -> SparseGraph:
    """Nodes of which one is among the ``m`` nearest of the other.

    Parameters
    ----------
    coordinates : array-like of shape (n, d) or (n,)
        Where each node is; distances are Euclidean.
    m : int
        Neighbours of each node, fewer than n. Of several that are equally far some are taken, always the same ones.
    geographic : bool, default=False
        Whether the coordinates are latitude and longitude in degrees; distances are then along great circles.

    Returns
    -------
    csr_array of bool, shape (n, n)
        Symmetric, between ``n m`` and ``2 n m`` entries. Found with a k-d tree: no n x n array.
    """
    check_integer(m, "m", minimum=1)
    points = _points(coordinates, geographic)
    n = len(points)
    if m >= n:
        raise InvalidParameterError(f"m={m} neighbours were asked for, but each of the {n} nodes has {n - 1} others.")
    _, found = cKDTree(points).query(points, k=m + 1, workers=available_threads())
    # A node is not always the first of those at its own place, and not always found among many of them.
    other = found != np.arange(n)[:, None]
    other[other.all(axis=1), -1] = False
    return _symmetric(n, np.repeat(np.arange(n), m), found[other])


def union(*graphs: Any) -> SparseGraph:
    """The pairs that any of several candidate graphs allows.

    Parameters
    ----------
    *graphs : sparse matrices or array-likes of shape (n, n)

    Returns
    -------
    csr_array of bool, shape (n, n)
        Symmetric, without a diagonal.
    """
    if not graphs:
        raise InvalidGraphError("union() needs at least one graph.")
    patterns = [_pattern(graph, f"Graph {position} of the union") for position, graph in enumerate(graphs, start=1)]
    shapes = {pattern.shape for pattern in patterns}
    if len(shapes) > 1:
        raise InvalidGraphError(
            "Graphs of a union have the same nodes, but these are "
            + ", ".join(_times(pattern.shape) for pattern in patterns)
            + "."
        )
    pairs = [_upper(pattern) for pattern in patterns]
    rows, columns = (np.concatenate([pair[end] for pair in pairs]) for end in range(2))
    return _symmetric(patterns[0].shape[0], rows, columns)


def _resolve(
    candidates: Any, n: int, name: str, names: Array | None = None, nodes: str = "nodes"
) -> tuple[SparseGraph, str]:
    """The pattern of what was given or returned, and what to call it."""
    if callable(candidates):
        name = f"What the function for {name} returned for {n} nodes"
        candidates = candidates(n)
    refuse_other_order(candidates, name, names, nodes)
    return _pattern(candidates, name), name


def _pattern(matrix: Any, name: str) -> SparseGraph:
    """A square matrix of finite real numbers as a canonical ``csr_array``; shares data where it can."""
    matrix = precision_of(matrix)
    if not scipy.sparse.issparse(matrix):
        refuse_networkx(matrix, name)
        refuse_masked(matrix, name, NO_EDGE)
        try:
            matrix = np.asarray(matrix)
        except ValueError:
            raise InvalidGraphError(f"{name} is a list of rows that differ in length; {_EXPECTED}") from None
        if matrix.ndim == 0:
            raise InvalidGraphError(f"{name} is {matrix.item()!r:.80}; {_EXPECTED}")
    if matrix.dtype.kind not in "fiub":
        raise InvalidGraphError(f"{name} holds {matrix.dtype} values; {_EXPECTED}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidGraphError(f"{name} is {_times(matrix.shape)}; {_EXPECTED}")
    pattern = scipy.sparse.csr_array(matrix)
    if not pattern.has_canonical_format:
        pattern = pattern.copy()
        pattern.sum_duplicates()
    wrong = int(np.count_nonzero(~np.isfinite(pattern.data)))
    if wrong:
        raise InvalidGraphError(
            f"{name} has {wrong:,} entries that are NaN or infinite. Write zero where there may be no edge, and one "
            "where there may be."
        )
    return pattern


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(str(length) for length in shape) if len(shape) > 1 else f"of length {shape[0]}"


def _upper(pattern: SparseGraph) -> tuple[IntArray, IntArray]:
    """The pairs ``rows < columns`` joined in either direction, each once and sorted."""
    n = pattern.shape[0]
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    columns = pattern.indices
    joined = (pattern.data != 0) & (rows != columns)
    return _ordered(n, rows[joined], columns[joined])


def _ordered(n: int, rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs with the smaller node first, each once, sorted by row and then by column."""
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    upper = scipy.sparse.csr_array((np.ones(len(low), dtype=bool), (low, high)), shape=(n, n))
    upper.sum_duplicates()
    return np.repeat(np.arange(n, dtype=np.int64), np.diff(upper.indptr)), upper.indices.astype(np.int64)


def _symmetric(n: int, rows: IntArray, columns: IntArray) -> SparseGraph:
    """The boolean adjacency with these pairs, in canonical form."""
    adjacency = adjacency_of(n, rows, columns)
    adjacency.sum_duplicates()
    return adjacency


def _sorting(order: Any) -> IntArray:
    """The nodes in the order of their values."""
    refuse_masked(order, "order", "Every node needs a place.")
    values: Array = _ranks(order)
    if values.ndim != 1:
        found = f"{order!r:.80}" if values.ndim == 0 else f"an array of shape {values.shape}"
        raise InvalidParameterError(f"order is a number of nodes or a list of values, one a node, but is {found}.")
    if len(values) < 2:
        raise InvalidParameterError(f"order has {len(values)} value(s), but a chain has at least 2 nodes.")
    _refuse_mixed(order, values)
    if values.dtype.kind == "c":
        raise InvalidParameterError("order holds complex numbers, which have no order.")
    if values.dtype == object:
        values = np.array([np.nan if value is None else value for value in values], dtype=object)
    missing = np.flatnonzero(values != values)  # NaN and NaT, of any type
    if len(missing):
        raise InvalidParameterError(
            f"order has {len(missing):,} missing value(s), the first at node {missing[0]}. Every node needs a place."
        )
    try:
        return np.argsort(values, kind="stable")
    except TypeError as error:
        raise InvalidParameterError(f"order has values that cannot be sorted: {error}.") from None


def _ranks(order: Any) -> Array:
    """The values, or of ordered categories, such as months by name, their places; NaN where there is none."""
    if getattr(getattr(order, "dtype", None), "ordered", False) is not True:
        return np.asarray(order)
    codes = np.asarray(getattr(order, "cat", order).codes)
    return np.where(codes < 0, np.nan, codes)


def _refuse_mixed(order: Any, values: Array) -> None:
    """Raise where numpy has made texts of values that were something else."""
    if isinstance(order, np.ndarray) or values.dtype.kind not in "US":
        return
    if not any(all(isinstance(value, kind) for value in order) for kind in (str, bytes)):
        found = " and ".join(sorted({type(value).__name__ for value in order}))
        raise InvalidParameterError(
            f"order mixes values of the types {found}, which have no common order. Give numbers, dates or texts alone."
        )


def _points(coordinates: Any, geographic: bool) -> FloatArray:
    """Coordinates as an array (n, d); geographic ones as points on the unit sphere."""
    refuse_masked(coordinates, "coordinates", "Every node needs a place.")
    try:
        points = np.asarray(coordinates, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"coordinates must be an array of real numbers: {error}.") from None
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] == 0:
        raise InvalidParameterError(
            f"coordinates must be an array of shape (nodes, dimensions), but its shape is {points.shape}."
        )
    if len(points) < 2:
        raise InvalidParameterError(f"coordinates has {len(points)} node(s), but neighbours need at least 2.")
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise InvalidParameterError(
            f"coordinates of {len(wrong):,} node(s) are NaN or infinite, the first at node {wrong[0]}. Every node "
            "needs a place."
        )
    return _on_the_sphere(points) if geographic else points


def _on_the_sphere(degrees: FloatArray) -> FloatArray:
    """Latitude and longitude as points on the unit sphere."""
    if degrees.shape[1] != 2:
        raise InvalidParameterError(
            f"Geographic coordinates are latitude and longitude, but these have {degrees.shape[1]} column(s)."
        )
    for position, (label, limit) in enumerate((("latitude", 90), ("longitude", 360))):
        outside = np.flatnonzero(np.abs(degrees[:, position]) > limit)
        if len(outside):
            raise InvalidParameterError(
                f"Column {position} of geographic coordinates is the {label} in degrees, at most {limit}, but that of "
                f"node {outside[0]} is {degrees[outside[0], position]:g}. Latitude comes first, longitude second."
            )
    latitude, longitude = np.radians(degrees).T
    return np.column_stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    )

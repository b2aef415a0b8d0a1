"""Where the nodes of a graph are drawn: joined nodes near each other, nodes without an edge aside.

Each connected component starts from two eigenvectors of its normalised Laplacian and is relaxed by springs along the
edges against a repulsion between all nodes; components are then put side by side, the largest first.
"""

from __future__ import annotations

import numpy as np
import scipy.fft
import scipy.sparse
import scipy.sparse.linalg
from scipy.sparse.csgraph import breadth_first_order, connected_components

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.graphs.laplacians import adjacency_of

__all__ = ["graph_layout"]

# Nodes up to which the repulsion of all pairs is summed, and up to which eigenvectors are exact.
_ALL_PAIRS = 400

# Components that forces shape, the largest ones; of thousands the others are circles.
_RELAXED = 150

# Room around a component, in distances between neighbours.
_MARGIN = 1.5

# Most room for nodes without an edge, relative to that of the others.
_ASIDE = 0.25


def graph_layout(n: int, rows: IntArray, columns: IntArray, weights: FloatArray) -> FloatArray:
    """
    Positions of the nodes.

    Parameters
    ----------
    n : int
        Number of nodes.
    rows, columns : ndarray of int, shape (m,)
        Ends of the edges, each edge once.
    weights : ndarray of shape (m,)
        How strongly an edge pulls; positive.

    Returns
    -------
    ndarray of shape (n, 2)
        In no particular unit, with the same unit along both axes.
    """
    graph = adjacency_of(n, rows, columns, weights)
    _, labels = connected_components(graph, directed=False)
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    members.sort(key=lambda nodes: (-len(nodes), nodes[0]))
    joined = [nodes for nodes in members if len(nodes) > 1]
    alone = np.sort(np.concatenate([nodes for nodes in members if len(nodes) == 1] or [np.empty(0, dtype=np.int64)]))
    positions = np.zeros((n, 2))
    width = height = 0.0
    if joined:
        ways = [_component_layout if i < _RELAXED else _circle for i in range(len(joined))]
        places = [way(graph[nodes][:, nodes]) for way, nodes in zip(ways, joined, strict=True)]
        corners, width, height = _side_by_side([np.ptp(place, axis=0) for place in places])
        for nodes, place, corner in zip(joined, places, corners, strict=True):
            positions[nodes] = place - place.min(axis=0) + corner
    if len(alone):
        positions[alone] = _rows_below(len(alone), width, height)
    return positions


def _component_layout(graph: SparseGraph) -> FloatArray:
    """A component, neighbours about one apart, its longest extent lying across."""
    n = graph.shape[0]
    if n == 2:
        return np.array([[0.0, 0.0], [1.0, 0.0]])
    # Ranks rather than values: an eigenvector may throw a few nodes far out and leave all others in one place.
    place = np.argsort(np.argsort(_spectral(graph), axis=0, kind="stable"), axis=0) / n - 0.5
    place = _relax(graph, place * (1.5 * np.sqrt(n)))
    _, _, axes = np.linalg.svd(place - place.mean(axis=0), full_matrices=False)
    return np.asarray((place - place.mean(axis=0)) @ axes.T)


def _circle(graph: SparseGraph) -> FloatArray:
    """Nodes on a circle, most of them beside a neighbour."""
    n = graph.shape[0]
    angles = np.empty(n)
    angles[breadth_first_order(graph, 0, return_predecessors=False)] = 2 * np.pi * np.arange(n) / n
    place: FloatArray = np.column_stack([np.cos(angles), np.sin(angles)]) * (0.5 / np.sin(np.pi / n))
    return place


def _spectral(graph: SparseGraph) -> FloatArray:
    """The second and third eigenvector of the normalised Laplacian, degrees divided out."""
    n = graph.shape[0]
    roots = 1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    scaled = scipy.sparse.diags_array(roots) @ graph @ scipy.sparse.diags_array(roots)
    if n <= _ALL_PAIRS:
        _, vectors = np.linalg.eigh(scaled.toarray())
        return np.asarray(roots[:, None] * vectors[:, [-2, -3]])
    start = np.random.default_rng(0).standard_normal(n)
    try:
        _, vectors = scipy.sparse.linalg.eigsh(scaled, k=3, which="LA", v0=start, tol=1e-3, maxiter=60)
    except scipy.sparse.linalg.ArpackNoConvergence:
        vectors = _smoothed(scaled, roots)
    return np.asarray(roots[:, None] * vectors[:, [-2, -3]])


def _smoothed(scaled: SparseGraph, roots: FloatArray) -> FloatArray:
    """What a few steps of the power method make of random vectors: smooth over the graph, if no eigenvectors."""
    vectors = np.column_stack([np.random.default_rng(1).standard_normal((len(roots), 2)), 1 / roots])
    for _ in range(100):
        # The shift makes the smoothest vectors the largest ones in absolute value.
        vectors, _ = np.linalg.qr((scaled @ vectors + vectors)[:, ::-1])
        vectors = vectors[:, ::-1]
    return np.asarray(vectors)


def _relax(graph: SparseGraph, place: FloatArray) -> FloatArray:
    """Fruchterman and Reingold's forces, with a step that shrinks."""
    n = len(place)
    edges = scipy.sparse.coo_array(scipy.sparse.triu(graph, 1))
    i, j = edges.coords
    pull = 0.3 + 0.7 * edges.data / edges.data.max()
    n_steps = 80 if n <= _ALL_PAIRS else 40
    repulsion = _pair_repulsion if n <= _ALL_PAIRS else _grid_repulsion
    for step in range(n_steps):
        force = repulsion(place)
        along = place[j] - place[i]
        spring = (pull * np.linalg.norm(along, axis=1))[:, None] * along
        for axis in range(2):
            force[:, axis] += np.bincount(i, spring[:, axis], minlength=n) - np.bincount(
                j, spring[:, axis], minlength=n
            )
        length = np.linalg.norm(force, axis=1, keepdims=True)
        reach = 0.25 * np.sqrt(n) * (1 - step / n_steps) ** 2 + 0.02
        place = place + force * np.minimum(1.0, reach / np.maximum(length, 1e-12)) * 0.5
    return place


def _pair_repulsion(place: FloatArray) -> FloatArray:
    apart = place[:, None] - place[None]
    squares = np.einsum("ijc,ijc->ij", apart, apart) + 1e-3
    return np.asarray(np.einsum("ijc,ij->ic", apart, 1 / squares))


def _grid_repulsion(place: FloatArray) -> FloatArray:
    """The same forces from a density on a grid, by Fourier transforms: ``O(n + cells log cells)``."""
    cells = int(np.clip(2 ** np.ceil(np.log2(2 * np.sqrt(len(place)))), 32, 256))
    low = place.min(axis=0)
    width = max(float(np.ptp(place, axis=0).max()), 1e-9) * (1 + 1e-9) / (cells - 1)
    spots = (place - low) / width
    corner = np.minimum(spots.astype(np.int64), cells - 2)
    share = spots - corner
    # Each node counts for the four grid points around it, and later feels the force at these.
    shares = [((dx, dy), _bilinear(share, dx, dy)) for dx in (0, 1) for dy in (0, 1)]
    density = np.zeros(cells * cells)
    for (dx, dy), weight in shares:
        density += np.bincount((corner[:, 0] + dx) * cells + corner[:, 1] + dy, weight, minlength=cells * cells)
    offsets = np.fft.fftfreq(2 * cells, 1 / (2 * cells)) * width
    squares = offsets[:, None] ** 2 + offsets[None] ** 2 + width**2 / 4
    spectrum = scipy.fft.rfft2(density.reshape(cells, cells), s=(2 * cells, 2 * cells))
    out = np.empty_like(place)
    for axis, kernel in enumerate((offsets[:, None] / squares, offsets[None] / squares)):
        field = scipy.fft.irfft2(spectrum * scipy.fft.rfft2(kernel), s=(2 * cells, 2 * cells))[:cells, :cells]
        out[:, axis] = sum(weight * field[corner[:, 0] + dx, corner[:, 1] + dy] for (dx, dy), weight in shares)
    return out


def _bilinear(share: FloatArray, dx: int, dy: int) -> FloatArray:
    across = share[:, 0] if dx else 1 - share[:, 0]
    return np.asarray(across * (share[:, 1] if dy else 1 - share[:, 1]))


def _side_by_side(extents: list[FloatArray]) -> tuple[list[FloatArray], float, float]:
    """Corners of boxes on shelves, and the width and height of it all."""
    boxes = np.array(extents) + _MARGIN
    limit = max(float(boxes[:, 0].max()), 1.25 * float(np.sqrt(boxes.prod(axis=1).sum())))
    corners: list[FloatArray] = []
    x = y = shelf = widest = 0.0
    for width, height in boxes.tolist():
        if corners and x + width > limit:
            x, y, shelf = 0.0, y + shelf, 0.0
        corners.append(np.array([x, y]))
        x, shelf = x + width, max(shelf, height)
        widest = max(widest, x)
    return corners, widest, y + shelf


def _rows_below(n: int, width: float, height: float) -> FloatArray:
    """Nodes without an edge in rows below the others, or alone in a square."""
    if width == 0:
        across, spacing, top = int(np.ceil(np.sqrt(1.5 * n))), 1.0, 0.0
    else:
        spacing = min(1.0, float(np.sqrt(_ASIDE * width * max(height, 1.0) / n)))
        across, top = max(1, int(width / spacing)), height + 2 * spacing
    index = np.arange(n)
    return np.column_stack([(index % across) * spacing, top + (index // across) * spacing])

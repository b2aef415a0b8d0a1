r"""
Families of graphs, each as a sparse precision matrix with unit marginal variances.

Every function returns a symmetric positive definite ``scipy.sparse.csr_array`` :math:`\Theta` with
:math:`(\Theta^{-1})_{ii} = 1`, so that the families differ in structure and never in scale. ``matrix_normal``
draws factors from them.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from lgmd._typing import FloatArray, IntArray, RandomState, SparseGraph
from lgmd.datasets._checks import as_generator, check_count, check_real
from lgmd.datasets._precision import check_invertible_size, to_unit_variance

__all__ = [
    "FAMILIES",
    "block_precision",
    "chain_precision",
    "geometric_precision",
    "identity_precision",
    "random_precision",
]

# Neighbourhood is not mutual: joining each of n points in the plane to its m nearest gives about 1.2 m
# neighbours each.
_NEIGHBOURS_MADE_MUTUAL = 1.2


def random_precision(
    n_nodes: int, edge_density: float = 0.06, *, strength: float = 0.9, random_state: RandomState = None
) -> SparseGraph:
    r"""
    Random signed edges with a diagonally dominant precision: the graphs of the paper's synthetic experiment.

    Exactly ``round(edge_density * n (n - 1) / 2)`` pairs are drawn and get weights of random sign with sizes
    uniform in [0.5, 1]; the diagonal is then :math:`\Theta_{ii} = \sum_{j \ne i} |\Theta_{ij}| / s` with the
    `strength` s, before everything is scaled to unit variance. Its edges are many and weak: for n = 100
    partial correlations have an absolute mean near 0.15.

    Parameters
    ----------
    n_nodes : int
        Number of nodes n, at most 5,000: the scaling inverts the matrix, in O(n^3) time and O(n^2) memory.
    edge_density : float, default=0.06
        Share of all pairs that are joined.
    strength : float, default=0.9
        How near the precision is to losing its diagonal dominance, between 0 (no graph) and 1.
    random_state : int, Generator, RandomState or None, default=None
        Seed or source of randomness.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
        The precision matrix.
    """
    n_nodes = check_count(n_nodes, "n_nodes")
    edge_density = check_real(edge_density, "edge_density", 0, 1)
    strength = check_real(strength, "strength", 0, 1, closed="neither")
    check_invertible_size(n_nodes, "random_precision")
    rng = as_generator(random_state)
    n_pairs = n_nodes * (n_nodes - 1) // 2
    n_edges = round(edge_density * n_pairs)
    rows, columns = _pairs_at(rng.choice(n_pairs, size=n_edges, replace=False), n_nodes)
    weights = rng.uniform(0.5, 1.0, size=n_edges) * rng.choice([-1.0, 1.0], size=n_edges)
    edges = _symmetric(weights, rows, columns, n_nodes)
    sums = abs(edges).sum(axis=1)
    return to_unit_variance((edges + sparse.diags_array(np.where(sums > 0, sums / strength, 1.0))).tocsr())


def block_precision(
    n_nodes: int, edge_density: float = 0.06, *, correlation: float = 0.7, random_state: RandomState = None
) -> SparseGraph:
    r"""
    Disjoint blocks of consecutive nodes, each a clique of strongly correlated ones.

    Inside a block the covariance is :math:`\operatorname{diag}(1 - \ell^2) + \ell \ell^\top`: one hidden
    cause, which a node follows with the loading :math:`\ell_i`. The :math:`\ell_i^2` are uniform around
    `correlation` (0.6 to 0.8 for 0.7), so that edges differ in strength. The inverse is known in closed form,
    so the cost is that of the non-zeros alone.

    Parameters
    ----------
    n_nodes : int
        Number of nodes n.
    edge_density : float, default=0.06
        Share of all pairs that are joined, about: blocks have ``edge_density * (n - 1) + 1`` nodes, give or
        take what it needs to share the nodes out evenly. That is 7 for n = 100.
    correlation : float, default=0.7
        Mean correlation inside a block, between 0 and 1.
    random_state : int, Generator, RandomState or None, default=None
        Seed or source of randomness.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
        The precision matrix.
    """
    n_nodes = check_count(n_nodes, "n_nodes")
    edge_density = check_real(edge_density, "edge_density", 0, 1)
    correlation = check_real(correlation, "correlation", 0, 1, closed="neither")
    spread = min(correlation, 1 - correlation) / 3
    shared = as_generator(random_state).uniform(correlation - spread, correlation + spread, size=n_nodes)
    block_size = edge_density * (n_nodes - 1) + 1
    n_blocks = max(1, round(n_nodes / round(block_size)))
    blocks = [_one_cause_precision(part) for part in np.array_split(shared, n_blocks)]
    return sparse.csr_array(sparse.block_diag(blocks, format="csr"))


def geometric_precision(
    n_nodes: int, edge_density: float = 0.06, *, ridge: float = 0.1, random_state: RandomState = None
) -> SparseGraph:
    r"""
    Points in the unit square joined to their nearest neighbours: factors vary smoothly over the map.

    The precision is :math:`L + c I` with the ridge c and the Laplacian L of the weights
    :math:`\exp(-d_{ij}^2 / 2 h^2)`, where h is the median length of an edge, scaled to unit variance.

    Parameters
    ----------
    n_nodes : int
        Number of points n, at most 5,000: the scaling inverts the matrix, in O(n^3) time and O(n^2) memory.
    edge_density : float, default=0.06
        Share of all pairs that are joined, about: it sets the number of nearest neighbours, at least one.
    ridge : float, default=0.1
        The smaller, the smoother: it is compared with weights of at most one.
    random_state : int, Generator, RandomState or None, default=None
        Seed or source of randomness.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
        The precision matrix. Its edges are negative entries, as in a Laplacian.
    """
    n_nodes = check_count(n_nodes, "n_nodes")
    edge_density = check_real(edge_density, "edge_density", 0, 1)
    ridge = check_real(ridge, "ridge", 0, np.inf, closed="neither", advice="Without it a Laplacian is singular.")
    check_invertible_size(n_nodes, "geometric_precision")
    points = as_generator(random_state).random((n_nodes, 2))
    if n_nodes == 1:
        return identity_precision(1)
    wanted = round(edge_density * (n_nodes - 1) / _NEIGHBOURS_MADE_MUTUAL)
    n_neighbours = min(max(1, wanted), n_nodes - 1)
    ranks = np.arange(2, n_neighbours + 2)  # the first nearest point of each is itself
    distances, neighbours = (np.ravel(found) for found in cKDTree(points).query(points, k=ranks))
    rows = np.repeat(np.arange(n_nodes), n_neighbours)
    weights = np.exp(-0.5 * (distances / np.median(distances)) ** 2)
    directed: SparseGraph = sparse.csr_array((weights, (rows, neighbours)), shape=(n_nodes,) * 2)
    joined = directed.maximum(directed.T)
    return to_unit_variance((sparse.diags_array(joined.sum(axis=1) + ridge) - joined).tocsr())


def chain_precision(n_nodes: int, *, correlation: float = 0.9) -> SparseGraph:
    r"""
    A first-order autoregression: each node is joined to the one before and the one after, as days are.

    The covariance is :math:`\phi^{|i - j|}` and the precision is tridiagonal,

    .. math:: (1 - \phi^2)\, \Theta = \operatorname{tridiag}(-\phi,\; 1 + \phi^2,\; -\phi)

    with 1 instead of :math:`1 + \phi^2` at both ends. The cost is O(n).

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    correlation : float, default=0.9
        Correlation of neighbours, between -1 and 1.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
        The precision matrix.
    """
    n_nodes = check_count(n_nodes, "n_nodes")
    correlation = check_real(correlation, "correlation", -1, 1, closed="neither")
    if n_nodes == 1:
        return identity_precision(1)
    diagonal = np.full(n_nodes, 1 + correlation**2)
    diagonal[[0, -1]] = 1.0
    nodes = np.arange(n_nodes - 1)
    beside = _symmetric(np.full(n_nodes - 1, -correlation), nodes, nodes + 1, n_nodes)
    return (beside + sparse.diags_array(diagonal)).tocsr() / (1 - correlation**2)


def identity_precision(n_nodes: int) -> SparseGraph:
    """
    No edges: independent nodes, as in probabilistic matrix factorisation.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes)
        The identity.
    """
    return sparse.eye_array(check_count(n_nodes, "n_nodes"), format="csr")


#: Families by name, as functions of the number of nodes, the edge density and a random generator.
FAMILIES: Final[dict[str, Callable[[int, float, np.random.Generator], SparseGraph]]] = {
    "random": lambda n, density, rng: random_precision(n, density, random_state=rng),
    "blocks": lambda n, density, rng: block_precision(n, density, random_state=rng),
    "geometric": lambda n, density, rng: geometric_precision(n, density, random_state=rng),
    "chain": lambda n, density, rng: chain_precision(n),
    "none": lambda n, density, rng: identity_precision(n),
}


def _pairs_at(positions: IntArray, n_nodes: int) -> tuple[IntArray, IntArray]:
    """Return the pairs (i, j), i < j, at these positions in the list (0, 1), (0, 2), ..., (n - 2, n - 1)."""
    first_of_row = np.concatenate([[0], np.cumsum(np.arange(n_nodes - 1, 0, -1))])
    rows = np.searchsorted(first_of_row, positions, side="right") - 1
    return rows, positions - first_of_row[rows] + rows + 1


def _symmetric(weights: FloatArray, rows: IntArray, columns: IntArray, n_nodes: int) -> SparseGraph:
    """Return the symmetric matrix with these weights above, and therefore also below, the diagonal."""
    upper: SparseGraph = sparse.csr_array((weights, (rows, columns)), shape=(n_nodes, n_nodes))
    return upper + upper.T


def _one_cause_precision(shared: FloatArray) -> FloatArray:
    """Invert ``diag(1 - l^2) + l l'``, given ``shared = l^2``, by the Sherman-Morrison formula."""
    own = 1 - shared
    weights = np.sqrt(shared) / own
    return np.diag(1 / own) - np.outer(weights, weights) / (1 + np.sum(shared / own))

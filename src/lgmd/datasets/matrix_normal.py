"""Tables drawn from the model itself, as in the paper's synthetic experiment, with the truth behind them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from lgmd._typing import Array, FloatArray, IntArray, RandomState, SparseGraph
from lgmd._validation import as_symmetric
from lgmd.datasets._checks import as_generator, check_choice, check_count, check_real
from lgmd.datasets._gaps import PATTERNS, draw_mask
from lgmd.datasets.graphs import FAMILIES
from lgmd.exceptions import InvalidGraphError, InvalidParameterError
from lgmd.linalg.cholesky import TooEntangledError, factorize

__all__ = ["MatrixNormalData", "make_matrix_normal"]


@dataclass(frozen=True, eq=False, repr=False)
class MatrixNormalData:
    """
    A table and the truth behind it: ``observed`` is what a model sees, the rest is what to compare it with.

    Attributes
    ----------
    observed : ndarray of shape (n, p)
        The noisy table with NaN in its gaps.
    noisy : ndarray of shape (n, p)
        The noisy table before entries were hidden, ``truth`` plus noise.
    truth : ndarray of shape (n, p)
        ``sample_factors @ feature_factors.T``.
    sample_factors : ndarray of shape (n, k)
        Row factors X.
    feature_factors : ndarray of shape (p, k)
        Column factors W.
    sample_precision : csr_array of shape (n, n)
        Row precision A.
    feature_precision : csr_array of shape (p, p)
        Column precision B.
    mask : ndarray of bool of shape (n, p)
        True where an entry is observed.
    noise_variance : float
        Variance of the noise in each entry.
    """

    observed: FloatArray
    noisy: FloatArray
    truth: FloatArray
    sample_factors: FloatArray
    feature_factors: FloatArray
    sample_precision: SparseGraph
    feature_precision: SparseGraph
    mask: Array
    noise_variance: float

    def __repr__(self) -> str:
        n_samples, n_features = self.truth.shape
        n_missing = self.mask.size - np.count_nonzero(self.mask)
        return (
            f"MatrixNormalData({n_samples:,} x {n_features:,}, rank {self.sample_factors.shape[1]}, "
            f"{n_missing:,} of {self.mask.size:,} entries missing, noise variance {self.noise_variance:.4g})"
        )


def make_matrix_normal(
    n_samples: int = 100,
    n_features: int = 100,
    rank: int = 20,
    *,
    sample_graph: str | ArrayLike | SparseGraph = "random",
    feature_graph: str | ArrayLike | SparseGraph = "random",
    edge_density: float = 0.06,
    noise: float = 0.3,
    missing: float = 0.0,
    missing_pattern: str = "random",
    shuffle: bool = False,
    random_state: RandomState = None,
) -> MatrixNormalData:
    r"""
    Draw a table with a known graph over its rows and another over its columns.

    .. math::
        Y = X W^\top + E, \qquad X \sim \mathcal{MN}(0, A^{-1}, I_k), \quad
        W \sim \mathcal{MN}(0, B^{-1}, I_k), \quad E_{ij} \sim \mathcal{N}(0, \sigma^2).

    The defaults are the paper's synthetic experiment: 100 x 100, rank 20, graphs with 6 % of all edges. The
    factors come first, then the noise, then the gaps, so that with the same seed another `noise` or `missing`
    changes nothing else.

    Parameters
    ----------
    n_samples, n_features : int, default=100
        Rows n and columns p.
    rank : int, default=20
        Number of factors k, at most the smaller of n and p.
    sample_graph, feature_graph : str or matrix, default="random"
        The precision A over rows, and B over columns. A family of ``lgmd.datasets.graphs``, all with unit
        marginal variances: "random" (weak edges anywhere), "blocks" (cliques with correlations near 0.7),
        "geometric" (smooth over a map), "chain" (a neighbour correlation of 0.9, as of days) or "none"
        (independent). Or a symmetric positive definite matrix, dense or sparse, which is used as it is and
        not rescaled.
    edge_density : float, default=0.06
        Share of pairs that are joined, in "random", "blocks" and "geometric".
    noise : float, default=0.3
        Standard deviation of the noise relative to that of the entries of ``X W'``.
    missing : float, default=0.0
        Share of hidden entries, below 1; exactly ``round(missing * n * p)`` are hidden. Every row and column
        keeps at least one.
    missing_pattern : {"random", "rows", "blocks"}, default="random"
        "random": each entry is equally likely. "rows": a run in each row, whose length varies from nothing to
        almost the row. "blocks": rectangles.
    shuffle : bool, default=False
        Whether the rows and the columns of the finished table are put in random order. In "blocks" and "chain"
        neighbours follow each other otherwise, which a model can find out by their order alone.
    random_state : int, Generator, RandomState or None, default=None
        Seed or source of randomness. The same int gives the same table.

    Returns
    -------
    MatrixNormalData
        The table, with gaps and without, the truth, the factors and the graphs.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range, or `missing` leaves too little for every row and column.
    InvalidGraphError
        If a given matrix has the wrong shape, or is not symmetric positive definite.

    Notes
    -----
    Large graphs cost as much as their sparse factor: "chain", "blocks" and "none" work with tens of thousands
    of nodes, "random" and "geometric" up to 5,000.

    Examples
    --------
    >>> make_matrix_normal(60, 40, rank=3, missing=0.25, random_state=0)
    MatrixNormalData(60 x 40, rank 3, 600 of 2,400 entries missing, noise variance 0.2641)
    """
    n_samples = check_count(n_samples, "n_samples")
    n_features = check_count(n_features, "n_features")
    smaller_side = min(n_samples, n_features)
    rank = check_count(rank, "rank", at_most=smaller_side, reason=", the smaller side of the table")
    edge_density = check_real(edge_density, "edge_density", 0, 1)
    noise = check_real(noise, "noise", 0, np.inf, closed="left")
    missing = check_real(missing, "missing", 0, 1, closed="left", advice="Pass a share, such as 0.2 for 20 %.")
    missing_pattern = check_choice(missing_pattern, "missing_pattern", PATTERNS)
    if not isinstance(shuffle, bool | np.bool_):
        raise InvalidParameterError(f"shuffle must be True or False, but is {shuffle!r}.")
    rng = as_generator(random_state)

    A = _resolve_graph(sample_graph, n_samples, edge_density, rng, name="sample_graph", nodes="rows")
    B = _resolve_graph(feature_graph, n_features, edge_density, rng, name="feature_graph", nodes="columns")
    X = _draw_factors(A, rank, rng, name="sample_graph")
    W = _draw_factors(B, rank, rng, name="feature_graph")
    truth = X @ W.T
    noise_deviation = noise * float(truth.std())
    noisy = truth + noise_deviation * rng.standard_normal(truth.shape)
    mask = draw_mask((n_samples, n_features), missing, missing_pattern, rng)
    data = MatrixNormalData(
        observed=np.where(mask, noisy, np.nan),
        noisy=noisy,
        truth=truth,
        sample_factors=X,
        feature_factors=W,
        sample_precision=A,
        feature_precision=B,
        mask=mask,
        noise_variance=noise_deviation**2,
    )
    return _in_order(data, rng.permutation(n_samples), rng.permutation(n_features)) if shuffle else data


def _in_order(data: MatrixNormalData, rows: IntArray, columns: IntArray) -> MatrixNormalData:
    table = np.ix_(rows, columns)
    return replace(
        data,
        observed=data.observed[table],
        noisy=data.noisy[table],
        truth=data.truth[table],
        sample_factors=data.sample_factors[rows],
        feature_factors=data.feature_factors[columns],
        sample_precision=data.sample_precision[rows][:, rows],
        feature_precision=data.feature_precision[columns][:, columns],
        mask=data.mask[table],
    )


def _resolve_graph(
    graph: str | ArrayLike | SparseGraph,
    n_nodes: int,
    edge_density: float,
    rng: np.random.Generator,
    *,
    name: str,
    nodes: str,
) -> SparseGraph:
    """Return the precision that `graph` names or is."""
    if isinstance(graph, str):
        return FAMILIES[check_choice(graph, name, FAMILIES)](n_nodes, edge_density, rng)
    precision = as_symmetric(graph, name)
    found = precision.shape[0]
    if found != n_nodes:
        raise InvalidGraphError(
            f"{name} is {found} x {found} but the table has {n_nodes} {nodes}. "
            f"A graph over {nodes} must be {n_nodes} x {n_nodes}."
        )
    return precision


def _draw_factors(precision: SparseGraph, rank: int, rng: np.random.Generator, *, name: str) -> FloatArray:
    """Draw `rank` independent columns from ``N(0, precision^-1)``."""
    try:
        factor = factorize(precision)
    except np.linalg.LinAlgError as error:
        raise InvalidGraphError(
            f"{name} is not positive definite, so it is no precision matrix. "
            "A Laplacian needs a ridge: pass laplacian + ridge * identity."
        ) from error
    except TooEntangledError as error:
        raise InvalidGraphError(f"{name} is too entangled to draw from: {error}. Use a sparser graph.") from error
    # With A = C C' this is C^-T z, whose covariance is A^-1.
    return factor.solve(factor.color(rng.standard_normal((precision.shape[0], rank))))

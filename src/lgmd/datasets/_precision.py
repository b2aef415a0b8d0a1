"""Bringing precision matrices to unit scale."""

import numpy as np
from scipy import sparse

from lgmd._typing import SparseGraph
from lgmd.exceptions import InvalidParameterError
from lgmd.linalg.cholesky import DENSE_LIMIT, DenseFactor

__all__ = ["check_invertible_size", "to_unit_variance"]


def check_invertible_size(n_nodes: int, family: str) -> None:
    """Raise for graphs too large for the n x n inverse that `to_unit_variance` needs."""
    if n_nodes > DENSE_LIMIT:
        raise InvalidParameterError(
            f"{family} with {n_nodes:,} nodes needs the inverse of a {n_nodes:,} x {n_nodes:,} matrix to "
            f"bring its variances to one; the limit is {DENSE_LIMIT:,}. Use chain_precision or "
            "block_precision, whose variances are known, or pass a precision matrix of your own."
        )


def to_unit_variance(precision: SparseGraph) -> SparseGraph:
    """Return ``D A D`` with the diagonal ``D`` that makes every diagonal entry of its inverse one."""
    scale = np.sqrt(np.diag(DenseFactor(precision).solve(np.eye(precision.shape[0]))))
    entries = precision.tocoo()
    # The scales are multiplied first: s_i s_j, unlike (a s_i) s_j, is the same for (i, j) and (j, i).
    values = entries.data * (scale[entries.row] * scale[entries.col])
    return sparse.csr_array((values, (entries.row, entries.col)), shape=precision.shape)

"""Orders of the nodes of a graph in which neighbours stand near each other."""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse

from lgmd._typing import IntArray, SparseGraph

__all__ = ["reverse_cuthill_mckee"]


def reverse_cuthill_mckee(matrix: SparseGraph) -> IntArray:
    """Nodes of a symmetric pattern by breadth, those with few neighbours first, and that order reversed.

    scipy has the same, but takes nodes of equal degree in an order that depends on the processor's instructions; here
    they stand in the order of their numbers, so that random draws that follow it are the same everywhere.
    """
    pattern = scipy.sparse.csr_array(matrix)
    degrees = np.diff(pattern.indptr)
    rows = np.repeat(np.arange(len(degrees)), degrees)
    by_degree = pattern.indices[np.lexsort((pattern.indices, degrees[pattern.indices], rows))]
    starts = np.argsort(degrees, kind="stable")
    return np.asarray(_by_breadth(starts, pattern.indptr.astype(np.int64), by_degree.astype(np.int64))[::-1])


@numba.njit(cache=True)
def _by_breadth(starts: IntArray, indptr: IntArray, indices: IntArray) -> IntArray:
    """All nodes, each followed by those of its neighbours that have not come yet, in the order given."""
    order = np.empty(len(starts), np.int64)
    seen = np.zeros(len(starts), np.bool_)
    head = tail = 0
    for start in starts:
        if not seen[start]:
            seen[start] = True
            order[tail] = start
            tail += 1
        while head < tail:
            node = order[head]
            head += 1
            for place in range(indptr[node], indptr[node + 1]):
                neighbor = indices[place]
                if not seen[neighbor]:
                    seen[neighbor] = True
                    order[tail] = neighbor
                    tail += 1
    return order

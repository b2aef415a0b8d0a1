"""Across the diagonal of a square array, in tiles that fit the cache."""

from __future__ import annotations

import numba

__all__ = ["reflect_upper"]

_TILE = 32


@numba.njit(nogil=True, cache=True)
def reflect_upper(matrix, both_ways):  # type: ignore[no-untyped-def]
    """Write the upper triangle into the lower one, and if ``both_ways`` the lower into the upper: the transpose."""
    n = len(matrix)
    for first in range(0, n, _TILE):
        for second in range(0, first + 1, _TILE):
            for i in range(first, min(first + _TILE, n)):
                for j in range(second, min(second + _TILE, i)):
                    upper = matrix[j, i]
                    if both_ways:
                        matrix[j, i] = matrix[i, j]
                    matrix[i, j] = upper

"""Compiled loops of the graphical lasso on one dense component; see :mod:`lgmd.linalg.lasso_precision`."""

from __future__ import annotations

import numba
import numpy as np

__all__ = [
    "conditions",
    "curvature",
    "descend",
    "gather_free",
    "off_diagonal_sum",
    "penalised_fit",
    "scatter",
    "transposed_positions",
]

# Sums may be reordered and products fused; NaN and infinity keep their meaning.
_FASTMATH = {"reassoc", "contract", "nsz"}

# Rows whose products with D are formed together: two cache lines.
_LANES = 16


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def penalised_fit(S, A, eta):  # type: ignore[no-untyped-def]
    """``tr(SA) + eta |A|_off``."""
    total = 0.0
    for i in range(len(S)):
        fit = penalty = 0.0
        for j in range(len(S)):
            fit += S[i, j] * A[i, j]
            penalty += abs(A[i, j])
        total += fit + eta * (penalty - abs(A[i, i]))
    return total


@numba.njit(nogil=True, cache=True)
def conditions(S, allowed, scale, A, W, eta):  # type: ignore[no-untyped-def]
    """The largest violation of an optimality condition, and how many entries of each row are free to move."""
    n = len(S)
    counts = np.zeros(n, np.int64)
    worst = 0.0
    for i in range(n):
        for j in range(n):
            gradient, entry = S[i, j] - W[i, j], A[i, j]
            if i == j:
                violation = abs(gradient)
                counts[i] += 1
            elif len(allowed) and not allowed[i, j]:
                violation = 0.0
            elif entry != 0:
                violation = abs(gradient + (eta if entry > 0 else -eta))
                counts[i] += 1
            else:
                violation = abs(gradient) - eta
                if violation > 0:
                    counts[i] += 1
            worst = max(worst, violation * scale[i] * scale[j])
    return worst, counts


@numba.njit(nogil=True, cache=True)
def gather_free(S, allowed, A, W, eta, indptr, indices, current, gradient):  # type: ignore[no-untyped-def]
    """The free entries by rows: where they are, their values in A and in ``S - W``."""
    n = len(S)
    for i in range(n):
        position = indptr[i]
        for j in range(n):
            may_move = i == j or not len(allowed) or allowed[i, j]
            if may_move and (i == j or A[i, j] != 0 or abs(S[i, j] - W[i, j]) > eta):
                indices[position], current[position] = j, A[i, j]
                gradient[position] = S[i, j] - W[i, j]
                position += 1


@numba.njit(nogil=True, cache=True)
def transposed_positions(indptr, indices):  # type: ignore[no-untyped-def]
    """Where entry (j, i) is stored, for each stored entry (i, j) of a symmetric pattern."""
    following = indptr[:-1].copy()
    twins = np.empty(len(indices), np.int64)
    for i in range(len(following)):
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            twins[entry] = following[j]
            following[j] += 1
    return twins


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def curvature(W, rows, columns, out):  # type: ignore[no-untyped-def]
    """The lower triangle of ``W D W`` as a matrix that acts on the entries of D, those of the diagonal halved."""
    for e in range(len(rows)):
        first, second = W[rows[e]], W[columns[e]]
        for f in range(e + 1):
            i, j = rows[f], columns[f]
            out[e, f] = first[i] * second[j] + first[j] * second[i]


@numba.njit(nogil=True, cache=True)
def off_diagonal_sum(indptr, indices, values):  # type: ignore[no-untyped-def]
    """Sum of the sizes of all entries but those of the diagonal."""
    total = 0.0
    for i in range(len(indptr) - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            if indices[entry] != i:
                total += abs(values[entry])
    return total


@numba.njit(nogil=True, cache=True)
def scatter(indptr, indices, values, matrix):  # type: ignore[no-untyped-def]
    """Write sparse values into a dense matrix."""
    for i in range(len(indptr) - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            matrix[i, indices[entry]] = values[entry]


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def _dot(first, second):  # type: ignore[no-untyped-def]
    total = 0.0
    for position in range(len(first)):
        total += first[position] * second[position]
    return total


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def _multiply(indptr, indices, values, panel, product):  # type: ignore[no-untyped-def]
    """A sparse matrix times a panel of ``_LANES`` columns."""
    for i in range(len(indptr) - 1):
        out = product[i]
        for lane in range(_LANES):
            out[lane] = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = values[entry]
            if value != 0:
                row = panel[indices[entry]]
                for lane in range(_LANES):
                    out[lane] += value * row[lane]


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH)
def descend(indptr, indices, twins, current, gradient, W, eta, scale, n_passes, direction):  # type: ignore[no-untyped-def]
    """One sweep of coordinate descent on the model of a step; returns the largest violation that it met.

    ``direction`` holds D on the free entries and is changed in place.
    """
    n = len(indptr) - 1
    panel, product, column = np.zeros((n, _LANES)), np.zeros((n, _LANES)), np.empty(n)
    slope, before = np.empty(n), np.empty(n)
    worst = 0.0
    for first in range(0, n, _LANES):
        width = min(_LANES, n - first)
        for k in range(n):
            for lane in range(width):
                panel[k, lane] = W[k, first + lane]
        _multiply(indptr, indices, direction, panel, product)
        for lane in range(width):
            i = first + lane
            begin, size = indptr[i], indptr[i + 1] - indptr[i]
            for k in range(n):
                column[k] = product[k, lane]
            for a in range(size):  # the gradient of the model: S - W + W D W
                slope[a] = gradient[begin + a] + _dot(column, W[indices[begin + a]])
                before[a] = direction[begin + a]
            for _ in range(n_passes):
                met = _descend_row(i, begin, size, indices, current, W, eta, scale, slope, direction)
                worst = max(worst, met)
                if met <= 0.1 * worst:
                    break
            for a in range(size):
                entry = begin + a
                move = direction[entry] - before[a]
                if move != 0:
                    j = indices[entry]
                    direction[twins[entry]] = direction[entry]
                    for other in range(_LANES):
                        product[i, other] += move * panel[j, other]
                    if j != i:
                        for other in range(_LANES):
                            product[j, other] += move * panel[i, other]
    return worst


@numba.njit(nogil=True, cache=True, fastmath=_FASTMATH, error_model="numpy")  # no error where a curvature underflows
def _descend_row(i, begin, size, indices, current, W, eta, scale, slope, direction):  # type: ignore[no-untyped-def]
    """One pass over the free entries of a row; returns the largest violation that it met."""
    own = W[i]
    worst = 0.0
    for a in range(size):
        entry = begin + a
        j = indices[entry]
        other = W[j]
        if j == i:
            curvature = own[i] * own[i]
            move = -slope[a] / curvature
            direction[entry] += move
            weight = 0.5 * move
        else:
            curvature = own[i] * other[j] + own[j] * own[j]
            old = current[entry] + direction[entry]
            centre, reach = old - slope[a] / curvature, eta / curvature
            new = centre - reach if centre > reach else (centre + reach if centre < -reach else 0.0)
            move = new - old
            direction[entry] = new - current[entry]  # so that a zero is reached exactly
            weight = move
        if move != 0:
            worst = max(worst, abs(move) * curvature * scale[i] * scale[j])
            along, across = weight * own[i], weight * own[j]
            for b in range(size):
                k = indices[begin + b]
                slope[b] += along * other[k] + across * own[k]
    return worst

r"""The small linear systems of a table with gaps: one k x k system a row, compiled.

With the column factors ``W`` held, row i of the table sees the normal equations

.. math:: H_i x_i = g_i,\quad H_i = \sum_{j \in O_i} w_j w_j^T + r_i I,\quad g_i = \sum_{j \in O_i} t_{ij} w_j,

where :math:`t_{ij}` is the entry less the offset of its column and :math:`r_i` the ridge of the row. A row
intercept with ridge :math:`\tau` is profiled out exactly: with :math:`s_i = \sum_j w_j` and
:math:`c_i = 1 / (|O_i| + \tau)` the system becomes :math:`H_i - c_i s_i s_i^T` and
:math:`g_i - c_i s_i \sum_j t_{ij}`, and afterwards :math:`a_i = c_i (\sum_j t_{ij} - s_i^T x_i)`.

Rows that share no edge are solved one by one and nothing of them is stored (:func:`solve_rows`). Rows that
a graph couples leave their Cholesky factor behind (:func:`factor_rows`), which is the block-Jacobi
preconditioner of the joint system. Cost: ``O(entries k^2 + rows k^3)`` and one pass over the entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg.threads import balanced_blocks, even_blocks, map_blocks

__all__ = [
    "FASTMATH",
    "Entries",
    "RowFactors",
    "factor_rows",
    "multiply_upper",
    "residual_sums",
    "solve_lower",
    "solve_rows",
    "solve_upper",
]

# Everything but the flags that would let the compiler assume there is no NaN.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}


class Entries(NamedTuple):
    """Observed entries in the order of one side: compressed rows."""

    indptr: IntArray
    indices: IntArray
    values: FloatArray
    blocks: IntArray
    """Boundaries of the runs of rows that threads share out."""

    def of_rows(self, start: int, stop: int) -> Entries:
        """The entries of a run of rows; shares all but the row pointers."""
        first, last = self.indptr[start], self.indptr[stop]
        indptr = self.indptr[start : stop + 1] - first
        return Entries(indptr, self.indices[first:last], self.values[first:last], balanced_blocks(indptr))


class RowFactors(NamedTuple):
    """What :func:`factor_rows` leaves of each row's system."""

    lower: FloatArray
    """Cholesky factors, (rows, k, k), lower triangle."""
    right: FloatArray
    """Right-hand sides, (rows, k)."""
    design_sums: FloatArray
    """Sum of the row's design vectors, (rows, k)."""
    value_sums: FloatArray
    """Sum of the row's entries less the column offsets, (rows,)."""
    counts: FloatArray
    """Number of the row's entries, (rows,)."""

    def intercepts(self, solution: FloatArray, intercept_ridge: float | None) -> FloatArray:
        """The row intercepts that go with the solved rows; zero where there are none."""
        if intercept_ridge is None:
            return np.zeros_like(self.value_sums)
        left = self.value_sums - np.einsum("ij,ij->i", self.design_sums, solution)
        counts = np.maximum(self.counts + left.dtype.type(intercept_ridge), left.dtype.type(1e-30))
        return np.asarray(left / counts)


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _accumulate(first, last, indices, values, offsets, design, gram, right, sums):  # type: ignore[no-untyped-def]
    """Sum one row's normal equations into ``gram``, ``right`` and ``sums``; return the sum of its values."""
    k = design.shape[1]
    gram[:, :] = 0
    right[:] = 0
    sums[:] = 0
    total = 0.0
    entry = first
    # Four entries a turn: the k x k sums are then loaded and stored once for four products.
    while entry + 4 <= last:
        j0, j1, j2, j3 = indices[entry], indices[entry + 1], indices[entry + 2], indices[entry + 3]
        w0, w1, w2, w3 = design[j0], design[j1], design[j2], design[j3]
        t0 = values[entry] - offsets[j0]
        t1 = values[entry + 1] - offsets[j1]
        t2 = values[entry + 2] - offsets[j2]
        t3 = values[entry + 3] - offsets[j3]
        total += t0 + t1 + t2 + t3
        for a in range(k):
            a0, a1, a2, a3 = w0[a], w1[a], w2[a], w3[a]
            for b in range(k):
                gram[a, b] += a0 * w0[b] + a1 * w1[b] + a2 * w2[b] + a3 * w3[b]
        for b in range(k):
            right[b] += t0 * w0[b] + t1 * w1[b] + t2 * w2[b] + t3 * w3[b]
            sums[b] += w0[b] + w1[b] + w2[b] + w3[b]
        entry += 4
    while entry < last:
        j = indices[entry]
        w = design[j]
        t = values[entry] - offsets[j]
        total += t
        for a in range(k):
            for b in range(k):
                gram[a, b] += w[a] * w[b]
        for b in range(k):
            right[b] += t * w[b]
            sums[b] += w[b]
        entry += 1
    return total


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _cholesky(gram, smallest):  # type: ignore[no-untyped-def]
    """Overwrite the lower triangle with the Cholesky factor; False where a pivot is at or below ``smallest``."""
    k = len(gram)
    for a in range(k):
        for b in range(a):
            value = gram[a, b]
            for c in range(b):
                value -= gram[a, c] * gram[b, c]
            gram[a, b] = value / gram[b, b]
        pivot = gram[a, a]
        for c in range(a):
            pivot -= gram[a, c] * gram[a, c]
        if pivot <= smallest[a]:
            return False
        gram[a, a] = np.sqrt(pivot)
    return True


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _factor(gram, right, sums, total, weight, ridge, room):  # type: ignore[no-untyped-def]
    """Finish one row's normal equations and overwrite their lower triangle with its Cholesky factor.

    The row intercept is profiled out with ``weight`` 1 / (count + its ridge), zero for none. A row with fewer entries
    than factors and next to no ridge is singular to working precision: its ridge is raised to the size of round-off.
    """
    k = len(right)
    smallest, diagonal = room[0], room[1]
    rounding = k * np.finfo(gram.dtype).eps
    largest = 0.0
    for a in range(k):
        smallest[a] = rounding * (gram[a, a] + ridge) + np.finfo(gram.dtype).tiny
        largest = max(largest, smallest[a])
        for b in range(k):
            gram[a, b] -= weight * sums[a] * sums[b]
        right[a] -= weight * total * sums[a]
        gram[a, a] += ridge
        diagonal[a] = gram[a, a]
    raised = 4.0
    while not _cholesky(gram, smallest) and raised < 1e9:
        for a in range(k):
            gram[a, a] = diagonal[a] + raised * largest
            for b in range(a):
                gram[a, b] = gram[b, a]
        raised *= 4.0


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _forward(lower, vector):  # type: ignore[no-untyped-def]
    """Solve ``L u = vector`` in place."""
    for a in range(len(vector)):
        value = vector[a]
        for b in range(a):
            value -= lower[a, b] * vector[b]
        vector[a] = value / lower[a, a]


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _backward(lower, vector):  # type: ignore[no-untyped-def]
    """Solve ``L' x = vector`` in place."""
    for a in range(len(vector) - 1, -1, -1):
        value = vector[a] / lower[a, a]
        vector[a] = value
        for b in range(a):
            vector[b] -= lower[a, b] * value


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _solve_rows(start, stop, rows, indptr, indices, values, offsets, design, ridge, tau, out, intercept):  # type: ignore[no-untyped-def]
    k = design.shape[1]
    gram = np.empty((k, k), design.dtype)
    right = np.empty(k, design.dtype)
    sums = np.empty(k, design.dtype)
    room = np.empty((2, k), design.dtype)
    for position in range(start, stop):
        i = rows[position]
        first, last = indptr[i], indptr[i + 1]
        total = _accumulate(first, last, indices, values, offsets, design, gram, right, sums)
        weight = 1.0 / max(last - first + tau, 1e-30) if tau >= 0 else 0.0
        _factor(gram, right, sums, total, weight, ridge[i], room)
        _forward(gram, right)
        _backward(gram, right)
        for a in range(k):
            total -= sums[a] * right[a]
            out[i, a] = right[a]
        intercept[i] = weight * total


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _factor_rows(  # type: ignore[no-untyped-def]
    start, stop, rows, indptr, indices, values, offsets, design, ridge, tau, lower, right, sums, totals
):
    room = np.empty((2, design.shape[1]), design.dtype)
    for position in range(start, stop):
        i = rows[position]
        first, last = indptr[i], indptr[i + 1]
        total = _accumulate(
            first, last, indices, values, offsets, design, lower[position], right[position], sums[position]
        )
        weight = 1.0 / max(last - first + tau, 1e-30) if tau >= 0 else 0.0
        _factor(lower[position], right[position], sums[position], total, weight, ridge[i], room)
        totals[position] = total


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _solve_lower(start, stop, lower, vectors):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        _forward(lower[i], vectors[i])


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _solve_upper(start, stop, lower, vectors):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        _backward(lower[i], vectors[i])


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _multiply_upper(start, stop, lower, vectors):  # type: ignore[no-untyped-def]
    k = vectors.shape[1]
    for i in range(start, stop):
        for b in range(k):
            value = vectors[i, b]
            vectors[i, b] = 0.0
            for a in range(b + 1):
                vectors[i, a] += lower[i, b, a] * value


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _residual_sums(  # type: ignore[no-untyped-def]
    start, stop, indptr, indices, values, row_offsets, column_offsets, X, W
):
    k = W.shape[1]
    squares = 0.0
    total = 0.0
    for i in range(start, stop):
        x = X[i]
        row_squares = 0.0
        row_total = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            w = W[j]
            residual = values[entry] - row_offsets[i] - column_offsets[j]
            for a in range(k):
                residual -= x[a] * w[a]
            row_squares += residual * residual
            row_total += residual
        squares += row_squares
        total += row_total
    return squares, total


def solve_rows(
    rows: IntArray,
    entries: Entries,
    offsets: FloatArray,
    design: FloatArray,
    ridge: FloatArray,
    intercept_ridge: float | None,
    out: FloatArray,
    intercept: FloatArray,
) -> None:
    """Solve the systems of ``rows`` one by one, into ``out`` and ``intercept``.

    Parameters
    ----------
    rows : ndarray of int
        Which rows to solve, ascending.
    entries : Entries
        The observed entries in row order.
    offsets : ndarray of shape (n_columns,)
        What is taken off each entry for its column.
    design : ndarray of shape (n_columns, k)
        Column factors.
    ridge : ndarray of shape (n_rows,)
        Added to the diagonal of each row's system.
    intercept_ridge : float or None
        Ridge of the row intercept, which is solved for jointly; None for no row intercept.
    out, intercept : ndarray of shape (n_rows, k) and (n_rows,)
        Written at ``rows``, untouched elsewhere.
    """
    tau = -1.0 if intercept_ridge is None else float(intercept_ridge)
    everything = len(rows) == len(entries.indptr) - 1
    map_blocks(
        lambda start, stop: _solve_rows(
            start,
            stop,
            rows,
            entries.indptr,
            entries.indices,
            entries.values,
            offsets,
            design,
            ridge,
            tau,
            out,
            intercept,
        ),
        entries.blocks if everything else even_blocks(len(rows)),
        work=_work(entries, design),
    )


def factor_rows(
    rows: IntArray,
    entries: Entries,
    offsets: FloatArray,
    design: FloatArray,
    ridge: FloatArray,
    intercept_ridge: float | None,
) -> RowFactors:
    """Build and factor the systems of ``rows``; parameters as in :func:`solve_rows`."""
    m, k = len(rows), design.shape[1]
    tau = -1.0 if intercept_ridge is None else float(intercept_ridge)
    lower = np.empty((m, k, k), design.dtype)
    right = np.empty((m, k), design.dtype)
    sums = np.empty((m, k), design.dtype)
    totals = np.empty(m, design.dtype)
    everything = m == len(entries.indptr) - 1
    map_blocks(
        lambda start, stop: _factor_rows(
            start,
            stop,
            rows,
            entries.indptr,
            entries.indices,
            entries.values,
            offsets,
            design,
            ridge,
            tau,
            lower,
            right,
            sums,
            totals,
        ),
        entries.blocks if everything else even_blocks(m),
        work=_work(entries, design),
    )
    counts = np.diff(entries.indptr)[rows].astype(design.dtype)
    return RowFactors(lower, right, sums, totals, counts)


def solve_lower(lower: FloatArray, vectors: FloatArray) -> FloatArray:
    """``L_i u_i = vectors_i`` for each row i; returns a new array."""
    out = vectors.copy()
    map_blocks(lambda start, stop: _solve_lower(start, stop, lower, out), even_blocks(len(out)), work=lower.size)
    return out


def solve_upper(lower: FloatArray, vectors: FloatArray) -> FloatArray:
    """``L_i' x_i = vectors_i`` for each row i; returns a new array."""
    out = vectors.copy()
    map_blocks(lambda start, stop: _solve_upper(start, stop, lower, out), even_blocks(len(out)), work=lower.size)
    return out


def multiply_upper(lower: FloatArray, vectors: FloatArray) -> FloatArray:
    """``L_i' vectors_i`` for each row i; returns a new array."""
    out = vectors.copy()
    map_blocks(lambda start, stop: _multiply_upper(start, stop, lower, out), even_blocks(len(out)), work=lower.size)
    return out


def residual_sums(
    entries: Entries, row_offsets: FloatArray, column_offsets: FloatArray, X: FloatArray, W: FloatArray
) -> tuple[float, float]:
    """Sum of squares and plain sum of the residuals over the observed entries, in one pass."""
    parts = map_blocks(
        lambda start, stop: _residual_sums(
            start,
            stop,
            entries.indptr,
            entries.indices,
            entries.values,
            row_offsets,
            column_offsets,
            X,
            W,
        ),
        entries.blocks,
        work=len(entries.values) * X.shape[1],
    )
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def _work(entries: Entries, design: FloatArray) -> float:
    """About how many operations the systems of all rows take."""
    k = design.shape[1]
    return float(len(entries.values) * k**2 + len(entries.indptr) * k**3 / 3)

"""The compiled loops behind ``row_posteriors``; read that first.

The small systems of eight rows are solved side by side, so that one vector instruction serves all of them: their arrays
end in an axis of ``LANES``.
"""

from __future__ import annotations

import numba
import numpy as np

from lgmd.linalg.row_systems import FASTMATH
from lgmd.linalg.vectors import VECTOR_BYTES, load, repeated, store

__all__ = [
    "accumulate_rows",
    "entry_squares",
    "expected_squares",
    "posteriors_of_rows",
    "posteriors_of_sums",
    "second_moments",
]

LANES = VECTOR_BYTES // 8

# Entries that are summed in the precision of the storage before double precision takes over.
_PART = 32


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def accumulate(first, last, indices, values, weights, shift, moments, part, sums, right):  # type: ignore[no-untyped-def]
    """Add up one row's entries; return their weighted sum of squares.

    ``part`` holds the sums of a few entries in the precision of ``moments``, which is what makes this fast; ``sums``
    gathers them in double precision.
    """
    size, order = moments.shape[1], len(right)
    sums[:] = 0
    right[:] = 0
    squares = 0.0
    ones = (order - 2) * (order - 1) // 2  # where the products with the constant begin
    own = (order - 1) * order // 2 + order - 2  # the intercept times the constant
    weighted = len(weights) > 0
    entry = first
    while entry < last:
        stop = min(entry + _PART, last)
        part[:] = 0
        # Four entries a turn: the sums are then loaded and stored once for four of them.
        while entry + 4 <= stop:
            m0, m1 = moments[indices[entry]], moments[indices[entry + 1]]
            m2, m3 = moments[indices[entry + 2]], moments[indices[entry + 3]]
            y0, y1 = values[entry] - shift, values[entry + 1] - shift
            y2, y3 = values[entry + 2] - shift, values[entry + 3] - shift
            if weighted:
                u0, u1, u2, u3 = weights[entry], weights[entry + 1], weights[entry + 2], weights[entry + 3]
                for b in range(size):
                    part[b] += (u0 * m0[b] + u1 * m1[b]) + (u2 * m2[b] + u3 * m3[b])
                squares += m0[ones + order - 2] * u0 * y0 * y0 + m1[ones + order - 2] * u1 * y1 * y1
                squares += m2[ones + order - 2] * u2 * y2 * y2 + m3[ones + order - 2] * u3 * y3 * y3
                y0, y1, y2, y3 = u0 * y0, u1 * y1, u2 * y2, u3 * y3
            else:
                for b in range(size):
                    part[b] += (m0[b] + m1[b]) + (m2[b] + m3[b])
                squares += m0[ones + order - 2] * y0 * y0 + m1[ones + order - 2] * y1 * y1
                squares += m2[ones + order - 2] * y2 * y2 + m3[ones + order - 2] * y3 * y3
            for a in range(order - 1):
                right[a] += (y0 * m0[ones + a] + y1 * m1[ones + a]) + (y2 * m2[ones + a] + y3 * m3[ones + a])
            right[order - 1] += y0 * m0[own] + y1 * m1[own] + y2 * m2[own] + y3 * m3[own]
            entry += 4
        while entry < stop:
            m0 = moments[indices[entry]]
            y0 = values[entry] - shift
            if weighted:
                u0 = weights[entry]
                for b in range(size):
                    part[b] += u0 * m0[b]
                squares += u0 * m0[ones + order - 2] * y0 * y0
                y0 = u0 * y0
            else:
                for b in range(size):
                    part[b] += m0[b]
                squares += m0[ones + order - 2] * y0 * y0
            for a in range(order - 1):
                right[a] += y0 * m0[ones + a]
            right[order - 1] += y0 * m0[own]
            entry += 1
        for b in range(size):
            sums[b] += part[b]
    return squares


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def accumulate_diagonal(first, last, indices, values, weights, shift, moments, part, sums, right):  # type: ignore[no-untyped-def]
    """The same from means and variances of independent numbers, see :func:`diagonal_moments`."""
    order = len(right)
    sums[:] = 0
    right[:] = 0
    squares = 0.0
    weighted = len(weights) > 0
    for entry in range(first, last):
        h = moments[indices[entry]]
        y = values[entry] - shift
        u = weights[entry] if weighted else 1.0
        position = 0
        for a in range(order):
            scaled = u * h[a]
            for b in range(a + 1):
                sums[position + b] += scaled * h[b]
            position += a + 1
            sums[position - 1] += u * h[order + a]
        root = h[order - 2]
        squares += u * root * root * y * y
        for a in range(order):
            right[a] += u * y * root * h[a]
    return squares


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def factor(sums, tau, scale, factors, intercept, lower, diagonal):  # type: ignore[no-untyped-def]
    """Cholesky factors of the posterior precisions of several rows at once, and the diagonals of the precisions.

    The diagonal of ``lower`` holds the reciprocals of the pivots. Its order is even: rows that are not there are those
    of the identity, which is also what an intercept gets that the model does not have.
    """
    d, order = len(factors) + 1, len(lower)
    taus = load(tau, (0,))
    for a in range(d):
        start = a * (a + 1) // 2
        for b in range(a + 1):
            store(lower, (a, b, 0), taus * load(sums, (start + b, 0)))
        for lane in range(LANES):
            lower[a, a, lane] += scale[lane] * factors[a] if a < d - 1 else intercept
    for a in range(d if intercept >= 0 else d - 1, order):
        lower[a, :a] = 0.0
        lower[a, a] = 1.0
    for a in range(order):
        store(diagonal, (a, 0), load(lower, (a, a, 0)))
    # Two rows and two columns at a time: each vector that is loaded then serves two products.
    for a in range(0, order, 2):
        for b in range(0, a, 2):
            s00, s01 = load(lower, (a, b, 0)), load(lower, (a, b + 1, 0))
            s10, s11 = load(lower, (a + 1, b, 0)), load(lower, (a + 1, b + 1, 0))
            for c in range(b):
                x0, x1 = load(lower, (a, c, 0)), load(lower, (a + 1, c, 0))
                y0, y1 = load(lower, (b, c, 0)), load(lower, (b + 1, c, 0))
                s00, s01, s10, s11 = s00 - x0 * y0, s01 - x0 * y1, s10 - x1 * y0, s11 - x1 * y1
            _finish(lower, b, s00, s01, s10, s11, lower, a)
        s00, s10, s11 = load(lower, (a, a, 0)), load(lower, (a + 1, a, 0)), load(lower, (a + 1, a + 1, 0))
        for c in range(a):
            x0, x1 = load(lower, (a, c, 0)), load(lower, (a + 1, c, 0))
            s00, s10, s11 = s00 - x0 * x0, s10 - x1 * x0, s11 - x1 * x1
        store(lower, (a, a, 0), s00)
        _reciprocal_root(lower[a, a], diagonal[a], d)
        s10 = s10 * load(lower, (a, a, 0))
        store(lower, (a + 1, a, 0), s10)
        store(lower, (a + 1, a + 1, 0), s11 - s10 * s10)
        _reciprocal_root(lower[a + 1, a + 1], diagonal[a + 1], d)


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _finish(lower, b, s00, s01, s10, s11, out, a):  # type: ignore[no-untyped-def]
    """Divide two rows of what is left of two columns by the pivots of these, into rows a and a + 1 of ``out``."""
    first, between, second = load(lower, (b, b, 0)), load(lower, (b + 1, b, 0)), load(lower, (b + 1, b + 1, 0))
    s00, s10 = s00 * first, s10 * first
    store(out, (a, b, 0), s00)
    store(out, (a, b + 1, 0), (s01 - s00 * between) * second)
    store(out, (a + 1, b, 0), s10)
    store(out, (a + 1, b + 1, 0), (s11 - s10 * between) * second)


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _reciprocal_root(pivots, diagonal, d):  # type: ignore[no-untyped-def]
    """One over the roots of pivots. Priors are positive: a pivot can only fail by round-off."""
    for lane in range(LANES):
        pivots[lane] = 1.0 / np.sqrt(max(pivots[lane], d * np.finfo(np.float64).eps * diagonal[lane]))


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def invert(lower, d, intercept, inverse, covariance, logdet):  # type: ignore[no-untyped-def]
    """Packed covariances from Cholesky factors of the precisions, and their log-determinants."""
    order, zero = len(lower), repeated(0.0)
    logdet[:] = 0.0
    for a in range(0, order, 2):
        for lane in range(LANES):
            logdet[lane] += 2.0 * np.log(lower[a, a, lane] * lower[a + 1, a + 1, lane])
        # Row a of `inverse` is column a of L^-1.
        first, second = load(lower, (a, a, 0)), load(lower, (a + 1, a + 1, 0))
        store(inverse, (a, a, 0), first)
        store(inverse, (a, a + 1, 0), zero - load(lower, (a + 1, a, 0)) * first * second)
        store(inverse, (a + 1, a, 0), zero)
        store(inverse, (a + 1, a + 1, 0), second)
        for c in range(a + 2, order, 2):
            s00, s01, s10, s11 = zero, zero, zero, zero
            for m in range(a, c):
                x0, x1 = load(inverse, (a, m, 0)), load(inverse, (a + 1, m, 0))
                y0, y1 = load(lower, (c, m, 0)), load(lower, (c + 1, m, 0))
                s00, s01, s10, s11 = s00 - x0 * y0, s01 - x0 * y1, s10 - x1 * y0, s11 - x1 * y1
            _finish(lower, c, s00, s01, s10, s11, inverse, a)
    for a in range(0, order, 2):
        start, below = a * (a + 1) // 2, (a + 1) * (a + 2) // 2
        for b in range(0, a + 1, 2):
            s00, s01, s10, s11 = zero, zero, zero, zero
            for c in range(a, order):
                x0, x1 = load(inverse, (a, c, 0)), load(inverse, (a + 1, c, 0))
                y0, y1 = load(inverse, (b, c, 0)), load(inverse, (b + 1, c, 0))
                s00, s01, s10, s11 = s00 + x0 * y0, s01 + x0 * y1, s10 + x1 * y0, s11 + x1 * y1
            store(covariance, (start + b, 0), s00)
            if b < a:
                store(covariance, (start + b + 1, 0), s01)
            store(covariance, (below + b, 0), s10)
            store(covariance, (below + b + 1, 0), s11)
    if intercept < 0:
        covariance[d * (d + 1) // 2 - 1] = 0.0


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def invert_diagonal(diagonal, intercept, covariance, logdet):  # type: ignore[no-untyped-def]
    """The same for numbers that are taken as independent: zero off the diagonal."""
    d = len(diagonal)
    covariance[:] = 0.0
    logdet[:] = 0.0
    for a in range(d):
        for lane in range(LANES):
            logdet[lane] -= np.log(diagonal[a, lane])
            covariance[(a + 1) * (a + 2) // 2 - 1, lane] = 1.0 / diagonal[a, lane]
    if intercept < 0:
        covariance[d * (d + 1) // 2 - 1] = 0.0


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def solve(lower, sums, right, tau, intercept, mean):  # type: ignore[no-untyped-def]
    """Posterior means from Cholesky factors of the precisions."""
    d = len(mean)
    start = d * (d + 1) // 2
    taus = load(tau, (0,))
    for a in range(d):
        store(mean, (a, 0), taus * (load(right, (a, 0)) - load(sums, (start + a, 0))))
    if intercept < 0:
        mean[d - 1] = 0.0
    for a in range(d):
        left = load(mean, (a, 0))
        for b in range(a):
            left = left - load(lower, (a, b, 0)) * load(mean, (b, 0))
        store(mean, (a, 0), left * load(lower, (a, a, 0)))
    for a in range(d - 1, -1, -1):
        found = load(mean, (a, 0)) * load(lower, (a, a, 0))
        store(mean, (a, 0), found)
        for b in range(a):
            store(mean, (b, 0), load(mean, (b, 0)) - load(lower, (a, b, 0)) * found)


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def expect(sums, right, mean, covariance, squares, residual, weight):  # type: ignore[no-untyped-def]
    """Turn sums of squares of the entries into those expected of the residuals; residuals of the mean; weights."""
    d, half = len(mean), repeated(0.5)
    start = (d - 1) * d // 2  # where the products with the constant begin
    ends = d * (d + 1) // 2  # where those with the intercepts of the columns do
    # Half of what is added: a packed matrix has what is off the diagonal once.
    added = half * load(sums, (ends + d, 0)) - load(right, (d, 0))
    left = load(right, (d - 1, 0)) - load(sums, (ends + d - 1, 0))
    for a in range(d):
        own, position = load(mean, (a, 0)), a * (a + 1) // 2
        product, variance = repeated(0.0), repeated(0.0)
        for b in range(a):
            product = product + load(sums, (position + b, 0)) * load(mean, (b, 0))
            variance = variance + load(sums, (position + b, 0)) * load(covariance, (position + b, 0))
        position += a
        of_own = load(sums, (position, 0))
        added = added + own * (product + half * of_own * own + load(sums, (ends + a, 0)) - load(right, (a, 0)))
        added = added + variance + half * of_own * load(covariance, (position, 0))
        left = left - load(sums, (start + a, 0)) * own
    store(squares, (0,), load(squares, (0,)) + added + added)
    store(residual, (0,), left)
    store(weight, (0,), load(sums, (start + d - 1, 0)))


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _rooms(d):  # type: ignore[no-untyped-def]
    """Room for the factors of precisions, for their inverses and for packed covariances, all of even order."""
    order = d + d % 2
    shape = (order, order, LANES)
    return np.empty(shape), np.empty(shape), np.empty((order * (order + 1) // 2, LANES))


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _solve_group(  # type: ignore[no-untyped-def]
    sums, right, tau, scale, factors, intercept, diagonal, lower, room, spread, solution, logdet
):
    """Posteriors of the rows side by side; ``room`` is of the shape of ``lower``."""
    factor(sums, tau, scale, factors, intercept, lower, room[0])
    if diagonal:
        invert_diagonal(room[0, : len(solution)], intercept, spread, logdet)
    else:
        invert(lower, len(solution), intercept, room, spread, logdet)
    solve(lower, sums, right, tau, intercept, solution)


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _put(i, lane, solution, spread, mean, covariance):  # type: ignore[no-untyped-def]
    """Mean and covariance, or variances, of one row to where they belong."""
    d = mean.shape[1]
    for a in range(d):
        mean[i, a] = solution[a, lane]
    if covariance.shape[1] == d:
        for a in range(d):
            covariance[i, a] = spread[(a + 1) * (a + 2) // 2 - 1, lane]
    else:
        for b in range(covariance.shape[1]):
            covariance[i, b] = spread[b, lane]


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def posteriors_of_rows(  # type: ignore[no-untyped-def]
    start,
    stop,
    rows,
    indptr,
    indices,
    values,
    weights,
    shift,
    moments,
    independent,
    tau,
    scale,
    factors,
    intercept,
    mean,
    covariance,
    logdet,
    squares,
    residual,
    weight,
):
    """Posteriors of rows from their entries."""
    d = mean.shape[1]
    diagonal = covariance.shape[1] == d
    size = d * (d + 1) // 2
    own, part, towards = np.empty(size + d + 1), np.empty(size + d + 1, moments.dtype), np.empty(d + 1)
    # Eight rows are solved side by side: a vector instruction then does one operation for all of them.
    sums, right = np.zeros((size + d + 1, LANES)), np.zeros((d + 1, LANES))
    lower, room, spread = _rooms(d)
    solution = np.empty((d, LANES))
    scalars = np.zeros((6, LANES))
    own_tau, own_scale, own_logdet, own_squares, own_residual, own_weight = scalars
    for group in range(start, stop, LANES):
        n_rows = min(LANES, stop - group)
        for lane in range(LANES):
            # The last group is filled up with copies of its last row.
            i = rows[group + min(lane, n_rows - 1)]
            if lane < n_rows:
                first, last = indptr[i], indptr[i + 1]
                if independent:
                    total = accumulate_diagonal(
                        first, last, indices, values, weights, shift, moments, part, own, towards
                    )
                else:
                    total = accumulate(first, last, indices, values, weights, shift, moments, part, own, towards)
            sums[:, lane] = own
            right[:, lane] = towards
            own_squares[lane] = total
            own_tau[lane] = tau[i]
            own_scale[lane] = scale[i]
        _solve_group(
            sums, right, own_tau, own_scale, factors, intercept, diagonal, lower, room, spread, solution, own_logdet
        )
        expect(sums, right, solution, spread, own_squares, own_residual, own_weight)
        for lane in range(n_rows):
            i = rows[group + lane]
            _put(i, lane, solution, spread, mean, covariance)
            logdet[i] = own_logdet[lane]
            squares[i] = own_squares[lane]
            residual[i] = own_residual[lane]
            weight[i] = own_weight[lane]


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def accumulate_rows(  # type: ignore[no-untyped-def]
    start, stop, rows, indptr, indices, values, weights, shift, moments, independent, sums, right, squares
):
    """Sums of rows over their entries."""
    part = np.empty(sums.shape[1], moments.dtype)
    for position in range(start, stop):
        i = rows[position]
        first, last = indptr[i], indptr[i + 1]
        own, towards = sums[position], right[position]
        if independent:
            total = accumulate_diagonal(first, last, indices, values, weights, shift, moments, part, own, towards)
        else:
            total = accumulate(first, last, indices, values, weights, shift, moments, part, own, towards)
        squares[position] = total


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def posteriors_of_sums(  # type: ignore[no-untyped-def]
    start, stop, all_sums, all_right, tau, scale, factors, intercept, all_lower, mean, covariance, logdet
):
    """Posteriors of rows from their sums."""
    d = mean.shape[1]
    size = d * (d + 1) // 2
    shared, diagonal = len(all_sums) == 1, covariance.shape[1] == d
    sums, right = np.zeros((size + d + 1, LANES)), np.zeros((d + 1, LANES))
    lower, room, spread = _rooms(d)
    solution = np.empty((d, LANES))
    scalars = np.zeros((3, LANES))
    own_tau, own_scale, own_logdet = scalars
    for group in range(start, stop, LANES):
        n_rows = min(LANES, stop - group)
        for lane in range(LANES):
            i = group + min(lane, n_rows - 1)
            sums[:, lane] = all_sums[0 if shared else i]
            right[:, lane] = all_right[i]
            own_tau[lane] = tau[i]
            own_scale[lane] = scale[i]
        _solve_group(
            sums, right, own_tau, own_scale, factors, intercept, diagonal, lower, room, spread, solution, own_logdet
        )
        for lane in range(n_rows):
            i = group + lane
            _put(i, lane, solution, spread, mean, covariance)
            for a in range(d):
                for b in range(a):
                    all_lower[i, a, b] = lower[a, b, lane]
                all_lower[i, a, a] = 1.0 / lower[a, a, lane]
            logdet[i] = own_logdet[lane]


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def expected_squares(start, stop, all_sums, all_right, total, mean, covariance, squares, residual, weight):  # type: ignore[no-untyped-def]
    """Expected squares of rows from their sums."""
    d = mean.shape[1]
    size = d * (d + 1) // 2
    sums, right = np.zeros((size + d + 1, LANES)), np.zeros((d + 1, LANES))
    solution, spread = np.empty((d, LANES)), np.zeros((size, LANES))
    scalars = np.zeros((3, LANES))
    own_squares, own_residual, own_weight = scalars
    for group in range(start, stop, LANES):
        n_rows = min(LANES, stop - group)
        for lane in range(LANES):
            i = group + min(lane, n_rows - 1)
            sums[:, lane] = all_sums[i]
            right[:, lane] = all_right[i]
            own_squares[lane] = total[i]
            solution[:, lane] = mean[i]
            if covariance.shape[1] == d:
                for a in range(d):
                    spread[(a + 1) * (a + 2) // 2 - 1, lane] = covariance[i, a]
            else:
                spread[:, lane] = covariance[i]
        expect(sums, right, solution, spread, own_squares, own_residual, own_weight)
        for lane in range(n_rows):
            squares[group + lane] = own_squares[lane]
            residual[group + lane] = own_residual[lane]
            weight[group + lane] = own_weight[lane]


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def second_moments(start, stop, mean, covariance, weights, out):  # type: ignore[no-untyped-def]
    """Packed second moments."""
    k = mean.shape[1] - 1
    common = len(covariance) == 1
    for i in range(start, stop):
        x, row, weight = mean[i], out[i], weights[i]
        spread = covariance[0] if common else covariance[i]
        position = 0
        for a in range(k):
            for b in range(a + 1):
                row[position] = weight * (x[a] * x[b] + spread[position])
                position += 1
        own = position
        for a in range(k):
            row[position] = weight * x[a]
            position += 1
        row[position] = weight
        position += 1
        for a in range(k):
            row[position] = weight * (x[a] * x[k] + spread[own + a])
            position += 1
        row[position] = weight * x[k]
        row[position + 1] = weight * (x[k] * x[k] + spread[own + k])


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def entry_squares(start, stop, indptr, indices, values, shift, X, row_moments, W, column_moments, out):  # type: ignore[no-untyped-def]
    """Expected squared residuals of entries."""
    k, size = X.shape[1] - 1, row_moments.shape[1]
    for i in range(start, stop):
        x, own = X[i], row_moments[i]
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            w, other = W[j], column_moments[j]
            predicted = x[k] + w[k]
            for a in range(k):
                predicted += x[a] * w[a]
            residual = values[entry] - shift - predicted
            spread = 0.0
            for b in range(size):
                spread += own[b] * other[b]
            out[entry] = residual * residual + spread

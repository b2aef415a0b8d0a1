"""The compiled loops behind ``row_posteriors``; read that first.

The small systems of eight rows are solved side by side, so that one vector instruction serves all of them: their arrays
end in an axis of ``LANES``.
"""

from __future__ import annotations

import numba
import numpy as np

from lgmd.linalg.row_systems import FASTMATH
from lgmd.linalg.vectors import VECTOR_BYTES, add_to, load, repeated, store

__all__ = [
    "accumulate_rows",
    "entry_squares",
    "expected_squares",
    "posteriors_of_rows",
    "posteriors_of_sums",
    "second_moments",
]

LANES = VECTOR_BYTES // 8

# Two vectors.
SLAB_BYTES = 2 * VECTOR_BYTES

# Entries that are summed in the precision of the storage before double precision takes over.
_PART = 32

# Columns whose moments are looked at at a time: with fewer, more of a slab stays in the cache of a core; with more, the
# rows have more entries to sum at a time.
_RUN = 16384

# Numbers that a thread may keep of sums over entries: the more rows at a time, the fewer passes over the moments, which
# cost little where the sums are this many times as large.
_LEAST_ROOM, _MOST_ROOM = 2**16, 2**21
_TIMES_THE_MOMENTS = 8


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _add_moments(first, last, indices, weights, moments, slab, sums, i):  # type: ignore[no-untyped-def]
    """Add what some entries of a row have in a slab of ``moments`` to row i of the sums."""
    number, width = moments.dtype.type, moments.shape[2]
    begin, half = slab * width, width // 2
    weighted = len(weights) > 0
    for start in range(first, last, _PART):
        left, right, weight = repeated(number(0)), repeated(number(0)), repeated(number(1))
        for entry in range(start, min(start + _PART, last)):
            column = indices[entry]
            if weighted:
                weight = repeated(number(weights[entry]))
            left = left + weight * load(moments, (slab, column, 0))
            right = right + weight * load(moments, (slab, column, half))
        add_to(sums, (i, begin), left)
        add_to(sums, (i, begin + half), right)


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _add_products(  # type: ignore[no-untyped-def]
    first, last, indices, values, weights, shift, moments, slab, sums, i, products
):
    """The same, and what entries have there times their values to the products."""
    number, width = moments.dtype.type, moments.shape[2]
    begin, half = slab * width, width // 2
    weighted = len(weights) > 0
    for start in range(first, last, _PART):
        left, right, weight = repeated(number(0)), repeated(number(0)), number(1)
        left_product, right_product = repeated(number(0)), repeated(number(0))
        for entry in range(start, min(start + _PART, last)):
            column = indices[entry]
            if weighted:
                weight = number(weights[entry])
            value = repeated(number(values[entry] - shift))
            own_left = repeated(weight) * load(moments, (slab, column, 0))
            own_right = repeated(weight) * load(moments, (slab, column, half))
            left, left_product = left + own_left, left_product + value * own_left
            right, right_product = right + own_right, right_product + value * own_right
        add_to(sums, (i, begin), left)
        add_to(sums, (i, begin + half), right)
        add_to(products, (0,), left_product)
        add_to(products, (half,), right_product)


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _sum_of_squares(first, last, indices, values, weights, shift, moments, slab, constant):  # type: ignore[no-untyped-def]
    """Weighted sum of squares of some entries of a row."""
    total = 0.0
    for entry in range(first, last):
        y = values[entry] - shift
        weight = weights[entry] if len(weights) > 0 else 1
        total += moments[slab, indices[entry], constant] * weight * y * y
    return total


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _accumulate_slabs(rows, indptr, indices, values, weights, shift, moments, sums, right, squares):  # type: ignore[no-untyped-def]
    """Add up the entries of rows: moments, products with the values, and weighted squares of these.

    Of ``moments`` a tile at a time, a slab of a run of columns, so that what the rows share of it stays in the cache.
    Sums of a few entries in its precision are what makes this fast; ``sums`` gathers them in double precision.
    """
    n_slabs, n_columns, width = moments.shape
    order = right.shape[1]
    ones = (order - 2) * (order - 1) // 2  # where the products with the constant begin
    constant = ones + order - 2
    own = (order - 1) * order // 2 + order - 2  # the intercept times the constant
    sums[: len(rows)] = 0.0
    right[: len(rows)] = 0.0
    squares[: len(rows)] = 0.0
    products = np.empty(width)
    firsts, lasts = indptr[rows], indptr[rows + 1]
    ends = np.empty_like(lasts)
    for run in range(0, n_columns, _RUN):
        if run + _RUN >= n_columns:
            ends[:] = lasts
        else:
            for i in range(len(rows)):
                end = firsts[i]
                while end < lasts[i] and indices[end] < run + _RUN:
                    end += 1
                ends[i] = end
        for slab in range(n_slabs):
            begin, stop = slab * width, (slab + 1) * width
            for i in range(len(rows)):
                first, last = firsts[i], ends[i]
                if (begin > constant or stop <= ones) and not begin <= own < stop:
                    _add_moments(first, last, indices, weights, moments, slab, sums, i)
                    continue
                products[:] = 0.0
                _add_products(first, last, indices, values, weights, shift, moments, slab, sums, i, products)
                for position in range(max(begin, ones), min(stop, constant + 1)):
                    right[i, position - ones] += products[position - begin]
                if begin <= own < stop:
                    right[i, order - 1] += products[own - begin]
                if begin <= constant < stop:
                    squares[i] += _sum_of_squares(
                        first, last, indices, values, weights, shift, moments, slab, constant - begin
                    )
        firsts[:] = ends


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def _accumulate_diagonal(first, last, indices, values, weights, shift, moments, sums, right):  # type: ignore[no-untyped-def]
    """The same for one row from means and variances of independent numbers, see :func:`diagonal_moments`."""
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
def accumulate(rows, indptr, indices, values, weights, shift, moments, sums, right, squares):  # type: ignore[no-untyped-def]
    """Add up the entries of rows, from either form of ``moments``."""
    if moments.ndim == 2:
        for position, i in enumerate(rows):
            squares[position] = _accumulate_diagonal(
                indptr[i], indptr[i + 1], indices, values, weights, shift, moments, sums[position], right[position]
            )
    else:
        _accumulate_slabs(rows, indptr, indices, values, weights, shift, moments, sums, right, squares)


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
def _side_by_side(rows, first, n_rows, out):  # type: ignore[no-untyped-def]
    """Rows from the first on as columns; the last is repeated where there are no more."""
    for position in range(len(out)):
        for lane in range(LANES):
            out[position, lane] = rows[first + min(lane, n_rows - 1), position]


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
def _rooms_for_sums(n_rows, d, moments):  # type: ignore[no-untyped-def]
    """Room for what rows gather from their entries, as many at a time as pays: all, or an even share."""
    size = (d + 1) * (d + 2) // 2 if moments.ndim == 2 else moments.shape[0] * moments.shape[2]
    room = min(max(_LEAST_ROOM, _TIMES_THE_MOMENTS * moments.size), _MOST_ROOM)
    n_groups = max(1, -(-n_rows // LANES))
    n_rounds = -(-n_groups // max(1, room // (size * LANES)))
    n_rows = -(-n_groups // n_rounds) * LANES
    return np.empty((n_rows, size)), np.empty((n_rows, d + 1)), np.empty(n_rows)


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
    all_sums, all_right, all_squares = _rooms_for_sums(stop - start, d, moments)
    sums, right = np.empty(((d + 1) * (d + 2) // 2, LANES)), np.empty((d + 1, LANES))
    lower, room, spread = _rooms(d)
    solution = np.empty((d, LANES))
    scalars = np.zeros((6, LANES))
    own_tau, own_scale, own_logdet, own_squares, own_residual, own_weight = scalars
    for begin in range(start, stop, len(all_sums)):
        chosen = rows[begin : min(begin + len(all_sums), stop)]
        accumulate(chosen, indptr, indices, values, weights, shift, moments, all_sums, all_right, all_squares)
        for group in range(0, len(chosen), LANES):
            n_rows = min(LANES, len(chosen) - group)
            _side_by_side(all_sums, group, n_rows, sums)
            _side_by_side(all_right, group, n_rows, right)
            for lane in range(LANES):
                position = group + min(lane, n_rows - 1)
                own_squares[lane] = all_squares[position]
                own_tau[lane] = tau[chosen[position]]
                own_scale[lane] = scale[chosen[position]]
            _solve_group(
                sums, right, own_tau, own_scale, factors, intercept, diagonal, lower, room, spread, solution, own_logdet
            )
            expect(sums, right, solution, spread, own_squares, own_residual, own_weight)
            for lane in range(n_rows):
                i = chosen[group + lane]
                _put(i, lane, solution, spread, mean, covariance)
                logdet[i] = own_logdet[lane]
                squares[i] = own_squares[lane]
                residual[i] = own_residual[lane]
                weight[i] = own_weight[lane]


@numba.njit(nogil=True, fastmath=FASTMATH, cache=True)
def accumulate_rows(  # type: ignore[no-untyped-def]
    start, stop, rows, indptr, indices, values, weights, shift, moments, sums, right, squares
):
    """Sums of rows over their entries."""
    size = sums.shape[1]
    some_sums, some_right, some_squares = _rooms_for_sums(stop - start, right.shape[1] - 1, moments)
    for begin in range(start, stop, len(some_sums)):
        end = min(begin + len(some_sums), stop)
        accumulate(
            rows[begin:end], indptr, indices, values, weights, shift, moments, some_sums, some_right, some_squares
        )
        sums[begin:end] = some_sums[: end - begin, :size]
        right[begin:end] = some_right[: end - begin]
        squares[begin:end] = some_squares[: end - begin]


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
    """Packed second moments in slabs."""
    k = mean.shape[1] - 1
    n_slabs, _, width = out.shape
    common = len(covariance) == 1
    # Some rows at a time, so that every slab is written in long runs.
    rows = np.zeros((_PART, n_slabs * width), out.dtype)
    for begin in range(start, stop, _PART):
        n_rows = min(_PART, stop - begin)
        for i in range(n_rows):
            x, row, weight = mean[begin + i], rows[i], weights[begin + i]
            spread = covariance[0] if common else covariance[begin + i]
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
        for slab in range(n_slabs):
            for i in range(n_rows):
                for b in range(width):
                    out[slab, begin + i, b] = rows[i, slab * width + b]


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

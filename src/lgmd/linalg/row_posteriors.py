r"""Gaussian posteriors of the rows of a table, one small matrix a row, compiled.

Row i has the unknowns :math:`z_i = (x_i, a_i)`, its factors and its intercept; the columns are known by the second
moments of :math:`h_j = (w_j, 1, b_j)`. With :math:`\hat z_i = (x_i, a_i, 1)` an entry is expected to be
:math:`\hat z_i^T h_j`, so that all a row needs of its entries is

.. math:: S_i = \sum_{j \in O_i} u_{ij}\,E[h_j h_j^T],\qquad r_i = \sum_{j \in O_i} u_{ij}\,y_{ij}\,E[h_j]

with weights u. Its posterior precision is the leading block of :math:`\tau_i S_i` plus the prior's, and the expected
sum of squared residuals is :math:`\sum_j u_{ij} y_{ij}^2 - 2 \hat z_i^T r_i + \langle E[\hat z_i \hat z_i^T], S_i
\rangle`: no second pass over the entries.

Symmetric matrices are packed: the lower triangle, row by row. Sums are kept in double precision whatever the storage.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lgmd._typing import FloatArray, IntArray
from lgmd.linalg import row_kernels
from lgmd.linalg.packed import packed_size
from lgmd.linalg.row_systems import Entries
from lgmd.linalg.threads import available_threads, even_blocks, map_blocks

__all__ = [
    "RowPosteriors",
    "RowPrior",
    "RowSums",
    "accumulate_rows",
    "diagonal_moments",
    "entry_squares",
    "expected_squares",
    "posteriors_of_rows",
    "posteriors_of_sums",
    "second_moments",
]

# How many times more work than solving the systems of rows it may be to sum their entries before lanes are not filled.
_WORTH_FILLING = 8

# Enough for threads to end at about the same time.
_BLOCKS_A_THREAD = 4


class RowPrior(NamedTuple):
    """Prior precisions of the unknowns of each row."""

    scale: FloatArray
    """(n,), multiplies the precisions of the factors."""
    factors: FloatArray
    """(k,), precision of each factor."""
    intercept: float
    """Precision of the intercept; negative for a model without one."""


class RowSums(NamedTuple):
    """What rows have gathered from their entries."""

    moments: FloatArray
    """``S``, packed, (rows, (k + 2)(k + 3) / 2), or one for all rows."""
    right: FloatArray
    """``r``, (rows, k + 2)."""
    squares: FloatArray
    """Weighted sum of squares of the entries, (rows,)."""


class RowPosteriors(NamedTuple):
    """Posterior of each row."""

    mean: FloatArray
    """(rows, k + 1): factors, then intercept."""
    covariance: FloatArray
    """Packed, (rows, (k + 1)(k + 2) / 2)."""
    logdet: FloatArray
    """Log-determinant of the covariance, (rows,)."""
    squares: FloatArray
    """Expected weighted sum of squared residuals, (rows,)."""
    residual: FloatArray
    """Weighted sum of the residuals of the mean, (rows,)."""
    weight: FloatArray
    """Sum of the weights, (rows,)."""


def second_moments(
    mean: FloatArray, covariance: FloatArray, weights: FloatArray, dtype: np.dtype[Any] | None = None
) -> FloatArray:
    """Weighted ``E[h h']`` of each row, ``h = (factors, 1, intercept)``, packed.

    Parameters
    ----------
    mean : ndarray of shape (n, k + 1)
    covariance : ndarray of shape (n or 1, (k + 1)(k + 2) / 2)
        Packed; one for all rows, or one a row.
    weights : ndarray of shape (n,)
    dtype : dtype, optional
        Of the result; by default that of the mean.

    Returns
    -------
    ndarray of shape (slabs, n, width)
        The (k + 2)(k + 3) / 2 numbers of a row and zeros after them, cut into slabs: sums over rows in any order find
        the next row of a slab in the cache.
    """
    (n, d), dtype = mean.shape, np.dtype(mean.dtype if dtype is None else dtype)
    width = row_kernels.SLAB_BYTES // dtype.itemsize
    out = np.empty((-(-packed_size(d + 1) // width), n, width), dtype)
    mean, covariance, weights = (array.astype(dtype, copy=False) for array in (mean, covariance, weights))
    map_blocks(
        lambda start, stop: row_kernels.second_moments(start, stop, mean, covariance, weights, out),
        even_blocks(n),
        work=out.size,
    )
    return out


def diagonal_moments(
    mean: FloatArray, variances: FloatArray, weights: FloatArray, dtype: np.dtype[Any] | None = None
) -> FloatArray:
    """What stands for :func:`second_moments` where all numbers are independent.

    For ``h = (factors, 1, intercept)`` the means times the root of the weight, then the variances times the weight.

    Returns
    -------
    ndarray of shape (n, 2 (k + 2))
    """
    n = len(mean)
    dtype = mean.dtype if dtype is None else dtype
    mean, variances = mean.astype(np.float64), variances.astype(np.float64)
    ones, zeros = np.ones((n, 1), mean.dtype), np.zeros((n, 1), mean.dtype)
    means = np.hstack([mean[:, :-1], ones, mean[:, -1:]]) * np.sqrt(weights)[:, None]
    spread = np.hstack([variances[:, :-1], zeros, variances[:, -1:]]) * weights[:, None]
    return np.ascontiguousarray(np.hstack([means, spread]), dtype=dtype)


def posteriors_of_rows(
    rows: IntArray,
    entries: Entries,
    weights: FloatArray,
    shift: float,
    moments: FloatArray,
    tau: FloatArray,
    prior: RowPrior,
    out: RowPosteriors,
) -> None:
    """Posteriors of ``rows``, one by one, into ``out``; nothing else is stored.

    Parameters
    ----------
    rows : ndarray of int
        Which rows, ascending.
    entries : Entries
        The observed entries in row order.
    weights : ndarray of shape (n_entries,) or (0,)
        Weight of each entry; empty for none.
    shift : float
        Taken off every entry.
    moments : ndarray of shape (slabs, n_columns, width) or (n_columns, 2 (k + 2))
        From :func:`second_moments`, or from :func:`diagonal_moments` if all numbers of the columns are independent.
    tau : ndarray of shape (n_rows,)
        Noise precision of each row.
    prior : RowPrior
    out : RowPosteriors
        Written at ``rows``, untouched elsewhere. Where its covariance has k + 1 columns, the numbers of a row are taken
        as independent and it holds their variances.
    """
    d, blocks = out.mean.shape[1], _blocks(rows, entries)
    # Entries are summed row by row: few long rows are better left to as many threads as there are.
    solving_counts = _WORTH_FILLING * len(rows) * d**3 >= len(entries.values) * packed_size(d)
    map_blocks(
        lambda start, stop: row_kernels.posteriors_of_rows(
            start,
            stop,
            rows,
            *entries[:3],
            weights,
            moments.dtype.type(shift),
            moments,
            tau,
            prior.scale,
            prior.factors,
            prior.intercept,
            *out,
        ),
        _in_lanes(blocks) if solving_counts else blocks,
        work=_work(entries, d),
    )


def accumulate_rows(
    rows: IntArray,
    entries: Entries,
    weights: FloatArray,
    shift: float,
    moments: FloatArray,
    k: int,
) -> RowSums:
    """What ``rows`` need of their entries; parameters as in :func:`posteriors_of_rows`."""
    m = len(rows)
    out = RowSums(np.empty((m, packed_size(k + 2))), np.empty((m, k + 2)), np.empty(m))
    map_blocks(
        lambda start, stop: row_kernels.accumulate_rows(
            start,
            stop,
            rows,
            *entries[:3],
            weights,
            moments.dtype.type(shift),
            moments,
            *out,
        ),
        _blocks(rows, entries),
        work=_work(entries, k + 1),
    )
    return out


def posteriors_of_sums(
    sums: RowSums, tau: FloatArray, prior: RowPrior, *, diagonal: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Posteriors of rows as if nothing tied them to each other.

    Returns
    -------
    mean : ndarray of shape (rows, k + 1)
    covariance : ndarray of shape (rows, (k + 1)(k + 2) / 2), or (rows, k + 1) if ``diagonal``
    logdet : ndarray of shape (rows,)
    lower : ndarray of shape (rows, k + 1, k + 1)
        Cholesky factors of the precisions.
    """
    n, d = len(sums.right), sums.right.shape[1] - 1
    mean, covariance = np.empty((n, d)), np.empty((n, d if diagonal else packed_size(d)))
    logdet, lower = np.empty(n), np.zeros((n, d, d))
    map_blocks(
        lambda start, stop: row_kernels.posteriors_of_sums(
            start,
            stop,
            sums.moments,
            sums.right,
            tau,
            prior.scale,
            prior.factors,
            prior.intercept,
            lower,
            mean,
            covariance,
            logdet,
        ),
        _in_lanes(even_blocks(n)),
        work=n * d**3,
    )
    return mean, covariance, logdet, lower


def expected_squares(
    sums: RowSums, mean: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The last three fields of :class:`RowPosteriors` for given means and covariances."""
    n = len(mean)
    squares, residual, weight = np.empty(n), np.empty(n), np.empty(n)
    map_blocks(
        lambda start, stop: row_kernels.expected_squares(
            start, stop, sums.moments, sums.right, sums.squares, mean, covariance, squares, residual, weight
        ),
        _in_lanes(even_blocks(n)),
        work=n * sums.moments.shape[1],
    )
    return squares, residual, weight


def entry_squares(
    entries: Entries,
    shift: float,
    X: FloatArray,
    row_features: FloatArray,
    W: FloatArray,
    column_features: FloatArray,
) -> FloatArray:
    """Expected squared residual of every entry, in row order.

    Parameters
    ----------
    entries : Entries
    shift : float
        Taken off every entry.
    X, W : ndarray of shape (n, k + 1) and (p, k + 1)
        Means of factors and intercepts.
    row_features, column_features : ndarray of shape (n, m) and (p, m)
        Their products are the variances of the predictions.
    """
    out = np.empty(len(entries.values))
    map_blocks(
        lambda start, stop: row_kernels.entry_squares(
            start,
            stop,
            entries.indptr,
            entries.indices,
            entries.values,
            entries.values.dtype.type(shift),
            X,
            row_features,
            W,
            column_features,
            out,
        ),
        entries.blocks,
        work=len(out) * row_features.shape[1],
    )
    return out


def _blocks(rows: IntArray, entries: Entries) -> IntArray:
    """Boundaries of the runs of ``rows`` that threads share out: few, since each is a pass over the moments."""
    blocks = entries.blocks if len(rows) == len(entries.indptr) - 1 else even_blocks(len(rows))
    joined = max(1, (len(blocks) - 1) // (_BLOCKS_A_THREAD * available_threads()))
    return np.append(blocks[:-1:joined], blocks[-1])


def _work(entries: Entries, d: int) -> float:
    """About how many operations the posteriors of all rows take."""
    return float(len(entries.values) * packed_size(d) + len(entries.indptr) * d**3)


def _in_lanes(blocks: IntArray) -> IntArray:
    """The same blocks with boundaries at multiples of ``LANES``, since a block pays for full lanes in any case."""
    return np.unique(np.append(blocks[:-1] // row_kernels.LANES * row_kernels.LANES, blocks[-1]))

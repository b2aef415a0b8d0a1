"""Tables of any size as a few hundred cells a side: block means of the data, the fit and its error bars.

No array of the size of the table is made. A block's mean of ``X W'`` is the product of the blocks' mean factors, and
the predictive variance is a product of the same kind, so that both are exact.
"""

from __future__ import annotations

import numpy as np

from lgmd._typing import FloatArray
from lgmd.factors import TablePosterior
from lgmd.factors.posterior import column_features, row_features
from lgmd.observed import Observed
from lgmd.report.axes import Axis
from lgmd.report.decomposition import Decomposition

__all__ = ["block_error_bars", "block_fit", "block_table"]

# Observed entries sorted into blocks at a time.
_ENTRIES = 4_000_000


def block_table(observed: Observed, rows: Axis, columns: Axis) -> tuple[FloatArray, FloatArray]:
    """Mean of the observed entries of each block, NaN where there is none, and the share that is observed."""
    entries = observed.entries()
    shape = (rows.n_blocks, columns.n_blocks)
    sums, counts = np.zeros(shape[0] * shape[1]), np.zeros(shape[0] * shape[1])
    start, n = 0, len(entries.indptr) - 1
    while start < n:
        stop = int(np.searchsorted(entries.indptr, entries.indptr[start] + _ENTRIES, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        inside = slice(entries.indptr[start], entries.indptr[stop])
        row_blocks = np.repeat(rows.block_of[start:stop], np.diff(entries.indptr[start : stop + 1]))
        cells = row_blocks * shape[1] + columns.block_of[entries.indices[inside]]
        sums += np.bincount(cells, entries.values[inside], minlength=len(sums))
        counts += np.bincount(cells, minlength=len(counts))
        start = stop
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    share = counts.reshape(shape) / np.outer(rows.counts, columns.counts)
    return means.reshape(shape), share


def block_fit(model: Decomposition, rows: Axis, columns: Axis) -> FloatArray:
    """Mean of the fitted table over each block."""
    k = model.X.shape[1]
    left = rows.means(lambda i: np.column_stack([model.X[i], model.row_means[i]]), k + 1)
    right = columns.means(lambda j: np.column_stack([model.W[j], model.column_means[j]]), k + 1)
    table: FloatArray = left[:, :k] @ right[:, :k].T + left[:, k:] + right[:, k] + model.overall
    return table


def block_error_bars(model: Decomposition, rows: Axis, columns: Axis) -> FloatArray | None:
    """Root mean square over each block of the error bars, noise included; None for models without them."""
    posterior = model.posterior
    if posterior is None:
        return None
    left, right = _row_means(posterior, rows), _column_means(posterior, columns)
    scales = np.outer(left[:, -1], right[:, -1]) + posterior.noise.unexplained
    variances = left[:, :-1] @ right[:, :-1].T + posterior.noise.inflation * scales
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)) * model.scale)


def _row_means(posterior: TablePosterior, axis: Axis) -> FloatArray:
    samples, features, noise = posterior.samples, posterior.features, posterior.noise.samples
    width = row_features(samples, features, axis.order[:1]).shape[1] + 1
    return axis.means(lambda i: np.column_stack([row_features(samples, features, i), noise[i]]), width)


def _column_means(posterior: TablePosterior, axis: Axis) -> FloatArray:
    samples, features, noise = posterior.samples, posterior.features, posterior.noise.features
    width = column_features(samples, features, axis.order[:1]).shape[1] + 1
    return axis.means(lambda j: np.column_stack([column_features(samples, features, j), noise[j]]), width)

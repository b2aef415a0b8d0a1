"""Dense and sparse storage of the same table."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array

__all__ = ["as_entries", "dense"]


def dense(values: Any) -> Array:
    """An array with NaN where a sparse table stores nothing."""
    if isinstance(values, np.ndarray):
        return values
    entries = values.tocoo()
    filled = np.full(values.shape, np.nan, dtype=values.dtype)
    filled[entries.coords] = entries.data
    return filled


def as_entries(values: Any) -> Any:
    """Observed entries as a ``coo_array``: in their order if sparse, by rows if dense."""
    if scipy.sparse.issparse(values):
        return scipy.sparse.coo_array(values)
    rows, columns = np.nonzero(~np.isnan(values))
    return scipy.sparse.coo_array((values[rows, columns], (rows, columns)), shape=values.shape)

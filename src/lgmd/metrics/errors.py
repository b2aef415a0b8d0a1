"""Errors of entries: how far an estimated table is from the true one."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lgmd._typing import Array, FloatArray
from lgmd.exceptions import InvalidDataError

__all__ = ["rmse"]


def rmse(truth: ArrayLike, estimate: ArrayLike, where: ArrayLike | None = None) -> float:
    r"""
    Root mean squared error over entries.

    .. math:: \sqrt{\frac{1}{|\Omega|} \sum_{ij \in \Omega} (\hat{Y}_{ij} - Y_{ij})^2}

    where :math:`\Omega` holds the entries that `where` selects and that `truth` knows. With ``where=~mask``
    it is the completion error on hidden entries; with no `where` and the noise-free table, the denoising
    error.

    Parameters
    ----------
    truth : array of shape (n,) or (n, p)
        True values. Entries that are NaN or masked are unknown and not counted.
    estimate : array of the same shape
        Estimated values. Each counted entry must be finite: a gap in an estimate is a failure, not a gap.
    where : boolean array of the same shape, optional
        True for the entries to count. Default: all.

    Returns
    -------
    float
        The error, in the unit of the table.

    Raises
    ------
    InvalidDataError
        If an array is not of real numbers, the shapes differ, no entry is left to count, or a counted entry of the
        estimate is not finite.

    Examples
    --------
    >>> rmse([[1.0, 2.0], [3.0, float("nan")]], [[1.0, 2.0], [0.0, 7.0]])
    1.7320508075688772
    """
    truth, estimate = _as_floats(truth, "truth"), _as_floats(estimate, "estimate")
    if truth.shape != estimate.shape:
        raise InvalidDataError(
            f"truth is {_describe_shape(truth)} but estimate is {_describe_shape(estimate)}. "
            "Pass two arrays of the same shape."
        )
    counted = ~np.isnan(truth) & _as_selection(where, truth)
    n_counted = np.count_nonzero(counted)
    if n_counted == 0:
        raise InvalidDataError(
            "No entry is left to count: every selected entry of truth is NaN, or none is selected. "
            "Select at least one known entry with where."
        )
    n_bad = np.count_nonzero(counted & ~(np.isfinite(estimate) & np.isfinite(truth)))
    if n_bad:
        raise InvalidDataError(
            f"{n_bad:,} of the {n_counted:,} counted entries are NaN or infinite in the estimate, or "
            "infinite in truth. Leave them out with where, or fill them first."
        )
    differences = estimate[counted] - truth[counted]
    largest = float(np.abs(differences).max())
    # Squares of the largest and smallest numbers are none.
    return largest * float(np.sqrt(np.mean((differences / largest) ** 2))) if 0 < largest < np.inf else largest


def _as_floats(values: ArrayLike, name: str) -> FloatArray:
    """Return a float64 array in which masked entries are NaN; raise for text, complex numbers and ragged lists."""
    try:
        array = np.ma.masked_array(_without_pandas_na(values))
        # Elsewhere numbers would be parsed from text, and imaginary parts dropped.
        if array.dtype.kind in "fiubO":
            return np.ma.filled(array.astype(np.float64), np.nan)
        found = f"{array.dtype} values"
    except (TypeError, ValueError) as error:
        found = f"what is no number ({error})"
    raise InvalidDataError(f"{name} holds {found}. Pass an array of real numbers.")


def _without_pandas_na(values: Any) -> Any:
    """Frames and series of nullable numbers with NaN where there is none."""
    nullable = hasattr(values, "isna") and hasattr(values, "to_numpy") and np.asarray(values).dtype == object
    return values.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else values


def _as_selection(where: ArrayLike | None, truth: FloatArray) -> Array:
    """Return `where` as a boolean array of the shape of `truth`."""
    if where is None:
        return np.ones(truth.shape, dtype=bool)
    if np.ma.is_masked(where):
        raise InvalidDataError(
            "where has masked entries, which say neither yes nor no. Fill them: where.filled(False)."
        )
    selection = np.asarray(where)
    if selection.dtype != np.bool_:
        raise InvalidDataError(
            f"where must be boolean, but its type is {selection.dtype}. Pass True for each entry to count."
        )
    if selection.shape != truth.shape:
        raise InvalidDataError(
            f"where is {_describe_shape(selection)} but truth is {_describe_shape(truth)}. "
            "Pass one boolean for each entry."
        )
    return selection


def _describe_shape(array: Array) -> str:
    """Write a shape as people do: ``3 x 4``, ``of length 5``."""
    if array.ndim == 1:
        return f"of length {array.shape[0]}"
    return " x ".join(str(length) for length in array.shape) or "a single number"

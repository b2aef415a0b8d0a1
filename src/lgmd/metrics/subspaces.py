"""Factors seen as subspaces: the angle between two of them, and how entangled the columns of one are."""

import numpy as np
from numpy.typing import ArrayLike

from lgmd._typing import FloatArray
from lgmd.exceptions import InvalidDataError
from lgmd.metrics.errors import _as_floats

__all__ = ["column_correlations", "subspace_angle"]


def subspace_angle(first: ArrayLike, second: ArrayLike) -> float:
    r"""
    Largest principal angle between two column spaces, in radians.

    With orthonormal bases :math:`P` and :math:`Q` of the two spaces, :math:`Q` of the smaller one,

    .. math::
        \theta = \operatorname{atan2}\bigl(\sigma_{\max}(Q - P P^\top Q),\; \sigma_{\min}(P^\top Q)\bigr)

    The sine carries small angles and the cosine those near a right angle, so that both are accurate to
    rounding. It is what MATLAB's ``subspace`` and ``scipy.linalg.subspace_angles(first, second)[0]`` return.
    It depends on the spaces alone: any invertible mix of the columns leaves it unchanged. The cost is two
    thin SVDs.

    Parameters
    ----------
    first : array of shape (n, k) or (n,)
        Columns that span the first space; they may be linearly dependent.
    second : array of shape (n, m) or (n,)
        Columns that span the second space. Where the dimensions differ, the angle is that between the smaller
        space and its nearest subspace of the larger: zero if one contains the other.

    Returns
    -------
    float
        Angle between 0 and pi / 2.

    Raises
    ------
    InvalidDataError
        If the numbers of rows differ, an entry is no finite real number, or a factor is zero and spans nothing.

    Examples
    --------
    >>> round(subspace_angle([1.0, 0.0], [1.0, 1.0]), 6)
    0.785398
    """
    larger, smaller = _orthonormal_basis(first, "first"), _orthonormal_basis(second, "second")
    if len(larger) != len(smaller):
        raise InvalidDataError(
            f"first has {len(larger)} rows but second has {len(smaller)}. "
            "Two subspaces can be compared only inside the same space."
        )
    if larger.shape[1] < smaller.shape[1]:
        larger, smaller = smaller, larger
    overlap = larger.T @ smaller
    sine = np.linalg.norm(smaller - larger @ overlap, ord=2)
    cosine = np.linalg.norm(overlap, ord=-2)
    return float(np.arctan2(sine, cosine))


def column_correlations(factor: ArrayLike) -> FloatArray:
    r"""
    Pearson correlations between all pairs of columns.

    Parameters
    ----------
    factor : array of shape (n, k)
        One column a factor, one row a sample or feature.

    Returns
    -------
    ndarray of shape (k (k - 1) / 2,)
        Correlations of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1). A constant column, such as a factor
        that has been switched off, has correlation 0 with every other.

    Raises
    ------
    InvalidDataError
        If `factor` is not two-dimensional or an entry is no finite real number.

    Examples
    --------
    >>> column_correlations([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0]])
    array([-1.,  0.,  0.])
    """
    columns = _as_floats(factor, "factor")
    if columns.ndim != 2:
        raise InvalidDataError(f"factor has {columns.ndim} dimensions. Pass an n x k array.")
    _check_finite(columns, "factor")
    if columns.shape[0] == 0:
        raise InvalidDataError("factor has no rows, so its columns have no correlations. Pass at least one row.")
    centred = columns - columns.mean(axis=0)
    # The mean of equal numbers is rounded, and would leave dust that correlates perfectly with other dust.
    centred[:, np.ptp(columns, axis=0) == 0] = 0.0
    # Scaled first, so that squares of tiny or huge numbers neither vanish nor overflow.
    centred /= _or_one(np.abs(centred).max(axis=0))
    centred /= _or_one(np.linalg.norm(centred, axis=0))
    pairs = np.triu_indices(columns.shape[1], k=1)
    correlations: FloatArray = np.clip((centred.T @ centred)[pairs], -1.0, 1.0)
    return correlations


def _orthonormal_basis(factor: ArrayLike, name: str) -> FloatArray:
    """Return an orthonormal basis of the column space, leaving out directions at rounding level."""
    columns = _as_floats(factor, name)
    if columns.ndim == 1:
        columns = columns[:, np.newaxis]
    if columns.ndim != 2:
        raise InvalidDataError(f"{name} has {columns.ndim} dimensions. Pass an n x k array, or one vector.")
    _check_finite(columns, name)
    if not columns.any():
        raise InvalidDataError(f"{name} has no entry that is not zero, so it spans no subspace to compare.")
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    tolerance = max(columns.shape) * np.finfo(np.float64).eps * singular[0]
    return left[:, singular > tolerance]


def _check_finite(columns: FloatArray, name: str) -> None:
    """Raise unless every entry is a finite number."""
    n_bad = columns.size - np.count_nonzero(np.isfinite(columns))
    if n_bad:
        raise InvalidDataError(
            f"{n_bad:,} of {columns.size:,} entries of {name} are NaN or infinite. A factor must be complete."
        )


def _or_one(scale: FloatArray) -> FloatArray:
    """Replace zeros by one, for a division that leaves zero columns zero."""
    return np.where(scale > 0, scale, 1.0)

"""Covariance matrices that users pass, checked: for the learners' functional forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from scipy.linalg import lapack

from lgmd._typing import FloatArray, SparseGraph
from lgmd._validation import as_symmetric
from lgmd.exceptions import InvalidGraphError
from lgmd.graphs.base import GraphEstimate

__all__ = ["Units", "as_covariance", "check_diagonal", "refuse_indefinite"]

EstimateT = TypeVar("EstimateT", bound=GraphEstimate)

# An eigenvalue of the correlations below minus this share of their trace is no round-off, not even that of single
# precision.
_ROUND_OFF = 1e-6


def as_covariance(S: Any, *, zero_variances: bool = False) -> FloatArray | SparseGraph:
    """A symmetric matrix with a positive diagonal: a ``csr_array`` where S is sparse, otherwise a float64 array.

    An array in which nothing needs mending is returned as it is. Whether S is positive semidefinite is not looked at.
    """
    if np.ma.is_masked(S):
        n_masked = int(np.ma.getmaskarray(S).sum())
        raise InvalidGraphError(
            f"S has {n_masked:,} masked entries, but a covariance is known everywhere. Fill them, or drop variables "
            "until none is left."
        )
    covariance = _symmetric_array(S)
    if covariance is None:
        covariance = as_symmetric(S, "S")  # which says what is wrong
        covariance = covariance if scipy.sparse.issparse(S) else covariance.toarray()
    advice = "Variances are positive; drop constant variables."
    check_diagonal(covariance.diagonal(), "S", advice, zeros=zero_variances)
    return covariance


class Units:
    """What brings a covariance to unit mean variance and back, so that nothing in between leaves the range of numbers.

    Parameters
    ----------
    variances : ndarray of shape (n,)
        None is negative.
    penalty : float, default=0.0
        Added to each variance.
    """

    def __init__(self, variances: FloatArray, penalty: float = 0.0) -> None:
        self._smallest, largest = float(variances.min()) + penalty, max(float(variances.max()), penalty)
        share = float(np.mean(variances / largest)) + penalty / largest
        exponent = round(float(np.log2(largest)) + float(np.log2(share)))
        # A power of two changes no digit; its inverse has to be a number too.
        self.size = 2.0 ** min(max(exponent, -1000), 1000)
        self._shift = len(variances) * float(np.log(self.size))

    def penalty(self, value: float) -> float:
        """A penalty in units of the mean variance, still positive and finite."""
        limits = np.finfo(np.float64)
        return min(max(value / self.size, float(limits.tiny)), float(limits.max))

    def restored(self, estimate: EstimateT) -> EstimateT:
        """The estimate for the covariance as it was."""
        with np.errstate(over="ignore"):
            precision = scipy.sparse.csr_array(estimate.precision / self.size)
        if not np.all(np.isfinite(precision.data)):
            raise InvalidGraphError(
                f"S has a variance of {self._smallest:.3g}, and its precision is too large for a number. Give S in "
                "other units."
            )
        return replace(
            estimate,
            precision=precision,
            logdet=estimate.logdet - self._shift,
            objective=estimate.objective + self._shift,
        )


def _symmetric_array(S: Any) -> FloatArray | None:
    """S as a symmetric float64 array, or None: the checks of sparse matrices would take longer than some solvers."""
    if scipy.sparse.issparse(S):
        return None
    try:
        dense = np.asarray(S)
    except ValueError:
        return None
    if dense.dtype.kind not in "fiub" or dense.ndim != 2 or not dense.shape[0] == dense.shape[1] > 0:
        return None
    dense = dense.astype(np.float64, copy=False)
    if not np.isfinite(dense).all():
        return None
    if np.array_equal(dense, dense.T):
        return dense
    return (dense + dense.T) / 2 if np.abs(dense - dense.T).max() <= 1e-8 * np.abs(dense).max() else None


def check_diagonal(diagonal: FloatArray, name: str, advice: str, *, zeros: bool = False) -> None:
    """Every entry is positive, or at least not negative where ``zeros`` may be."""
    if not np.all(diagonal >= 0 if zeros else diagonal > 0):
        worst = int(np.argmin(diagonal))
        raise InvalidGraphError(
            f"{name} has a diagonal entry that is {'negative' if zeros else 'not positive'}: {diagonal[worst]:.6g} at "
            f"{worst}. {advice}"
        )


def refuse_indefinite(S: FloatArray) -> None:
    """Raise where a symmetric matrix with a positive diagonal has an eigenvalue that is clearly negative.

    One Cholesky factor, of the correlations, so that the units of the variables do not matter. The eigenvalue that is
    allowed is above the round-off of single precision too, but a matrix that fails in it is given a second chance.
    """
    scale = 1.0 / np.sqrt(np.diag(S))
    shifted = S * scale
    shifted *= scale[:, None]
    shifted[np.diag_indices_from(shifted)] += _ROUND_OFF * len(S)
    # No correlation is above one: those that are become two, which is as indefinite and stays within the range.
    rough = np.clip(shifted, -2.0, 2.0, dtype=np.float64).astype(np.float32)
    _, failed = lapack.spotrf(rough.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        _, failed = lapack.dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise InvalidGraphError(
            f"S is not positive semidefinite: it has the eigenvalue {np.linalg.eigvalsh(S)[0]:.6g}. Covariances have "
            "none below zero; pass a covariance matrix."
        )

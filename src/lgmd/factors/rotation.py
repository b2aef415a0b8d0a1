r"""Which of the many equal factor pairs to report.

``X W'`` is the same for ``X S`` and ``W S^-T`` with any invertible S. :func:`principal_rotation` picks the orthogonal
S that makes the columns principal and leaves the objective as it is. :func:`generalized_components` is the paper's
post-processing: generalised principal components in the metrics of the two graphs.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from lgmd._typing import FloatArray
from lgmd.linalg.cholesky import PrecisionFactor

__all__ = ["generalized_components", "principal_rotation"]


def principal_rotation(X: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rotate both factors so that ``X'X + W'W`` is diagonal, largest first.

    Returns the two factors and the (k, k) rotation. An orthogonal rotation changes neither ``X W'`` nor the priors.
    The sign of each column is set so that the largest entry of W's column is positive.
    """
    balance = X.T.astype(np.float64) @ X + W.T.astype(np.float64) @ W
    _, rotation = scipy.linalg.eigh(balance)
    rotation = rotation[:, ::-1]
    rotated = W @ rotation
    leading = rotated[np.abs(rotated).argmax(axis=0), np.arange(rotated.shape[1])]
    rotation = rotation * np.where(leading < 0, -1.0, 1.0)
    return (X @ rotation).astype(X.dtype), (W @ rotation).astype(W.dtype), rotation


def generalized_components(
    X: FloatArray, W: FloatArray, row_factor: PrecisionFactor, column_factor: PrecisionFactor
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Generalised principal components of ``X W'``.

    The ``U, d, V`` with :math:`U\,\mathrm{diag}(d)\,V^T = X W^T`, :math:`U^T A^{-1} U = I` and
    :math:`V^T B^{-1} V = I`, d descending. In whitened coordinates this is the singular value decomposition of a
    product of two thin matrices, hence of a k x k matrix: ``O((n + p) k^2)`` beside the triangular solves with the
    graphs.

    Parameters
    ----------
    X : ndarray of shape (n, k)
    W : ndarray of shape (p, k)
    row_factor, column_factor : PrecisionFactor
        Factored A and B.
    """
    basis_x, triangle_x = scipy.linalg.qr(row_factor.whiten(X), mode="economic")
    basis_w, triangle_w = scipy.linalg.qr(column_factor.whiten(W), mode="economic")
    left, values, right = np.linalg.svd(triangle_x @ triangle_w.T)
    return row_factor.color(basis_x @ left), values, column_factor.color(basis_w @ right.T)

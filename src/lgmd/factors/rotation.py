r"""Which of the many equal factor pairs to report.

``X W'`` is the same for ``X S`` and ``W S^-T`` with any invertible S. :func:`principal_rotation` picks the orthogonal
S that makes the columns principal and leaves the objective as it is. :func:`generalized_components` is the paper's
post-processing: generalised principal components in the metrics of the two graphs. :func:`balancing` and
:func:`translation` are steps of the minimisation itself: among all that predict the same, they find what the priors
like best.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from lgmd._typing import FloatArray, SparseGraph
from lgmd.linalg.cholesky import PrecisionFactor

__all__ = ["balancing", "generalized_components", "principal_rotation", "tied_balancing", "translation"]


def balancing(sample_prior: FloatArray, feature_prior: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    r"""The change of basis that makes the two priors as small as ``X W'`` allows.

    Minimises :math:`\mathrm{tr}(S^T P S) + \mathrm{tr}(S^{-1} Q S^{-T})` over invertible S, with
    :math:`P = \lambda_1 X^T A X` and :math:`Q = \lambda_2 W^T B W`. At the minimum both are the same diagonal matrix D:
    with :math:`P = L L^T` and :math:`L^T Q L = U D^2 U^T` it is :math:`S = L^{-T} U D^{1/2}`. Alternating updates alone
    reach this balance only slowly, since along it the fit is flat.

    Parameters
    ----------
    sample_prior, feature_prior : ndarray of shape (k, k)
        P and Q.

    Returns
    -------
    (ndarray, ndarray) or None
        ``S`` for X and ``S^-T`` for W; None where a prior is singular beyond round-off.
    """
    k = len(sample_prior)
    floor = 1e-13 * (np.trace(sample_prior) + np.trace(feature_prior)) / k
    try:
        lower = scipy.linalg.cholesky(sample_prior + floor * np.eye(k), lower=True)
    except scipy.linalg.LinAlgError:
        return None
    squares, basis = scipy.linalg.eigh(lower.T @ (feature_prior + floor * np.eye(k)) @ lower)
    if not squares[0] > 0:
        return None
    squares, basis = squares[::-1], basis[:, ::-1]
    roots = squares**0.25
    for_samples = scipy.linalg.solve_triangular(lower, basis * roots, lower=True, trans="T")
    for_features = lower @ (basis / roots)
    return for_samples, for_features


def tied_balancing(
    sample_moments: FloatArray, feature_moments: FloatArray, shape: tuple[int, int], spectrum: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    r"""The change of basis that two posteriors like best whose prior variances are given.

    Minimises :math:`\tfrac12 \mathrm{tr}(S^T P S F^{-1} + S^{-1} Q S^{-T} F^{-1}) - (n - p) \ln|S|`, with P and Q the
    expected ``X'AX`` and ``W'BW`` and F the diagonal of prior variances, which both sides have; the last term is what
    the change does to the two entropies. At the minimum both moments are diagonal, in the order of F, and
    :math:`S^T P S - S^{-1} Q S^{-T} = (n - p) F`: with :math:`P = L L^T` and :math:`L^T Q L = U D U^T` it is
    :math:`S = L^{-T} U Z^{1/2}`, :math:`Z^2 - (n - p) F Z - D = 0`.

    Parameters
    ----------
    sample_moments, feature_moments : ndarray of shape (k, k)
        P and Q.
    shape : (int, int)
        Of the table, n and p.
    spectrum : ndarray of shape (k,)
        The diagonal of F, largest first.

    Returns
    -------
    (ndarray, ndarray) or None
        ``S`` for X and ``S^-T`` for W, in which both moments are diagonal; None where one is singular beyond round-off.
    """
    try:
        lower = scipy.linalg.cholesky(sample_moments, lower=True)
    except scipy.linalg.LinAlgError:
        return None
    squares, basis = scipy.linalg.eigh(lower.T @ feature_moments @ lower)
    if not squares[0] > 0:
        return None
    squares, basis = squares[::-1], basis[:, ::-1]
    excess = float(shape[0] - shape[1])
    larger = (abs(excess) * spectrum + np.sqrt(np.square(excess * spectrum) + 4 * squares)) / 2
    roots = np.sqrt(larger if excess >= 0 else squares / larger)
    for_samples = scipy.linalg.solve_triangular(lower, basis * roots, lower=True, trans="T")
    for_features = lower @ (basis / roots)
    return for_samples, for_features


def translation(
    moments: FloatArray,
    cross: FloatArray,
    other: FloatArray,
    other_precision: SparseGraph,
    other_penalties: FloatArray,
) -> FloatArray:
    r"""What the column factors and the row intercepts can pass to each other.

    ``W + 1 v'`` with ``a - X v`` predicts what ``W`` with ``a`` does. The v that makes their priors,
    :math:`\mathrm{tr}\,\Lambda (W + 1 v^T)^T B (W + 1 v^T) + \tau \|a - X v\|^2`, smallest solves a k x k system.

    Parameters
    ----------
    moments : ndarray of shape (k, k)
        :math:`\tau X^T X`.
    cross : ndarray of shape (k,)
        :math:`\tau X^T a`.
    other : ndarray of shape (p, k)
        W.
    other_precision : csr_array of shape (p, p)
        B.
    other_penalties : ndarray of shape (k,)
        The diagonal of :math:`\Lambda`.

    Returns
    -------
    ndarray of shape (k,)
    """
    row_sums = np.asarray(other_precision.sum(axis=1)).ravel()
    system = moments + np.diag(other_penalties * row_sums.sum())
    right = cross - other_penalties * (row_sums @ other)
    values, vectors = scipy.linalg.eigh(system)
    # Directions that neither prior sees are left alone.
    weights = np.divide(vectors.T @ right, values, out=np.zeros_like(values), where=values > 1e-12 * values[-1])
    return np.asarray(vectors @ weights)


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

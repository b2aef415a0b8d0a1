"""Posterior covariances of the rows of a factor.

A row's unknowns are its k factors and its intercept, ``d = k + 1`` numbers. How their covariances hang together is a
type: :class:`RowCovariances` (rows independent of each other), :class:`CoupledCovariances` (the same, but draws know of
the graph between them), :class:`DiagonalCovariances` (all numbers independent: for many factors) and
:class:`SpectralCovariance` (exact, rows dependent through a graph).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray, IntArray, SparseGraph
from lgmd.linalg.coupled_rows import draws_of
from lgmd.linalg.packed import pack, packed_diagonal, packed_order, packed_size, unpack
from lgmd.linalg.threads import even_blocks, map_blocks

__all__ = ["CoupledCovariances", "Covariance", "DiagonalCovariances", "RowCovariances", "SpectralCovariance"]

# Rows whose matrices are unpacked at a time.
_BLOCK = 4096


class Covariance(Protocol):
    """Joint posterior covariance of n rows of d numbers."""

    #: Whether a change of basis keeps the form.
    rotates: bool

    @property
    def order(self) -> int:
        """Numbers a row, d."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and numbers a row."""
        ...

    def packed_rows(self, rows: IntArray) -> FloatArray:
        """Covariance of each of the rows by itself, packed, (m, d (d + 1) / 2)."""
        ...

    def total(self, weights: FloatArray) -> FloatArray:
        """Weighted sum of the rows' covariances, (d, d)."""
        ...

    def graph_total(self, precision: SparseGraph) -> FloatArray:
        """``sum_ij A_ij Cov(row i, row j)``, (d, d)."""
        ...

    def weighted_traces(self, weights: FloatArray) -> FloatArray:
        """Sum of the variances of each row's numbers, weighted, (n,)."""
        ...

    def between(self, rows: IntArray, others: IntArray) -> FloatArray:
        """``Cov(row i, row j)`` for pairs of rows, (m, d, d)."""
        ...

    def transformed(self, change: FloatArray) -> Covariance:
        """Covariance of the rows times ``change`` (d, d)."""
        ...

    def kept(self, columns: IntArray) -> Covariance:
        """Covariance of some of the numbers."""
        ...

    def with_rows(self, rows: IntArray, covariances: FloatArray) -> Covariance:
        """Other covariances (m, d, d) for some rows."""
        ...

    def draw(self, n_draws: int, rng: np.random.Generator, rows: IntArray) -> FloatArray:
        """Draws of rows with this covariance and mean zero, (n_draws, m, d)."""
        ...


@dataclass(frozen=True)
class RowCovariances:
    """Rows independent of each other.

    Attributes
    ----------
    packed : ndarray of shape (n, d (d + 1) / 2), or (1, ...) where all rows have the same
    n : int
    basis : ndarray of shape (d, d) or None
        A change of basis that is still to be applied to every row.
    """

    packed: FloatArray
    n: int
    basis: FloatArray | None = None
    rotates = True

    @classmethod
    def zero(cls, shape: tuple[int, int], dtype: np.dtype[Any]) -> RowCovariances:
        """Certainty about n rows of d numbers."""
        return cls(np.zeros((1, packed_size(shape[1])), dtype), shape[0])

    @property
    def order(self) -> int:
        """Numbers a row."""
        if self.basis is not None:
            return int(self.basis.shape[1])
        return packed_order(self.packed.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and numbers a row."""
        return (self.n if self.is_shared else len(self.packed)), self.order

    @property
    def is_shared(self) -> bool:
        """Whether all rows have the same covariance."""
        return len(self.packed) == 1

    def packed_rows(self, rows: IntArray) -> FloatArray:
        """Covariance of each of the rows by itself."""
        if self.is_shared:
            return np.broadcast_to(_rebased(self.packed, self.basis), (len(rows), packed_size(self.order)))
        return _rebased(self.packed[rows], self.basis)

    def applied(self) -> Self:
        """The same with the change of basis carried out."""
        return self if self.basis is None else replace(self, packed=_rebased(self.packed, self.basis), basis=None)

    def total(self, weights: FloatArray) -> FloatArray:
        """Weighted sum."""
        if self.is_shared:
            matrix = float(np.sum(weights)) * unpack(self.packed.astype(np.float64))[0]
        elif np.all(weights == weights[0]):
            matrix = float(weights[0]) * self._plain_total
        else:
            matrix = unpack(_weighted_sum(weights, self.packed)[None])[0]
        return matrix if self.basis is None else np.asarray(self.basis.T @ matrix @ self.basis)

    @cached_property
    def _plain_total(self) -> FloatArray:
        """Sum of all covariances before the change of basis, asked for many times in an iteration."""
        return np.asarray(unpack(_weighted_sum(np.ones(len(self.packed)), self.packed)[None])[0])

    def graph_total(self, precision: SparseGraph) -> FloatArray:
        """Only the diagonal of the graph meets rows that are independent."""
        return self.total(precision.diagonal())

    def weighted_traces(self, weights: FloatArray) -> FloatArray:
        """Weighted sum of each row's diagonal."""
        d, out = self.order, np.empty(self.n)
        for start in range(0, self.n, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, self.n))
            out[rows] = self.packed_rows(rows)[:, packed_diagonal(d)] @ weights
        return out

    def between(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Zero for two rows."""
        same = np.asarray(rows) == np.asarray(others)
        full = unpack(self.packed_rows(np.asarray(rows)).astype(np.float64))
        return np.asarray(full * same[:, None, None])

    def transformed(self, change: FloatArray) -> Self:
        """Noted, and carried out when a row is asked for."""
        moved = replace(self, basis=change if self.basis is None else self.basis @ change)
        if "_plain_total" in self.__dict__:
            moved.__dict__["_plain_total"] = self._plain_total
        return moved

    def kept(self, columns: IntArray) -> Self:
        """A change of basis that leaves columns out."""
        return self.transformed(np.eye(self.order)[:, columns])

    def with_rows(self, rows: IntArray, covariances: FloatArray) -> RowCovariances:
        """Other covariances for some rows."""
        packed = self.packed_rows(np.arange(self.n)).copy()
        packed[rows] = pack(covariances)
        return RowCovariances(packed, self.n)

    def draw(self, n_draws: int, rng: np.random.Generator, rows: IntArray) -> FloatArray:
        """Each row by itself."""
        draws = rng.standard_normal((n_draws, len(rows), self.order))
        if self.is_shared:
            return np.asarray(draws @ _square_roots(unpack(self.applied().packed.astype(np.float64)))[0].T)
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            roots = _square_roots(unpack(self.packed_rows(rows[block]).astype(np.float64)))
            draws[:, block] = np.einsum("sid,ied->sie", draws[:, block], roots, optimize=True)
        return draws


@dataclass(frozen=True, kw_only=True)
class CoupledCovariances(RowCovariances):
    """Rows of which some are coupled by a graph: each has its marginal covariance, and draws hang together.

    Attributes
    ----------
    coupled : ndarray of shape (m,)
        Rows with an edge, in order.
    blocks : ndarray of shape (m, d (d + 1) / 2)
        Packed parts of the joint precision that each of them has by itself.
    weights : ndarray of shape (d,)
        What the graph is multiplied with for each number of a row.
    edges, ends, starts : ndarray
        The graph between coupled rows as a CSR matrix: data, indices and indptr.
    turn : ndarray of shape (d, d)
        The change of basis since; an intercept that the model does not have becomes zero in it.
    """

    coupled: IntArray
    blocks: FloatArray
    weights: FloatArray
    edges: FloatArray
    ends: IntArray
    starts: IntArray
    turn: FloatArray

    def _draws(self) -> Callable[[np.random.Generator], FloatArray]:
        """Makes draws of all coupled rows before the change of basis."""
        m = len(self.coupled)
        graph = scipy.sparse.csr_array((self.edges, self.ends, self.starts), shape=(m, m))
        return draws_of(graph, unpack(self.blocks.astype(np.float64)), self.weights)

    def joint_shapes(self, name: str) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """What arrays have for shapes, and what they should have for these coupled rows."""
        m, d = len(self.coupled), len(self.weights)
        return {
            f"systems of coupled {name}": (self.blocks.shape, (m, packed_size(d))),
            f"basis of coupled {name}": (self.turn.shape, (d, self.order)),
            f"graph of coupled {name}": (self.starts.shape, (m + 1,)),
            f"edges of coupled {name}": (self.ends.shape, (int(self.starts[-1]),)),
            f"weights of edges of coupled {name}": (self.edges.shape, self.ends.shape),
        }

    def transformed(self, change: FloatArray) -> Self:
        """Also of what is drawn."""
        return replace(super().transformed(change), turn=self.turn @ change)

    def draw(self, n_draws: int, rng: np.random.Generator, rows: IntArray) -> FloatArray:
        """Coupled rows jointly, the others each by itself."""
        position = np.minimum(np.searchsorted(self.coupled, rows), len(self.coupled) - 1)
        joint: Array = self.coupled[position] == rows
        draws = np.empty((n_draws, len(rows), self.order))
        draws[:, ~joint] = super().draw(n_draws, rng, rows[~joint])
        if joint.any():
            drawn = self._draws()
            for draw in draws:
                draw[joint] = drawn(rng)[position[joint]] @ self.turn
        return draws


@dataclass(frozen=True)
class DiagonalCovariances:
    """All numbers independent of each other.

    Attributes
    ----------
    variances : ndarray of shape (n, d)
    """

    variances: FloatArray
    rotates = False

    @property
    def order(self) -> int:
        """Numbers a row."""
        return int(self.variances.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and numbers a row."""
        return len(self.variances), self.order

    def packed_rows(self, rows: IntArray) -> FloatArray:
        """Zero off the diagonal."""
        out = np.zeros((len(rows), packed_size(self.order)), self.variances.dtype)
        out[:, packed_diagonal(self.order)] = self.variances[rows]
        return out

    def total(self, weights: FloatArray) -> FloatArray:
        """Weighted sum."""
        return np.diag(_weighted_sum(weights, self.variances))

    def graph_total(self, precision: SparseGraph) -> FloatArray:
        """Only the diagonal of the graph meets rows that are independent."""
        return self.total(precision.diagonal())

    def weighted_traces(self, weights: FloatArray) -> FloatArray:
        """Weighted sum of each row's variances."""
        return np.asarray(self.variances @ weights)

    def between(self, rows: IntArray, others: IntArray) -> FloatArray:
        """Zero for two rows."""
        same = np.asarray(rows) == np.asarray(others)
        return np.asarray(np.eye(self.order) * (self.variances[rows] * same[:, None])[:, None, :])

    def transformed(self, change: FloatArray) -> DiagonalCovariances:
        """Only for changes that scale or reorder."""
        squares = np.square(change)
        if np.any(np.count_nonzero(squares, axis=0) > 1):
            raise ValueError("a diagonal covariance stays diagonal only where a change of basis scales or reorders")
        return DiagonalCovariances(self.variances @ squares.astype(self.variances.dtype))

    def kept(self, columns: IntArray) -> DiagonalCovariances:
        """Some of the columns."""
        return DiagonalCovariances(np.ascontiguousarray(self.variances[:, columns]))

    def with_rows(self, rows: IntArray, covariances: FloatArray) -> DiagonalCovariances:
        """Other variances for some rows; what is off the diagonal is left out."""
        variances = self.variances.copy()
        variances[rows] = np.einsum("maa->ma", covariances)
        return DiagonalCovariances(variances)

    def draw(self, n_draws: int, rng: np.random.Generator, rows: IntArray) -> FloatArray:
        """Each number by itself."""
        return rng.standard_normal((n_draws, len(rows), self.order)) * np.sqrt(self.variances[rows])


@dataclass(frozen=True)
class SpectralCovariance:
    r"""Rows that depend on each other through a graph, exactly: :math:`\sum_m u_m u_m^T \otimes K_m`.

    Attributes
    ----------
    vectors : ndarray of shape (n, n)
        Eigenvectors :math:`u_m` of the graph.
    blocks : ndarray of shape (n, d, d)
        :math:`K_m`.
    """

    vectors: FloatArray
    blocks: FloatArray
    rotates = True

    @property
    def order(self) -> int:
        """Numbers a row."""
        return int(self.blocks.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and numbers a row."""
        return len(self.vectors), self.order

    def packed_rows(self, rows: IntArray) -> FloatArray:
        """``sum_m u_mi^2 K_m``."""
        return np.asarray(np.square(self.vectors[rows]) @ pack(self.blocks))

    def total(self, weights: FloatArray) -> FloatArray:
        """Weighted sum."""
        shares = np.asarray(weights, dtype=np.float64) @ np.square(self.vectors)
        return np.asarray(np.tensordot(shares, self.blocks, 1))

    def graph_total(self, precision: SparseGraph) -> FloatArray:
        """``sum_m (u_m' A u_m) K_m``."""
        values = np.einsum("im,im->m", self.vectors, precision @ self.vectors)
        return np.asarray(np.tensordot(values, self.blocks, 1))

    def weighted_traces(self, weights: FloatArray) -> FloatArray:
        """Weighted sum of each row's diagonal."""
        return np.asarray(np.square(self.vectors) @ np.einsum("maa,a->m", self.blocks, weights))

    def between(self, rows: IntArray, others: IntArray) -> FloatArray:
        """``sum_m u_mi u_mj K_m``."""
        return np.asarray(np.tensordot(self.vectors[rows] * self.vectors[others], self.blocks, 1))

    def between_sums(self, rows: IntArray, others: IntArray, weights: FloatArray) -> FloatArray:
        """Weighted sum of the diagonal of ``Cov(row i, row j)``, (m,)."""
        diagonals = np.einsum("maa,a->m", self.blocks, weights)
        return np.asarray((self.vectors[rows] * self.vectors[others]) @ diagonals)

    def transformed(self, change: FloatArray) -> SpectralCovariance:
        """Each block in the new basis."""
        return replace(self, blocks=change.T @ self.blocks @ change)

    def kept(self, columns: IntArray) -> SpectralCovariance:
        """Some rows and columns of each block."""
        return replace(self, blocks=np.ascontiguousarray(self.blocks[:, columns][:, :, columns]))

    def with_rows(self, rows: IntArray, covariances: FloatArray) -> SpectralCovariance:
        """Nothing to do: rows have their marginal covariances already."""
        return self

    def draw(self, n_draws: int, rng: np.random.Generator, rows: IntArray) -> FloatArray:
        """Independent in the eigenbasis, then turned."""
        draws = rng.standard_normal((n_draws, *self.shape))
        draws = np.einsum("smd,med->sme", draws, _square_roots(self.blocks), optimize=True)
        return np.asarray(np.einsum("im,smd->sid", self.vectors[rows], draws, optimize=True))


def _rebased(packed: FloatArray, basis: FloatArray | None) -> FloatArray:
    """Packed matrices after a change of basis, a block of rows at a time."""
    if basis is None:
        return packed
    out = np.empty((len(packed), packed_size(basis.shape[1])), packed.dtype)
    change = basis.astype(packed.dtype)

    def rebase(start: int, stop: int) -> None:
        for first in range(start, stop, _BLOCK):
            block = slice(first, min(first + _BLOCK, stop))
            out[block] = pack(change.T @ (unpack(packed[block]) @ change))

    map_blocks(rebase, even_blocks(len(packed)), work=packed.size * len(basis), uses_blas=True)
    return out


def _weighted_sum(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """``weights @ rows``, with blocks of rows added up in double precision."""
    out = np.zeros(rows.shape[1])
    for start in range(0, len(rows), _BLOCK):
        out += np.asarray(weights[start : start + _BLOCK], dtype=rows.dtype) @ rows[start : start + _BLOCK]
    return out


def _square_roots(matrices: FloatArray) -> FloatArray:
    """``R`` with ``R R' = C`` for each matrix, which may be singular."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

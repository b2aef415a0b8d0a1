r"""The half-step of a table with gaps.

Row i of the normal equations is :math:`D_i x_i + \lambda \sum_{j \ne i} A_{ij} x_j = g_i` with the k x k block
:math:`D_i = \sum_{j \in O_i} w_j w_j^T + \lambda A_{ii} I`. Rows without an edge are solved on the spot. For the
others the Cholesky factors :math:`D_i = L_i L_i^T` are both the operator's diagonal and its preconditioner: in
:math:`u_i = L_i^T x_i` the system is :math:`(I + \lambda L^{-1} A_\mathrm{off} L^{-T}) u = L^{-1} g`, so
that a product costs two triangular solves and one product with the sparse graph, and no pass over the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray
from lgmd.factors.half import Half, PreparedUpdate
from lgmd.linalg.conjugate_gradients import conjugate_gradients
from lgmd.linalg.row_systems import factor_rows, multiply_upper, solve_lower, solve_rows, solve_upper

__all__ = ["ConjugateGradientUpdate"]


@dataclass(frozen=True)
class ConjugateGradientUpdate:
    """Preconditioned conjugate gradients from a warm start.

    Every step of it lowers the objective, also where it is stopped early.
    Cost: one pass over the entries at ``O(entries k^2)``, then ``O(n k^2 + nnz(A) k)`` a step; memory ``O(m k^2)`` for
    the m rows that have an edge.

    Parameters
    ----------
    tol : float, optional
        Residual relative to the right-hand side at which to stop; by default 1e-10 in double precision, which makes the
        half-step exact for all purposes, and 1e-6 in single.
    max_iter : int, default=200
        Most steps.
    """

    balances: ClassVar[bool] = True

    tol: float | None = None
    max_iter: int = 200

    def prepare(self, half: Half) -> PreparedUpdate:
        """Split the rows into those with and those without an edge."""
        entries = half.data.entries()
        tol = self.tol if self.tol is not None else (1e-10 if half.data.dtype == np.float64 else 1e-6)
        dtype = half.data.dtype
        precision = scipy.sparse.csr_array(half.precision)
        ridge = (half.penalty * precision.diagonal()).astype(dtype)
        off_diagonal = scipy.sparse.csr_array(precision - scipy.sparse.diags_array(precision.diagonal()))
        off_diagonal.eliminate_zeros()
        has_edge = np.diff(off_diagonal.indptr) > 0
        coupled, free = np.flatnonzero(has_edge), np.flatnonzero(~has_edge)
        edges = (half.penalty * off_diagonal[coupled][:, coupled]).astype(dtype)

        def update(factor: FloatArray, other: FloatArray, column_offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
            solution = np.empty(factor.shape, dtype)
            intercept = np.zeros(len(factor), dtype)
            system = (entries, column_offsets, other, ridge, half.intercept_ridge)
            solve_rows(free, *system, out=solution, intercept=intercept)
            if len(coupled):
                rows = factor_rows(coupled, *system)
                lower = rows.lower
                result = conjugate_gradients(
                    lambda u: u + solve_lower(lower, edges @ solve_upper(lower, u)),
                    solve_lower(lower, rows.right),
                    multiply_upper(lower, factor[coupled]),
                    tol=tol,
                    max_iter=self.max_iter,
                )
                solution[coupled] = solve_upper(lower, result.solution)
                intercept[coupled] = rows.intercepts(solution[coupled], half.intercept_ridge)
            return solution, intercept

        return update

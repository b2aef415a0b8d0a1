"""The LGMD+ problem: ours against cvxpy with SCS, cold against warm starts, and one thousand nodes.

Covariances are correlations of the rows of a factor of 20 columns, so they are singular, as they are in the model; rho
is 0.1. Objectives are those of the weights that a solver returns, with negative ones set to zero, at their best scale;
their distance is relative to ours, whose duality gap is proven. A warm start is the solution for the factor before
each of its rows was moved by the given share of its length.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse

from lgmd.datasets import make_matrix_normal
from lgmd.graphs.nonnegative import laplacian_precision

RHO = 0.1


def unit_rows(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def factor(n: int, graph: str) -> np.ndarray:
    return unit_rows(make_matrix_normal(n, n, 20, sample_graph=graph, random_state=0).sample_factors)


def best_time(function, n_repeats: int):
    times = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return result, min(times)


def by_scs(S: np.ndarray) -> tuple[float, float]:
    """Objective and time of cvxpy with SCS, without the time that cvxpy takes to compile the problem."""
    import cvxpy

    n = len(S)
    i, j = np.triu_indices(n, 1)
    edges = np.arange(len(i))
    incidence = scipy.sparse.csc_array(
        (np.repeat([1.0, -1.0], len(i)), (np.concatenate([i, j]), np.concatenate([edges, edges]))), shape=(n, len(i))
    )
    # Column e is the flattened b_e b_e'.
    outer = scipy.sparse.csc_array(
        (
            np.tile([1.0, 1.0, -1.0, -1.0], len(i)),
            np.column_stack([i * n + i, j * n + j, i * n + j, j * n + i]).ravel(),
            4 * np.arange(len(i) + 1),
        ),
        shape=(n * n, len(i)),
    )
    costs = S[i, i] + S[j, j] - 2 * S[i, j] + 4 * RHO
    ridge_cost = np.trace(S) + n * RHO
    w, c = cvxpy.Variable(len(i), nonneg=True), cvxpy.Variable(nonneg=True)
    T = cvxpy.reshape(outer @ w, (n, n), order="C") + c * np.eye(n)
    problem = cvxpy.Problem(cvxpy.Minimize(-cvxpy.log_det(T) + costs @ w + ridge_cost * c))
    problem.solve(solver="SCS", eps=1e-5, max_iters=20_000)
    weights, ridge = np.maximum(w.value, 0.0), float(c.value)
    best = n / (costs @ weights + ridge_cost * ridge)
    precision = best * ((incidence * weights) @ incidence.T).toarray() + best * ridge * np.eye(n)
    return n - np.linalg.slogdet(precision)[1], problem.solver_stats.solve_time


def against_scs() -> list[str]:
    lines = [
        "| nodes | graph | ours | cvxpy with SCS | ratio | objective of SCS above ours | edges |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in (60, 150):
        for graph in ("chain", "blocks", "none"):
            X = factor(n, graph)
            S = X @ X.T
            ours, seconds = best_time(lambda S=S: laplacian_precision(S, RHO), 5)
            objective, rival = by_scs(S)
            above = (objective - ours.objective) / abs(ours.objective)
            lines.append(
                f"| {n} | {graph} | {1e3 * seconds:.1f} ms | {rival:.2f} s | {rival / seconds:.0f} | {above:.1e} | "
                f"{ours.n_edges:,} |"
            )
    return lines


def warm_and_cold(n_repeats: int = 5) -> list[str]:
    lines = [
        "| nodes | graph | tol | rows moved by | cold | warm | ratio | gap a node |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(0)
    for n in (150, 1000):
        for graph in ("chain", "blocks"):
            before = factor(n, graph)
            for tol in (1e-4, 1e-6):
                start = laplacian_precision(before @ before.T, RHO, tol=tol)
                for share in (1e-4, 1e-3, 1e-2):
                    X = unit_rows(before + share * unit_rows(rng.standard_normal(before.shape)))
                    S = X @ X.T
                    repeats = n_repeats if n < 1000 else 2
                    _, cold = best_time(lambda S=S, tol=tol: laplacian_precision(S, RHO, tol=tol), repeats)
                    estimate, warm = best_time(
                        lambda S=S, tol=tol, start=start: laplacian_precision(S, RHO, tol=tol, start=start), repeats
                    )
                    lines.append(
                        f"| {n:,} | {graph} | {tol:.0e} | {share:.0e} | {1e3 * cold:.0f} ms | {1e3 * warm:.0f} ms | "
                        f"{cold / warm:.1f} | {estimate.gap / n:.0e} |"
                    )
    return lines


def main() -> list[str]:
    """Measure and return the lines of two tables."""
    laplacian_precision(np.eye(3) + 0.5, RHO)  # compiled before the clock starts
    return [*against_scs(), "", *warm_and_cold()]


if __name__ == "__main__":
    print("\n".join(main()))

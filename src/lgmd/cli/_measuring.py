"""Times of the two things that a fit spends its time on."""

from __future__ import annotations

import time
import warnings

import numpy as np

from lgmd.datasets import make_matrix_normal
from lgmd.estimators import PMF
from lgmd.exceptions import ConvergenceWarning
from lgmd.linalg.pairs import pairs_above

__all__ = ["measure_edge_search", "measure_fit"]

_STRONG = 0.9


def measure_fit(n: int, p: int, k: int, missing: float, iterations: int, inference: str) -> float:
    """Seconds an iteration, the median of those after the first, which may have to compile."""
    rank = min(k, n, p)
    data = make_matrix_normal(n, p, rank=rank, noise=0.5, missing=missing, random_state=0)
    model = PMF(rank, inference=inference, prior="columns", max_iter=iterations, tol=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.observed)
    return float(np.median(np.diff(model.history_.seconds)))


def measure_edge_search(nodes: int, k: int) -> tuple[int, float]:
    """How many pairs of random unit vectors are strongly correlated, and the seconds that it takes to find them."""
    vectors = np.random.default_rng(0).standard_normal((nodes, max(k, 2))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs_above(vectors[:100], _STRONG)  # compiled, or read from the cache, before the clock starts
    start = time.perf_counter()
    found = pairs_above(vectors, _STRONG)
    return len(found), time.perf_counter() - start

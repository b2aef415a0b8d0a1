"""The search for edges against the bare blocked matrix product that it contains.

The bare product multiplies the same blocks into the same buffers and looks at nothing. The memory of the search is
that of the edges it finds, not of the n^2 pairs it looks at.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from scipy.signal import lfilter

from lgmd.graphs import EvidenceGraph, FactorMoments, GraphEstimate, describe
from lgmd.linalg.pairs import BLOCK_ROWS, block_products, pairs_above
from lgmd.linalg.threads import map_blocks


def unit_rows(n: int, k: int) -> np.ndarray:
    vectors = np.random.default_rng(0).standard_normal((n, k)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def bare_product(vectors: np.ndarray) -> None:
    def multiply(start: int, stop: int) -> None:
        for _ in block_products(vectors, start, stop):
            pass

    map_blocks(multiply, np.append(np.arange(0, len(vectors), BLOCK_ROWS), len(vectors)), uses_blas=True)


def best_time(function, n_repeats: int) -> float:
    times = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main(n: int = 50_000, k: int = 20, n_repeats: int = 5) -> list[str]:
    """Measure and return the lines of a table."""
    vectors = unit_rows(n, k)
    pairs_above(vectors[:1000], 0.8)
    lines = [
        "| threshold | edges | search | bare product | ratio | peak memory | n x n array |",
        "|---|---|---|---|---|---|---|",
    ]
    for threshold in (0.8, 0.7):
        bare = best_time(lambda: bare_product(vectors), n_repeats)
        search = best_time(lambda t=threshold: pairs_above(vectors, t), n_repeats)
        tracemalloc.start()
        pairs = pairs_above(vectors, threshold)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        lines.append(
            f"| {threshold} | {len(pairs):,} | {search:.2f} s | {bare:.2f} s | {search / bare:.2f} | "
            f"{peak / 2**20:.0f} MiB | {n * n * 4 / 2**20:,.0f} MiB |"
        )
    return [*lines, "", *evidence(n, k, n_repeats)]


def evidence(n: int, k: int, n_repeats: int) -> list[str]:
    """The whole of an evidence graph against the bare search for edges, in factors with and without neighbours.

    Rows that stand in the order of their neighbours may end with that order as their graph.
    """
    rng = np.random.default_rng(1)
    centres = np.repeat(rng.standard_normal((n // 10, k)), 10, axis=0)
    independent, groups = rng.standard_normal((n, k)), centres + 0.6 * rng.standard_normal((n, k))
    chain = lfilter([np.sqrt(1 - 0.81)], [1.0, -0.9], rng.standard_normal((n, k)), axis=0)
    factors = {
        "independent rows": independent,
        "groups of ten, shuffled": rng.permutation(groups),
        "a chain, neighbours correlated by 0.9, shuffled": rng.permutation(chain),
        "the same in order": chain,
    }
    lines = [
        "| factor | edges | largest component | EvidenceGraph | bare search at 0.8 | ratio | peak memory |",
        "|---|---|---|---|---|---|---|",
    ]
    learner, nothing = EvidenceGraph(), GraphEstimate.identity(n)
    for name, factor in factors.items():
        moments = FactorMoments(factor.astype(np.float32))
        vectors = moments.correlation_vectors()
        learner.learn(FactorMoments(moments.mean[:6000]), GraphEstimate.identity(6000))
        search = best_time(lambda v=vectors: pairs_above(v, 0.8), n_repeats)
        seconds = best_time(lambda m=moments: learner.learn(m, nothing), n_repeats)
        tracemalloc.start()
        found = learner.learn(moments, nothing)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        lines.append(
            f"| {name} | {found.n_edges:,} | {describe(found).largest_component:,} | {seconds:.2f} s | {search:.2f} s "
            f"| {seconds / search:.2f} | {peak / 2**20:.0f} MiB |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

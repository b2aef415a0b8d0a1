"""Running compiled kernels over blocks of rows, on as many threads as the user allows.

Kernels release the interpreter lock and own disjoint rows, so plain Python threads are enough: nothing
to configure, safe inside other people's threads, and results do not depend on the number of threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from lgmd._typing import IntArray

__all__ = ["available_threads", "balanced_blocks", "even_blocks", "map_blocks"]

Result = TypeVar("Result")

# Fixed, so that sums over blocks come out the same on one core and on sixty-four.
_N_BLOCKS = 64

# Starting threads takes as long as about this many operations.
_WORTH_A_THREAD = 2e6

# The limit on BLAS belongs to the whole process: two callers at once would each put back what the other had set.
_BLAS_LIMIT = Lock()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def available_threads() -> int:
    """Threads that kernels may use: the cores at hand, or fewer under ``threadpoolctl`` limits."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A BLAS that was built without threads, such as some packages bring along, limits nobody.
    limits = [
        int(pool["num_threads"])
        for pool in _controller().info()
        if pool["user_api"] in ("blas", "openmp") and pool.get("threading_layer") != "disabled"
    ]
    return max(1, min([cores, *limits]))


def even_blocks(n_rows: int, n_blocks: int = _N_BLOCKS) -> IntArray:
    """Boundaries of at most ``n_blocks`` runs of rows of equal length."""
    return np.unique(np.linspace(0, n_rows, min(n_rows, n_blocks) + 1).astype(np.int64))


def balanced_blocks(indptr: IntArray, n_blocks: int = _N_BLOCKS) -> IntArray:
    """Boundaries of at most ``n_blocks`` runs of rows with about equal work.

    The work of a row is its number of entries and a constant for solving its small system.
    """
    work = np.asarray(indptr, dtype=np.int64) + 16 * np.arange(len(indptr), dtype=np.int64)
    targets = np.linspace(0, work[-1], n_blocks + 1)
    boundaries = np.searchsorted(work, targets)
    boundaries[0], boundaries[-1] = 0, len(indptr) - 1
    return np.unique(boundaries).astype(np.int64)


def map_blocks(
    function: Callable[[int, int], Result],
    boundaries: IntArray,
    *,
    work: float = math.inf,
    uses_blas: bool = False,
) -> list[Result]:
    """``function(start, stop)`` for each block, in parallel; the results in the order of the blocks.

    Parameters
    ----------
    function : callable
    boundaries : ndarray of int
        First row of each block, and the end.
    work : float, default=inf
        About how many operations all blocks take: a little is done on the spot, as one block.
    uses_blas : bool, default=False
        Whether the function multiplies matrices: BLAS then stays on the thread that calls it.
    """
    if work < _WORTH_A_THREAD:
        return [function(int(boundaries[0]), int(boundaries[-1]))]
    starts, stops = boundaries[:-1].tolist(), boundaries[1:].tolist()
    n_threads = min(available_threads(), len(starts))
    if n_threads <= 1:
        return [function(start, stop) for start, stop in zip(starts, stops, strict=True)]
    with _single_threaded_blas() if uses_blas else nullcontext(), ThreadPoolExecutor(n_threads) as executor:
        return list(executor.map(function, starts, stops))


@contextmanager
def _single_threaded_blas() -> Iterator[None]:
    with _BLAS_LIMIT, _controller().limit(limits=1, user_api="blas"):
        yield

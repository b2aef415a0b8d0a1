"""Running compiled kernels over blocks of rows, on as many threads as the user allows.

Kernels release the interpreter lock and own disjoint rows, so plain Python threads are enough: nothing
to configure, safe inside other people's threads, and results do not depend on the number of threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from lgmd._typing import IntArray

__all__ = ["available_threads", "balanced_blocks", "blas_threads_worth", "even_blocks", "map_blocks"]

Result = TypeVar("Result")

# Fixed, so that sums over blocks come out the same on one core and on sixty-four.
_N_BLOCKS = 64

# Starting threads takes as long as about this many operations, and a block that has fewer is joined to the next.
_WORTH_A_THREAD = 2e6
_WORTH_A_BLOCK = 4e6

# A product of matrices gains from a second thread above about this many operations; below, waiting for it costs more.
_WORTH_A_BLAS_THREAD = 1e7


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def available_threads() -> int:
    """Threads that kernels may use: the cores at hand, or fewer under ``threadpoolctl`` limits."""
    # Our own limit on BLAS is there to leave the cores to the kernels.
    return _SINGLE_THREADED_BLAS.threads_outside or _allowed_threads()


def _allowed_threads() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A BLAS that was built without threads, such as some packages bring along, limits nobody.
    limits = [
        int(pool["num_threads"])
        for pool in _controller().info()
        if pool["user_api"] in ("blas", "openmp") and pool.get("threading_layer") != "disabled"
    ]
    return max(1, min([cores, *limits]))


@lru_cache(maxsize=256)
def even_blocks(n_rows: int, n_blocks: int = _N_BLOCKS) -> IntArray:
    """Boundaries of at most ``n_blocks`` runs of rows of equal length; they can be read only."""
    boundaries = np.unique(np.linspace(0, n_rows, min(n_rows, n_blocks) + 1).astype(np.int64))
    boundaries.setflags(write=False)
    return boundaries


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
        About how many operations all blocks take: a little is done on the spot, as one block, and blocks of little
        are joined.
    uses_blas : bool, default=False
        Whether the function multiplies matrices: BLAS then stays on the thread that calls it.
    """
    if work < _WORTH_A_THREAD:
        return [function(int(boundaries[0]), int(boundaries[-1]))]
    boundaries = _of_enough_work(boundaries, work)
    starts, stops = boundaries[:-1].tolist(), boundaries[1:].tolist()
    n_threads = min(available_threads(), len(starts))
    if n_threads <= 1:
        return [function(start, stop) for start, stop in zip(starts, stops, strict=True)]
    with _SINGLE_THREADED_BLAS if uses_blas else nullcontext(), ThreadPoolExecutor(n_threads) as executor:
        return list(executor.map(function, starts, stops))


def _of_enough_work(boundaries: IntArray, work: float) -> IntArray:
    """Fewer blocks of more work each, as many on any machine."""
    n_blocks = len(boundaries) - 1
    joined = min(math.ceil(n_blocks * _WORTH_A_BLOCK / work), math.ceil(n_blocks / 2))
    return np.append(boundaries[:-1:joined], boundaries[-1]) if joined > 1 else boundaries


def blas_threads_worth(work: float) -> AbstractContextManager[None]:
    """Keep BLAS on one thread within, if its products take no more than ``work`` operations each."""
    return _SINGLE_THREADED_BLAS if work < _WORTH_A_BLAS_THREAD else nullcontext()


class _SingleThreadedBlas(AbstractContextManager[None]):
    """BLAS on one thread for as long as anyone is within.

    The limit belongs to the whole process: the first caller sets it and the last one lifts it, so that callers on
    several threads neither wait for each other nor put back what another had set.

    Attributes
    ----------
    threads_outside : int
        What was allowed before the first caller came; zero while nobody is within.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_within = 0
        self._limit: Any = None
        self.threads_outside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._n_within == 0:
                self.threads_outside = _allowed_threads()
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._n_within += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_within -= 1
            if self._n_within == 0:
                self._limit.restore_original_limits()
                self.threads_outside = 0


_SINGLE_THREADED_BLAS = _SingleThreadedBlas()

"""Running trials: one after the other, or several at once in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from lgmd.tuning.evaluation import Evaluation, Outcome
from lgmd.tuning.result import TuningError

__all__ = ["Workers", "open_workers"]

# Set before a worker loads its libraries; the limit of threadpoolctl comes after.
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA", "VECLIB_MAXIMUM")}


class Workers(Protocol):
    """Something that evaluates settings."""

    n_workers: int

    def submit(self, key: Any, *arguments: Any) -> None:
        """Begin with a setting."""

    def next(self) -> tuple[Any, Outcome]:
        """The key and the outcome of one that has ended."""

    def close(self, interrupted: bool = False) -> None:
        """Let go of all processes; if interrupted, at once."""


def open_workers(evaluation: Evaluation, n_workers: int) -> Workers:
    """One worker is this process; more are processes of their own, with one thread each."""
    return _Here(evaluation) if n_workers == 1 else _Processes(evaluation, n_workers)


class _Here:
    n_workers = 1

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._waiting: list[tuple[Any, Callable[[], Outcome]]] = []

    def submit(self, key: Any, *arguments: Any) -> None:
        self._waiting.append((key, lambda: self._evaluation(*arguments)))

    def next(self) -> tuple[Any, Outcome]:
        key, evaluate = self._waiting.pop(0)
        return key, evaluate()

    def close(self, interrupted: bool = False) -> None:
        pass


class _Processes:
    def __init__(self, evaluation: Evaluation, n_workers: int) -> None:
        # scikit-learn's own way to processes: scripts need no guard about their main part, and lambdas travel too.
        from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

        self.n_workers = n_workers
        self._executor = ProcessPoolExecutor(
            n_workers, initializer=_begin, initargs=(evaluation,), env=_ONE_THREAD, timeout=None
        )
        self._running: dict[Future[Outcome], Any] = {}

    def submit(self, key: Any, *arguments: Any) -> None:
        self._running[self._executor.submit(_evaluate, *arguments)] = key

    def next(self) -> tuple[Any, Outcome]:
        ended, _ = wait(self._running, return_when=FIRST_COMPLETED)
        future = min(ended, key=list(self._running).index)
        try:
            return self._running.pop(future), future.result()
        except BrokenProcessPool as error:
            raise TuningError(
                "A worker came to a sudden end, most often for lack of memory. Lower n_workers; with storage=... the "
                "trials that had ended are kept, and the search goes on from them."
            ) from error

    def close(self, interrupted: bool = False) -> None:
        self._executor.shutdown(wait=True, kill_workers=interrupted)


_evaluation: Evaluation


def _begin(evaluation: Evaluation) -> None:
    global _evaluation
    _evaluation = evaluation


def _evaluate(*arguments: Any) -> Outcome:
    with threadpool_limits(1):
        return _evaluation(*arguments)

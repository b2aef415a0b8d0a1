"""Seconds per iteration of other explicit-feedback ALS libraries, on the data of :mod:`power_law`.

One iteration updates both sides once, users and items. Reading the data, building the sparse matrices and
drawing the first factors are left out of every figure. All rivals run in float32 on the CPU and minimise

    sum over entries of (y - mean - r_i - c_j - u_i'v_j)^2 + regularization * (|u_i|^2 + |v_j|^2),

the usual "weighted lambda" form, where the penalty of a line grows with its number of entries. They differ
in how they treat the means, see the functions.

Install them beside this package with ``pip install lenskit cmfrec``. A rival that is missing yields a result
without figures and with the reason.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from threadpoolctl import threadpool_limits

from power_law import Ratings, make_ratings, predict


@dataclass(frozen=True)
class RivalResult:
    """What a rival achieved, or why there is nothing to show.

    Attributes
    ----------
    name : str
    n_iterations : int
    seconds : float or None
        One full iteration, both sides; the best of those measured.
    cores : float or None
        Cores that the best one kept busy. Well below the number of threads means that other work on the
        machine took its share, and that the time says little.
    rmse : float or None
        Root mean squared error on the fitted entries after ``n_iterations`` iterations.
    note : str
        The version that ran, or the reason for having no figures.
    """

    name: str
    n_iterations: int
    seconds: float | None = None
    cores: float | None = None
    rmse: float | None = None
    note: str = ""


def time_lenskit(
    ratings: Ratings, k: int, n_threads: int, n_iterations: int = 5, regularization: float = 0.05
) -> RivalResult:
    """Time ``train_epoch`` of the trainer behind ``lenskit.als.BiasedMFScorer``.

    The update is exact, one Cholesky solve of size ``k`` a line. The means are damped averages, subtracted
    once before training, so no part of the epoch. Each epoch is timed on its own.

    LensKit sets its thread pool once in the life of a process: a later call with another ``n_threads``
    gives no figures.
    """
    result = RivalResult("lenskit, Cholesky", n_iterations)
    try:
        from lenskit.als import BiasedMFScorer
        from lenskit.data import from_interactions_df
        from lenskit.training import TrainingOptions
        from pandas import DataFrame
    except ImportError as error:
        return replace(result, note=f"not importable: {error}")

    # Starting the pool also cuts the BLAS of the whole process to one thread; the context restores it.
    with threadpool_limits(1, user_api="blas"):
        if (found := start_lenskit_pool(n_threads)) != n_threads:
            return replace(result, note=f"its pool already has {found} threads; use a new process")
        table = DataFrame({"user_id": ratings.rows, "item_id": ratings.columns, "rating": ratings.values})
        scorer = BiasedMFScorer(embedding_size=k, epochs=n_iterations, regularization=regularization)
        trainer = scorer.create_trainer(from_interactions_df(table), TrainingOptions(rng=0))
        best = min(_Duration.of(trainer.train_epoch) for _ in range(n_iterations))

    # No row or column is empty and both are numbered from 0, so LensKit's numbering is ours.
    rmse = training_rmse(
        ratings,
        scorer.user_embeddings,
        scorer.item_embeddings,
        scorer.bias.global_bias,
        scorer.bias.user_biases,
        scorer.bias.item_biases,
    )
    return replace(result, seconds=best.wall, cores=best.cores, rmse=rmse, note=f"lenskit {version('lenskit')}")


@cache
def start_lenskit_pool(n_threads: int) -> int:
    from lenskit._accel import thread_count
    from lenskit.parallel import initialize

    initialize(threads=n_threads, backend_threads=1)
    return thread_count()


def time_cmfrec(
    ratings: Ratings,
    k: int,
    n_threads: int,
    n_iterations: int = 5,
    regularization: float = 0.05,
    *,
    use_cg: bool = True,
    n_repeats: int = 3,
) -> RivalResult:
    """Time an iteration of ``cmfrec.CMF`` by the difference of a long and a short fit.

    ``fit`` runs whole, so ``n_iterations`` against 1 iteration gives the time of those between; set-up and
    the first iteration cancel. The final Cholesky round of ``use_cg=True`` and the matrices for later
    predictions are switched off, which leaves iterations all alike.

    The row and column means are parameters of the model, penalised like the factors: an iteration solves
    systems of size ``k + 1`` and subtracts the other side's new means from all entries, twice.

    Parameters
    ----------
    use_cg : bool
        The default, at most 3 steps of conjugate gradients a line from the last factors; else exact
        Cholesky solves.
    n_repeats : int
        Fits of each length; the best of each enters the difference.
    """
    if n_iterations < 2:
        raise ValueError(f"n_iterations={n_iterations} leaves no difference to time. Use 2 or more.")
    result = RivalResult(f"cmfrec, {'CG' if use_cg else 'Cholesky'}", n_iterations)
    try:
        from cmfrec import CMF
    except ImportError as error:
        return replace(result, note=f"not importable: {error}")

    matrix = coo_array((ratings.values, (ratings.rows, ratings.columns)), shape=ratings.shape)
    short, long = (
        CMF(
            method="als",
            k=k,
            niter=niter,
            lambda_=regularization,
            scale_lam=True,
            use_cg=use_cg,
            finalize_chol=False,
            precompute_for_predictions=False,
            use_float=True,
            nthreads=n_threads,
            verbose=False,
        )
        for niter in (1, n_iterations)
    )
    # cmfrec spreads lines over its own threads; BLAS threads inside them would only compete.
    with threadpool_limits(1, user_api="blas"):
        runs = [[_Duration.of(partial(model.fit, matrix)) for model in (short, long)] for _ in range(n_repeats)]
    short_best, long_best = (min(durations) for durations in zip(*runs, strict=True))
    between = _Duration(long_best.wall - short_best.wall, long_best.cpu - short_best.cpu)

    rmse = training_rmse(ratings, long.A_, long.B_, long.glob_mean_, long.user_bias_, long.item_bias_)
    return replace(
        result,
        seconds=between.wall / (n_iterations - 1),
        cores=between.cores,
        rmse=rmse,
        note=f"cmfrec {version('cmfrec')}",
    )


def time_rivals(
    ratings: Ratings, k: int, n_threads: int, n_iterations: int = 5, regularization: float = 0.05
) -> list[RivalResult]:
    """Time every rival at the same rank and threads."""
    arguments = (ratings, k, n_threads, n_iterations, regularization)
    return [
        time_lenskit(*arguments),
        time_cmfrec(*arguments, use_cg=True),
        time_cmfrec(*arguments, use_cg=False),
    ]


def training_rmse(
    ratings: Ratings,
    row_factors: NDArray[np.float32],
    column_factors: NDArray[np.float32],
    mean: float,
    row_means: NDArray[np.float32],
    column_means: NDArray[np.float32],
) -> float:
    """Root mean squared error of a factorisation with means, on the entries it was fitted to."""
    fitted = predict(ratings.rows, ratings.columns, row_factors, column_factors, mean, row_means, column_means)
    return float(np.sqrt(np.mean(np.square(fitted - ratings.values), dtype=np.float64)))


@dataclass(frozen=True, order=True)
class _Duration:
    """Wall-clock seconds and CPU seconds over all threads, ordered by the wall clock."""

    wall: float
    cpu: float

    @property
    def cores(self) -> float:
        return self.cpu / self.wall

    @classmethod
    def of(cls, call: Callable[[], object]) -> _Duration:
        wall, cpu = perf_counter(), process_time()
        call()
        return cls(perf_counter() - wall, process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds per ALS iteration of lenskit and cmfrec.")
    parser.add_argument("--rows", type=int, default=70_000)
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("-k", type=int, default=20, help="rank of the factorisation")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--regularization", type=float, default=0.05)
    options = parser.parse_args()

    ratings = make_ratings(options.rows, options.columns, options.entries)
    print(
        f"{options.entries:,} entries, {options.rows:,} x {options.columns:,}, "
        f"k = {options.k}, threads = {options.threads}, RMSE after {options.iterations} iterations"
    )
    print(f"{'rival':<20}{'s/iteration':>12}{'cores':>7}{'RMSE':>9}  note")
    for result in time_rivals(ratings, options.k, options.threads, options.iterations, options.regularization):
        if result.seconds is None:
            figures = f"{'-':>12}{'-':>7}{'-':>9}"
        else:
            figures = f"{result.seconds:12.3f}{result.cores:7.2f}{result.rmse:9.4f}"
        print(f"{result.name:<20}{figures}  {result.note}")


if __name__ == "__main__":
    main()

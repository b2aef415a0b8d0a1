"""The search itself: ask for a setting, fit and score it, tell what came out."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from sklearn.utils import check_random_state

from lgmd._validation import check_integer, check_real, check_seed
from lgmd.exceptions import InvalidParameterError
from lgmd.observed import as_observed
from lgmd.tuning.evaluation import Evaluation, check_estimator
from lgmd.tuning.ledger import Ledger
from lgmd.tuning.parameters import spelled_out, with_parameters
from lgmd.tuning.progress import progress_bar
from lgmd.tuning.pruning import can_prune
from lgmd.tuning.result import Trial, TuningError, TuningResult, trials_table
from lgmd.tuning.spaces import as_space
from lgmd.tuning.splits import make_splits
from lgmd.tuning.store import describe_search, open_study, quiet_optuna
from lgmd.tuning.workers import open_workers

__all__ = ["tune"]


def tune(
    estimator: Any,
    Y: Any,
    n_trials: int = 50,
    *,
    space: Any = None,
    held_out: float = 0.1,
    n_splits: int = 1,
    timeout: float | None = None,
    storage: str | os.PathLike[str] | None = None,
    study_name: str | None = None,
    n_workers: int = 1,
    prune: bool = True,
    refit: bool = True,
    progress: bool | None = None,
    callback: Callable[[Trial], bool | None] | None = None,
    random_state: Any = None,
) -> TuningResult:
    """Find the parameters that predict held-out entries of a table best.

    Some of the observed entries are put aside, the same for all trials. Each trial fits the estimator on the rest and
    is scored by its root mean squared error on them. The first trial is the estimator as it is, if that lies in the
    space; the next few are spread over the space, and from then on a tree-structured Parzen estimator proposes what to
    try. A setting that was tried already takes its score.

    Parameters
    ----------
    estimator : estimator
        Any model with ``fit``, ``get_params``, ``set_params`` and either ``predict(rows, columns)``, ``reconstruct()``
        or, for imputers, ``fit_transform(table)``. It stays as it is.
    Y : array-like, masked array, DataFrame or sparse matrix of shape (n, p)
        The table; nothing else is looked at. Estimators get it in the form in which it is given here.
    n_trials : int, default=50
        Settings to try in all, those of an earlier call with the same ``storage`` included.
    space : dict, list of str or None, default=None
        What to search. A dict maps names of parameters to ``(low, high)``, ``(low, high, "log")`` or a list of choices;
        a list names parameters whose default range is to be taken, as ``None`` does in a dict. Bounds that are both
        integers make an integer, unless the parameter is a float now. ``"sample_graph__eta"`` is a parameter of a graph
        learner. ``"penalty"`` is ``sample_penalty`` and ``feature_penalty`` at once, ``"graph__eta"`` that of both
        learners.

        The default for ``inference="map"`` is ``"penalty"`` and the sparsity of each graph: ``eta`` (or ``density``) of
        the threshold and the graphical lasso, ``rho`` of a Laplacian graph, ``n_neighbors``, ``fdr``. One penalty for
        both sides loses nothing: with graphs at unit scale only the product of the two matters. For
        ``inference="variational"``, which learns the penalties, it is the sparsity of each graph, ``prior`` and
        ``noise``. The rank is tuned where ``"n_components"`` is asked for; its default range is from one to what the
        estimator has now. A penalty is refused where every trial is variational, since none would change.
    held_out : float, default=0.1
        Share of the observed entries that is put aside. Every row and column keeps an entry.
    n_splits : int, default=1
        How many times entries are put aside anew; the score is over all of them. Each costs a fit a trial.
    timeout : float, optional
        Seconds after which no new trial is begun.
    storage : path, optional
        An SQLite file that keeps the trials. If it exists, the search goes on where it ended, with what it would have
        tried next. A file of another table, estimator, space, split or seed is refused.
    study_name : str, optional
        Name within the file, which may hold several searches.
    n_workers : int, default=1
        Processes that work at the same time, with one thread each. With more than one, what is tried depends on which
        trial ends first.
    prune : bool, default=True
        Whether to give up trials whose error on the held-out entries is settling above the median of the finished ones.
        Only fits with ``inference="map"`` are, after their graphs are learned.
    refit : bool, default=True
        Whether to fit the best setting on all observed entries.
    progress : bool, optional
        Whether to draw a progress bar; by default on a terminal.
    callback : callable, optional
        Called with a :class:`Trial` after each one; returning True ends the search.
    random_state : int, RandomState or None, default=None
        Decides which entries are put aside and what is tried. The same number gives the same trials with one worker.

    Returns
    -------
    TuningResult

    Raises
    ------
    TuningError
        If no trial was completed; it lists the reasons. Single trials that fail are in the table, with their message.
    CheckpointError
        If ``storage`` cannot be used, or holds the trials of another search.

    Notes
    -----
    Ctrl-C ends the search with the best setting so far.

    Examples
    --------
    >>> from lgmd import PMF, datasets, tuning
    >>> data = datasets.make_matrix_normal(60, 40, rank=4, noise=0.5, missing=0.3, random_state=0)
    >>> result = tuning.tune(PMF(n_components=10), data.observed, n_trials=10, random_state=0)
    >>> sorted(result.best_params_)
    ['penalty']
    >>> result.best_estimator_.reconstruct().shape
    (60, 40)
    """
    check_estimator(estimator)
    estimator = spelled_out(estimator)
    _check_settings(n_trials, held_out, n_splits, timeout, n_workers, random_state)
    if callback is not None and not callable(callback):
        raise InvalidParameterError(
            f"callback must be a function of one argument, the trial that has ended, or None, but is {callback!r}."
        )
    allow_empty = _allows_empty(estimator)
    data = as_observed(Y, allow_empty_rows=allow_empty, allow_empty_columns=allow_empty)
    searched = as_space(space, estimator, data)
    given = random_state if random_state is None else int(_seed(random_state))
    with quiet_optuna():
        description = describe_search(data, estimator, searched, float(held_out), n_splits, given)
        study, seed = open_study(storage, study_name, description)
        ledger = Ledger(study, searched, estimator, seed)
        evaluation = Evaluation(estimator, make_splits(Y, data, float(held_out), n_splits, seed))
        pruned = prune and can_prune(estimator, tuple(searched))
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        best_before = math.inf if ledger.best is None else ledger.best.value
        try:
            with progress_bar(n_trials, len(ledger), best_before, progress) as advance:

                def tell(trial: Trial) -> bool:
                    advance(trial)
                    return callback is not None and bool(callback(trial))

                _search(ledger, evaluation, n_trials, n_workers, pruned, deadline, tell)
        except KeyboardInterrupt:
            if ledger.best is None:
                raise
            warnings.warn(
                f"The search was interrupted after {len(ledger)} of {n_trials} trials; the best of these is taken.",
                UserWarning,
                stacklevel=2,
            )
        best = ledger.best
        if best is None:
            raise TuningError(_why_none(ledger.trials, type(estimator).__name__))
        best_estimator = with_parameters(estimator, best.params)
        if refit:
            best_estimator.fit(Y)
        return TuningResult(
            best_estimator, best.params, best.value, trials_table(ledger.trials, searched), study, searched
        )


def _search(
    ledger: Ledger,
    evaluation: Evaluation,
    n_trials: int,
    n_workers: int,
    pruned: bool,
    deadline: float,
    tell: Callable[[Trial], bool],
) -> None:
    """Keep all workers busy until there are enough trials, time is up, or somebody says stop."""
    number, running, stopped = len(ledger), 0, False
    if number >= n_trials:
        return
    workers = open_workers(evaluation, min(n_workers, n_trials - number))
    interrupted = True
    try:
        while True:
            while running < workers.n_workers and number < n_trials and not stopped and time.monotonic() < deadline:
                trial, parameters = ledger.ask(number)
                number += 1
                known = ledger.known(trial)
                if known is not None:
                    stopped = tell(ledger.tell(trial, known))
                    continue
                workers.submit(trial, parameters, ledger.bars() if pruned else ())
                running += 1
            if not running:
                break
            trial, outcome = workers.next()
            running -= 1
            stopped = tell(ledger.tell(trial, outcome)) or stopped
        interrupted = False
    finally:
        workers.close(interrupted)


def _check_settings(
    n_trials: Any, held_out: Any, n_splits: Any, timeout: Any, n_workers: Any, random_state: Any
) -> None:
    check_integer(n_trials, "n_trials", minimum=1)
    check_integer(n_splits, "n_splits", minimum=1)
    check_integer(n_workers, "n_workers", minimum=1)
    if not 0 < check_real(held_out, "held_out", minimum=-math.inf) < 1:
        raise InvalidParameterError(
            f"held_out is the share of observed entries to judge by, so it must be between 0 and 1, but is {held_out}."
        )
    if timeout is not None:
        check_real(timeout, "timeout")
    check_seed(random_state)


def _seed(random_state: Any) -> int:
    return (
        int(check_random_state(random_state).randint(2**31 - 1)) if hasattr(random_state, "randint") else random_state
    )


def _allows_empty(estimator: Any) -> bool:
    """Models of this package say whether a row may be empty; others decide for themselves."""
    parameters = estimator.get_params()
    return bool(parameters.get("allow_empty", parameters.get("estimator__allow_empty", True)))


def _why_none(trials: list[Trial], name: str) -> str:
    if not trials:
        return f"No trial of {name} was begun before the time was up. Raise timeout."
    reasons = Counter(trial.message for trial in trials)
    listed = "\n".join(f"- {count} x {message}" for message, count in reasons.most_common(10))
    return f"None of the {len(trials)} trials of {name} could be completed:\n{listed}"

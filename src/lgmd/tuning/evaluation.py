"""One trial: fit on what is left of the table, score on what was put aside."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import FloatArray
from lgmd.estimators.gpca import GPCA
from lgmd.exceptions import ConvergenceWarning, DivergenceError, InvalidDataError, InvalidParameterError
from lgmd.observed import as_observed
from lgmd.tuning.parameters import with_parameters
from lgmd.tuning.pruning import Bar, GivenUpError, watch
from lgmd.tuning.splits import Split

__all__ = ["Evaluation", "Outcome", "check_estimator"]


@dataclass(frozen=True)
class Outcome:
    """What became of a trial.

    Attributes
    ----------
    value : float
        Root mean squared error over the held-out entries of all splits; NaN where there is none.
    scores : tuple of float
        That of each split.
    state : {"complete", "pruned", "failed"}
    message : str
        Why it failed or was given up.
    seconds : float
    scales : tuple of float
        What the model divided each training table by, where it says so.
    """

    value: float
    scores: tuple[float, ...]
    state: str
    message: str
    seconds: float
    scales: tuple[float, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """Everything that a trial needs but its parameters."""

    estimator: Any
    splits: tuple[Split, ...]

    def __call__(self, parameters: Mapping[str, Any], bars: tuple[Bar, ...] = ()) -> Outcome:
        """Fit and score one setting; an error becomes an outcome.

        Parameters
        ----------
        parameters : mapping of str to value
        bars : tuple of Bar
            For each split what a run has to beat to be worth finishing; empty for no pruning.
        """
        started = time.perf_counter()
        scores: list[float] = []
        scales: list[float] = []
        state, message = "complete", ""
        try:
            for number, split in enumerate(self.splits):
                model = with_parameters(self.estimator, parameters)
                error = _fit_and_score(model, split, bars[number] if bars else None)
                if not math.isfinite(error):
                    raise DivergenceError(f"the error on the held-out entries is {error}")
                scores.append(error)
                scales.append(float(getattr(model, "scale_", math.nan)))
        except GivenUpError as reason:
            state, message = "pruned", str(reason)
            scores.append(reason.error)
        except Exception as error:  # one setting that cannot be fitted is no reason to lose the others
            state, message = "failed", f"{type(error).__name__}: {error}"
        value = math.nan if state == "failed" else self._pooled(scores)
        return Outcome(value, tuple(scores), state, message, time.perf_counter() - started, tuple(scales))

    def _pooled(self, scores: list[float]) -> float:
        """The error over the entries of all splits together."""
        weights = [len(split.held_out.values) for split in self.splits[: len(scores)]]
        return float(np.sqrt(np.average(np.square(scores), weights=weights)))


def check_estimator(estimator: Any) -> None:
    """Refuse what cannot be copied, fitted and asked for entries."""
    missing = [name for name in ("fit", "get_params", "set_params") if not callable(getattr(estimator, name, None))]
    if missing or isinstance(estimator, type):
        found = f"the class {estimator.__name__}" if isinstance(estimator, type) else f"a {type(estimator).__name__}"
        raise InvalidParameterError(
            "estimator must be an unfitted model such as LGMD(inference='map'), with fit, get_params and set_params, "
            f"but is {found}."
        )
    if isinstance(estimator, GPCA):
        raise InvalidParameterError(
            f"{type(estimator).__name__} cannot be tuned: it needs a complete table, and a search holds entries out to "
            "judge by. Tune LGMD, which takes gaps, and pass the best model to GPCA.from_model."
        )
    if not (_predicts_entries(estimator) or hasattr(estimator, "reconstruct") or hasattr(estimator, "fit_transform")):
        raise InvalidParameterError(
            f"{type(estimator).__name__} cannot be scored on held-out entries: it has neither predict(rows, columns) "
            "nor reconstruct(), nor fit_transform(table) that fills gaps."
        )


def _predicts_entries(estimator: Any) -> bool:
    """Whether ``predict`` takes rows and columns; that of a regressor takes a table."""
    predict = getattr(estimator, "predict", None)
    if predict is None:
        return False
    return list(inspect.signature(predict).parameters)[:2] == ["rows", "columns"]


def _fit_and_score(model: Any, split: Split, bar: Bar | None) -> float:
    held_out = split.held_out
    options = {} if bar is None else watch(model, held_out, bar)
    with warnings.catch_warnings():
        # A trial that has not quite converged is judged all the same.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if _predicts_entries(model) or hasattr(model, "reconstruct"):
            model.fit(split.training, **options)
            _pass_interruption_on(model)
            predicted = _predictions(model, split)
        else:
            filled = model.fit_transform(split.training)
            _pass_interruption_on(getattr(model, "estimator_", model))
            predicted = _entries_of(filled, split, model)
    return root_mean_square(predicted - held_out.values)


def _pass_interruption_on(model: Any) -> None:
    """Models end a fit on Ctrl-C with what they have; here the search is to end."""
    if getattr(model, "status_", None) == "interrupted":
        raise KeyboardInterrupt


def _predictions(model: Any, split: Split) -> FloatArray:
    if _predicts_entries(model):
        return np.asarray(model.predict(split.held_out.rows, split.held_out.columns), dtype=np.float64)
    return _entries_of(model.reconstruct(), split, model)


def _entries_of(table: Any, split: Split, model: Any) -> FloatArray:
    """Held-out entries of a table that a model returned, which may have columns of its own behind those of ours."""
    found = np.asarray(table, dtype=np.float64)
    n, p = split.training.shape
    fits = found.ndim == 2 and found.shape[0] == n and found.shape[1] >= p
    if not fits or (found.shape[1] > p and _drops_empty_columns(model, split)):
        raise InvalidDataError(_other_shape(found, split, type(model).__name__))
    return found[split.held_out.rows, split.held_out.columns]


def _drops_empty_columns(model: Any, split: Split) -> bool:
    """Whether scikit-learn's imputers inside the model drop columns, in whose place others may have been appended."""
    keeps = [value for name, value in model.get_params().items() if name.endswith("keep_empty_features")]
    return not all(keeps) and bool(_empty_columns(split))


def _empty_columns(split: Split) -> list[str]:
    data = as_observed(split.training, allow_empty_rows=True, allow_empty_columns=True)
    empty = np.flatnonzero(data.T.row_counts == 0)
    return [str(column) if data.column_names is None else repr(str(data.column_names[column])) for column in empty]


def _other_shape(found: FloatArray, split: Split, name: str) -> str:
    n, p = split.training.shape
    shape = " x ".join(f"{length:,}" for length in found.shape) or "a single number"
    text = f"{name} returned a table of {shape} for one of {n:,} x {p:,}, so that its entries have no known places."
    empty = _empty_columns(split)
    if not empty:
        return f"{text} Tune a model that keeps every row and column."
    few = ", ".join(empty[:5]) + (", ..." if len(empty) > 5 else "")
    return (
        f"{text} {len(empty):,} column{'s have' if len(empty) > 1 else ' has'} no entry ({few}), and imputers of "
        f"scikit-learn drop such columns: drop {'them' if len(empty) > 1 else 'it'} first, or set "
        "keep_empty_features=True."
    )


def root_mean_square(residuals: FloatArray) -> float:
    """Root of the mean square; what overflows is infinite, which the caller refuses."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.mean(np.square(residuals, dtype=np.float64))))

"""What a search leaves behind."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgmd._files import replacing
from lgmd.exceptions import InvalidParameterError, LGMDError
from lgmd.tuning.spaces import Choices, Dimension, Space

if TYPE_CHECKING:
    import optuna
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Trial", "TuningError", "TuningResult", "trials_table"]


class TuningError(LGMDError, RuntimeError):
    """A search in which no trial could be completed."""


@dataclass(frozen=True)
class Trial:
    """One setting that was tried.

    Attributes
    ----------
    number : int
        In the order of the search, from zero.
    params : dict of str to value
        Named as in the space.
    value : float
        Root mean squared error on the held-out entries; of a trial that was given up what it had reached, of a failed
        one NaN.
    state : {"complete", "pruned", "failed"}
    seconds : float
    message : str
        Why it failed or was given up.
    """

    number: int
    params: dict[str, Any]
    value: float
    state: str
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class TuningResult:
    """The outcome of :func:`~lgmd.tuning.tune`.

    Attributes
    ----------
    best_estimator_ : estimator
        With the best parameters, fitted on all observed entries; unfitted where ``refit=False``.
    best_params_ : dict of str to value
        Named as in the space; :func:`~lgmd.tuning.with_parameters` sets them on any estimator of the kind.
    best_score_ : float
        Root mean squared error on the held-out entries.
    trials_ : DataFrame
        A row a trial: ``number``, a column ``param_...`` for each parameter, ``value``, ``state``, ``seconds``,
        ``message``.
    study_ : optuna.Study
        For Optuna's own tools.
    space_ : dict of str to Range or Choices
        What was searched.
    """

    best_estimator_: Any
    best_params_: dict[str, Any]
    best_score_: float
    trials_: pd.DataFrame
    study_: optuna.Study
    space_: Space

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={_short(value)}" for name, value in self.best_params_.items())
        return f"TuningResult(best_score_={self.best_score_:.6g}, {settings}; {len(self.trials_)} trials)"

    def plot(self) -> Figure:
        """Draw the scores in the order of the trials, with the best so far, and against each parameter."""
        from lgmd.tuning.plots import draw_trials

        return draw_trials(self)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``trials.csv``, ``tuning.png`` and ``tuning.svg`` into a folder, which is made where it is missing.

        Pictures that cannot be drawn are left out with a warning, so that the trials are not lost with them.

        Returns
        -------
        list of Path
            The files.
        """
        target = Path(folder)
        if target.exists() and not target.is_dir():
            raise InvalidParameterError(f"{target} is a file, but trials are saved in a folder. Pass another path.")
        contents = {"trials.csv": self.trials_.to_csv(index=False).encode()}
        try:
            contents |= self._pictures()
        except Exception as error:  # whatever a picture fails of, the search has taken its hours
            warnings.warn(
                f"The pictures of the search could not be drawn ({type(error).__name__}: {error}) and are left out; "
                "trials.csv has what they would show.",
                UserWarning,
                stacklevel=2,
            )
        target.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            with replacing(target / name) as temporary:
                temporary.write_bytes(content)
        return [target / name for name in contents]

    def _pictures(self) -> dict[str, bytes]:
        figure, pictures = self.plot(), {}
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=150)
            pictures[f"tuning.{kind}"] = buffer.getvalue()
        return pictures


def trials_table(trials: list[Trial], space: Space) -> pd.DataFrame:
    """One row a trial."""
    import pandas as pd

    return pd.DataFrame(
        {
            "number": [trial.number for trial in trials],
            **{f"param_{name}": _column([trial.params[name] for trial in trials], space[name]) for name in space},
            "value": [trial.value for trial in trials],
            "state": [trial.state for trial in trials],
            "seconds": [trial.seconds for trial in trials],
            "message": [trial.message for trial in trials],
        }
    )


def _column(values: list[Any], dimension: Dimension) -> pd.Series:
    """Values of a parameter; choices of several types stay as they are, where 1 beside 0.1 would become 1.0."""
    import pandas as pd

    if not isinstance(dimension, Choices):
        return pd.Series(values)
    shown = dimension.shown
    one_type = len(set(map(type, shown))) == 1
    return pd.Series([shown[dimension.place(value)] for value in values], dtype=None if one_type else object)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)

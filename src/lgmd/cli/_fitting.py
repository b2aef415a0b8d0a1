"""Fitting with progress, with a checkpoint, and with some entries put aside for an honest error."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lgmd.cli._checkpoints import Checkpoints
from lgmd.cli._output import naming
from lgmd.cli._progress import fit_progress
from lgmd.cli._talk import Talk
from lgmd.exceptions import ConvergenceWarning, InvalidParameterError
from lgmd.observed import HeldOut, as_observed, hold_out
from lgmd.tables import Table

if TYPE_CHECKING:
    from lgmd.estimators.factorization import Factorization
    from lgmd.report import HeldOutScores

__all__ = ["FINAL", "HELD_OUT_UP_TO", "HonestScores", "fit_model", "fit_table", "held_out_share", "score_held_out"]

#: Observed entries up to which some are put aside unless told otherwise: beyond, a second fit takes long.
HELD_OUT_UP_TO = 1_000_000
_USUAL_SHARE = 0.05

#: Where the fit of all entries keeps its state.
FINAL = "fit.npz"


@dataclass(frozen=True, eq=False)
class HonestScores:
    """Entries that a fit has not seen, and what it said of them."""

    entries: HeldOut
    scores: HeldOutScores

    def line(self) -> str:
        """The error in a sentence."""
        scores = self.scores
        text = (
            f"Error on {len(scores.values):,} held-out entries (RMSE): {scores.rmse:.4g}, where the entries themselves "
            f"spread by {scores.spread:.4g}"
        )
        covered = scores.coverage(0.9)
        return f"{text}." if covered is None else f"{text}; {covered:.0%} of them lie within the 90 % error bars."

    def values(self) -> dict[str, Any]:
        """The error in numbers."""
        return {
            "entries": len(self.scores.values),
            "rmse": self.scores.rmse,
            "spread": self.scores.spread,
            "coverage_90": self.scores.coverage(0.9),
        }


def fit_model(
    model: Factorization, data: Any, label: str, talk: Talk, checkpoints: Checkpoints, part: str
) -> Factorization:
    """Fit, and keep the state where the user stops it."""
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with fit_progress(label, float(model.tol), talk.quiet) as callback, naming(checkpoints.folder):
            model.fit(data, callback=callback, checkpoint=checkpoints.path(part))
    checkpoints.seconds += time.monotonic() - started
    if model.status_ == "interrupted":
        raise checkpoints.interrupted(f"after {model.n_iter_} iterations ({label})")
    for warning in caught:
        # That the first of two fits did not converge is said of the second, if it matters.
        if part == FINAL or not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return model


def fit_table(model: Factorization, table: Table, talk: Talk, checkpoints: Checkpoints) -> Factorization:
    """Fit all observed entries of a table; the model knows its names."""
    fit_model(model, table.to_fit(), f"fitting {type(model).__name__}", talk, checkpoints, FINAL)
    if table.is_sparse:  # which has no place for names
        if table.row_names is not None:
            model.sample_names_in_ = table.row_names
        if table.column_names is not None:
            model.feature_names_in_ = table.column_names.astype(object)
    return model


def held_out_share(asked: float | None, table: Table, talk: Talk) -> float:
    """The share of entries to put aside: what was asked for, or what is cheap."""
    if asked is not None:
        if not 0 <= asked < 1:
            raise InvalidParameterError(f"held_out is a share of the entries, from 0 up to 1, but is {asked}.")
        return asked
    if table.n_observed > HELD_OUT_UP_TO:
        talk.note(
            f"No entries are held out, since with more than {HELD_OUT_UP_TO:,} a second fit takes long; the error on "
            "unseen entries stays unknown. --held-out 0.05 measures it and doubles the time."
        )
        return 0.0
    return _USUAL_SHARE


def score_held_out(
    model: Factorization, table: Table, share: float, talk: Talk, checkpoints: Checkpoints
) -> HonestScores | None:
    """Fit a copy of the model on a part of the entries and let it predict the others; None where there are none."""
    from sklearn.base import clone

    from lgmd.report import HeldOutScores

    if not share:
        return None
    empty = bool(model.allow_empty)
    data = as_observed(table.values, allow_empty_rows=empty, allow_empty_columns=empty)
    kept, aside = hold_out(data, share)
    if not len(aside.values):
        talk.note("The table is too small to hold entries out, so that the error on unseen entries stays unknown.")
        return None
    talk.note(
        f"A first fit without {len(aside.values):,} of the entries ({share:.0%}) measures the error on unseen ones; "
        "--held-out 0 leaves it out and halves the time."
    )
    first = fit_model(clone(model), kept, "fitting without held-out entries", talk, checkpoints, "held_out.npz")
    return HonestScores(aside, HeldOutScores.of(first, aside.rows, aside.columns, aside.values))

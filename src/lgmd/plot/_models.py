"""What plots ask of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgmd._typing import FloatArray
from lgmd._validation import check_choice
from lgmd.estimators import GPCA, LGMDImputer
from lgmd.estimators.factorization import Factorization
from lgmd.estimators.labels import refuse_reordered
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.observed import Observed, as_observed
from lgmd.report.decomposition import Decomposition, decompose
from lgmd.report.names import SideNames

__all__ = ["SIDES", "factors_of", "fitted_model", "is_model", "names_of", "same_table"]

SIDES = ("samples", "features")


def is_model(candidate: Any) -> bool:
    """Whether this is one of the package's estimators, fitted or not."""
    return isinstance(candidate, Factorization | GPCA | LGMDImputer)


def fitted_model(model: Any) -> Decomposition:
    """Any fitted model, read the same way."""
    if not is_model(model):
        raise InvalidParameterError(
            f"A plot needs a fitted model such as LGMD or LGMDImputer, but this is a {type(model).__name__}."
        )
    return decompose(model)


def factors_of(model: Decomposition, side: str) -> FloatArray:
    """The factors of one side."""
    return model.X if check_choice(side, "side", SIDES) == "samples" else model.W


def names_of(model: Decomposition, side: str, names: Any) -> SideNames:
    """Names of one side: those that are given before those of the model."""
    own = model.rows if check_choice(side, "side", SIDES) == "samples" else model.columns
    return own if names is None else SideNames.of(names, own.n, own.noun)


def same_table(model: Decomposition, table: Any) -> Observed:
    """A table that has the rows and columns of the fitted one, gaps where it likes."""
    observed = as_observed(
        table, allow_empty_rows=True, allow_empty_columns=True, allow_all_missing=True, min_rows=1, min_columns=1
    )
    if observed.shape != model.shape:
        (n, p), (rows, columns) = model.shape, observed.shape
        raise InvalidDataError(
            f"The table is {rows:,} x {columns:,}, but the model was fitted to {n:,} x {p:,}. Pass a table of that "
            "shape, with NaN where nothing is known."
        )
    for noun, own, found in (
        ("rows", getattr(model.estimator, "sample_names_in_", None), observed.row_names),
        ("columns", getattr(model.estimator, "feature_names_in_", None), observed.column_names),
    ):
        if own is not None and found is not None and not np.array_equal(np.asarray(own, dtype=str), found):
            raise InvalidDataError(
                f"The {noun} of the table have other names than the fitted ones, or another order. Reindex the table "
                f"to the fitted {noun}."
            )
    for side in ("sample", "feature"):
        refuse_reordered(model.estimator, table, side)
    return observed

"""A table with its gaps filled, and the error bars of what was filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lgmd.exceptions import InvalidParameterError
from lgmd.tables import Table, fill, undo_std

if TYPE_CHECKING:
    from lgmd.estimators.factorization import Factorization

__all__ = ["filled_table", "refuse_missing_bars"]


def refuse_missing_bars(model: Factorization) -> None:
    """Refuse to promise error bars that the model will not have."""
    if model.inference != "variational":
        raise InvalidParameterError(
            f"--error-bars needs a posterior, but {type(model).__name__} is fitted with inference='map', which gives "
            "none. Add --inference variational, or leave --error-bars out."
        )


def filled_table(model: Factorization, table: Table, with_bars: bool) -> list[Table]:
    """The filled table in the form of its file, and, if asked for, one with error bars."""
    found = model.reconstruct(return_std=with_bars)
    values, bars = found if with_bars else (found, None)
    filled = fill(table, values)
    if bars is None:
        return [filled]
    source = table if table.original is None else table.original
    spread = undo_std(table, values, bars)
    if source.is_sparse:
        spread = spread.copy() if not spread.flags.writeable or spread is bars else spread
        entries = source.values.tocoo()
        spread[entries.coords] = 0.0
    else:
        spread = np.where(np.isnan(source.values), spread, 0.0)
    return [filled, replace(filled, values=spread.astype(filled.values.dtype))]

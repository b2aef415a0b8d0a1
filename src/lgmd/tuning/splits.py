"""Entries of the table that are put aside to judge by, and the table without them in the form that it came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from lgmd.exceptions import InvalidDataError
from lgmd.observed import HeldOut, Observed, SparseObserved, hold_out

__all__ = ["Split", "make_splits"]

# hold_out shifts its seed by forty bits of sixty-four.
_SEEDS = 2**24


@dataclass(frozen=True)
class Split:
    """What a trial is fitted on, and what it is scored on."""

    training: Any
    held_out: HeldOut


def make_splits(table: Any, data: Observed, share: float, n_splits: int, seed: int) -> tuple[Split, ...]:
    """Splits that depend on the table and the seed alone, so that all trials are compared on the same entries.

    Every row and column that has entries keeps at least one.

    Parameters
    ----------
    table : table
        As the user gave it.
    data : Observed
        The same.
    share : float
        Of the observed entries, about how many are put aside.
    n_splits : int
        How many times this is done anew.
    seed : int
    """
    splits = []
    for number in range(n_splits):
        training, held_out = hold_out(data, share, (seed + number) % _SEEDS)
        if not len(held_out.values):
            raise InvalidDataError(
                f"held_out={share:g} leaves no entry to judge by: of {data.n_observed:,} observed entries every row "
                "and column keeps one. Raise held_out, or tune on a larger table."
            )
        splits.append(Split(_in_the_form_of(table, training), held_out))
    return tuple(splits)


def _in_the_form_of(table: Any, training: SparseObserved) -> Any:
    """The training entries as whatever the user's table is: what fits that fits this."""
    entries = training.to_csr()
    if scipy.sparse.issparse(table):
        return entries
    if isinstance(table, Observed):
        return training
    dense = np.full(training.shape, np.nan, training.dtype)
    rows = np.repeat(np.arange(training.shape[0]), np.diff(entries.indptr))
    dense[rows, entries.indices] = entries.data
    if isinstance(table, np.ma.MaskedArray):
        return np.ma.masked_invalid(dense)
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return type(table)(dense, index=table.index, columns=table.columns)
    return dense

"""Whether a table is the one that a model was fitted on, as far as the model and the settings of its fit can tell."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lgmd.cli._reading import Reading
from lgmd.cli._record import describe_table
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.observed import as_observed
from lgmd.report.decomposition import decompose
from lgmd.report.facts import FitFacts
from lgmd.tables import Table

__all__ = ["refuse_other_names", "refuse_other_reading", "refuse_other_table", "warn_of_misfit"]

# Variance explained below which the numbers are others; outliers and noisy rows alone can make it a little negative.
_NO_FIT = -0.5

# Ways to read the same file as other numbers.
_TRANSFORMATIONS = ("transpose", "log1p", "scale", "zeros")


def refuse_other_reading(reading: Reading, stored: Mapping[str, Any], settings: Path) -> None:
    """
    See that what was said about reading the table does not contradict the fit.

    Raises
    ------
    InvalidParameterError
        If it does.
    """
    for name in _TRANSFORMATIONS:
        said, fitted = getattr(reading, name), bool(stored.get(name))
        if said is None or said == fitted:
            continue
        raise InvalidParameterError(
            f"The model was fitted on a table that was read {'with' if fitted else 'without'} --{name}, as {settings} "
            f"says, but now --{'' if said else 'no-'}{name} is given. Leave it out: the table is then read as for the "
            "fit."
        )


def refuse_other_table(model: Any, table: Table, source: Path, known: Any, settings: Path) -> bool:
    """
    Compare a table with what the settings of a fit hold of theirs; whether it is certainly the same.

    Raises
    ------
    InvalidDataError
        If it is another one.
    """
    refuse_other_names(model, table, source)
    if not isinstance(known, Mapping):
        return False
    found = describe_table(table, source)
    if any(known.get(part) is None or found[part] is None for part in found):
        return False
    of_size = [f"{it['rows']:,} x {it['columns']:,} with {it['observed']:,} observed entries" for it in (found, known)]
    hint = f"Pass {known['path']} as it was then, or fit again."
    if of_size[0] != of_size[1]:
        raise InvalidDataError(
            f"{source} is not the table that was fitted: it is {of_size[0]}, where {settings} has one of {of_size[1]}. "
            f"{hint}"
        )
    if found["sha256"] != known["sha256"]:
        warnings.warn(
            f"{source} is not the file that was fitted: it has the size of {known['path']}, but not the checksum "
            f"(sha256) that {settings} holds. The report is right only if it holds the same numbers in another form.",
            UserWarning,
            stacklevel=2,
        )
        return False
    return True


def refuse_other_names(model: Any, table: Table, source: Path | None) -> None:
    """
    Compare names: a table of the same size need not be the one that was fitted, or not in the order of the fit.

    Raises
    ------
    InvalidDataError
        If rows or columns have other names, or another order.
    """
    fitted = getattr(model, "estimator_", model)  # of an imputer
    for kind, known, found in (
        ("row", getattr(fitted, "sample_names_in_", None), table.row_names),
        ("column", getattr(fitted, "feature_names_in_", None), table.column_names),
    ):
        if known is None or found is None or len(known) != len(found):  # of sizes the report itself speaks
            continue
        wanted, there = list(map(_plain, known)), list(map(_plain, found))
        if wanted == there:
            continue
        place = next(place for place, name in enumerate(wanted) if name != there[place])
        order = "stand in another order" if sorted(wanted) == sorted(there) else "have other names"
        raise InvalidDataError(
            f"{source or 'The table'} is not the table that was fitted: its {kind}s {order}. {kind.capitalize()} "
            f"{place + 1:,} is {there[place]!r}, where the model has {wanted[place]!r}. Pass the table of the fit, "
            "read with the same options."
        )


def warn_of_misfit(model: Any, table: Table, source: Path) -> None:
    """Warn where the mean says more about a table, of which nothing is known, than the model does."""
    decomposition = decompose(model)
    if table.shape != decomposition.shape:  # which the report refuses
        return
    observed = as_observed(table.to_fit(), allow_empty_rows=True, allow_empty_columns=True)
    explained = FitFacts.of(decomposition, observed).explained
    if explained is not None and explained < _NO_FIT:
        warnings.warn(
            f"The model explains {explained:.0%} of the variance of the entries of {source}: this does not look like "
            "the table that was fitted. Was that one read with --scale, --log1p, --zeros or --transpose? Give the same "
            "options here, or pass the right table.",
            UserWarning,
            stacklevel=2,
        )


def _plain(name: Any) -> str:
    """A name as text; files leave the midnights of days out."""
    return str(name).removesuffix(" 00:00:00")

"""The report of a model, with its table, as the command line writes it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from lgmd.cli._reading import Reading
from lgmd.cli._state import current
from lgmd.exceptions import InvalidDataError
from lgmd.report import HeldOutScores, write_report
from lgmd.tables import Table

__all__ = ["write_page"]


def write_page(
    path: Path,
    model: Any,
    table: Table | None,
    source: Path | None,
    reading: Reading,
    scores: HeldOutScores | None,
    title: str = "",
) -> Path:
    """
    Write the page, and return its path.

    Parameters
    ----------
    path : Path
    model : fitted estimator
    table : Table or None
        What was fitted, if it is at hand; one with other names than the model's is refused.
    source : Path or None
        Its file, if that is known.
    reading : Reading
        How it is read.
    scores : HeldOutScores or None
    title : str

    Raises
    ------
    InvalidDataError
        If the names of the table are not those that the model was fitted on.
    """
    if table is not None:
        _refuse_other_names(model, table, source)
    settings: dict[str, Any] = {"command": shlex.join(["lgmd", *current().arguments])}
    if source is not None:
        settings |= {"source": str(source), "reading": reading.arguments()}
        title = title or f"{type(model).__name__} of {source.name}"
    return write_report(
        model,
        path,
        table=None if table is None else table.to_fit(),
        title=title or None,
        held_out=scores,
        settings=settings,
        row_names=None if table is None else table.row_names,
        column_names=None if table is None else table.column_names,
    )


def _refuse_other_names(model: Any, table: Table, source: Path | None) -> None:
    """A table of the same size need not be the one that was fitted, or not in the order of the fit."""
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


def _plain(name: Any) -> str:
    """A name as text; files leave the midnights of days out."""
    return str(name).removesuffix(" 00:00:00")

"""The report of a model, with its table, as the command line writes it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from lgmd.cli._fitted_table import refuse_other_names
from lgmd.cli._reading import Reading
from lgmd.cli._state import current
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
        refuse_other_names(model, table, source)
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

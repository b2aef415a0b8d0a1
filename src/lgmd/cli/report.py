"""``lgmd report``: the page of a model that was fitted before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lgmd.cli._groups import with_groups
from lgmd.cli._reading import Reading
from lgmd.cli._talk import Talk

__all__ = ["report"]


@with_groups
def report(
    model: Annotated[
        Path, typer.Argument(readable=False, help="A model that lgmd fit or save() wrote, or the folder of lgmd fit.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", readable=False, help="The HTML file.")],
    table: Annotated[
        Path | None,
        typer.Option(readable=False, help="The table that was fitted; with it the report shows before and after."),
    ] = None,
    title: Annotated[str, typer.Option(help="What stands above the report.", show_default=False)] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    *,
    reading: Reading,
    talk: Talk,
) -> None:
    """Write the report of a fitted model: one HTML file that works offline.

    Read the table with the same options as for the fit; for the folder of lgmd fit, and the model in it, they are
    known, a table of another size is refused, and there is a warning if it is another file.
    """
    from lgmd.cli._fitted_table import refuse_other_reading, refuse_other_table, warn_of_misfit
    from lgmd.cli._model import read_settings
    from lgmd.cli._output import check_file, staged_files
    from lgmd.cli._reports import write_page
    from lgmd.cli._saved import load_model, stored_scores

    check_file(output, force)
    fitted = load_model(model)
    settings = (model if model.is_dir() else model.parent) / "settings.json"
    stored: dict[str, Any] = {}
    if settings.is_file() and (model.is_dir() or model.name == "model.lgmd"):
        stored = read_settings(settings)
        refuse_other_reading(reading, stored.get("reading", {}), settings)
        reading = reading.or_else(stored.get("reading", {}))
    source, data = table or _source(stored), None
    if table is not None:
        data = reading.read(table)
        if not refuse_other_table(fitted, data, table, stored.get("table"), settings):
            warn_of_misfit(fitted, data, table)
    with staged_files(output) as [path]:
        write_page(path, fitted, data, source, reading, stored_scores(model), title)
    talk.outcome([f"Report: {output}"], outcome="reported", output=output)


def _source(stored: dict[str, Any]) -> Path | None:
    """The file of the table that was fitted, as the settings of the fit have it."""
    found = stored.get("table")
    path = found.get("path") if isinstance(found, dict) else None
    return Path(path) if isinstance(path, str) else None

"""``lgmd impute``: the same table, without gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lgmd.cli._groups import with_groups
from lgmd.cli._model import ModelOptions
from lgmd.cli._reading import Reading, TablePath, shape_line
from lgmd.cli._talk import Talk

__all__ = ["impute"]


@with_groups
def impute(
    table: TablePath,
    output: Annotated[
        Path, typer.Option("--output", "-o", readable=False, help="The filled table; its ending says the format.")
    ],
    model: ModelOptions,
    error_bars: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            help="A second table with the standard deviation of each filled value, 0 where it was observed.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    *,
    reading: Reading,
    talk: Talk,
) -> None:
    """Fill the gaps of a table with what a decomposition says.

    Names stay as they are in the file, and observed values the same numbers, though 1.30 may be written 1.3. A long
    table gets a line for every pair of row and column. Ctrl-C keeps the state in OUTPUT.checkpoint; --resume goes on.
    """
    from lgmd.cli._checkpoints import Checkpoints
    from lgmd.cli._filling import filled_table, refuse_missing_bars
    from lgmd.cli._fitting import fit_table
    from lgmd.cli._output import refuse_same_names, staged_files
    from lgmd.cli._record import describe_fit
    from lgmd.tables import check_writable, write_table

    outputs = [output] if error_bars is None else [output, error_bars]
    for path in outputs:
        check_writable(path, force)
    refuse_same_names(outputs)
    settings, stored = model.resolve()
    reading = reading.or_else(stored)
    checkpoints = Checkpoints(output, resume, force)
    checkpoints.check()
    data = reading.read(table)
    talk.note(f"{table}: {shape_line(data)}.")
    estimator = settings.build(data, talk.note)
    if error_bars is not None:
        refuse_missing_bars(estimator)
    with checkpoints:
        fit_table(estimator, data, talk, checkpoints)
        talk.note("Writing the results.")
        results = filled_table(estimator, data, error_bars is not None)
        with staged_files(*outputs) as paths:
            for result, path in zip(results, paths, strict=True):
                write_table(result, path)
    n, p = data.shape
    gaps = n * p - data.n_observed
    lines = [f"{output}: {gaps:,} gaps filled, {data.n_observed:,} observed values kept."]
    if error_bars is not None:
        lines.append(f"{error_bars}: their error bars.")
    talk.outcome(
        lines,
        outcome="imputed",
        output=output,
        error_bars=error_bars,
        filled=gaps,
        observed=data.n_observed,
        result=describe_fit(estimator, None),
    )

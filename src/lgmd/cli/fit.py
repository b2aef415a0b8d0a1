"""``lgmd fit``: decompose a table, and write all there is to know about it into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lgmd.cli._choices import ReconstructionKind
from lgmd.cli._groups import with_groups
from lgmd.cli._model import ModelOptions
from lgmd.cli._reading import Reading, TablePath, shape_line
from lgmd.cli._talk import Talk

if TYPE_CHECKING:
    from lgmd.cli._fitting import HonestScores
    from lgmd.estimators.factorization import Factorization

__all__ = ["fit"]


@with_groups
def fit(
    table: TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", readable=False, help="Folder for the results; it is made.")],
    model: ModelOptions,
    held_out: Annotated[
        float | None,
        typer.Option(
            help="Share of the entries that a first fit does not see, to measure the error; 0 for none. Doubles the "
            "time (default: 0.05 up to a million entries, none beyond).",
            show_default=False,
        ),
    ] = None,
    reconstruction: Annotated[
        ReconstructionKind,
        typer.Option(help="Which entries of the completed table are written. auto: all, if they are not too many."),
    ] = ReconstructionKind.auto,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Whether to write report.html.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace results that are there.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    *,
    reading: Reading,
    talk: Talk,
) -> None:
    """Decompose a table into factors and two learned graphs, and complete it with error bars.

    The folder gets report.html, the model, factors, edges, the completed table with its error bars in the table's own
    format, the course of the fit, and settings.json, with which --settings repeats it. Ctrl-C keeps the state in
    OUTPUT.checkpoint; --resume goes on.
    """
    from lgmd.cli._checkpoints import Checkpoints
    from lgmd.cli._fit_files import FILES, write_fit_tables
    from lgmd.cli._fitting import fit_table, held_out_share, score_held_out
    from lgmd.cli._output import check_folder, staged_folder
    from lgmd.cli._record import describe_fit, describe_table, software, write_json

    check_folder(output, force, FILES)
    settings, stored = model.resolve()
    reading = reading.or_else(stored)
    checkpoints = Checkpoints(output, resume, force)
    checkpoints.check()
    data = reading.read(table)
    talk.note(f"{table}: {shape_line(data)}.")
    share = held_out_share(held_out, data, talk)
    estimator = settings.build(data, talk.note)
    with checkpoints:
        scores = score_held_out(estimator, data, share, talk, checkpoints)
        fit_table(estimator, data, talk, checkpoints)
        talk.note("Writing the results.")
        outcome = {"result": describe_fit(estimator, scores), "table": describe_table(data, table)}
        with staged_folder(output) as folder:
            written = write_fit_tables(estimator, data, folder, reconstruction.value, scores)
            estimator.save(folder / "model.lgmd")
            write_json(folder / "settings.json", {**software(settings, estimator, reading.given()), **outcome})
            written += [folder / "model.lgmd", folder / "settings.json"]
            if report:
                from lgmd.cli._reports import write_page

                honest = None if scores is None else scores.scores
                written.append(write_page(folder / "report.html", estimator, data, table, reading, honest))
    names = sorted(path.name for path in written)
    talk.outcome(
        [*_summary(estimator, scores), f"{output}: {', '.join(names)}"],
        outcome="fitted",
        output=output,
        files={path.stem.split(".")[0]: output / path.name for path in written},
        **outcome,
    )


def _summary(model: Factorization, scores: HonestScores | None) -> list[str]:
    final = model.history_.records[-1]
    ending = "converged" if model.converged_ else "did not converge"
    lines = [
        f"{type(model).__name__}: {model.rank_} of at most {model.n_components} factors, {ending} after "
        f"{model.n_iter_} iterations; noise {model.noise_std_:.4g}.",
        f"Graphs: {final.sample_edges:,} edges between rows, {final.feature_edges:,} between columns.",
    ]
    return lines if scores is None else [*lines, scores.line()]

"""``lgmd tune``: find settings that predict held-out entries well."""

from __future__ import annotations

import shutil
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgmd.cli._groups import with_groups
from lgmd.cli._model import ModelOptions
from lgmd.cli._reading import Reading, TablePath, shape_line
from lgmd.cli._talk import Talk

if TYPE_CHECKING:
    from lgmd.tuning import TuningResult

__all__ = ["tune"]

_FILES = ("best", "trials", "tuning")
_STORE = "trials.sqlite"


@with_groups
def tune(
    table: TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", readable=False, help="Folder for the results; it is made.")],
    model: ModelOptions,
    trials: Annotated[int, typer.Option(min=1, help="Settings to try, those of an earlier run included.")] = 50,
    search: Annotated[
        list[str] | None,
        typer.Option(
            help="What to vary: NAME, NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C; for example penalty, "
            "sample_graph__fdr, n_components. Repeat (default: what the model has to choose).",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[float, typer.Option(help="Share of the entries to judge by.")] = 0.1,
    splits: Annotated[int, typer.Option(min=1, help="How often entries are held out anew; each costs a fit.")] = 1,
    timeout: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds after which no trial is begun.", show_default=False)
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes at the same time.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace results that are there.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a search, interrupted or finished.")] = False,
    *,
    reading: Reading,
    talk: Talk,
) -> None:
    """Search for the settings that predict held-out entries of a table best.

    The folder gets best.json, which lgmd fit --settings takes, trials.csv, pictures, and the trials as a SQLite file.
    Ctrl-C keeps the trials; --resume goes on with them, also to add --trials to a finished search.
    """
    from lgmd.cli._checkpoints import Checkpoints
    from lgmd.cli._graph_files import portable
    from lgmd.cli._output import check_folder, staged_folder
    from lgmd.cli._progress import trial_progress
    from lgmd.cli._record import describe_table, software, write_json
    from lgmd.cli._search_space import as_typed, parse_space, with_graphs

    check_folder(output, force or resume, _FILES)
    settings, stored = model.resolve()
    reading = reading.or_else(stored)
    space = parse_space(search or ())
    checkpoints = Checkpoints(output, resume, force, finished=output / _STORE)
    checkpoints.check()
    data = reading.read(table)
    talk.note(f"{table}: {shape_line(data)}.")
    estimator = settings.build(data, talk.note)
    built = with_graphs(space, data, talk.note)
    with checkpoints:
        store = checkpoints.path(_STORE)
        finished = output / _STORE
        goes_on = resume and finished.is_file() and not store.exists()
        if goes_on:
            shutil.copyfile(finished, store)
        started = time.monotonic()
        with trial_progress(trials, talk.quiet) as callback, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about single trials, and about the interruption, which is told below
            result = _search(
                estimator,
                data.to_fit(),
                trials,
                finished if goes_on else None,
                space=built,
                held_out=held_out,
                n_splits=splits,
                timeout=timeout,
                storage=store,
                n_workers=workers,
                callback=callback,
                random_state=settings.parameters.get("random_state", 0),
            )
        checkpoints.seconds += time.monotonic() - started
        done = len(result.trials_)
        if done < trials and (timeout is None or time.monotonic() - started < timeout):
            raise checkpoints.interrupted(
                f"after {done} of {trials} trials; --resume --trials {done} writes the results of these"
            )
        result = as_typed(result, space)
        with staged_folder(output) as folder:
            write_json(
                folder / "best.json",
                {
                    **software(settings, result.best_estimator_, reading.given()),
                    "parameters": portable({**settings.parameters, **result.best_params_}),
                    "held_out_rmse": result.best_score_,
                    "trials": done,
                    "table": describe_table(data, table),
                },
            )
            shutil.copyfile(store, folder / _STORE)
            written = [folder / "best.json", folder / _STORE, *result.save(folder)]
    failed, reason = _failures(result)
    best = ", ".join(f"{name} {_short(value)}" for name, value in result.best_params_.items())
    names = sorted(path.name for path in written)
    talk.outcome(
        [
            f"Best of {done} trials: {best}; error on held-out entries (RMSE) {result.best_score_:.4g}.",
            *([f"{failed} of {done} trials failed, most often for this: {reason}"] if failed else []),
            f"{output}: {', '.join(names)}",
            f"Fit with it: lgmd fit {table} --settings {output / 'best.json'} --output RESULTS",
        ],
        outcome="tuned",
        output=output,
        files={path.name: output / path.name for path in written},
        best_parameters=result.best_params_,
        held_out_rmse=result.best_score_,
        trials=done,
        failed=failed,
        most_frequent_failure=reason,
    )


def _failures(result: TuningResult) -> tuple[int, str | None]:
    """How many trials failed, and what most of them failed of."""
    from lgmd.cli._flags import in_flags

    reasons = result.trials_["message"][result.trials_["state"] == "failed"]
    return len(reasons), None if reasons.empty else " ".join(in_flags(reasons.value_counts().index[0]).split())


def _search(estimator: Any, data: Any, trials: int, finished: Path | None, **options: Any) -> Any:
    from lgmd.exceptions import CheckpointError
    from lgmd.tuning import tune

    try:
        return tune(estimator, data, trials, progress=False, refit=False, **options)
    except CheckpointError as error:
        if finished is None:
            raise
        # The copy that was refused is removed, and its name says nothing.
        raise CheckpointError(str(error).replace(str(options["storage"]), str(finished))) from error


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

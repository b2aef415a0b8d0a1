"""The command line: one verb a file.

``_verbs`` has the list of verbs and loads the one that is asked for. Options that verbs share are groups: ``_reading``
(how to read a table), ``_model`` (what to fit), ``_talk`` (how to talk). ``_fitting`` fits with progress and a
checkpoint, ``_output`` moves results into place when they are whole, ``_errors`` is what people see when something is
wrong, and what the exit codes mean.
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any

import typer

from lgmd.cli._errors import INTERRUPTED, end, show_warning
from lgmd.cli._state import current, start
from lgmd.cli._verbs import LazyGroup

__all__ = ["app", "main"]

app = typer.Typer(
    cls=LazyGroup,
    help="Matrix decomposition that learns the graphs behind rows and columns.",
    epilog="Exit codes: 0 success, 1 an error in data or settings, 2 a command typed wrongly, 130 interrupted.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"lgmd {version('lgmd')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options of the command itself."""
    current().debug |= debug


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; whatever goes wrong ends here, in a paragraph and an exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    start(given)
    with warnings.catch_warnings(), _termination_as_interruption():
        warnings.simplefilter("default")
        warnings.showwarning = show_warning
        try:
            code: Any = app(args=given or ["--help"], prog_name="lgmd", standalone_mode=False)
            if code == INTERRUPTED:  # how newer versions of typer pass Ctrl-C on
                raise KeyboardInterrupt
        except (Exception, KeyboardInterrupt) as error:
            code = end(error)
    sys.exit(code or 0)


@contextmanager
def _termination_as_interruption() -> Iterator[None]:
    """Treat the signal by which batch systems end a job as Ctrl-C, so that its state is kept."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # signals belong to the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

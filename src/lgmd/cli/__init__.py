"""The command line: one verb a file."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from lgmd.cli.demo import demo
from lgmd.cli.reproduce import reproduce
from lgmd.exceptions import LGMDError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Matrix decomposition that learns the graphs behind rows and columns.",
    no_args_is_help=True,
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
) -> None:
    """Options of the command itself."""


app.command()(demo)
app.command()(reproduce)


def main() -> None:
    """Run the command line; errors that the user can mend come without a traceback."""
    try:
        app()
    except (LGMDError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(1)

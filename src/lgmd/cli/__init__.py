"""The command line: one verb a file."""

from __future__ import annotations

import sys

import typer

from lgmd.cli.demo import demo
from lgmd.exceptions import LGMDError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Matrix decomposition that learns the graphs behind rows and columns.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _version(
    version: bool = typer.Option(False, "--version", help="Show the version and exit.", is_eager=True),
) -> None:
    if version:
        import lgmd

        typer.echo(f"lgmd {lgmd.__version__}")
        raise typer.Exit


app.command()(demo)


def main() -> None:
    """Run the command line; errors that the user can mend come without a traceback."""
    try:
        app()
    except (LGMDError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(1)

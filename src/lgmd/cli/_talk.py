"""What a command says: notes and progress on standard error, the outcome on standard output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lgmd.cli._state import current

__all__ = ["Talk"]

_PANEL = "What is shown"


def _be_quiet(asked: bool) -> bool:
    current().quiet |= asked
    return asked


def _speak_json(asked: bool) -> bool:
    current().json |= asked
    return asked


def _show_tracebacks(asked: bool) -> bool:
    current().debug |= asked
    return asked


@dataclass(frozen=True)
class Talk:
    """How the command talks."""

    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", callback=_be_quiet, is_eager=True, help="Say nothing.", rich_help_panel=_PANEL),
    ] = False
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            callback=_speak_json,
            is_eager=True,
            help="Write the outcome to standard output as one JSON object, for programs.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            callback=_show_tracebacks,
            is_eager=True,
            help="Show the traceback of an error.",
            rich_help_panel=_PANEL,
        ),
    ] = False

    def note(self, text: str) -> None:
        """Say something on the way."""
        if not self.quiet:
            typer.echo(text, err=True)

    def outcome(self, lines: list[str], **values: Any) -> None:
        """Say how it ended: lines for people, or values for programs."""
        if self.json:
            typer.echo(json.dumps({**values, "warnings": current().warnings}, default=_plain))
        elif not self.quiet:
            typer.echo("\n".join(lines))


def _plain(value: Any) -> Any:
    """Paths as text, numpy's numbers as numbers."""
    return value.item() if hasattr(value, "item") else str(value)

"""Which verbs there are, each loaded only when it is asked for: ``lgmd --help`` waits for none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["VERBS", "LazyGroup"]

#: What the list of verbs says; a verb's own help is the docstring of the function of that name in the module of that
#: name.
VERBS: dict[str, str] = {
    "demo": "Fill in a photograph with holes, with and without learned graphs, and draw the result.",
    "fit": "Decompose a table: factors, the two graphs, the completed table with error bars, a report.",
    "impute": "Fill the gaps of a table; names and observed values stay as they are.",
    "tune": "Search for the settings that predict held-out entries of a table best.",
    "report": "Write the report of a fitted model: one HTML file that works offline.",
    "reproduce": "Run an experiment of the paper: tables, pictures and a page with the paper's numbers beside ours.",
    "bench": "Measure how fast this machine fits a table and searches for edges.",
    "doctor": "Check the installation: versions, threads, memory, data sets, and that numbers come out right.",
}


class LazyGroup(TyperGroup):
    """The group of all verbs."""

    _is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the verbs, in the order in which help lists them."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A verb, or, while they are only listed, its name and its line."""
        if cmd_name not in VERBS:
            return None
        if self._is_listing:
            return _command(cmd_name, lambda: None, VERBS[cmd_name])
        return _command(cmd_name, getattr(import_module(f"lgmd.cli.{cmd_name}"), cmd_name))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help without loading a verb."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False


def _command(name: str, function: Any, help: str | None = None) -> Any:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name, help=help)(function)
    return typer.main.get_command(app)

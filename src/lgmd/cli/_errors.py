"""How commands end that do not end well: one paragraph on standard error, and an exit code.

0 is success, 1 an error in data, settings or surroundings, 2 a command that was typed wrongly, 130 an interruption.
"""

from __future__ import annotations

import errno
import json
import sys
import traceback
from typing import Any, TextIO

import typer

from lgmd.cli._flags import in_flags
from lgmd.cli._state import current

__all__ = ["FAILURE", "INTERRUPTED", "USAGE", "Interrupted", "end", "explain", "show_warning"]

FAILURE, USAGE, INTERRUPTED = 1, 2, 130


class Interrupted(Exception):  # noqa: N818 - a wish of the user, not an error
    """The user stopped the command; the message says what was kept."""


def end(error: BaseException) -> int:
    """Say what happened, and return the exit code."""
    # Of typer's own exceptions only this is the same in all its versions.
    if hasattr(error, "format_message"):
        return _say("error", _usage(error), int(getattr(error, "exit_code", USAGE)))
    if isinstance(error, Interrupted):
        return _say("interrupted", str(error), INTERRUPTED)
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return _say("interrupted", "Interrupted. Nothing was written.", INTERRUPTED)
    if isinstance(error, BrokenPipeError):  # whoever read our output has gone
        sys.stdout = None
        return FAILURE
    if current().debug:
        traceback.print_exception(error)
    return _say("error", explain(error), FAILURE)


def explain(error: BaseException) -> str:
    """An error as one paragraph for people."""
    from lgmd.exceptions import LGMDError

    if isinstance(error, LGMDError):
        text = in_flags(str(error))
    elif isinstance(error, OSError):
        text = _explain_system(error)
    elif isinstance(error, MemoryError):
        text = "The memory of this machine is not enough for this table. Try a smaller part of it, or --components."
    else:
        text = (
            f"Something inside lgmd failed ({type(error).__name__}: {error}). This should not happen whatever the "
            "table: please report it with what --debug shows."
        )
    return _one_paragraph(" ".join([text, *getattr(error, "__notes__", [])]))


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as one line; takes the place of ``warnings.showwarning``."""
    if issubclass(category, DeprecationWarning | PendingDeprecationWarning | FutureWarning | ImportWarning):
        return
    text = _one_paragraph(in_flags(str(message)))
    running = current()
    if text in running.warnings:
        return
    running.warnings.append(text)
    if not running.quiet:
        typer.echo(f"Warning: {text}", err=True)


def _say(outcome: str, text: str, code: int) -> int:
    typer.echo(text if outcome == "interrupted" else f"Error: {text}", err=True)
    if current().json:
        typer.echo(json.dumps({"outcome": outcome, "message": text, "exit_code": code}))
    return code


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "lgmd")
    return _one_paragraph(f"{error.format_message().rstrip('. ')}. Try: {command} --help")


def _explain_system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}The disk is full. Free some space, or choose another folder."
    if error.errno == errno.EFBIG:
        return f"{where}The file is larger than this system allows (see ulimit -f). Raise the limit, or write less."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{where}Permission denied. Change the permissions, or choose another folder."
    return f"{where}{error.strerror or error}."


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())

"""What the running command was asked for and has come across: for :func:`lgmd.cli.main`, which ends it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Invocation", "current", "start"]


@dataclass
class Invocation:
    """
    One call of the command.

    Attributes
    ----------
    arguments : list of str
        As they were typed.
    quiet, json, debug : bool
        Options that say how to talk.
    warnings : list of str
        Those that were shown so far.
    """

    arguments: list[str] = field(default_factory=list)
    quiet: bool = False
    json: bool = False
    debug: bool = False
    warnings: list[str] = field(default_factory=list)


_current = Invocation()


def current() -> Invocation:
    """The call that is running."""
    return _current


def start(arguments: list[str]) -> Invocation:
    """Begin a new call."""
    global _current
    _current = Invocation(arguments)
    return _current

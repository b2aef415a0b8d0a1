"""``--search``: what a search varies, as people write it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lgmd.cli._flags import parameter_name
from lgmd.exceptions import InvalidParameterError

__all__ = ["parse_space"]


def parse_space(texts: Sequence[str]) -> Any:
    """
    A space for :func:`lgmd.tuning.tune`.

    ``penalty`` takes the usual range, ``penalty=0.1:10`` and ``penalty=0.1:10:log`` a range, ``prior=columns,shared``
    choices. Names are those of Python or of the command line: ``n_components`` and ``components`` are the same.
    """
    if not texts:
        return None
    return dict(_dimension(text) for text in texts)


def _dimension(text: str) -> tuple[str, Any]:
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not name or (equals and not rest):
        raise InvalidParameterError(
            f"--search takes NAME, NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C, but is {text!r}."
        )
    if not equals:
        return parameter_name(name), None
    if ":" in rest:
        low, high, *log = rest.split(":")
        bounds = tuple(map(_value, (low, high)))
        if len(log) > 1 or (log and log[0] != "log") or not all(isinstance(bound, int | float) for bound in bounds):
            raise InvalidParameterError(f"--search {text}: a range is LOW:HIGH or LOW:HIGH:log, with two numbers.")
        return parameter_name(name), (*bounds, *log)
    return parameter_name(name), [_value(word) for word in rest.split(",")]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()

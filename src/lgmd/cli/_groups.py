"""Options that several verbs share, as dataclasses.

A verb takes a group as one parameter: ``def fit(table: Path, reading: Reading)``. :func:`with_groups` gives typer a
function in which the fields of the group stand in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

__all__ = ["with_groups"]


def with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with every parameter that is a group of options replaced by the options."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            parameters += _options(groups[name])
        else:
            parameters.append(_keyword(name, parameter.default, hints[name]))

    def expanded(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{item.name: given.pop(item.name) for item in fields(group)})
        verb(**given)

    expanded.__name__, expanded.__doc__, expanded.__module__ = verb.__name__, _flowing(verb.__doc__), verb.__module__
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _keyword(item.name, inspect.Parameter.empty if item.default is MISSING else item.default, hints[item.name])
        for item in fields(group)
    ]


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flowing(text: str | None) -> str:
    """Paragraphs without the line breaks of the source, which help would keep."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))

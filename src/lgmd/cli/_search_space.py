"""``--search``: what a search varies, as people write it, and its outcome in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lgmd.cli._flags import parameter_name
from lgmd.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from lgmd.tables import Table
    from lgmd.tuning import TuningResult

__all__ = ["as_typed", "parse_space", "with_graphs"]

# Which sides of the table a searched graph is one of.
_SIDES = {
    "sample_graph": ("sample_graph",),
    "feature_graph": ("feature_graph",),
    "graph": ("sample_graph", "feature_graph"),
}


def parse_space(texts: Sequence[str]) -> Any:
    """
    A space for :func:`lgmd.tuning.tune`.

    ``penalty`` takes the usual range, ``penalty=0.1:10`` and ``penalty=0.1:10:log`` a range, ``prior=columns,shared``
    choices. Names are those of Python or of the command line: ``n_components`` and ``components`` are the same.
    """
    if not texts:
        return None
    return dict(_dimension(text) for text in texts)


def with_graphs(space: Any, table: Table, note: Callable[[str], None]) -> Any:
    """
    The space with graphs of files for their paths.

    Raises
    ------
    InvalidGraphError
        If a choice is no graph, before hours are spent on the others.
    """
    return space and {
        name: [_graph(choice, _SIDES[name], table, note) for choice in given]
        if name in _SIDES and isinstance(given, list)
        else given
        for name, given in space.items()
    }


def _graph(choice: Any, sides: Sequence[str], table: Table, note: Callable[[str], None]) -> Any:
    from lgmd.cli._graph_files import graph_for, is_path

    graph = graph_for(choice, table, sides[0], note)
    if len(sides) > 1 and is_path(choice):
        raise InvalidParameterError(
            f"--search graph takes learners, which suit both sides, but is {choice!r}. Name the side of a file: "
            "sample_graph or feature_graph."
        )
    return graph


def as_typed(result: TuningResult, space: Mapping[str, Any] | None) -> TuningResult:
    """The outcome with the choices of a space as they were typed, where they stand for graphs of files."""
    from lgmd.tuning import Choices

    trials, best, searched = result.trials_.copy(), dict(result.best_params_), dict(result.space_)
    for name, built in result.space_.items():
        if name not in _SIDES or space is None or not isinstance(built, Choices):
            continue
        typed = Choices(tuple(space[name]))
        trials[f"param_{name}"] = [typed.values[built.shown.index(cell)] for cell in trials[f"param_{name}"]]
        best[name] = typed.values[built.place(best[name])]
        searched[name] = typed
    return replace(result, trials_=trials, best_params_=best, space_=searched)


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
            raise InvalidParameterError(f"--search {text!r}: a range is LOW:HIGH or LOW:HIGH:log, with two numbers.")
        return parameter_name(name), (*bounds, *log)
    return parameter_name(name), [_value(word) for word in rest.split(",")]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()

"""How to get the same model again: its settings, the versions of what computed it, and a few lines of Python."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse

from lgmd.graphs import GraphLearner

__all__ = ["python_snippet", "setting_texts", "versions"]

_PACKAGES = ("lgmd", "numpy", "scipy", "scikit-learn", "numba", "pandas")


def setting_texts(model: Any) -> dict[str, str]:
    """Every parameter of a model as text."""
    return {name: _text(value, name)[0] for name, value in model.get_params(deep=False).items()}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers come from."""
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def python_snippet(model: Any, settings: Mapping[str, Any] | None = None) -> str:
    """
    Code that fits the same model; parameters at their default are left out.

    Parameters
    ----------
    model : estimator
    settings : mapping, optional
        Its ``source`` is the file the table came from, its ``reading`` what :func:`lgmd.tables.read_table` was told.
    """
    name = type(model).__name__
    defaults = {key: value.default for key, value in inspect.signature(type(model)).parameters.items()}
    arguments, comments, learners = [], [], set()
    for key, value in model.get_params(deep=False).items():
        if _same(value, defaults.get(key)):
            continue
        text, comment = _text(value, key)
        arguments.append(f"{key}={text}")
        if comment:
            comments.append(f"# {comment}")
        if isinstance(value, GraphLearner):
            learners.add(type(value).__name__)
    lines = [f"from lgmd import {name}"]
    if learners:
        lines.append(f"from lgmd.graphs import {', '.join(sorted(learners))}")
    lines += ["from lgmd.tables import read_table", "", *comments, *_reading_lines(settings or {})]
    lines.append(f"model = {name}({', '.join(arguments)}).fit(table.to_fit())")
    lines.append("filled = model.reconstruct()")
    return "\n".join(lines)


def _reading_lines(settings: Mapping[str, Any]) -> list[str]:
    source = settings.get("source")
    if not source:
        return ["# table.csv stands for the file with the table that was fitted.", "table = read_table('table.csv')"]
    options = [repr(str(source)), *(f"{key}={value!r}" for key, value in settings.get("reading", {}).items())]
    return [f"table = read_table({', '.join(options)})"]


def _text(value: Any, name: str) -> tuple[str, str]:
    """A value as code, and what to know about it where code cannot say it."""
    if scipy.sparse.issparse(value) or isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        shape = " x ".join(str(length) for length in np.shape(value)) if not np.isscalar(value) else ""
        if shape:
            return name, f"{name} is a matrix of {shape} that is not part of this page."
    if isinstance(value, GraphLearner):
        parts, comments = [], []
        for key, item in value.parameters().items():
            text, comment = _text(item, key)
            parts.append(f"{key}={text}")
            comments.append(comment)
        return f"{type(value).__name__}({', '.join(parts)})", " ".join(filter(None, comments))
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__, f"{name} is a function that is not part of this page."
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.random.RandomState):
        return "None", f"{name} was a generator of random numbers; its state is not part of this page."
    return repr(value), ""


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and isinstance(value, str | int | float | None) and value == default

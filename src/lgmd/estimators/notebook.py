"""How models look in a notebook: scikit-learn's own picture, and below it what a fit has found.

Matrices among the parameters, such as a given graph, are shown by their size. Left to itself, scikit-learn (1.7 to 1.9
at least) fails where it compares a sparse matrix with a default that is a word, and takes a minute to shorten the text
of a data frame.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from html import escape
from typing import Any

import scipy.sparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from lgmd.graphs import GraphLearner

__all__ = ["NotebookDisplay", "size_with_names"]

_NAMES = 3
_LONGEST = 24

# Numbers up to which an array is shown as it is.
_FEW = 16


class NotebookDisplay:
    """Mixin of estimators, to stand before ``BaseEstimator``; a subclass says what its fit has found."""

    def _summary(self) -> dict[str, str]:
        """What a fit has found, as plain text by name; empty before."""
        return {}

    def _html_repr(self) -> str:
        picture = str(estimator_html_repr(_displayed(self)))
        return f"<div>{picture}{_summary_html(self._summary())}</div>"

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return str(BaseEstimator.__repr__(_displayed(self), N_CHAR_MAX))

    # The next three are where different versions of scikit-learn, and notebooks, ask for it.
    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html_repr()
        return bundle

    def _get_params_html(self, *args: Any, **kwargs: Any) -> Any:
        shown = _displayed(self)
        return super(NotebookDisplay, shown)._get_params_html(*args, **kwargs)  # type: ignore[misc]


class _Matrix:
    """Stands for a matrix; shows its size."""

    def __init__(self, matrix: Any) -> None:
        shape = " x ".join(f"{length:,}" for length in matrix.shape)
        kind = "sparse matrix" if scipy.sparse.issparse(matrix) else type(matrix).__name__
        entries = f" with {matrix.nnz:,} entries" if scipy.sparse.issparse(matrix) else ""
        self._text = f"<{shape} {kind}{entries}>"

    def __repr__(self) -> str:
        return self._text


def _displayed(model: Any) -> Any:
    """A shallow copy of an estimator whose parameters are short to print, by scikit-learn's own means."""
    shown = copy.copy(model)
    kind: Any = type(model)
    shown.__class__ = _printed_by_scikit_learn(kind)
    for name, value in model.get_params(deep=False).items():
        setattr(shown, name, _short(value))
    return shown


@cache
def _printed_by_scikit_learn(kind: Any) -> Any:
    """The same class with scikit-learn's ``__repr__``, by which its printer knows what it can wrap into lines."""
    if kind.__repr__ is BaseEstimator.__repr__:
        return kind
    return type(
        kind.__name__,
        (kind,),
        {"__repr__": BaseEstimator.__repr__, "__module__": kind.__module__, "__doc__": kind.__doc__},
    )


def _short(value: Any) -> Any:
    if isinstance(value, NotebookDisplay):
        return _displayed(value)
    if isinstance(value, GraphLearner):
        parts = {name: (part, _short(part)) for name, part in value.parameters().items()}
        changed = {name: short for name, (part, short) in parts.items() if short is not part}
        learner: Any = value
        return replace(learner, **changed) if changed else value
    if scipy.sparse.issparse(value):
        return _Matrix(value)
    large = hasattr(value, "__array__") and hasattr(value, "shape") and getattr(value, "size", 0) > _FEW
    return _Matrix(value) if large else value


def size_with_names(n: int, names: Any) -> str:
    """How many, and what the first are called."""
    if names is None or not len(names):
        return f"{n:,}"
    first = [str(name) for name in list(names[:_NAMES])]
    cut = [name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…" for name in first]
    return f"{n:,} ({', '.join(cut)}{', …' if n > _NAMES else ''})"


def _summary_html(facts: dict[str, str]) -> str:
    if not facts:
        return ""
    left = "text-align: left; padding: 0.1em 1em 0.1em 0; font-weight: normal; opacity: 0.75"
    right = "text-align: left; padding: 0.1em 0"
    rows = "".join(
        f'<tr style="background: none"><th style="{left}">{escape(name)}</th>'
        f'<td style="{right}">{escape(text)}</td></tr>'
        for name, text in facts.items()
    )
    return f'<table class="lgmd-summary" style="margin: 0.5em 0; border: none"><tbody>{rows}</tbody></table>'

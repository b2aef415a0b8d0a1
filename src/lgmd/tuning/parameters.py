"""Reading and setting parameters by name, those of graph learners and those of both sides at once among them.

Two kinds of names are understood besides those that ``get_params`` lists:

- ``sample_graph__eta``: a parameter of a learner. Learners are values, so a changed copy takes its place; a learner
  that was given by name (``"threshold"``) is made first.
- ``penalty`` for ``sample_penalty`` and ``feature_penalty``, ``graph__eta`` for the learners of both sides: both get
  the same value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sklearn.base import clone

from lgmd.estimators.imputer import LGMDImputer
from lgmd.estimators.models import LGMD
from lgmd.exceptions import InvalidParameterError
from lgmd.graphs import GraphLearner, as_learner

__all__ = ["parameter_names", "present_value", "spelled_out", "targets", "with_parameters"]

_SIDES = ("sample_", "feature_")

# Two ways to say how many edges a graph has: whichever is set takes the place of the other.
_EITHER = {"eta": "density", "density": "eta"}


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """An unfitted copy of an estimator with other parameters, named as in the space of :func:`~lgmd.tuning.tune`.

    Parameters
    ----------
    estimator : estimator
        Stays as it is.
    parameters : mapping of str to value
        Such as ``best_params_`` of a :class:`~lgmd.tuning.TuningResult`.

    Returns
    -------
    estimator
    """
    copy = clone(spelled_out(estimator))
    plain: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in parameters.items():
        for target in targets(copy, name):
            parent, _, field = target.rpartition("__")
            if target in copy.get_params():
                plain[target] = value
            else:
                nested.setdefault(parent, {})[field] = value
    for parent, changes in nested.items():
        learner = _learner(copy.get_params()[parent], parent)
        known = {item.name for item in fields(learner)}  # type: ignore[arg-type]
        for field in tuple(changes):
            other = _EITHER.get(field)
            if other in known and other not in changes:
                changes[other] = None
        plain[parent] = replace(learner, **changes)  # type: ignore[type-var]
    # Outer parameters first: setting an inner one would otherwise be lost with the object that held it.
    for name in sorted(plain, key=lambda name: name.count("__")):
        copy.set_params(**{name: plain[name]})
    return copy


def spelled_out(estimator: Any) -> Any:
    """An imputer that leaves its model open with the one that it would fit, whose parameters then have names."""
    if isinstance(estimator, LGMDImputer) and estimator.estimator is None:
        return clone(estimator).set_params(estimator=LGMD())
    return estimator


def present_value(estimator: Any, name: str) -> Any:
    """What a parameter is now; of the two sides of a tied one, the rows'."""
    target = targets(estimator, name)[0]
    known = estimator.get_params()
    if target in known:
        return known[target]
    parent, _, field = target.rpartition("__")
    return getattr(_learner(known[parent], parent), field)


def targets(estimator: Any, name: str) -> tuple[str, ...]:
    """The parameters that a name stands for: itself, or those of both sides."""
    if _exists(estimator, name):
        return (name,)
    parts = name.split("__")
    for i, part in enumerate(parts):
        both = tuple("__".join([*parts[:i], side + part, *parts[i + 1 :]]) for side in _SIDES)
        if all(_exists(estimator, target) for target in both):
            return both
    known = ", ".join(map(repr, parameter_names(estimator)))
    raise InvalidParameterError(
        f"{type(estimator).__name__} has no parameter {name!r}. It has {known}. The parameters of a graph learner are "
        "written 'sample_graph__eta', those of both sides at once 'penalty' or 'graph__eta'."
    )


def parameter_names(estimator: Any) -> list[str]:
    """All names that can be tuned, the tied ones left out."""
    names = []
    for name, value in estimator.get_params().items():
        names.append(name)
        if name.endswith("_graph") and isinstance(value, str | GraphLearner):
            learner = _learner(value, name)
            names += [f"{name}__{item.name}" for item in fields(learner)] if is_dataclass(learner) else []
    return names


def _exists(estimator: Any, name: str) -> bool:
    return name in parameter_names(estimator)


def _learner(value: Any, name: str) -> GraphLearner:
    return as_learner(value, name)

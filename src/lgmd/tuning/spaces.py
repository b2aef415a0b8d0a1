"""What is searched: for each parameter a range or a list of choices."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from lgmd.exceptions import InvalidParameterError
from lgmd.observed import Observed
from lgmd.tuning.defaults import default_range, default_space
from lgmd.tuning.parameters import parameter_names, present_value, targets

__all__ = ["Choices", "Dimension", "Range", "Space", "as_space", "numbered"]


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; on a logarithmic scale or not."""

    low: float
    high: float
    log: bool
    integer: bool

    def distribution(self) -> BaseDistribution:
        """The same for Optuna."""
        if self.integer:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def at(self, share: float) -> Any:
        """What lies so far along the range, from 0 to 1."""
        # Integers own the half unit on either side.
        half = 0.5 if self.integer else 0.0
        low, high = self.low - half, self.high + half
        value = low * (high / low) ** share if self.log else low + (high - low) * share
        value = min(max(value, self.low), self.high)
        return round(value) if self.integer else float(value)

    def encoded(self, value: Any) -> Any:
        """A value as Optuna stores it; None where it is not in the range."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return None
        if not self.low <= float(value) <= self.high:
            return None
        if self.integer:
            return int(value) if isinstance(value, numbers.Integral) else None
        return float(value)

    def decoded(self, stored: Any) -> Any:
        """The value that is stored."""
        return stored


@dataclass(frozen=True)
class Choices:
    """A few values, in no order; learners and matrices may be among them."""

    values: tuple[Any, ...]

    def distribution(self) -> BaseDistribution:
        """The same for Optuna, which only knows plain values."""
        return CategoricalDistribution(self.labels)

    @property
    def labels(self) -> tuple[Any, ...]:
        """Plain values as they are, others by number and type."""
        return tuple(
            value if _is_plain(value) else f"{i}: {type(value).__name__}" for i, value in enumerate(self.values)
        )

    @property
    def shown(self) -> tuple[Any, ...]:
        """Each choice as tables show it: plain values as they are, others as text, by number where that is the same."""
        return numbered([value if _is_plain(value) else repr(value) for value in self.values])

    def place(self, value: Any) -> int:
        """Where in the list a choice stands."""
        return self.labels.index(self.encoded(value))

    def at(self, share: float) -> Any:
        """The label so far along the list."""
        return self.labels[min(int(share * len(self.values)), len(self.values) - 1)]

    def encoded(self, value: Any) -> Any:
        """The label of a value; None where it is not among the choices."""
        for label, choice in zip(self.labels, self.values, strict=True):
            if choice is value or (type(choice) is type(value) and label is choice and choice == value):
                return label
        return None

    def decoded(self, stored: Any) -> Any:
        """The value behind a label."""
        return self.values[self.labels.index(stored)]


def numbered(texts: Sequence[Any]) -> tuple[Any, ...]:
    """Texts with their places before those that coincide."""
    return tuple(f"{i}: {text}" if texts.count(text) > 1 else text for i, text in enumerate(texts))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


Dimension: TypeAlias = Range | Choices
Space: TypeAlias = dict[str, Dimension]


def as_space(space: Any, estimator: Any, data: Observed) -> Space:
    """What a user wrote for a space, checked, with the default ranges filled in.

    See :func:`~lgmd.tuning.tune` for what may be written.
    """
    if space is None:
        space = default_space(estimator, data)
        if not space:
            raise InvalidParameterError(
                f"Nothing is known to be worth tuning in this {type(estimator).__name__}. Say what to search: "
                f"space={_example(estimator)}."
            )
    elif isinstance(space, str):
        space = {space: None}
    elif isinstance(space, Sequence) and all(isinstance(name, str) for name in space):
        space = dict.fromkeys(space)
    if not isinstance(space, Mapping):
        raise InvalidParameterError(
            f"space must map names of parameters to ranges, such as {_example(estimator)}, or list names that have a "
            f"default range, but is {space!r}."
        )
    if not space:
        raise InvalidParameterError("space is empty, so there is nothing to tune. Leave it out for the default one.")
    wrong = [name for name in space if not isinstance(name, str)]
    if wrong:
        raise InvalidParameterError(f"The names in space must be strings, but {wrong[0]!r} is among them.")
    _refuse_overlap(estimator, tuple(space))
    dimensions = {name: _dimension(name, given, estimator, data) for name, given in space.items()}
    _refuse_idle_penalties(estimator, dimensions)
    return dimensions


def _example(estimator: Any) -> str:
    """How a space is written, with a parameter that the estimator has."""
    names = sorted(parameter_names(estimator), key=lambda name: not name.endswith("n_components"))
    for name in names:
        if type(present_value(estimator, name)) in (int, float):
            return f"{{{name!r}: (low, high)}}"
    return f"{{{names[0] if names else 'name'!r}: [one, another]}}"


def _refuse_idle_penalties(estimator: Any, space: Space) -> None:
    """Variational inference learns the penalties, so that a search for one would try the same model again and again."""
    known = parameter_names(estimator)
    for name in space:
        parent, found, side = targets(estimator, name)[0].rpartition("__")
        inference = f"{parent}{found}inference"
        if side not in ("sample_penalty", "feature_penalty") or inference not in known:
            continue
        searched = space.get(inference)
        choices = searched.values if isinstance(searched, Choices) else (present_value(estimator, inference),)
        if all(choice == "variational" for choice in choices):
            raise InvalidParameterError(
                f"{name!r} changes nothing: penalties belong to inference='map', but inference='variational' learns "
                f"its own. Tune a model with inference='map', or leave {name!r} out of what is searched."
            )


def _refuse_overlap(estimator: Any, names: Sequence[str]) -> None:
    """No two names may set the same thing."""
    owners: dict[str, str] = {}
    for name in names:
        for target in targets(estimator, name):
            if target in owners:
                raise InvalidParameterError(f"{owners[target]!r} and {name!r} both set {target}. Keep one of them.")
            owners[target] = name
    for target, name in owners.items():
        parent = target.rpartition("__")[0]
        if parent in owners:
            raise InvalidParameterError(
                f"{owners[parent]!r} replaces what {name!r} is a parameter of. Keep one of them."
            )


def _dimension(name: str, given: Any, estimator: Any, data: Observed) -> Dimension:
    known = default_range(name, estimator, data)
    if given is None:
        if known is None:
            raise InvalidParameterError(
                f"There is no default range for {name!r}. Give one: a tuple (low, high) or (low, high, 'log'), or a "
                "list of choices."
            )
        given = known
    if isinstance(given, list):
        return _choices(name, given)
    if isinstance(given, tuple):
        return _range(name, given, estimator, known)
    raise InvalidParameterError(
        f"The range of {name!r} must be a tuple (low, high) or (low, high, 'log'), or a list of choices, but is "
        f"{given!r}."
    )


def _choices(name: str, given: list[Any]) -> Choices:
    if not given:
        raise InvalidParameterError(f"The list of choices of {name!r} is empty. Give at least one.")
    choices = Choices(tuple(value.item() if _is_numpy_number(value) else value for value in given))
    labels = choices.labels
    twice = [label for i, label in enumerate(labels) if any(_same(label, other) for other in labels[:i])]
    if twice:
        raise InvalidParameterError(f"{twice[0]!r} is twice among the choices of {name!r}. Give it once.")
    return choices


def _same(label: Any, other: Any) -> bool:
    # As Optuna sees it: 1 and 1.0 and True are one choice.
    return bool(label == other)


def _is_numpy_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and hasattr(value, "item")


def _range(name: str, given: tuple[Any, ...], estimator: Any, known: Any) -> Range:
    bounds, scale = given[:2], given[2] if len(given) == 3 else "linear"
    if len(given) not in (2, 3) or scale not in ("log", "linear"):
        raise InvalidParameterError(
            f"The range of {name!r} must be (low, high), (low, high, 'log') or (low, high, 'linear'), but is "
            f"{given!r}. For choices write a list."
        )
    for bound in bounds:
        if isinstance(bound, bool) or not isinstance(bound, numbers.Real) or not math.isfinite(bound):
            raise InvalidParameterError(f"The bounds of {name!r} must be finite numbers, but one is {bound!r}.")
    low, high = bounds
    if not low <= high:
        raise InvalidParameterError(f"The range of {name!r} goes from {low} down to {high}. Swap the two.")
    if scale == "log" and low <= 0:
        raise InvalidParameterError(f"The logarithmic range of {name!r} must start above zero, but starts at {low}.")
    whole = all(isinstance(bound, numbers.Integral) for bound in bounds)
    if isinstance(known, tuple):
        integer = all(isinstance(bound, numbers.Integral) for bound in known[:2])
        if integer and not whole:
            raise InvalidParameterError(f"{name!r} is a whole number, but its range is {low} to {high}.")
    else:
        present = present_value(estimator, name)
        integer = whole and not isinstance(present, float) and present is not None
    if integer:
        return Range(int(low), int(high), scale == "log", True)
    return Range(float(low), float(high), scale == "log", False)

"""Checks on parameters that several estimators share, each with an error that says what to do."""

from __future__ import annotations

import numbers
from typing import Any

from lgmd.exceptions import InvalidParameterError

__all__ = ["check_choice", "check_integer", "check_real"]


def check_integer(value: Any, name: str, *, minimum: int) -> int:
    """An integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameterError(f"{name} must be an integer, but is {value!r}.")
    if value < minimum:
        raise InvalidParameterError(f"{name} must be at least {minimum}, but is {value}.")
    return int(value)


def check_real(value: Any, name: str, *, minimum: float = 0.0) -> float:
    """A finite number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameterError(f"{name} must be a number, but is {value!r}.")
    if not minimum <= float(value) < float("inf"):
        condition = "must not be negative" if minimum == 0 else f"must be at least {minimum:g}"
        raise InvalidParameterError(f"{name} {condition} and must be finite, but is {value}.")
    return float(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameterError(f"{name} must be one of {known}, but is {value!r}.")
    return str(value)

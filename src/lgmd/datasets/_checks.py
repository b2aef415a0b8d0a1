"""Checks of what callers pass to the generators, beyond ``lgmd._validation``: intervals, and sources of chance."""

import math
from collections.abc import Collection
from typing import Any, Literal

import numpy as np

from lgmd._typing import RandomState
from lgmd.exceptions import InvalidParameterError

__all__ = ["as_generator", "check_choice", "check_count", "check_real"]


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator: from a seed, from None (fresh entropy), or the one given, which then moves on."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if random_state is None or (_is_whole(random_state) and random_state >= 0):
        return np.random.default_rng(random_state)
    raise InvalidParameterError(
        f"random_state={random_state!r} is not a seed. "
        "Pass a whole number from 0, a numpy Generator or RandomState, or None."
    )


def check_count(value: Any, name: str, *, at_most: int | None = None, reason: str = "") -> int:
    """Return `value` as an int if it is a whole number from 1 to `at_most`."""
    if _is_whole(value) and value >= 1 and (at_most is None or value <= at_most):
        return int(value)
    allowed = "a whole number of at least 1" if at_most is None else f"a whole number from 1 to {at_most:,}"
    raise InvalidParameterError(f"{name} must be {allowed}{reason}, but {name}={value!r} was given.")


def check_real(
    value: Any,
    name: str,
    low: float,
    high: float,
    *,
    closed: Literal["both", "left", "neither"] = "both",
    advice: str = "",
) -> float:
    """Return `value` as a float if it lies in the interval from `low` to `high`."""
    if _is_whole(value) or (isinstance(value, float | np.floating) and math.isfinite(value)):
        above = value > low if closed == "neither" else value >= low
        below = value <= high if closed == "both" else value < high
        if above and below:
            return float(value)
    opening, closing = "(" if closed == "neither" else "[", "]" if closed == "both" else ")"
    raise InvalidParameterError(
        f"{name} must be a number in {opening}{low:g}, {high:g}{closing}, but {name}={value!r} was given."
        + (f" {advice}" if advice else "")
    )


def check_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """Return `value` if it is one of the names in `choices`."""
    if isinstance(value, str) and value in choices:
        return value
    known = ", ".join(f'"{choice}"' for choice in choices)
    raise InvalidParameterError(f"{name}={value!r} is not known. Use one of {known}.")


def _is_whole(value: Any) -> bool:
    """Return whether `value` is an integer; True and False, which Python counts as such, are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)

"""Checks of the numbers that learners take."""

from __future__ import annotations

import math
import numbers
from typing import Any

from lgmd._validation import check_real
from lgmd.exceptions import InvalidParameterError

__all__ = ["check_eta_or_density", "check_finite", "check_positive"]


def check_finite(value: Any, name: str) -> float:
    """A number that is neither infinite nor NaN."""
    if isinstance(value, numbers.Real) and not math.isfinite(value):
        raise InvalidParameterError(f"{name} must be a finite number, but is {value}.")
    return check_real(value, name, minimum=-math.inf)


def check_positive(value: Any, name: str, reason: str = "") -> float:
    """A finite number above zero; ``reason`` says why."""
    number = check_finite(value, name)
    if not number > 0:
        raise InvalidParameterError(f"{name} must be positive, but is {value}{reason and f': {reason}'}.")
    return number


def check_eta_or_density(eta: Any, density: Any) -> None:
    """At most one of them, and a density that is a share; what eta may be is for the learner to say."""
    if eta is not None and density is not None:
        raise InvalidParameterError(f"Give eta or density, not both: found eta={eta}, density={density}.")
    if density is not None and not 0 <= check_finite(density, "density") <= 1:
        raise InvalidParameterError(f"density is a share, so it must be in [0, 1], but is {density}.")

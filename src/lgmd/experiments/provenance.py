"""When and with what a cell was computed, and how a page says so of all of them."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from typing import Any

__all__ = ["describe", "record"]

_PACKAGES = ("lgmd", "numpy", "scipy", "scikit-learn", "numba", "optuna")


def record() -> dict[str, Any]:
    """Today and the versions of what computes, for the file of a cell."""
    versions = {"Python": platform.python_version()} | {name: version(name) for name in _PACKAGES}
    return {"date": str(date.today()), "versions": versions}


def describe(stored: Sequence[Mapping[str, Any]]) -> str:
    """A sentence or two on when, how long and with what the cells were run.

    Parameters
    ----------
    stored : sequence of mapping
        What the files of the cells hold: ``seconds`` and, but for files of early versions, a :func:`record`.
    """
    seconds = sum(each["seconds"] for each in stored)
    time = f"{seconds / 60:.0f} minutes" if seconds > 100 else f"{seconds:.0f} seconds"
    known = [each for each in stored if "date" in each and "versions" in each]
    sentences = [f"{time[0].upper()}{time[1:]} of one core."]
    if known:
        dates = sorted({each["date"] for each in known})
        days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        sentences = [f"Run {days}, {time} of one core, {_describe_versions([each['versions'] for each in known])}."]
    if len(known) < len(stored):
        sentences.append(f"Date and versions of {len(stored) - len(known)} of {len(stored)} cells are not recorded.")
    return " ".join(sentences)


def _describe_versions(versions: Sequence[Mapping[str, str]]) -> str:
    packages = dict.fromkeys(name for each in versions for name in each)
    found = {name: sorted({each[name] for each in versions if name in each}) for name in packages}
    listed = ", ".join(f"{name} {' and '.join(numbers)}" for name, numbers in found.items())
    is_mixed = any(each != versions[0] for each in versions)
    return f"cells with mixed versions: {listed}" if is_mixed else listed

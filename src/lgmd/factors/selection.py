"""Which half-step to take, and why."""

from __future__ import annotations

from typing import NamedTuple

from lgmd.exceptions import InvalidParameterError
from lgmd.factors.conjugate_gradient import ConjugateGradientUpdate
from lgmd.factors.half import FactorUpdate
from lgmd.factors.paper import PaperUpdate
from lgmd.factors.sylvester import SylvesterUpdate
from lgmd.observed import Observed

__all__ = ["UPDATES", "UpdateChoice", "select_update"]

UPDATES: dict[str, type[FactorUpdate]] = {
    "sylvester": SylvesterUpdate,
    "cg": ConjugateGradientUpdate,
    "paper": PaperUpdate,
}


class UpdateChoice(NamedTuple):
    """An update with its name and the reason for it."""

    name: str
    update: FactorUpdate
    reason: str


def select_update(update: str | FactorUpdate, data: Observed) -> UpdateChoice:
    """The update that a name stands for on this table.

    Parameters
    ----------
    update : {"auto", "sylvester", "cg", "paper"} or FactorUpdate
        ``"auto"`` is exact in both cases: Sylvester for a complete table, conjugate gradients with gaps.
    data : Observed
        The table.
    """
    if not isinstance(update, str) and hasattr(update, "prepare"):
        return UpdateChoice(type(update).__name__, update, "given as an object")
    if update == "auto":
        if data.is_complete:
            return UpdateChoice(
                "sylvester", SylvesterUpdate(), "nothing is missing, so all rows share one k x k system"
            )
        n_entries = data.shape[0] * data.shape[1]
        return UpdateChoice(
            "cg",
            ConjugateGradientUpdate(),
            f"{n_entries - data.n_observed:,} of {n_entries:,} entries are missing, so every row has its own system",
        )
    if not isinstance(update, str) or update not in UPDATES:
        known = ", ".join(repr(name) for name in ("auto", *UPDATES))
        raise InvalidParameterError(f"update must be one of {known} or a FactorUpdate, but is {update!r}.")
    return UpdateChoice(update, UPDATES[update](), "asked for by name")

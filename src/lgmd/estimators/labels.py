"""The order of rows and columns whose labels scikit-learn does not look at, since they are not text."""

from __future__ import annotations

from typing import Any

from lgmd._typing import Array
from lgmd.exceptions import InvalidDataError
from lgmd.observed.labels import first_moved, is_frame, labels_of

__all__ = ["refuse_reordered", "remember_labels"]

# The axis of a DataFrame, what is on it, and how it is brought into an order.
_SIDES = {
    "sample": ("index", "row", "table.loc[fitted.index]"),
    "feature": ("columns", "column", "table.loc[:, fitted.columns]"),
}


def remember_labels(model: Any, table: Any, side: str, names: Array | None) -> None:
    """Keep the labels of a side, ``"sample"`` or ``"feature"``, unless they are kept as names."""
    attribute = f"{side}_labels_"
    if is_frame(table) and names is None:
        setattr(model, attribute, labels_of(getattr(table, _SIDES[side][0])))
    elif hasattr(model, attribute):
        delattr(model, attribute)


def refuse_reordered(model: Any, table: Any, side: str) -> None:
    """Raise where a table has the fitted labels of a side in another order; labels of other things say nothing."""
    known = getattr(model, f"{side}_labels_", getattr(model, f"{side}_names_in_", None))
    if known is None or not is_frame(table):
        return
    axis, noun, remedy = _SIDES[side]
    found = labels_of(getattr(table, axis))
    place = first_moved(found, known)
    if place is not None:
        raise InvalidDataError(
            f"The {noun}s of the table are the fitted ones in another order: {noun} {place} is {str(found[place])!r}, "
            f"where the fitted table has {str(known[place])!r}. Pass {remedy}, or table.to_numpy() if it is the labels "
            "that are wrong."
        )

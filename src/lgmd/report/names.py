"""Names of rows and columns as a page shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import Array, IntArray
from lgmd.exceptions import InvalidParameterError

__all__ = ["SideNames"]

# Longer names are cut, so that twenty thousand of them do not fill the file.
_LONGEST = 60
_LONGEST_OF_MANY = 24
_MANY_CHARACTERS = 400_000


@dataclass(frozen=True, eq=False)
class SideNames:
    """
    What the rows, or the columns, of a table are called.

    Attributes
    ----------
    noun : str
        "row" or "column": what one of them is called that has no name of its own.
    n : int
    labels : tuple of str or None
        Names, cut to a readable length; None where there are only positions, which count from 0 as in ``predict``.
    """

    noun: str
    n: int
    labels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, names: Any, n: int, noun: str) -> SideNames:
        """Names as text; None for none."""
        if names is None:
            return cls(noun, n)
        array = np.asarray(names)
        if array.shape != (n,):
            raise InvalidParameterError(
                f"{noun}_names has shape {array.shape}, but the model has {n:,} {noun}s. Give one name a {noun}."
            )
        texts = _texts(array)
        longest = _LONGEST if sum(map(len, texts)) <= _MANY_CHARACTERS else _LONGEST_OF_MANY
        return cls(noun, n, tuple(text if len(text) <= longest else text[: longest - 1] + "…" for text in texts))

    @property
    def plural(self) -> str:
        """The noun of several."""
        return f"{self.noun}s"

    def __getitem__(self, position: int) -> str:
        return f"{self.noun} {position}" if self.labels is None else self.labels[position]

    def some(self, positions: Iterable[int] | IntArray) -> list[str]:
        """Names of chosen positions."""
        return [self[int(position)] for position in positions]


def _texts(names: Array) -> list[str]:
    if names.dtype.kind == "M":
        names = np.datetime_as_string(names)
    # A half of a surrogate pair cannot be written to a file.
    texts = [str(name).encode("utf-8", "replace").decode("utf-8") for name in names.tolist()]
    for ending in (" 00:00:00", "T00:00:00.000000000", "T00:00:00"):
        if texts and all(text.endswith(ending) for text in texts):
            return [text.removesuffix(ending) for text in texts]
    return texts

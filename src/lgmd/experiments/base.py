"""What an experiment is: cells of work that are run apart, and a page that is written from all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "Experiment", "Row", "Section"]

Cell = Mapping[str, str | int | float]
"""Names one piece of work, such as ``{"family": "blocks", "noise": 0.3}``."""

Row = dict[str, Any]
"""One line of results: what was run, under which settings, and the figures that came out."""


@dataclass(frozen=True)
class Section:
    """A piece of a page: a heading, sentences, tables and pictures.

    Attributes
    ----------
    title : str
    text : str
        Plain sentences; an empty line starts a new paragraph.
    table : DataFrame, optional
        Shown as it is; its index is left out.
    figures : sequence of str
        Names of pictures in the folder of the page, without ending.
    """

    title: str
    text: str = ""
    table: pd.DataFrame | None = None
    figures: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment(ABC):
    """Base of the experiments; the fields of a subclass are its size, and are written on the page.

    A cell takes seconds to a few minutes and depends on nothing but itself and the fields: cells run in any order, in
    several processes, and again after an interruption.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @classmethod
    @abstractmethod
    def quick(cls) -> Self:
        """The same in small, for a look within three minutes."""

    def heading(self) -> str:
        """The title of the page, with the size where that is part of it."""
        return self.title

    @abstractmethod
    def cells(self) -> list[Cell]:
        """What there is to run."""

    def check_data(self, cells: Sequence[Cell]) -> None:
        """Raise MissingDataError where data that these cells need is not at hand; by default they need none."""
        return

    @abstractmethod
    def run(self, cell: Cell) -> list[Row]:
        """Run one cell."""

    def is_final(self, rows: list[Row]) -> bool:
        """Whether rows that are there from an earlier run of a cell count; they do by default."""
        return True

    @abstractmethod
    def sections(self, results: pd.DataFrame, folder: Path) -> list[Section]:
        """Tables and pictures from the rows of all cells; pictures are saved in the folder."""

    def settings(self) -> dict[str, Any]:
        """The size of the experiment."""
        return asdict(self)

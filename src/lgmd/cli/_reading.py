"""How to read a table: the options that every verb with a table has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

if TYPE_CHECKING:
    from lgmd.tables import Table

__all__ = ["Reading", "TablePath", "shape_line"]

_PANEL = "Reading the table"
_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}

# Files that people also store with zeros left out.
_SPARSE = ("h5ad", "mtx")

# Positions of sheets; a sheet called 2018 is meant by its name.
_LAST_POSITION = 99


# Whether it can be read is for the reader to find out, who says more about it.
TablePath = Annotated[
    Path, typer.Argument(readable=False, help="The table: CSV, TSV, Parquet, Excel, NPY, NPZ, MTX or H5AD.")
]


def _option(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=_PANEL, show_default=False)


@dataclass(frozen=True)
class Reading:
    """How a table is read. What is None was not said."""

    format: Annotated[
        str | None,
        _option(
            "--format",
            help="csv, tsv, txt, parquet, xlsx, npy, npz, mtx or h5ad, where the ending of the name does not say it.",
        ),
    ] = None
    long: Annotated[
        tuple[str, str, str] | None,
        _option(
            "--long",
            help="A long table, as ratings are: its columns with row, column and value, by name or position from 0. "
            "Numbers, dates and numbered names are put in order; others stand as they first appear.",
            metavar="ROW COLUMN VALUE",
        ),
    ] = None
    header: Annotated[
        bool | None, _option("--header/--no-header", help="Whether the first row holds names (default: recognised).")
    ] = None
    row_names: Annotated[
        bool | None,
        _option("--row-names/--no-row-names", help="Whether the first column holds names (default: recognised)."),
    ] = None
    missing: Annotated[
        list[str] | None,
        _option(
            "--missing", help="What marks a gap besides an empty cell, NA, NaN and the like, such as -999. Repeat."
        ),
    ] = None
    delimiter: Annotated[
        str | None, _option("--delimiter", help="What separates cells: a character, tab or space (default: found).")
    ] = None
    encoding: Annotated[str | None, _option("--encoding", help="Of text (default: utf-8).")] = None
    sheet: Annotated[
        str | None, _option("--sheet", help="Sheet of an Excel file, by name or position from 0 (default: the first).")
    ] = None
    key: Annotated[str | None, _option("--key", help="Which array of an .npz file is the table.")] = None
    zeros: Annotated[
        bool | None,
        _option("--zeros/--no-zeros", help="What a sparse file does not store is zero, as in counts, not a gap."),
    ] = None
    transpose: Annotated[
        bool | None, _option("--transpose/--no-transpose", help="Swap rows and columns before anything else.")
    ] = None
    log1p: Annotated[bool | None, _option("--log1p/--no-log1p", help="Fit log(1 + value), as for counts.")] = None
    scale: Annotated[
        bool | None, _option("--scale/--no-scale", help="Bring every column to mean 0 and standard deviation 1.")
    ] = None

    def given(self) -> dict[str, Any]:
        """The options that were said, as plain values."""
        said = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in said.items()
            if value is not None
        }

    def or_else(self, stored: Mapping[str, Any]) -> Self:
        """These options, and where nothing was said those that a settings file has."""
        from lgmd.exceptions import InvalidParameterError

        known = {item.name for item in fields(self)}
        unknown = sorted(set(stored) - known)
        if unknown:
            raise InvalidParameterError(
                f"The settings file has the reading option {unknown[0]!r}, which there is not. Known are "
                f"{', '.join(sorted(known))}."
            )
        return replace(self, **{name: value for name, value in stored.items() if getattr(self, name) is None})

    def arguments(self) -> dict[str, Any]:
        """The options that were said, as arguments of :func:`lgmd.tables.read_table`."""
        said = self.given()
        if "delimiter" in said:
            said["delimiter"] = _DELIMITERS.get(said["delimiter"].lower(), said["delimiter"])
        if "long" in said:
            said["long"] = [_position(column) for column in said["long"]]
        if "sheet" in said:
            said["sheet"] = _position(said["sheet"], _LAST_POSITION)
        return said

    def read(self, path: Path) -> Table:
        """The table of a file."""
        from lgmd.tables import read_table

        return read_table(path, **self.arguments())


def shape_line(table: Table) -> str:
    """A table in a few words."""
    n, p = table.shape
    gaps = 1 - table.n_observed / (n * p)
    share = "no gaps" if gaps == 0 else f"{100 * gaps:.3g} % gaps"
    if table.is_sparse and table.form.format in _SPARSE and gaps > 0:
        share += " (what is not stored; --zeros takes it for zero)"
    sides = (("row", table.row_names), ("column", table.column_names))
    unnamed = [side for side, names in sides if names is None]
    without = {0: "", 1: f", without {unnamed[0] if unnamed else ''} names", 2: ", without names"}[len(unnamed)]
    return f"{n:,} rows x {p:,} columns, {share}{without}"


def _position(text: Any, last: float = float("inf")) -> Any:
    return int(text) if isinstance(text, str) and text.isdecimal() and int(text) <= last else text

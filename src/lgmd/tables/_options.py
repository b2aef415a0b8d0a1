"""What a reader is told, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lgmd.tables._layout import Choice

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Checked arguments of :func:`lgmd.tables.read_table`."""

    path: Path
    format: str
    sheet: str | int | None = None
    key: str | None = None
    row_names: Choice = "auto"
    header: Choice = "auto"
    missing: tuple[str, ...] = ()
    delimiter: str | None = None
    long: tuple[str | int, str | int, str | int] | None = None
    encoding: str | None = None

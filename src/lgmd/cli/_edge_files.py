"""Lists of edges in files: which files are one, and their cells. ``_graph_files`` makes graphs of them."""

from __future__ import annotations

import csv
import datetime
import gzip
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lgmd.exceptions import InvalidGraphError
from lgmd.tables import ENDINGS

__all__ = ["edge_rows"]

_TEXT = ("csv", "tsv", "txt")
_HEADING = ["source", "target"]

# An edge is two names, and a weight or none.
_WIDTHS = (2, 3)

# Nodes and columns of what may be an adjacency as well, without and with names of its rows.
_AMBIGUOUS = ((2, 2), (2, 3), (3, 3))


def edge_rows(path: Path, nodes: Collection[str]) -> list[list[str]] | None:
    """
    The cells of a list of edges, or None if the file is something else.

    Parameters
    ----------
    path : Path
    nodes : mapping or set of str
        Names of the nodes, which tell edges from the numbers of a small adjacency.

    Raises
    ------
    InvalidGraphError
        If there is no text in the file, or its lines have different numbers of cells.
    """
    ending = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    kind = ENDINGS.get(ending.lower())
    rows = _text_rows(path) if kind in _TEXT else _stored_rows(path, kind)
    if rows is None or not _is_list(rows, nodes):
        return None
    width = len(rows[0])
    ragged = next((number for number, row in enumerate(rows, 1) if len(row) != width), None)
    if ragged is not None:
        raise InvalidGraphError(
            f"{path}, line {ragged}: {len(rows[ragged - 1])} cells, but line 1 has {width}. Every edge is two "
            "names, and a weight or none."
        )
    return rows[1:] if kind == "parquet" else rows  # whose columns always have names


def _is_list(rows: list[list[str]], nodes: Collection[str]) -> bool:
    if [cell.lower() for cell in rows[0][:2]] == _HEADING:
        return True
    if len(rows[0]) not in _WIDTHS:
        return False
    if (len(nodes), len(rows[0])) not in _AMBIGUOUS:
        return True
    return not _is_symmetric(rows) and all(_could_be_edge(row, nodes) for row in rows[1:] or rows)


def _could_be_edge(row: list[str], nodes: Collection[str]) -> bool:
    """Whether a line begins with two names: of nodes, or of something else that is no number."""
    return len(row) >= 2 and all(cell in nodes or (cell and not _is_number(cell)) for cell in row[:2])


def _is_symmetric(rows: list[list[str]]) -> bool:
    """Whether the lines are the numbers of an adjacency, whose nodes may have numbers for names."""
    if any(len(row) != len(rows) or not all(map(_is_number, row)) for row in rows):
        return False
    return [list(column) for column in zip(*rows, strict=True)] == rows


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _text_rows(path: Path) -> list[list[str]]:
    try:
        packed = path.suffix.lower() == ".gz"
        text = (gzip.decompress(path.read_bytes()) if packed else path.read_bytes()).decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidGraphError(f"There is no file {path} with a graph. Check the path.") from None
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise InvalidGraphError(f"{path} cannot be read as a graph: {error}. Save it as UTF-8 text.") from error
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InvalidGraphError(f"{path} is empty. A graph is a list of edges (two names a line), or an adjacency.")
    delimiter = next((sign for sign in "\t;," if sign in lines[0]), " ")
    return [
        [cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row
    ]


def _stored_rows(path: Path, kind: str | None) -> list[list[str]] | None:
    """The cells of a Parquet or an Excel file; why one cannot be read, the reader of tables says."""
    if kind not in ("parquet", "xlsx"):
        return None
    import pandas as pd

    try:
        frame = pd.read_parquet(path) if kind == "parquet" else pd.read_excel(path, header=None, dtype=object)
    except Exception:  # damage shows in many ways
        return None
    if frame.index.dtype.kind not in "iu" or frame.index.name is not None:  # names beside the cells: no list
        return None
    frame = frame.astype(object).where(frame.notna(), None)
    heading = [frame.columns] if kind == "parquet" else []
    return [list(map(_text, row)) for row in (*heading, *frame.itertuples(index=False, name=None))] or None


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ").removesuffix(" 00:00:00")
    return str(cell).strip()

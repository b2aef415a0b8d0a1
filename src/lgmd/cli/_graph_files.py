"""Graphs that users have in files: lists of edges, or adjacency matrices."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, SparseGraph
from lgmd.exceptions import InvalidGraphError, LGMDError
from lgmd.graphs import LEARNERS, PriorGraph
from lgmd.tables import ENDINGS, read_table

__all__ = ["graph_of"]

_TEXT = ("csv", "tsv", "txt")
_SIDES = {"sample_graph": "rows", "feature_graph": "columns"}


def graph_of(value: Any, names: Array | None, n: int, side: str, note: Callable[[str], None]) -> Any:
    """
    What a model takes for a graph: a name as it is, a file as a :class:`~lgmd.graphs.PriorGraph`.

    Parameters
    ----------
    value : str or other
        A name of a learner, or a path.
    names : ndarray or None
        Of the rows, or columns, that the nodes are.
    n : int
        How many they are.
    side : {"sample_graph", "feature_graph"}
    note : callable
        Told what is left aside.
    """
    if not isinstance(value, str) or (value in LEARNERS and value not in ("fixed", "prior")):
        return value
    path = Path(value)
    if not path.exists() and path.suffix.lower() not in (*ENDINGS, ".gz"):
        known = ", ".join(name for name in LEARNERS if name not in ("fixed", "prior"))
        raise InvalidGraphError(f"{side} must be one of {known}, or the path of a file, but there is no file {value}.")
    rows = _edge_rows(path)
    if rows is None:
        return PriorGraph(_adjacency(path, names, n, side))
    return PriorGraph(_from_edges(rows, path, names, n, side, note))


def _edge_rows(path: Path) -> list[list[str]] | None:
    """The cells of a list of edges, or None if the file is something else."""
    ending = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    if ENDINGS.get(ending.lower()) not in _TEXT:
        return None
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
    rows = [
        [cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row
    ]
    heading = [cell.lower() for cell in rows[0]]
    is_list = heading[:2] == ["source", "target"] or (len(heading) in (2, 3) and len(rows) != len(heading))
    if not is_list:
        return None
    ragged = next((number for number, row in enumerate(rows, 1) if len(row) != len(heading)), None)
    if ragged is not None:
        raise InvalidGraphError(
            f"{path}, line {ragged}: {len(rows[ragged - 1])} cells, but line 1 has {len(heading)}. Every edge is two "
            "names, and a weight or none."
        )
    return rows


def _from_edges(
    rows: list[list[str]], path: Path, names: Array | None, n: int, side: str, note: Callable[[str], None]
) -> SparseGraph:
    places = {str(name): position for position, name in enumerate(range(n) if names is None else names)}
    if rows[0][0] not in places and rows[0][1] not in places:  # a header
        rows = rows[1:]
    found: dict[tuple[int, int], float] = {}
    strangers: list[str] = []
    for row in rows:
        unknown = [name for name in row[:2] if name not in places]
        if unknown:
            strangers += unknown
            continue
        i, j = sorted((places[row[0]], places[row[1]]))
        weight = _weight(row, path)
        if found.setdefault((i, j), weight) != weight:
            raise InvalidGraphError(f"{path}: the edge between {row[0]!r} and {row[1]!r} has two weights. Keep one.")
    kind = _SIDES[side]
    if not found:
        known = ", ".join(repr(name) for name in list(places)[:3])
        met = ", ".join(repr(name) for name in strangers[:3]) or "no names"
        raise InvalidGraphError(
            f"{path} has no edge between two {kind} of the table: its names are {met}, those of the {kind} {known}. "
            f"Use the names of the {kind}{'' if names is not None else ', which here are positions from 0'}."
        )
    if strangers:
        example = f"for example {strangers[0]!r}"
        note(f"{path}: {len(strangers):,} ends of edges are no {kind} of the table, {example}; these are left aside.")
    ends = np.array(list(found), dtype=np.int64)
    weights = np.array(list(found.values()))
    half: Any = scipy.sparse.coo_array((weights, (ends[:, 0], ends[:, 1])), shape=(n, n))
    return scipy.sparse.csr_array(half + half.T)


def _weight(row: list[str], path: Path) -> float:
    if len(row) < 3 or not row[2]:
        return 1.0
    try:
        weight = float(row[2])
    except ValueError:
        weight = float("nan")
    if not np.isfinite(weight):
        raise InvalidGraphError(f"{path}: the weight {row[2]!r} of the edge {row[0]!r} - {row[1]!r} is no number.")
    return weight


def _adjacency(path: Path, names: Array | None, n: int, side: str) -> SparseGraph:
    try:
        table = read_table(path)
    except LGMDError as error:
        raise InvalidGraphError(f"The graph cannot be read. {error}") from error
    kind = _SIDES[side]
    if table.shape != (n, n) and (table.shape[0] != table.shape[1] or names is None or table.row_names is None):
        shape = " x ".join(f"{length:,}" for length in table.shape)
        raise InvalidGraphError(
            f"{path} is {shape}, but the table has {n:,} {kind}: an adjacency of them is {n:,} x {n:,}. A list of "
            "edges has two columns with names, and a third with weights or none."
        )
    values = table.values if table.is_sparse else np.where(np.isnan(table.values), 0.0, table.values)
    matrix = scipy.sparse.csr_array(values)
    if names is None or table.row_names is None:
        return matrix
    if table.column_names is not None and list(table.row_names) != list(table.column_names):
        raise InvalidGraphError(f"{path}: rows and columns of an adjacency must have the same names in the same order.")
    places = {str(name): position for position, name in enumerate(table.row_names)}
    absent = [str(name) for name in names if str(name) not in places]
    if absent:
        raise InvalidGraphError(
            f"{path} lacks {len(absent):,} of the {n:,} {kind} of the table, the first {absent[0]!r}. An adjacency has "
            "a row and a column for each; a list of edges needs only those that have one."
        )
    order = np.array([places[str(name)] for name in names])
    return scipy.sparse.csr_array(matrix[order][:, order])

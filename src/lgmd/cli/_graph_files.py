"""Graphs that users have in files: lists of edges (``_edge_files`` reads them), or adjacency matrices."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse

from lgmd._typing import Array, SparseGraph
from lgmd.cli._edge_files import edge_rows
from lgmd.exceptions import InvalidGraphError, LGMDError
from lgmd.graphs import LEARNERS, PriorGraph
from lgmd.tables import ENDINGS, read_table

if TYPE_CHECKING:
    from lgmd.tables import Table

__all__ = ["graph_for", "graph_of", "is_path", "portable"]

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
    if not is_path(value):
        return value
    path = Path(value)
    if not path.exists() and path.suffix.lower() not in (*ENDINGS, ".gz"):
        known = ", ".join(name for name in LEARNERS if name not in ("fixed", "prior"))
        raise InvalidGraphError(f"{side} must be one of {known}, or the path of a file, but there is no file {value}.")
    places = {str(name): position for position, name in enumerate(range(n) if names is None else names)}
    rows = edge_rows(path, places)
    if rows is None:
        return PriorGraph(_adjacency(path, names, n, side))
    return PriorGraph(_from_edges(rows, path, places, names is not None, side, note))


def graph_for(value: Any, table: Table, side: str, note: Callable[[str], None]) -> Any:
    """What a model takes for a graph over the rows or the columns of a table, as :func:`graph_of` finds it."""
    place = list(_SIDES).index(side)
    return graph_of(value, (table.row_names, table.column_names)[place], table.shape[place], side, note)


def portable(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters whose graphs in files are named by their whole path, for settings that are read in another folder."""
    return {
        name: os.path.abspath(value) if name.endswith("graph") and is_path(value) else value
        for name, value in parameters.items()
    }


def is_path(value: Any) -> bool:
    return isinstance(value, str) and (value not in LEARNERS or value in ("fixed", "prior"))


def _from_edges(
    rows: list[list[str]], path: Path, places: dict[str, int], named: bool, side: str, note: Callable[[str], None]
) -> SparseGraph:
    n = len(places)
    if rows and rows[0] == [str(number) for number in range(len(rows[0]))]:
        line = ",".join(rows[0])
        note(f"{path}: the first line, {line}, is taken for an edge. If it is a header, call it source,target.")
    if rows and rows[0][0] not in places and rows[0][1] not in places:  # a header
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
            f"Use the names of the {kind}{'' if named else ', which here are positions from 0'}."
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


def _as_table(path: Path, header: bool | Literal["auto"] = "auto") -> Table:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about what was guessed, of which nothing can be said here
            return read_table(path, header=header)
    except LGMDError as error:
        raise InvalidGraphError(f"The graph cannot be read. {error}") from error


def _adjacency(path: Path, names: Array | None, n: int, side: str) -> SparseGraph:
    table = _as_table(path)
    if table.shape == (n - 1, n) and table.row_names is None:  # the first row only looks like a header
        table = _as_table(path, header=False)
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

"""Labels of graphs that are given as a DataFrame, which have to be in the order of the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgmd._typing import Array
from lgmd.exceptions import InvalidGraphError
from lgmd.observed.labels import first_moved, is_default, is_frame, labels_of

__all__ = ["refuse_other_order"]


def refuse_other_order(matrix: Any, name: str, names: Array | None = None, nodes: str = "nodes") -> None:
    """Raise where the labels of a DataFrame are those of the table, or of its own other side, in another order.

    Labels that have nothing to do with the names of the table say nothing, nor does a default index.
    """
    if not is_frame(matrix):
        return
    axes = (axis for axis in (matrix.index, matrix.columns) if not is_default(axis))
    labels = [np.asarray(labels_of(axis), dtype=str) for axis in axes]
    if len(labels) == 2:
        _refuse_unlike(matrix, labels[0], labels[1], name)
    if names is None:
        return
    for found in labels:
        place = first_moved(found, names)
        if place is not None:
            raise InvalidGraphError(
                f"{name} has the {nodes} of the table in another order: number {place} is {str(found[place])!r}, where "
                f"the table has {str(names[place])!r}. Pass graph.loc[names, names] with names in the order of the "
                "table, or graph.to_numpy() if it is the labels that are wrong."
            )


def _refuse_unlike(matrix: Any, rows: Array, columns: Array, name: str) -> None:
    """Raise where rows and columns are not the same nodes; of two types, such as dates and text, they may be."""
    if len(rows) != len(columns):
        return
    differing = np.flatnonzero(rows != columns)
    is_moved = first_moved(columns, rows) is not None
    if len(differing) and (is_moved or matrix.index.dtype == matrix.columns.dtype):
        place = differing[0]
        raise InvalidGraphError(
            f"{name} has other labels on its columns than on its rows: number {place} is {str(columns[place])!r} and "
            f"{str(rows[place])!r}. Pass graph.loc[names, names], with the same names in the same order, or "
            "graph.to_numpy() if it is the labels that are wrong."
        )

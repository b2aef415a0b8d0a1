"""Checks that several parts share, each with an error that says what to do."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import SparseGraph
from lgmd.exceptions import InvalidGraphError, InvalidParameterError

__all__ = [
    "NO_EDGE",
    "as_symmetric",
    "check_choice",
    "check_flag",
    "check_integer",
    "check_real",
    "check_seed",
    "precision_of",
    "refuse_masked",
    "refuse_networkx",
]


NO_EDGE = "Write zero where there is no edge: filled(0) does so."


def check_integer(value: Any, name: str, *, minimum: int) -> int:
    """An integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameterError(f"{name} must be an integer, but is {value!r}.")
    if value < minimum:
        raise InvalidParameterError(f"{name} must be at least {minimum}, but is {value}.")
    return int(value)


def check_real(value: Any, name: str, *, minimum: float = 0.0) -> float:
    """A finite number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameterError(f"{name} must be a number, but is {value!r}.")
    if not minimum <= float(value) < float("inf"):
        condition = "must not be negative" if minimum == 0 else f"must be at least {minimum:g}"
        raise InvalidParameterError(f"{name} {condition} and must be finite, but is {value}.")
    return float(value)


def check_flag(value: Any, name: str) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameterError(f"{name} must be True or False, but is {value!r}.")


def check_seed(value: Any) -> None:
    """What scikit-learn takes for a source of randomness."""
    seed = isinstance(value, int | np.integer) and 0 <= int(value) < 2**32
    if value is not None and not seed and not isinstance(value, np.random.RandomState):
        raise InvalidParameterError(
            "random_state must be None, an integer from 0 to 2**32 - 1 or a numpy.random.RandomState, "
            f"but is {value!r}."
        )


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameterError(f"{name} must be one of {known}, but is {value!r}.")
    return str(value)


def refuse_networkx(graph: Any, name: str) -> None:
    """Its nodes have names and no order that a table would know."""
    if type(graph).__module__.startswith("networkx."):
        raise InvalidGraphError(
            f"{name} is a {type(graph).__name__} of networkx, whose nodes are in no order. Pass "
            "networkx.to_scipy_sparse_array(graph, nodelist=...) with the nodes in the order of the table."
        )


def refuse_masked(values: Any, name: str, advice: str) -> None:
    """What lies under a mask is anything, often a huge number, and numpy would take it for a value."""
    if np.ma.is_masked(values):
        raise InvalidParameterError(f"{name} has {int(np.ma.getmaskarray(values).sum()):,} masked entries. {advice}")


def precision_of(graph: Any) -> Any:
    """The precision of a learned graph; anything else as it is, also a DataFrame with a column of that name."""
    return graph if hasattr(graph, "iloc") else getattr(graph, "precision", graph)


def as_symmetric(matrix: Any, name: str = "The graph") -> SparseGraph:
    """A finite, real, square, symmetric matrix as a float64 ``csr_array``; a copy.

    Asymmetry at the level of round-off is averaged away; more is an error. A learned graph stands for its precision.
    """
    matrix = precision_of(matrix)
    if scipy.sparse.issparse(matrix):
        kind = matrix.dtype.kind
    else:
        refuse_networkx(matrix, name)
        refuse_masked(matrix, name, NO_EDGE)
        try:
            matrix = np.asarray(matrix)
        except ValueError:
            raise InvalidGraphError(f"{name} has rows of different length. A graph over n nodes is n x n.") from None
        kind = matrix.dtype.kind
    if kind not in "fiub":
        raise InvalidGraphError(f"{name} holds {matrix.dtype} values. A graph has real weights.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        shape = " x ".join(str(length) for length in matrix.shape) or "a single number"
        raise InvalidGraphError(f"{name} is {shape}, but a graph over n nodes is an n x n matrix.")
    graph = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
    graph.sum_duplicates()
    if not np.all(np.isfinite(graph.data)):
        found = int((~np.isfinite(graph.data)).sum())
        raise InvalidGraphError(f"{name} has {found:,} entries that are NaN or infinite. Every weight must be finite.")
    asymmetry = abs(graph - graph.T)
    largest = np.abs(graph.data).max(initial=0.0)
    if asymmetry.nnz and asymmetry.max() > 1e-8 * largest:
        row, column = (int(index[asymmetry.tocoo().data.argmax()]) for index in asymmetry.tocoo().coords)
        raise InvalidGraphError(
            f"{name} is not symmetric: entry ({row}, {column}) is {graph[row, column]:.6g}, but ({column}, {row}) is "
            f"{graph[column, row]:.6g}. Pass (G + G.T) / 2 if both directions mean the same edge."
        )
    symmetric = scipy.sparse.csr_array((graph + graph.T) / 2)
    symmetric.eliminate_zeros()
    symmetric.sort_indices()
    return symmetric

"""A learned graph as something to look at: its strongest edges, where its nodes lie, and a list of its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import FloatArray, IntArray, SparseGraph
from lgmd.graphs import GraphSummary, describe, edge_list
from lgmd.report.layout import graph_layout
from lgmd.report.names import SideNames
from lgmd.report.packing import pack_integers, plain_number

__all__ = ["MOST_EDGES", "MOST_NODES", "Edge", "Network", "network"]

MOST_EDGES = 20_000
MOST_NODES = 20_000

_LISTED = 200

# Edges that are drawn before the reader moves the slider: so many a node, within limits.
_FIRST_A_NODE = 4
_FEWEST_FIRST, _MOST_FIRST = 500, 5_000

_GRID = 2**16 - 1


@dataclass(frozen=True)
class Edge:
    """An edge of the list, its nodes by name."""

    source: str
    target: str
    partial_correlation: float


@dataclass(frozen=True, eq=False)
class Network:
    """
    A graph to draw.

    Attributes
    ----------
    names : SideNames
    summary : GraphSummary
        Of the whole graph.
    nodes : ndarray of int, shape (m,)
        Positions in the table of the nodes that are drawn.
    places : ndarray of shape (m, 2)
        Integers from 0 to 65,535.
    sources, targets : ndarray of int, shape (e,)
        Ends of the edges that are drawn, as positions in ``nodes``; the strongest edges first.
    partial_correlations : ndarray of shape (e,)
    first_threshold : float
        Absolute partial correlation below which edges are hidden at first.
    top_edges : list of Edge
    notes : list of str
        What was left out.
    """

    names: SideNames
    summary: GraphSummary
    nodes: IntArray
    places: IntArray
    sources: IntArray
    targets: IntArray
    partial_correlations: FloatArray
    first_threshold: float
    top_edges: list[Edge]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Plain values for the page's script."""
        strengths = np.abs(self.partial_correlations)
        whole = len(self.nodes) == self.names.n
        return {
            "noun": self.names.noun,
            "n_nodes": len(self.nodes),
            "n_edges": len(self.sources),
            "labels": None if self.names.labels is None else self.names.some(self.nodes),
            "positions": None if whole else pack_integers(self.nodes),
            "x": pack_integers(self.places[:, 0]),
            "y": pack_integers(self.places[:, 1]),
            "sources": pack_integers(self.sources),
            "targets": pack_integers(self.targets),
            # Signed, to four digits: 10,000 stands for zero.
            "correlations": pack_integers(np.rint(10_000 * (1 + self.partial_correlations)).astype(np.int64)),
            "threshold": plain_number(self.first_threshold, 4),
            "weakest": plain_number(strengths.min(), 4) if len(strengths) else 0.0,
            "strongest": plain_number(strengths.max(), 4) if len(strengths) else 0.0,
        }


def network(precision: SparseGraph, names: SideNames) -> Network:
    """
    Choose what of a graph is drawn, and place it.

    Parameters
    ----------
    precision : csr_array of shape (n, n)
    names : SideNames
    """
    edges = edge_list(precision)
    summary = describe(precision)
    correlations = np.clip(edges["partial_correlation"].to_numpy(), -1.0, 1.0)
    ends = edges[["source", "target"]].to_numpy()
    kept = _affordable(ends[:MOST_EDGES])
    nodes = _drawn_nodes(ends[:kept], names.n)
    sources, targets = np.searchsorted(nodes, ends[:kept]).T
    strengths = np.abs(correlations[:kept])
    first = int(np.clip(_FIRST_A_NODE * len(nodes), _FEWEST_FIRST, _MOST_FIRST))
    places = graph_layout(len(nodes), sources, targets, np.maximum(strengths, 1e-6))
    return Network(
        names=names,
        summary=summary,
        nodes=nodes,
        places=_on_grid(places),
        sources=sources,
        targets=targets,
        partial_correlations=correlations[:kept],
        first_threshold=float(strengths[first - 1]) if kept > first else 0.0,
        top_edges=[
            Edge(names[int(i)], names[int(j)], float(value))
            for (i, j), value in zip(ends[:_LISTED], correlations[:_LISTED], strict=True)
        ],
        notes=_notes(names, len(ends), kept, len(nodes)),
    )


def _affordable(ends: IntArray) -> int:
    """How many of the strongest edges can be drawn with the nodes there is room for."""
    _, first = np.unique(ends.ravel(), return_index=True)
    if len(first) <= MOST_NODES:
        return len(ends)
    return int(np.sort(first)[MOST_NODES] // 2)


def _drawn_nodes(ends: IntArray, n: int) -> IntArray:
    """Nodes with an edge, and as many of the others as there is room for, evenly spread over the table."""
    if n <= MOST_NODES:
        return np.arange(n)
    joined = np.unique(ends)
    others = np.setdiff1d(np.arange(n), joined, assume_unique=True)
    room = min(MOST_NODES - len(joined), len(others))
    chosen = others[np.linspace(0, len(others) - 1, room).astype(np.int64)] if room else others[:0]
    return np.asarray(np.union1d(joined, chosen))


def _on_grid(places: FloatArray) -> IntArray:
    low = places.min(axis=0)
    extent = max(float(np.ptp(places, axis=0).max()), 1e-12)
    grid: IntArray = np.rint((places - low) / extent * _GRID).astype(np.int64)
    return grid


def _notes(names: SideNames, n_edges: int, kept: int, n_nodes: int) -> list[str]:
    notes = []
    if kept < n_edges:
        notes.append(f"Of {n_edges:,} edges the {kept:,} strongest are in this file.")
    if n_nodes < names.n:
        notes.append(f"Of {names.n:,} {names.plural} {n_nodes:,} are drawn, all ends of those edges among them.")
    return notes

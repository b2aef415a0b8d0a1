"""``lgmd bench``: how fast this machine is at what a fit consists of."""

from __future__ import annotations

from typing import Annotated

import typer

from lgmd.cli._groups import with_groups
from lgmd.cli._talk import Talk

__all__ = ["bench"]


@with_groups
def bench(
    rows: Annotated[int, typer.Option(min=10, help="Rows of the table.")] = 1000,
    columns: Annotated[int, typer.Option(min=10, help="Columns of the table.")] = 500,
    components: Annotated[int, typer.Option("--components", "-k", min=1, help="Factors.")] = 10,
    missing: Annotated[float, typer.Option(min=0.0, max=0.95, help="Share of gaps.")] = 0.2,
    iterations: Annotated[int, typer.Option(min=2, help="Iterations to measure.")] = 10,
    nodes: Annotated[int, typer.Option(min=10, help="Nodes between which edges are searched.")] = 10_000,
    *,
    talk: Talk,
) -> None:
    """Measure how fast this machine fits a synthetic table and searches for edges.

    Takes some seconds. To compare with other packages, run make bench in the repository.
    """
    from lgmd.cli._measuring import measure_edge_search, measure_fit
    from lgmd.linalg.threads import available_threads

    threads = available_threads()
    talk.note(f"A table of {rows:,} x {columns:,}, {missing:.0%} gaps, {components} factors, {threads} threads.")
    kinds = ("map", "variational")
    seconds = {kind: measure_fit(rows, columns, components, missing, iterations, kind) for kind in kinds}
    edges, search = measure_edge_search(nodes, components)
    entries = rows * columns * (1 - missing)
    lines = [
        f"{kind + ' iteration:':24}{each:10.4f} s, {entries / each / 1e6:8.2f} million entries a second"
        for kind, each in seconds.items()
    ]
    pairs = nodes * (nodes - 1) / 2
    lines += [
        f"{'search for edges:':24}{search:10.4f} s, {pairs / search / 1e6:8.2f} million pairs a second "
        f"({nodes:,} nodes, {edges:,} found)",
        "To compare with other packages, run make bench in the repository of lgmd.",
    ]
    talk.outcome(
        lines,
        outcome="measured",
        rows=rows,
        columns=columns,
        components=components,
        missing=missing,
        threads=threads,
        seconds_per_iteration=seconds,
        edge_search={"nodes": nodes, "edges": edges, "seconds": search},
    )

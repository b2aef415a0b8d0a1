"""Everything a report says, as plain data."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import FloatArray
from lgmd.estimators.labels import refuse_reordered
from lgmd.exceptions import InvalidDataError
from lgmd.observed import Observed, as_observed
from lgmd.report.decomposition import Decomposition, decompose
from lgmd.report.embeddings import Embedding, Loading, embedding, loadings
from lgmd.report.facts import FitFacts
from lgmd.report.heat_maps import MapSet, heat_maps
from lgmd.report.held_out import HeldOutScores
from lgmd.report.networks import Network, network
from lgmd.report.reproduction import python_snippet, setting_texts, versions

__all__ = ["ReportData", "summarize"]


@dataclass(frozen=True, eq=False)
class ReportData:
    """
    What a report shows.

    Attributes
    ----------
    title : str
    date : str
        When the report was made.
    facts : FitFacts
        What was fitted and how well.
    held_out : HeldOutScores or None
    map_sets : list of MapSet
        The pictures in two orders.
    networks, embeddings : list of two
        Of rows and of columns.
    loadings : list of Loading
    objective, seconds : ndarray of shape (n_iter,)
        After each iteration.
    graph_steps : list of int
        Iterations, from 1, that began with new graphs.
    parameters, settings, versions : dict of str to str
        Of the model, of the run, of the software.
    snippet : str
    """

    title: str
    date: str
    facts: FitFacts
    held_out: HeldOutScores | None
    map_sets: list[MapSet]
    networks: list[Network]
    embeddings: list[Embedding]
    loadings: list[Loading]
    objective: FloatArray
    seconds: FloatArray
    graph_steps: list[int]
    parameters: dict[str, str]
    settings: dict[str, str]
    versions: dict[str, str]
    snippet: str


def summarize(
    model: Any,
    table: Any = None,
    *,
    title: str | None = None,
    held_out: HeldOutScores | None = None,
    settings: Mapping[str, Any] | None = None,
    row_names: Any = None,
    column_names: Any = None,
) -> ReportData:
    """
    Make the data of a report; see :func:`~lgmd.report.write_report` for the parameters.

    Costs a pass over the table and ``O((n + p) k^2)`` for the pictures, beside the layout of the graphs, which takes
    seconds for twenty thousand edges. Nothing of the size of the table is made.
    """
    observed = None if table is None else _observed(table)
    if observed is not None:
        row_names = observed.row_names if row_names is None else row_names
        column_names = observed.column_names if column_names is None else column_names
    fitted = decompose(model, row_names, column_names)
    if observed is not None and observed.shape != fitted.shape:
        n, p = fitted.shape
        raise InvalidDataError(
            f"The table is {observed.shape[0]:,} x {observed.shape[1]:,}, but the model was fitted on one of "
            f"{n:,} x {p:,}. Pass the table that was fitted, or none."
        )
    for side in ("sample", "feature"):
        refuse_reordered(fitted.estimator, table, side)
    facts = FitFacts.of(fitted, observed)
    return ReportData(
        title=title or f"{facts.model} of a table of {facts.n_rows:,} x {facts.n_columns:,}",
        date=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z").strip(),
        facts=facts,
        held_out=held_out,
        map_sets=heat_maps(fitted, observed),
        networks=_networks(fitted),
        embeddings=[embedding(fitted.X, fitted.rows), embedding(fitted.W, fitted.columns)],
        loadings=loadings(fitted),
        objective=fitted.history.objective,
        seconds=fitted.history.seconds,
        graph_steps=(np.flatnonzero(fitted.history.graph_steps) + 1).tolist(),
        parameters=setting_texts(fitted.estimator),
        settings={str(name): str(value) for name, value in (settings or {}).items() if name != "reading"},
        versions=versions(),
        snippet=python_snippet(fitted.estimator, settings),
    )


def _observed(table: Any) -> Observed:
    return as_observed(table, allow_empty_rows=True, allow_empty_columns=True, min_rows=1, min_columns=1)


def _networks(model: Decomposition) -> list[Network]:
    return [network(model.row_graph, model.rows), network(model.column_graph, model.columns)]

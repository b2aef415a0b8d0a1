"""The files of a fit: factors, graphs, the completed table with error bars, the course of the fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array
from lgmd.cli._fitting import HonestScores
from lgmd.cli._output import naming
from lgmd.graphs.summary import edge_list
from lgmd.tables import ENDINGS, Table, undo, undo_std, write_table

if TYPE_CHECKING:
    import pandas as pd

    from lgmd.estimators.factorization import Factorization

__all__ = ["FILES", "RECONSTRUCTION_UP_TO", "write_fit_tables"]

#: What the folder of a fit can have, without endings.
FILES = (
    "model",
    "sample_factors",
    "feature_factors",
    "edges_samples",
    "edges_features",
    "reconstruction",
    "reconstruction_std",
    "held_out",
    "history",
    "settings",
    "report",
)

_TEXT = ("csv", "tsv", "txt")

# Digits beyond the first of an error bar, and those that a double can have.
_DIGITS = 4
_MOST_DIGITS = 14

#: Entries up to which a table that is stored by its observed entries is written in full.
RECONSTRUCTION_UP_TO = 5_000_000


def write_fit_tables(
    model: Factorization, table: Table, folder: Path, extent: str, scores: HonestScores | None
) -> list[Path]:
    """
    Write everything of a fit that is a table.

    Parameters
    ----------
    model : Factorization
    table : Table
        What was fitted.
    folder : Path
    extent : {"auto", "all", "observed", "none"}
        How much of the completed table is written.
    scores : HonestScores or None
    """
    frames = {
        "sample_factors": _factors(model.sample_factors_, model.sample_intercepts_, table.row_names),
        "feature_factors": _factors(model.feature_factors_, model.feature_intercepts_, table.column_names),
        "edges_samples": edge_list(model.sample_graph_, _listed(table.row_names)),
        "edges_features": edge_list(model.feature_graph_, _listed(table.column_names)),
        "history": _history(model),
    }
    if scores is not None:
        frames["held_out"] = _held_out(scores, table)
    written = []
    for name, frame in frames.items():
        path = folder / f"{name}.csv"
        with naming(path):
            frame.to_csv(path, index=False)
        written.append(path)
    return written + _write_reconstruction(model, table, folder, extent)


def _write_reconstruction(model: Factorization, table: Table, folder: Path, extent: str) -> list[Path]:
    if extent == "auto":
        n, p = table.shape
        extent = "observed" if table.is_sparse and n * p > RECONSTRUCTION_UP_TO else "all"
    if extent == "none":
        return []
    source = table if table.original is None else table.original
    with_bars = hasattr(model, "posterior_")
    ending = _ending(source)
    parts = ("reconstruction", "reconstruction_std")[: 1 + with_bars]
    if extent == "all":
        found = model.reconstruct(return_std=with_bars)
        values, bars = found if with_bars else (found, None)
        tables = [undo(table, values)] + ([undo_std(table, values, bars)] if with_bars else [])
    else:
        tables = _at_observed(model, table, with_bars)
    if source.format in _TEXT:
        smallest = _numbers(tables[1]).min() if with_bars else model.noise_std_ * _smallest_scale(table)
        tables = [_rounded(content, float(smallest)) for content in tables]
    paths = []
    for name, content in zip(parts, tables, strict=True):
        path = folder / f"{name}{ending}"
        write_table(replace(source, values=content), path)
        paths.append(path)
    return paths


def _at_observed(model: Factorization, table: Table, with_bars: bool) -> list[Any]:
    """The entries that were observed, denoised, and their error bars."""
    entries: Any = (
        scipy.sparse.coo_array(table.values)
        if table.is_sparse
        else scipy.sparse.coo_array(
            (table.values[~np.isnan(table.values)], np.nonzero(~np.isnan(table.values))), shape=table.shape
        )
    )
    rows, columns = entries.coords
    found = model.predict(rows, columns, return_std=with_bars)
    means = undo(table, _placed(found[0] if with_bars else found, entries))
    if not with_bars:
        return [means]
    # As undo_std does, which is for whole tables; the derivative of expm1 is its value and one.
    steps = table.transformation
    bars = found[1] * (1.0 if steps.scale is None else steps.scale[columns])
    return [means, _placed(bars * (means.data + 1 if steps.log1p else 1.0), means)]


def _rounded(content: Any, bar: float) -> Any:
    """Numbers to a ten-thousandth of the smallest error bar: as text the rest is half of the file and says nothing."""
    numbers = _numbers(content)
    largest = float(np.abs(numbers).max(initial=0.0))
    if not 0 < bar < np.inf or not 0 < largest < np.inf:
        return content
    decimals = _DIGITS - int(np.floor(np.log10(bar)))
    if decimals + np.log10(largest) > _MOST_DIGITS or decimals < 0:
        return content
    rounded = np.round(numbers.astype(np.float64), decimals)
    return _placed(rounded, content) if scipy.sparse.issparse(content) else rounded


def _numbers(content: Any) -> Array:
    return content.data if scipy.sparse.issparse(content) else np.asarray(content)


def _smallest_scale(table: Table) -> float:
    scale = table.transformation.scale
    return 1.0 if scale is None else float(np.min(scale))


def _placed(values: Array, entries: Any) -> Any:
    return scipy.sparse.coo_array((values, entries.coords), shape=entries.shape)


def _ending(source: Table) -> str:
    """The ending of the table's own file, or the usual one of its format."""
    if source.source is not None:
        suffixes = [suffix.lower() for suffix in source.source.suffixes]
        if suffixes[-1:] == [".gz"] and ENDINGS.get("".join(suffixes[-2:-1])) == source.format:
            return "".join(suffixes[-2:])
        if suffixes and ENDINGS.get(suffixes[-1]) == source.format:
            return suffixes[-1]
    return f".{source.format}"


def _factors(factors: Array, intercepts: Array, names: Array | None) -> pd.DataFrame:
    import pandas as pd

    columns = {f"factor_{number}": column for number, column in enumerate(factors.T, 1)}
    return pd.DataFrame(
        {"name": np.arange(len(factors)) if names is None else names, **columns, "intercept": intercepts}
    )


def _history(model: Factorization) -> pd.DataFrame:
    import pandas as pd

    history = model.history_
    rows = [
        {
            "iteration": number,
            "seconds": record.seconds,
            "objective": record.objective,
            "change": record.change,
            "graphs_learned": record.graph_step,
            "sample_edges": record.sample_edges,
            "feature_edges": record.feature_edges,
            **{f"term_{name}": value for name, value in record.terms.items()},
        }
        for number, record in enumerate(history.records, 1)
    ]
    return pd.DataFrame(rows)


def _held_out(scores: HonestScores, table: Table) -> pd.DataFrame:
    """Held-out entries in the units of the fit."""
    import pandas as pd

    entries, found = scores.entries, scores.scores
    columns = {
        "row": entries.rows if table.row_names is None else table.row_names[entries.rows],
        "column": entries.columns if table.column_names is None else table.column_names[entries.columns],
        "value": found.values,
        "prediction": found.predictions,
    }
    return pd.DataFrame(columns if found.std is None else {**columns, "std": found.std})


def _listed(names: Array | None) -> list[str] | None:
    return None if names is None else [str(name) for name in names]

"""From plain data to one file: the template, and data that no browser takes for markup."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lgmd._files import write_text
from lgmd.exceptions import InvalidParameterError
from lgmd.report.heat_maps import MapSet, colour_bar, map_picture
from lgmd.report.held_out import HeldOutScores
from lgmd.report.packing import plain_number
from lgmd.report.summary import ReportData, summarize

__all__ = ["embedded_json", "render", "write_report"]

# In the order in which they build on each other.
_SCRIPTS = ("basics", "tables", "charts", "maps", "view", "network", "scatter", "main")

# Points of the convergence curve, and of the plot of predictions.
_CURVE_POINTS = 2_000
_PREDICTION_POINTS = 2_000


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    table: Any = None,
    title: str | None = None,
    held_out: HeldOutScores | None = None,
    settings: Mapping[str, Any] | None = None,
    row_names: Any = None,
    column_names: Any = None,
) -> Path:
    """
    Write what a model found as one HTML file that works offline.

    Parameters
    ----------
    model : fitted LGMD, LGMDPlus, PMF, DGRMD, GPCA or LGMDImputer
    path : path
        The file to write; an older one is replaced once the new one is whole.
    table : table of shape (n, p), optional
        What was fitted, in any form that ``fit`` takes. Without it the report shows the fit alone.
    title : str, optional
    held_out : HeldOutScores, optional
        How a fit without them predicted some entries; adds the held-out error and the calibration plot.
    settings : mapping, optional
        What else to say about the run, such as the command. ``source`` is the file the table came from, and
        ``reading`` a mapping with the arguments by which :func:`lgmd.tables.read_table` reads it.
    row_names, column_names : sequence, optional
        Used where the model has none. Without names rows and columns are numbered from 0.

    Returns
    -------
    Path
        Of the file.

    Examples
    --------
    >>> import tempfile
    >>> from lgmd import PMF, datasets, report
    >>> data = datasets.make_matrix_normal(30, 20, rank=2, random_state=0)
    >>> model = PMF(2).fit(data.observed)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write_report(model, f"{folder}/report.html", table=data.observed).name
    'report.html'
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidParameterError(f"{target} is a folder. Give the report a file name, such as report.html in it.")
    if not target.parent.is_dir():
        raise InvalidParameterError(f"The folder {target.parent} for the report does not exist. Make it first.")
    data = summarize(
        model,
        table,
        title=title,
        held_out=held_out,
        settings=settings,
        row_names=row_names,
        column_names=column_names,
    )
    try:
        write_text(target, render(data))
    except OSError as error:
        if error.filename is None:  # as of a disk that is full
            error.filename = str(target)
        raise
    return target


def render(data: ReportData) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("lgmd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = lambda value: f"{value:.3g}"
    environment.filters["count"] = lambda value: f"{value:,}"
    templates = files("lgmd.report") / "templates"
    script = "\n".join((templates / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return environment.get_template("report.html").render(
        data=data,
        map_sets=[_map_set(map_set) for map_set in data.map_sets],
        held_out=None if data.held_out is None else _held_out_lines(data.held_out),
        style=Markup((templates / "report.css").read_text(encoding="utf-8")),
        script=Markup(script),
        embedded=Markup(embedded_json(_script_data(data))),
    )


def embedded_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or a line of it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _map_set(map_set: MapSet) -> dict[str, Any]:
    """What the template needs of a set of pictures."""
    return {
        "set": map_set,
        "maps": [(map_, map_picture(map_), colour_bar(map_.colours)) for map_ in map_set.maps],
    }


def _held_out_lines(scores: HeldOutScores) -> list[tuple[str, str]]:
    error, spread = scores.rmse, scores.spread
    lines = [("Entries held out", f"{len(scores.values):,}"), ("Root mean squared error", f"{error:.4g}")]
    if spread > 0:
        lines.append(("Relative to their spread", f"{100 * error / spread:.1f} % of {spread:.4g}"))
    inside = scores.coverage(0.9)
    if inside is not None:
        lines.append(("Inside the 90 % error bars", f"{100 * inside:.1f} %"))
    return lines


def _script_data(data: ReportData) -> dict[str, Any]:
    return {
        "networks": [network.to_json() for network in data.networks],
        "embeddings": [embedding.to_json() for embedding in data.embeddings],
        "maps": {map_set.key: _map_values(map_set) for map_set in data.map_sets},
        "convergence": _convergence(data),
        "held_out": None if data.held_out is None else _held_out_points(data.held_out),
    }


def _map_values(map_set: MapSet) -> dict[str, Any]:
    return {
        "rows": map_set.row_labels,
        "columns": map_set.column_labels,
        "maps": [{"kind": map_.kind, "values": map_.packed()} for map_ in map_set.maps],
    }


def _convergence(data: ReportData) -> dict[str, Any]:
    n = len(data.objective)
    shown = np.unique(np.linspace(0, n - 1, min(n, _CURVE_POINTS)).astype(np.int64)) if n else np.empty(0, np.int64)
    return {
        "iterations": (shown + 1).tolist(),
        "objective": [plain_number(value, 10) for value in data.objective[shown]],
        "graph_steps": data.graph_steps,
    }


def _held_out_points(scores: HeldOutScores) -> dict[str, Any]:
    known = np.flatnonzero(np.isfinite(scores.values) & np.isfinite(scores.predictions))
    if len(known) > _PREDICTION_POINTS:
        known = np.sort(np.random.default_rng(0).choice(known, _PREDICTION_POINTS, replace=False))
    calibration = scores.calibration()
    return {
        "values": [plain_number(value, 5) for value in scores.values[known]],
        "predictions": [plain_number(value, 5) for value in scores.predictions[known]],
        "levels": None if calibration is None else calibration[0],
        "coverages": None if calibration is None else calibration[1],
    }

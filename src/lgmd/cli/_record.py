"""``settings.json``: everything that it takes to get the same results again, and what came out."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgmd.cli._fitting import HonestScores
from lgmd.cli._model import ModelSettings
from lgmd.cli._output import naming
from lgmd.cli._state import current

if TYPE_CHECKING:
    from lgmd.estimators.factorization import Factorization
    from lgmd.tables import Table

__all__ = ["describe_fit", "describe_table", "software", "write_json"]


def describe_fit(model: Factorization, scores: HonestScores | None) -> dict[str, Any]:
    """What came out, in numbers."""
    final = model.history_.records[-1] if len(model.history_) else None
    return {
        "status": model.status_,
        "iterations": model.n_iter_,
        "seconds": None if final is None else final.seconds,
        "objective": None if final is None else final.objective,
        "rank": model.rank_,
        "noise_std": model.noise_std_,
        "intercept": model.intercept_,
        "sample_edges": None if final is None else final.sample_edges,
        "feature_edges": None if final is None else final.feature_edges,
        "held_out": None if scores is None else scores.values(),
    }


def describe_table(table: Table, path: Path) -> dict[str, Any]:
    """Which table it was."""
    n, p = table.shape
    return {
        "path": str(path),
        "sha256": _digest(path),
        "rows": n,
        "columns": p,
        "observed": table.n_observed,
    }


def software(settings: ModelSettings, model: Factorization, reading: dict[str, Any]) -> dict[str, Any]:
    """The model, how its table was read, and what computed it."""
    from lgmd.linalg.threads import available_threads
    from lgmd.report.reproduction import versions

    return {
        "model": settings.model,
        "parameters": settings.complete(model),
        "reading": reading,
        "command": ["lgmd", *current().arguments],
        "versions": versions(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": available_threads(),
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write an object for people and programs; what is not a number is null, as JSON has no word for it."""
    with naming(path):
        path.write_text(json.dumps(_plain(content), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # it has been read, and is gone since
        return None

"""Models in files, of whatever class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lgmd import estimators
from lgmd.exceptions import ModelFileError

__all__ = ["load_model", "stored_scores"]


def load_model(path: Path) -> Any:
    """
    The model of a file, or of a folder that ``lgmd fit`` wrote.

    Raises
    ------
    ModelFileError
        If there is none.
    """
    file = path / "model.lgmd" if path.is_dir() else path
    if not file.is_file():
        what = f"The folder {path} has no model.lgmd" if path.is_dir() else f"There is no file {path}"
        raise ModelFileError(f"{what}. Name a model that lgmd fit or save() wrote.")
    return getattr(estimators, _class_name(file)).load(file)


def _class_name(file: Path) -> str:
    """What the header of the file says; where it cannot be read, loading tells why."""
    try:
        with file.open("rb") as opened:
            archive = np.load(opened, allow_pickle=False)
            name = json.loads(archive["header"].tobytes().decode())["estimator"]
    except Exception:  # damage shows in many ways
        return "LGMD"
    return str(name) if name in estimators.__all__ else "LGMD"


def stored_scores(path: Path) -> Any:
    """Held-out predictions that ``lgmd fit`` left in its folder, or None."""
    from lgmd.report import HeldOutScores

    file = path / "held_out.csv"
    if not path.is_dir() or not file.is_file():
        return None
    import pandas as pd

    try:
        found = pd.read_csv(file)
        bars = found["std"].to_numpy(float) if "std" in found else None
        return HeldOutScores(found["value"].to_numpy(float), found["prediction"].to_numpy(float), bars)
    except (ValueError, KeyError) as error:
        raise ModelFileError(
            f"{file} does not hold held-out predictions ({error}). Remove it, or fit again."
        ) from error

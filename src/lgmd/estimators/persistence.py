"""Models as files: arrays and a JSON header in one ``.npz``, no pickle."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from lgmd._archive import ArchiveError, add_matrix, read_archive, take_matrix, write_archive
from lgmd._typing import Array
from lgmd.exceptions import InvalidParameterError, ModelFileError
from lgmd.graphs import LEARNERS, GraphLearner
from lgmd.solver import History

__all__ = ["load_model", "save_model"]

_FORMAT = "lgmd-model"
_VERSION = 1

Model = TypeVar("Model")


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write parameters and fitted attributes."""
    arrays: dict[str, Array] = {}
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "lgmd": version("lgmd"),
        "estimator": type(model).__name__,
        "parameters": {
            name: _encode(value, f"parameter.{name}", arrays) for name, value in model.get_params(deep=False).items()
        },
        "fitted": {
            name: _encode(value, name, arrays)
            for name, value in vars(model).items()
            if name.endswith("_") and not name.startswith("_")
        },
    }
    write_archive(path, header, arrays)


def load_model(cls: type[Model], path: str | os.PathLike[str]) -> Model:
    """Read what :func:`save_model` wrote for an estimator of this class."""
    try:
        header, arrays = read_archive(path)
        if header.get("format") != _FORMAT:
            raise ArchiveError("it was not written by save()")
        if header["version"] > _VERSION:
            raise ArchiveError(f"it was written by a newer version (lgmd {header['lgmd']}); upgrade lgmd")
        if header["estimator"] != cls.__name__:
            raise ArchiveError(f"it holds a {header['estimator']}; use {header['estimator']}.load")
        parameters = {name: _decode(value, arrays) for name, value in header["parameters"].items()}
        model = cls(**parameters)
        for name, value in header["fitted"].items():
            setattr(model, name, _decode(value, arrays))
    except (ArchiveError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be loaded as {cls.__name__}: {error}.") from error
    return model


def _encode(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """A JSON value; arrays go beside it under ``name``."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if scipy.sparse.issparse(value):
        add_matrix(arrays, name, value)
        return {"type": "matrix", "name": name}
    if isinstance(value, GraphLearner):
        parameters = {key: _encode(item, f"{name}.{key}", arrays) for key, item in value.parameters().items()}
        return {"type": "learner", "learner": type(value).__name__, "parameters": parameters}
    if isinstance(value, History):
        return {"type": "history", "records": value.to_json()}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        # The state of a generator has moved on since; what it drew is in the factors.
        return None
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        array = np.asarray(value)
        arrays[name] = array.astype(str) if array.dtype == object else array
        return {"type": "array", "name": name, "object": array.dtype == object}
    raise InvalidParameterError(
        f"{name} is a {type(value).__name__}, which cannot be written to a file. Set it to a plain value before saving."
    )


def _decode(value: Any, arrays: dict[str, Array]) -> Any:
    """The inverse of :func:`_encode`."""
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "matrix":
        return take_matrix(arrays, value["name"])
    if kind == "array":
        array = arrays[value["name"]]
        return array.astype(object) if value["object"] else array
    if kind == "history":
        return History.from_json(value["records"])
    if kind == "learner":
        learners = {learner.__name__: learner for learner in LEARNERS.values()}
        parameters = {key: _decode(item, arrays) for key, item in value["parameters"].items()}
        return learners[value["learner"]](**parameters)
    raise ArchiveError(f"it holds a value of unknown type {kind!r}")

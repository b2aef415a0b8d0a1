"""Models as files: arrays and a JSON header in one ``.npz``, no pickle."""

from __future__ import annotations

import math
import os
from importlib import import_module
from importlib.metadata import version
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lgmd._archive import ArchiveError, add_matrix, read_archive, take_matrix, write_archive
from lgmd._typing import Array
from lgmd.exceptions import InvalidParameterError, ModelFileError
from lgmd.factors import TablePosterior
from lgmd.factors.storage import pack_table, unpack_table
from lgmd.graphs import LEARNERS, GraphLearner
from lgmd.solver import History

__all__ = ["SavedAsFile", "refuse_mismatch", "refuse_missing"]

_FORMAT = "lgmd-model"
_VERSION = 1
_MAGIC = b"PK\x03\x04"


class SavedAsFile:
    """Mixin of estimators that can be written to a file and read back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: arrays and JSON, no pickle."""
        check_is_fitted(self)
        arrays: dict[str, Array] = {}
        header = {"format": _FORMAT, "version": _VERSION, "lgmd": version("lgmd")}
        header |= _encode_estimator(self, "", arrays)
        try:
            write_archive(path, header, arrays)
        except OSError as error:
            if error.filename is None:  # as of a disk that is full
                error.filename = os.fspath(path)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that :meth:`save` wrote."""
        _refuse_other_files(path, cls.__name__)
        try:
            header, arrays = read_archive(path)
            if header.get("format") != _FORMAT:
                raise ArchiveError("it was not written by save()")
            if header["version"] > _VERSION:
                raise ArchiveError(f"it was written by a newer version (lgmd {header['lgmd']}); upgrade lgmd")
            if not header["fitted"]:
                raise ArchiveError("it holds no fitted model")
            if header["estimator"] != cls.__name__:
                raise ArchiveError(f"it holds a {header['estimator']}; use {header['estimator']}.load")
            model: Self = _decode_estimator(cls, header, arrays)
        except (ArchiveError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ModelFileError(f"{os.fspath(path)} cannot be loaded as {cls.__name__}: {error}.") from error
        return model

    def _check_loaded(self) -> None:
        """Raise ``ArchiveError`` where what was read does not fit together."""


def _refuse_other_files(path: str | os.PathLike[str], name: str) -> None:
    """Raise where a file is no archive at all, such as a table."""
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            return
    raise ModelFileError(
        f"{os.fspath(path)} is no model of lgmd, so it cannot be loaded as {name}. Pass a file that save() wrote, or "
        "the model.lgmd of lgmd fit."
    )


def refuse_missing(model: Any, names: tuple[str, ...]) -> None:
    """Raise where a fitted attribute is not there."""
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise ArchiveError(f"it has no {missing[0]}")


def refuse_mismatch(shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
    """Raise where an array does not have the shape that the others ask for."""
    for name, (found, expected) in shapes.items():
        if found != expected:
            raise ArchiveError(f"its {name} has shape {found} where the rest asks for {expected}")


def _encode_estimator(model: Any, prefix: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """Class, parameters and fitted attributes."""
    fitted = {name: value for name, value in vars(model).items() if _is_fitted_name(name)}
    return {
        "estimator": type(model).__name__,
        "parameters": {
            name: _encode(value, f"{prefix}parameter.{name}", arrays)
            for name, value in model.get_params(deep=False).items()
        },
        "fitted": {name: _encode(value, f"{prefix}{name}", arrays) for name, value in fitted.items()},
    }


def _decode_estimator(cls: type[Any], header: dict[str, Any], arrays: dict[str, Array]) -> Any:
    """The inverse of :func:`_encode_estimator`."""
    model = cls(**{name: _decode(value, arrays) for name, value in header["parameters"].items()})
    for name, value in header["fitted"].items():
        if not _is_fitted_name(name):
            raise ArchiveError(f"it sets {name!r}, which is no fitted attribute")
        setattr(model, name, _decode(value, arrays))
    if header["fitted"]:
        model._check_loaded()
    return model


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _encode(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """A JSON value; arrays go beside it under ``name``."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "number", "value": str(float(value))}
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
    if isinstance(value, TablePosterior):
        return {"type": "posterior", "name": name, **pack_table(value, name, arrays)}
    if isinstance(value, SavedAsFile) and isinstance(value, BaseEstimator):
        return {"type": "estimator", **_encode_estimator(value, f"{name}.", arrays)}
    if isinstance(value, np.random.RandomState):
        # The state of a generator has moved on since; what it drew is in the factors.
        return None
    if isinstance(value, np.ndarray | list | tuple) or hasattr(value, "__array__"):
        array = np.asarray(value)
        arrays[name] = array.astype(str) if array.dtype == object else array
        return {"type": "array", "name": name, "object": array.dtype == object}
    if callable(value) and name.endswith(".candidates"):
        raise InvalidParameterError(
            f"{name.replace('parameter.', '')} is a function, which cannot be written to a file. Pass the adjacency "
            "that it makes, candidates=function(n) with n the number of nodes, and fit again."
        )
    raise InvalidParameterError(
        f"{name} is a {type(value).__name__}, which cannot be written to a file. Set it to a plain value before saving."
    )


def _decode(value: Any, arrays: dict[str, Array]) -> Any:
    """The inverse of :func:`_encode`."""
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "number":
        return float(value["value"])
    if kind == "matrix":
        return take_matrix(arrays, value["name"])
    if kind == "array":
        array = arrays[value["name"]]
        return array.astype(object) if value["object"] else array
    if kind == "history":
        return History.from_json(value["records"])
    if kind == "posterior":
        return unpack_table(value, value["name"], arrays)
    if kind == "learner":
        learners = {learner.__name__: learner for learner in LEARNERS.values()}
        parameters = {key: _decode(item, arrays) for key, item in value["parameters"].items()}
        return learners[value["learner"]](**parameters)
    if kind == "estimator":
        estimators = import_module("lgmd.estimators")
        if value["estimator"] not in estimators.__all__:
            raise ArchiveError(f"it holds an unknown estimator {value['estimator']!r}")
        return _decode_estimator(getattr(estimators, value["estimator"]), value, arrays)
    raise ArchiveError(f"it holds a value of unknown type {kind!r}")

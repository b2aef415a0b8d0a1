"""The trials of a search, in memory or in an SQLite file that a later call goes on with."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import scipy.sparse

from lgmd.exceptions import CheckpointError
from lgmd.observed import Observed
from lgmd.tuning.spaces import Space

__all__ = ["describe_search", "open_study", "quiet_optuna"]

_NAME = "lgmd"
_ATTRIBUTE = "lgmd_search"


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna from writing to the terminal, and from calling its own features experimental."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def describe_search(
    data: Observed, estimator: Any, space: Space, held_out: float, n_splits: int, seed: int | None
) -> dict[str, Any]:
    """What a search is about, each part as a short text: trials are only comparable where all of them agree."""
    table = hashlib.sha256()
    for part in data.digest_parts():
        table.update(np.ascontiguousarray(part).data)
    return {
        "table": table.hexdigest()[:32],
        "estimator": _digest(estimator),
        "space": _digest(space),
        "held_out": f"{held_out!r}, {n_splits} splits",
        "random_state": seed,
    }


def open_study(
    storage: str | os.PathLike[str] | None, name: str | None, description: dict[str, Any]
) -> tuple[optuna.Study, int]:
    """The study of a search, new or gone on with, and its seed.

    A search without a seed of its own goes on with the stored one.
    """
    try:
        study = optuna.create_study(
            storage=None if storage is None else _backend(storage),
            study_name=name or _NAME,
            direction="minimize",
            load_if_exists=True,
        )
    except CheckpointError:
        raise
    except Exception as error:  # whatever the database says, without the statement it was given
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0].rstrip(".")
        raise CheckpointError(
            f"{storage} cannot be used to keep trials: {type(error).__name__}: {reason}. Pass the path of a file that "
            "an earlier search wrote, or of one that does not exist yet."
        ) from error
    stored = study.user_attrs.get(_ATTRIBUTE)
    if stored is None:
        if study.get_trials(deepcopy=False):
            raise CheckpointError(
                f"The study {study.study_name!r} in {storage} was not written by lgmd. Pass another study_name "
                "or storage."
            )
        if description["random_state"] is None:
            description = {**description, "random_state": int(np.random.default_rng().integers(2**32))}
        study.set_user_attr(_ATTRIBUTE, description)
        return study, int(description["random_state"])
    if description["random_state"] is None:
        description = {**description, "random_state": stored["random_state"]}
    other = [part for part, value in description.items() if stored.get(part) != value]
    if other:
        raise CheckpointError(
            f"The study {study.study_name!r} in {storage} was begun with another {' and another '.join(other)}, so its "
            "trials do not compare with new ones. Pass what it was begun with to go on, or another study_name or "
            "storage to start anew."
        )
    return study, int(stored["random_state"])


def _backend(storage: str | os.PathLike[str]) -> optuna.storages.BaseStorage:
    from sqlalchemy.pool import NullPool

    if isinstance(storage, str) and "://" in storage:
        return optuna.storages.RDBStorage(storage)
    path = Path(storage).expanduser()
    if not path.parent.is_dir():
        raise CheckpointError(f"{path} cannot be written: the folder {path.parent} does not exist. Make it first.")
    if path.is_dir():
        raise CheckpointError(f"storage must be the path of a file, but {path} is a folder.")
    # No connection stays open between two trials, so that the file can be copied, moved or deleted at any time.
    return optuna.storages.RDBStorage(f"sqlite:///{path.resolve()}", engine_kwargs={"poolclass": NullPool})


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:32]


def _feed(digest: Any, value: Any) -> None:
    """Feed everything that determines a value, and nothing that changes from one process to the next."""
    digest.update(f"<{type(value).__qualname__}".encode())
    if scipy.sparse.issparse(value):
        coordinates = value.tocsr().sorted_indices()
        for part in (np.asarray(value.shape), coordinates.indptr, coordinates.indices, coordinates.data):
            _feed(digest, np.asarray(part))
    elif isinstance(value, dict):
        for key, item in value.items():
            _feed(digest, key)
            _feed(digest, item)
    elif isinstance(value, list | tuple):
        for item in value:
            _feed(digest, item)
    elif isinstance(value, np.random.RandomState):
        _feed(digest, value.get_state(legacy=True))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _feed(digest, getattr(value, field.name))
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _feed(digest, value.get_params(deep=False))
    elif isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    elif callable(value):
        digest.update(f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}".encode())
    else:
        digest.update(repr(value).encode())
    digest.update(b">")

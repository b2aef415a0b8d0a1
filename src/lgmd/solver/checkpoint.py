"""Stopping today and going on tomorrow."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._archive import ArchiveError, add_matrix, read_archive, take_matrix, write_archive
from lgmd.exceptions import CheckpointError
from lgmd.graphs import GraphEstimate
from lgmd.solver.history import History
from lgmd.solver.problem import Inference, StateT

__all__ = ["Checkpoint", "fingerprint"]

_GRAPH_VALUES = ("logdet", "objective", "converged", "penalty", "strength", "proven")
_FORMAT = "lgmd-checkpoint"
_VERSION = 7


class Checkpoint:
    """A file that holds where a run stands.

    Parameters
    ----------
    path : path-like
    every : float, default=30.0
        Seconds between two writes; the end of a run is always written.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 30.0) -> None:
        self.path = Path(path)
        self._every = every
        self._written = time.monotonic()
        self._fingerprint: str | None = None

    def load(self, problem: Inference[StateT]) -> tuple[StateT, History] | None:
        """The stored run, or None where there is no file yet."""
        identity = self._identify(problem)
        if not self.path.exists():
            if not self.path.parent.is_dir():
                raise CheckpointError(
                    f"There is no folder {self.path.parent} for the checkpoint {self.path.name}. Create it first."
                )
            return None
        if self.path.is_dir():
            raise CheckpointError(f"The checkpoint {self.path} is a folder. Pass the path of a file.")
        try:
            header, arrays = read_archive(self.path)
        except ArchiveError as error:
            raise CheckpointError(
                f"{self.path} is no checkpoint, or a damaged one: {error}. Pass another path, or move the file away if "
                "nobody needs it."
            ) from error
        if header.get("format") != _FORMAT:
            raise CheckpointError(f"{self.path} is another file of lgmd, not a checkpoint. Pass another path.")
        try:
            if header.get("version") != _VERSION:
                raise ArchiveError("it was written by another version of lgmd")
            if header["fingerprint"] != identity:
                raise CheckpointError(
                    f"The checkpoint {self.path} was written for other data or other settings. Pass those again to "
                    "go on with it, or another path to start anew."
                )
            sample_graph, feature_graph = (
                GraphEstimate(take_matrix(arrays, side), **header[side]) for side in ("sample_graph", "feature_graph")
            )
            state = problem.unpack(header["state"], arrays, sample_graph, feature_graph)
            return state, History.from_json(header["history"])
        except (ArchiveError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"The checkpoint {self.path} cannot be used: {error}. Delete it to start anew."
            ) from error

    def save(self, problem: Inference[StateT], state: StateT, history: History, *, force: bool = False) -> None:
        """Write, unless the last time was a moment ago."""
        if not force and time.monotonic() - self._written < self._every:
            return
        values, arrays = problem.pack(state)
        header: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "fingerprint": self._identify(problem),
            "state": values,
            "history": history.to_json(),
        }
        for side, graph in (("sample_graph", state.sample_graph), ("feature_graph", state.feature_graph)):
            header[side] = {name: getattr(graph, name) for name in _GRAPH_VALUES}
            add_matrix(arrays, side, graph.precision)
        write_archive(self.path, header, arrays)
        self._written = time.monotonic()

    def _identify(self, problem: Inference[StateT]) -> str:
        if self._fingerprint is None:
            self._fingerprint = fingerprint(problem)
        return self._fingerprint


def fingerprint(problem: Any) -> str:
    """A digest of the table and of every setting that shapes the path of the run."""
    digest = hashlib.sha256(type(problem).__name__.encode())
    for part in problem.data.digest_parts():
        digest.update(np.ascontiguousarray(part).data)
    for item in fields(problem):
        if item.name != "data":
            digest.update(f"{item.name}=".encode())
            _feed(digest, getattr(problem, item.name))
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if scipy.sparse.issparse(value):
        value = value.tocsr()
        for part in (value.indptr, value.indices, value.data):
            _feed(digest, part)
    elif isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    elif is_dataclass(value):
        digest.update(type(value).__name__.encode())
        for item in fields(value):
            _feed(digest, getattr(value, item.name))
    elif callable(value):
        # Its name changes from one run to the next, so that no checkpoint would ever be found again.
        raise CheckpointError(
            "A run with a function among its settings cannot be taken up again from a checkpoint. Pass candidates as "
            "the adjacency that the function makes, or fit without a checkpoint."
        )
    else:
        digest.update(repr(value).encode())

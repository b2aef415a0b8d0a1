"""What is kept of a run that did not come to its end: a folder beside the results, from which ``--resume`` goes on."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from lgmd.cli._errors import Interrupted
from lgmd.cli._state import current
from lgmd.exceptions import CheckpointError

__all__ = ["Checkpoints"]

# Seconds of work from which on it is kept when its results cannot be written.
_WORTH_KEEPING = 10.0


@dataclass
class Checkpoints:
    """
    The folder with the state of a run; as a context it is removed at the end of a run that came to its end.

    Attributes
    ----------
    output : Path
        The results that the run is for.
    resume, force : bool
        Whether to go on with what is there, and, where not, whether to throw it away.
    finished : Path or None
        A file among the results from which ``--resume`` can go on as well, once the run has come to its end.
    seconds : float
        Work that would be lost; whoever does it adds to it.
    """

    output: Path
    resume: bool = False
    force: bool = False
    finished: Path | None = None
    seconds: float = 0.0
    _was_there: bool = field(default=False, init=False)

    @property
    def folder(self) -> Path:
        """Where the state is kept."""
        return self.output.with_name(f"{self.output.name}.checkpoint")

    def check(self) -> None:
        """See whether there is a state to go on with, and whether that was meant."""
        self._was_there = self.folder.exists()
        if self.resume and not self._was_there and not (self.finished and self.finished.is_file()):
            raise CheckpointError(
                f"There is no checkpoint {self.folder} to go on from. Leave --resume out to start from the beginning."
            )
        if self._was_there and not self.resume and not self.force:
            raise CheckpointError(
                f"An earlier run for {self.output} was interrupted and left {self.folder}. Add --resume to go on with "
                "it, or --force without --resume to start from the beginning."
            )

    def path(self, name: str) -> Path:
        """Where a part of the work keeps its state."""
        self.folder.mkdir(exist_ok=True)
        return self.folder / name

    def interrupted(self, what: str) -> Interrupted:
        """The end of a run that the user stopped."""
        if not self._has_state():
            return Interrupted(f"Interrupted {what}. Nothing was written.")
        words = [word for word in current().arguments if word != "--resume"]
        command = shlex.join(["lgmd", *words, "--resume"])
        # Whoever gave --force for old results may fear that it throws the state away.
        safe = " (with --resume, --force replaces old results only, once the new ones are whole)" if self.force else ""
        return Interrupted(f"Interrupted {what}. The state is kept in {self.folder}{safe}; go on with: {command}")

    def __enter__(self) -> Self:
        self.check()
        if self._was_there and not self.resume:
            shutil.rmtree(self.folder)
            self._was_there = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif isinstance(error, Interrupted):
            self._clear(keep=True)
        elif isinstance(error, KeyboardInterrupt):
            self._clear(keep=True)
            raise self.interrupted("before the results were written") from None
        elif self._clear(keep=self._was_there or self.seconds > _WORTH_KEEPING) and self.seconds:
            error.add_note(f"The fit is kept in {self.folder}: run the same command with --resume to go on from it.")

    def _has_state(self) -> bool:
        return self.folder.is_dir() and any(self.folder.iterdir())

    def _clear(self, keep: bool) -> bool:
        """Remove a folder that holds nothing worth keeping; whether it is still there."""
        if not (keep and self._has_state()):
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.folder.exists()

"""What ``lgmd doctor`` looks at, one function a subject."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

__all__ = ["Finding", "check_up"]

_ENOUGH_MEMORY = 500 * 2**20
_OPTIONAL = {"anndata": ".h5ad files", "networkx": "graphs for networkx"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    text: str
    is_wrong: bool = False


def check_up() -> list[Finding]:
    """Look at everything; a look that fails is a finding too."""
    looks: dict[str, Callable[[str], Finding]] = {
        "system": _system,
        "packages": _packages,
        "optional packages": _optional,
        "threads": _threads,
        "compiled kernels": _kernels,
        "memory": _memory,
        "temporary folder": _temporary,
        "data sets": _data,
        "a small fit": _fit,
    }
    findings = []
    for subject, look in looks.items():
        try:
            findings.append(look(subject))
        except Exception as error:  # whatever is broken is what the doctor is for
            findings.append(Finding(subject, f"failed with {type(error).__name__}: {error}", True))
    return findings


def _system(subject: str) -> Finding:
    text = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding(subject, text, sys.version_info < (3, 11))


def _packages(subject: str) -> Finding:
    needed = [line for line in requires("lgmd") or [] if "extra ==" not in line]
    found, wrong = [f"lgmd {version('lgmd')}"], []
    for line in needed:
        name = line.split(">")[0].split("=")[0].split("<")[0].split(";")[0].strip()
        least = line.partition(">=")[2].split(",")[0].split(";")[0].strip()
        try:
            have = version(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        found.append(f"{name} {have}")
        if least and _numbers(have) < _numbers(least):
            wrong.append(f"{name} {have} is older than {least}")
    if wrong:
        return Finding(subject, f"{'; '.join(wrong)}. Run: pip install --upgrade lgmd", True)
    return Finding(subject, ", ".join(found))


def _numbers(text: str) -> tuple[int, ...]:
    parts = []
    for part in text.split("."):
        digits = "".join(sign for sign in part if sign.isdecimal())
        if not digits or not part[0].isdecimal():
            break
        parts.append(int(digits))
    return tuple(parts)


def _optional(subject: str) -> Finding:
    parts = []
    for name, use in _OPTIONAL.items():
        try:
            parts.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            parts.append(f"{name} is not installed ({use} need it)")
    return Finding(subject, ", ".join(parts))


def _threads(subject: str) -> Finding:
    import numpy as np  # noqa: F401 - its BLAS is among the pools
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from lgmd.linalg.threads import available_threads

    pools = sorted({f"{pool.get('internal_api')} {pool.get('num_threads')}" for pool in threadpool_info()})
    return Finding(subject, f"{available_threads()} for kernels; pools: {', '.join(pools) or 'none'}")


def _kernels(subject: str) -> Finding:
    import numba

    from lgmd.linalg import row_systems

    own = Path(row_systems.__file__).parent / "__pycache__"
    chosen = getattr(numba.config, "CACHE_DIR", "")
    folder = Path(chosen) if chosen else own
    place = folder if folder.exists() else folder.parent
    if os.access(place, os.W_OK):
        return Finding(subject, f"kept in {folder}")
    return Finding(subject, f"{folder} may not be written to: numba keeps them elsewhere, or compiles at every start")


def _memory(subject: str) -> Finding:
    from lgmd.estimators._memory import available_bytes

    free = available_bytes()
    if free is None:
        return Finding(subject, "the system does not say how much is free")
    text = f"{free / 2**30:.1f} GiB free: tables of up to about {_entries(free)} entries"
    return Finding(subject, text, free < _ENOUGH_MEMORY)


def _entries(free: int) -> str:
    # Values and indices by row and by column, the table itself, and its reconstruction with error bars.
    millions = free / 60 / 1e6
    return f"{millions:,.0f} million"


def _temporary(subject: str) -> Finding:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"lgmd")
        return Finding(subject, str(Path(file.name).parent))


def _data(subject: str) -> Finding:
    folder = os.environ.get("LGMD_DATA")
    if not folder:
        return Finding(subject, "LGMD_DATA is not set; only the paper's experiments with real data need it")
    root = Path(folder)
    if not root.is_dir():
        return Finding(subject, f"LGMD_DATA names {folder}, which is no folder", True)
    sets = sorted(str(path.relative_to(root).with_suffix("")) for path in root.glob("*/*.npz"))
    if not sets:
        return Finding(subject, f"LGMD_DATA names {folder}, which has no data sets", True)
    return Finding(subject, f"{len(sets)} in LGMD_DATA: {', '.join(sets)}")


def _fit(subject: str) -> Finding:
    import numpy as np

    from lgmd.estimators import LGMD

    rng = np.random.default_rng(0)
    truth = rng.standard_normal((24, 2)) @ rng.standard_normal((2, 16))
    hidden = rng.random(truth.shape) < 0.2
    table = np.where(hidden, np.nan, truth + 0.05 * rng.standard_normal(truth.shape))
    filled, bars = LGMD(4, random_state=0).fit(table).reconstruct(return_std=True)
    error = float(np.sqrt(np.mean((filled - truth)[hidden] ** 2)))
    inside = float(np.mean(np.abs(filled - truth)[hidden] < 3 * bars[hidden]))
    right = bool(error < 0.2 and inside > 0.9 and np.isfinite(filled).all())
    text = f"hidden entries are filled in to {error:.3f}, with noise of 0.050; {inside:.0%} within three error bars"
    return Finding(subject, text if right else f"{text}: the numbers are wrong", not right)

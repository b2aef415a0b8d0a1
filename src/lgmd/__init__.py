"""Matrix decomposition that learns the graphs behind rows and columns.

From a table that is noisy and full of gaps, one ``fit`` gives low-rank factors, the denoised and completed table, and
sparse graphs over rows and over columns. See :class:`LGMD`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lgmd import anndata, datasets, graphs, metrics, plot, report, tables, tuning
    from lgmd.estimators import DGRMD, GPCA, LGMD, PMF, LGMDImputer, LGMDPlus

__all__ = [
    "DGRMD",
    "GPCA",
    "LGMD",
    "PMF",
    "LGMDImputer",
    "LGMDPlus",
    "anndata",
    "datasets",
    "graphs",
    "metrics",
    "plot",
    "report",
    "tables",
    "tuning",
]
__version__ = "0.1.0"

_MODULES = ("anndata", "datasets", "graphs", "metrics", "plot", "report", "tables", "tuning")


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for: scikit-learn and numba take most of a second."""
    if name not in __all__:
        raise AttributeError(f"module 'lgmd' has no attribute {name!r}")
    if name in _MODULES:
        return import_module(f"lgmd.{name}")
    value = getattr(import_module("lgmd.estimators"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

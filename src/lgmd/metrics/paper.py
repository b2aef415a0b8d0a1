"""The paper's eight measures, E1 to E8, by label: which function computes each, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lgmd.metrics.edges import edge_recovery
from lgmd.metrics.errors import rmse
from lgmd.metrics.subspaces import column_correlations, subspace_angle

__all__ = ["PAPER_MEASURES", "PaperMeasure"]


@dataclass(frozen=True)
class PaperMeasure:
    """
    A measure of the paper: calling it calls its function.

    Attributes
    ----------
    label : str
        The paper's name, "E1" to "E8".
    function : callable
        What computes it; the truth comes first, the estimate second.
    meaning : str
        One line for a table or a caption.
    """

    label: str
    function: Callable[..., Any]
    meaning: str

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Return ``function(*arguments, **settings)``."""
        return self.function(*arguments, **settings)


# The paper writes E1 and E2 as norms and reports root mean squared errors; it counts edges in E7 and E8, where a share
# can be compared between graphs of different size.
_MEASURES = (
    PaperMeasure("E1", rmse, "completion: root mean squared error over the entries that were held out"),
    PaperMeasure("E2", rmse, "denoising: root mean squared error against the noise-free table"),
    PaperMeasure("E3", column_correlations, "correlations between all pairs of columns of the row factors X"),
    PaperMeasure("E4", column_correlations, "correlations between all pairs of columns of the column factors W"),
    PaperMeasure("E5", subspace_angle, "largest angle between the true and the found column space of X, in radians"),
    PaperMeasure("E6", subspace_angle, "largest angle between the true and the found column space of W, in radians"),
    PaperMeasure("E7", edge_recovery, "share of the strongest true edges between rows that are found"),
    PaperMeasure("E8", edge_recovery, "share of the strongest true edges between columns that are found"),
)

PAPER_MEASURES: Mapping[str, PaperMeasure] = MappingProxyType({measure.label: measure for measure in _MEASURES})

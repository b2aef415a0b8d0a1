r"""Ranges that parameters are searched in where the user gives none.

Penalties are tied, ``sample_penalty = feature_penalty``. This loses nothing: the fit and both unit-scale graphs are the
same for X, W as for cX, W/c, and with

.. math:: \min_c \lambda_1 c^2 \, \mathrm{tr}\, X^T A X + \lambda_2 c^{-2} \, \mathrm{tr}\, W^T B W
    = 2 \sqrt{\lambda_1 \lambda_2 \; \mathrm{tr}\, X^T A X \; \mathrm{tr}\, W^T B W}

only the product of the two penalties matters. Without graphs this is the nuclear norm times :math:`\sqrt{\lambda_1
\lambda_2}`, so the largest penalty that leaves anything of a table at unit scale is about its largest singular value.
"""

from __future__ import annotations

import math
from typing import Any

from lgmd.graphs import (
    EvidenceGraph,
    GraphicalLassoGraph,
    GraphLearner,
    KNNGraph,
    LaplacianGraph,
    ThresholdGraph,
    as_learner,
)
from lgmd.observed import Observed, as_observed
from lgmd.tuning.parameters import present_value, spelled_out, targets

__all__ = ["default_range", "default_space"]

_SMALLEST_PENALTY = 1e-2
_MOST_NEIGHBORS = 30


def default_space(estimator: Any, table: Any) -> dict[str, Any]:
    """The parameters that are tuned where nothing is said, each with its range, as ``space`` takes them.

    With ``inference="map"`` the penalty of both sides and the sparsity of the graphs that have one. Variational
    inference learns all penalties; what is left are the graphs' sparsity and two choices, ``prior`` and ``noise``, what
    the estimator has now among them. The rank is not searched: the penalty, or the posterior, drops columns. Add it by
    name.
    """
    data = as_observed(table, allow_empty_rows=True, allow_empty_columns=True)
    estimator = spelled_out(estimator)
    known = estimator.get_params()
    prefix = "estimator__" if "estimator__inference" in known else ""
    names: list[str] = []
    if f"{prefix}sample_penalty" in known:
        is_map = known.get(f"{prefix}inference", "map") == "map"
        names = [f"{prefix}penalty"] if is_map else [f"{prefix}prior", f"{prefix}noise"]
    for side in ("sample_graph", "feature_graph"):
        graph = f"{prefix}{side}"
        if graph in known:
            sparsity = _sparsity(as_learner(known[graph], graph))
            names += [f"{graph}__{sparsity}"] if sparsity else []
    if f"{prefix}n_neighbors" in known:
        names.append(f"{prefix}n_neighbors")
    ranges = {name: default_range(name, estimator, data) for name in names}
    return {name: given for name, given in ranges.items() if given is not None}


def _sparsity(learner: GraphLearner) -> str | None:
    """The parameter that says how many edges a learner finds."""
    if isinstance(learner, ThresholdGraph | GraphicalLassoGraph):
        return "eta" if learner.density is None else "density"
    if isinstance(learner, LaplacianGraph):
        return "rho"
    if isinstance(learner, KNNGraph):
        return "n_neighbors"
    return "fdr" if isinstance(learner, EvidenceGraph) else None


def default_range(name: str, estimator: Any, data: Observed) -> Any:
    """The range of one parameter, as a user would write it; None where none is known."""
    target = targets(estimator, name)[0]
    parent, _, last = target.rpartition("__")
    learner = _learner_of(estimator, parent)
    n, p = data.shape
    if learner is not None:
        return _learner_range(learner, last, n if "sample_graph" in parent else p)
    if last in ("sample_penalty", "feature_penalty"):
        return _SMALLEST_PENALTY, largest_penalty(data), "log"
    if last == "intercept_penalty":
        return 1e-2, 1e2, "log"
    if last == "n_components":
        given = int(present_value(estimator, name))
        return 1, max(1, min(given, min(n, p) - 1)), "log"
    if last == "n_neighbors":
        return 1, max(1, min(_MOST_NEIGHBORS, max(n, p) - 1)), "log"
    if last == "ridge":
        return 1e-3, 1e1, "log"
    choices = {"prior": ["columns", "shared", "falling"], "noise": ["homoscedastic", "samples", "features"]}
    return _with_present(choices[last], present_value(estimator, name)) if last in choices else None


def _with_present(choices: list[str], present: Any) -> list[Any]:
    """Choices that contain the present one, so that the first trial can be the estimator as it is."""
    return choices if isinstance(present, str) and present in choices else [present, *choices]


def largest_penalty(data: Observed) -> float:
    """Twice the largest singular value of noise at unit variance in the observed places, and at least ten."""
    n, p = data.shape
    return max(10.0, 2 * (math.sqrt(data.n_observed / n) + math.sqrt(data.n_observed / p)))


def _learner_of(estimator: Any, parent: str) -> GraphLearner | None:
    known = estimator.get_params()
    if not parent or not parent.endswith("_graph") or parent not in known:
        return None
    return as_learner(known[parent], parent)


def _learner_range(learner: GraphLearner, field: str, n: int) -> Any:
    if isinstance(learner, GraphicalLassoGraph) and learner.penalize_diagonal and field == "eta":
        return 1e-3, 1.0, "log"
    ranges: dict[str, Any] = {
        # Correlations of unrelated rows over twenty columns are 0.2 in size.
        "eta": (0.2, 0.95) if isinstance(learner, ThresholdGraph) else (0.3, 0.95),
        "density": (1e-3, 0.3, "log"),
        "rho": (1e-2, 1.0, "log"),
        "fdr": (5e-3, 0.5, "log"),
        "n_neighbors": (1, max(1, min(_MOST_NEIGHBORS, n - 1)), "log"),
        "neighbors": (1, max(1, min(8, n - 1))),
        "ridge": (1e-3, 1e1, "log"),
    }
    return ranges.get(field)

"""The methods that the paper compares, by the names that stand in its tables."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray
from lgmd.estimators import DGRMD, LGMD, PMF, LGMDPlus
from lgmd.estimators.factorization import Factorization
from lgmd.exceptions import ConvergenceWarning
from lgmd.graphs import EvidenceGraph, LaplacianGraph, ThresholdGraph
from lgmd.tuning import TuningResult, tune

__all__ = [
    "DEFAULTS",
    "TUNED",
    "UNORDERED",
    "default_method",
    "fit",
    "penalties",
    "principal_components",
    "search",
    "tuned_method",
]

TUNED = ("PMF", "dGRMD", "LGMD, MAP")
"""Methods by MAP whose penalties are chosen on held-out entries, as the paper does."""

DEFAULTS = ("LGMD", "LGMD+")
"""Methods that run as they come, by variational inference; nothing is tuned."""

UNORDERED = ("LGMD, no order", "LGMD+, no order")
"""The same, but that nobody asks for the order of rows and columns."""

_GRAPHS = ("sample_graph", "feature_graph")


def tuned_method(name: str, n_components: int, **settings: Any) -> Factorization:
    """A method by MAP before its penalties are known."""
    settings = {"inference": "map", **settings}
    match name:
        case "PMF":
            return PMF(n_components, **settings)
        case "dGRMD":
            return DGRMD(n_components, **settings)
        case "LGMD, MAP":
            # The paper's closed form, with the share of edges held fixed.
            return LGMD(n_components, **dict.fromkeys(_GRAPHS, ThresholdGraph()) | settings)
        case "GRMD-real, MAP":
            return LGMD(n_components, **settings)
    raise ValueError(f"no method is called {name!r}")


def default_method(name: str, n_components: int, **settings: Any) -> Factorization:
    """A method as it comes."""
    match name:
        case "LGMD, no order":
            settings = dict.fromkeys(_GRAPHS, EvidenceGraph(order=False)) | settings
            return LGMD(n_components, **settings)
        case "LGMD+, no order":
            settings = dict.fromkeys(_GRAPHS, LaplacianGraph(order=False)) | settings
            return LGMDPlus(n_components, **settings)
        case "LGMD+":
            return LGMDPlus(n_components, **settings)
        case "LGMD" | "GRMD-real":
            return LGMD(n_components, **settings)
    raise ValueError(f"no method is called {name!r}")


def penalties(
    model: Factorization, table: FloatArray | scipy.sparse.coo_array, n_trials: int, seed: int
) -> dict[str, float]:
    """The penalty of both sides that is best on held-out entries of the table itself.

    Factors can be rescaled against each other, so that the product of the two penalties is what matters.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = search(model, table, n_trials, space="penalty", random_state=seed).best_params_["penalty"]
    return {"sample_penalty": found, "feature_penalty": found}


def search(
    model: Factorization, table: FloatArray | scipy.sparse.coo_array, n_trials: int, **options: Any
) -> TuningResult:
    """Tune without a last fit. A search that is interrupted would end with what it has; here the experiment ends."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The search was interrupted", UserWarning)
        try:
            return tune(model, table, n_trials, refit=False, **options)
        except UserWarning:
            raise KeyboardInterrupt from None


def fit(model: Factorization, table: FloatArray | scipy.sparse.coo_array) -> Factorization:
    """Fit; a run that ends at its last iteration is as good as any here, and one that is interrupted ends all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table)
    if model.status_ == "interrupted":
        raise KeyboardInterrupt
    return model


def principal_components(table: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray]:
    """Factors of the truncated singular value decomposition, nothing centred: the paper's PCA."""
    left, singular, right = np.linalg.svd(table, full_matrices=False)
    root = np.sqrt(singular[:n_components])
    return left[:, :n_components] * root, right[:n_components].T * root

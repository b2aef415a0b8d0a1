"""Experiments by name; a module is loaded when its experiment is asked for."""

from __future__ import annotations

from importlib import import_module

from lgmd.exceptions import InvalidParameterError
from lgmd.experiments.base import Experiment

__all__ = ["EXPERIMENTS", "find_experiment"]

EXPERIMENTS = {
    "synthetic": "Known graphs: errors, subspaces, correlations and edges against noise and gaps (Tables 1 and 2)",
    "laplacian": "How noise and gaps change the graph of a table, and what the factors learn of it",
    "temperature": "150 weather stations over 669 days: denoising, completion, structure, running time (Table 3)",
    "netflix": "1000 users and 1000 films: denoising and completion",
    "clustering": "Digits and documents by their factors (Tables 4 and 5)",
    "completion": "Four fixed splits of ratings with given graphs",
}


def find_experiment(name: str) -> type[Experiment]:
    """The class of an experiment."""
    if name not in EXPERIMENTS:
        raise InvalidParameterError(f"No experiment is called {name!r}. There are: {', '.join(EXPERIMENTS)}.")
    module = import_module(f"lgmd.experiments.{name}")
    experiment: type[Experiment] = getattr(module, name.capitalize())
    return experiment

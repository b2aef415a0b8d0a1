"""Each table and figure of the paper, runnable: ``lgmd reproduce NAME``, or :func:`reproduce` from Python."""

from lgmd.experiments.base import Cell, Experiment, Row, Section
from lgmd.experiments.registry import EXPERIMENTS, find_experiment
from lgmd.experiments.runner import Reproduction, reproduce

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Experiment",
    "Reproduction",
    "Row",
    "Section",
    "find_experiment",
    "reproduce",
]

"""Choosing parameters on held-out entries of the table: :func:`tune`.

What is searched is in :mod:`~lgmd.tuning.spaces` and, by default, :mod:`~lgmd.tuning.defaults`; what a trial does in
:mod:`~lgmd.tuning.evaluation`; how trials follow each other in :mod:`~lgmd.tuning.search`.
"""

from lgmd.tuning.defaults import default_space
from lgmd.tuning.parameters import with_parameters
from lgmd.tuning.result import Trial, TuningError, TuningResult
from lgmd.tuning.search import tune
from lgmd.tuning.spaces import Choices, Range

__all__ = ["Choices", "Range", "Trial", "TuningError", "TuningResult", "default_space", "tune", "with_parameters"]

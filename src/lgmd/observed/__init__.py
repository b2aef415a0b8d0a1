"""The data: a table of which some entries are observed.

:func:`as_observed` is the one door. Behind it a table is either :class:`DenseObserved` (complete, one array) or
:class:`SparseObserved` (with gaps, the observed entries in row order and in column order). Both answer the same
questions, and ``.T`` swaps rows and columns at no cost, which is what lets one half-step serve both sides.
"""

from lgmd.observed.base import Observed
from lgmd.observed.convert import as_observed
from lgmd.observed.dense import DenseObserved
from lgmd.observed.held_out import HeldOut, hold_out, random_signs
from lgmd.observed.sparse import SparseObserved

__all__ = ["DenseObserved", "HeldOut", "Observed", "SparseObserved", "as_observed", "hold_out", "random_signs"]

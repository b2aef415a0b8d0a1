"""The factor updates: one half-step, used for the rows and, on the transposed table, for the columns.

``half`` says what a half-step is given, ``sylvester``, ``conjugate_gradient`` and ``paper`` are the ways to take
it, ``selection`` picks one and says why. ``initial`` makes the first factors, ``rotation`` the last.
"""

from lgmd.factors.conjugate_gradient import ConjugateGradientUpdate
from lgmd.factors.half import FactorUpdate, Half, PreparedUpdate
from lgmd.factors.initial import initial_factors, initial_intercepts
from lgmd.factors.intercepts import Intercepts, InterceptTerms
from lgmd.factors.paper import PaperUpdate
from lgmd.factors.rotation import balancing, generalized_components, principal_rotation, translation
from lgmd.factors.selection import UPDATES, UpdateChoice, select_update
from lgmd.factors.sylvester import SylvesterUpdate

__all__ = [
    "UPDATES",
    "ConjugateGradientUpdate",
    "FactorUpdate",
    "Half",
    "InterceptTerms",
    "Intercepts",
    "PaperUpdate",
    "PreparedUpdate",
    "SylvesterUpdate",
    "UpdateChoice",
    "balancing",
    "generalized_components",
    "initial_factors",
    "initial_intercepts",
    "principal_rotation",
    "select_update",
    "translation",
]

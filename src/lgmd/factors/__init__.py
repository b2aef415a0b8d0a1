"""The factor updates: one half-step, used for the rows and, on the transposed table, for the columns.

Maximum a posteriori: ``half`` says what a half-step is given, ``sylvester``, ``conjugate_gradient`` and ``paper`` are
the ways to take it, ``selection`` picks one and says why. Variational: ``posterior`` is what a half-step gives, with
one of the forms in ``covariance``; ``variational`` takes it, ``coupling`` holds what a graph adds, ``noise`` how far
entries lie from the factors, ``prior_laws`` what ties prior variances to each other. ``initial`` and
``variational_start`` make the first factors, ``rotation`` the last.
"""

from lgmd.factors.conjugate_gradient import ConjugateGradientUpdate
from lgmd.factors.covariance import DiagonalCovariances, RowCovariances, SpectralCovariance
from lgmd.factors.half import FactorUpdate, Half, PreparedUpdate
from lgmd.factors.initial import initial_factors, initial_intercepts
from lgmd.factors.intercepts import Intercepts, InterceptTerms
from lgmd.factors.noise import LIKELIHOODS, NOISES, Noise, NoiseModel
from lgmd.factors.paper import PaperUpdate
from lgmd.factors.posterior import SidePosterior, prediction_features
from lgmd.factors.prediction import TablePosterior
from lgmd.factors.prior_laws import FALLING, LAWS, SHARED, PriorLaw
from lgmd.factors.rotation import balancing, generalized_components, principal_rotation, tied_balancing, translation
from lgmd.factors.selection import UPDATES, UpdateChoice, select_update
from lgmd.factors.sylvester import SylvesterUpdate
from lgmd.factors.variational import PosteriorUpdate, VariationalHalf, prepare_posterior
from lgmd.factors.variational_start import VariationalStart, analytic_start, shared_analytic_start, singular_start

__all__ = [
    "FALLING",
    "LAWS",
    "LIKELIHOODS",
    "NOISES",
    "SHARED",
    "UPDATES",
    "ConjugateGradientUpdate",
    "DiagonalCovariances",
    "FactorUpdate",
    "Half",
    "InterceptTerms",
    "Intercepts",
    "Noise",
    "NoiseModel",
    "PaperUpdate",
    "PosteriorUpdate",
    "PreparedUpdate",
    "PriorLaw",
    "RowCovariances",
    "SidePosterior",
    "SpectralCovariance",
    "SylvesterUpdate",
    "TablePosterior",
    "UpdateChoice",
    "VariationalHalf",
    "VariationalStart",
    "analytic_start",
    "balancing",
    "generalized_components",
    "initial_factors",
    "initial_intercepts",
    "prediction_features",
    "prepare_posterior",
    "principal_rotation",
    "select_update",
    "shared_analytic_start",
    "singular_start",
    "tied_balancing",
    "translation",
]

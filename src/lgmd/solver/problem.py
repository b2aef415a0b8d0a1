"""What is minimised: a table, penalties, graph learners; and where the minimisation stands."""

from __future__ import annotations

from dataclasses import dataclass

from lgmd._typing import FloatArray, RandomState
from lgmd.factors import FactorUpdate, Half, Intercepts, InterceptTerms, initial_factors
from lgmd.graphs import GraphEstimate, GraphLearner, Side
from lgmd.observed import Observed

__all__ = ["FEATURES", "SAMPLES", "Problem", "State", "initial_state"]

SAMPLES = Side("sample_graph", "rows")
FEATURES = Side("feature_graph", "columns")


@dataclass(frozen=True)
class Problem:
    """The decomposition to find; see :func:`lgmd.solver.objective.objective_terms` for its objective.

    Attributes
    ----------
    data : Observed
        The table at unit scale.
    n_components : int
    sample_penalty, feature_penalty : float
        Strength of the two graph terms, positive.
    intercepts : InterceptTerms
    intercept_penalty : float
        Ridge on row and column intercepts.
    sample_learner, feature_learner : GraphLearner
    update : FactorUpdate
        How half-steps are taken.
    """

    data: Observed
    n_components: int
    sample_penalty: float
    feature_penalty: float
    intercepts: InterceptTerms
    intercept_penalty: float
    sample_learner: GraphLearner
    feature_learner: GraphLearner
    update: FactorUpdate

    @property
    def learns_graphs(self) -> bool:
        """Whether any graph changes with the factors."""
        return self.sample_learner.learns or self.feature_learner.learns

    def sample_half(self, graph: GraphEstimate) -> Half:
        """The rows' side of the problem."""
        ridge = self.intercept_penalty if self.intercepts.rows else None
        return Half(self.data, self.sample_penalty, graph.precision, ridge)

    def feature_half(self, graph: GraphEstimate) -> Half:
        """The columns' side."""
        ridge = self.intercept_penalty if self.intercepts.columns else None
        return Half(self.data.T, self.feature_penalty, graph.precision, ridge)


@dataclass(frozen=True)
class State:
    """Where the minimisation stands.

    Attributes
    ----------
    X : ndarray of shape (n, k)
    W : ndarray of shape (p, k)
    intercepts : Intercepts
    sample_graph, feature_graph : GraphEstimate
    """

    X: FloatArray
    W: FloatArray
    intercepts: Intercepts
    sample_graph: GraphEstimate
    feature_graph: GraphEstimate


def initial_state(problem: Problem, intercepts: Intercepts, random_state: RandomState) -> State:
    """Truncated singular value decomposition and the graphs that need no factor."""
    sample_graph = problem.sample_learner.start(problem.data, SAMPLES)
    feature_graph = problem.feature_learner.start(problem.data.T, FEATURES)
    X, W = initial_factors(problem.data, intercepts, problem.n_components, random_state)
    return State(X, W, intercepts, sample_graph, feature_graph)

"""What the alternation asks of a way to infer the factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from lgmd._typing import Array, FloatArray, RandomState
from lgmd.factors import Intercepts
from lgmd.graphs import GraphEstimate, GraphLearner, Side
from lgmd.observed import Observed

__all__ = ["FEATURES", "SAMPLES", "Inference", "Iteration", "State"]

SAMPLES = Side("sample_graph", "rows")
FEATURES = Side("feature_graph", "columns")


class State(Protocol):
    """Where a run stands."""

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """Row factors, (n, k)."""
        ...

    @property
    def W(self) -> FloatArray:  # noqa: N802
        """Column factors, (p, k)."""
        ...

    @property
    def sample_graph(self) -> GraphEstimate:
        """The graph over the rows."""
        ...

    @property
    def feature_graph(self) -> GraphEstimate:
        """The graph over the columns."""
        ...


StateT = TypeVar("StateT", bound=State)

#: One iteration with the graphs held: the next state and the terms of its objective.
Iteration: TypeAlias = Callable[[StateT], tuple[StateT, dict[str, float]]]


class Inference(Protocol, Generic[StateT]):
    """A table with a way to infer its factors: a frozen dataclass, whose fields identify a run."""

    @property
    def data(self) -> Observed:
        """The table at unit scale."""
        ...

    @property
    def n_components(self) -> int:
        """Most columns of the factors."""
        ...

    @property
    def sample_learner(self) -> GraphLearner:
        """Makes the graph over the rows."""
        ...

    @property
    def feature_learner(self) -> GraphLearner:
        """Makes the graph over the columns."""
        ...

    @property
    def only_improves(self) -> bool:
        """Whether the objective cannot rise but for round-off while the graphs are held."""
        ...

    def start(self, intercepts: Intercepts, random_state: RandomState) -> StateT:
        """The state before the first iteration."""
        ...

    def prepare(self, state: StateT) -> Iteration[StateT]:
        """Do once what depends on the graphs alone."""
        ...

    def settle(self, state: StateT) -> StateT:
        """What needs no iteration."""
        ...

    def without_weak_columns(self, state: StateT) -> StateT | None:
        """The state without factors that may not be worth their place; None if there are none."""
        ...

    def learn_graphs(self, state: StateT, times_before: int) -> StateT:
        """The graphs anew from the factors, of the sides whose learners are not done after so many times."""
        ...

    def size(self, terms: dict[str, float]) -> float:
        """What changes of the objective are measured by, positive."""
        ...

    def refuse_divergence(self, terms: dict[str, float], first: dict[str, float], iteration: int) -> None:
        """Raise ``DivergenceError`` where the run will not come back."""
        ...

    def pack(self, state: StateT) -> tuple[dict[str, Any], dict[str, Array]]:
        """The state as JSON values and arrays, without the graphs."""
        ...

    def unpack(
        self,
        values: dict[str, Any],
        arrays: dict[str, Array],
        sample_graph: GraphEstimate,
        feature_graph: GraphEstimate,
    ) -> StateT:
        """The inverse of :meth:`pack`."""
        ...

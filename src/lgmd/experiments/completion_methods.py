"""What the completion experiment compares: each method takes a split and predicts its test ratings.

Factors start at random where tables are large, and may end in different optima, so methods are started several times.
Nothing here looks at a test rating; settings are chosen on a tenth of the training ratings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray
from lgmd.datasets import GraphCompletionData
from lgmd.estimators import LGMD, PMF, LGMDPlus
from lgmd.estimators.factorization import Factorization
from lgmd.graphs import FixedGraph, NoGraph, PriorGraph

__all__ = ["METHODS", "Prediction", "Size", "predict", "ridge_means"]

_MEAN_PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_HELD_OUT = 0.1

# Wide enough that the ends are never chosen but where factors are of no use; weaker penalties only take time.
_PENALTIES = {"penalty": (0.5, 50.0, "log"), "intercept_penalty": (0.5, 32.0, "log")}
_RIDGES = (0.1, 30.0, "log")


@dataclass(frozen=True)
class Size:
    """How much work a method may do.

    Attributes
    ----------
    n_components : int
        Most columns of all factors, those of rivals too. Methods by MAP, which cannot drop a column, may choose fewer.
    n_trials : int
        Settings that are tried for methods by MAP.
    n_splits : int
        How many times a tenth of the training ratings is put aside to judge a setting.
    map_iterations : int
        Most iterations of a fit by MAP, in the search and after it.
    rival_iterations : (int, int)
        Of myfm: variational, and Gibbs draws.
    n_starts : int
        How often a method is started with another seed; settings are chosen with the first.
    seed : int
        The first.
    """

    n_components: int
    n_trials: int
    n_splits: int
    map_iterations: int
    rival_iterations: tuple[int, int]
    n_starts: int
    seed: int

    @property
    def seeds(self) -> range:
        """One for each start."""
        return range(self.seed, self.seed + self.n_starts)


@dataclass(frozen=True)
class Prediction:
    """Test ratings as a method sees them.

    Attributes
    ----------
    values : ndarray or None
        In the order of the split's test ratings; None where the method could not be run.
    deviations : ndarray or None
        Standard deviations, where the method knows them.
    note : str
        What was chosen, or why there are no values.
    """

    values: FloatArray | None
    deviations: FloatArray | None = None
    note: str = ""


def predict(method: str, data: GraphCompletionData, size: Size) -> list[Prediction]:
    """Predict the test ratings of a split by one of :data:`METHODS`, once for each start."""
    return METHODS[method](data, size)


def ridge_means(table: scipy.sparse.coo_array, penalties: tuple[float, float]) -> tuple[float, FloatArray, FloatArray]:
    """Overall mean, and the means of rows and columns about it with a ridge on each side, by turns."""
    (rows, columns), (n, p) = table.coords, table.shape
    overall = float(table.data.mean())
    centred = table.data - overall
    row_weights = 1.0 / (np.bincount(rows, minlength=n) + penalties[0])
    column_weights = 1.0 / (np.bincount(columns, minlength=p) + penalties[1])
    column_means = np.zeros(p)
    for _ in range(20):
        row_means = row_weights * np.bincount(rows, centred - column_means[columns], n)
        column_means = column_weights * np.bincount(columns, centred - row_means[rows], p)
    return overall, row_means, column_means


def _means(data: GraphCompletionData, size: Size) -> list[Prediction]:
    held = np.random.default_rng(size.seed).random(data.train.nnz) < _HELD_OUT
    rest, judge = _part(data.train, ~held), _part(data.train, held)

    def error(penalties: tuple[float, float]) -> float:
        return float(np.mean((judge.data - _mean_entries(rest, penalties, judge.coords)) ** 2))

    best = min(product(_MEAN_PENALTIES, _MEAN_PENALTIES), key=error)
    values = _mean_entries(data.train, best, data.test.coords)
    return [Prediction(values, note=f"penalties {best[0]:g} (users), {best[1]:g} (items)")]


def _mean_entries(table: scipy.sparse.coo_array, penalties: tuple[float, float], coords: tuple[Any, ...]) -> FloatArray:
    overall, rows, columns = ridge_means(table, penalties)
    return np.asarray(overall + rows[coords[0]] + columns[coords[1]])


def _part(table: scipy.sparse.coo_array, chosen: Array) -> scipy.sparse.coo_array:
    rows, columns = (ends[chosen] for ends in table.coords)
    return scipy.sparse.coo_array((table.data[chosen], (rows, columns)), shape=table.shape)


def _pmf(data: GraphCompletionData, size: Size) -> list[Prediction]:
    model = PMF(size.n_components, "map", allow_empty=True, max_iter=size.map_iterations, random_state=size.seed)
    return _tuned(model, data, size, _PENALTIES)


def _given_fixed(data: GraphCompletionData, size: Size) -> list[Prediction]:
    """GRALS: the factors are smooth over the given graphs, ``l (L + ridge I)`` on each side."""
    given = {"sample_graph": data.sample_graph, "feature_graph": data.feature_graph}
    graphs: dict[str, Any] = {
        side: NoGraph() if graph is None else FixedGraph(graph, "adjacency") for side, graph in given.items()
    }
    model = LGMD(
        size.n_components,
        "map",
        allow_empty=True,
        max_iter=size.map_iterations,
        random_state=size.seed,
        **graphs,
    )
    ridges = {f"{side}__ridge": _RIDGES for side, graph in given.items() if graph is not None}
    return _tuned(model, data, size, _PENALTIES | ridges)


def _tuned(model: Factorization, data: GraphCompletionData, size: Size, space: dict[str, Any]) -> list[Prediction]:
    from lgmd.experiments.methods import fit, search
    from lgmd.tuning import with_parameters

    ranks = sorted({max(1, size.n_components // share) for share in (1, 2, 4)})
    found = search(
        model,
        data.train,
        size.n_trials,
        space=space | {"n_components": ranks},
        held_out=_HELD_OUT,
        n_splits=size.n_splits,
        random_state=size.seed,
    )
    best = with_parameters(model, found.best_params_)
    chosen = ", ".join(
        f"{name.replace('__', ' ').replace('_', ' ')} {value:.2g}" for name, value in found.best_params_.items()
    )
    rows, columns = data.test.coords
    fits = (fit(best.set_params(random_state=seed), data.train) for seed in size.seeds)
    return [Prediction(fitted.predict(rows, columns), note=chosen) for fitted in fits]


def _variational(
    data: GraphCompletionData, model: Factorization, size: Size, note: Callable[[Any], str] | None = None
) -> list[Prediction]:
    from lgmd.experiments.methods import fit

    rows, columns = data.test.coords
    found = []
    for seed in size.seeds:
        fitted = fit(model.set_params(random_state=seed), data.train)
        values, deviations = fitted.predict(rows, columns, return_std=True)
        found.append(Prediction(values, deviations, (note or _rank_and_edges)(fitted)))
    return found


def _rank_and_edges(model: Factorization) -> str:
    edges = [(graph.nnz - graph.shape[0]) // 2 for graph in (model.sample_graph_, model.feature_graph_)]
    return f"rank {model.rank_}, {edges[0]:,} and {edges[1]:,} edges"


def _strengths(model: Factorization) -> str:
    return f"strengths {model.sample_strength_:.2g} (users), {model.feature_strength_:.2g} (items)"


def _pmf_variational(data: GraphCompletionData, size: Size) -> list[Prediction]:
    return _variational(data, PMF(size.n_components, "variational", allow_empty=True), size)


def _given_prior(data: GraphCompletionData, size: Size) -> list[Prediction]:
    given = {"sample_graph": data.sample_graph, "feature_graph": data.feature_graph}
    graphs: dict[str, Any] = {side: NoGraph() if graph is None else PriorGraph(graph) for side, graph in given.items()}
    return _variational(data, LGMD(size.n_components, allow_empty=True, **graphs), size, _strengths)


def _lgmd(data: GraphCompletionData, size: Size) -> list[Prediction]:
    return _variational(data, LGMD(size.n_components, allow_empty=True), size)


def _lgmd_plus(data: GraphCompletionData, size: Size) -> list[Prediction]:
    return _variational(data, LGMDPlus(size.n_components, allow_empty=True), size)


def _myfm(name: str, which: int) -> Callable[[GraphCompletionData, Size], list[Prediction]]:
    """A factorisation machine of myfm on users and items one-hot, a group each.

    Ratings are standardised: its priors suit unit scale, and on ratings from 1 to 100 its sampler goes astray.
    """

    def run(data: GraphCompletionData, size: Size) -> list[Prediction]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                myfm = import_module("myfm")
        except ImportError:
            return [Prediction(None, note="not installed")]
        n_iterations = size.rival_iterations[which]
        mean, scale = data.train.data.mean(), data.train.data.std()
        training, test, groups = _one_hot(data.train), _one_hot(data.test), list(data.shape)
        found = []
        for seed in size.seeds:
            model = getattr(myfm, name)(rank=size.n_components, random_seed=seed)
            with redirect_stderr(StringIO()):  # it draws a bar of its own, on a terminal or not
                model.fit(training, (data.train.data - mean) / scale, group_shapes=groups, n_iter=n_iterations)
            found.append(Prediction(mean + scale * model.predict(test), note=f"{n_iterations} iterations"))
        return found

    return run


def _one_hot(table: scipy.sparse.coo_array) -> scipy.sparse.csr_matrix:
    (rows, columns), (n, p) = table.coords, table.shape
    positions = np.stack([rows, n + columns], axis=1).ravel()
    starts = np.arange(0, 2 * table.nnz + 1, 2)
    return scipy.sparse.csr_matrix((np.ones(2 * table.nnz), positions, starts), shape=(table.nnz, n + p))


METHODS: dict[str, Callable[[GraphCompletionData, Size], list[Prediction]]] = {
    "means": _means,
    "PMF": _pmf,
    "PMF, variational": _pmf_variational,
    "given graphs, MAP": _given_fixed,
    "given graphs, variational": _given_prior,
    "LGMD": _lgmd,
    "LGMD+": _lgmd_plus,
    "myfm, variational": _myfm("VariationalFMRegressor", 0),
    "myfm, Gibbs": _myfm("MyFMRegressor", 1),
}
"""The methods by the names that stand on the page."""

"""Hidden temperatures with graphs that are learned, given or wrong, and what people would use instead.

Everything runs with defaults. The given graphs are consecutive days and the five nearest stations; wrong ones have as
many edges between random nodes.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge

from held_out import FIRST_SEED, data_file, fit_seconds, fresh, percent, say
from lgmd import LGMD, LGMDPlus
from lgmd.graphs import PriorGraph, candidates
from lgmd.metrics import rmse
from temperature import SHARES, load


def random_graph(n: int, n_edges: int, seed: int) -> scipy.sparse.csr_array:
    rows, columns = np.random.default_rng(seed).integers(0, n, (2, n_edges))
    edges = scipy.sparse.csr_array((np.ones(n_edges), (rows, columns)), shape=(n, n))
    return scipy.sparse.csr_array((edges + edges.T) > 0, dtype=float)


def graphs(latitude: np.ndarray, longitude: np.ndarray, n_days: int, seed: int) -> dict[str, dict[str, object]]:
    stations = candidates.nearest(np.stack([latitude, longitude], axis=1), 5, geographic=True).astype(float)
    days = candidates.chain(n_days).astype(float)
    wrong = [random_graph(each.shape[0], each.nnz // 2, seed) for each in (stations, days)]
    return {
        "no graphs": {"sample_graph": "none", "feature_graph": "none"},
        "defaults": {},
        "both given": {"sample_graph": PriorGraph(stations), "feature_graph": PriorGraph(days)},
        "stations learned, days given": {"feature_graph": PriorGraph(days)},
        "both random": {"sample_graph": PriorGraph(wrong[0]), "feature_graph": PriorGraph(wrong[1])},
    }


def impute(table: np.ndarray) -> tuple[np.ndarray, float]:
    """Days are the samples; stations that were never seen stay at the mean of the others."""
    model = IterativeImputer(BayesianRidge(), keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = fit_seconds(model, table.T)
        return model.transform(table.T).T, seconds


def distances(model: LGMD, latitude: np.ndarray, longitude: np.ndarray) -> tuple[float, float]:
    """Median distance in degrees of learned edges and of all pairs."""
    edges = scipy.sparse.triu(model.sample_graph_, k=1).tocoo()
    every = np.triu_indices(len(latitude), 1)

    def median(rows: np.ndarray, columns: np.ndarray) -> float:
        return float(np.median(np.hypot(latitude[rows] - latitude[columns], longitude[rows] - longitude[columns])))

    return median(*edges.coords), median(*every)


def main(shares: tuple[float, ...] = SHARES, n_masks: int = 5, n_imputed: int = 1, n_random: int = 2) -> list[str]:
    """Measure and return the lines of three tables."""
    path = data_file("temperature/us_daily_mean_2017_2021.npz")
    if path is None:
        return []
    truth, latitude, longitude = load(path)
    names = list(graphs(latitude, longitude, truth.shape[1], 0))
    lines = [
        f"| observed, k | {' | '.join(names)} | IterativeImputer(BayesianRidge()) |",
        "|---" * (len(names) + 2) + "|",
    ]
    fit_seconds(LGMD(), np.where(np.random.default_rng(0).random(truth.shape) < 0.5, truth, np.nan))
    lengths = []
    for share in shares:
        rivals = []
        for k in (20, 40):
            errors: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
            for mask, seed in enumerate(fresh(n_masks)):
                observed = np.random.default_rng(seed).random(truth.shape) < share
                table = np.where(observed, truth, np.nan)
                for name, setting in graphs(latitude, longitude, truth.shape[1], seed).items():
                    if name == "both random" and mask >= n_random:
                        continue
                    model = LGMD(k, allow_empty=True, **setting)
                    seconds = fit_seconds(model, table)
                    errors[name].append((rmse(truth[~observed], model.reconstruct()[~observed]), seconds))
                    if name == "defaults" and share == 0.5:
                        lengths.append(distances(model, latitude, longitude))
                if k == 20 and mask < n_imputed:
                    filled, seconds = impute(table)
                    rivals.append((rmse(truth[~observed], filled[~observed]), seconds))
                figures = ", ".join(f"{each[-1][0]:.3f}" for each in errors.values())
                say(f"{percent(share)}, k = {k}, mask {seed}: {figures}")
            cells = [f"{e:.3f} ({s:.1f} s)" for e, s in ([np.mean(each, axis=0) for each in errors.values()])]
            rival = "{:.3f} ({:.0f} s)".format(*np.mean(rivals, axis=0))
            lines.append(f"| {percent(share)}, {k} | {' | '.join(cells)} | {rival} |")
    if lengths:
        of_edges, of_all = np.mean(lengths, axis=0)
        lines += [
            "",
            f"Median distance of learned station edges at 50 %: {of_edges:.1f} degrees; of all pairs {of_all:.1f}.",
        ]
    return [*lines, "", *plus(truth)]


def plus(truth: np.ndarray) -> list[str]:
    """Time of LGMD+ to convergence."""
    observed = np.random.default_rng(FIRST_SEED).random(truth.shape) < 0.5
    lines = ["| LGMD+ to convergence, k = 20 | seconds | iterations | RMSE of hidden entries |", "|---|---|---|---|"]
    for inference in ("variational", "map"):
        penalty = {"sample_penalty": 2.0, "feature_penalty": 2.0} if inference == "map" else {}
        for name, table in (("complete", truth), ("half observed", np.where(observed, truth, np.nan))):
            model = LGMDPlus(20, inference=inference, **penalty)
            seconds = fit_seconds(model, table)
            error = "-" if table is truth else f"{rmse(truth[~observed], model.reconstruct()[~observed]):.3f}"
            state = "" if model.converged_ else " (not converged)"
            lines.append(f"| {inference}, {name}{state} | {seconds:.1f} | {model.n_iter_} | {error} |")
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

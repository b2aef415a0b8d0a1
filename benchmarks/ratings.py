"""Test ratings of four fixed splits: our defaults beside myfm's variational and Gibbs factorisation machines.

myfm sees one-hot users and items, a group each, and standardised ratings: its priors suit unit scale, and on raw
ratings from 1 to 100 its Gibbs sampler goes astray. The ridge means of users and items have their two penalties tuned
on a tenth of the training ratings.
"""

from __future__ import annotations

import os
import time
import warnings
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse

from held_out import FIRST_SEED, data_file, fit_seconds, judge, percent, say
from lgmd import LGMD
from lgmd.graphs import PriorGraph
from lgmd.metrics import rmse
from power_law import Ratings

SPLITS = ("ml_100k", "flixster", "douban", "yahoo_music")
MEAN_PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
MYFM_RANK = 10


def load(path: Path) -> tuple[Ratings, Ratings]:
    """Training and test ratings."""
    with np.load(path) as data:
        return tuple(
            Ratings(
                data[f"{part}_user"].astype(np.int32),
                data[f"{part}_item"].astype(np.int32),
                data[f"{part}_rating"].astype(float),
                tuple(data["shape"].tolist()),
            )
            for part in ("train", "test")
        )


def given_graphs(path: Path) -> dict[str, PriorGraph]:
    """The graphs that come with a split, as parameters."""
    graphs = {}
    with np.load(path) as data:
        for side, name, n in zip(
            ("user", "item"), ("sample_graph", "feature_graph"), data["shape"].tolist(), strict=True
        ):
            if f"graph_{side}_i" in data:
                rows, columns = (data[f"graph_{side}_{end}"].astype(np.int64) for end in "ij")
                edges = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
                edges.data[:] = 1.0
                graphs[name] = PriorGraph(edges)
    return graphs


def as_table(ratings: Ratings) -> scipy.sparse.coo_array:
    return scipy.sparse.coo_array((ratings.values, (ratings.rows, ratings.columns)), shape=ratings.shape)


def ridge_means(train: Ratings, which: np.ndarray | slice, penalties: tuple[float, float]) -> tuple[np.ndarray, ...]:
    """Overall mean, means of users and means of items, by turns."""
    users, items, values = train.rows[which], train.columns[which], train.values[which]
    overall = values.mean()
    centred = values - overall
    item_means = np.zeros(train.shape[1])

    def means(places: np.ndarray, rest: np.ndarray, n: int, penalty: float) -> np.ndarray:
        return np.bincount(places, rest, minlength=n) / (np.bincount(places, minlength=n) + penalty)

    for _ in range(20):
        user_means = means(users, centred - item_means[items], train.shape[0], penalties[0])
        item_means = means(items, centred - user_means[users], train.shape[1], penalties[1])
    return overall, user_means, item_means


def time_means(train: Ratings, test: Ratings) -> tuple[float, float]:
    """Test error of the means, and the seconds of their search."""

    def error(ratings: Ratings, which: np.ndarray | slice, means: tuple[np.ndarray, ...]) -> float:
        overall, user_means, item_means = means
        return rmse(
            ratings.values[which], overall + user_means[ratings.rows[which]] + item_means[ratings.columns[which]]
        )

    start = time.perf_counter()
    held = np.random.default_rng(0).random(train.values.size) < 0.1
    best = min(product(MEAN_PENALTIES, repeat=2), key=lambda pair: error(train, held, ridge_means(train, ~held, pair)))
    means = ridge_means(train, slice(None), best)
    return error(test, slice(None), means), time.perf_counter() - start


def one_hot(ratings: Ratings) -> scipy.sparse.csr_matrix:
    n_entries, n_users = ratings.values.size, ratings.shape[0]
    columns = np.stack([ratings.rows, n_users + ratings.columns], axis=1).ravel()
    pointers = np.arange(0, 2 * n_entries + 1, 2)
    return scipy.sparse.csr_matrix((np.ones(2 * n_entries), columns, pointers), shape=(n_entries, sum(ratings.shape)))


def time_myfm(
    name: str, n_iterations: int, train: Ratings, test: Ratings, rank: int = MYFM_RANK
) -> tuple[float, float]:
    """Test error and the seconds of a fit."""
    import myfm

    model = getattr(myfm, name)(rank=rank, random_seed=0)
    mean, scale = train.values.mean(), train.values.std()
    start = time.perf_counter()
    model.fit(one_hot(train), (train.values - mean) / scale, group_shapes=list(train.shape), n_iter=n_iterations)
    seconds = time.perf_counter() - start
    return rmse(test.values, mean + scale * model.predict(one_hot(test))), seconds


def myfm_version() -> str | None:
    os.environ.setdefault("TQDM_DISABLE", "1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import myfm  # noqa: F401
    except ImportError as error:
        say(f"myfm is left out: {error}")
        return None
    return version("myfm")


def main(splits: tuple[str, ...] = SPLITS) -> list[str]:
    """Measure and return the lines of a table."""
    paths = {name: data_file(f"graph_mc/{name}.npz") for name in splits}
    if None in paths.values():
        return []
    found = myfm_version()
    cells: dict[str, list[str]] = {
        "LGMD, defaults": [],
        "LGMD, given graphs as PriorGraph": [],
        "their strengths, users and items": [],
        "ours, inside the 90 % bars": [],
        "means only, penalties tuned": [],
    }
    rivals = {}
    if found:
        rivals[f"myfm {found}, variational, rank {MYFM_RANK}, 100 iterations"] = ("VariationalFMRegressor", 100)
        rivals[f"myfm {found}, Gibbs, rank {MYFM_RANK}, 300 iterations"] = ("MyFMRegressor", 300)
        cells |= {name: [] for name in rivals}
    for name, path in paths.items():
        train, test = load(path)
        fit_seconds(LGMD(allow_empty=True, max_iter=2), as_table(train))  # compiles
        verdict = judge(
            LGMD(allow_empty=True, random_state=FIRST_SEED), as_table(train), test.rows, test.columns, test.values
        )
        cells["LGMD, defaults"].append(f"{verdict.rmse:.4f} ({verdict.seconds:.1f} s)")
        model = LGMD(allow_empty=True, random_state=FIRST_SEED, **given_graphs(path))
        given = judge(model, as_table(train), test.rows, test.columns, test.values)
        cells["LGMD, given graphs as PriorGraph"].append(f"{given.rmse:.4f} ({given.seconds:.1f} s)")
        cells["their strengths, users and items"].append(f"{model.sample_strength_:.2g}, {model.feature_strength_:.2g}")
        cells["ours, inside the 90 % bars"].append(percent(verdict.coverage, 1))
        cells["means only, penalties tuned"].append("{:.4f} ({:.1f} s)".format(*time_means(train, test)))
        for label, (rival, n_iterations) in rivals.items():
            cells[label].append("{:.4f} ({:.1f} s)".format(*time_myfm(rival, n_iterations, train, test)))
        say(f"{name}: {', '.join(column[-1] for column in cells.values())}")
    lines = [f"| test RMSE | {' | '.join(splits)} |", "|---" * (len(splits) + 1) + "|"]
    lines += [f"| {label} | {' | '.join(column)} |" for label, column in cells.items()]
    if not found:
        lines += ["", 'myfm is not installed: `pip install myfm "setuptools<81"`.']
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

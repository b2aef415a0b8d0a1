"""Ratings from the data folder: the Netflix corner, MovieLens with side information, and four splits with graphs."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import numpy as np
from scipy import sparse

from lgmd._typing import Array, SparseGraph
from lgmd._validation import check_choice
from lgmd.datasets._folder import DataSource, read_arrays
from lgmd.datasets.containers import GraphCompletionData, MovieLensData, RatingsData
from lgmd.exceptions import InvalidDataError, InvalidParameterError

__all__ = ["load_graph_completion", "load_movielens", "load_netflix"]

_NETFLIX_SIZES = (1000, 1200)

_MOVIELENS = DataSource(
    file="movielens_100k/ml_100k.npz",
    what="MovieLens-100k with side information",
    origin="GroupLens, University of Minnesota (grouplens.org; research use, no redistribution)",
    instead="Or download ml-100k.zip from there and read its u.data with lgmd.datasets.read_movielens.",
    arrays={
        "user": "ratings",
        "item": "ratings",
        "rating": "ratings",
        "timestamp": "ratings",
        "fold": "ratings",
        "user_age": "users",
        "user_gender": "users",
        "user_occupation": "users",
        "user_zip": "users",
        "item_title": "items",
        "item_release": "items",
        "item_genres": "items genres",
        "genre_names": "genres",
    },
)

_COMPLETION_TITLES = {
    "ml_100k": "MovieLens-100k",
    "flixster": "Flixster",
    "douban": "Douban",
    "yahoo_music": "YahooMusic",
}


def load_netflix(size: int = 1000, *, folder: str | os.PathLike[str] | None = None) -> RatingsData:
    """
    The dense corner of the Netflix Prize ratings: very active users, popular films.

    Parameters
    ----------
    size : {1000, 1200}, default=1000
        Users and films: 1000 x 1000 with 81.7 % rated, or 1200 x 1200 with 77.2 %. The two share users and films.
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    RatingsData
        Ratings 1 to 5, NaN where there is none. To measure completion, hide some of the known ones.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    if isinstance(size, bool) or size not in _NETFLIX_SIZES:
        raise InvalidParameterError(f"size must be 1000 or 1200, but is {size!r}.")
    source = DataSource(
        file=f"netflix/netflix_{size}.npz",
        what=f"The Netflix table ({size} users x {size} films)",
        origin="the Netflix Prize of 2006 to 2009 (research use), through the course material of MIT 6.036 (2015)",
        instead=(
            "Or get the Prize's combined_data_1.txt to combined_data_4.txt and make a table of the same kind with "
            f"lgmd.datasets.read_netflix_prize(paths, n_users={size}, n_movies={size})."
        ),
        arrays={"ratings": "users films"},
    )
    ratings = read_arrays(source, folder)["ratings"].astype(np.float64)
    ratings[ratings == 0] = np.nan
    return RatingsData(f"Netflix {size}", ratings)


def load_movielens(*, folder: str | os.PathLike[str] | None = None) -> MovieLensData:
    """
    MovieLens-100k: 100,000 ratings of 943 users and 1,682 films, with ages, occupations, titles and genres.

    Parameters
    ----------
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    MovieLensData
        The ratings, the official five folds, and what is known of users and films.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    arrays = read_arrays(_MOVIELENS, folder)
    shape = len(arrays["user_age"]), len(arrays["item_title"])
    return MovieLensData(
        ratings=_coordinates(arrays["user"], arrays["item"], arrays["rating"], shape, _MOVIELENS.file),
        timestamps=arrays["timestamp"].astype(np.int64),
        folds=arrays["fold"].astype(np.int64),
        user_age=arrays["user_age"].astype(np.int64),
        user_gender=arrays["user_gender"],
        user_occupation=arrays["user_occupation"],
        user_zip=arrays["user_zip"],
        item_titles=arrays["item_title"],
        item_release_dates=arrays["item_release"],
        item_genres=arrays["item_genres"].astype(bool),
        genre_names=arrays["genre_names"],
    )


def load_graph_completion(name: str, *, folder: str | os.PathLike[str] | None = None) -> GraphCompletionData:
    """
    One of the four fixed splits on which completion with given graphs is usually compared.

    Parameters
    ----------
    name : {"ml_100k", "flixster", "douban", "yahoo_music"}
        MovieLens-100k has graphs over users and films, Flixster too, Douban a social network of its users, and
        YahooMusic a graph over tracks. Those of Flixster were made from the ratings, perhaps the test ratings among
        them.
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    GraphCompletionData
        Training and test ratings and the graphs.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    name = check_choice(name, "name", tuple(_COMPLETION_TITLES))
    source = DataSource(
        file=f"graph_mc/{name}.npz",
        what=f"The {_COMPLETION_TITLES[name]} split for completion with graphs",
        origin="the data of 'Geometric matrix completion with recurrent multi-graph neural networks' (fmonti/mgcnn)",
        instead="Or build the arrays train_user, train_item, train_rating, test_... and graph_... from its .mat files.",
        arrays={
            "shape": "sides",
            "train_user": "train",
            "train_item": "train",
            "train_rating": "train",
            "test_user": "test",
            "test_item": "test",
            "test_rating": "test",
        },
    )
    arrays = read_arrays(source, folder)
    if arrays["shape"].shape != (2,):
        raise InvalidDataError(f"{source.file}: shape has {arrays['shape'].size} numbers, but a table has two sides.")
    shape = int(arrays["shape"][0]), int(arrays["shape"][1])
    train, test = (
        _coordinates(arrays[f"{part}_user"], arrays[f"{part}_item"], arrays[f"{part}_rating"], shape, source.file)
        for part in ("train", "test")
    )
    return GraphCompletionData(
        name=name,
        shape=shape,
        train=train,
        test=test,
        sample_graph=_adjacency(arrays, "user", shape[0], source.file),
        feature_graph=_adjacency(arrays, "item", shape[1], source.file),
    )


def _coordinates(rows: Array, columns: Array, values: Array, shape: tuple[int, int], file: str) -> sparse.coo_array:
    """Return a coo_array of float64, its entries in the order of the file."""
    for indices, length, side in ((rows, shape[0], "row"), (columns, shape[1], "column")):
        if indices.size and not 0 <= indices.min() <= indices.max() < length:
            raise InvalidDataError(
                f"{PurePosixPath(file).name} has a {side} number {int(indices.max()):,} outside 0 to {length - 1:,}."
            )
    positions = rows.astype(np.int32), columns.astype(np.int32)
    return sparse.coo_array((values.astype(np.float64), positions), shape=shape)


def _adjacency(arrays: dict[str, Array], side: str, n_nodes: int, file: str) -> SparseGraph | None:
    """Return a graph's edges as a symmetric matrix of zeros and ones without a diagonal, or None without a graph."""
    ends = [f"graph_{side}_i", f"graph_{side}_j"]
    present = [end for end in ends if end in arrays]
    if not present:
        return None
    if len(present) == 1 or arrays[ends[0]].shape != arrays[ends[1]].shape:
        raise InvalidDataError(f"{PurePosixPath(file).name}: {ends[0]} and {ends[1]} must be there with equal lengths.")
    first, second = arrays[ends[0]], arrays[ends[1]]
    is_edge = first != second
    edges = _coordinates(first[is_edge], second[is_edge], np.ones(is_edge.sum()), (n_nodes, n_nodes), file)
    graph = sparse.csr_array(edges + edges.T)
    graph.data[:] = 1.0
    graph.sort_indices()
    return graph

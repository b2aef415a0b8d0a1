"""What the loaders and readers of real data return: values with their names, as plain frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray, IntArray, SparseGraph

__all__ = [
    "GraphCompletionData",
    "LabelledData",
    "MovieLensData",
    "RatingsData",
    "SparseRatings",
    "StationExtremes",
    "TemperatureData",
]


@dataclass(frozen=True, eq=False, repr=False)
class TemperatureData:
    """
    Daily temperatures, a row a station and a column a day.

    Attributes
    ----------
    values : ndarray of shape (n_stations, n_days)
        Temperatures in degrees Fahrenheit, unless a reader was asked for Celsius; NaN where there is none.
    station_ids, names, states : ndarray of str of shape (n_stations,)
        Who measured. A name or a state that the source does not give is empty.
    latitude, longitude : ndarray of shape (n_stations,)
        Degrees north and east; NaN where the source does not say.
    altitude : ndarray of shape (n_stations,)
        Metres above the sea; NaN where the source does not say.
    dates : ndarray of datetime64[D] of shape (n_days,)
        The days.
    """

    values: FloatArray
    station_ids: Array
    names: Array
    states: Array
    latitude: FloatArray
    longitude: FloatArray
    altitude: FloatArray
    dates: Array

    def __repr__(self) -> str:
        n_missing = int(np.isnan(self.values).sum())
        return (
            f"TemperatureData({_shape(self.values)} stations x days, {self.dates[0]} to {self.dates[-1]}, "
            f"{n_missing:,} missing)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class StationExtremes:
    """
    Daily maxima and minima with the gaps that volunteers leave; no coordinates.

    Attributes
    ----------
    maximum, minimum : ndarray of shape (n_stations, n_days)
        Degrees Fahrenheit, NaN where nothing was reported.
    names, states, offices : ndarray of str of shape (n_stations,)
        Station, two-letter state (empty for some) and three-letter forecast office.
    dates : ndarray of datetime64[D] of shape (n_days,)
        The days.
    complete : ndarray of bool of shape (n_stations,)
        True where neither series has a gap.
    """

    maximum: FloatArray
    minimum: FloatArray
    names: Array
    states: Array
    offices: Array
    dates: Array
    complete: Array

    def __repr__(self) -> str:
        return (
            f"StationExtremes({_shape(self.maximum)} stations x days, {self.dates[0]} to {self.dates[-1]}, "
            f"{int(self.complete.sum()):,} stations complete)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class RatingsData:
    """
    Ratings as a dense table: most of it is known, or it is small.

    Attributes
    ----------
    name : str
        Where the ratings come from.
    values : ndarray of shape (n_users, n_items)
        Ratings; NaN where a user has not rated an item.
    """

    name: str
    values: FloatArray

    def __repr__(self) -> str:
        share = 1 - np.isnan(self.values).mean()
        return f"RatingsData({self.name}, {_shape(self.values)} users x items, {share:.2%} rated)"


@dataclass(frozen=True, eq=False, repr=False)
class SparseRatings:
    """
    Ratings as a list: what is stored is what was rated.

    Attributes
    ----------
    ratings : coo_array of shape (n_users, n_items)
        One stored entry a rating.
    user_ids, item_ids : ndarray of int
        The source's own numbers of the rows and of the columns, ascending.
    timestamps : ndarray of int64 of shape (n_ratings,), or None
        Seconds since 1970 in the order of ``ratings.data``, where the reader keeps them.
    """

    ratings: Any
    user_ids: IntArray
    item_ids: IntArray
    timestamps: IntArray | None = None

    def __repr__(self) -> str:
        return f"SparseRatings({_shape(self.ratings)} users x items, {self.ratings.nnz:,} ratings)"


@dataclass(frozen=True, eq=False, repr=False)
class MovieLensData:
    """
    MovieLens-100k with what is known of its users and films.

    Attributes
    ----------
    ratings : coo_array of shape (943, 1682)
        Ratings 1 to 5.
    timestamps : ndarray of int64 of shape (100000,)
        Seconds since 1970, in the order of ``ratings.data``.
    folds : ndarray of int of shape (100000,)
        The official five folds: ``folds == k`` is the file ``uk.test``.
    user_age, user_gender, user_occupation, user_zip : ndarray of shape (943,)
        The users.
    item_titles, item_release_dates : ndarray of str of shape (1682,)
        The films; the date is written as in the source and empty for some.
    item_genres : ndarray of bool of shape (1682, 19)
        Which of ``genre_names`` a film belongs to; it may be several.
    genre_names : ndarray of str of shape (19,)
        The genres.
    """

    ratings: Any
    timestamps: IntArray
    folds: IntArray
    user_age: IntArray
    user_gender: Array
    user_occupation: Array
    user_zip: Array
    item_titles: Array
    item_release_dates: Array
    item_genres: Array
    genre_names: Array

    def __repr__(self) -> str:
        return f"MovieLensData({_shape(self.ratings)} users x films, {self.ratings.nnz:,} ratings)"


@dataclass(frozen=True, eq=False, repr=False)
class LabelledData:
    """
    Samples in rows, with the class of each.

    Attributes
    ----------
    name : str
        Which set it is.
    values : ndarray or csr_array of shape (n_samples, n_features)
        The table: pixels, counts or expression levels.
    labels : ndarray of int of shape (n_samples,)
        Classes from 0: ``label_names[labels]`` are their names.
    label_names : ndarray of str of shape (n_classes,)
        A name for each class.
    feature_names : ndarray of str of shape (n_features,), or None
        Names of the columns, where the source has them.
    image_shape : (int, int) or None
        Height and width where a row is an image: ``values[0].reshape(image_shape)`` stands upright.
    """

    name: str
    values: Any
    labels: IntArray
    label_names: Array
    feature_names: Array | None = None
    image_shape: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"LabelledData({self.name}, {_shape(self.values)}, {len(self.label_names)} classes)"


@dataclass(frozen=True, eq=False, repr=False)
class GraphCompletionData:
    """
    A fixed split of ratings, with graphs over users or items that somebody else made.

    Attributes
    ----------
    name : str
        Which set it is.
    shape : (int, int)
        Users and items, those without any rating included.
    train, test : coo_array of shape `shape`
        Ratings to learn from and ratings to predict; they do not overlap.
    sample_graph, feature_graph : csr_array or None
        Adjacency over users and over items: symmetric, zeros and ones, no diagonal. None where there is no graph.
    """

    name: str
    shape: tuple[int, int]
    train: Any
    test: Any
    sample_graph: SparseGraph | None
    feature_graph: SparseGraph | None

    def __repr__(self) -> str:
        graphs = {"users": self.sample_graph, "items": self.feature_graph}
        known = " and ".join(side for side, graph in graphs.items() if graph is not None) or "neither side"
        return (
            f"GraphCompletionData({self.name}, {self.shape[0]:,} x {self.shape[1]:,}, {self.train.nnz:,} train, "
            f"{self.test.nnz:,} test, graph over {known})"
        )


def _shape(values: Any) -> str:
    return " x ".join(f"{length:,}" for length in values.shape)

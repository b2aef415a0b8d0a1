"""Loaders on the data folder itself: the figures that its description states."""

import os

import numpy as np
import pytest

from lgmd import datasets

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("LGMD_DATA"), reason="LGMD_DATA does not name the data folder"),
]


def test_temperature():
    data = datasets.load_temperature()
    assert data.values.shape == (150, 669)
    assert np.isfinite(data.values).all()
    assert data.values.mean() == pytest.approx(57.6, abs=0.1)
    assert len(set(data.states)) == 48
    assert [str(data.dates[0]), str(data.dates[-1])] == ["2018-01-01", "2019-10-31"]
    assert np.all((data.latitude > 24) & (data.latitude < 72) & (data.longitude < -60))
    assert datasets.load_temperature("all").values.shape == (185, 1825)


def test_station_extremes():
    data = datasets.load_station_extremes()
    gaps = np.isnan(data.maximum) | np.isnan(data.minimum)
    np.testing.assert_array_equal(~gaps.any(axis=1), data.complete)
    assert data.complete.sum() == 1041
    assert np.all((data.maximum >= data.minimum) | gaps)


def test_netflix():
    data = datasets.load_netflix()
    assert np.isfinite(data.values).sum() == 816_714
    assert set(np.unique(data.values[np.isfinite(data.values)])) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("name", ["ml_100k", "flixster", "douban", "yahoo_music"])
def test_graph_completion(name):
    data = datasets.load_graph_completion(name)
    overlap = data.train.tocsr().astype(bool).multiply(data.test.tocsr().astype(bool))
    assert overlap.nnz == 0
    for graph in (data.sample_graph, data.feature_graph):
        if graph is not None:
            assert abs(graph - graph.T).nnz == 0
            assert not graph.diagonal().any()
            assert set(graph.data) == {1.0}
    expected = {"ml_100k": 12_594, "flixster": 59_354, "douban": 2_688}.get(name)
    assert (data.sample_graph.nnz if expected else data.sample_graph) == expected


def test_movielens_agrees_with_the_split():
    data, split = datasets.load_movielens(), datasets.load_graph_completion("ml_100k")
    assert data.ratings.nnz == 100_000
    is_test = data.folds == 1
    np.testing.assert_array_equal(
        split.test.toarray()[data.ratings.row[is_test], data.ratings.col[is_test]], data.ratings.data[is_test]
    )
    assert data.item_titles[0] == "Toy Story (1995)"


def test_faces_stand_upright():
    for name in ("orl", "yale"):
        data = datasets.load_images(name)
        mean = data.values.reshape(-1, *data.image_shape).mean(axis=0)
        # Faces are symmetric about a vertical axis, and not about a horizontal one.
        assert np.abs(mean - mean[:, ::-1]).mean() < 0.5 * np.abs(mean - mean[::-1]).mean()


def test_objects_and_digits():
    objects = datasets.load_images("coil20")
    np.testing.assert_array_equal(np.bincount(objects.labels), np.full(20, 72))
    digits = datasets.load_mnist()
    np.testing.assert_array_equal(np.bincount(digits.labels)[:3], [980, 1135, 1032])


def test_documents_and_cells():
    documents = datasets.load_tdt2(20)
    assert documents.values.shape == (8741, 36_771)
    assert np.all(np.diff(np.bincount(documents.labels)) <= 0)
    shapes = {name: datasets.load_expression(name).values.shape for name in ("pbmc68k", "mecs", "golub")}
    assert shapes == {"pbmc68k": (700, 765), "mecs": (182, 8989), "golub": (38, 3051)}

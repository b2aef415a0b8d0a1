"""Loaders of real sets, on files of the same form that the tests write."""

import numpy as np
import pytest
from scipy import sparse

from lgmd import datasets
from lgmd.exceptions import InvalidDataError, InvalidParameterError, LGMDError, MissingDataError

LOADERS = {
    "temperature": (datasets.load_temperature, "temperature/us_daily_mean_2017_2021.npz", "read_ghcn_daily"),
    "extremes": (datasets.load_station_extremes, "temperature/us_stations_2018_2019.npz", "read_gsod"),
    "netflix": (datasets.load_netflix, "netflix/netflix_1000.npz", "read_netflix_prize"),
    "movielens": (datasets.load_movielens, "movielens_100k/ml_100k.npz", "read_movielens"),
    "mnist": (datasets.load_mnist, "images/mnist_test.npz", "read_mnist"),
    "yale": (lambda **folder: datasets.load_images("yale", **folder), "images/yale_32x32.npz", "Yale_32x32.mat"),
    "tdt2": (datasets.load_tdt2, "tdt2/tdt2_top30.npz", "read_tdt2"),
    "golub": (lambda **folder: datasets.load_expression("golub", **folder), "expression/golub.npz", "multtest"),
    "douban": (lambda **folder: datasets.load_graph_completion("douban", **folder), "graph_mc/douban.npz", "mgcnn"),
}


@pytest.fixture
def write(tmp_path):
    """A writer of archives below a data folder, which it returns."""

    def save(file, **arrays):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        np.savez(path, **arrays)
        return tmp_path

    return save


@pytest.mark.parametrize("name", LOADERS)
def test_a_missing_set_says_what_it_is_and_how_to_get_it(name, tmp_path, monkeypatch):
    load, file, advice = LOADERS[name]
    monkeypatch.delenv("LGMD_DATA", raising=False)
    with pytest.raises(MissingDataError, match="LGMD_DATA is not set") as caught:
        load()
    for part in ("is not at hand", "It comes from", file, advice, "Set LGMD_DATA"):
        assert part in str(caught.value)
    monkeypatch.setenv("LGMD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="in the folder that LGMD_DATA names") as caught:
        load()
    assert str(tmp_path / file) in str(caught.value)
    assert isinstance(caught.value, LGMDError)
    with pytest.raises(MissingDataError, match="in the folder that was passed"):
        load(folder=tmp_path / "elsewhere")


@pytest.mark.parametrize("name", LOADERS)
def test_a_foreign_or_damaged_file_is_refused(name, tmp_path, write):
    load, file, _ = LOADERS[name]
    write(file, something=np.arange(3))
    with pytest.raises(InvalidDataError, match=r"lacks '.*this file has 'something'"):
        load(folder=tmp_path)
    whole = (tmp_path / file).read_bytes()
    for content in (b"", b"not an archive", whole[: len(whole) // 2]):
        (tmp_path / file).write_bytes(content)
        with pytest.raises(InvalidDataError, match="cannot be read"):
            load(folder=tmp_path)
    with (tmp_path / file).open("wb") as single:
        np.save(single, np.arange(3))
    with pytest.raises(InvalidDataError, match="is a single array"):
        load(folder=tmp_path)


def temperature_arrays():
    rng = np.random.default_rng(0)
    return {
        "temp_f": rng.normal(50, 20, (6, 10)).astype(np.float32),
        "date": np.array([f"2018-01-{day:02d}" for day in range(1, 11)]),
        "station_id": np.array([f"7200{row}" for row in range(6)]),
        "name": np.array([f"Town {row}" for row in range(6)]),
        "state": np.array(["NC"] * 6),
        "lat": np.linspace(30, 40, 6, dtype=np.float32),
        "lon": np.linspace(-100, -80, 6, dtype=np.float32),
        "alt_m": np.arange(6, dtype=np.float32),
        "clean": np.arange(6) != 2,
        "idx150": np.array([1, 4], dtype=np.int16),
        "window_2018_2019": np.array([3, 4, 5], dtype=np.int16),
    }


def test_the_cuts_of_the_temperatures(write, monkeypatch):
    arrays = temperature_arrays()
    folder = write("temperature/us_daily_mean_2017_2021.npz", **arrays)
    monkeypatch.setenv("LGMD_DATA", str(folder))
    paper = datasets.load_temperature()
    np.testing.assert_array_equal(paper.values, arrays["temp_f"][[1, 4]][:, [3, 4, 5]])
    assert paper.values.dtype == np.float64
    assert list(paper.names) == ["Town 1", "Town 4"]
    assert list(paper.station_ids) == ["72001", "72004"]
    np.testing.assert_array_equal(paper.altitude, [1, 4])
    assert paper.dates.dtype == np.dtype("datetime64[D]")
    assert str(paper.dates[0]) == "2018-01-04"
    assert datasets.load_temperature("clean").values.shape == (5, 10)
    np.testing.assert_array_equal(datasets.load_temperature("all").values, arrays["temp_f"])
    assert repr(paper) == "TemperatureData(2 x 3 stations x days, 2018-01-04 to 2018-01-06, 0 missing)"
    with pytest.raises(InvalidParameterError, match="cut must be one of 'paper', 'clean', 'all', but is 'some'"):
        datasets.load_temperature("some")


def test_arrays_that_do_not_belong_together_are_refused(write):
    arrays = temperature_arrays()
    arrays["lat"] = arrays["lat"][:-1]
    folder = write("temperature/us_daily_mean_2017_2021.npz", **arrays)
    with pytest.raises(InvalidDataError, match="lat is for 5 stations, but temp_f for 6"):
        datasets.load_temperature(folder=folder)
    arrays["lat"] = np.zeros((6, 2))
    write("temperature/us_daily_mean_2017_2021.npz", **arrays)
    with pytest.raises(InvalidDataError, match="lat has 2 dimensions, but 1 were expected"):
        datasets.load_temperature(folder=folder)


def test_missing_extremes_become_nan(write):
    folder = write(
        "temperature/us_stations_2018_2019.npz",
        tmax_f=np.array([[50, -999], [-43, 127]], dtype=np.int16),
        tmin_f=np.array([[-999, 20], [-53, 103]], dtype=np.int16),
        date=np.array(["2018-01-01", "2018-01-02"]),
        name=np.array(["A", "B"]),
        state=np.array(["NM", ""]),
        office=np.array(["abq", "phx"]),
        complete=np.array([False, True]),
    )
    extremes = datasets.load_station_extremes(folder=folder)
    np.testing.assert_array_equal(extremes.maximum, [[50, np.nan], [-43, 127]])
    np.testing.assert_array_equal(extremes.minimum, [[np.nan, 20], [-53, 103]])
    np.testing.assert_array_equal(np.isfinite(extremes.maximum + extremes.minimum).all(axis=1), extremes.complete)


def test_unrated_entries_become_nan_and_filled_ones_are_not_shown(write):
    ratings = np.array([[0, 5], [3, 0]], dtype=np.int8)
    folder = write("netflix/netflix_1200.npz", ratings=ratings, filled=np.full((2, 2), 4, dtype=np.int8))
    data = datasets.load_netflix(1200, folder=folder)
    np.testing.assert_array_equal(data.values, [[np.nan, 5], [3, np.nan]])
    assert not hasattr(data, "filled")
    for size in (500, True, "1000"):
        with pytest.raises(InvalidParameterError, match="size must be 1000 or 1200"):
            datasets.load_netflix(size, folder=folder)


def completion_arrays():
    return {
        "shape": np.array([3, 4]),
        "train_user": np.array([2, 0], dtype=np.int16),
        "train_item": np.array([3, 1], dtype=np.int16),
        "train_rating": np.array([4.5, 1.0], dtype=np.float32),
        "test_user": np.array([1], dtype=np.int16),
        "test_item": np.array([0], dtype=np.int16),
        "test_rating": np.array([2.0], dtype=np.float32),
        "graph_user_i": np.array([0, 1, 2, 2], dtype=np.int16),
        "graph_user_j": np.array([1, 0, 2, 0], dtype=np.int16),
        "graph_user_w": np.ones(4, dtype=np.float32),
    }


def test_graphs_are_symmetric_zeros_and_ones_without_a_diagonal(write):
    folder = write("graph_mc/douban.npz", **completion_arrays())
    data = datasets.load_graph_completion("douban", folder=folder)
    assert data.shape == data.train.shape == data.test.shape == (3, 4)
    np.testing.assert_array_equal(data.train.data, [4.5, 1.0])
    np.testing.assert_array_equal(data.train.toarray()[[2, 0], [3, 1]], [4.5, 1.0])
    np.testing.assert_array_equal(data.sample_graph.toarray(), [[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    assert data.feature_graph is None
    assert "2 train, 1 test, graph over users" in repr(data)


def test_indices_outside_the_table_are_refused(write):
    arrays = completion_arrays()
    arrays["test_item"] = np.array([4], dtype=np.int16)
    folder = write("graph_mc/douban.npz", **arrays)
    with pytest.raises(InvalidDataError, match=r"douban.npz has a column number 4 outside 0 to 3"):
        datasets.load_graph_completion("douban", folder=folder)
    arrays = completion_arrays()
    del arrays["graph_user_j"]
    write("graph_mc/douban.npz", **arrays)
    with pytest.raises(InvalidDataError, match="graph_user_i and graph_user_j must be there"):
        datasets.load_graph_completion("douban", folder=folder)


@pytest.mark.parametrize(
    ("name", "file", "turned"), [("coil20", "coil20", False), ("orl", "orl", True), ("yale", "yale", True)]
)
def test_images_stand_upright(write, name, file, turned):
    upright = np.arange(2 * 1024).reshape(2, 32, 32) % 251
    stored = upright.transpose(0, 2, 1) if turned else upright
    folder = write(
        f"images/{file}_32x32.npz", X=stored.reshape(2, 1024).astype(np.uint8), y=np.array([2, 1], dtype=np.uint8)
    )
    data = datasets.load_images(name, folder=folder)
    np.testing.assert_array_equal(data.values.reshape(2, *data.image_shape), upright)
    np.testing.assert_array_equal(data.labels, [1, 0])
    assert data.label_names[data.labels][0].endswith(" 2")


def test_digits_keep_their_names_though_some_are_absent(write):
    folder = write("images/mnist_test.npz", X=np.zeros((2, 16), dtype=np.uint8), y=np.array([7, 2], dtype=np.uint8))
    data = datasets.load_mnist(folder=folder)
    np.testing.assert_array_equal(data.labels, [7, 2])
    assert list(data.label_names) == list("0123456789")
    write("images/mnist_test.npz", X=np.zeros((2, 16)), y=np.array([7, 10]))
    with pytest.raises(InvalidDataError, match="y has classes outside 0 to 9"):
        datasets.load_mnist(folder=folder)
    write("images/mnist_test.npz", X=np.zeros((2, 15)), y=np.array([7, 1]))
    with pytest.raises(InvalidDataError, match="15 columns, which is no square image"):
        datasets.load_mnist(folder=folder)


def test_the_largest_topics_can_be_kept(write):
    counts = sparse.random_array((6, 9), density=0.4, rng=np.random.default_rng(0), format="csr")
    counts.data = np.ceil(5 * counts.data)
    parts = {"data": counts.data.astype(np.uint8), "indices": counts.indices.astype(np.uint16), "indptr": counts.indptr}
    topics = np.array([1, 3, 1, 2, 1, 2], dtype=np.int8)
    folder = write("tdt2/tdt2_top30.npz", **parts, shape=np.array([6, 9]), y=topics)
    data = datasets.load_tdt2(2, folder=folder)
    np.testing.assert_array_equal(data.values.toarray(), counts.toarray()[topics <= 2])
    np.testing.assert_array_equal(data.labels, [0, 0, 1, 0, 1])
    assert list(data.label_names) == ["topic 1", "topic 2"]
    with pytest.raises(InvalidParameterError, match="n_topics must be at most 3"):
        datasets.load_tdt2(folder=folder)
    write("tdt2/tdt2_top30.npz", **parts, shape=np.array([6, 5]), y=topics)
    with pytest.raises(InvalidDataError, match="holds no sparse table"):
        datasets.load_tdt2(3, folder=folder)


def test_genes_and_classes_have_their_names(write):
    table = {"X": np.ones((3, 2), dtype=np.float32), "y": np.array([0, 1, 0], dtype=np.int8)}
    folder = write("expression/golub.npz", **table, gene_id=np.array(["g1", "g2"]))
    golub = datasets.load_expression("golub", folder=folder)
    assert list(golub.label_names[golub.labels]) == ["ALL", "AML", "ALL"]
    assert list(golub.feature_names) == ["g1", "g2"]
    write("expression/mecs.npz", X=table["X"], y=np.array([1, 3, 2], dtype=np.int8))
    mecs = datasets.load_expression("mecs", folder=folder)
    np.testing.assert_array_equal(mecs.labels, [0, 2, 1])
    assert mecs.feature_names is None
    write("expression/pbmc68k_reduced.npz", **table, label_names=np.array(["B", "T", "NK"]), gene=np.array(["a", "b"]))
    with pytest.raises(InvalidDataError, match="y has 2 classes, but 3 have a name"):
        datasets.load_expression("pbmc68k", folder=folder)
    with pytest.raises(InvalidParameterError, match="name must be one of 'pbmc68k', 'mecs', 'golub', but is 'rna'"):
        datasets.load_expression("rna", folder=folder)

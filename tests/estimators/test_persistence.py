"""Models as files."""

import errno
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from lgmd import DGRMD, GPCA, LGMD, PMF, LGMDImputer
from lgmd._archive import read_archive, write_archive
from lgmd.exceptions import CheckpointError, InvalidParameterError, ModelFileError
from lgmd.factors import ConjugateGradientUpdate
from lgmd.graphs import FixedGraph, KNNGraph, ThresholdGraph

INFERENCES = ["map", "variational"]


@pytest.fixture
def frame(make_table):
    _, gappy = make_table()
    return pd.DataFrame(gappy, index=[f"r{i}" for i in range(14)], columns=[f"c{j}" for j in range(11)])


@pytest.mark.parametrize(
    "model",
    [
        PMF(3),
        DGRMD(3, n_neighbors=4),
        LGMD(3, sample_graph="threshold", feature_graph="threshold"),
        LGMD(3, sample_graph=ThresholdGraph(eta=0.4), feature_graph=KNNGraph(3)),
        LGMD(
            3, sample_graph=FixedGraph(np.eye(14), kind="precision"), feature_graph=scipy.sparse.eye_array(11).tocsr()
        ),
        LGMD(3, sample_graph=np.eye(14), random_state=np.random.RandomState(0)),
    ],
    ids=["no graph", "neighbours", "learned", "learners", "given", "given as an array"],
)
@pytest.mark.parametrize("inference", INFERENCES)
def test_a_loaded_model_is_the_saved_one(frame, tmp_path, model, inference):
    path = tmp_path / "model.npz"
    model = clone(model).set_params(inference=inference)
    model.fit(frame).save(path)
    loaded = type(model).load(path)
    np.testing.assert_array_equal(loaded.reconstruct(), model.reconstruct())
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    assert (loaded.sample_graph_ != model.sample_graph_).nnz == 0
    np.testing.assert_array_equal(loaded.history_.objective, model.history_.objective)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert list(loaded.sample_names_in_) == list(frame.index)
    assert (loaded.rank_, loaded.n_iter_, loaded.converged_) == (model.rank_, model.n_iter_, model.converged_)
    assert {name for name in vars(loaded) if name.endswith("_")} == {name for name in vars(model) if name.endswith("_")}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (int, float, str, ThresholdGraph, KNNGraph)):
            assert getattr(loaded, name) == value
    # What was loaded can be fitted again and saved again.
    loaded.fit(frame).save(path)
    np.testing.assert_allclose(type(model).load(path).reconstruct(), model.reconstruct(), atol=1e-10)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"covariance": "diagonal"},
        {"noise": "samples", "sample_graph": "threshold"},
        {"noise": "features", "likelihood": "student"},
    ],
)
@pytest.mark.parametrize("with_gaps", [False, True])
def test_a_loaded_posterior_is_the_saved_one(frame, tmp_path, parameters, with_gaps):
    # With a graph and without gaps the posterior has a form of its own.
    table = frame.copy() if with_gaps else frame.fillna(0.5)
    if "likelihood" in parameters:
        table.iloc[2, 3] = table.iloc[5, 1] = 1e3
    model = LGMD(3, feature_graph="knn", **parameters).fit(table)
    assert (model.posterior_.noise.tails.gross_share > 0) == ("likelihood" in parameters)
    model.save(tmp_path / "model.npz")
    loaded = LGMD.load(tmp_path / "model.npz")
    for ask in (
        lambda model: model.reconstruct(return_std=True)[1],
        lambda model: model.reconstruct(table[:4], return_std=True)[1],
        lambda model: model.transform(table[:4], return_std=True)[1],
        lambda model: model.predict([0, 1], [2, 3], return_std=True)[1],
        lambda model: model.sample_posterior(2, noise=True, random_state=0),
        lambda model: model.score(table),
        lambda model: model.sample_noise_variance_,
        lambda model: model.feature_noise_variance_,
    ):
        np.testing.assert_array_equal(ask(loaded), ask(model))


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_file_loads_in_another_process_without_pickle(frame, tmp_path, inference):
    path = tmp_path / "model.npz"
    model = LGMD(3, inference=inference, sample_graph="threshold").fit(frame)
    model.save(path)
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    code = f"from lgmd import LGMD; print(LGMD.load({str(path)!r}).predict(2, 3).item())"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(output) == model.predict(2, 3)


def test_a_model_that_does_not_fit_on_the_disk_names_its_file(frame, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    model = PMF(3, inference="map").fit(frame)
    monkeypatch.setattr("lgmd.estimators.persistence.write_archive", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*model\.npz'"):
        model.save(tmp_path / "model.npz")


@pytest.mark.parametrize("inference", INFERENCES)
def test_foreign_damaged_and_newer_files_are_refused(frame, tmp_path, inference):
    model = PMF(3, inference=inference).fit(frame)
    path = tmp_path / "model.npz"
    model.save(path)
    with pytest.raises(ModelFileError, match=r"it holds a PMF; use PMF.load"):
        LGMD.load(path)
    whole = path.read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2], pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="cannot be loaded as PMF"):
            PMF.load(path)
    path.write_text("station,a,b\nx,1,2\n")
    with pytest.raises(ModelFileError, match=r"is no model of lgmd, .*Pass a file that save\(\) wrote"):
        PMF.load(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(ModelFileError, match="it has no header"):
        PMF.load(path)
    write_archive(path, {"format": "something else"}, {})
    with pytest.raises(ModelFileError, match=r"it was not written by save\(\)"):
        PMF.load(path)
    path.write_bytes(whole)
    header, arrays = read_archive(path)
    write_archive(path, header | {"version": 99, "lgmd": "9.9"}, arrays)
    with pytest.raises(ModelFileError, match=r"newer version \(lgmd 9.9\); upgrade lgmd"):
        PMF.load(path)
    for lost in arrays:
        write_archive(path, header, {name: array for name, array in arrays.items() if name != lost})
        with pytest.raises(ModelFileError, match="cannot be loaded"):
            PMF.load(path)
    with pytest.raises(FileNotFoundError):
        PMF.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_damaged_byte_is_noticed_or_harmless(frame, tmp_path, inference):
    model = PMF(3, inference=inference).fit(frame)
    path = tmp_path / "model.npz"
    model.save(path)
    whole = path.read_bytes()
    n_refused = 0
    for position in np.linspace(0, len(whole) - 1, 150).astype(int):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            loaded = PMF.load(path)
        except ModelFileError:
            n_refused += 1
        else:  # names and padding of the archive are not part of the model
            np.testing.assert_array_equal(loaded.reconstruct(), model.reconstruct())
            if inference == "variational":
                std = model.reconstruct(return_std=True)[1]
                np.testing.assert_array_equal(loaded.reconstruct(return_std=True)[1], std)
    assert n_refused > 50


@pytest.mark.parametrize("inference", INFERENCES)
def test_the_header_is_plain_json(frame, tmp_path, inference):
    path = tmp_path / "model.npz"
    LGMD(3, inference=inference, sample_graph=ThresholdGraph(eta=0.4)).fit(frame).save(path)
    with np.load(path) as archive:
        text = archive["header"].tobytes().decode()
    assert "NaN" not in text
    assert "Infinity" not in text
    header = json.loads(text)
    assert header["estimator"] == "LGMD"
    assert header["parameters"]["sample_graph"]["learner"] == "ThresholdGraph"


def test_what_cannot_be_written_is_refused_and_leaves_the_old_file(frame, tmp_path):
    path = tmp_path / "model.npz"
    PMF(3).fit(frame).save(path)
    before = path.read_bytes()
    with pytest.raises(InvalidParameterError, match="update is a ConjugateGradientUpdate, which cannot be written"):
        PMF(3, update=ConjugateGradientUpdate()).fit(frame).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        PMF(3).save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("inference", INFERENCES)
def test_imputers_and_components_are_saved_too(frame, tmp_path, inference):
    path = tmp_path / "model.npz"
    imputer = LGMDImputer(LGMD(3, inference=inference, sample_graph=ThresholdGraph(eta=0.4))).fit(frame)
    imputer.save(path)
    loaded = LGMDImputer.load(path)
    np.testing.assert_array_equal(loaded.transform(frame), imputer.transform(frame))
    assert loaded.estimator.sample_graph == ThresholdGraph(eta=0.4)
    table = imputer.transform(frame)
    components = GPCA(3, sample_graph=np.eye(14) * 2).fit(table)
    components.save(path)
    np.testing.assert_array_equal(GPCA.load(path).transform(table), components.transform(table))
    np.testing.assert_array_equal(GPCA.load(path).reconstruct(), components.reconstruct())
    GPCA.from_model(imputer.estimator_).save(path)
    np.testing.assert_array_equal(GPCA.load(path).components_, GPCA.from_model(imputer.estimator_).components_)


@pytest.mark.parametrize("inference", INFERENCES)
def test_files_whose_parts_do_not_fit_are_refused(frame, tmp_path, inference):
    path = tmp_path / "model.npz"
    PMF(3, inference=inference).fit(frame).save(path)
    header, arrays = read_archive(path)
    write_archive(path, header, {**arrays, "sample_factors_": arrays["sample_factors_"][:5]})
    with pytest.raises(
        ModelFileError, match=r"its sample_intercepts_ has shape \(14,\) where the rest asks for \(5,\)"
    ):
        PMF.load(path)
    fitted = {name: value for name, value in header["fitted"].items() if name != "scale_"}
    write_archive(path, header | {"fitted": fitted}, arrays)
    with pytest.raises(ModelFileError, match="it has no scale_"):
        PMF.load(path)
    write_archive(path, header | {"fitted": {**header["fitted"], "transform": 1}}, arrays)
    with pytest.raises(ModelFileError, match="sets 'transform', which is no fitted attribute"):
        PMF.load(path)


@pytest.mark.parametrize(
    "name",
    ["samples.mean", "samples.packed", "features.mean", "features.packed", "features.prior_variance", "noise.samples"],
)
def test_files_whose_posterior_does_not_fit_are_refused(frame, tmp_path, name):
    path = tmp_path / "model.npz"
    LGMD(3).fit(frame).save(path)
    header, arrays = read_archive(path)
    write_archive(path, header, {**arrays, f"posterior_.{name}": arrays[f"posterior_.{name}"][:2]})
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        LGMD.load(path)


def test_a_file_that_has_lost_its_posterior_is_refused(frame, tmp_path):
    path = tmp_path / "model.npz"
    LGMD(3).fit(frame).save(path)
    header, arrays = read_archive(path)
    fitted = {name: value for name, value in header["fitted"].items() if name != "posterior_"}
    write_archive(path, header | {"fitted": fitted}, arrays)
    with pytest.raises(ModelFileError, match="it has no posterior_"):
        LGMD.load(path)


def test_a_function_that_makes_candidates_is_refused_by_files(frame, tmp_path):
    def everyone(n):
        return np.ones((n, n))

    model = LGMD(2, sample_graph=ThresholdGraph(candidates=everyone), feature_graph="none", inference="map")
    with pytest.raises(CheckpointError, match=r"Pass candidates as the adjacency"):
        model.fit(frame, checkpoint=tmp_path / "run")
    model.fit(frame)
    with pytest.raises(InvalidParameterError, match=r"sample_graph\.candidates is a function.*Pass the adjacency"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("fitted", "then"), [("map", "variational"), ("variational", "map")])
def test_a_model_is_loaded_as_it_was_fitted_whatever_was_set_since(make_table, tmp_path, fitted, then):
    model = PMF(2, inference=fitted).fit(make_table()[1])
    model.set_params(inference=then).save(tmp_path / "model.lgmd")
    loaded = PMF.load(tmp_path / "model.lgmd")
    np.testing.assert_array_equal(loaded.reconstruct(), model.reconstruct())


def test_a_model_is_not_saved_where_there_is_no_folder(make_table, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no such folder.*create it first.*nowhere/model\.lgmd"):
        PMF(2).fit(make_table()[1]).save(tmp_path / "nowhere" / "model.lgmd")

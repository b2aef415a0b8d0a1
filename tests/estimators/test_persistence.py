"""Models as files."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lgmd import DGRMD, GPCA, LGMD, PMF, LGMDImputer
from lgmd._archive import read_archive, write_archive
from lgmd.exceptions import InvalidParameterError, ModelFileError
from lgmd.factors import ConjugateGradientUpdate
from lgmd.graphs import FixedGraph, KNNGraph, ThresholdGraph


@pytest.fixture
def frame(make_table):
    _, gappy = make_table()
    return pd.DataFrame(gappy, index=[f"r{i}" for i in range(14)], columns=[f"c{j}" for j in range(11)])


@pytest.mark.parametrize(
    "model",
    [
        PMF(3),
        DGRMD(3, n_neighbors=4),
        LGMD(3),
        LGMD(3, sample_graph=ThresholdGraph(eta=0.4), feature_graph=KNNGraph(3)),
        LGMD(
            3, sample_graph=FixedGraph(np.eye(14), kind="precision"), feature_graph=scipy.sparse.eye_array(11).tocsr()
        ),
        LGMD(3, sample_graph=np.eye(14), random_state=np.random.RandomState(0)),
    ],
)
def test_a_loaded_model_is_the_saved_one(frame, tmp_path, model):
    path = tmp_path / "model.npz"
    model.fit(frame).save(path)
    loaded = type(model).load(path)
    np.testing.assert_array_equal(loaded.reconstruct(), model.reconstruct())
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    assert (loaded.sample_graph_ != model.sample_graph_).nnz == 0
    np.testing.assert_array_equal(loaded.history_.objective, model.history_.objective)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert list(loaded.sample_names_in_) == list(frame.index)
    assert (loaded.rank_, loaded.n_iter_, loaded.converged_) == (model.rank_, model.n_iter_, model.converged_)
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (int, float, str, ThresholdGraph, KNNGraph)):
            assert getattr(loaded, name) == value
    # What was loaded can be fitted again and saved again.
    loaded.fit(frame).save(path)
    np.testing.assert_allclose(type(model).load(path).reconstruct(), model.reconstruct(), atol=1e-10)


def test_a_file_loads_in_another_process_without_pickle(frame, tmp_path):
    path = tmp_path / "model.npz"
    model = LGMD(3).fit(frame)
    model.save(path)
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    code = f"from lgmd import LGMD; print(LGMD.load({str(path)!r}).predict(2, 3).item())"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(output) == model.predict(2, 3)


def test_foreign_damaged_and_newer_files_are_refused(frame, tmp_path):
    model = PMF(3).fit(frame)
    path = tmp_path / "model.npz"
    model.save(path)
    with pytest.raises(ModelFileError, match=r"it holds a PMF; use PMF.load"):
        LGMD.load(path)
    whole = path.read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2], pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="cannot be loaded as PMF"):
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
    write_archive(path, header, {name: array for name, array in arrays.items() if "factors" not in name})
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        PMF.load(path)
    with pytest.raises(FileNotFoundError):
        PMF.load(tmp_path / "nothing.npz")


def test_a_damaged_byte_is_noticed_or_harmless(frame, tmp_path):
    model = PMF(3).fit(frame)
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
    assert n_refused > 50


def test_the_header_is_plain_json(frame, tmp_path):
    path = tmp_path / "model.npz"
    LGMD(3, sample_graph=ThresholdGraph(eta=0.4)).fit(frame).save(path)
    with np.load(path) as archive:
        text = archive["header"].tobytes().decode()
    assert "NaN" not in text
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


def test_imputers_and_components_are_saved_too(frame, tmp_path):
    path = tmp_path / "model.npz"
    imputer = LGMDImputer(LGMD(3, sample_graph=ThresholdGraph(eta=0.4))).fit(frame)
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


def test_files_whose_parts_do_not_fit_are_refused(frame, tmp_path):
    path = tmp_path / "model.npz"
    PMF(3).fit(frame).save(path)
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

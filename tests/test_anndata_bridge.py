"""Models on AnnData."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from lgmd import LGMD, PMF, LGMDImputer, datasets
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.graphs import partial_correlations

anndata = pytest.importorskip("anndata", reason="anndata is not installed: pip install 'lgmd[anndata]'")
from lgmd import anndata as bridge  # noqa: E402

# scipy and pandas deprecate what anndata does inside.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def values():
    data = datasets.make_matrix_normal(40, 30, 6, sample_graph="blocks", feature_graph="blocks", random_state=0)
    return np.maximum(data.observed, 0).astype(np.float32)


@pytest.fixture
def cells(values):
    return annotated(scipy.sparse.csr_matrix(values))


def annotated(table):
    cells = anndata.AnnData(table)
    cells.obs_names = [f"cell {i}" for i in range(table.shape[0])]
    cells.var_names = [f"gene {j}" for j in range(table.shape[1])]
    cells.obs["batch"] = "a"
    return cells


def quick():
    return LGMD(3, sample_graph="knn", feature_graph="knn", max_iter=200, tol=1e-2, random_state=0)


def point_estimate():
    return PMF(2, inference="map", max_iter=200, tol=1e-3)


def test_results_are_where_single_cell_tools_look(cells, values):
    model = quick()
    assert bridge.fit(cells, model) is cells
    reference = quick().fit(values)
    np.testing.assert_array_equal(cells.obsm["X_lgmd"], reference.sample_factors_)
    np.testing.assert_array_equal(cells.varm["lgmd"], reference.feature_factors_)
    for pairs, precision in ((cells.obsp, reference.sample_graph_), (cells.varp, reference.feature_graph_)):
        np.testing.assert_array_equal(pairs["lgmd_precision"].toarray(), precision.toarray())
        weights = pairs["lgmd_connectivities"]
        np.testing.assert_allclose(weights.toarray(), np.abs(partial_correlations(precision).toarray()))
        assert weights.nnz > 0
        assert weights.diagonal().sum() == 0
    assert list(model.sample_names_in_[:2]) == ["cell 0", "cell 1"]
    assert list(model.feature_names_in_[:2]) == ["gene 0", "gene 1"]
    assert list(cells.obs["batch"].unique()) == ["a"]
    assert "lgmd" not in cells.layers


def test_scanpy_finds_the_graph_by_its_key(cells):
    bridge.fit(cells, quick(), key="mine")
    entry = cells.uns["mine"]
    graph, distances = (cells.obsp[entry[f"{name}_key"]] for name in ("connectivities", "distances"))
    assert isinstance(graph, scipy.sparse.csr_matrix)
    assert graph.data.min() > 0
    X = cells.obsm[entry["params"]["use_rep"]]
    np.testing.assert_array_equal(distances.indices, graph.indices)
    i, j = graph.nonzero()
    np.testing.assert_allclose(np.asarray(distances[i, j]).ravel(), np.linalg.norm(X[i] - X[j], axis=1), rtol=1e-5)
    assert entry["params"]["n_neighbors"] == round(graph.nnz / 40)
    assert {"n_neighbors", "method", "metric"} <= set(entry["params"])


def test_zeros_of_sparse_and_dense_tables_mean_the_same(values):
    sparse, dense = scipy.sparse.csr_matrix(values), values
    for zeros, table in (("observed", values), ("missing", np.where(values == 0, np.nan, values))):
        expected = point_estimate().fit(table).sample_factors_
        for storage in (sparse, scipy.sparse.csc_matrix(sparse), dense):
            found = bridge.fit(annotated(storage.copy()), point_estimate(), zeros=zeros)
            np.testing.assert_allclose(found.obsm["X_lgmd"], expected, rtol=1e-4, atol=1e-5)


def test_stored_zeros_are_gaps_too_where_zeros_are_missing(values):
    stored = scipy.sparse.csr_matrix(values)
    explicit = scipy.sparse.csr_matrix(np.where(values == 0, 1, values))
    explicit.data[values.ravel() == 0] = 0
    assert explicit.nnz > stored.nnz
    first, second = (
        bridge.fit(annotated(table), point_estimate(), zeros="missing").obsm["X_lgmd"] for table in (stored, explicit)
    )
    np.testing.assert_array_equal(first, second)
    assert explicit.nnz > stored.nnz


def test_the_denoised_table_is_kept_on_request_and_goes_with_its_fit(cells, values):
    model = point_estimate()
    bridge.fit(cells, model, denoise=True)
    np.testing.assert_allclose(cells.layers["lgmd"], model.reconstruct())
    bridge.fit(cells, point_estimate(), layer="lgmd")
    assert cells.uns["lgmd"]["layer"] == "lgmd"
    assert "lgmd" not in cells.layers
    cells.layers["lgmd"] = values
    bridge.fit(cells, point_estimate())
    assert "lgmd" in cells.layers  # somebody else's


def test_a_copy_leaves_the_original_alone_and_a_view_becomes_a_table(cells):
    copied = bridge.fit(cells, point_estimate(), copy=True)
    assert "X_lgmd" in copied.obsm
    assert not cells.obsm
    assert not cells.uns
    view = cells[:20]
    bridge.fit(view, point_estimate())
    assert view.obsm["X_lgmd"].shape[0] == 20
    assert not cells.obsm


def test_the_default_model_fits_small_tables_and_says_how_it_went(values):
    cells = bridge.fit(annotated(values[:12, :9]), checkpoint=None)
    entry = cells.uns["lgmd"]
    assert entry["estimator"] == "LGMD"
    assert entry["settings"]["n_components"] == 9
    assert entry["rank"] == cells.obsm["X_lgmd"].shape[1] == cells.varm["lgmd"].shape[1]
    assert entry["converged"]
    assert len(entry["objective"]) == entry["n_iter"]


def test_results_survive_a_file(cells, tmp_path):
    bridge.fit(cells, LGMD(3, sample_graph=scipy.sparse.eye_array(40), max_iter=200, tol=1e-2), denoise=True)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(read.obsm["X_lgmd"], cells.obsm["X_lgmd"])
    np.testing.assert_array_equal(read.varp["lgmd_precision"].toarray(), cells.varp["lgmd_precision"].toarray())
    assert read.uns["lgmd"]["settings"]["random_state"] == "None"
    assert read.uns["lgmd"]["connectivities_key"] == "lgmd_connectivities"
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(InvalidDataError, match=r"backed by a file.*adata.to_memory\(\)"):
        bridge.fit(backed)
    backed.file.close()


def test_large_sparse_tables_are_refused_before_they_fill_the_memory():
    empty = annotated(scipy.sparse.csr_matrix((60_000, 20_000), dtype=np.float32))
    with pytest.raises(
        InvalidDataError, match=r"60,000 x 20,000 table is sparse.* 4.8 GB.*max_gigabytes=4\. Keep fewer"
    ):
        bridge.fit(empty)
    small = annotated(scipy.sparse.csr_matrix(np.ones((30, 20))))
    with pytest.raises(InvalidDataError, match="store it in single precision"):
        bridge.fit(small, max_gigabytes=1e-6)
    assert not small.obsm


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zeros": "gaps"}, "zeros must be one of 'observed', 'missing'"),
        ({"layer": "counts"}, "layer='counts' is not in adata.layers. There are: none"),
        ({"key": "neighbors"}, "where scanpy keeps its own graph"),
        ({"key": "a/b"}, "a name without a slash"),
        ({"key": ""}, "a name without a slash"),
        ({"model": LGMDImputer()}, "must be a factorisation such as LGMD"),
        ({"max_gigabytes": -1}, "max_gigabytes must not be negative"),
    ],
)
def test_wrong_wishes_are_refused_and_nothing_is_written(cells, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        bridge.fit(cells, **options)
    assert not cells.obsm
    assert not cells.uns


def test_what_is_no_anndata_or_has_no_table_is_refused(values):
    with pytest.raises(InvalidDataError, match="must be an AnnData, but is a ndarray"):
        bridge.fit(values)
    with pytest.raises(InvalidDataError, match=r"adata has no X\. Pass layer="):
        bridge.fit(anndata.AnnData(obs={"a": [1, 2]}))


def test_without_anndata_the_error_names_the_extra():
    code = "import sys; sys.modules['anndata'] = None; import lgmd.anndata as bridge; bridge.fit(None)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: lgmd.anndata needs anndata" in ended.stderr
    assert "pip install 'lgmd[anndata]'" in ended.stderr

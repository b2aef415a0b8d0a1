"""What a sparse file leaves out: a gap, or a zero if the reader says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

from lgmd.exceptions import TableError
from lgmd.tables import read_table, reading


@pytest.fixture
def counts(rng):
    return rng.poisson(1.5, (12, 9)).astype(float)


@pytest.fixture
def path(tmp_path, counts):
    scipy.io.mmwrite(tmp_path / "counts.mtx", scipy.sparse.coo_array(counts))
    return tmp_path / "counts.mtx"


def test_zeros_are_gaps_unless_they_are_values(path, counts):
    gaps, zeros = read_table(path), read_table(path, zeros=True)
    assert gaps.n_observed == np.count_nonzero(counts)
    assert not zeros.is_sparse
    np.testing.assert_array_equal(zeros.values, counts)


def test_steps_come_after_the_zeros(path, counts):
    logs = np.log1p(counts.T)
    found = read_table(path, zeros=True, transpose=True, log1p=True, scale=True).values
    np.testing.assert_allclose(found, (logs - logs.mean(axis=0)) / logs.std(axis=0), atol=1e-12)


def test_pairs_that_a_long_table_leaves_out(tmp_path):
    (tmp_path / "t.csv").write_text("cell,gene,count\na,x,2\nb,y,3\na,z,1\n")
    table = read_table(tmp_path / "t.csv", long=("cell", "gene", "count"), zeros=True)
    np.testing.assert_array_equal(table.values, [[2, 0, 1], [0, 3, 0]])


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_gaps_that_a_long_table_writes_stay_gaps(name, tmp_path):
    frame = pd.DataFrame({"cell": list("aabb"), "gene": list("xyyz"), "count": [2, np.nan, 3, -9]})
    frame.to_csv(tmp_path / name, index=False) if name == "t.csv" else frame.to_parquet(tmp_path / name)
    options = {"long": ("cell", "gene", "count"), "missing": ["-9"]}
    table = read_table(tmp_path / name, zeros=True, **options)
    np.testing.assert_array_equal(table.values, [[2, np.nan, 0], [0, 3, np.nan]])
    assert read_table(tmp_path / name, **options).n_observed == 2


@pytest.mark.parametrize("name", ["t.npz", "t.mtx", "t.h5ad"])
def test_gaps_that_a_sparse_file_stores_stay_gaps(name, tmp_path):
    stored = scipy.sparse.csr_array(np.array([[2, np.nan, 0, -9], [0, 3, 0, 1], [0, 0, 4, 0.0]], dtype=np.float32))
    if name == "t.npz":
        scipy.sparse.save_npz(tmp_path / name, stored)
    elif name == "t.mtx":
        scipy.io.mmwrite(tmp_path / name, stored)
    else:
        anndata = pytest.importorskip("anndata")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anndata.AnnData(scipy.sparse.csr_matrix(stored)).write_h5ad(tmp_path / name)
    table = read_table(tmp_path / name, zeros=True, missing=[-9])
    np.testing.assert_array_equal(table.values, [[2, np.nan, 0, np.nan], [0, 3, 0, 1], [0, 0, 4, 0]])
    assert read_table(tmp_path / name, missing=[-9]).n_observed == 4


def test_dense_tables_stay_as_they_are(tmp_path):
    (tmp_path / "t.csv").write_text("name,a,b\nx,1,\ny,,0\n")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv", zeros=True).values, [[1, np.nan], [np.nan, 0]])


def test_more_zeros_than_memory_should_hold_are_refused(path, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_DENSE", 800)
    with pytest.raises(TableError, match=r"12 x 9 entries, .* with their zeros.*Keep the columns of interest"):
        read_table(path, zeros=True)
    assert read_table(path).is_sparse

import hashlib

import numpy as np
import pytest
import scipy.sparse

from lgmd.observed import DenseObserved, SparseObserved, as_observed, dense

N, P, K = 9, 7, 3


def make_table(kind, dtype=np.float64, seed=0):
    """A table with gaps or without, and whether each entry is observed."""
    rng = np.random.default_rng(seed)
    table = (1 + rng.standard_normal((N, P))).astype(dtype)
    mask = np.ones((N, P), dtype=bool)
    if kind == "sparse":
        mask = rng.random((N, P)) < 0.6
        mask[np.arange(N), np.arange(N) % P] = True
        table[~mask] = np.nan
    return table, mask


def make_model(dtype=np.float64, seed=1):
    rng = np.random.default_rng(seed)
    shapes = ((N,), (P,), (N, K), (P, K))
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


@pytest.fixture(params=["dense", "sparse"])
def kind(request):
    return request.param


@pytest.fixture(params=[np.float64, np.float32])
def dtype(request):
    return request.param


def close(dtype):
    return {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-13}


def test_the_storage_fits_the_gaps(kind):
    observed = as_observed(make_table(kind)[0])
    assert isinstance(observed, DenseObserved if kind == "dense" else SparseObserved)
    assert observed.is_complete == (kind == "dense")


def test_counts_are_those_of_the_mask(kind):
    table, mask = make_table(kind)
    observed = as_observed(table)
    assert observed.shape == (N, P)
    assert observed.n_observed == mask.sum()
    np.testing.assert_array_equal(observed.row_counts, mask.sum(axis=1))
    np.testing.assert_array_equal(observed.T.row_counts, mask.sum(axis=0))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_entry_counts_without_its_sign(kind, sign):
    table, _ = make_table(kind)
    table[2, 2] = sign * 50.0
    assert as_observed(table).largest() == 50.0
    assert as_observed(table).T.largest() == 50.0


def test_residual_sums_agree_with_numpy(kind, dtype):
    table, mask = make_table(kind, dtype)
    row_offsets, column_offsets, X, W = make_model(dtype)
    residuals = (table - row_offsets[:, None] - column_offsets - X @ W.T)[mask].astype(float)
    observed = as_observed(table)
    precision = 1e-5 if dtype == np.float32 else 1e-12
    for squares, total in (
        observed.residual_sums(row_offsets, column_offsets, X, W),
        observed.T.residual_sums(column_offsets, row_offsets, W, X),
    ):
        assert squares == pytest.approx(np.sum(residuals**2), rel=precision)
        assert total == pytest.approx(np.sum(residuals), abs=precision * np.abs(residuals).sum())


def test_a_complete_table_and_its_sparse_form_have_the_same_residual_sums():
    table, _ = make_table("dense")
    model = make_model()
    complete = as_observed(table)
    by_entries = SparseObserved.from_csr(scipy.sparse.csr_array(table))
    assert by_entries.is_complete
    np.testing.assert_allclose(by_entries.residual_sums(*model), complete.residual_sums(*model), rtol=1e-12)
    for one, other in ((by_entries, complete), (by_entries.T, complete.T)):
        for found, wanted in zip(one.entries(), other.entries(), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype


def test_residual_sums_of_single_precision_are_summed_in_double():
    table = np.full((3000, 400), 1.1, dtype=np.float32)
    nothing = np.zeros((3000, 1), np.float32), np.zeros((400, 1), np.float32)
    squares, total = as_observed(table).residual_sums(nothing[0][:, 0], nothing[1][:, 0], *nothing)
    entry = float(np.float32(1.1))
    assert squares == pytest.approx(table.size * entry**2, rel=1e-6)
    assert total == pytest.approx(table.size * entry, rel=1e-7)


def test_blocks_of_a_large_table_make_no_difference(monkeypatch):
    table, _ = make_table("dense")
    model = make_model()
    whole = as_observed(table)
    expected, digest = whole.residual_sums(*model), digest_of(whole)
    for n_entries in (1, 10, 30):
        monkeypatch.setattr(dense, "_BLOCK_ENTRIES", n_entries)
        assert len(list(whole.digest_parts())) > 2
        np.testing.assert_allclose(whole.residual_sums(*model), expected, rtol=1e-12)
        assert digest_of(whole) == digest


def test_the_residual_matrix_is_the_table_less_its_offsets(kind, dtype):
    table, mask = make_table(kind, dtype)
    row_offsets, column_offsets, _, _ = make_model(dtype)
    expected = np.where(mask, table - row_offsets[:, None] - column_offsets, 0)
    observed = as_observed(table)
    for found, wanted in (
        (observed.residual_matrix(row_offsets, column_offsets), expected),
        (observed.T.residual_matrix(column_offsets, row_offsets), expected.T),
    ):
        assert found.dtype == dtype
        assert scipy.sparse.issparse(found) == (kind == "sparse")
        full = found.toarray() if kind == "sparse" else found
        np.testing.assert_allclose(full, wanted, **close(dtype))


def test_a_sparse_residual_matrix_stores_what_is_observed_even_where_it_vanishes():
    table, mask = make_table("sparse")
    table[mask] = 2.0
    residuals = as_observed(table).residual_matrix(np.ones(N), np.ones(P))
    assert residuals.nnz == mask.sum()
    assert np.all(residuals.data == 0)


def test_fill_puts_observed_entries_over_an_estimate(kind, dtype):
    table, mask = make_table(kind, dtype)
    for observed, wanted, seen in ((as_observed(table), table, mask), (as_observed(table).T, table.T, mask.T)):
        estimate = np.full(wanted.shape, 7.0, dtype)
        found = observed.fill(estimate)
        assert found is estimate
        np.testing.assert_array_equal(found, np.where(seen, wanted, 7.0))


def test_division_makes_a_new_table(kind, dtype):
    table, mask = make_table(kind, dtype)
    observed = as_observed(table)
    halved = observed.divided(2.0)
    assert type(halved) is type(observed)
    assert halved.dtype == dtype
    blank = np.zeros((N, P), dtype)
    for scaled, factor in ((halved, 2), (observed, 1)):
        np.testing.assert_array_equal(scaled.fill(blank.copy()), np.where(mask, table / dtype(factor), 0))
        np.testing.assert_array_equal(scaled.T.fill(blank.T.copy()), np.where(mask, table / dtype(factor), 0).T)


def test_the_transpose_shares_the_data(kind):
    observed = as_observed(make_table(kind)[0])
    turned = observed.T
    assert turned.shape == (P, N)
    if kind == "dense":
        assert np.shares_memory(turned.values, observed.values)
    else:
        assert turned.by_rows is observed.by_columns
        assert turned.by_columns is observed.by_rows
        assert np.shares_memory(observed.divided(3.0).by_rows.indices, observed.by_rows.indices)
        assert np.shares_memory(observed.to_csr().indices, observed.by_rows.indices)
        assert np.shares_memory(observed.to_csr().data, observed.by_rows.values)


def test_a_complete_table_is_not_copied():
    table, _ = make_table("dense")
    assert np.shares_memory(as_observed(table).values, table)


def test_products_and_row_sums_of_a_complete_table():
    table, _ = make_table("dense")
    observed = as_observed(table)
    vectors = np.random.default_rng(2).standard_normal((P, 2))
    np.testing.assert_allclose(observed.product(vectors), table @ vectors, rtol=1e-12)
    np.testing.assert_allclose(observed.row_sums(), table.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(observed.T.row_sums(), table.sum(axis=0), rtol=1e-12)


def test_entries_follow_the_rows(kind):
    table, mask = make_table(kind)
    for observed, wanted, seen in ((as_observed(table), table, mask), (as_observed(table).T, table.T, mask.T)):
        indptr, indices, values, blocks = observed.entries()
        np.testing.assert_array_equal(np.diff(indptr), seen.sum(axis=1))
        np.testing.assert_array_equal(indices, np.nonzero(seen)[1])
        np.testing.assert_array_equal(values, wanted[seen])
        assert (blocks[0], blocks[-1]) == (0, len(wanted))


def digest_of(observed):
    digest = hashlib.sha256()
    for part in observed.digest_parts():
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def test_digests_tell_tables_apart(kind):
    table, mask = make_table(kind)
    observed = as_observed(table)
    assert digest_of(observed) == digest_of(as_observed(table.copy()))
    assert digest_of(observed) == digest_of(observed.T.T)
    changed = table.copy()
    changed[mask] += np.arange(mask.sum()) == 5
    moved = np.where(np.isnan(table), 1.0, table)
    moved[0, 0] = np.nan
    others = [changed, table.T, table[::-1], moved, table.astype(np.float32)]
    digests = {digest_of(as_observed(other)) for other in others} | {digest_of(observed)}
    assert len(digests) == 6


def test_digests_tell_shapes_apart():
    values = np.arange(12.0)
    assert digest_of(as_observed(values.reshape(3, 4))) != digest_of(as_observed(values.reshape(4, 3)))
    narrow = scipy.sparse.csr_array(np.eye(3))
    wide = scipy.sparse.csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(3, 4))
    assert digest_of(as_observed(narrow)) != digest_of(as_observed(wide, allow_empty_columns=True))

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lgmd.observed import DenseObserved, SparseObserved, as_observed
from lgmd.observed.sparse import _entries

GAPS = np.array([[1.0, np.nan, 0.0, 2.0], [np.nan, -3.0, 4.0, np.nan], [5.0, 0.0, np.nan, 6.0]])


def stored(table):
    """The csr_array whose stored entries are those of a table that are not NaN, zeros among them."""
    rows, columns = np.nonzero(~np.isnan(table))
    return scipy.sparse.csr_array((table[rows, columns], (rows, columns)), shape=table.shape)


def masked(table):
    """Garbage behind the mask, infinite and finite."""
    mask = np.isnan(table)
    garbage = np.where(np.indices(table.shape)[1] % 2, np.inf, 99.0).astype(table.dtype)
    return np.ma.array(np.where(mask, garbage, table), mask=mask)


def as_table(observed):
    """Back to an array with NaN in the gaps."""
    return observed.fill(np.full(observed.shape, np.nan, dtype=observed.dtype))


def assert_same(found, expected):
    assert type(found) is type(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.n_observed == expected.n_observed
    for one, other in ((found, expected), (found.T, expected.T)):
        for part, wanted in zip(one.entries(), other.entries(), strict=True):
            assert part.dtype == wanted.dtype
            np.testing.assert_array_equal(part, wanted)


@st.composite
def tables(draw):
    shape = draw(st.tuples(st.integers(2, 7), st.integers(2, 7)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    width = 32 if dtype == np.float32 else 64
    values = draw(hnp.arrays(dtype, shape, elements=st.floats(-1e6, 1e6, width=width)))
    gaps = draw(hnp.arrays(bool, shape, elements=st.booleans()))
    values[gaps] = np.nan
    assume(not gaps.all())
    return values


@given(tables())
@settings(max_examples=80, deadline=None)
def test_all_forms_of_a_table_are_the_same(table):
    allow = {"allow_empty_rows": True, "allow_empty_columns": True}
    expected = as_observed(table, **allow)
    np.testing.assert_array_equal(as_table(expected), table)
    assert isinstance(expected, SparseObserved if np.isnan(table).any() else DenseObserved)
    assert expected.dtype == table.dtype
    compressed = stored(table)
    forms = [masked(table), pd.DataFrame(table), np.asfortranarray(table)]
    forms += [compressed, compressed.tocsc(), compressed.tocoo(), scipy.sparse.csr_matrix(compressed)]
    if table.dtype == np.float64:
        forms += [table.tolist(), table.astype(object), pd.DataFrame(table).astype("Float64")]
    for form in forms:
        assert_same(as_observed(form, **allow), expected)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_transposing_a_table_is_transposing_what_is_observed(table):
    allow = {"allow_empty_rows": True, "allow_empty_columns": True}
    observed = as_observed(table, **allow)
    np.testing.assert_array_equal(as_table(observed.T), table.T)
    assert_same(observed.T.T, observed)
    for found, wanted in zip(
        observed.T.entries()[:3], as_observed(np.ascontiguousarray(table.T), **allow).entries()[:3], strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_the_entries_are_those_of_the_table_in_both_orders():
    observed = as_observed(GAPS)
    assert isinstance(observed, SparseObserved)
    assert observed.shape == (3, 4)
    assert observed.n_observed == 8
    assert not observed.is_complete
    indptr, indices, values, blocks = observed.entries()
    assert indptr.tolist() == [0, 3, 5, 8]
    assert indices.tolist() == [0, 2, 3, 1, 2, 0, 1, 3]
    assert values.tolist() == [1, 0, 2, -3, 4, 5, 0, 6]
    assert (blocks[0], blocks[-1]) == (0, 3)
    indptr, indices, values, blocks = observed.T.entries()
    assert indptr.tolist() == [0, 2, 4, 6, 8]
    assert indices.tolist() == [0, 2, 1, 2, 0, 1, 0, 2]
    assert values.tolist() == [1, 5, -3, 0, 0, 4, 2, 6]
    assert (blocks[0], blocks[-1]) == (0, 4)


def test_an_observed_table_passes_through():
    observed = as_observed(GAPS)
    assert as_observed(observed) is observed


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_an_explicit_zero_is_observed(form):
    table = np.where(np.isnan(GAPS), 0.0, np.where(GAPS == 0, 9.0, GAPS))
    sparse = scipy.sparse.coo_array(table).asformat(form)
    assert as_observed(sparse).n_observed == 8
    if form in ("csr", "csc", "coo"):
        sparse.data[sparse.data == 9.0] = 0.0
        assert_same(as_observed(sparse), as_observed(GAPS))


def test_all_of_a_stored_diagonal_is_observed():
    data = np.array([[1.0, 0.0, 3.0, 4.0], [7.0, 5.0, 0.0, 6.0]])
    sparse = scipy.sparse.dia_array((data, [0, 1]), shape=(3, 4))
    expected = np.full((3, 4), np.nan)
    for i in range(3):
        expected[i, i], expected[i, i + 1] = data[0, i], data[1, i + 1]
    assert_same(as_observed(sparse), as_observed(expected))
    below = scipy.sparse.dia_array((np.array([[0.0, 2.0, 3.0]]), [-1]), shape=(4, 3))
    observed = as_observed(below, allow_empty_rows=True)
    assert observed.n_observed == 3
    assert observed.T.entries().indices.tolist() == [1, 2, 3]


@pytest.mark.parametrize("rows", [[0, 1], [2], [0, 1, 2]])
def test_a_stored_nan_is_a_gap(rows):
    sparse = stored(GAPS)
    gappy = GAPS.copy()
    for row in rows:  # the first stored entry of some rows, among them the last
        gappy[row, sparse.indices[sparse.indptr[row]]] = np.nan
        sparse.data[sparse.indptr[row]] = np.nan
    expected = as_observed(gappy, allow_empty_rows=True, allow_empty_columns=True)
    assert_same(as_observed(sparse, allow_empty_rows=True, allow_empty_columns=True), expected)


@given(tables(), st.data())
@settings(max_examples=40, deadline=None)
def test_stored_nans_among_empty_rows_are_gaps(table, data):
    sparse = stored(table)
    emptied = data.draw(hnp.arrays(bool, sparse.nnz, elements=st.booleans()))
    assume(not emptied.all())
    rows = np.repeat(np.arange(table.shape[0]), np.diff(sparse.indptr))
    table[rows[emptied], sparse.indices[emptied]] = np.nan
    sparse.data[emptied] = np.nan
    allow = {"allow_empty_rows": True, "allow_empty_columns": True}
    assert_same(as_observed(sparse, **allow), as_observed(table, **allow))


def test_unsorted_indices_are_sorted_in_a_copy():
    sparse = scipy.sparse.csr_array(
        (np.array([3.0, 1.0, 2.0, 4.0]), np.array([2, 0, 1, 0]), np.array([0, 2, 4])), shape=(2, 3)
    )
    observed = as_observed(sparse)
    np.testing.assert_array_equal(as_table(observed), [[1, np.nan, 3], [4, 2, np.nan]])
    assert observed.entries().indices.tolist() == [0, 2, 0, 1]
    assert sparse.indices.tolist() == [2, 0, 1, 0]
    assert sparse.data.tolist() == [3, 1, 2, 4]


def test_a_complete_sparse_table_is_dense():
    table = np.arange(6.0).reshape(2, 3)
    rows, columns = np.indices(table.shape)
    sparse = scipy.sparse.coo_array((table.ravel(), (rows.ravel(), columns.ravel())), shape=(2, 3))
    observed = as_observed(sparse)
    assert isinstance(observed, DenseObserved)
    np.testing.assert_array_equal(observed.values, table)
    assert observed.is_complete


def test_indices_have_32_bits_while_they_fit():
    sparse = stored(GAPS)
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    for form in (sparse, sparse.tocsc(), GAPS):
        observed = as_observed(form)
        for side in (observed, observed.T):
            assert side.entries().indices.dtype == np.int32
            assert side.entries().indptr.dtype == np.int64


def test_indices_of_very_wide_tables_have_64_bits():
    width = 2**31 + 10
    sparse = scipy.sparse.coo_array((np.ones(3), ([0, 1, 1], [5, 7, width - 1])), shape=(2, width))
    # A column order of that length would take gigabytes: the row order stands for both.
    rows = sparse.tocsr()
    entries = _entries(rows.indptr, rows.indices, rows.data, width)
    assert entries.indices.dtype == np.int64
    assert entries.indices.tolist() == [5, 7, width - 1]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.float16, np.float32),
        (np.longdouble, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (np.uint16, np.float64),
        (np.bool_, np.float64),
    ],
)
def test_every_real_type_becomes_single_or_double(given, expected):
    table = np.array([[1, 0, 1], [0, 1, 1]]).astype(given)
    gaps = np.array([[0, 0, 1], [0, 0, 0]], dtype=bool)
    forms = [table, np.ma.array(table, mask=gaps)]
    native = np.dtype(given).newbyteorder("=")
    if native not in (np.float16,):
        forms += [scipy.sparse.csr_array(table.astype(native))]
        if native != np.longdouble:
            forms += [pd.DataFrame(table.astype(native))]
    else:
        forms += [pd.DataFrame(table)]
    for form in forms:
        observed = as_observed(form)
        assert observed.dtype == expected
        assert observed.dtype.isnative
        found = as_table(observed)
        seen = ~np.isnan(found)
        np.testing.assert_array_equal(found[seen], table[seen])


def test_one_double_column_makes_a_frame_double():
    frame = pd.DataFrame({"a": np.float32([1.5, 2.5]), "b": [1.1, np.nan]})
    observed = as_observed(frame)
    assert observed.dtype == np.float64
    assert observed.entries().values.tolist() == [1.5, 1.1, 2.5]


@pytest.mark.parametrize("table", [GAPS, np.arange(12.0).reshape(3, 4)], ids=["gaps", "complete"])
def test_read_only_strided_reversed_and_mapped_arrays_are_read(table, tmp_path):
    expected = as_observed(table)
    padded = np.full((6, 12), -1.0)
    padded[::2, ::3] = table
    frozen = table.copy()
    frozen.setflags(write=False)
    np.save(tmp_path / "table.npy", table)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    for form in (padded[::2, ::3], frozen, np.asfortranarray(table), table[::-1].copy()[::-1], mapped):
        assert_same(as_observed(form), expected)


def every_form(table):
    return {
        "array": table.copy(),
        "masked": masked(table),
        "frame": pd.DataFrame(table),
        "csr": stored(table),
        "csc": stored(table).tocsc(),
        "coo": stored(table).tocoo(),
        "object": np.where(np.isnan(table), None, table),
    }


def snapshot(form):
    if scipy.sparse.issparse(form):
        coordinates = form.coords if form.format == "coo" else (form.indices, form.indptr)
        return [form.data.copy(), *(part.copy() for part in coordinates)]
    if isinstance(form, np.ma.MaskedArray):
        return [form.data.copy(), form.mask.copy()]
    return [np.array(form)]


@pytest.mark.parametrize("name", every_form(GAPS))
def test_nothing_in_the_input_is_changed(name):
    form = every_form(GAPS)[name]
    before = snapshot(form)
    observed = as_observed(form)
    observed.divided(2.0)
    observed.residual_matrix(np.ones(3), np.ones(4))
    observed.residual_sums(np.ones(3), np.ones(4), np.ones((3, 2)), np.ones((4, 2)))
    as_table(observed.T)
    for now, then in zip(snapshot(form), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_frozen_sparse_arrays_are_read():
    sparse = stored(GAPS)
    for array in (sparse.data, sparse.indices, sparse.indptr):
        array.setflags(write=False)
    assert_same(as_observed(sparse), as_observed(GAPS))


NULLABLE = {
    "Float64": pd.array([1.5, pd.NA, 3.0], dtype="Float64"),
    "Int64": pd.array([1, pd.NA, 3], dtype="Int64"),
    "boolean": pd.array([True, pd.NA, False], dtype="boolean"),
    "object with None": np.array([1.5, None, 3], dtype=object),
    "object with NA": np.array([1.5, pd.NA, 3], dtype=object),
    "categories": pd.Categorical([4, None, 7]),
}


@pytest.mark.parametrize("name", NULLABLE)
def test_whatever_pandas_calls_missing_is_a_gap(name):
    column = NULLABLE[name]
    frame = pd.DataFrame({"first": column, "second": [1.0, np.nan, 2.0], "third": [1, 2, 3]})
    expected = np.array([[float(column[0]), 1.0, 1], [np.nan, np.nan, 2], [float(column[2]), 2.0, 3]])
    observed = as_observed(frame)
    assert observed.column_names.tolist() == ["first", "second", "third"]
    assert_same(observed, as_observed(expected))


def test_nullable_single_precision_stays_single():
    frame = pd.DataFrame({"a": pd.array([1.5, pd.NA], dtype="Float32"), "b": np.float32([1, 2])})
    observed = as_observed(frame)
    assert observed.dtype == np.float32
    assert observed.n_observed == 3


def test_lists_and_object_arrays_may_hold_none_and_na():
    expected = as_observed(np.array([[1.0, np.nan], [np.nan, 4.0]]))
    assert_same(as_observed([[1, None], [pd.NA, True * 4]]), expected)
    assert_same(as_observed(np.array([[1, None], [np.nan, 4]], dtype=object)), expected)


def test_masked_objects_need_not_be_numbers():
    table = np.ma.array(np.array([[1, "?"], [2.5, 3]], dtype=object), mask=[[0, 1], [0, 0]])
    assert_same(as_observed(table), as_observed(np.array([[1.0, np.nan], [2.5, 3.0]])))


def test_a_mask_without_gaps_is_a_complete_table():
    observed = as_observed(np.ma.array(np.arange(6.0).reshape(2, 3)))
    assert isinstance(observed, DenseObserved)


def test_masked_entries_may_be_nan_too():
    table = np.ma.array(GAPS, mask=np.indices(GAPS.shape)[0] + np.indices(GAPS.shape)[1] == 0)
    expected = GAPS.copy()
    expected[0, 0] = np.nan
    assert_same(as_observed(table), as_observed(expected))


def test_names_are_kept_and_follow_the_transpose():
    frame = pd.DataFrame(GAPS, index=["x", "y", "z"], columns=pd.date_range("2020-01-01", periods=4))
    for observed in (as_observed(frame), as_observed(frame.fillna(0))):
        assert observed.row_names.tolist() == ["x", "y", "z"]
        assert observed.column_names[0].startswith("2020-01-01")
        turned = observed.T
        assert turned.column_names.tolist() == ["x", "y", "z"]
        assert turned.row_names.tolist() == observed.column_names.tolist()
        assert turned.T.row_names.tolist() == ["x", "y", "z"]
        scaled = observed.divided(2.0)
        assert scaled.row_names is observed.row_names
        assert scaled.column_names is observed.column_names


def test_a_table_without_names_has_none():
    for form in (GAPS, pd.DataFrame(GAPS), stored(GAPS)):
        observed = as_observed(form)
        assert observed.row_names is None
        assert observed.column_names is None


def test_a_column_name_may_occur_twice():
    frame = pd.DataFrame(np.array([[1, None, 2], [3, 4, 5]], dtype=object), columns=["a", "a", "b"])
    observed = as_observed(frame)
    assert observed.column_names.tolist() == ["a", "a", "b"]
    assert_same(observed, as_observed(np.array([[1, np.nan, 2], [3, 4, 5.0]])))

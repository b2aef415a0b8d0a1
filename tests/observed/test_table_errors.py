import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lgmd.exceptions import InvalidDataError
from lgmd.observed import as_observed

NAN = np.nan


def refuse(table, **settings):
    with pytest.raises(InvalidDataError) as caught:
        as_observed(table, **settings)
    return str(caught.value)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, scipy.sparse.csr_array, np.ma.asarray])
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((0, 3), "Found array with 0 sample(s) (shape=(0, 3)) while a minimum of 2 is required."),
        ((1, 3), "Found array with 1 sample(s) (shape=(1, 3)) while a minimum of 2 is required."),
        ((3, 0), "Found array with 0 feature(s) (shape=(3, 0)) while a minimum of 2 is required."),
        ((3, 1), "Found array with 1 feature(s) (shape=(3, 1)) while a minimum of 2 is required."),
    ],
)
def test_tables_that_are_too_small(form, shape, words):
    assert refuse(form(np.ones(shape))) == words


def test_smaller_tables_pass_where_they_are_allowed():
    assert as_observed([[1.0, NAN]], min_rows=1, allow_empty_columns=True).n_observed == 1
    assert as_observed([[1.0], [NAN]], min_columns=1, allow_empty_rows=True).n_observed == 1


@pytest.mark.parametrize(
    ("table", "dimensions"),
    [
        (3.0, 0),
        ([1.0, 2.0, 3.0], 1),
        (pd.Series([1.0, 2.0]), 1),
        (scipy.sparse.coo_array(np.array([1.0, 0.0, 2.0])), 1),
        (np.ones((2, 2, 2)), 3),
    ],
)
def test_what_is_not_a_table_of_two_dimensions(table, dimensions):
    words = refuse(table)
    assert f"but found {dimensions} dimension(s). Reshape your data" in words
    assert "table.reshape(-1, 1)" in words


@pytest.mark.parametrize(
    "table",
    [
        np.full((2, 3), NAN),
        np.ma.masked_all((2, 3)),
        pd.DataFrame([[None] * 3] * 2),
        pd.DataFrame(np.full((2, 3), NAN)),
        scipy.sparse.csr_array((2, 3)),
        scipy.sparse.csr_array(([NAN], ([0], [0])), shape=(2, 3)),
        [[None] * 3] * 2,
    ],
    ids=["nan", "masked", "none", "frame", "sparse", "stored nan", "lists"],
)
@pytest.mark.parametrize("allow", [False, True])
def test_nothing_but_gaps(table, allow):
    words = refuse(table, allow_empty_rows=allow, allow_empty_columns=allow)
    assert words == (
        "All 2 x 3 entries are missing, so there is nothing to learn from. Pass a table with observed entries."
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, scipy.sparse.csr_array, np.ma.asarray])
def test_infinite_entries(form, dtype):
    table = np.array([[1, np.inf, 3], [4, 5, -np.inf]], dtype=dtype)
    assert refuse(form(table)) == (
        "2 of 6 entries are infinity (inf). Replace them by numbers, or by NaN if they are gaps."
    )


def test_infinite_entries_are_counted_among_those_that_are_not_masked():
    table = np.ma.array([[1.0, np.inf], [np.inf, 2.0]], mask=[[0, 1], [0, 0]])
    assert refuse(table).startswith("1 of 3 entries are infinity")


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="long double is a double here")
def test_numbers_too_large_for_a_double():
    table = np.ones((2, 2), dtype=np.longdouble)
    table[0, 1] = np.longdouble("1e4000")
    assert refuse(table).startswith("1 of 4 entries are infinity")


@pytest.mark.parametrize(
    "table",
    [
        np.array([[1j, 2], [3, 4]]),
        np.array([[1j, 2], [3, 4]], dtype=object),
        np.array([[np.complex64(1), 2], [3, 4]], dtype=object),
        np.ma.array([[1j, 2], [3, 4]]),
        scipy.sparse.csr_array(np.array([[1j, 2], [3, 4]])),
    ],
    ids=["array", "object", "numpy object", "masked", "sparse"],
)
def test_complex_numbers(table):
    assert refuse(table) == "Complex data not supported: decompose the real and the imaginary part on their own."


def test_text():
    words = refuse(np.array([["1", "2"], ["3", "4"]]))
    assert "holds <U1 values, but every entry must be a real number" in words
    assert words.endswith("Convert it, or mark gaps with NaN.")
    assert "holds |S1 values" in refuse(np.array([[b"1", b"2"], [b"3", b"4"]]))
    assert "holds <U1 values" in refuse(np.ma.array([["1", "2"], ["3", "4"]]))


@pytest.mark.parametrize("found", ["twelve", "12", b"12"])
def test_text_among_objects(found):
    words = refuse(np.array([[1.0, found], [2.0, None]], dtype=object))
    assert words == (
        f"The table holds text ({found!r}), but every entry must be a number. Convert it, or mark gaps with NaN."
    )


def test_dates():
    table = np.array([["2020-01-01", "2020-01-02"], ["2020-01-03", "NaT"]], dtype="datetime64[D]")
    assert "holds datetime64[D] values, but every entry must be a real number" in refuse(table)
    assert "holds timedelta64[D] values" in refuse(table - table[0, 0])


@pytest.mark.parametrize(
    ("found", "kind"), [({"a": 1}, "dict"), ([1, 2], "list"), (datetime.date(2020, 1, 1), "datetime.date")]
)
def test_objects_that_are_no_numbers(found, kind):
    table = np.empty((2, 2), dtype=object)
    table[:] = 1.0
    table[0, 1] = found
    words = refuse(table)
    assert words == (
        "The table holds objects that are not numbers: float() argument must be a string or a real number, "
        f"not '{kind}'. Convert them, or mark gaps with NaN."
    )
    with pytest.raises(TypeError, match="argument must be a string or a real number"):
        as_observed(table)


def test_integers_beyond_all_floats():
    assert "too large to convert" in refuse([[1, 10**400], [2, 3]])


def test_rows_of_different_lengths():
    words = refuse([[1.0, 2.0], [3.0]])
    assert words.startswith("The table is no rectangle of numbers: ")
    assert words.endswith("Give every row the same number of entries.")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.array(["a", "b"], dtype=object), "object"),
        (np.array(["1", "2"], dtype=object), "object"),
        (pd.Categorical(["low", "high"]), "category"),
        (pd.to_datetime(["2020-01-01", None]), "datetime64"),
        (pd.to_timedelta([1, 2], unit="s"), "timedelta64"),
        (pd.period_range("2020-01", periods=2, freq="M"), "period"),
        (np.array([1j, 2]), "complex128"),
        (np.array([{}, 2.0], dtype=object), "object"),
        (pd.array(["a", "b"], dtype="string"), "string"),
    ],
)
def test_columns_that_hold_no_numbers_are_named(column, kind):
    frame = pd.DataFrame({"height": [1.0, 2.0], "label": pd.Series(column, dtype=getattr(column, "dtype", None))})
    words = refuse(frame)
    assert words.startswith(f"Column 'label' holds {kind}")
    assert words.endswith("values, but every column must hold numbers. Drop it, or encode it.")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_places_stored_more_than_once(form):
    coordinates = (np.array([0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1]))
    table = scipy.sparse.coo_array((np.ones(5), coordinates), shape=(2, 2))
    if form == "csr":
        table = scipy.sparse.csr_array((np.ones(5), coordinates[1], np.array([0, 2, 5])), shape=(2, 2))
    elif form == "csc":
        table = scipy.sparse.csc_array((np.ones(5), coordinates[0], np.array([0, 2, 5])), shape=(2, 2))
    words = refuse(table)
    assert words.startswith("3 entries are stored more than once. Keep one value for each place")
    assert table.nnz == 5
    table.sum_duplicates()
    assert as_observed(table).entries().values.tolist() == [2.0, 3.0]


def with_empty_rows(n_rows, empty):
    table = np.ones((n_rows, 3))
    table[empty] = NAN
    return table


@pytest.mark.parametrize(
    ("empty", "words"),
    [
        ([3], "Row 3 has no observed entry, so only the graph can say anything about it. Drop it, or"),
        ([3, 8], "Rows 3 and 8 have no observed entry, so only the graph can say anything about them. Drop them, or"),
        ([3, 8, 11], "Rows 3, 8 and 11 have no observed entry"),
        ([0, 1, 2, 3, 4], "Rows 0, 1, 2, 3 and 4 have no observed entry"),
        ([0, 1, 2, 3, 4, 5], "Rows 0, 1, 2, 3, 4 and 1 more have no observed entry"),
        (range(1, 1900), "Rows 1, 2, 3, 4, 5 and 1,894 more have no observed entry"),
    ],
)
def test_rows_and_columns_without_entries(empty, words):
    table = with_empty_rows(2000, list(empty))
    found = refuse(table)
    assert found.startswith(words)
    assert found.endswith("use a model with allow_empty=True. Rows are counted from 0.")
    assert refuse(table.T) == found.replace("Row", "Column")
    assert refuse(table, allow_empty_columns=True) == found
    assert refuse(table.T, allow_empty_rows=True) == found.replace("Row", "Column")
    assert as_observed(table, allow_empty_rows=True).n_observed == 3 * (2000 - len(empty))
    assert as_observed(table.T, allow_empty_columns=True).n_observed == 3 * (2000 - len(empty))


def test_empty_rows_and_columns_are_named():
    frame = pd.DataFrame(with_empty_rows(4, [1, 2]), index=["a", "b", "c", "d"], columns=["x", "y", "z"])
    assert refuse(frame).startswith("Rows 1 (b) and 2 (c) have no observed entry")
    assert refuse(frame.T).startswith("Columns 1 (b) and 2 (c) have no observed entry")


def test_blocks_that_hold_zeros_of_their_own_are_refused():
    entries = scipy.sparse.csr_array(np.kron(np.eye(3), [[1.0, 2.0], [0.0, 3.0]]))
    with pytest.raises(InvalidDataError, match=r"blocks of 2 x 2 \(BSR\).*tocsr\(\)"):
        as_observed(entries.tobsr(blocksize=(2, 2)))
    single = as_observed(entries.tobsr(blocksize=(1, 1)))
    assert single.n_observed == entries.nnz

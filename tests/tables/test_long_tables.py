"""Long tables: a row, a column and a value on every line."""

import gzip

import numpy as np
import pytest
import scipy.sparse

from lgmd.tables import Table, fill, read_table, write_table
from lgmd.tables import _long_text as long_text

RATINGS = 'user,film,when,rating\nanna,Alien,2001,5\nbob,"Yes, Prime",2002,3\nanna,Heat,2003,0\ncarl,Alien,2004,4.5\n'
LONG = ("user", "film", "rating")


def read(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(path, **options)


def entries(table):
    rows, columns = table.values.tocoo().coords
    return list(
        zip(table.row_names[rows].tolist(), table.column_names[columns].tolist(), table.values.data, strict=True)
    )


WANTED = [("anna", "Alien", 5.0), ("bob", "Yes, Prime", 3.0), ("anna", "Heat", 0.0), ("carl", "Alien", 4.5)]


@pytest.mark.parametrize("slow", [False, True])
def test_entries_are_read_in_their_order(slow, tmp_path, monkeypatch):
    if slow:
        monkeypatch.setattr(long_text, "fast_long", lambda *arguments: None)
    table = read(tmp_path, RATINGS, long=LONG)
    assert table.shape == (3, 3)
    assert table.is_sparse
    assert table.row_names.tolist() == ["anna", "bob", "carl"]
    assert table.column_names.tolist() == ["Alien", "Yes, Prime", "Heat"]
    assert entries(table) == WANTED
    assert table.form.long == LONG


@pytest.mark.parametrize("name", ["t.tsv", "t.txt", "t.csv.gz"])
def test_every_kind_of_text_may_be_long(name, tmp_path):
    text = (
        RATINGS if "csv" in name else RATINGS.replace('"Yes, Prime"', "Yes; Prime").replace(",", "\t").replace(";", ",")
    )
    content = gzip.compress(text.encode()) if name.endswith("gz") else text
    assert entries(read(tmp_path, content, name, long=LONG)) == WANTED


def test_columns_may_be_given_by_position_with_or_without_a_header(tmp_path):
    assert entries(read(tmp_path, RATINGS, long=(0, 1, 3))) == WANTED
    body = RATINGS.split("\n", 1)[1]
    table = read(tmp_path, body, long=(0, 1, 3))
    assert entries(table) == WANTED
    write_table(table, tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text().startswith("anna,Alien,5.0\n")
    assert entries(read(tmp_path, RATINGS, long=("user", 1, -1 + 4))) == WANTED


def test_ids_may_be_numbers(tmp_path):
    table = read(tmp_path, "u,f,r\n10,007,1\n9,7,2\n10,7,3\n", long=("u", "f", "r"))
    assert table.row_names.tolist() == ["10", "9"]
    assert table.column_names.tolist() == ["007", "7"]
    assert table.values.toarray().tolist() == [[1, 3], [0, 2]]


def test_an_entry_without_a_value_is_a_gap_with_names(tmp_path):
    table = read(tmp_path, "u,f,r\na,x,1\nb,x,NA\na,y,?\nb,z,-9\n", long=("u", "f", "r"), missing=["-9"])
    assert table.shape == (2, 3)
    assert entries(table) == [("a", "x", 1.0)]


def test_a_long_file_is_written_as_it_was(tmp_path):
    text = 'user,film,rating\nanna,Alien,5\nbob,"Yes, Prime",3\nanna,Heat,0\ncarl,Alien,4\n'
    table = read(tmp_path, text, long=LONG)
    write_table(table, tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == text


@pytest.mark.parametrize("integer", [True, False])
def test_parquet_keeps_the_type_of_ids(integer, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    users = pa.array([7, 3, 7, 9] if integer else ["g", "c", "g", "i"])
    stored = pa.table({"user": users, "film": ["a", "a", "b", "c"], "rating": pa.array([1, 2, 3, 4], pa.int8())})
    parquet.write_table(stored, tmp_path / "t.parquet", row_group_size=2)
    table = read_table(tmp_path / "t.parquet", long=LONG)
    assert table.row_names.tolist() == (["7", "3", "9"] if integer else ["g", "c", "i"])
    assert table.values.toarray().tolist() == [[1, 3, 0], [2, 0, 0], [0, 0, 4]]
    write_table(table, tmp_path / "u.parquet")
    assert parquet.read_table(tmp_path / "u.parquet").equals(stored)
    turned = read_table(tmp_path / "t.parquet", long=LONG, transpose=True)
    write_table(turned, tmp_path / "v.parquet")
    assert parquet.read_table(tmp_path / "v.parquet").equals(stored.select(["film", "user", "rating"]))


def test_categories_may_be_ids(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    users = pa.array(["b", "a", "b"]).dictionary_encode()
    parquet.write_table(pa.table({"u": users, "f": ["x", "y", "y"], "r": [1.0, 2.0, 3.0]}), tmp_path / "t.parquet")
    assert entries(read_table(tmp_path / "t.parquet", long=("u", "f", "r"))) == [
        ("b", "x", 1.0),
        ("a", "y", 2.0),
        ("b", "y", 3.0),
    ]


def test_a_long_table_agrees_with_pandas_pivot(tmp_path, rng):
    import pandas as pd

    places = rng.permutation(40 * 30)[:500]
    frame = pd.DataFrame({"u": places // 30, "f": places % 30, "r": rng.standard_normal(500)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", long=("u", "f", "r"))
    wide = frame.pivot(index="u", columns="f", values="r")
    found = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(table.values)).to_numpy()
    wanted = wide.loc[table.row_names.astype(int), table.column_names.astype(int)].to_numpy()
    np.testing.assert_array_equal(found, np.nan_to_num(wanted))


def test_a_filled_long_table_lists_every_pair(tmp_path):
    table = read(tmp_path, RATINGS, long=LONG)
    completed = fill(table, np.full((3, 3), 2.25))
    write_table(completed, tmp_path / "u.csv")
    again = read_table(tmp_path / "u.csv", long=LONG)
    assert again.n_observed == 9
    assert set(WANTED) <= set(entries(again))
    assert sum(value == 2.25 for _, _, value in entries(again)) == 5


@pytest.mark.parametrize("name", ["u.csv", "u.parquet"])
def test_a_sparse_table_becomes_a_long_one_where_there_is_no_sparse_form(name, tmp_path):
    values = scipy.sparse.csr_array(scipy.sparse.coo_array(([1.5, 0.0], ([0, 2], [1, 0])), shape=(3, 2)))
    write_table(Table(values), tmp_path / name)
    table = read_table(tmp_path / name, long=("row", "column", "value"))
    assert entries(table) == [("0", "1", 1.5), ("2", "0", 0.0)]

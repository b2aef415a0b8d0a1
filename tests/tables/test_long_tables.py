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
    assert table.row_names.tolist() == ["9", "10"]
    assert table.column_names.tolist() == ["007", "7"]
    assert table.values.toarray().tolist() == [[0, 2], [1, 3]]


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
    assert table.row_names.tolist() == (["3", "7", "9"] if integer else ["g", "c", "i"])
    in_order = [[1, 3, 0], [2, 0, 0], [0, 0, 4]]
    assert table.values.toarray().tolist() == ([in_order[row] for row in (1, 0, 2)] if integer else in_order)
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


ORDERS = {
    "numbers": ["-1.5", "0", "2", "1e1", "11", "99999999999999999999", "99999999999999999999.5"],
    "integers": ["7", "9", "10", "99999999999999999998", "99999999999999999999"],
    "months": ["2018-09", "2018-10", "2019-01"],
    "days": ["1999-12-31", "2000-01-01", "2000-01-10"],
    "times": ["2000-01-01", "2000-01-01T09:00", "2000-01-01 10:00:00", "2000-01-02T00:00:00.5"],
    "zones": ["2000-01-01T12:00+02:00", "2000-01-01T11:00Z", "2000-01-01T11:00:01+00:00"],
    "nanoseconds": ["2000-01-01 00:00:00.000000001", "2000-01-01 00:00:00.000000002", "2000-01-01 00:00:00.000000010"],
    "numbered": ["day 1", "day 2", "day 10", "day 11"],
    "numbered tightly": ["u007", "u9", "u10"],
    "depths": ["depth 0.25", "depth 0.5", "depth 1", "depth 10"],
}


@pytest.mark.parametrize("way", ["fast", "slow", "parquet"])
@pytest.mark.parametrize("names", ORDERS.values(), ids=ORDERS)
def test_names_that_have_a_natural_order_stand_in_it(names, way, tmp_path, rng, monkeypatch):
    import pandas as pd

    if way == "slow":
        monkeypatch.setattr(long_text, "fast_long", lambda *arguments: None)
    places = [(row, column) for row in range(len(names)) for column in range(len(names)) if row != column + 1]
    shuffled = [places[position] for position in rng.permutation(len(places))]
    value = {place: 10.0 * place[0] + place[1] for place in places}
    frame = pd.DataFrame([(names[row], names[column], value[row, column]) for row, column in shuffled], columns=LONG)
    path = tmp_path / ("t.parquet" if way == "parquet" else "t.csv")
    frame.to_parquet(path) if way == "parquet" else frame.to_csv(path, index=False)
    table = read_table(path, long=LONG)
    assert table.row_names.tolist() == table.column_names.tolist() == names
    wanted = [[value.get((row, column), 0.0) for column in range(len(names))] for row in range(len(names))]
    assert table.values.toarray().tolist() == wanted
    assert entries(table) == list(frame.itertuples(index=False, name=None))


@pytest.mark.parametrize("way", ["fast", "slow", "parquet"])
@pytest.mark.parametrize(
    "names",
    [
        ["zoe", "anna"],
        ["day 2", "week 1"],
        ["2", "1", "x"],
        ["2000-02-30", "2000-01-01"],
        ["2000-01-02", "2000-01-01T00:00Z"],
        ["10.0.0.12", "10.0.0.2"],
        ["u2", "u"],
        ["u2", "u-1"],
    ],
)
def test_other_names_stand_in_the_order_of_first_appearance(names, way, tmp_path, monkeypatch):
    import pandas as pd

    if way == "slow":
        monkeypatch.setattr(long_text, "fast_long", lambda *arguments: None)
    frame = pd.DataFrame({"user": names * 2, "film": ["b"] * len(names) + ["a"] * len(names), "rating": 1.0})
    path = tmp_path / ("t.parquet" if way == "parquet" else "t.csv")
    if way == "parquet":  # categories, which pandas sorts
        frame.astype({"user": "category", "film": "category"}).to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    table = read_table(path, long=LONG)
    assert table.row_names.tolist() == names
    assert table.column_names.tolist() == ["b", "a"]


def test_ordered_categories_stand_in_their_order(tmp_path):
    import pandas as pd

    doses = pd.Categorical(["high", "low", "mid"], categories=["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"user": doses, "film": ["b", "a", "a"], "rating": [3.0, 1.0, 2.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", long=LONG)
    assert table.row_names.tolist() == ["low", "mid", "high"]
    assert table.values.toarray().tolist() == [[0, 1], [0, 2], [3, 0]]


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

"""First columns of whole numbers: ids are names, numbers like those beside them are data, and doubt is told."""

import warnings

import numpy as np
import pytest

from lgmd.exceptions import TableError
from lgmd.tables import _text as text_reader
from lgmd.tables import read_table, write_table

BESIDE = np.array([[5.0, 6.0, 7.0], [1.0, np.nan, 4.0], [3.0, 2.0, 8.0], [9.0, 1.0, 2.0], [4.0, 4.0, 1.0]])
STATIONS = [72315, 72316, 72311, 72400, 72399]
FORMATS = ["csv", "slow csv", "tsv", "xlsx", "parquet"]


def write(path, header, ids, beside=BESIDE):
    import pandas as pd

    names = [f"d{j}" for j in range(beside.shape[1])]
    frame = pd.DataFrame(beside, columns=names)
    frame.insert(0, header, ids)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.fixture(params=FORMATS)
def read(request, tmp_path, monkeypatch):
    """Write a table in some format and read it."""
    if request.param == "slow csv":
        monkeypatch.setattr(text_reader, "_fast", lambda *_: None)
    path = tmp_path / f"t.{request.param.split()[-1]}"

    def round_trip(header, ids, beside=BESIDE, **options):
        write(path, header, ids, beside)
        return read_table(path, **options)

    return round_trip


@pytest.mark.parametrize(
    "header", ["station", "user", "cell_id", "gene", "Unnamed: 0", "userId", "StationID", "patientid", "Sample code"]
)
def test_ids_under_a_header_that_says_so_are_names(header, read):
    table = read(header, STATIONS)
    assert table.row_names.tolist() == [str(number) for number in STATIONS]
    assert table.corner == header
    np.testing.assert_array_equal(table.values, BESIDE)


@pytest.mark.parametrize("first", [0, 1])
def test_counted_rows_have_names_and_the_user_is_told(first, read):
    with pytest.warns(UserWarning, match=r"'reading', is taken for row names.*Pass row_names=False"):
        table = read("reading", range(first, first + 5))
    assert table.row_names.tolist() == [str(first + i) for i in range(5)]


def test_numbers_that_rise_far_above_the_others_are_names_and_the_user_is_told(read):
    with pytest.warns(UserWarning, match=r"'wban', is taken for row names.*Pass row_names=False") as caught:
        table = read("wban", sorted(STATIONS))
    assert table.row_names.tolist() == [str(number) for number in sorted(STATIONS)]
    assert caught[0].filename == __file__


def test_numbers_far_above_the_others_in_no_order_are_data_and_the_user_is_told(read):
    with pytest.warns(UserWarning, match=r"'income', is taken for data.*Pass row_names=True"):
        table = read("income", [45000, 30000, 61000, 52000, 38000])
    assert table.row_names is None
    assert table.shape == (5, 4)


def test_numbers_that_rise_alone_are_data_and_the_user_is_told(read):
    with pytest.warns(UserWarning, match=r"'wban', is taken for data.*Pass row_names=True") as caught:
        table = read("wban", [2, 3, 5, 6, 9])
    assert table.row_names is None
    assert table.shape == (5, 4)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("header", "numbers"),
    [
        ("rating", [5, 4, 4, 1, 2]),
        ("temperature", [-3, 7, 12, 20, 15]),
        ("price", [3, 1, 9, 2, 7]),
        ("population", [72315, 72316, 72316, 72400, 72399]),
        ("paid", [3, 1, 9, 2, 7]),
        ("body_mass_index", [23, 31, 29, 22, 27]),
        ("item1", [3, 1, 9, 2, 7]),
        ("station", [5, 5, 1, 2, 3]),
    ],
)
def test_numbers_like_those_beside_them_are_data(header, numbers, read):
    table = read(header, numbers)
    assert table.row_names is None
    np.testing.assert_array_equal(table.values, np.column_stack([numbers, BESIDE]))


def test_ids_with_gaps_or_fractions_are_data(read):
    for numbers in ([72315, np.nan, 72311, 72400, 72399], [1.5, 2.5, 3.5, 4.5, 5.5]):
        assert read("station", numbers).row_names is None


def test_a_table_that_counts_everywhere_is_data(read):
    values = np.arange(20.0).reshape(5, 4) + 3
    assert read("wban", values[:, 0].astype(int), values[:, 1:]).row_names is None


@pytest.mark.parametrize(("header", "numbers"), [("station", STATIONS), ("wban", STATIONS), ("wban", [2, 3, 5, 6, 9])])
@pytest.mark.parametrize("names", [True, False])
def test_what_the_user_says_counts(header, numbers, names, read):
    table = read(header, numbers, row_names=names)
    assert (table.row_names is not None) is names
    assert table.shape == (5, 3 if names else 4)


def test_the_whole_column_is_judged_without_the_slow_parser(tmp_path, monkeypatch):
    """Numbers that look like ids in the first hundred rows, and repeat, turn small or jump below."""

    def fail(*_):
        raise AssertionError("the slow parser was asked")

    monkeypatch.setattr(text_reader, "parse_grid", fail)
    rng = np.random.default_rng(0)
    beside = rng.random((300, 2)).round(3)
    for ids, names, warns in (
        (np.arange(300) + 72315, True, True),
        (np.r_[np.arange(299) + 72315, 72315], False, False),
        (np.r_[np.arange(299) + 72315, 2], False, False),
        (np.r_[np.arange(299) + 72315, 72000], False, True),
        (np.r_[np.arange(299), 400], False, True),
        (np.arange(300), True, True),
    ):
        write(tmp_path / "t.csv", "wban", ids, beside)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = read_table(tmp_path / "t.csv")
        assert (table.row_names is not None) is names
        assert bool(caught) is warns
        assert table.shape == (300, 2 if names else 3)


def test_ids_beyond_double_precision_are_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("barcode,a,b\n12345678901234567890,1,2\n12345678901234567891,3,4\n12345678901234567892,5,1\n")
    assert read_table(path).row_names[1] == "12345678901234567891"


def test_integer_ids_of_a_sheet_stay_integers(tmp_path):
    import openpyxl

    write(tmp_path / "t.xlsx", "station", STATIONS)
    write_table(read_table(tmp_path / "t.xlsx"), tmp_path / "u.xlsx")
    written = [row[0] for row in openpyxl.load_workbook(tmp_path / "u.xlsx").active.values]
    assert written == ["station", *STATIONS]


def test_integer_ids_of_parquet_stay_the_first_column(tmp_path):
    import pandas as pd

    write(tmp_path / "t.parquet", "station", STATIONS)
    write_table(read_table(tmp_path / "t.parquet"), tmp_path / "u.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "u.parquet"), pd.read_parquet(tmp_path / "t.parquet"))


def test_rows_of_other_lengths_are_named_whatever_the_first_column_looks_like(tmp_path):
    (tmp_path / "t.csv").write_text("year,a,b\n2000,1,2\n2001,3\n2002,4,5\n2003,1,2\n")
    with pytest.raises(TableError, match="line 3"):
        read_table(tmp_path / "t.csv")

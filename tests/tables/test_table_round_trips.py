"""What is read and written again is the same, bit for bit, in every format."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from lgmd.tables import Form, Table, fill, read_table, write_table

ROW_NAMES = np.array(
    ["plain", "Zürich 四", 'a "quoted" one', "with, comma", "two\nlines", " spaces ", "tab\there", "NA"]
)
COLUMN_NAMES = np.array(["c;1", "'x'", "é,è", 'say ""', "line\r\nend", "#6", "=1+1"])
WIDE = ["csv", "tsv", "txt", "parquet", "xlsx", "npz", "h5ad", "csv.gz", "tsv.gz"]
XLSX_COLUMNS = np.array(["c;1", "'x'", "é,è", 'say ""', "line\nend", "#6", "=1+1"])


def hard_numbers(rng, shape):
    """Doubles of all sizes, with the ends of the range, both zeros and gaps."""
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300, shape)
    values.flat[:7] = [0.1 + 0.2, -0.0, 0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 1e16]
    values[rng.random(shape) < 0.2] = np.nan
    values.flat[8:12] = [2.0, -3.0, 1e22, 123456789012345680.0]
    return values


def same_bits(first, second):
    assert first.dtype == second.dtype
    np.testing.assert_array_equal(np.isnan(first), np.isnan(second))
    np.testing.assert_array_equal(first[~np.isnan(first)].view(np.uint8), second[~np.isnan(second)].view(np.uint8))


def need(format):
    if format == "h5ad":
        pytest.importorskip("anndata", reason="the extra anndata is not installed")


@pytest.mark.parametrize("format", WIDE)
def test_numbers_and_names_survive(format, tmp_path, rng):
    need(format)
    columns = XLSX_COLUMNS if format == "xlsx" else COLUMN_NAMES
    values = hard_numbers(rng, (len(ROW_NAMES), len(columns)))
    table = Table(values.copy(), ROW_NAMES, columns, "corner, too")
    path = tmp_path / f"t.{format}"
    write_table(table, path)
    again = read_table(path)
    same_bits(again.values, values)
    assert again.row_names.tolist() == ROW_NAMES.tolist()
    assert again.column_names.tolist() == columns.tolist()
    if format not in ("npz", "h5ad"):
        assert again.corner == "corner, too"
    same_bits(table.values, values)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("format", [*WIDE, "npy", "mtx", "mtx.gz"])
def test_a_second_round_gives_the_same_file(format, tmp_path, rng):
    need(format)
    values = hard_numbers(rng, (6, 5))
    first, second = tmp_path / f"first.{format}", tmp_path / f"second.{format}"
    write_table(Table(values, np.array(list("uvwxyz")), np.array(list("abcde")), "n"), first)
    content = first.read_bytes()
    table = read_table(first)
    write_table(table, second)
    assert first.read_bytes() == content
    if format not in ("xlsx", "h5ad", "npz"):  # these note the time of writing
        assert second.read_bytes() == content
    again = read_table(second)
    if scipy.sparse.issparse(table.values):
        again = replace(again, values=again.values.toarray())
        table = replace(table, values=table.values.toarray())
    same_bits(again.values, table.values)
    assert repr(again.row_names) == repr(table.row_names)


@pytest.mark.parametrize("format", ["npy", "npz", "parquet", "h5ad", "mtx"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1"])
def test_the_type_of_numbers_stays(format, dtype, tmp_path, rng):
    need(format)
    values = (rng.standard_normal((5, 4)) * 50).astype(dtype) if dtype != "u1" else rng.integers(0, 255, (5, 4), "u1")
    path, again = tmp_path / f"t.{format}", tmp_path / f"u.{format}"
    form = Form(format, dtype=np.dtype(dtype).str, column_types=(_arrow_name(dtype),) * 4)
    write_table(Table(values.astype("f4" if dtype == "f4" else "f8"), form=form), path)
    write_table(read_table(path), again)
    np.testing.assert_array_equal(read_table(again).values, values)
    assert _stored_type(again, format) == _stored_type(path, format)
    if format != "mtx":
        assert _stored_type(again, format) == np.dtype(dtype)


def _arrow_name(dtype):
    return {"f4": "float", "f8": "double", "i4": "int32", "i8": "int64", "u1": "uint8"}[dtype]


def _stored_type(path, format):
    if format == "npy":
        return np.load(path).dtype
    if format == "npz":
        with np.load(path) as archive:
            return archive["values"].dtype
    if format == "parquet":
        from pyarrow import parquet

        return np.dtype(parquet.read_table(path).column(0).type.to_pandas_dtype())
    if format == "mtx":
        return path.read_bytes().split()[3]
    import anndata

    return anndata.read_h5ad(path).X.dtype


@pytest.mark.parametrize("source", ["csv", "parquet", "npy", "npz", "xlsx"])
@pytest.mark.parametrize("target", ["csv", "tsv.gz", "parquet", "npy", "npz", "mtx", "xlsx", "h5ad"])
def test_formats_turn_into_each_other(source, target, tmp_path, rng):
    need(source)
    need(target)
    values = rng.standard_normal((4, 3))
    names = None if source == "npy" else np.array(["r1", "r2", "r3", "r4"])
    write_table(Table(values, names, None if names is None else np.array(["a", "b", "c"])), tmp_path / f"t.{source}")
    write_table(read_table(tmp_path / f"t.{source}"), tmp_path / f"u.{target}")
    table = read_table(tmp_path / f"u.{target}")
    same_bits(np.ascontiguousarray(table.values), values)
    if names is not None and target not in ("npy", "mtx"):
        assert table.row_names.tolist() == names.tolist()
        assert table.column_names.tolist() == ["a", "b", "c"]


def test_single_precision_is_the_same_number_in_text(tmp_path, rng):
    values = rng.standard_normal((4, 3)).astype(np.float32)
    write_table(Table(values), tmp_path / "t.csv")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").values, values.astype(np.float64))


TEXTS = {
    "csv": 'station,"a, b",c\n"x ""1""",1.5,2\ny,,4\n',
    "semicolons": "station;a;c\nx;1.5;2\ny;;4\n",
    "tsv": "station\ta\tc\nx\t1.5\t2\ny\t\t4\n",
    "no corner": "a,c\nx,1.5,2\ny,,4\n",
    "an empty corner": ",a,c\nx,1.5,2\ny,,4\n",
    "no header": "x,1.5,2\ny,,4\n",
    "no names": "1.5,2\n,4\n",
    "a mark": "\ufeffn,a,c\nx,1.5,2\ny,,4\n",
    "integers": "n,a,c\nx,3,20\ny,-5,1000000\n",
    "integers with gaps": "n,a,c\nx,3,20\ny,,7.5\n",
    "whole numbers as decimals": "n,a,c\nx,3.0,20\ny,-5.0,1000000\n",
    "negative zero": "n,a,c\nx,-0,20\ny,1,-0.0\nz,2,1.5\n",
}


@pytest.mark.parametrize("kind", [kind for kind in TEXTS if kind not in ("negative zero", "integers with gaps")])
def test_text_is_written_as_it_was(kind, tmp_path):
    path, again = tmp_path / f"t.{kind[:3] if kind == 'tsv' else 'csv'}", tmp_path / "again"
    path.write_bytes(TEXTS[kind].encode())
    again = path.with_stem("again")
    write_table(read_table(path), again)
    assert again.read_bytes() == path.read_bytes()


def test_negative_zero_keeps_its_sign(tmp_path):
    (tmp_path / "t.csv").write_text(TEXTS["negative zero"])
    write_table(read_table(tmp_path / "t.csv"), tmp_path / "u.csv")
    table = read_table(tmp_path / "u.csv")
    assert np.signbit(table.values).tolist() == [[True, False], [False, True], [False, False]]


def test_text_of_another_encoding_is_written_in_it(tmp_path):
    content = "Ort,a,b\nKöln,1,2\nZürich,3,4\n"
    for encoding in ("latin-1", "utf-16-le"):
        (tmp_path / "t.csv").write_bytes(content.encode(encoding))
        write_table(read_table(tmp_path / "t.csv", encoding=encoding), tmp_path / "u.csv", force=True)
        assert (tmp_path / "u.csv").read_bytes() == content.encode(encoding)


def test_integer_columns_keep_their_integers_beside_filled_values(tmp_path):
    (tmp_path / "t.csv").write_text("n,count,share\nx,3,0.5\ny,,0.25\nz,12,\n")
    table = read_table(tmp_path / "t.csv")
    filled = fill(table, np.full((3, 2), 2.75))
    write_table(filled, tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == "n,count,share\nx,3,0.5\ny,2.75,0.25\nz,12,2.75\n"


def test_integers_of_parquet_become_doubles_only_where_they_must(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        "n": ["x", "y"],
        "kept": [1, 2],
        "gap": pa.array([1, None], pa.int16()),
        "filled": [None, 4],
        "f": [0.5, 1],
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    values = table.values.copy()
    values[0, 2] = 3.5
    write_table(replace(table, values=values), tmp_path / "u.parquet")
    stored = parquet.read_table(tmp_path / "u.parquet")
    assert [str(kind) for kind in stored.schema.types] == ["string", "int64", "int16", "double", "double"]
    assert stored.to_pydict() == {
        "n": ["x", "y"],
        "kept": [1, 2],
        "gap": [1, None],
        "filled": [3.5, 4.0],
        "f": [0.5, 1.0],
    }


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("integer", [True, False])
def test_frames_of_pandas_keep_their_index(named, integer, tmp_path, rng):
    import pandas as pd

    index = pd.Index([30, 10, 20] if integer else ["x", "y", "z"], name="station" if named else None)
    frame = pd.DataFrame(rng.standard_normal((3, 2)), index=index, columns=["a", "b"])
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.row_names.tolist() == [str(name) for name in index]
    assert table.corner == index.name
    write_table(table, tmp_path / "u.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "u.parquet"), frame)


INDEXES = {
    "a range that starts late": lambda pd: pd.RangeIndex(100, 112, name="station"),
    "a range that falls": lambda pd: pd.RangeIndex(24, 0, -2),
    "a count with a name": lambda pd: pd.RangeIndex(12, name="station"),
    "days": lambda pd: pd.date_range("2020-01-01", periods=12, name="day"),
    "hours": lambda pd: pd.date_range("2020-01-01", periods=12, freq="h"),
    "days of a time zone": lambda pd: pd.date_range("2020-01-01", periods=12, tz="Europe/Berlin"),
    "small integers": lambda pd: pd.Index(np.arange(12, dtype=np.int32) * 3, name="station"),
    "categories": lambda pd: pd.CategoricalIndex(list("abcdefghijkl"), name="station"),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_a_filled_frame_has_the_index_it_had(kind, tmp_path, rng):
    import pandas as pd

    frame = pd.DataFrame(rng.standard_normal((12, 3)), index=INDEXES[kind](pd), columns=["a", "b", "c"])
    frame.iloc[3, 1] = np.nan
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    write_table(fill(table, np.zeros((12, 3))), tmp_path / "u.parquet")
    expected = pd.read_parquet(tmp_path / "t.parquet").fillna(0.0)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "u.parquet"), expected, check_index_type=True)


def test_ranges_and_days_name_the_rows_of_other_formats(tmp_path, rng):
    import pandas as pd

    for kind, names, corner in (
        ("a range that starts late", [str(i) for i in range(100, 112)], "station"),
        ("days", [f"2020-01-{day:02}" for day in range(1, 13)], "day"),
    ):
        frame = pd.DataFrame(rng.standard_normal((12, 2)), index=INDEXES[kind](pd), columns=["a", "b"])
        frame.to_parquet(tmp_path / "t.parquet")
        write_table(read_table(tmp_path / "t.parquet"), tmp_path / "u.csv", force=True)
        table = read_table(tmp_path / "u.csv")
        assert table.row_names.tolist() == names
        assert table.corner == corner


def test_names_that_were_changed_are_written_as_they_are_now(tmp_path, rng):
    import pandas as pd

    frame = pd.DataFrame(rng.standard_normal((12, 2)), index=INDEXES["days"](pd), columns=["a", "b"])
    frame.to_parquet(tmp_path / "t.parquet")
    named = replace(read_table(tmp_path / "t.parquet"), row_names=np.array(list("abcdefghijkl")))
    write_table(named, tmp_path / "u.parquet")
    assert pd.read_parquet(tmp_path / "u.parquet").index.tolist() == list("abcdefghijkl")


def test_frames_that_only_count_have_no_row_names(tmp_path, rng):
    import pandas as pd

    frame = pd.DataFrame(rng.standard_normal((3, 3)), columns=["a", "b", "c"])
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").row_names is None
    assert read_table(tmp_path / "t.parquet", row_names=True).column_names.tolist() == ["b", "c"]


def test_text_of_pandas_is_the_frame_again(tmp_path, rng):
    import pandas as pd

    frame = pd.DataFrame(rng.standard_normal((5, 3)), index=list("vwxyz"), columns=["a", "b,c", "d\ne"])
    frame.iloc[1, 2] = np.nan
    frame.to_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv")
    same_bits(table.values, frame.to_numpy())
    assert table.column_names.tolist() == list(frame.columns)


def test_the_sheet_and_the_array_keep_their_names(tmp_path):
    np.savez(tmp_path / "t.npz", expression=np.eye(3))
    write_table(read_table(tmp_path / "t.npz"), tmp_path / "u.npz")
    with np.load(tmp_path / "u.npz") as archive:
        assert archive.files == ["expression"]
    import openpyxl

    book = openpyxl.Workbook()
    book.create_sheet("Second")
    for row in (["n", "a", "b"], ["x", 1, 2.5], ["y", None, 4]):
        book["Second"].append(row)
    book.save(tmp_path / "t.xlsx")
    write_table(read_table(tmp_path / "t.xlsx", sheet="Second"), tmp_path / "u.xlsx")
    written = openpyxl.load_workbook(tmp_path / "u.xlsx")
    assert written.sheetnames == ["Second"]
    assert [list(row) for row in written["Second"].values] == [["n", "a", "b"], ["x", 1, 2.5], ["y", None, 4]]
    assert isinstance(written["Second"]["B2"].value, int)


def test_cells_around_a_sheet_may_be_empty(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    for row in ([], [None, None, "a", "b", None], [None, "x", 1, "2.5"], [None, "y", "n/a", 4], [], [None]):
        book.active.append(row)
    book.active["A1"].font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    np.testing.assert_array_equal(table.values, [[1, 2.5], [np.nan, 4]])
    assert table.row_names.tolist() == ["x", "y"]
    assert table.column_names.tolist() == ["a", "b"]


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("array", [True, False])
def test_sparse_matrices_keep_what_is_stored(format, array, tmp_path):
    entries = ([1.5, 0.0, -0.0, 4.0], ([0, 1, 2, 2], [1, 0, 2, 0]))
    matrix = scipy.sparse.coo_array(entries, shape=(3, 4)).asformat(format)
    scipy.sparse.save_npz(tmp_path / "t.npz", matrix if array else scipy.sparse.coo_matrix(matrix).asformat(format))
    table = read_table(tmp_path / "t.npz")
    assert table.is_sparse
    assert table.n_observed == 4
    write_table(table, tmp_path / "u.npz")
    again = scipy.sparse.load_npz(tmp_path / "u.npz")
    wanted = scipy.sparse.csr_array(matrix)
    wanted.sort_indices()
    np.testing.assert_array_equal(again.indptr, wanted.indptr)
    np.testing.assert_array_equal(again.indices, wanted.indices)
    same_bits(again.data, wanted.data)


def test_names_of_a_sparse_table_are_kept_beside_it(tmp_path):
    values = scipy.sparse.coo_array(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    write_table(Table(values, np.array(["x", "y"]), np.array(["a", "b"])), tmp_path / "t.npz")
    table = read_table(tmp_path / "t.npz")
    assert table.row_names.tolist() == ["x", "y"]
    assert scipy.sparse.load_npz(tmp_path / "t.npz").nnz == 2


@pytest.mark.parametrize("ending", ["mtx", "mtx.gz"])
@pytest.mark.parametrize("field", ["real", "integer"])
def test_matrix_market_agrees_with_scipy(ending, field, tmp_path, rng):
    data = hard_numbers(rng, (8, 1))[:, 0] if field == "real" else rng.integers(-9, 9, 8).astype(float)
    data = np.where(np.isnan(data), 0.0, data)
    matrix = scipy.sparse.coo_array((data, (np.arange(8) % 4, np.arange(8) // 2)), shape=(4, 5))
    path = tmp_path / f"t.{ending}"
    write_table(Table(matrix, form=Form("mtx", dtype="<f8" if field == "real" else "<i8")), path)
    raw = gzip.decompress(path.read_bytes()) if ending.endswith("gz") else path.read_bytes()
    assert raw.split(b"\n")[0] == f"%%MatrixMarket matrix coordinate {field} general".encode()
    from scipy.io import mmread

    np.testing.assert_array_equal(mmread(path).toarray(), matrix.toarray())
    table = read_table(path)
    assert table.n_observed == 8
    np.testing.assert_array_equal(table.values.toarray(), matrix.toarray())


def test_a_symmetric_matrix_market_file_is_read_whole(tmp_path):
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 5\n2 1 0\n")
    table = read_table(tmp_path / "t.mtx")
    assert table.n_observed == 3


def test_a_dense_matrix_market_file_has_no_gaps(tmp_path):
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n4.5\n")
    np.testing.assert_array_equal(read_table(tmp_path / "t.mtx").values, [[1, 0], [0, 4.5]])


@pytest.mark.parametrize("sparse", [True, False])
def test_anndata_keeps_its_annotations(sparse, tmp_path):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    import pandas as pd

    counts = np.array([[1, 0, 2], [0, 3, 4]], dtype=np.float32)
    data = anndata.AnnData(
        scipy.sparse.csr_matrix(counts) if sparse else counts,
        obs=pd.DataFrame({"kind": ["T", "B"]}, index=["cell1", "cell2"]),
        var=pd.DataFrame(index=["g1", "g2", "g3"]),
    )
    data.layers["raw"] = counts
    data.write_h5ad(tmp_path / "t.h5ad")
    table = read_table(tmp_path / "t.h5ad")
    assert table.is_sparse is sparse
    assert table.n_observed == (4 if sparse else 6)
    assert table.row_names.tolist() == ["cell1", "cell2"]
    write_table(table, tmp_path / "u.h5ad")
    again = anndata.read_h5ad(tmp_path / "u.h5ad")
    assert list(again.obs["kind"]) == ["T", "B"]
    np.testing.assert_array_equal(again.layers["raw"], counts)
    np.testing.assert_array_equal(again.X.toarray() if sparse else again.X, counts)
    turned = read_table(tmp_path / "t.h5ad", transpose=True)
    write_table(turned, tmp_path / "v.h5ad")
    assert list(anndata.read_h5ad(tmp_path / "v.h5ad").obs_names) == ["g1", "g2", "g3"]


@pytest.mark.parametrize("format", ["csv", "tsv", "txt", "mtx"])
def test_compressed_files_hold_the_plain_ones(format, tmp_path, rng):
    table = Table(hard_numbers(rng, (5, 4)), np.array(list("vwxyz")), np.array(list("abcd")), "n")
    write_table(table, tmp_path / f"t.{format}")
    write_table(table, tmp_path / f"t.{format}.gz")
    assert gzip.decompress((tmp_path / f"t.{format}.gz").read_bytes()) == (tmp_path / f"t.{format}").read_bytes()
    plain, packed = read_table(tmp_path / f"t.{format}"), read_table(tmp_path / f"t.{format}.gz")
    if format == "mtx":
        np.testing.assert_array_equal(plain.values.toarray(), packed.values.toarray())
    else:
        same_bits(plain.values, packed.values)


@pytest.mark.parametrize("transpose", [False, True])
def test_dates_and_numbers_that_are_names_in_excel_come_back_as_such(transpose, tmp_path):
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    days = [datetime.datetime(2018, 1, 1), datetime.datetime(2018, 1, 2), datetime.datetime(2018, 1, 3, 12)]
    sheet = [["day", 1990, 0.5, "mean"], *([day, i + 0.5, 2.5, -i] for i, day in enumerate(days))]
    for row in sheet:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", header=True, transpose=transpose)
    source = table.original if transpose else table
    assert source.row_names.tolist() == ["2018-01-01", "2018-01-02", "2018-01-03 12:00:00"]
    assert source.column_names.tolist() == ["1990", "0.5", "mean"]
    write_table(source, tmp_path / "u.xlsx")
    written = openpyxl.load_workbook(tmp_path / "u.xlsx").active
    assert [list(row) for row in written.values] == sheet
    assert [type(cell.value) for cell in written[1]] == [str, int, float, str]
    assert [written.cell(row, 1).number_format for row in (2, 4)] == ["yyyy-mm-dd", "yyyy-mm-dd h:mm:ss"]
    write_table(table, tmp_path / "turned.xlsx")
    turned = read_table(tmp_path / "turned.xlsx", header=True, row_names=True)
    assert turned.row_names.tolist() == table.row_names.tolist()
    corner = openpyxl.load_workbook(tmp_path / "turned.xlsx").active
    assert corner["B1"].value == (days[0] if transpose else 1990)
    assert corner["A2"].value == (1990 if transpose else days[0])

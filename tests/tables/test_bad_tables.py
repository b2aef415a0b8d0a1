"""Every kind of bad file: what the message says, and that nothing is written."""

import errno
import gzip
import io
import os
import pathlib
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse

from lgmd.exceptions import InvalidParameterError, LGMDError
from lgmd.tables import TableError, read_table, write_table

GOOD = b"station,a,b,c\ns1,1.5,2,3\ns2,4,NA,6\ns3,7,8,9.25\n"


def archive(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def array(values, **options):
    buffer = io.BytesIO()
    np.save(buffer, values, **options)
    return buffer.getvalue()


def parquet(**columns):
    import pyarrow as pa
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def market(header, *lines):
    return "\n".join([f"%%MatrixMarket matrix {header}", *lines, ""]).encode()


def sparse(matrix):
    buffer = io.BytesIO()
    scipy.sparse.save_npz(buffer, matrix)
    return buffer.getvalue()


def long_text(last=b""):
    return b"n,a,b\n" + b"".join(b"row%d,%d.5,%d\n" % (i, i % 97, i) for i in range(20_000)) + last


def refused(path, *fragments, output="filled.csv", **options):
    """The message of the error when `path` is read and written again; nothing may have been written."""
    before = sorted(os.listdir(path.parent))
    content = path.read_bytes() if path.is_file() else None
    with pytest.raises(TableError) as caught:
        write_table(read_table(path, **options), path.parent / output)
    message = str(caught.value)
    for fragment in (path.name, *fragments):
        assert fragment in message
    assert "\n" not in message
    assert message.endswith((".", "?")) or message.endswith("'lgmd[anndata]'") or message.endswith("install openpyxl")
    assert sorted(os.listdir(path.parent)) == before
    if content is not None:
        assert path.read_bytes() == content
    return message


BAD_TEXT = {
    "a short row": ("t.csv", b"n,a,b\nx,1,2\ny,3\nz,5,6\n", {}, ["line 3", "2 cells", "line 1 calls for 3"]),
    "a long row": ("t.csv", b"n,a,b\nx,1,2\ny,3,4,5\n", {}, ["line 3", "4 cells", "calls for 3", "quote names"]),
    "a trailing delimiter": ("t.csv", b"n,a,b\nx,1,2\ny,3,4,\n", {}, ["line 3", "end in a delimiter?"]),
    "a ragged row far down": (
        "t.csv",
        b"n,a,b\n" + b"".join(b"r%d,1,2\n" % i for i in range(500)) + b"last,1\n",
        {},
        ["line 502", "2 cells"],
    ),
    "a name that is not quoted": ("t.csv", b"n,a,b\nBerlin, Tegel,1,2\nRome,3,4\n", {}, ["line 2", "quote names"]),
    "a quote that is not closed": ("t.csv", b'n,a,b\nx,1,2\n"y,3,4\nz,5,6\n', {}, ["line 3", "quote is not closed"]),
    "binary junk": ("t.csv", bytes(range(256)) * 4, {}, ["binary, not text", "byte 1 is 0", "format="]),
    "a zip archive": ("t.csv", b"PK\x03\x04" + bytes(50), {}, ["a zip archive, as Excel files are"]),
    "a Parquet file by another name": ("t.csv", b"PAR1" + bytes(50), {}, ["a Parquet file", "format="]),
    "empty": ("t.csv", b"", {}, ["is empty", "at least two rows and two columns"]),
    "blank lines alone": ("t.csv", b"\n  \n\r\n", {}, ["is empty"]),
    "empty after unpacking": ("t.csv.gz", gzip.compress(b""), {}, ["is empty"]),
    "a header alone": ("t.csv", b"station,a,b\n", {}, ["header and no rows", "header=False"]),
    "names alone": ("t.csv", b"name\na\nb\n", {}, ["names but no numbers", "delimiter="]),
    "text alone": ("t.csv", b"name,city\na,Rome\nb,Oslo\n", {}, ["line 2", "no numbers", "'Rome'"]),
    "repeated row names": ("t.csv", b"n,a,b\nx,1,2\ny,3,4\nx,5,6\n", {}, ["row name 'x'", "rows 1 and 3"]),
    "repeated column names": ("t.csv", b"n,a,b,a\nx,1,2,3\ny,4,5,6\n", {}, ["column name 'a'", "columns 1 and 3"]),
    "a row without a name": ("t.csv", b"n,a,b\nx,1,2\n,3,4\nz,5,6\n", {}, ["row 2", "has no name"]),
    "a column without a name": ("t.csv", b"n,a,b,\nx,1,2,\ny,3,4,\n", {}, ["column 3", "no name", "ends in a delim"]),
    "text among numbers": ("t.csv", b"n,a,b\nx,1,2\ny,3,abc\n", {}, ["line 3, column 3 ('b')", "'abc'", "missing="]),
    "text in the first row of numbers": (
        "t.csv",
        b"1.5,2.5,3.5,x\n4,5,6,7\n8,9,1,2\n",
        {},
        ["line 1, column 4", "'x'", "header=True"],
    ),
    "text in a first column of numbers": (
        "t.csv",
        b"a,b\n1.5,2\noops,4\n3.5,4\n4.5,4\n",
        {},
        ["line 3, column 1 ('a')", "'oops'", "row_names=True"],
    ),
    "a unit": ("t.csv", b"n,a,b\nx,1,12 mm\ny,3,4\n", {}, ["line 2, column 3 ('b')", "'12 mm'"]),
    "a very long text": ("t.csv", b"n,a,b\nx,1,2\ny,3," + b"z" * 500 + b"\n", {}, ["line 3", "zzz…'"]),
    "UTF-16 with a mark": ("t.csv", GOOD.decode().encode("utf-16"), {}, ["UTF-16", "encoding='utf-16'"]),
    "UTF-16 without a mark": ("t.csv", GOOD.decode().encode("utf-16-le"), {}, ["UTF-16", "encoding='utf-16-le'"]),
    "Latin-1": ("t.csv", "n,a,b\nx,1,2\nKöln,3,4\n".encode("latin-1"), {}, ["line 3", "0xf6", "encoding='latin-1'"]),
    "the wrong encoding": ("t.csv", b"n,a,b\n\x81,1,2\ny,3,4\n", {"encoding": "cp1252"}, ["not in the encoding"]),
    "an unknown encoding": ("t.csv", GOOD, {"encoding": "klingon"}, ["no encoding 'klingon'"]),
    "gaps alone": ("t.csv", b"n,a,b\nx,NA,\ny,?,-\n", {}, ["all 2 x 2 entries are gaps", "missing="]),
    "infinite values": ("t.csv", b"n,a,b\nx,1,2\ny,-inf,4\n", {}, ["line 3, column 2 ('a')", "'-inf'", "finite"]),
    "numbers out of range": ("t.csv", b"n,a,b\nx,1,2\ny,3,1e999\n", {}, ["line 3, column 3", "'1e999'", "1.8e308"]),
    "integers that are no doubles": (
        "t.csv",
        b"a,b\n12345678901234567,2\n12345678901234568,4\n",
        {},
        ["line 2, column 1", "'12345678901234567'", "identifiers", "row_names=True"],
    ),
    "complex numbers": ("t.csv", b"n,a,b\nx,1,2\ny,3,1.5+2j\n", {}, ["line 3, column 3", "complex", "imaginary"]),
    "dates as values": ("t.csv", b"n,a,b\nx,1,2018-01-31\ny,3,4\n", {}, ["line 2, column 3", "a date", "row_names"]),
    "true and false": ("t.csv", b"n,a,b\nx,1,TRUE\ny,3,FALSE\n", {}, ["line 2, column 3", "'TRUE'", "1 and 0"]),
    "decimal commas": ("t.csv", b"n;a;b\nx;1,5;2,25\ny;3,5;4\n", {}, ["line 2, column 2", "'1,5'", "decimal comma"]),
    "decimal commas in quotes": ("t.csv", b'n,a,b\nx,"1,5",2\ny,3,4\n', {}, ["line 2", "'1,5'", "decimal points"]),
    "small decimal commas": ("t.csv", b'n,a,b\nx,"-0,013",2\ny,3,4\n', {}, ["'-0,013'", "decimal comma"]),
    "thousands separators": ("t.csv", b'n,a,b\nx,"1,234,567.5",2\ny,3,4\n', {}, ["line 2, column 2", "thousands"]),
    "thousands in a tab file": ("t.tsv", b"n\ta\tb\nx\t1'234\t2\ny\t3\t4\n", {}, ["line 2, column 2", "thousands"]),
    "digits of another script": ("t.csv", "n,a,b\nx,1,٣\ny,3,4\n".encode(), {}, ["line 2, column 3", "'٣'"]),
    "a single row": ("t.csv", b"n,a,b\nx,1,2\n", {}, ["1 row and 2 columns", "at least two"]),
    "a single column": ("t.csv", b"n,a\nx,1\ny,2\n", {}, ["2 rows and 1 column ", "at least two"]),
    "commas in a tab file": ("t.tsv", GOOD, {}, ["'\\t' as delimiter", "one cell", "delimiter="]),
    "old Macintosh line ends": ("t.csv", b"n,a,b\rx,1,2\ry,3,4\r", {}, ["carriage return", "line ends"]),
    "gzip that is none": ("t.csv.gz", GOOD, {}, ["ends in .gz but is not compressed", "Rename it"]),
    "gzip that is cut off": ("t.csv.gz", gzip.compress(os.urandom(3000).hex().encode())[:-40], {}, ["is cut off"]),
    "gzip that is damaged": (
        "t.csv.gz",
        gzip.compress(GOOD)[:12] + b"\xff\xff\xff" + gzip.compress(GOOD)[15:],
        {},
        ["damaged", "unpacked"],
    ),
    "gzip that is cut off far down": ("t.csv.gz", gzip.compress(long_text(), 1)[:-2000], {}, ["is cut off"]),
    "text far down": ("t.csv", long_text(b"last,1,oops\n"), {}, ["line 20,002, column 3 ('b')", "'oops'"]),
    "infinity far down": ("t.csv", long_text(b"last,inf,1\n"), {}, ["line 20,002, column 2 ('a')", "'inf'"]),
    "Latin-1 far down": ("t.csv", long_text(b"K\xf6ln,1,2\n"), {}, ["line 20,002", "0xf6"]),
    "an unknown ending": ("t.foo", GOOD, {}, ["'.foo'", ".csv", ".parquet", "format="]),
    "no ending": ("table", GOOD, {}, ["has no ending", "format="]),
    "an old Excel file": ("t.xls", GOOD, {}, ["'.xls'", "save it as .xlsx"]),
    "a compressed array": ("t.npy.gz", GOOD, {}, ["only text and .mtx", "Unpack it"]),
    "negative values under log1p": (
        "t.csv",
        b"n,a,b\nx,1,2\ny,-3,4\n",
        {"log1p": True},
        ["log1p", "-3 in row 2 ('y'), column 1 ('a')"],
    ),
    "a constant column under scale": (
        "t.csv",
        b"n,a,b\nx,1,2\ny,1,4\nz,,1\n",
        {"scale": True},
        ["1 column is constant ('a')", "Drop it"],
    ),
    "a missing column of a long table": (
        "t.csv",
        b"user,film,rating\nu,f,1\n",
        {"long": ("user", "movie", "rating")},
        ["no column 'movie'", "'user', 'film', 'rating'"],
    ),
    "a misspelt column of a long table": (
        "t.csv",
        b"user,film,rating\nu,f,1\n",
        {"long": ("user", "film", "ratings")},
        ["no column 'ratings'", "Did you mean 'rating'?"],
    ),
    "a position outside a long table": ("t.csv", b"u,f,1\nv,g,2\n", {"long": (0, 1, 3)}, ["3 columns", "position 3"]),
    "a column of a long table twice": ("t.csv", b"u,f,1\nv,g,2\n", {"long": (0, 0, 2)}, ["names a column twice"]),
    "names without a header in a long table": (
        "t.csv",
        b"u,f,1\nv,g,2\n",
        {"long": ("user", "film", "rating"), "header": False},
        ["has no header", "positions"],
    ),
    "a pair with two values": (
        "t.csv",
        b"user,film,rating\nu,f,1\nu,g,2\nv,f,3\nu,g,4\nu,f,5\n",
        {"long": ("user", "film", "rating")},
        ["row 'u' and column 'g'", "2 in entry 2 and 4 in entry 4", "2 entries repeat"],
    ),
    "text in a long table": (
        "t.csv",
        b"user,film,rating\nu,f,1\nv,g,good\n",
        {"long": ("user", "film", "rating")},
        ["line 3, column 3", "'good'"],
    ),
    "a ragged long table": (
        "t.csv",
        b"user,film,rating\nu,f,1\nv,g\n",
        {"long": ("user", "film", "rating")},
        ["line 3", "2 cells", "3"],
    ),
    "an entry without a name": (
        "t.csv",
        b"user,film,rating\nu,f,1\n,g,2\n",
        {"long": ("user", "film", "rating")},
        ["entry 2 has no row name"],
    ),
    "a long table that ends with its header": (
        "t.csv",
        b"user,film,rating\n",
        {"long": ("user", "film", "rating")},
        ["header and no rows"],
    ),
}

BAD_ARRAYS = {
    "no array at all": ("t.npy", b"junk" * 20, {}, ["no file of numpy arrays", "np.save"]),
    "an array that is cut off": ("t.npy", array(np.ones((9, 9)))[:-30], {}, ["a damaged file of numpy arrays"]),
    "an array of objects": (
        "t.npy",
        array(np.array([[1, "a"], [2, None]], dtype=object), allow_pickle=True),
        {},
        ["Python objects", "astype(float)"],
    ),
    "one dimension": ("t.npy", array(np.arange(5.0)), {}, ["1 dimension (5)", "Reshape"]),
    "three dimensions": ("t.npy", array(np.ones((2, 3, 4))), {}, ["3 dimensions (2 x 3 x 4)"]),
    "text in an array": ("t.npy", array(np.array([["a", "b"], ["c", "d"]])), {}, ["<U1 values", "real numbers"]),
    "flags in an array": ("t.npy", array(np.eye(3, dtype=bool)), {}, ["true and false", "1 and 0"]),
    "complex numbers in an array": ("t.npy", array(np.eye(3) * 1j), {}, ["complex numbers"]),
    "dates in an array": ("t.npy", array(np.zeros((2, 2), dtype="M8[D]")), {}, ["dates or times"]),
    "infinite values in an array": (
        "t.npy",
        array(np.array([[1, 2], [np.inf, 4]])),
        {},
        ["1 value is infinite", "row 2, column 1"],
    ),
    "large integers in an array": ("t.npy", array(np.array([[1, 2], [2**53 + 1, 4]])), {}, ["9007199254740993"]),
    "an archive called npy": ("t.npy", archive(a=np.eye(2)), {}, ["archive of arrays", ".npz"]),
    "an array called npz": ("t.npz", array(np.eye(2)), {}, ["a single array", ".npy"]),
    "several arrays": ("t.npz", archive(a=np.eye(2), b=np.eye(3)), {}, ["2 arrays", "'a', 'b'", "key="]),
    "no arrays": ("t.npz", archive(), {}, ["no arrays", "np.savez"]),
    "no such array": ("t.npz", archive(first=np.eye(2)), {"key": "frist"}, ["'frist'", "Did you mean 'first'?"]),
    "names that do not fit": (
        "t.npz",
        archive(values=np.eye(2), row_names=np.array(["a", "b", "c"])),
        {},
        ["row_names has 3 names", "2 rows"],
    ),
    "a sparse matrix by diagonals": ("t.npz", sparse(scipy.sparse.dia_array(np.eye(3))), {}, ["diagonals", "csr"]),
    "entries stored twice": (
        "t.npz",
        sparse(scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))),
        {},
        ["3 entries for 2 places"],
    ),
    "a broken MatrixMarket header": ("t.mtx", b"%%MatrixMarkt matrix\n1 1 1\n", {}, ["line 1", "%%MatrixMarkt"]),
    "complex MatrixMarket": ("t.mtx", market("coordinate complex general", "2 2 1", "1 1 1 2"), {}, ["complex"]),
    "MatrixMarket without values": ("t.mtx", market("coordinate pattern general", "2 2 1", "1 1"), {}, ["'pattern'"]),
    "MatrixMarket that is cut off": ("t.mtx", market("coordinate real general", "2 2 3", "1 1 1"), {}, ["damaged"]),
    "MatrixMarket with text": ("t.mtx", market("coordinate real general", "2 2 1", "1 1 x"), {}, ["damaged"]),
    "an empty MatrixMarket file": ("t.mtx.gz", gzip.compress(b"\n"), {}, ["is empty", "%%MatrixMarket"]),
    "no Parquet": ("t.parquet", b"PAR1 junk junk junk", {}, ["no Parquet file, or is damaged"]),
}


@pytest.mark.parametrize("kind", [*BAD_TEXT, *BAD_ARRAYS])
def test_a_bad_file_is_refused_with_a_reason(kind, tmp_path):
    name, content, options, fragments = {**BAD_TEXT, **BAD_ARRAYS}[kind]
    path = tmp_path / name
    path.write_bytes(content)
    refused(path, *fragments, **options)


@pytest.mark.parametrize(
    ("columns", "fragments"),
    [
        ({"n": ["x", "y"], "a": [[1.0], [2.0]], "b": [1, 2]}, ["column 'a' is nested"]),
        ({"n": ["x", "y"], "a": [1, 2], "b": ["u", "v"]}, ["column 'b' holds text", "'u'", "row_names=True"]),
        ({"n": ["x", "y"], "a": [1, 2], "b": [True, None]}, ["column 'b' holds true and false"]),
        ({"n": ["x", "y"], "a": [1, 2], "b": np.array(["2018-01-01", "2018-01-02"], "M8[s]")}, ["'b' holds dates"]),
        ({"n": ["x", "x"], "a": [1, 2], "b": [3, 4]}, ["row name 'x'", "rows 1 and 2"]),
        ({"n": ["x", None], "a": [1, 2], "b": [3, 4]}, ["row 2", "no name"]),
        ({"n": ["x", "y"], "a": [2**53 + 1, None], "b": [3, 4]}, ["column 'a' holds 9007199254740993"]),
        ({"n": ["x", "y"], "a": [1.0, np.inf], "b": [3, 4]}, ["row 2 ('y'), column 1 ('a')"]),
        ({"n": ["x", "y"]}, ["0 columns"]),
    ],
)
def test_a_bad_parquet_file_is_refused(columns, fragments, tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(**columns))
    refused(path, *fragments)


def test_names_of_a_long_parquet_table_are_text_or_integers(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(u=[1.5, 2.5], f=["a", "b"], r=[1.0, 2.0]))
    refused(path, "column 'u' holds double", "text or integers", long=("u", "f", "r"))
    refused(path, "no column 'x'", long=("x", "f", "r"))


def test_a_parquet_file_that_is_cut_off(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(a=list(range(1000)), b=list(range(1000)))[:-200])
    refused(path, "damaged")


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "t.csv").mkdir()
    refused(tmp_path / "t.csv", "is a folder")


def test_a_file_that_is_not_there_is_asked_about(tmp_path):
    (tmp_path / "temperature.csv").write_bytes(GOOD)
    refused(tmp_path / "temprature.csv", "no file", "Did you mean 'temperature.csv'?")
    with pytest.raises(TableError, match="There is no folder"):
        read_table(tmp_path / "nowhere" / "t.csv")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD)

    def deny(self, *arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "open", deny)
        with pytest.raises(TableError, match=r"t\.csv may not be read: permission denied"):
            read_table(path)


def test_a_file_that_vanishes_after_the_check(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD)
    real = pathlib.Path.open

    def vanish(self, *arguments, **options):
        self.unlink()
        return real(self, *arguments, **options)

    monkeypatch.setattr(pathlib.Path, "open", vanish)
    with pytest.raises(TableError, match=r"There is no file .*t\.csv"):
        read_table(path)


def test_a_disk_that_fails_while_reading(tmp_path, monkeypatch):
    path = tmp_path / "t.npy"
    path.write_bytes(array(np.eye(3)))

    def fail(self, *arguments, **options):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(pathlib.Path, "open", fail)
    with pytest.raises(TableError, match=r"t\.npy cannot be read: Input/output error\."):
        read_table(path)


def test_a_link_to_nothing(tmp_path):
    (tmp_path / "t.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(TableError, match=r"t\.csv was not there"):
        read_table(tmp_path / "t.csv")


def test_anndata_is_named_where_it_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    (tmp_path / "t.h5ad").write_bytes(b"anything")
    refused(tmp_path / "t.h5ad", "not installed", "pip install 'lgmd[anndata]'")


def test_openpyxl_is_named_where_it_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_bytes(b"anything")
    refused(tmp_path / "t.xlsx", "not installed", "pip install openpyxl")


def test_an_anndata_file_that_is_none(tmp_path):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    (tmp_path / "t.h5ad").write_bytes(b"junk" * 100)
    refused(tmp_path / "t.h5ad", "no AnnData file")
    anndata.AnnData(obs={"a": [1, 2]}).write_h5ad(tmp_path / "u.h5ad")
    refused(tmp_path / "u.h5ad", "no matrix X")


def workbook(path, rows, **sheets):
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name in sheets:
        book.create_sheet(name)
    book.save(path)
    return path


def test_an_excel_file_that_is_no_archive(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"junk" * 100)
    refused(tmp_path / "t.xlsx", "no Excel file")
    with zipfile.ZipFile(tmp_path / "u.xlsx", "w") as other:
        other.writestr("a.txt", "b")
    refused(tmp_path / "u.xlsx", "no Excel file")


def test_a_sheet_that_is_not_there(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [["n", "a", "b"], ["x", 1, 2], ["y", 3, 4]], Results=True)
    refused(path, "no sheet 'Result'", "'Sheet', 'Results'", "Did you mean 'Results'", sheet="Result")
    refused(path, "2 sheets", "position 7", sheet=7)
    refused(path, "sheet 'Results' is empty", sheet=1)


@pytest.mark.parametrize(
    ("rows", "fragments"),
    [
        ([["n", "a", "b"], ["x", 1, "high"], ["y", 3, 4]], ["cell C2 ('b')", "'high'"]),
        ([["n", "a", "b"], ["x", 1, True], ["y", 3, 4]], ["cell C2 ('b')", "'TRUE'"]),
        ([["n", "a", "b"], ["x", 1, "#DIV/0!"], ["y", 3, 4]], ["cell C2 ('b')", "'#DIV/0!'"]),
        ([["n", "a", "b"]], ["header and no rows"]),
        ([["n", "a", "b"], ["x", 1, "=B2+1"], ["y", 3, 4]], ["cell C2", "'=B2+1'", "no stored result"]),
        ([[None, "n", "a", "b"], [None, "x", 1, "?!"], [None, "y", 3, 4]], ["cell D2 ('b')", "'?!'"]),
    ],
)
def test_a_bad_cell_of_a_sheet_is_named(rows, fragments, tmp_path):
    refused(workbook(tmp_path / "t.xlsx", rows), *fragments)


def test_a_date_in_a_sheet_is_no_value(tmp_path):
    import datetime

    rows = [["n", "a", "b"], ["x", 1, datetime.datetime(2018, 1, 31)], ["y", 3, 4]]
    refused(workbook(tmp_path / "t.xlsx", rows), "cell C2 ('b')", "'2018-01-31', a date")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "word"}, "format must be one of"),
        ({"header": "yes"}, "header must be True, False or 'auto'"),
        ({"row_names": 1.5}, "row_names must be True, False or 'auto'"),
        ({"delimiter": "ab"}, "delimiter must be a single ASCII character"),
        ({"delimiter": "·"}, "delimiter must be a single ASCII character"),
        ({"delimiter": '"'}, "delimiter must be a single ASCII character"),
        ({"long": ("a", "b")}, "long must be three columns"),
        ({"long": "abc"}, "long must be three columns"),
    ],
)
def test_settings_are_checked(options, words, tmp_path):
    (tmp_path / "t.csv").write_bytes(GOOD)
    with pytest.raises(InvalidParameterError, match=words):
        read_table(tmp_path / "t.csv", **options)


def test_long_tables_come_from_text_and_parquet(tmp_path):
    (tmp_path / "t.npy").write_bytes(array(np.eye(3)))
    refused(tmp_path / "t.npy", "long tables are read from csv, tsv, txt, parquet", long=(0, 1, 2))


def test_table_errors_are_errors_of_this_package():
    assert issubclass(TableError, LGMDError)
    assert issubclass(TableError, ValueError)


def test_damage_anywhere_gives_a_table_or_a_table_error(tmp_path, rng):
    """Bytes changed at random never end in an error that is not ours."""
    originals = {
        "t.csv": GOOD,
        "t.csv.gz": gzip.compress(GOOD),
        "t.npy": array(np.eye(3)),
        "t.npz": archive(a=np.eye(3)),
        "t.mtx": market("coordinate real general", "2 2 2", "1 1 1.5", "2 2 3"),
        "t.parquet": parquet(n=["x", "y"], a=[1.0, 2.0], b=[3, 4]),
    }
    refusals = 0
    for name, content in originals.items():
        for _ in range(25):
            damaged = bytearray(content)
            for place in rng.integers(0, len(damaged), 3):
                damaged[place] = rng.integers(0, 256)
            (tmp_path / name).write_bytes(bytes(damaged))
            try:
                read_table(tmp_path / name)
            except TableError:
                refusals += 1
    assert refusals > 20

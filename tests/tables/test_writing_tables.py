"""Writing: nothing is overwritten unasked, and nothing is left behind where it fails."""

import errno
import io
import os
import pathlib
import stat
import sys

import numpy as np
import pytest

from lgmd.tables import Form, Table, TableError, check_writable, read_table, write_table, writing

FORMATS = ["csv", "tsv", "txt", "csv.gz", "parquet", "npy", "npz", "mtx", "mtx.gz", "xlsx", "h5ad"]
NEEDS = {"xlsx": "openpyxl", "h5ad": "anndata"}


@pytest.fixture
def table():
    return Table(np.array([[1.0, 2.5], [3.0, 4.0]]), np.array(["x", "y"]), np.array(["a", "b"]), "n")


def need(format):
    if format == "h5ad":
        pytest.importorskip("anndata", reason="the extra anndata is not installed")


def test_a_file_that_is_there_is_not_overwritten(table, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("precious")
    with pytest.raises(TableError, match=r"t\.csv is there already.*--force"):
        write_table(table, path)
    with pytest.raises(TableError, match="is there already"):
        check_writable(path)
    assert path.read_text() == "precious"
    write_table(table, path, force=True)
    assert path.read_text() == "n,a,b\nx,1.0,2.5\ny,3.0,4.0\n"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_a_header_has_a_corner_unless_the_file_had_none(tmp_path):
    named = Table(np.array([[1.5, 2.0], [3.0, 4.0]]), np.array(["x", "y"]), np.array(["a", "b"]))
    write_table(named, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == ",a,b\nx,1.5,2.0\ny,3.0,4.0\n"
    assert read_table(tmp_path / "t.csv").column_names.tolist() == ["a", "b"]


def test_a_link_to_nothing_counts_as_there(table, tmp_path):
    (tmp_path / "t.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(TableError, match="is there already"):
        write_table(table, tmp_path / "t.csv")


def test_the_folder_must_be_there(table, tmp_path):
    with pytest.raises(TableError, match=r"There is no folder .*results to write t\.csv to\. Make it first"):
        write_table(table, tmp_path / "results" / "t.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="is not a folder"):
        check_writable(tmp_path / "file" / "t.csv")
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_is_not_written_over(table, tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(TableError, match=r"t\.csv is a folder"):
        write_table(table, tmp_path / "t.csv", force=True)


def test_a_folder_that_may_not_be_written_to(table, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    with pytest.raises(TableError, match=r"The folder .* may not be written to"):
        write_table(table, tmp_path / "t.csv")
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission(table, tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(TableError, match="may not be written to"):
            write_table(table, tmp_path / "t.csv")
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_an_unknown_ending_is_refused_before_any_work(table, tmp_path):
    with pytest.raises(TableError, match=r"'\.doc', which is not one of a table"):
        check_writable(tmp_path / "t.doc")
    with pytest.raises(TableError, match=r"only text and \.mtx"):
        check_writable(tmp_path / "t.parquet.gz")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("t.foo", "Known are .csv, .*, .h5ad .* Give the file that is to be written one of these endings."),
        ("t", "has no ending. Known are .csv, .* Give the file"),
        ("t.xls", "Known are .* one of these endings."),
        ("t.npy.gz", "may be compressed with gzip. Leave .gz out."),
    ],
)
def test_advice_on_endings_of_results_is_about_results(name, advice, tmp_path):
    with pytest.raises(TableError, match=advice) as refused:
        check_writable(tmp_path / name)
    assert not any(words in str(refused.value) for words in ("format=", "Unpack", "open it"))


def test_check_writable_says_the_format(tmp_path):
    assert check_writable(tmp_path / "t.csv.gz") == "csv"
    assert check_writable(str(tmp_path / "T.TSV")) == "tsv"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("format", sorted(NEEDS))
def test_a_missing_package_is_named_before_any_work(format, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, NEEDS[format], None)
    with pytest.raises(TableError, match="pip install"):
        check_writable(tmp_path / f"t.{format}")


class FullDisk(io.FileIO):
    """Takes some bytes, and no more."""

    room = 20

    def write(self, data):
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(data)
        return super().write(data)


@pytest.mark.parametrize("format", ["csv", "csv.gz", "npy", "npz", "mtx", "mtx.gz"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_full_disk_leaves_nothing_behind(format, existing, table, tmp_path, monkeypatch):
    path = tmp_path / f"t.{format}"
    if existing:
        path.write_bytes(b"precious")
    real = pathlib.Path.open

    def crowded(self, mode="r", *arguments, **options):
        return FullDisk(self, "wb") if mode == "wb" else real(self, mode, *arguments, **options)

    def open_crowded(file, mode="r", *arguments, **options):
        return FullDisk(file, "wb") if "w" in mode else open(file, mode, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "open", crowded)
        patch.setattr("zipfile.io.open", open_crowded)
        with pytest.raises(TableError, match=r"the disk is full\. Nothing was left behind") as caught:
            write_table(table, path, force=True)
    assert path.name in str(caught.value)
    assert os.listdir(tmp_path) == ([path.name] if existing else [])
    if existing:
        assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_failure_at_the_end_leaves_nothing_behind(format, number, table, tmp_path, monkeypatch):
    need(format)
    real = writing._write

    def fail(*arguments):
        real(*arguments)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(writing, "_write", fail)
    with pytest.raises(TableError, match=rf"t\.{format} could not be written") as caught:
        write_table(table, tmp_path / f"t.{format}")
    assert ("disk is full" in str(caught.value)) == (number in (errno.ENOSPC, errno.EDQUOT))
    assert not os.listdir(tmp_path)


def test_an_interrupt_leaves_nothing_behind(table, tmp_path, monkeypatch):
    def interrupt(*arguments):
        arguments[1].write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "_write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_table(table, tmp_path / "t.csv")
    assert not os.listdir(tmp_path)


def test_a_table_too_large_for_a_sheet_is_refused(tmp_path):
    with pytest.raises(TableError, match="at most 1,048,576 rows and 16,384 columns"):
        write_table(Table(np.zeros((2, 16_385))), tmp_path / "t.xlsx")
    assert not os.listdir(tmp_path)


def test_control_characters_do_not_go_into_a_sheet(tmp_path):
    with pytest.raises(TableError, match="control characters"):
        write_table(Table(np.eye(2), np.array(["a\x01", "b"])), tmp_path / "t.xlsx")
    assert not os.listdir(tmp_path)


def test_names_that_the_encoding_cannot_hold(tmp_path):
    named = Table(np.eye(2), np.array(["四", "b"]), form=Form("csv", encoding="latin-1"))
    with pytest.raises(TableError, match="encoding 'latin-1' of the original cannot hold"):
        write_table(named, tmp_path / "t.csv")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_the_source_may_be_replaced_by_the_result(format, table, tmp_path):
    need(format)
    path = tmp_path / f"t.{format}"
    write_table(table, path)
    write_table(read_table(path), path, force=True)
    values = read_table(path).values
    np.testing.assert_array_equal(values, table.values)

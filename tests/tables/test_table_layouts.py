"""Where a header, row names, gaps and delimiters are seen, and that two parsers see the same."""

import gzip

import numpy as np
import pytest

from lgmd.tables import _text as text_reader
from lgmd.tables import read_table

NAN = float("nan")


def read(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(path, **options)


def check(table, values, rows, columns, corner=None):
    np.testing.assert_array_equal(table.values, np.array(values, dtype=float))
    assert (None if table.row_names is None else table.row_names.tolist()) == rows
    assert (None if table.column_names is None else table.column_names.tolist()) == columns
    assert table.corner == corner


NUMBERS = [[1.5, 2, 3], [4, NAN, 6], [7, 8, 9.25]]
ROWS = ["s1", "s2", "s3"]
LAYOUTS = {
    "both names": ("station,a,b,c\ns1,1.5,2,3\ns2,4,NA,6\ns3,7,8,9.25\n", ROWS, ["a", "b", "c"], "station"),
    "an empty corner": (",a,b,c\ns1,1.5,2,3\ns2,4,NA,6\ns3,7,8,9.25\n", ROWS, ["a", "b", "c"], ""),
    "no corner, as R writes": ("a,b,c\ns1,1.5,2,3\ns2,4,NA,6\ns3,7,8,9.25\n", ROWS, ["a", "b", "c"], None),
    "a header alone": ("a,b,c\n1.5,2,3\n4,NA,6\n7,8,9.25\n", None, ["a", "b", "c"], None),
    "row names alone": ("s1,1.5,2,3\ns2,4,NA,6\ns3,7,8,9.25\n", ROWS, None, None),
    "no names": ("1.5,2,3\n4,NA,6\n7,8,9.25\n", None, None, None),
    "years above": (
        "station,1990,1991,1992\ns1,1.5,2,3\ns2,4,,6\ns3,7,8,9.25\n",
        ROWS,
        ["1990", "1991", "1992"],
        "station",
    ),
    "years and text above": (
        "s,1990,1991,mean\ns1,1.5,2,3\ns2,4,,6\ns3,7,8,9.25\n",
        ROWS,
        ["1990", "1991", "mean"],
        "s",
    ),
    "dates above": (
        "s,2018-01-01,2018-01-02,2018-01-03\ns1,1.5,2,3\ns2,4,,6\ns3,7,8,9.25\n",
        ROWS,
        ["2018-01-01", "2018-01-02", "2018-01-03"],
        "s",
    ),
    "dates beside": (
        "day,a,b,c\n2018-01-01,1.5,2,3\n2018-01-02,4,,6\n2018-01-03,7,8,9.25\n",
        ["2018-01-01", "2018-01-02", "2018-01-03"],
        ["a", "b", "c"],
        "day",
    ),
    "counts of pandas": (",0,1,2\n0,1.5,2,3\n1,4,,6\n2,7,8,9.25\n", ["0", "1", "2"], ["0", "1", "2"], ""),
    "whole ids": ("id,a,b,c\n17,1.5,2,3\n4,4,,6\n11,7,8,9.25\n", ["17", "4", "11"], ["a", "b", "c"], "id"),
    "chromosomes": (
        "chromosome,a,b,c\n1,1.5,2,3\n2,4,,6\nX,7,8,9.25\n",
        ["1", "2", "X"],
        ["a", "b", "c"],
        "chromosome",
    ),
    "a name that marks a gap elsewhere": (
        "country,a,b,c\nDE,1.5,2,3\nNA,4,,6\nFR,7,8,9.25\n",
        ["DE", "NA", "FR"],
        ["a", "b", "c"],
        "country",
    ),
    "blank lines": ("\ns,a,b,c\n\ns1,1.5,2,3\ns2,4,,6\n\n\ns3,7,8,9.25\n\n", ROWS, ["a", "b", "c"], "s"),
    "Windows line ends": ("s,a,b,c\r\ns1,1.5,2,3\r\ns2,4,,6\r\ns3,7,8,9.25\r\n", ROWS, ["a", "b", "c"], "s"),
    "no last line end": ("s,a,b,c\ns1,1.5,2,3\ns2,4,,6\ns3,7,8,9.25", ROWS, ["a", "b", "c"], "s"),
    "spaces around cells": ("s,a,b,c\ns1, 1.5,2 , 3\ns2,4, NA ,6\ns3,7,8,9.25\n", ROWS, ["a", "b", "c"], "s"),
    "quoted numbers": ('s,a,b,c\n"s1","1.5","2","3"\ns2,4,"",6\ns3,+7,8.,925e-2\n', ROWS, ["a", "b", "c"], "s"),
}


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("slow", [False, True])
def test_names_are_recognised(kind, slow, tmp_path, monkeypatch):
    if slow:
        monkeypatch.setattr(text_reader, "_fast", lambda *arguments: None)
    text, rows, columns, corner = LAYOUTS[kind]
    check(read(tmp_path, text), NUMBERS, rows, columns, corner)


@pytest.mark.parametrize("kind", sorted(set(LAYOUTS) - {"spaces around cells"}))
def test_the_fast_parser_reads_what_it_should(kind, tmp_path, monkeypatch):
    def fail(*arguments):
        raise AssertionError("the slow parser was asked")

    monkeypatch.setattr(text_reader, "parse_grid", fail)
    text, rows, columns, corner = LAYOUTS[kind]
    check(read(tmp_path, text), NUMBERS, rows, columns, corner)


@pytest.mark.parametrize(
    ("text", "options", "values", "rows", "columns"),
    [
        ("1,2\n3,4\n5,6\n", {"header": True}, [[3, 4], [5, 6]], None, ["1", "2"]),
        ("1,3,2\n4,5,6\n", {"row_names": True}, [[3, 2], [5, 6]], ["1", "4"], None),
        ("9,1,2\n3,4,5\n6,7,8\n", {"header": True, "row_names": True}, [[4, 5], [7, 8]], ["3", "6"], ["1", "2"]),
        (
            ",0,1\n0,1.5,2\n1,4,5\n",
            {"row_names": False, "header": False},
            [[NAN, 0, 1], [0, 1.5, 2], [1, 4, 5]],
            None,
            None,
        ),
        ("id,a,b\n1,2,3\n4,5,6\n", {"row_names": False}, [[1, 2, 3], [4, 5, 6]], None, ["id", "a", "b"]),
        ("day,a,b\n1,2,3\n2,5,6\n", {}, [[1, 2, 3], [2, 5, 6]], None, ["day", "a", "b"]),
        ("s1,1990,1991\ns2,3,4\n", {}, [[1990, 1991], [3, 4]], ["s1", "s2"], None),
        ("s1,1990,1991\ns2,3,4\ns3,5,6\n", {"header": True}, [[3, 4], [5, 6]], ["s2", "s3"], ["1990", "1991"]),
    ],
)
def test_flags_overrule_the_rules(text, options, values, rows, columns, tmp_path):
    table = read(tmp_path, text, **options)
    np.testing.assert_array_equal(table.values, np.array(values, dtype=float))
    assert (None if table.row_names is None else table.row_names.tolist()) == rows
    assert (None if table.column_names is None else table.column_names.tolist()) == columns


def test_row_names_are_judged_by_the_whole_column(tmp_path):
    """Far below the head the first column turns out to be names, or numbers with a repeated one."""
    lines = [f"{i},{i}.5,1" for i in range(300)]
    table = read(tmp_path, "\n".join(["chromosome,a,b", *lines, "X,1,2"]) + "\n")
    assert table.shape == (301, 2)
    assert table.row_names[-1] == "X"
    table = read(tmp_path, "\n".join(["id,a,b", *lines, "7,1,2"]) + "\n")
    assert table.shape == (301, 3)
    assert table.row_names is None


@pytest.mark.parametrize(
    "marker", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "-", "?", "#N/A", " ", "<NA>"]
)
def test_usual_markers_are_gaps(marker, tmp_path):
    check(read(tmp_path, f"n,a,b\nx,1,{marker}\ny,{marker},4\n"), [[1, NAN], [NAN, 4]], ["x", "y"], ["a", "b"], "n")


def test_markers_of_ones_own(tmp_path):
    text = "n,a,b,c\nx,1,missing,3\ny,-999,4,-999.0\n"
    table = read(tmp_path, text, missing=["missing", "-999"])
    check(table, [[1, NAN, 3], [NAN, 4, NAN]], ["x", "y"], ["a", "b", "c"], "n")
    np.save(tmp_path / "t.npy", np.array([[1, -999], [3, 4]]))
    np.testing.assert_array_equal(read_table(tmp_path / "t.npy", missing=[-999]).values, [[1, NAN], [3, 4]])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
def test_delimiters_are_found(delimiter, name, tmp_path):
    if delimiter == " " and name == "t.csv":
        return
    text = "station,a,b,c\ns1,1.5,2,3\ns2,4,NA,6\ns3,7,8,9.25\n".replace(",", delimiter)
    table = read(tmp_path, text, name)
    check(table, NUMBERS, ROWS, ["a", "b", "c"], "station")
    assert table.form.delimiter == delimiter


def test_columns_may_be_aligned_with_spaces(tmp_path):
    text = (
        "  station    a     b   c  \n  s1       1.5     2   3\n  s2       4      NA   6  \n  s3       7     8  9.25\n"
    )
    check(read(tmp_path, text, "t.txt"), NUMBERS, ROWS, ["a", "b", "c"], "station")


def test_a_sign_inside_names_is_no_delimiter(tmp_path):
    table = read(tmp_path, "n,a;x,b;x\np;q,1,2\nr;s,3,4\n")
    check(table, [[1, 2], [3, 4]], ["p;q", "r;s"], ["a;x", "b;x"], "n")


def test_a_given_delimiter_is_used(tmp_path):
    check(read(tmp_path, "n:a:b\nx:1:2\ny:3:4\n", delimiter=":"), [[1, 2], [3, 4]], ["x", "y"], ["a", "b"], "n")
    check(read(tmp_path, "n  a b\nx 1   2\ny 3 4\n", delimiter=" "), [[1, 2], [3, 4]], ["x", "y"], ["a", "b"], "n")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-16-le", "cp1252"])
def test_other_encodings_are_read_when_named(encoding, tmp_path):
    table = read(tmp_path, "n,ä,b\nKöln,1,2\ny,3,4\n".encode(encoding), encoding=encoding)
    check(table, [[1, 2], [3, 4]], ["Köln", "y"], ["ä", "b"], "n")


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    table = read(tmp_path, b"\xef\xbb\xbfn,a,b\nx,1,2\ny,3,4\n")
    check(table, [[1, 2], [3, 4]], ["x", "y"], ["a", "b"], "n")


def test_the_ending_may_lie_where_the_format_is_given(tmp_path):
    table = read(tmp_path, "n\ta\tb\nx\t1\t2\ny\t3\t4\n", "export.data", format="tsv")
    check(table, [[1, 2], [3, 4]], ["x", "y"], ["a", "b"], "n")
    assert table.format == "tsv"


def test_compressed_text_is_the_same_table(tmp_path):
    text = LAYOUTS["both names"][0]
    plain = read(tmp_path, text)
    packed = read(tmp_path, gzip.compress(text.encode()), "t.csv.gz")
    unnamed = read(tmp_path, gzip.compress(text.encode()), "packed.csv")
    for table in (packed, unnamed):
        check(table, plain.values, plain.row_names.tolist(), plain.column_names.tolist(), plain.corner)


def test_every_double_is_read_as_python_reads_it(tmp_path, rng):
    bits = rng.integers(0, 2**63, 4000, dtype=np.uint64).view(np.float64)
    values = np.concatenate([bits[np.isfinite(bits)], 10.0 ** rng.uniform(-300, 300, 4000), rng.standard_normal(4000)])
    values = values[: len(values) // 8 * 8].reshape(-1, 8)
    texts = [[f"{value:.{digits}g}" for digits, value in zip(range(10, 26, 2), row, strict=True)] for row in values]
    table = read(tmp_path, "\n".join(",".join(row) for row in texts) + "\n")
    np.testing.assert_array_equal(table.values, [[float(text) for text in row] for row in texts])


def test_a_row_longer_than_a_block_is_read(tmp_path, rng, monkeypatch):
    from lgmd.tables import _fast_text

    monkeypatch.setattr(_fast_text, "_BLOCK", 1 << 10)
    monkeypatch.setattr(_fast_text, "_LONGEST_ROW", 1 << 10)
    values = rng.standard_normal((50, 300))
    table = read(tmp_path, "\n".join(",".join(map(repr, row)) for row in values.tolist()) + "\n")
    np.testing.assert_array_equal(table.values, values)


def test_a_table_says_what_it_is(tmp_path):
    table = read(tmp_path, LAYOUTS["both names"][0])
    assert repr(table) == "<Table of 3 x 3 with 8 observed entries from t.csv>"
    assert table.shape == (3, 3)
    assert table.source == tmp_path / "t.csv"
    assert not table.is_sparse
    with pytest.raises(AttributeError):
        table.values = None


def test_spaces_in_names_do_not_separate_cells(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("\tday 1\tday 2\nrow 1\t1\t2\nrow 2\t3\t4\n")
    table = read_table(path)
    assert table.row_names.tolist() == ["row 1", "row 2"]
    assert table.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


COUNTED = [
    ("0,1,2\n1.5,2,3\n4,,6\n", ["0", "1", "2"], [[1.5, 2, 3], [4, NAN, 6]]),
    ("1,2,3\n1.5,2,3\n4,,6\n", ["1", "2", "3"], [[1.5, 2, 3], [4, NAN, 6]]),
    ("0,1,2\n7,2,3\n4,,6\n", None, [[0, 1, 2], [7, 2, 3], [4, NAN, 6]]),
    ("0,1,2,3\n" + "5,6,7,8\n" * 150 + "5,6,7,8.5\n", ["0", "1", "2", "3"], [[5, 6, 7, 8]] * 150 + [[5, 6, 7, 8.5]]),
]


@pytest.mark.parametrize(("text", "columns", "values"), COUNTED)
@pytest.mark.parametrize("slow", [False, True])
def test_a_first_row_that_just_counts_is_a_guess_that_is_told(text, columns, values, slow, tmp_path, monkeypatch):
    if slow:
        monkeypatch.setattr(text_reader, "_fast", lambda *_: None)
    words = "data, although it just counts.*header=True" if columns is None else "column names, since.*header=False"
    with pytest.warns(UserWarning, match=f"t.csv: the first row is taken for {words}") as caught:
        check(read(tmp_path, text), values, None, columns)
    assert caught[0].filename == __file__
    said = columns is not None
    check(read(tmp_path, text, header=said), values, None, columns)


def test_a_header_that_counts_may_stand_above_row_names(tmp_path):
    with pytest.warns(UserWarning, match="taken for column names"):
        check(read(tmp_path, "0,1,2\na,2,3\nb,5,6\n"), [[2, 3], [5, 6]], ["a", "b"], ["1", "2"], "0")


@pytest.mark.parametrize("first", ["2,3,4", "0,1,3", "1.0,2.0,3.0", "0,2,1"])
def test_a_first_row_that_does_not_count_is_data(first, tmp_path):
    assert read(tmp_path, f"{first}\n1.5,2,3\n4,5,6\n").column_names is None


def test_counting_headers_are_seen_in_excel_too(tmp_path):
    import pandas as pd

    pd.DataFrame([[1.5, 2, 3], [4, 5, 6]]).to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.warns(UserWarning, match=r"t.xlsx: the first row is taken for column names") as caught:
        check(read_table(tmp_path / "t.xlsx"), [[1.5, 2, 3], [4, 5, 6]], None, ["0", "1", "2"])
    assert caught[0].filename == __file__

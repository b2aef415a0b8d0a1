"""The code that a report shows reads the table that was fitted, whatever its format and the options of the command."""

import html
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

from lgmd import PMF
from lgmd.tables import read_table, write_table

SMALL = ("--model", "pmf", "-k", 2, "--max-iter", 3, "--held-out", 0, "--quiet")


def semicolons(frame, path):
    frame.abs().fillna(-999).to_csv(path, sep=";", index_label="station")


def two_sheets(frame, path):
    with pd.ExcelWriter(path) as book:
        frame.T.to_excel(book, sheet_name="turned")
        frame.to_excel(book, sheet_name="upright")


def two_arrays(frame, path):
    np.savez(path, a=frame.to_numpy(), b=frame.to_numpy() + 1)


def entries(frame):
    return frame.rename_axis("s").reset_index().melt("s", var_name="day", value_name="v").dropna()


def sparse(frame, path):
    scipy.io.mmwrite(path, scipy.sparse.coo_array(np.nan_to_num(frame.to_numpy())))


def converted(frame, path):
    plain = path.with_suffix(".csv")
    frame.to_csv(plain)
    write_table(replace(read_table(plain)), path)


FILES = {
    "semicolons": ("t.csv", semicolons, ("--missing", "-999", "--transpose", "--log1p", "--scale")),
    "tabs": ("t.tsv", lambda frame, path: frame.to_csv(path, sep="\t"), ()),
    "a delimiter by name": ("t.txt", lambda frame, path: frame.to_csv(path, sep="\t"), ("--delimiter", "tab")),
    "an array": ("t.npy", lambda frame, path: np.save(path, frame.to_numpy()), ("--scale",)),
    "one of two arrays": ("t.npz", two_arrays, ("--key", "b")),
    "a second sheet": ("t.xlsx", two_sheets, ("--sheet", "1")),
    "a sheet by name": ("t.xlsx", two_sheets, ("--sheet", "upright")),
    "Parquet": ("t.parquet", lambda frame, path: frame.to_parquet(path), ("--transpose",)),
    "a long table": ("t.csv", lambda frame, path: entries(frame).to_csv(path, index=False), ("--long", "s", "1", "v")),
    "MatrixMarket": ("t.mtx", sparse, ("--zeros",)),
    "AnnData": ("t.h5ad", converted, ()),
    "another ending": ("t.data", lambda frame, path: frame.to_csv(path), ("--format", "csv")),
}


def snippet(page):
    text = page.read_text(encoding="utf-8")
    return html.unescape(re.search(r'"Python code that fits the same model"><code>(.*?)</code>', text, re.S)[1])


def same_table(one, two):
    assert type(one) is type(two)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two)
    elif scipy.sparse.issparse(one):
        assert one.shape == two.shape
        assert (one.tocsr() != two.tocsr()).nnz == 0
    else:
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_snippet_fits_what_the_command_fitted(kind, command, frame, tmp_path, monkeypatch):
    name, write, options = FILES[kind]
    if name.endswith("h5ad"):
        pytest.importorskip("anndata", reason="the extra anndata is not installed")
    (tmp_path / "data").mkdir()
    write(frame, tmp_path / "data" / name)
    fitted = []
    real = PMF.fit

    def fit(self, data, **more):
        fitted.append(data)
        return real(self, data, **more)

    monkeypatch.setattr(PMF, "fit", fit)
    ended = command("fit", f"data/{name}", "-o", "out", *options, *SMALL)
    assert ended.code == 0, ended.err
    names = {}
    exec(snippet(tmp_path / "out" / "report.html"), names)
    same_table(*fitted)
    np.testing.assert_array_equal(names["filled"], PMF.load(tmp_path / "out" / "model.lgmd").reconstruct())


def test_reports_of_a_folder_know_how_its_table_was_read(command, frame, tmp_path):
    semicolons(frame, tmp_path / "t.csv")
    assert command("fit", "t.csv", "-o", "out", "--missing", "-999", "--log1p", "--no-report", *SMALL).code == 0
    assert command("report", "out", "-o", "page.html").code == 0
    assert "table = read_table('t.csv', missing=['-999'], log1p=True)" in snippet(tmp_path / "page.html")
    shutil.copy("out/model.lgmd", "alone.lgmd")
    assert command("report", "alone.lgmd", "-o", "bare.html").code == 0
    assert "stands for the file" in snippet(tmp_path / "bare.html")

"""``lgmd impute`` on files of every kind: names and observed values stay, gaps are filled."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lgmd.tables import read_table

QUICK = ("--max-iter", 3, "-k", 3, "--quiet", "--set", "prior=columns")
PLAIN = ("--max-iter", 3, "-k", 3, "--quiet", "--model", "pmf")


def check_filled(before, after):
    """All observed entries to the last bit, all gaps filled, all names."""
    known = before.values if isinstance(before.values, np.ndarray) else None
    if known is None:
        entries = before.values.tocoo()
        known = np.full(before.shape, np.nan)
        known[entries.coords] = entries.data
    filled = after.values
    if not isinstance(filled, np.ndarray):
        entries = filled.tocoo()
        filled = np.full(after.shape, np.nan)
        filled[entries.coords] = entries.data
    order = [
        slice(None) if names is None else [list(now).index(name) for name in names]
        for names, now in ((before.row_names, after.row_names), (before.column_names, after.column_names))
    ]
    filled = filled[order[0]][:, order[1]]
    seen = ~np.isnan(known)
    assert not seen.all()
    assert np.array_equal(filled[seen], known[seen])
    assert np.isfinite(filled).all()
    # A column's gaps lie in the range of what is known of the table, not at some default.
    low, high = np.nanmin(known), np.nanmax(known)
    assert np.all((filled > low - 2 * (high - low)) & (filled < high + 2 * (high - low)))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet", "t.xlsx", "t.npy", "t.npz"])
def test_every_format_is_filled_in_its_own_form(name, command, frame, tmp_path):
    path, output = tmp_path / name, tmp_path / f"filled.{name.partition('.')[2]}"
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif name.endswith(".xlsx"):
        frame.to_excel(path)
    elif name.endswith(".npy"):
        np.save(path, frame.to_numpy())
    elif name.endswith(".npz"):
        np.savez(path, values=frame.to_numpy(), row_names=frame.index.to_numpy(dtype=str))
    else:
        frame.to_csv(path, sep="," if name.endswith(".csv") else "\t")
    ended = command("impute", path, "--output", output, *PLAIN)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    check_filled(read_table(path), read_table(output))


def test_sparse_matrices_are_filled_where_nothing_is_stored(command, frame, tmp_path):
    values = frame.to_numpy()
    rows, columns = np.nonzero(~np.isnan(values))
    matrix = scipy.sparse.coo_array((values[rows, columns], (rows, columns)), shape=values.shape)
    from scipy.io import mmwrite

    mmwrite(tmp_path / "t.mtx", matrix, precision=17)
    ended = command("impute", "t.mtx", "--output", "filled.mtx", *PLAIN)
    assert ended.code == 0, ended.err
    check_filled(read_table(tmp_path / "t.mtx"), read_table(tmp_path / "filled.mtx"))


def test_long_ratings_keep_their_columns(command, tmp_path):
    rng = np.random.default_rng(0)
    pairs = [(u, f) for u in range(15) for f in range(10) if rng.random() < 0.6 or u % 10 == f]
    ratings = pd.DataFrame(pairs, columns=["user", "film"]).assign(stars=rng.integers(1, 6, len(pairs)), when="May")
    ratings["film"] = "film " + ratings["film"].astype(str)
    ratings.to_csv(tmp_path / "ratings.csv", index=False)
    long = ("--long", "user", "film", "stars")
    ended = command("impute", "ratings.csv", "-o", "all.csv", *long, "--max-iter", 3, "-k", 2, "--model", "pmf")
    assert ended.code == 0, ended.err
    written = pd.read_csv(tmp_path / "all.csv")
    assert list(written.columns) == ["user", "film", "stars"]
    assert len(written) == 150
    joined = ratings.merge(written, on=["user", "film"])
    assert len(joined) == len(ratings)
    assert (joined["stars_x"] == joined["stars_y"]).all()
    assert f"{150 - len(ratings)} gaps filled" in ended.out


def test_anndata_files(command, frame, tmp_path):
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")
    data = anndata.AnnData(frame.to_numpy(), obs=pd.DataFrame(index=frame.index), var=pd.DataFrame(index=frame.columns))
    data.obs["height"] = np.arange(20.0)
    data.write_h5ad(tmp_path / "t.h5ad")
    assert command("impute", "t.h5ad", "-o", "filled.h5ad", *PLAIN).code == 0
    check_filled(read_table(tmp_path / "t.h5ad"), read_table(tmp_path / "filled.h5ad"))
    assert list(anndata.read_h5ad(tmp_path / "filled.h5ad").obs["height"]) == list(range(20))


def test_one_format_becomes_another(command, table_file):
    assert command("impute", table_file, "-o", "filled.parquet", *PLAIN).code == 0
    check_filled(read_table(table_file), read_table("filled.parquet"))


def test_error_bars_are_zero_where_something_was_observed(command, table_file, frame):
    ended = command("impute", table_file, "-o", "filled.csv", "--error-bars", "bars.csv", *QUICK)
    assert ended.code == 0
    bars = pd.read_csv("bars.csv", index_col=0)
    assert list(bars.columns) == list(frame.columns)
    gaps = frame.isna().to_numpy()
    assert np.all(bars.to_numpy()[~gaps] == 0)
    assert np.all(bars.to_numpy()[gaps] > 0)


def test_error_bars_go_through_the_transformations(command, table_file, frame):
    """Turned round the answer is the same, and a table ten times as large has bars ten times as large."""
    frame.mul(10).to_csv("ten.csv")
    frame.T.to_csv("turned.csv")
    scaled = ("--scale", "--intercept", "none")
    for name, options in {
        "table.csv": scaled,
        "ten.csv": scaled,
        "turned.csv": ("--transpose", *scaled),
    }.items():
        outputs = ("-o", f"filled_{name}", "--error-bars", f"bars_{name}")
        assert command("impute", name, *outputs, *options, *QUICK).code == 0
    plain, ten, turned = (
        pd.read_csv(f"bars_{name}.csv", index_col=0).to_numpy() for name in ("table", "ten", "turned")
    )
    assert plain.max() > 0
    np.testing.assert_allclose(ten, 10 * plain, rtol=1e-6)
    np.testing.assert_allclose(turned.T, plain, rtol=1e-6)


def test_counts_stay_positive_under_log1p(command, tmp_path):
    rng = np.random.default_rng(3)
    counts = rng.poisson(np.exp(rng.standard_normal((15, 1)) + rng.standard_normal(8)), (15, 8)).astype(float)
    counts[rng.random(counts.shape) < 0.2] = np.nan
    np.save(tmp_path / "counts.npy", counts)
    assert command("impute", "counts.npy", "-o", "filled.npy", "--log1p", *PLAIN).code == 0
    filled = np.load(tmp_path / "filled.npy")
    assert np.array_equal(filled[~np.isnan(counts)], counts[~np.isnan(counts)])
    assert filled.min() > -1


def test_reading_options_reach_the_reader(command, frame, tmp_path):
    path = tmp_path / "odd.dat"
    frame.fillna(-999).to_csv(path, sep="|", header=False, encoding="utf-16")
    options = ("--delimiter", "|", "--missing", "-999", "--encoding", "utf-16", "--no-header", "--row-names")
    ended = command("impute", path, "-o", "filled.dat", *options, *PLAIN)
    assert ended.code == 0, ended.err
    filled = read_table("filled.dat", delimiter="|", encoding="utf-16", header=False)
    assert not (filled.values == -999).any()
    assert list(filled.row_names) == list(frame.index)


def test_sheets_are_named(command, frame, tmp_path):
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        pd.DataFrame([["notes"]]).to_excel(book, sheet_name="notes")
        frame.to_excel(book, sheet_name="2018")
    for sheet in ("2018", "1"):
        assert command("impute", "book.xlsx", "-o", f"filled{sheet}.xlsx", "--sheet", sheet, *PLAIN).code == 0
    assert read_table("filled1.xlsx").shape == frame.shape


def test_the_outcome_for_programs(command, table_file, frame):
    ended = command("impute", table_file, "-o", "filled.csv", "--json", "--max-iter", 2, "-k", 2, "--model", "pmf")
    found = json.loads(ended.out)
    assert found["outcome"] == "imputed"
    assert found["output"] == "filled.csv"
    assert found["filled"] == int(frame.isna().to_numpy().sum())
    assert found["result"]["iterations"] == 2
    assert any("stopped by --max-iter after 2 iterations" in warning for warning in found["warnings"])
    assert ended.err.startswith(f"{table_file}: 20 rows x 12 columns")


def test_models_without_error_bars_say_so_before_the_fit(command, table_file):
    ended = command("impute", table_file, "-o", "filled.csv", "--error-bars", "bars.csv", "--model", "pmf")
    assert ended.code == 1
    assert "--inference variational" in ended.err
    assert "Traceback" not in ended.err
    variational = ("--inference", "variational", "--model", "pmf")
    assert command("impute", table_file, "-o", "filled.csv", "--error-bars", "bars.csv", *variational, *QUICK).code == 0


def test_two_results_need_two_names(command, table_file):
    ended = command("impute", table_file, "-o", "filled.csv", "--error-bars", "./filled.csv", *QUICK)
    assert ended.code == 1
    assert "named twice" in ended.err


def test_two_results_of_one_name_are_refused_before_the_table_is_read(command):
    ended = command("impute", "nowhere.csv", "-o", "filled.csv", "--error-bars", "./filled.csv", *QUICK)
    assert ended.code == 1
    assert "named twice" in ended.err

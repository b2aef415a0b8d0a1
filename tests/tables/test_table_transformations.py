"""Transposition, log1p and scaling, and the way back."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.preprocessing import StandardScaler

from lgmd.exceptions import InvalidParameterError
from lgmd.tables import Form, Table, fill, read_table, undo, undo_std, write_table

TEXT = "gene,c1,c2,c3\ng1,3,0,12\ng2,,7,1\ng3,5,,100\ng4,8,2,0.1\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    return tmp_path / "t.csv"


def every_way():
    flags = [False, True]
    return [{"transpose": t, "log1p": g, "scale": s} for t in flags for g in flags for s in flags]


@pytest.mark.parametrize("options", every_way())
def test_steps_are_taken_in_order_and_undone(options, path):
    plain, table = read_table(path), read_table(path, **options)
    wanted = plain.values.T if options["transpose"] else plain.values
    if options["log1p"]:
        wanted = np.log(1 + wanted)
    if options["scale"]:
        wanted = StandardScaler().fit_transform(wanted)
    np.testing.assert_allclose(table.values, wanted, atol=1e-12)
    np.testing.assert_allclose(undo(table, table.values), plain.values, atol=1e-12)


@pytest.mark.parametrize("options", every_way())
def test_a_sparse_table_is_treated_like_a_dense_one(options, path, tmp_path):
    (tmp_path / "long.csv").write_text(
        "g,c,v\n"
        + "\n".join(
            f"{row.split(',')[0]},c{column},{cell}"
            for row in TEXT.split()[1:]
            for column, cell in enumerate(row.split(",")[1:], 1)
            if cell
        )
        + "\n"
    )
    dense = read_table(path, **options)
    sparse = read_table(tmp_path / "long.csv", long=("g", "c", "v"), **options)
    order = [sparse.row_names.tolist().index(name) for name in dense.row_names]
    across = [sparse.column_names.tolist().index(name) for name in dense.column_names]
    found = sparse.values.toarray()[order][:, across]
    np.testing.assert_allclose(found, np.nan_to_num(dense.values), atol=1e-12)
    assert sparse.n_observed == 10
    back = undo(sparse, sparse.values)
    np.testing.assert_allclose(
        back.toarray(), read_table(tmp_path / "long.csv", long=("g", "c", "v")).values.toarray(), atol=1e-12
    )


@pytest.mark.parametrize("options", every_way())
def test_filling_leaves_observed_values_alone(options, path, tmp_path):
    table = read_table(path, **options)
    filled = fill(table, np.zeros(table.shape) if options["scale"] else np.full(table.shape, 0.5))
    plain = read_table(path).values
    seen = ~np.isnan(plain)
    assert (filled.values[seen] == plain[seen]).all()
    assert not np.isnan(filled.values).any()
    if not options["scale"]:
        np.testing.assert_allclose(filled.values[~seen], np.expm1(0.5) if options["log1p"] else 0.5)
    elif not (options["log1p"] or options["transpose"]):
        np.testing.assert_allclose(filled.values[1, 0], (3 + 5 + 8) / 3)
    write_table(filled, tmp_path / "u.csv")
    lines, wanted = (tmp_path / "u.csv").read_text().splitlines(), TEXT.splitlines()
    assert lines[0] == wanted[0]
    for line, original in zip(lines[1:], wanted[1:], strict=True):
        cells = line.split(",")
        for cell, before in zip(cells, original.split(","), strict=True):
            assert before == "" or cell == before or float(cell) == float(before)
    assert read_table(path).row_names.tolist() == filled.row_names.tolist()


def test_names_turn_with_the_table(path, tmp_path):
    table = read_table(path, transpose=True)
    assert table.row_names.tolist() == ["c1", "c2", "c3"]
    assert table.column_names.tolist() == ["g1", "g2", "g3", "g4"]
    assert table.original.row_names.tolist() == table.column_names.tolist()
    write_table(table, tmp_path / "u.csv")
    again = read_table(tmp_path / "u.csv")
    np.testing.assert_array_equal(again.values, read_table(path).values.T)
    assert again.corner == "gene"


def test_counts_stay_integers_when_turned(tmp_path):
    (tmp_path / "t.csv").write_text("n,a,b\nx,1,2\ny,3,4\nz,5,6\n")
    write_table(read_table(tmp_path / "t.csv", transpose=True), tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == "n,x,y,z\na,1,3,5\nb,2,4,6\n"


@pytest.mark.parametrize("options", every_way())
def test_error_bars_follow_the_slope(options, path):
    table = read_table(path, **options)
    values = np.nan_to_num(table.values)
    step = 1e-6
    slope = (undo(table, values + step) - undo(table, values - step)) / (2 * step)
    np.testing.assert_allclose(undo_std(table, values, np.full(table.shape, 0.3)), 0.3 * slope, rtol=1e-6)


def test_a_column_of_gaps_is_left_as_it_is_when_scaled():
    from lgmd.tables.transformations import transform

    values = np.array([[1.0, np.nan], [3.0, np.nan]])
    table = transform(Table(values.copy()), scale=True)
    np.testing.assert_array_equal(table.values, [[-1, np.nan], [1, np.nan]])
    np.testing.assert_array_equal(undo(table, np.ones((2, 2))), [[3, 1], [3, 1]])
    sparse = transform(Table(scipy.sparse.csr_array(([1.0, 3.0], ([0, 1], [0, 0])), shape=(2, 2))), scale=True)
    np.testing.assert_array_equal(sparse.values.toarray(), [[-1, 0], [1, 0]])
    assert sparse.values.nnz == 2


def test_single_precision_stays_so(tmp_path, rng):
    np.save(tmp_path / "t.npy", rng.random((5, 4)).astype(np.float32))
    table = read_table(tmp_path / "t.npy", log1p=True, scale=True)
    assert table.values.dtype == np.float32
    assert fill(table, table.values).values.dtype == np.float32


def test_the_original_is_not_changed(rng):
    from lgmd.tables.transformations import transform

    for values in (rng.random((4, 3)), scipy.sparse.csr_array(rng.random((4, 3)))):
        before = values.copy()
        table = transform(Table(values, form=Form()), transpose=True, log1p=True, scale=True)
        undo(table, table.values)
        if not table.is_sparse:
            fill(table, table.values)
        assert abs(values - before).max() == 0
        assert table.original.values is values


def test_results_of_another_shape_are_refused(path):
    table = read_table(path)
    with pytest.raises(InvalidParameterError, match="values is 2 x 2, but the table that was fitted is 4 x 3"):
        undo(table, np.ones((2, 2)))

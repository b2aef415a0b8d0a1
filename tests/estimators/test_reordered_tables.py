"""Tables whose rows or columns stand in another order than those that were fitted."""

import warnings

import numpy as np
import pandas as pd
import pytest

from lgmd import GPCA, LGMD, PMF, LGMDImputer, plot
from lgmd.exceptions import InvalidDataError
from lgmd.report import write_report

N, P = 14, 11
NAMES = [f"r{i}" for i in range(N)]
COLUMNS = {
    "numbers": pd.RangeIndex(P),
    "steps": pd.RangeIndex(5, 5 + 3 * P, 3),
    "years": pd.Index([*range(2000, 2000 + P)]),
    "days": pd.date_range("2020-01-01", periods=P),
    "pairs": pd.MultiIndex.from_product([["a"], range(P)]),
}
REORDERED = (
    "The columns of the table are the fitted ones in another order: column 0 is '10', where the fitted .* has '0'"
)


@pytest.fixture
def frame(make_table):
    return pd.DataFrame(make_table(N, P)[1])


def fitted(table, **settings):
    return PMF(n_components=2, **settings).fit(table)


@pytest.mark.parametrize("inference", ["map", "variational"])
def test_rows_without_names_are_scored_in_the_order_of_the_fit_alone(frame, inference):
    model = fitted(frame, inference=inference)
    with pytest.raises(
        InvalidDataError,
        match=r"rows of the table are the fitted ones in another order: row 0 is '13', where the fitted table has "
        r"'0'\. Pass table\.loc\[fitted\.index\], or table\.to_numpy\(\)",
    ):
        model.score(frame.iloc[::-1])
    shuffled = frame.sample(frac=1, random_state=0)
    with pytest.raises(InvalidDataError, match="rows of the table are the fitted ones in another order"):
        model.score(shuffled)
    assert model.score(shuffled.loc[frame.index]) == model.score(frame) == model.score(frame.to_numpy())
    assert model.score(shuffled.to_numpy()) != model.score(frame)


def test_a_shuffled_table_is_fitted_and_scored_in_its_own_order(frame):
    shuffled = frame.sample(frac=1, random_state=0)
    for table in (shuffled, frame.iloc[::-1]):
        model = fitted(table)
        assert model.score(table) == fitted(table.to_numpy()).score(table.to_numpy())
        with pytest.raises(
            InvalidDataError, match="rows of the table are the fitted ones in another order: row 0 is '0'"
        ):
            model.score(frame)


@pytest.mark.parametrize("names", [None, NAMES], ids=["numbered", "named"])
def test_numbers_that_are_not_those_of_the_fitted_rows_say_nothing(frame, names):
    model = fitted(frame if names is None else frame.set_axis(names))
    others = frame.set_axis(pd.RangeIndex(100, 100 + N))
    assert model.score(others) == model.score(frame)
    assert model.score(others.iloc[::-1]) == model.score(frame.to_numpy()[::-1])


def test_numbers_in_order_are_the_same_however_they_are_stored(frame):
    stored = frame.set_axis(pd.Index([*range(N)]))
    assert fitted(frame).score(stored) == fitted(stored).score(frame) == fitted(frame).score(frame)
    with pytest.raises(InvalidDataError, match="rows of the table are the fitted ones in another order"):
        fitted(frame).score(stored.iloc[::-1])


def test_an_array_has_no_order_of_rows_or_columns_to_compare(frame):
    model = fitted(frame.to_numpy())
    turned = frame.iloc[::-1, ::-1]
    assert model.score(turned) == model.score(turned.to_numpy())
    np.testing.assert_array_equal(model.transform(turned), model.transform(turned.to_numpy()))


def test_a_part_of_a_table_keeps_its_numbers_as_they_were(frame):
    part = frame.drop(index=[3, 9]).sample(frac=1, random_state=1)
    model = fitted(part)
    assert list(model.sample_names_in_) == [str(label) for label in part.index]
    assert model.score(part) == model.score(part.to_numpy()) == model.score(part.reset_index(drop=True))
    with pytest.raises(InvalidDataError, match="rows of the table to score have other names"):
        model.score(part.iloc[::-1])


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("inference", ["map", "variational"])
def test_columns_that_are_no_text_are_taken_in_the_order_of_the_fit_alone(frame, kind, inference):
    table = frame.set_axis(COLUMNS[kind], axis=1)
    model = fitted(table, inference=inference)
    turned = table.iloc[:, ::-1]
    for ask in (model.transform, model.reconstruct, model.score):
        with pytest.raises(InvalidDataError, match="columns of the table are the fitted ones in another order"):
            ask(turned)
        np.testing.assert_array_equal(ask(turned.loc[:, table.columns]), ask(table.to_numpy()))


def test_the_first_column_out_of_order_is_named(frame):
    with pytest.raises(InvalidDataError, match=REORDERED):
        fitted(frame).transform(frame.iloc[:, ::-1])


@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if kind != "numbers"])
def test_columns_of_other_labels_say_nothing(frame, kind):
    model, other = fitted(frame), frame.set_axis(COLUMNS[kind], axis=1)
    for table in (other, other.iloc[:, ::-1]):
        np.testing.assert_array_equal(model.transform(table), model.transform(table.to_numpy()))


def test_an_imputer_refuses_reordered_columns(frame):
    imputer = LGMDImputer(PMF(2)).fit(frame)
    with pytest.raises(InvalidDataError, match=REORDERED):
        imputer.transform(frame.iloc[:, ::-1])
    np.testing.assert_array_equal(imputer.transform(frame), imputer.transform(frame.to_numpy()))


def test_principal_components_refuse_reordered_columns(frame, make_table):
    complete = pd.DataFrame(make_table(N, P)[0])
    for model in (GPCA(2).fit(complete), GPCA.from_model(fitted(frame))):
        with pytest.raises(InvalidDataError, match=REORDERED):
            model.transform(complete.iloc[:, ::-1])
        np.testing.assert_array_equal(model.transform(complete), model.transform(complete.to_numpy()))


def test_labels_are_forgotten_by_a_fit_that_has_none(frame):
    model = fitted(frame)
    model.fit(frame.to_numpy())
    model.score(frame.iloc[::-1, ::-1])
    model.fit(frame).fit(frame.set_axis(NAMES).set_axis([f"c{j}" for j in range(P)], axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that columns have other names than those of the fit, says scikit-learn
        model.score(frame.iloc[::-1, ::-1])


def test_a_loaded_model_knows_the_order_too(frame, tmp_path):
    table = frame.set_axis(COLUMNS["pairs"], axis=1)
    fitted(table).save(tmp_path / "model.npz")
    loaded = PMF.load(tmp_path / "model.npz")
    with pytest.raises(InvalidDataError, match="rows of the table are the fitted ones in another order"):
        loaded.score(table.iloc[::-1])
    with pytest.raises(InvalidDataError, match="columns of the table are the fitted ones in another order"):
        loaded.transform(table.iloc[:, ::-1])
    assert loaded.score(table) == fitted(table).score(table)


def test_pictures_and_reports_refuse_reordered_tables(frame, tmp_path):
    model = LGMD(2, sample_graph="none", feature_graph="none").fit(frame)
    for turned, noun in ((frame.iloc[::-1], "rows"), (frame.iloc[:, ::-1], "columns")):
        expected = f"The {noun} of the table are the fitted ones in another order"
        with pytest.raises(InvalidDataError, match=expected):
            plot.reconstruction(model, turned)
        with pytest.raises(InvalidDataError, match=expected):
            write_report(model, tmp_path / "report.html", table=turned)

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import root_mean_squared_error

from lgmd.exceptions import InvalidDataError
from lgmd.metrics import rmse


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return rng.standard_normal((6, 4)), rng.standard_normal((6, 4))


def test_it_agrees_with_scikit_learn_on_tables_and_vectors(tables):
    truth, estimate = tables
    assert rmse(truth, estimate) == pytest.approx(root_mean_squared_error(truth.ravel(), estimate.ravel()))
    assert rmse(truth[:, 0], estimate[:, 0]) == pytest.approx(root_mean_squared_error(truth[:, 0], estimate[:, 0]))


def test_a_constant_shift_is_the_error():
    assert rmse(np.zeros((3, 3)), np.full((3, 3), -2.5)) == 2.5
    assert rmse(np.ones(4), np.ones(4)) == 0.0


def test_it_is_symmetric_in_its_two_tables(tables):
    truth, estimate = tables
    assert rmse(truth, estimate) == rmse(estimate, truth)


def test_only_selected_entries_count(tables):
    truth, estimate = tables
    where = np.zeros(truth.shape, dtype=bool)
    where[2, 1] = where[4, 3] = True
    squares = (truth - estimate)[[2, 4], [1, 3]] ** 2
    assert rmse(truth, estimate, where) == pytest.approx(np.sqrt(squares.mean()))


def test_unknown_entries_of_the_truth_are_left_out(tables):
    truth, estimate = tables
    known = truth.copy()
    known[0] = np.nan
    assert rmse(known, estimate) == pytest.approx(rmse(truth[1:], estimate[1:]))


def test_masked_entries_of_the_truth_are_left_out(tables):
    truth, estimate = tables
    hidden = np.zeros(truth.shape, dtype=bool)
    hidden[0] = True
    assert rmse(np.ma.masked_array(truth, hidden), estimate) == pytest.approx(rmse(truth[1:], estimate[1:]))


def test_whole_numbers_are_accepted_and_inputs_left_alone():
    truth, estimate = np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 8]])
    assert rmse(truth, estimate) == 2.0
    np.testing.assert_array_equal(truth, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(estimate, [[1, 2], [3, 8]])


def test_a_gap_in_the_estimate_is_an_error_only_where_it_counts(tables):
    truth, estimate = tables
    estimate[0, 0] = np.nan
    with pytest.raises(InvalidDataError, match="1 of the 24 counted entries are NaN or infinite in the estimate"):
        rmse(truth, estimate)
    where = np.ones(truth.shape, dtype=bool)
    where[0, 0] = False
    assert np.isfinite(rmse(truth, estimate, where))


def test_infinities_are_errors_and_not_warnings():
    with pytest.raises(InvalidDataError, match="infinite in truth"):
        rmse([np.inf, 1.0], [np.inf, 1.0])


def test_shapes_that_differ_are_named():
    with pytest.raises(InvalidDataError, match="truth is 2 x 3 but estimate is of length 3"):
        rmse(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(InvalidDataError, match="where is 3 x 2 but truth is 2 x 3"):
        rmse(np.zeros((2, 3)), np.zeros((2, 3)), np.ones((3, 2), dtype=bool))


def test_a_selection_that_is_not_boolean_is_refused():
    with pytest.raises(InvalidDataError, match="where must be boolean, but its type is int64"):
        rmse(np.zeros(3), np.zeros(3), np.array([0, 1, 2]))


def test_nothing_to_count_is_an_error():
    with pytest.raises(InvalidDataError, match="No entry is left to count"):
        rmse(np.full(3, np.nan), np.zeros(3))
    with pytest.raises(InvalidDataError, match="No entry is left to count"):
        rmse(np.zeros(3), np.zeros(3), np.zeros(3, dtype=bool))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x", "y"], "holds <U1 values"),
        (["1", "2"], "holds <U1 values"),
        ([1j, 2.0], "holds complex128 values"),
        (np.array([1j, 2.0], dtype=object), "holds what is no number"),
        (np.array(["x", 2.0], dtype=object), "holds what is no number"),
        ([[1.0, 2.0], [3.0]], "holds what is no number"),
    ],
)
def test_what_is_no_table_of_real_numbers_is_refused(values, message):
    with pytest.raises(InvalidDataError, match=f"truth {message}.*Pass an array of real numbers"):
        rmse(values, [1.0, 2.0])
    with pytest.raises(InvalidDataError, match=f"estimate {message}"):
        rmse([1.0, 2.0], values)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_squares_that_are_no_numbers_do_no_harm(unit):
    assert rmse([unit, 2 * unit], [-unit, 0.0]) == pytest.approx(2 * unit)


def test_nullable_frames_have_gaps():
    truth = pd.DataFrame({"a": [1, 2], "b": [3, None]}, dtype="Int64")
    assert rmse(truth, [[1.0, 2.0], [0.0, 7.0]]) == pytest.approx(np.sqrt(5 / 3))


def test_a_selection_with_masked_entries_is_refused():
    where = np.ma.array([True, True], mask=[False, True])
    with pytest.raises(InvalidDataError, match=r"where has masked entries.*filled\(False\)"):
        rmse([1.0, 2.0], [0.0, 0.0], where=where)

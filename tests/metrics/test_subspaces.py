import numpy as np
import pytest
from scipy import linalg

from lgmd.exceptions import InvalidDataError
from lgmd.metrics import column_correlations, subspace_angle


def rotated_pair(angle, n_rows=30, seed=0):
    """Two planes that share one direction and differ by `angle` in the other."""
    basis = linalg.qr(np.random.default_rng(seed).standard_normal((n_rows, 3)), mode="economic")[0]
    tilted = np.cos(angle) * basis[:, 1] + np.sin(angle) * basis[:, 2]
    return basis[:, :2], np.column_stack([basis[:, 0], tilted])


@pytest.mark.parametrize("shape", [(40, 5, 5), (40, 3, 8), (40, 8, 3), (10, 6, 7), (5, 1, 1)])
def test_the_angle_is_the_largest_of_scipys_principal_angles(shape):
    n_rows, k_first, k_second = shape
    rng = np.random.default_rng(n_rows + k_first)
    first, second = rng.standard_normal((n_rows, k_first)), rng.standard_normal((n_rows, k_second))
    expected = linalg.subspace_angles(first, second).max()
    assert subspace_angle(first, second) == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("angle", [1e-12, 1e-8, 1e-4, 0.3, np.pi / 4, 1.5, np.pi / 2 - 1e-8, np.pi / 2])
def test_a_known_angle_is_found_to_rounding(angle):
    first, second = rotated_pair(angle)
    # The bases themselves carry errors of a few eps = 2e-16.
    assert subspace_angle(first, second) == pytest.approx(angle, rel=1e-12, abs=5e-15)


def test_the_angle_is_symmetric():
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((20, 3)), rng.standard_normal((20, 6))
    assert subspace_angle(first, second) == pytest.approx(subspace_angle(second, first), rel=1e-12)


def test_the_angle_belongs_to_the_spaces_and_not_to_their_bases():
    rng = np.random.default_rng(2)
    first, second = rng.standard_normal((20, 4)), rng.standard_normal((20, 4))
    mixed = first @ rng.standard_normal((4, 4))
    rotation = linalg.qr(rng.standard_normal((20, 20)))[0]
    expected = subspace_angle(first, second)
    assert subspace_angle(mixed, second) == pytest.approx(expected, rel=1e-10)
    assert subspace_angle(rotation @ first, rotation @ second) == pytest.approx(expected, rel=1e-10)
    assert subspace_angle(mixed, first) < 1e-12


def test_dependent_columns_add_no_dimension():
    first, second = rotated_pair(0.2)
    repeated = np.column_stack([first, first[:, 0] + first[:, 1], np.zeros(len(first))])
    assert subspace_angle(repeated, second) == pytest.approx(0.2, rel=1e-12)
    assert subspace_angle(second, repeated) == pytest.approx(0.2, rel=1e-12)


def test_a_space_inside_the_other_has_no_angle_and_orthogonal_ones_a_right_angle():
    identity = np.eye(6)
    assert subspace_angle(identity[:, :2], identity[:, :4]) == 0.0
    assert subspace_angle(identity[:, :2], identity[:, 2:4]) == pytest.approx(np.pi / 2, rel=1e-15)


def test_a_vector_is_one_column():
    assert subspace_angle([1.0, 0.0, 0.0], [[1.0], [1.0], [0.0]]) == pytest.approx(np.pi / 4)


def test_factors_that_cannot_be_compared_are_refused():
    with pytest.raises(InvalidDataError, match="first has 4 rows but second has 5"):
        subspace_angle(np.eye(4), np.eye(5))
    with pytest.raises(InvalidDataError, match="1 of 4 entries of second are NaN"):
        subspace_angle(np.eye(2), [[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(InvalidDataError, match="first has no entry that is not zero"):
        subspace_angle(np.zeros((4, 2)), np.eye(4))
    with pytest.raises(InvalidDataError, match="second has 3 dimensions"):
        subspace_angle(np.eye(2), np.zeros((2, 2, 2)))


def test_correlations_agree_with_numpy_in_the_documented_order():
    factor = np.random.default_rng(3).standard_normal((25, 5)) @ np.diag([1.0, 1e-3, 1e3, 1.0, 1.0]) + 7.0
    matrix = np.corrcoef(factor, rowvar=False)
    expected = [matrix[i, j] for i in range(5) for j in range(i + 1, 5)]
    np.testing.assert_allclose(column_correlations(factor), expected, rtol=1e-10)


def test_twenty_columns_have_190_correlations():
    assert column_correlations(np.random.default_rng(4).standard_normal((30, 20))).shape == (190,)
    assert column_correlations(np.ones((30, 1))).shape == (0,)


def test_constant_columns_have_no_correlation_and_no_warning():
    column = np.arange(10.0)
    # In floating point the means of ten times 0.1, or 0.3, are not 0.1 and 0.3.
    factor = np.column_stack([column, np.full(10, 0.1), np.full(10, 0.3), -2 * column + 1])
    np.testing.assert_allclose(column_correlations(factor), [0, 0, -1, 0, 0, 0], atol=1e-15)


def test_tiny_and_huge_columns_correlate_as_others_do():
    column = np.random.default_rng(5).standard_normal(50)
    other = np.random.default_rng(6).standard_normal(50)
    expected = np.corrcoef(column, other)[0, 1]
    scaled = np.column_stack([1e-200 * column, 1e200 * other])
    assert column_correlations(scaled)[0] == pytest.approx(expected)


def test_a_shift_a_scale_and_the_rows_order_change_nothing():
    rng = np.random.default_rng(7)
    factor = rng.standard_normal((20, 4))
    changed = rng.permutation(factor * [2.0, 0.1, 5.0, 1.0] + [1.0, -3.0, 0.0, 9.0])
    np.testing.assert_allclose(column_correlations(changed), column_correlations(factor), atol=1e-12)


def test_correlations_need_a_complete_table_of_columns():
    with pytest.raises(InvalidDataError, match="factor has 1 dimensions"):
        column_correlations(np.zeros(3))
    with pytest.raises(InvalidDataError, match="2 of 6 entries of factor are NaN or infinite"):
        column_correlations([[0.0, np.nan, 1.0], [1.0, np.inf, 0.0]])
    with pytest.raises(InvalidDataError, match="factor has no rows"):
        column_correlations(np.zeros((0, 3)))


@pytest.mark.parametrize(
    "factor", [np.array([["x"], ["y"]]), [["1"], ["2"]], np.array([[1j], [1.0]]), [[1.0], [2.0, 3.0]]]
)
def test_a_factor_has_real_numbers(factor):
    with pytest.raises(InvalidDataError, match=r"second holds .*Pass an array of real numbers"):
        subspace_angle([[1.0], [0.0]], factor)
    with pytest.raises(InvalidDataError, match="factor holds "):
        column_correlations(factor)


def test_masked_entries_make_a_factor_incomplete():
    masked = np.ma.masked_array([[1.0], [5.0]], [[False], [True]])
    with pytest.raises(InvalidDataError, match="1 of 2 entries of first are NaN"):
        subspace_angle(masked, [[1.0], [0.0]])

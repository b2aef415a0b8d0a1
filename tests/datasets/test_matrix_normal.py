import dataclasses

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from lgmd.datasets import chain_precision, make_matrix_normal
from lgmd.datasets.graphs import FAMILIES
from lgmd.exceptions import InvalidGraphError, InvalidParameterError, LGMDError
from lgmd.metrics import subspace_angle

ARRAYS = ["observed", "noisy", "truth", "sample_factors", "feature_factors", "mask"]


def test_the_parts_fit_together():
    data = make_matrix_normal(30, 20, rank=4, noise=0.5, missing=0.25, random_state=0)
    np.testing.assert_array_equal(data.truth, data.sample_factors @ data.feature_factors.T)
    np.testing.assert_array_equal(data.observed[data.mask], data.noisy[data.mask])
    np.testing.assert_array_equal(np.isnan(data.observed), ~data.mask)
    assert np.count_nonzero(~data.mask) == 150
    assert np.linalg.matrix_rank(data.truth) == 4
    assert data.sample_factors.shape == (30, 4)
    assert data.feature_factors.shape == (20, 4)
    assert data.sample_precision.shape == (30, 30)
    assert data.feature_precision.shape == (20, 20)
    assert all(getattr(data, name).dtype == np.float64 for name in ARRAYS if name != "mask")
    assert isinstance(data.sample_precision, sparse.csr_array)


def test_the_result_is_a_value_that_says_what_it_is():
    data = make_matrix_normal(30, 20, rank=4, missing=0.25, random_state=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.truth = None
    assert repr(data).startswith("MatrixNormalData(30 x 20, rank 4, 150 of 600 entries missing, noise variance ")


@pytest.mark.parametrize("noise", [0.1, 1.0, 3.0])
def test_noise_is_relative_to_the_deviation_of_the_truth(noise):
    data = make_matrix_normal(noise=noise, random_state=0)
    error = data.noisy - data.truth
    # The deviation of 10,000 normal numbers is known to 1 / sqrt(20,000) = 0.7 %.
    assert error.std() / data.truth.std() == pytest.approx(noise, rel=0.03)
    assert data.noise_variance == pytest.approx((noise * data.truth.std()) ** 2)
    assert abs(error.mean()) < 5 * noise * data.truth.std() / 100


def test_no_noise_and_no_gaps_leave_the_truth():
    data = make_matrix_normal(30, 20, rank=4, noise=0, random_state=0)
    np.testing.assert_array_equal(data.observed, data.truth)
    assert data.noise_variance == 0.0
    assert data.mask.all()


@pytest.mark.parametrize("side", ["sample", "feature"])
def test_factors_have_the_covariance_of_their_graph(side):
    precision = np.array([[2.0, -0.8, 0.0, 0.3], [-0.8, 1.0, 0.2, 0.0], [0.0, 0.2, 0.5, 0.1], [0.3, 0.0, 0.1, 1.0]])
    # Many copies of one small graph make each column of the factors many independent draws.
    copies = sparse.block_diag([precision] * 100, format="csr")
    data = make_matrix_normal(400, 400, rank=100, **{f"{side}_graph": copies}, random_state=0)
    draws = getattr(data, f"{side}_factors").reshape(100, 4, 100)
    expected = np.linalg.inv(precision)
    error = np.einsum("cik,cjk->ij", draws, draws) / 10_000 - expected
    # The variance of an entry of the covariance of N draws is (s_ii s_jj + s_ij^2) / N.
    variances = np.outer(expected.diagonal(), expected.diagonal()) + expected**2
    assert np.all(np.abs(error) < 5 * np.sqrt(variances / 10_000))


def test_columns_of_the_factors_are_independent():
    factors = make_matrix_normal(700, 100, rank=30, sample_graph="none", random_state=0).sample_factors
    # Entries of X'X / n have variance 1 / n off the diagonal and 2 / n on it.
    assert np.abs(factors.T @ factors / 700 - np.eye(30)).max() < 5 * np.sqrt(2 / 700)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_works_on_both_sides(family):
    data = make_matrix_normal(25, 40, rank=3, sample_graph=family, feature_graph=family, random_state=0)
    assert np.isfinite(data.observed).all()
    for precision in (data.sample_precision, data.feature_precision):
        np.testing.assert_allclose(np.linalg.inv(precision.toarray()).diagonal(), 1.0, rtol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, np.ndarray.tolist, sparse.csr_array, sparse.coo_array])
def test_a_given_precision_is_used_as_it_is_and_left_alone(storage):
    dense = 4.0 * chain_precision(10).toarray()
    given = storage(dense.copy())
    data = make_matrix_normal(10, 12, rank=3, sample_graph=given, random_state=0)
    named = make_matrix_normal(10, 12, rank=3, sample_graph="chain", random_state=0)
    np.testing.assert_array_equal(data.sample_precision.toarray(), dense)
    np.testing.assert_allclose(data.sample_factors, named.sample_factors / 2.0, rtol=1e-10)
    data.sample_precision.data[:] = 0.0
    np.testing.assert_array_equal(given.toarray() if sparse.issparse(given) else given, dense)


@pytest.mark.parametrize("pattern", ["random", "rows", "blocks"])
def test_a_seed_gives_one_table_and_another_seed_another(pattern):
    first, again, other = (
        make_matrix_normal(30, 20, rank=4, missing=0.3, missing_pattern=pattern, random_state=seed)
        for seed in (5, 5, 6)
    )
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
        assert not np.array_equal(getattr(first, name), getattr(other, name), equal_nan=name == "observed")


def test_noise_and_gaps_do_not_change_what_lies_beneath():
    plain = make_matrix_normal(30, 20, rank=4, noise=0.1, random_state=0)
    worse = make_matrix_normal(30, 20, rank=4, noise=0.2, missing=0.4, missing_pattern="rows", random_state=0)
    np.testing.assert_array_equal(plain.truth, worse.truth)
    np.testing.assert_allclose(2 * (plain.noisy - plain.truth), worse.noisy - worse.truth, atol=1e-12)


def test_generators_move_on_and_random_states_are_accepted():
    rng = np.random.default_rng(0)
    first, second = (make_matrix_normal(9, 8, rank=2, random_state=rng) for _ in range(2))
    assert np.any(first.truth != second.truth)
    legacy = [make_matrix_normal(9, 8, rank=2, random_state=np.random.RandomState(3)).truth for _ in range(2)]
    np.testing.assert_array_equal(*legacy)
    moving = np.random.RandomState(3)
    pair = [make_matrix_normal(9, 8, rank=2, random_state=moving).truth for _ in range(2)]
    np.testing.assert_array_equal(pair[0], legacy[0])
    assert np.any(pair[0] != pair[1])


@pytest.mark.parametrize("family", ["chain", "blocks", "none"])
def test_twenty_thousand_rows_are_drawn_without_a_dense_graph(family):
    data = make_matrix_normal(
        20_000, 6, rank=2, sample_graph=family, feature_graph="none", edge_density=3e-4, random_state=0
    )
    # Unit variances: a mean over 20,000 rows, of which at least 2,000 count as independent, varies by under 0.032.
    np.testing.assert_allclose(np.mean(data.sample_factors**2, axis=0), 1.0, atol=0.16)


@threadpool_limits.wrap(limits=1)  # forty small SVDs: threads would only wait for each other
def test_the_defaults_reproduce_the_papers_subspace_angles_of_pca():
    published = {
        "sample_factors": [0.1004, 0.2012, 0.3018, 0.4013, 0.4977],
        "feature_factors": [0.0883, 0.1787, 0.2738, 0.3748, 0.4802],
    }
    angles = {"sample_factors": np.zeros((8, 5)), "feature_factors": np.zeros((8, 5))}
    for seed in range(8):
        for level, noise in enumerate([0.1, 0.2, 0.3, 0.4, 0.5]):
            data = make_matrix_normal(noise=noise, random_state=seed)
            left, _, right = np.linalg.svd(data.noisy)
            angles["sample_factors"][seed, level] = subspace_angle(data.sample_factors, left[:, :20])
            angles["feature_factors"][seed, level] = subspace_angle(data.feature_factors, right[:20].T)
    # A mean of eight has a standard error of 2 to 3 %. The published rows for X and W, one table each, are 14 % apart.
    np.testing.assert_allclose(angles["sample_factors"].mean(axis=0), published["sample_factors"], rtol=0.15)
    np.testing.assert_allclose(angles["feature_factors"].mean(axis=0), published["feature_factors"], rtol=0.15)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_samples": 0}, r"n_samples must be a whole number of at least 1, but n_samples=0 was given"),
        ({"n_features": 3.0}, r"n_features=3\.0 was given"),
        ({"rank": 21, "n_features": 20}, r"rank must be a whole number from 1 to 20, the smaller side of the table"),
        ({"edge_density": -0.1}, r"edge_density must be a number in \[0, 1\], but edge_density=-0\.1"),
        ({"noise": -1}, r"noise must be a number in \[0, inf\), but noise=-1"),
        ({"noise": float("nan")}, r"noise=nan"),
        ({"missing": 1.0}, r"missing must be a number in \[0, 1\), but missing=1\.0 .*0\.2 for 20 %"),
        ({"missing": 0.995}, r"missing=0\.995 hides 9,950 of 10,000 entries, but 100 must stay"),
        ({"missing_pattern": "stripes"}, r'missing_pattern=\'stripes\' is not known. Use one of "random", "rows"'),
        ({"sample_graph": "tree"}, r'sample_graph=\'tree\' is not known. Use one of "random", "blocks", "geometric"'),
        ({"random_state": 1.5}, r"random_state=1\.5 is not a seed"),
        ({"n_samples": 6_000}, r"random_precision with 6,000 nodes"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        make_matrix_normal(**parameters)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.eye(50), r"feature_graph is 50 x 50 but the table has 60 columns. A graph over columns must be 60 x 60"),
        (np.ones(60), r"feature_graph is 60, but a graph over n nodes is an n x n matrix"),
        ((60, 60), r"feature_graph is 2, but a graph"),
        (None, r"feature_graph holds object values"),
        (np.zeros((60, 60, 2)), r"feature_graph is 60 x 60 x 2, but a graph"),
        ([["a"]], r"feature_graph holds <U1 values. A graph has real weights"),
        (np.diag(np.full(60, np.nan)), r"feature_graph has 60 entries that are NaN or infinite"),
        (
            np.eye(60) + 0.1 * np.eye(60, k=1),
            r"feature_graph is not symmetric: entry \(0, 1\) is 0\.1, but \(1, 0\) is 0",
        ),
        (-np.eye(60), r"feature_graph is not positive definite.*laplacian \+ ridge \* identity"),
        (np.zeros((60, 60)), r"feature_graph is not positive definite"),
    ],
)
def test_matrices_that_are_no_precisions_over_the_columns_are_refused(graph, message):
    with pytest.raises(InvalidGraphError, match=message) as caught:
        make_matrix_normal(30, 60, rank=5, feature_graph=graph)
    assert isinstance(caught.value, LGMDError)


@pytest.mark.parametrize(
    ("family", "entry"),
    [
        ("none", -1.4534543975),
        ("chain", 2.9200207471),
        ("blocks", 0.2407250458),
        ("geometric", -1.6978740699),
        ("random", -1.3092673687),
    ],
)
def test_a_seed_gives_the_same_table_on_every_machine(family, entry):
    # As seen on processors with and without wide vectors, which sort nodes of equal degree differently; eliminated in
    # another order, chains and blocks give other tables. Entries are of size one, and rounded to ten digits here.
    table = make_matrix_normal(300, 40, 4, sample_graph=family, feature_graph=family, random_state=0).noisy
    assert table[250, 30] == pytest.approx(entry, abs=1e-9)


def test_shuffling_puts_the_same_table_in_another_order():
    settings = {"rank": 4, "sample_graph": "blocks", "feature_graph": "chain", "missing": 0.25, "random_state": 0}
    plain, shuffled = (make_matrix_normal(30, 20, shuffle=each, **settings) for each in (False, True))
    rows = [int(np.flatnonzero((plain.sample_factors == row).all(axis=1))[0]) for row in shuffled.sample_factors]
    columns = [int(np.flatnonzero((plain.feature_factors == row).all(axis=1))[0]) for row in shuffled.feature_factors]
    assert sorted(rows) == list(range(30)) != rows
    assert sorted(columns) == list(range(20)) != columns
    for name in ("observed", "noisy", "truth", "mask"):
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(plain, name)[np.ix_(rows, columns)])
    for name, order in (("sample_precision", rows), ("feature_precision", columns)):
        expected = getattr(plain, name).toarray()[np.ix_(order, order)]
        np.testing.assert_array_equal(getattr(shuffled, name).toarray(), expected)
    with pytest.raises(InvalidParameterError, match="shuffle must be True or False, but is 'no'"):
        make_matrix_normal(shuffle="no")

"""Odd moments and odd numbers: what must not go wrong then."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from lgmd import DGRMD, GPCA, LGMD, PMF, LGMDImputer
from lgmd.exceptions import ConvergenceWarning, InvalidDataError, InvalidParameterError, LGMDError
from lgmd.graphs import ThresholdGraph, threshold_precision
from lgmd.graphs import threshold as threshold_module
from lgmd.solver import MapInference, VariationalInference

LEARNED = {"sample_graph": "threshold", "feature_graph": "threshold"}
INFERENCES = ["map", "variational"]


@pytest.mark.parametrize(
    ("spoil", "parameters"),
    [
        (lambda table: table, {"n_components": 18}),
        (lambda table: table, {"sample_graph": np.eye(3)}),
        (lambda table: table, {"sample_penalty": -1}),
        (lambda table: np.where(table > 3, np.inf, table), {}),
        (lambda table: table * np.nan, {}),
        (lambda table: table.astype(complex), {}),
        (lambda table: table.astype(str), {}),
        (lambda table: table[:1], {}),
    ],
)
@pytest.mark.parametrize("inference", INFERENCES)
def test_a_fit_that_fails_changes_nothing(make_table, spoil, parameters, inference):
    complete, gappy = make_table(n=20, p=16)
    settings = {"n_components": 3, "inference": inference, **LEARNED}
    fresh = LGMD(**settings).set_params(**parameters)
    with pytest.raises(LGMDError):
        fresh.fit(spoil(complete[:, :10]))
    assert set(vars(fresh)) == set(LGMD(**settings).get_params())
    with pytest.raises(NotFittedError):
        fresh.transform(complete)
    fitted = LGMD(**settings).fit(gappy)
    before = dict(vars(fitted))
    with pytest.raises(LGMDError):
        fitted.set_params(**parameters).fit(spoil(complete[:, :10]))
    after = vars(fitted.set_params(**LGMD(**settings).get_params()))
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before if name.endswith("_"))


@pytest.mark.parametrize("inference", INFERENCES)
def test_settings_and_names_are_checked_before_the_work(make_table, monkeypatch, inference):
    from lgmd.estimators import factorization

    def too_late(*arguments):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(factorization, "initial_intercepts", too_late)
    complete, _ = make_table()
    with pytest.raises(InvalidParameterError, match="graph_updates must be at least 0"):
        LGMD(3, inference=inference, graph_updates=-1).fit(complete)
    mixed = pd.DataFrame(complete, columns=[0, *(f"day {j}" for j in range(1, 11))])
    with pytest.raises(TypeError, match="Feature names are only supported"):
        LGMD(3, inference=inference).fit(mixed)


def test_gpca_that_fails_is_not_fitted(make_table):
    model = GPCA(2)
    with pytest.raises(InvalidDataError):
        model.fit(make_table()[1])
    with pytest.raises(NotFittedError):
        model.transform(make_table()[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Runs to the end stop where the objective stands to round-off, 1e-15; its minimum is then known to the root of that.
@pytest.mark.parametrize(("max_iter", "tolerance"), [(1, 1e-8), (3, 1e-8), (2000, 1e-6)])
def test_the_two_exact_updates_agree_by_their_public_names(make_table, make_precision, max_iter, tolerance):
    complete, _ = make_table(n=40, p=30, noise=0.5)
    graphs = {"sample_graph": make_precision(40, seed=1), "feature_graph": make_precision(30, seed=2)}
    settings = {"inference": "map", "max_iter": max_iter, "tol": 1e-15}
    exact = LGMD(4, update="sylvester", **graphs, **settings).fit(complete).reconstruct()
    iterative = LGMD(4, update="cg", **graphs, **settings).fit(complete).reconstruct()
    np.testing.assert_allclose(iterative, exact, atol=tolerance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("inference", INFERENCES)
def test_the_objective_falls_on_tables_with_large_graphs(make_table, with_gaps, inference):
    table = make_table(n=420, p=350, noise=0.5)[int(with_gaps)]
    settings = {"inference": inference, "sample_penalty": 5, "feature_penalty": 5, "tol": 1e-9, "max_iter": 25}
    objective = DGRMD(4, **settings).fit(table).history_.objective
    assert len(objective) > 1
    assert np.all(np.diff(objective) <= 1e-10 * np.abs(objective[:-1]))


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_wide_sparse_table_is_never_made_dense(rng, inference):
    n, p, n_entries = 300, 40_000, 60_000
    cells = np.unique(rng.integers(0, n * p, n_entries))
    cells = np.unique(np.concatenate([cells, np.arange(p) * n + rng.integers(0, n, p)]))
    table = scipy.sparse.csr_array((rng.standard_normal(len(cells)), (cells % n, cells // n)), shape=(n, p))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        PMF(2, inference=inference, max_iter=2).fit(table[:, :1000])
        tracemalloc.start()
        PMF(2, inference=inference, max_iter=2).fit(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * p * 4  # what the table would take in single precision


def test_a_graph_and_its_penalty_are_told_apart_only_by_their_product(make_table, make_precision, rng):
    _, gappy = make_table(n=20, p=16)
    A, B = make_precision(20, seed=1), make_precision(16, seed=2)
    models = [
        LGMD(3, inference="map", sample_graph=c * A, feature_graph=B, sample_penalty=1 / c, tol=1e-7).fit(gappy)
        for c in (1.0, 1e-4, 1e3)
    ]
    new = gappy[:5] + 0.1 * rng.standard_normal((5, 16))
    for model in models[1:]:
        assert model.n_iter_ == models[0].n_iter_
        np.testing.assert_allclose(model.reconstruct(), models[0].reconstruct(), atol=1e-6)
        np.testing.assert_allclose(model.reconstruct(new), models[0].reconstruct(new), atol=1e-6)


@pytest.mark.parametrize("index", [0, 1])
def test_the_scale_of_a_graph_is_learned_with_the_posterior(make_table, make_precision, rng, index):
    table = make_table(n=20, p=16)[index]
    A, B = make_precision(20, seed=1), make_precision(16, seed=2)
    models = [LGMD(3, sample_graph=c * A, feature_graph=B, tol=1e-12).fit(table) for c in (1.0, 1e-4, 1e3)]
    new = table[:5] + 0.1 * rng.standard_normal((5, 16))
    for model in models[1:]:
        assert model.rank_ == models[0].rank_
        assert model.history_.objective[-1] == pytest.approx(models[0].history_.objective[-1], rel=1e-9)
        for ours, theirs in zip(
            (*model.reconstruct(return_std=True), *model.reconstruct(new, return_std=True)),
            (*models[0].reconstruct(return_std=True), *models[0].reconstruct(new, return_std=True)),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("inference", INFERENCES)
def test_new_rows_have_the_marginal_prior_of_the_graph(make_table, inference):
    _, gappy = make_table(n=20, p=16)
    settings = {"inference": inference, "tol": 1e-14, "max_iter": 3000}
    scaled = LGMD(3, sample_graph=100 * np.eye(20), feature_graph="none", **settings).fit(gappy)
    plain = PMF(3, sample_penalty=100.0, **settings).fit(gappy)
    np.testing.assert_allclose(scaled.reconstruct(gappy), plain.reconstruct(gappy), atol=1e-5)
    np.testing.assert_allclose(scaled.transform(gappy), scaled.sample_factors_, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("intercept_penalty", [0.0, 1.0])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_penalties_of_zero_work_and_the_objective_still_falls(rng, offset, intercept_penalty, missing):
    table = rng.standard_normal((40, 4)) @ rng.standard_normal((4, 12)) + rng.standard_normal((40, 1)) + offset
    table[rng.random(table.shape) < missing] = np.nan
    settings = {"intercept_penalty": intercept_penalty, "tol": 1e-9, "max_iter": 30}
    model = PMF(12, sample_penalty=0, feature_penalty=0, **settings).fit(table)
    objective = model.history_.objective
    # At penalties this small the systems of rows with fewer entries than factors are known to 1e-6 or so.
    assert np.all(np.diff(objective) <= 1e-6 * np.abs(objective[:-1]) + 1e-6)
    assert np.all(np.isfinite(model.reconstruct()))


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_threshold_that_joins_everything_is_refused(make_table, monkeypatch, inference):
    monkeypatch.setattr(threshold_module, "_MOST_EDGES", 50)
    with pytest.raises(
        InvalidParameterError, match=r"eta=0.0 joins more than 50 of the 780 pairs of 40 nodes.*Raise eta"
    ):
        LGMD(3, inference=inference, sample_graph=ThresholdGraph(eta=0.0)).fit(make_table(n=40, p=30)[0])


@pytest.mark.parametrize("inference", INFERENCES)
def test_warnings_say_why_the_run_is_not_over(make_table, inference):
    complete, _ = make_table(n=30, p=25)
    with pytest.warns(ConvergenceWarning, match="had nothing to be compared with"):
        PMF(3, inference=inference, max_iter=1).fit(complete)
    with pytest.warns(ConvergenceWarning, match="the graphs were learned 0 of 3 times"):
        LGMD(3, inference=inference, **LEARNED, max_iter=1).fit(complete)
    with pytest.warns(ConvergenceWarning, match="had nothing to be compared with"):
        LGMD(3, inference=inference, **LEARNED, max_iter=4, tol=1e-12).fit(complete)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", INFERENCES)
def test_graphs_are_learned_even_where_the_factors_never_settle(make_table, inference):
    _, gappy = make_table(n=40, p=30, missing=0.8, noise=1.0)
    settings = {"inference": inference, **LEARNED, "sample_penalty": 0.01, "feature_penalty": 0.01}
    model = LGMD(10, max_iter=8, tol=1e-14, **settings).fit(gappy)
    assert model.history_.graph_steps.sum() == 3


@pytest.mark.parametrize("graphs", [{}, LEARNED], ids=["no graphs", "learned graphs"])
@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_a_finished_run_is_not_run_on(make_table, tmp_path, index, inference, graphs):
    data = make_table()[index]
    path = tmp_path / "run.npz"
    model = LGMD(3, inference=inference, **graphs).fit(data, checkpoint=path)
    n_iter, table = model.n_iter_, model.reconstruct()
    for max_iter in (200, n_iter):
        again = LGMD(3, inference=inference, **graphs, max_iter=max_iter).fit(data, checkpoint=path)
        assert (again.n_iter_, again.converged_) == (n_iter, True)
        np.testing.assert_allclose(again.reconstruct(), table, atol=1e-10)


@pytest.mark.parametrize("inference", [MapInference, VariationalInference])
@pytest.mark.parametrize("index", [0, 1])
def test_ctrl_c_before_the_first_iteration_leaves_the_starting_factors(make_table, monkeypatch, index, inference):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("lgmd.solver.loop._graphs_due", interrupted)
    name = "map" if inference is MapInference else "variational"
    table = make_table()[index]
    with pytest.warns(ConvergenceWarning, match="before its first iteration ended"):
        model = PMF(3, inference=name).fit(table)
    assert model.n_iter_ == 0
    assert model.status_ == "interrupted"
    assert np.all(np.isfinite(model.reconstruct()))
    if name == "variational":
        assert np.all(np.isfinite(model.reconstruct(return_std=True)[1]))
        assert np.all(np.isfinite(model.reconstruct(table, return_std=True)[1]))


@pytest.mark.parametrize("inference", [MapInference, VariationalInference])
def test_ctrl_c_while_the_start_is_made_leaves_the_estimator_as_it_was(make_table, monkeypatch, tmp_path, inference):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(inference, "start", interrupted)
    model = PMF(3, inference="map" if inference is MapInference else "variational")
    with pytest.raises(KeyboardInterrupt):
        model.fit(make_table()[1], checkpoint=tmp_path / "run.npz")
    assert set(vars(model)) == set(model.get_params())
    assert not list(tmp_path.iterdir())


def test_error_bars_need_a_posterior(make_table):
    _, gappy = make_table()
    model = PMF(3).fit(gappy)
    asks = (
        lambda: model.reconstruct(return_std=True),
        lambda: model.reconstruct(gappy, return_std=True),
        lambda: model.predict(0, 0, return_std=True),
        lambda: model.transform(gappy, return_std=True),
        lambda: LGMDImputer(PMF(3)).fit_transform(gappy, return_std=True),
        lambda: LGMDImputer(PMF(3)).fit(gappy).transform(gappy, return_std=True),
    )
    for ask in asks:
        with pytest.raises(InvalidParameterError, match=r"return_std=True needs a posterior.*inference=.variational."):
            ask()
    with pytest.raises(InvalidParameterError, match=r"sample_posterior needs a posterior.*inference=.variational."):
        model.sample_posterior()


@pytest.mark.parametrize("inference", INFERENCES)
def test_rows_without_any_entry_get_the_prior_mean(make_table, inference):
    _, gappy = make_table()
    model = PMF(3, inference=inference, allow_empty=True).fit(gappy)
    np.testing.assert_array_equal(model.transform(np.full((1, 11), np.nan)), np.zeros((1, model.rank_)))
    imputer = LGMDImputer(PMF(3, inference=inference, allow_empty=True)).fit(gappy)
    filled = imputer.transform(np.full((2, 11), np.nan))
    np.testing.assert_allclose(filled[0], model.intercept_ + model.feature_intercepts_)


def test_a_table_of_noise_under_a_heavy_penalty_has_rank_one_of_nothing(rng):
    model = PMF(3, sample_penalty=1e6, feature_penalty=1e6).fit(rng.standard_normal((50, 40)))
    assert model.rank_ == 1
    np.testing.assert_allclose(model.sample_factors_, 0, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_table_of_noise_has_a_posterior_of_rank_one_of_nothing(rng, missing):
    noise = rng.standard_normal((50, 40))
    table = np.where(rng.random(noise.shape) < missing, np.nan, noise)
    model = LGMD(3).fit(table)
    assert model.rank_ == 1
    assert np.abs(model.reconstruct() - model.intercept_).max() < 0.2
    assert model.noise_variance_ == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_variances_beyond_the_range_of_floats_are_infinite(make_table, index, inference):
    table = make_table()[index] * 1e160
    model = PMF(3, inference=inference).fit(table)
    assert model.noise_variance_ == np.inf
    assert np.all(np.isfinite(model.reconstruct()))
    assert np.all(np.isfinite(model.reconstruct(table)))
    assert np.isfinite(model.score(table))
    if inference == "variational":
        assert np.all(np.isfinite(model.reconstruct(return_std=True)[1]))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PMF(3, update=None), "update must be one of"),
        (PMF(3, update=3), "update must be one of"),
        (PMF(3, random_state="seed"), "random_state must be None"),
        (PMF(3, random_state=-1), "random_state must be None"),
        (GPCA(3, random_state="seed"), "random_state must be None"),
        (DGRMD(3, n_neighbors=2.5), "n_neighbors must be an integer"),
        (DGRMD(3, ridge="much"), "ridge must be a number"),
        (DGRMD(3, ridge=np.inf), "ridge must be a finite number"),
        (LGMD(3, sample_graph=ThresholdGraph(eta="high")), "eta must be a number"),
        (LGMD(3, sample_graph=ThresholdGraph(density="high")), "density must be a number"),
        (LGMD(3, update=None), "update=None belongs to inference"),
        (LGMD(3, inference=None), "inference must be one of"),
        (LGMD(3, noise=0.1), "noise must be one of"),
        (LGMD(3, likelihood=["student"]), "likelihood must be one of"),
        (LGMD(3, covariance=None), "covariance must be one of"),
    ],
)
def test_parameters_of_the_wrong_kind_are_refused(make_table, model, message):
    with pytest.raises(InvalidParameterError, match=message):
        model.fit(make_table()[0])


@pytest.mark.parametrize("inference", INFERENCES)
def test_functions_and_methods_refuse_the_wrong_kind(make_table, inference):
    for eta in ("high", np.inf):
        with pytest.raises(InvalidParameterError, match="eta must"):
            threshold_precision(np.eye(3), eta)
    model = PMF(3, inference=inference).fit(make_table()[0])
    with pytest.raises(InvalidDataError, match=r"sample_intercepts have shape \(2,\), but 3 rows need shape \(3,\)"):
        model.inverse_transform(np.ones((3, 3)), [1.0, 2.0])
    with pytest.raises(InvalidDataError, match=r"pass an array of shape \(m, 2\)"):
        GPCA(2).fit(make_table()[0]).inverse_transform(np.ones((3, 3)))


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_graph_may_be_a_list_of_lists(make_table, tmp_path, inference):
    complete, _ = make_table()
    from_list = LGMD(3, inference=inference, sample_graph=np.eye(14).tolist()).fit(complete)
    from_array = LGMD(3, inference=inference, sample_graph=np.eye(14)).fit(complete)
    np.testing.assert_allclose(from_list.reconstruct(), from_array.reconstruct())
    from_list.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(LGMD.load(tmp_path / "model.npz").reconstruct(), from_list.reconstruct())


@pytest.mark.parametrize("inference", ["map", "variational"])
@pytest.mark.parametrize("size", [3.7e-12, 3.7, 3.7e8])
def test_error_bars_of_a_constant_table_are_small_beside_it(inference, size):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LGMD(2, inference=inference).fit(np.full((6, 5), size))
    assert model.noise_std_ < 1e-3 * size
    np.testing.assert_allclose(model.reconstruct(), size, rtol=1e-3)


@pytest.mark.parametrize("with_gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 3e6), (np.float32, 1e8), (np.float64, 1e15)])
def test_error_bars_beside_a_large_offset_are_no_larger_than_scatter_and_rounding(dtype, offset, inference, with_gaps):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20)) + 0.3 * rng.standard_normal((30, 20))
    scatter, rounding = table.std(), offset * np.finfo(dtype).eps
    table = (table + offset).astype(dtype)
    if with_gaps:
        table[rng.random(table.shape) < 0.3] = np.nan
    model = LGMD(5, inference=inference).fit(table)
    assert model.noise_std_ < 1.2 * (scatter + rounding)
    assert np.nanmax(np.abs(model.reconstruct() - table)) < 5 * (scatter + rounding)
    if inference == "variational":
        assert np.max(model.reconstruct(return_std=True)[1]) < 2 * (scatter + rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [3.7e-12, 3.7, 3.7e8])
def test_error_bars_of_a_constant_table_are_its_last_digit(dtype, size):
    model = LGMD(2).fit(np.full((6, 5), size, dtype))
    digit = size * np.finfo(dtype).eps
    np.testing.assert_allclose(model.reconstruct(), size, rtol=2 * np.finfo(dtype).eps)
    assert np.max(model.reconstruct(return_std=True)[1]) < 3 * digit


def of_low_rank(rng, noise=0.3):
    return rng.standard_normal((80, 3)) @ rng.standard_normal((3, 40)) + noise * rng.standard_normal((80, 40))


def with_gaps(table, rng):
    return np.where(rng.random(table.shape) < 0.3, np.nan, table)


@pytest.mark.parametrize("noise", ["homoscedastic", "samples", "features"])
def test_students_likelihood_says_where_equal_entries_leave_no_noise(noise):
    rng = np.random.default_rng(0)
    rates = np.exp(0.7 * rng.standard_normal((80, 2)) @ rng.standard_normal((2, 40)) - 1.3)
    counts = rng.poisson(0.7 * rates).astype(float)
    assert np.mean(counts == 0) > 0.6
    table = with_gaps(counts, rng)
    with pytest.warns(
        ConvergenceWarning, match=r"the noise fell to .* and \d+% of the entries are .* Use likelihood=\"gaussian\""
    ) as caught:
        LGMD(5, likelihood="student", noise=noise).fit(table)
    assert caught[0].filename == __file__
    LGMD(5, noise=noise).fit(table)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_students_likelihood_is_silent_where_it_belongs(share, gaps):
    rng = np.random.default_rng(0)
    table = of_low_rank(rng)
    table += 10 * rng.standard_normal(table.shape) * (rng.random(table.shape) < share)
    LGMD(5, likelihood="student").fit(with_gaps(table, rng) if gaps else table)


def test_students_likelihood_is_silent_where_there_is_no_noise_and_no_error():
    LGMD(5, likelihood="student").fit(of_low_rank(np.random.default_rng(0), noise=0))


def test_columns_of_equal_name_are_refused():
    table = pd.DataFrame(np.arange(15.0).reshape(5, 3), columns=list("aba"))
    with pytest.raises(InvalidDataError, match=r"More than one column has the name 'a'\. Rename them"):
        LGMD(2).fit(table)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"allow_empty": "no"}, "allow_empty must be True or False, but is 'no'"),
        ({"sample_graph": ThresholdGraph}, r"sample_graph is the class ThresholdGraph\. Pass ThresholdGraph\(\.\.\.\)"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(settings, expected, make_table):
    with pytest.raises(InvalidParameterError, match=expected):
        LGMD(2, **settings).fit(make_table()[1])


def test_masked_positions_are_refused(make_table):
    model = PMF(2).fit(make_table()[0])
    with pytest.raises(InvalidParameterError, match=r"rows has 1 masked entries. Leave out"):
        model.predict(np.ma.array([0, 1], mask=[False, True]), 0)


def test_a_callback_that_is_no_function_is_refused_before_the_work(make_table):
    with pytest.raises(InvalidParameterError, match=r"callback must be a function of one argument.*but is 5"):
        PMF(2).fit(make_table()[0], callback=5)


def test_a_new_row_without_entries_is_told_what_to_do(make_table):
    _, gappy = make_table(n=20, p=12)
    model = LGMD(2).fit(gappy)
    with pytest.raises(InvalidDataError, match=r"Row.*no observed entry.*allow_empty=True"):
        model.transform(np.full((1, 12), np.nan))


@pytest.mark.parametrize(("value", "message"), [(np.nan, "2 of the row factors are NaN"), (1j, "but are complex")])
def test_row_factors_that_are_no_numbers_have_no_table(make_table, value, message):
    model = PMF(2).fit(make_table()[0])
    with pytest.raises(InvalidDataError, match=message):
        model.inverse_transform(np.full((1, model.rank_), value))

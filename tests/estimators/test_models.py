"""What users do with a fitted model."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from lgmd import DGRMD, LGMD, PMF, LGMDImputer, LGMDPlus, datasets, metrics
from lgmd.estimators import _memory
from lgmd.exceptions import ConvergenceWarning, InvalidDataError, InvalidGraphError, InvalidParameterError
from lgmd.factors import ConjugateGradientUpdate
from lgmd.graphs import FixedGraph, KNNGraph, LaplacianGraph, NoGraph

LEARNED = {"sample_graph": "threshold", "feature_graph": "threshold"}
INFERENCES = ["map", "variational"]

#: Every way to the factors that has code of its own.
WAYS = [
    PMF(3),
    DGRMD(3),
    LGMD(3, inference="map", **LEARNED),
    LGMD(3),
    LGMD(3, **LEARNED),
    DGRMD(3, inference="variational"),
    LGMD(3, noise="features", covariance="diagonal"),
    LGMD(3, likelihood="student"),
]


def describe(model):
    """A name on one line."""
    return " ".join(repr(model).split())


def forms_of(gappy):
    """The same table with gaps in every storage."""
    seen = ~np.isnan(gappy)
    rows, columns = np.nonzero(seen)
    sparse = scipy.sparse.coo_array((gappy[seen], (rows, columns)), shape=gappy.shape)
    return {
        "masked": np.ma.masked_array(np.nan_to_num(gappy), ~seen),
        "csr": sparse.tocsr(),
        "csc": sparse.tocsc(),
        "coo": sparse,
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", WAYS, ids=describe)
def test_nan_masked_and_sparse_give_the_same_model(make_table, model):
    _, gappy = make_table(n=20, p=16)
    gappy[0, 0] = 0.0
    model = clone(model).set_params(max_iter=20)
    expected = model.fit(gappy).reconstruct()
    for form in forms_of(gappy).values():
        np.testing.assert_allclose(model.fit(form).reconstruct(), expected, atol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", WAYS, ids=describe)
def test_a_complete_table_gives_the_same_model_in_every_storage(make_table, model):
    complete, _ = make_table(n=20, p=16)
    model = clone(model).set_params(max_iter=20)
    expected = model.fit(complete).reconstruct()
    for form in (scipy.sparse.csr_array(complete), np.ma.masked_array(complete), np.asfortranarray(complete)):
        np.testing.assert_allclose(model.fit(form).reconstruct(), expected, atol=1e-8)


def test_all_observed_equals_no_mask(make_table):
    complete, _ = make_table(n=20, p=16)
    exact = PMF(3, tol=1e-13, max_iter=2000, update="sylvester").fit(complete).reconstruct()
    by_entries = PMF(3, tol=1e-13, max_iter=2000, update="cg").fit(complete).reconstruct()
    np.testing.assert_allclose(by_entries, exact, atol=1e-8)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_transposing_the_table_swaps_the_sides(make_table, make_precision, index, inference):
    table = make_table(n=18, p=13)[index]
    A, B = make_precision(18, seed=1), make_precision(13, seed=2)
    exact = inference == "variational" or index == 0
    update = "auto" if exact else ConjugateGradientUpdate(tol=1e-12)
    shared = {"n_components": 3, "inference": inference, "tol": 1e-15, "max_iter": 5000, "update": update}
    model = LGMD(sample_graph=A, feature_graph=B, sample_penalty=0.5, feature_penalty=2.0, **shared).fit(table)
    swapped = LGMD(sample_graph=B, feature_graph=A, sample_penalty=2.0, feature_penalty=0.5, **shared).fit(table.T)
    # The two runs alternate in opposite order and meet at the same optimum. With gaps and graphs the equations of a
    # posterior are solved to 1e-6 of their right-hand sides.
    atol = 1e-4 if inference == "variational" and index == 1 else 1e-6
    np.testing.assert_allclose(swapped.reconstruct().T, model.reconstruct(), atol=atol)
    np.testing.assert_allclose(np.abs(swapped.sample_factors_), np.abs(model.feature_factors_), atol=1e-4)
    np.testing.assert_allclose(np.abs(swapped.feature_factors_), np.abs(model.sample_factors_), atol=1e-4)
    assert swapped.history_.objective[-1] == pytest.approx(model.history_.objective[-1], rel=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", WAYS, ids=describe)
@pytest.mark.parametrize("index", [0, 1])
def test_permuting_rows_permutes_the_model(make_table, rng, model, index):
    table = make_table(n=20, p=16)[index]
    order = rng.permutation(20)
    model = clone(model).set_params(max_iter=30)
    expected = model.fit(table).reconstruct()[order]
    graph = model.sample_graph_.toarray()[order][:, order]
    np.testing.assert_allclose(model.fit(table[order]).reconstruct(), expected, atol=1e-8)
    np.testing.assert_allclose(model.sample_graph_.toarray(), graph, atol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("factor", [1e-150, 1e-12, -3.0, 1e12, 1e150])
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("inference", INFERENCES)
def test_the_unit_of_the_data_does_not_matter(make_table, factor, index, inference):
    table = make_table(n=20, p=16)[index]
    plain, rescaled = (LGMD(3, inference=inference, max_iter=20, **LEARNED) for _ in range(2))
    expected = plain.fit(table).reconstruct()
    rescaled.fit(table * factor)
    np.testing.assert_allclose(rescaled.reconstruct() / factor, expected, rtol=1e-7, atol=1e-8)
    assert np.isfinite(rescaled.noise_variance_)
    np.testing.assert_allclose(rescaled.reconstruct(table * factor) / factor, plain.reconstruct(table), rtol=1e-6)
    # A density has the inverse of the unit.
    assert rescaled.score(table * factor) + np.log(abs(factor)) == pytest.approx(plain.score(table), abs=1e-6)
    if inference == "variational":
        expected_std = plain.reconstruct(return_std=True)[1]
        std = rescaled.reconstruct(return_std=True)[1] / abs(factor)
        np.testing.assert_allclose(std, expected_std, rtol=1e-6)


@pytest.mark.parametrize("intercept", ["none", "global", "samples", "features", "both"])
@pytest.mark.parametrize("value", [0.0, 7.5])
@pytest.mark.parametrize(("with_gaps", "graphs"), [(False, LEARNED), (True, {})], ids=["complete", "gaps"])
@pytest.mark.parametrize("inference", INFERENCES)
def test_constant_data_works(value, intercept, with_gaps, graphs, inference):
    table = np.full((12, 9), value)
    if with_gaps:
        table[3, 4] = table[5, 6] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LGMD(
            3, inference=inference, intercept=intercept, sample_penalty=1e-3, feature_penalty=1e-3, **graphs
        ).fit(table)
    np.testing.assert_allclose(model.reconstruct(), value, atol=0.05)
    assert model.rank_ >= 1
    assert np.isfinite(model.score(table))
    if inference == "variational":
        # One column explains all, and there is next to no noise.
        assert model.rank_ == 1
        assert np.all(model.reconstruct(return_std=True)[1] < 0.05)


@pytest.mark.parametrize("inference", INFERENCES)
def test_exactly_low_rank_data_is_recovered(rng, inference):
    table = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
    table[rng.random(table.shape) < 0.2] = np.nan
    truth = table.copy()
    penalties = {"sample_penalty": 1e-6, "feature_penalty": 1e-6}
    model = PMF(3, inference=inference, intercept="none", **penalties, max_iter=2000, tol=1e-7).fit(table)
    np.testing.assert_allclose(model.reconstruct()[~np.isnan(truth)], truth[~np.isnan(truth)], atol=1e-3)
    assert model.noise_variance_ < 1e-5


def test_rank_drops_the_columns_that_the_penalty_kills(make_table):
    complete, _ = make_table(n=30, p=25, rank=2, noise=0.05)
    model = PMF(8, sample_penalty=5.0, feature_penalty=5.0, tol=1e-12, max_iter=2000).fit(complete)
    assert model.rank_ == 2
    assert model.sample_factors_.shape == (30, 2)
    assert model.transform(complete).shape == (30, 2)


@pytest.mark.parametrize("index", [0, 1])
def test_rank_drops_the_columns_that_the_posterior_does_not_need(make_table, index):
    table = make_table(n=30, p=25, rank=2, noise=0.05)[index]
    model = LGMD(8).fit(table)
    assert model.rank_ == 2
    assert model.sample_factors_.shape == (30, 2)
    assert model.transform(table).shape == (30, 2)


def test_new_rows_are_regressed_on_the_column_factors(make_table, rng):
    _, gappy = make_table()
    model = PMF(3, sample_penalty=0.7, intercept_penalty=0.4).fit(gappy)
    new = gappy[:4] + 0.1 * rng.standard_normal((4, 11))
    W = model.feature_factors_
    design = np.column_stack([W / np.sqrt(model.scale_), np.ones(11)])
    offsets = model.intercept_ + model.feature_intercepts_
    ridge = np.diag([0.7, 0.7, 0.7, 0.4])
    for row, factors in zip(new, model.transform(new), strict=True):
        seen = ~np.isnan(row)
        target = (row - offsets)[seen] / model.scale_
        solution = np.linalg.solve(design[seen].T @ design[seen] + ridge, design[seen].T @ target)
        np.testing.assert_allclose(factors, solution[:3] * np.sqrt(model.scale_), atol=1e-8)
    np.testing.assert_allclose(model.transform(new[2:3]), model.transform(new)[2:3], atol=1e-12)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_without_a_row_graph_fitted_rows_come_back_from_transform(make_table, index, inference):
    table = make_table()[index]
    model = PMF(3, inference=inference, tol=1e-14, max_iter=5000).fit(table)
    np.testing.assert_allclose(model.transform(table), model.sample_factors_, atol=1e-5)
    np.testing.assert_allclose(model.reconstruct(table), model.reconstruct(), atol=1e-5)


@pytest.mark.parametrize("inference", INFERENCES)
def test_transform_takes_sparse_and_masked_rows(make_table, inference):
    _, gappy = make_table()
    model = PMF(3, inference=inference).fit(gappy)
    expected = model.transform(gappy[:5])
    for form in forms_of(gappy[:5]).values():
        np.testing.assert_allclose(model.transform(form), expected, atol=1e-10)


@pytest.mark.parametrize("model", WAYS, ids=describe)
def test_predict_and_inverse_transform_agree_with_reconstruct(make_table, model):
    _, gappy = make_table()
    model = clone(model).fit(gappy)
    table = model.reconstruct()
    np.testing.assert_allclose(model.predict(np.arange(14)[:, None], np.arange(11)), table, atol=1e-12)
    assert model.predict(3, 4) == pytest.approx(table[3, 4])
    assert model.predict([], []).shape == (0,)
    np.testing.assert_allclose(
        model.inverse_transform(model.sample_factors_, model.sample_intercepts_), table, atol=1e-12
    )
    without = model.inverse_transform(model.sample_factors_)
    np.testing.assert_allclose(without, table - model.sample_intercepts_[:, None], atol=1e-12)


@pytest.mark.parametrize("inference", INFERENCES)
def test_predict_refuses_positions_outside_the_table(make_table, inference):
    model = PMF(3, inference=inference).fit(make_table()[0])
    with pytest.raises(InvalidDataError, match="columns must be between 0 and 10, but 11 is among them"):
        model.predict([0, 1], [2, 11])
    with pytest.raises(InvalidDataError, match="rows must be between 0 and 13, but -1 is among them"):
        model.predict(-1, 0)
    with pytest.raises(InvalidDataError, match="integer positions, but hold float64"):
        model.predict([0.5], [1])
    with pytest.raises(InvalidDataError, match=r"rank_=3: pass an array of shape \(m, 3\)"):
        model.inverse_transform(np.ones((2, 4)))


@pytest.mark.parametrize("inference", INFERENCES)
def test_reconstruct_refuses_to_fill_the_memory(make_table, monkeypatch, inference):
    model = PMF(3, inference=inference).fit(make_table()[0])
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1000)
    message = r"14 x 11 entries would take 0.0 GiB.*Use predict\(rows, columns\)"
    with pytest.raises(InvalidDataError, match=message):
        model.reconstruct()
    with pytest.raises(InvalidDataError, match=message):
        model.reconstruct(make_table()[0])
    assert np.isfinite(model.predict(0, 0))


def test_available_memory_is_plausible():
    free = _memory.available_bytes()
    assert free is None or 2**20 < free < 2**50


@pytest.mark.parametrize("inference", INFERENCES)
def test_empty_rows_and_columns_are_filled_by_the_graph(make_table, inference):
    _, gappy = make_table(n=20, p=16, missing=0.1)
    gappy[7] = np.nan
    gappy[:, 3] = np.nan
    with pytest.raises(InvalidDataError, match=r"Row 7 has no observed entry, so only the graph.*allow_empty=True"):
        LGMD(3, inference=inference).fit(gappy)
    chain = np.diag(np.ones(19), 1) + np.diag(np.ones(19), -1)
    graphs = {"sample_graph": FixedGraph(chain), "feature_graph": "none"}
    model = LGMD(3, inference=inference, **graphs, allow_empty=True, max_iter=2000, tol=1e-13).fit(gappy)
    assert np.any(np.abs(model.sample_factors_[7]) > 1e-3)
    np.testing.assert_allclose(model.feature_factors_[3], 0, atol=1e-5)
    assert np.all(np.isfinite(model.reconstruct()))
    if inference == "variational":
        # Nothing is known of the empty column but the spread of the others.
        std = model.reconstruct(return_std=True)[1]
        assert std[:, 3].mean() > 3 * np.delete(std, 3, axis=1).mean()
        assert std[:, 3].mean() == pytest.approx(np.nanstd(gappy), rel=0.3)


def test_intercepts_are_re_estimated_with_the_factors(make_table):
    _, gappy = make_table(n=20, p=16)
    model = PMF(3, tol=1e-13, max_iter=2000, sample_penalty=0.1, feature_penalty=0.1).fit(gappy)
    first = PMF(3, max_iter=1, tol=1e10, sample_penalty=0.1, feature_penalty=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first.fit(gappy)
    assert np.abs(model.sample_intercepts_ - first.sample_intercepts_).max() > 1e-2
    assert first.history_.objective[-1] > model.history_.objective[-1]


@pytest.mark.parametrize(
    ("intercept", "overall", "rows", "columns"),
    [("none", 0, 0, 0), ("global", 1, 0, 0), ("samples", 1, 1, 0), ("features", 1, 0, 1), ("both", 1, 1, 1)],
)
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("inference", INFERENCES)
def test_the_model_has_the_intercepts_it_is_asked_for(make_table, intercept, overall, rows, columns, index, inference):
    model = PMF(3, inference=inference, intercept=intercept).fit(make_table()[index])
    assert (model.intercept_ != 0) == bool(overall)
    assert np.any(model.sample_intercepts_) == bool(rows)
    assert np.any(model.feature_intercepts_) == bool(columns)


@pytest.mark.parametrize("shape", [(30, 7), (7, 30), (2, 2)])
@pytest.mark.parametrize("estimator", [LGMD(), LGMD(inference="map"), PMF(), DGRMD()])
def test_the_default_rank_goes_no_further_than_the_table(estimator, shape, rng):
    model = clone(estimator).fit(rng.standard_normal(shape))
    assert model.n_components == 20
    assert model.rank_ <= min(shape)
    assert np.isfinite(model.reconstruct()).all()


def test_rows_and_columns_that_do_not_go_together_are_refused(make_table):
    model = PMF(2).fit(make_table()[0])
    with pytest.raises(InvalidParameterError, match=r"rows of shape \(2,\) and columns of shape \(3,\) do not go"):
        model.predict([0, 1], [0, 1, 2])
    with pytest.raises(InvalidDataError, match="Row factors must be an array of numbers"):
        model.inverse_transform([["a", "b"]])
    model = LGMD(2).fit(make_table()[0])
    assert model.sample_posterior(2, [], []).shape == (2, 0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be at least 1, but is 0"),
        ({"n_components": 2.5}, "n_components must be an integer, but is 2.5"),
        ({"n_components": 12}, "n_components=12 is larger than the data allows.*the rank is at most 11. Lower"),
        ({"inference": "gibbs"}, "inference must be one of 'variational', 'map', but is 'gibbs'"),
        ({"noise": "entries"}, "noise must be one of 'homoscedastic', 'samples', 'features', but is 'entries'"),
        ({"likelihood": "cauchy"}, "likelihood must be one of 'gaussian', 'student', but is 'cauchy'"),
        ({"prior": "factors"}, "prior must be one of 'auto', 'columns', 'shared', 'falling', but is 'factors'"),
        ({"covariance": "low-rank"}, "covariance must be one of 'auto', 'full', 'diagonal', but is 'low-rank'"),
        ({"sample_penalty": -1.0}, "sample_penalty must not be negative and must be finite, but is -1.0"),
        ({"feature_penalty": np.nan}, "feature_penalty must not be negative and must be finite, but is nan"),
        ({"feature_penalty": "big"}, "feature_penalty must be a number, but is 'big'"),
        ({"intercept": "rows"}, "intercept must be one of 'none', 'global', 'samples', 'features', 'both'"),
        ({"intercept_penalty": -2}, "intercept_penalty must not be negative"),
        ({"graph_updates": -1}, "graph_updates must be at least 0, but is -1"),
        ({"max_iter": 0}, "max_iter must be at least 1, but is 0"),
        ({"tol": -1e-3}, "tol must not be negative"),
        ({"sample_graph": "tree"}, "sample_graph must be one of"),
    ],
)
@pytest.mark.parametrize("inference", INFERENCES)
def test_parameters_that_make_no_sense_are_refused(make_table, parameters, message, inference):
    model = LGMD(n_components=3, inference=inference).set_params(**parameters)
    with pytest.raises(InvalidParameterError, match=message):
        model.fit(make_table()[0])
    assert not hasattr(model, "sample_factors_")


@pytest.mark.parametrize(
    ("inference", "parameters", "message"),
    [
        ("map", {"update": "newton"}, "update must be one of 'auto', 'sylvester', 'cg', 'paper'"),
        ("variational", {"update": "cg"}, "update='cg' belongs to inference=\"map\". Use that, or leave"),
        ("variational", {"update": "newton"}, "update='newton' belongs to inference=\"map\""),
        ("map", {"noise": "features"}, "noise='features' needs inference=\"variational\".*or noise='homoscedastic'"),
        ("map", {"likelihood": "student"}, "likelihood='student' needs inference=\"variational\""),
    ],
)
def test_parameters_of_the_other_inference_are_refused(make_table, inference, parameters, message):
    model = LGMD(n_components=3, inference=inference, **parameters)
    with pytest.raises(InvalidParameterError, match=message):
        model.fit(make_table()[0])
    assert not hasattr(model, "sample_factors_")


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_a_graph_of_the_wrong_shape_names_the_side(make_table, index, inference):
    with pytest.raises(InvalidGraphError, match="feature_graph is 14 x 14 but the data has 11 columns"):
        LGMD(3, inference=inference, feature_graph=np.eye(14)).fit(make_table()[index])


def test_the_model_says_which_update_it_took_and_why(make_table):
    complete, gappy = make_table()
    assert PMF(3).fit(complete).update_.startswith("sylvester: nothing is missing")
    assert PMF(3).fit(gappy).update_.startswith(f"cg: {int(np.isnan(gappy).sum())} of 154 entries are missing")
    assert LGMD(3).fit(gappy).update_.startswith("variational: ")


@pytest.mark.parametrize("inference", INFERENCES)
def test_dgrmd_is_lgmd_with_neighbour_graphs(make_table, inference):
    _, gappy = make_table()
    how = {"n_components": 3, "inference": inference}
    first = DGRMD(n_neighbors=4, ridge=0.2, **how).fit(gappy).reconstruct()
    graphs = {"sample_graph": KNNGraph(4, 0.2), "feature_graph": KNNGraph(4, 0.2)}
    second = LGMD(**graphs, **how).fit(gappy).reconstruct()
    np.testing.assert_array_equal(first, second)
    third = LGMD(sample_graph=NoGraph(), feature_graph="none", **how).fit(gappy).reconstruct()
    np.testing.assert_array_equal(third, PMF(**how).fit(gappy).reconstruct())
    assert np.abs(first - third).max() > 1e-3


def test_lgmd_is_variational_and_looks_for_graphs_unless_told_not_to(make_table):
    _, gappy = make_table()
    assert [type(model).__name__ for model in (PMF(), DGRMD()) if model.inference == "map"] == ["PMF", "DGRMD"]
    assert (LGMD().inference, LGMD().sample_graph, LGMD().feature_graph) == ("variational", "evidence", "evidence")
    plain = LGMD(3, sample_graph="none", feature_graph="none", tol=1e-9, max_iter=1000).fit(gappy)
    without = PMF(3, inference="variational", tol=1e-9, max_iter=1000).fit(gappy)
    np.testing.assert_array_equal(plain.reconstruct(), without.reconstruct())
    assert not plain.history_.graph_steps.any()
    # Rows and columns of this table are independent: graphs are looked for, and nothing is found.
    model = LGMD(3, tol=1e-9, max_iter=1000).fit(gappy)
    assert model.history_.graph_steps.any()
    np.testing.assert_array_equal(model.sample_graph_.toarray(), np.eye(14))
    np.testing.assert_array_equal(model.feature_graph_.toarray(), np.eye(11))
    assert model.sample_strength_ == model.feature_strength_ == 0
    np.testing.assert_allclose(model.reconstruct(), without.reconstruct(), atol=1e-3)


def test_lgmd_plus_is_lgmd_with_non_negative_graphs(make_table):
    _, gappy = make_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plus = LGMDPlus(3, random_state=0).fit(gappy)
        same = LGMD(3, sample_graph=LaplacianGraph(), feature_graph=LaplacianGraph(), random_state=0).fit(gappy)
    np.testing.assert_array_equal(plus.reconstruct(), same.reconstruct())
    for graph in (plus.sample_graph_.toarray(), plus.feature_graph_.toarray()):
        off_diagonal = graph - np.diag(np.diag(graph))
        assert off_diagonal.max() <= 0
        assert off_diagonal.min() < 0
    assert set(LGMDPlus().get_params()) == set(LGMD().get_params())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_that_is_fitted_again_the_other_way_keeps_nothing_of_the_first(make_table):
    _, gappy = make_table()
    for first, second in (("variational", "map"), ("map", "variational")):
        again = LGMD(3, inference=first).fit(gappy).set_params(inference=second).fit(gappy)
        fresh = LGMD(3, inference=second).fit(gappy)
        assert vars(again).keys() == vars(fresh).keys()
        np.testing.assert_array_equal(again.reconstruct(), fresh.reconstruct())
        np.testing.assert_array_equal(again.transform(gappy), fresh.transform(gappy))


@pytest.mark.parametrize("inference", INFERENCES)
def test_the_true_graphs_lower_the_error_of_completion(inference):
    errors = []
    for seed in range(5):
        data = datasets.make_matrix_normal(
            80, 60, 4, sample_graph="chain", feature_graph="chain", noise=0.3, missing=0.8, random_state=seed
        )
        settings = {"inference": inference, "intercept": "none", "max_iter": 500}
        given = {"sample_graph": data.sample_precision, "feature_graph": data.feature_precision}
        with_graphs = LGMD(4, **given, **settings).fit(data.observed)
        without = PMF(4, **settings).fit(data.observed)
        errors.append([metrics.rmse(data.truth, model.reconstruct()) for model in (with_graphs, without)])
    with_graphs, without = np.mean(errors, axis=0)
    assert with_graphs < 0.8 * without


@pytest.mark.parametrize("inference", INFERENCES)
def test_the_imputer_fills_gaps_and_touches_nothing_else(make_table, inference):
    complete, gappy = make_table(n=40, p=30, noise=0.05)
    model = PMF(3, inference=inference, sample_penalty=0.1, feature_penalty=0.1)
    filled = LGMDImputer(model).fit_transform(gappy)
    seen = ~np.isnan(gappy)
    np.testing.assert_array_equal(filled[seen], gappy[seen])
    means = np.where(seen, gappy, np.nanmean(gappy, axis=0))
    assert metrics.rmse(complete[~seen], filled[~seen]) < 0.3 * metrics.rmse(complete[~seen], means[~seen])


@pytest.mark.parametrize("inference", INFERENCES)
def test_the_imputer_fills_unseen_rows(make_table, inference):
    complete, gappy = make_table(n=60, p=30, noise=0.05)
    model = PMF(3, inference=inference, sample_penalty=0.1, feature_penalty=0.1)
    imputer = LGMDImputer(model).fit(gappy[:45])
    filled = imputer.transform(gappy[45:])
    seen = ~np.isnan(gappy[45:])
    np.testing.assert_array_equal(filled[seen], gappy[45:][seen])
    assert metrics.rmse(complete[45:][~seen], filled[~seen]) < 0.5


def test_the_imputer_works_on_small_tables_without_parameters(make_table):
    _, gappy = make_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = LGMDImputer().fit_transform(gappy)
    assert np.all(np.isfinite(filled))
    with pytest.raises(InvalidParameterError, match="estimator must be a factorisation"):
        LGMDImputer(estimator="mean").fit(gappy)

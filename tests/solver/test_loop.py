"""The alternation: its objective falls, its ends are told apart, it can be stopped and resumed."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from lgmd import DGRMD, LGMD, PMF
from lgmd._archive import read_archive, write_archive
from lgmd.exceptions import CheckpointError, ConvergenceWarning, DivergenceError
from lgmd.factors import ConjugateGradientUpdate, SylvesterUpdate
from lgmd.graphs import LaplacianGraph, ThresholdGraph

TIGHT = {"tol": 1e-12, "max_iter": 60}
LEARNED = {"sample_graph": "threshold", "feature_graph": "threshold"}
INFERENCES = ["map", "variational"]


def fixed_graph_model(make_precision, n, p, inference="map", **parameters):
    return LGMD(
        n_components=3,
        inference=inference,
        sample_graph=make_precision(n, seed=1),
        feature_graph=make_precision(p, seed=2),
        sample_penalty=0.5,
        feature_penalty=2.0,
        **parameters,
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("intercept", ["none", "global", "samples", "features", "both"])
@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_with_exact_updates_and_fixed_graphs_the_objective_never_rises(
    make_table, make_precision, with_gaps, intercept, penalty
):
    table = make_table(n=25, p=18, noise=0.5)[int(with_gaps)]
    model = fixed_graph_model(make_precision, 25, 18, intercept=intercept, **TIGHT)
    model.set_params(sample_penalty=penalty, feature_penalty=2 * penalty).fit(table)
    objective = model.history_.objective
    assert len(objective) > 2
    assert np.all(np.diff(objective) <= 1e-10 * np.abs(objective[:-1]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("intercept", "noise"),
    [
        ("none", "homoscedastic"),
        ("global", "samples"),
        ("samples", "features"),
        ("features", "samples"),
        ("both", "homoscedastic"),
        ("both", "features"),
    ],
)
@pytest.mark.parametrize("with_gaps", [False, True])
def test_the_evidence_bound_never_falls_while_the_graphs_are_held(
    make_table, make_precision, with_gaps, intercept, noise
):
    table = make_table(n=25, p=18, noise=0.5)[int(with_gaps)]
    model = fixed_graph_model(make_precision, 25, 18, "variational", intercept=intercept, noise=noise, **TIGHT)
    # More columns than the table has: dropping them must not lower the bound either.
    objective = model.set_params(n_components=6).fit(table).history_.objective
    assert len(objective) > 2
    # The bound is a sum of terms of this size, each known to round-off.
    assert np.all(np.diff(objective) <= 1e-12 * table.size * np.abs(objective).max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_loose_tolerance_of_conjugate_gradients_still_lets_the_objective_fall(make_table, make_precision):
    _, gappy = make_table(n=25, p=18, noise=0.5)
    update = ConjugateGradientUpdate(tol=0.3, max_iter=2)
    objective = fixed_graph_model(make_precision, 25, 18, update=update, **TIGHT).fit(gappy).history_.objective
    assert np.all(np.diff(objective) <= 1e-10 * np.abs(objective[:-1]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_is_the_stated_formula(make_table, make_precision):
    _, gappy = make_table(n=16, p=12)
    A, B = make_precision(16, seed=1), make_precision(12, seed=2)
    model = fixed_graph_model(make_precision, 16, 12, intercept_penalty=0.7, max_iter=5).fit(gappy)
    scale = model.scale_
    X, W = model.sample_factors_ / np.sqrt(scale), model.feature_factors_ / np.sqrt(scale)
    residual = (gappy - model.reconstruct()) / scale
    rows, columns = model.sample_intercepts_ / scale, model.feature_intercepts_ / scale

    def prior(factor, graph):
        return np.trace(factor.T @ graph @ factor) - 3 * np.linalg.slogdet(graph.toarray())[1]

    expected = 0.5 * np.nansum(residual**2) + 0.5 * 0.5 * prior(X, A) + 0.5 * 2.0 * prior(W, B)
    expected += 0.5 * 0.7 * (rows @ rows + columns @ columns)
    assert model.history_.objective[-1] == pytest.approx(expected, rel=1e-10)
    terms = {name: values[-1] for name, values in model.history_.terms.items()}
    assert sum(terms.values()) == pytest.approx(expected, rel=1e-10)
    assert terms["fit"] == pytest.approx(0.5 * np.nansum(residual**2))


def test_at_convergence_every_block_is_optimal(make_table, make_precision):
    _, gappy = make_table(n=16, p=12)
    update = ConjugateGradientUpdate(tol=1e-12)
    model = fixed_graph_model(make_precision, 16, 12, update=update, tol=1e-15, max_iter=5000).fit(gappy)
    scale = model.scale_
    X, W = model.sample_factors_ / np.sqrt(scale), model.feature_factors_ / np.sqrt(scale)
    residual = np.nan_to_num((gappy - model.reconstruct()) / scale)
    np.testing.assert_allclose(residual @ W, 0.5 * (model.sample_graph_ @ X), atol=1e-5)
    np.testing.assert_allclose(residual.T @ X, 2.0 * (model.feature_graph_ @ W), atol=1e-5)
    np.testing.assert_allclose(residual.sum(axis=1), model.sample_intercepts_ / scale, atol=1e-5)
    np.testing.assert_allclose(residual.sum(axis=0), model.feature_intercepts_ / scale, atol=1e-5)
    assert residual.sum() == pytest.approx(0, abs=1e-8)


def test_without_graphs_the_solution_is_the_shrunken_singular_value_decomposition(make_table):
    complete, _ = make_table(n=20, p=15)
    model = PMF(n_components=5, intercept="none", sample_penalty=0.4, feature_penalty=0.9, tol=1e-14, max_iter=2000)
    fitted = model.fit(complete).reconstruct()
    U, values, Vt = np.linalg.svd(complete / model.scale_, full_matrices=False)
    shrunken = np.maximum(values[:5] - np.sqrt(0.4 * 0.9), 0)
    np.testing.assert_allclose(fitted, model.scale_ * (U[:, :5] * shrunken) @ Vt[:5], atol=1e-5)


@pytest.mark.parametrize("with_gaps", [False, True])
def test_balanced_factors_need_a_fraction_of_the_iterations(make_table, make_precision, with_gaps):
    table = make_table(n=25, p=18, noise=0.5)[int(with_gaps)]

    class Unbalanced(SylvesterUpdate if not with_gaps else ConjugateGradientUpdate):
        balances = False

    balanced = fixed_graph_model(make_precision, 25, 18, tol=1e-9, max_iter=3000).fit(table)
    plain = fixed_graph_model(make_precision, 25, 18, tol=1e-9, max_iter=3000, update=Unbalanced()).fit(table)
    assert balanced.n_iter_ < 0.5 * plain.n_iter_
    assert balanced.history_.objective[-1] <= plain.history_.objective[-1] * (1 + 1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("with_gaps", [False, True])
def test_graphs_are_learned_as_often_as_asked_and_never_first(make_table, with_gaps, inference):
    table = make_table(n=30, p=25)[int(with_gaps)]
    for updates in (0, 1, 3):
        settings = {"inference": inference, "graph_updates": updates, **LEARNED, "tol": 1e-9}
        history = LGMD(n_components=3, **settings).fit(table).history_
        assert history.graph_steps.sum() == updates
        assert not history.graph_steps[0]
        edges = [record.sample_edges for record in history.records]
        assert (edges[-1] > 0) == (updates > 0)
        held = ~history.graph_steps[1:]
        assert np.all(np.diff(history.objective)[held] <= 1e-10 * np.abs(history.objective[:-1][held]))


def test_convergence_is_by_relative_change(make_table):
    complete, _ = make_table()
    model = PMF(n_components=3, tol=1e-4).fit(complete)
    assert model.converged_
    assert model.status_ == "converged"
    objective = model.history_.objective
    changes = -np.diff(objective) / np.maximum(np.abs(objective[1:]), np.abs(objective[:-1]))
    assert abs(changes[-1]) <= 1e-4
    assert np.all(np.abs(changes[:-1]) > 1e-4)
    np.testing.assert_allclose(model.history_.change[1:], changes)
    assert model.n_iter_ == len(objective)


@pytest.mark.parametrize("index", [0, 1])
def test_convergence_of_the_evidence_bound_is_by_its_change_an_entry(make_table, index):
    table = make_table()[index]
    model = LGMD(n_components=3, sample_graph="none", feature_graph="none", tol=1e-7).fit(table)
    assert model.converged_
    assert model.status_ == "converged"
    objective = model.history_.objective
    changes = -np.diff(objective) / np.count_nonzero(~np.isnan(table))
    assert abs(changes[-1]) <= 1e-7
    assert np.all(np.abs(changes[:-1]) > 1e-7)
    np.testing.assert_allclose(model.history_.change[1:], changes)
    assert np.isnan(model.history_.change[0])
    assert model.n_iter_ == len(objective)


@pytest.mark.parametrize(("inference", "measure"), [("map", "relative change"), ("variational", "change per entry")])
def test_running_out_of_iterations_warns_with_numbers(make_table, inference, measure):
    complete, _ = make_table()
    with pytest.warns(
        ConvergenceWarning,
        match=rf"PMF was stopped by max_iter after 2 iterations; the {measure} \d\.\de-\d\d is above tol=1e-12. "
        "Raise max_iter, or accept: the objective fell in every iteration",
    ):
        model = PMF(n_components=3, inference=inference, tol=1e-12, max_iter=2).fit(complete)
    assert not model.converged_
    assert model.status_ == "max_iter"


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_a_callback_sees_every_iteration_and_can_stop(make_table, index, inference):
    table = make_table()[index]
    seen = []

    def stop_at_three(progress):
        seen.append((progress.iteration, progress.record.objective, progress.state.X.shape))
        return progress.iteration == 3

    model = PMF(n_components=3, inference=inference, tol=1e-14).fit(table, callback=stop_at_three)
    assert [entry[0] for entry in seen] == [1, 2, 3]
    np.testing.assert_array_equal([entry[1] for entry in seen], model.history_.objective)
    assert seen[0][2] == (14, 3)
    assert model.status_ == "stopped"
    assert not model.converged_


def interrupt_at(iteration):
    def callback(progress):
        if progress.iteration == iteration:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("graphs", [{}, LEARNED], ids=["no graphs", "learned graphs"])
def test_ctrl_c_leaves_a_usable_model(make_table, inference, graphs):
    _, gappy = make_table()
    with pytest.warns(ConvergenceWarning, match=r"was interrupted after 4 iterations.*can be used"):
        model = LGMD(3, inference=inference, **graphs, tol=1e-12).fit(gappy, callback=interrupt_at(4))
    assert model.status_ == "interrupted"
    assert model.n_iter_ == 4
    assert np.all(np.isfinite(model.reconstruct()))
    squares = np.nanmean((gappy - model.reconstruct()) ** 2)
    if inference == "map":
        assert model.noise_variance_ == pytest.approx(squares)
    else:
        # Expected squares: those of the mean, and what the factors' uncertainty adds to them.
        std = model.reconstruct(return_std=True)[1]
        spread = np.mean((std**2 - model.noise_variance_)[~np.isnan(gappy)])
        assert spread > 0
        # Bars of rows that a graph joins are found after the run, with the noise and the priors of its end.
        assert model.noise_variance_ == pytest.approx(squares + spread, rel=0.02 if graphs else 1e-3)


@pytest.mark.parametrize(
    "model",
    [
        PMF(3),
        DGRMD(3),
        LGMD(3, inference="map", **LEARNED),
        LGMD(6),
        LGMD(3, **LEARNED),
        DGRMD(3, inference="variational", noise="samples"),
        LGMD(3, noise="features", covariance="diagonal"),
        LGMD(3, likelihood="student", sample_graph="threshold"),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(make_table, tmp_path, model, index):
    table = make_table(n=30, p=20)[index]
    path = tmp_path / "run.npz"
    model = clone(model).set_params(max_iter=7, tol=0.0)  # before round-off decides where it stands still
    whole = model.fit(table)
    expected, objective = whole.reconstruct(), whole.history_.objective
    assert len(objective) > 6
    for iteration in (2, 6):
        model.fit(table, checkpoint=path, callback=interrupt_at(iteration))
        assert model.n_iter_ == iteration
    resumed = model.fit(table, checkpoint=path)
    assert resumed.n_iter_ == len(objective)
    np.testing.assert_allclose(resumed.history_.objective, objective, rtol=1e-9)
    np.testing.assert_allclose(resumed.reconstruct(), expected, atol=1e-8)
    assert np.all(np.diff(resumed.history_.seconds) > 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", INFERENCES)
def test_a_checkpoint_of_other_data_or_settings_is_refused(make_table, tmp_path, make_precision, inference):
    complete, gappy = make_table()
    path = tmp_path / "run.npz"
    model = LGMD(3, inference=inference, sample_graph=make_precision(14), max_iter=3, tol=0.0)
    model.fit(gappy, checkpoint=path)
    before = path.read_bytes()
    others = [
        (complete, {}),
        (gappy + 1e-9, {}),
        (gappy, {"n_components": 2}),
        (gappy, {"feature_graph": ThresholdGraph(eta=0.3)}),
        (gappy, {"sample_graph": make_precision(14, seed=5)}),
        (gappy, {"intercept": "none"}),
    ]
    if inference == "map":
        others += [(gappy, {"sample_penalty": 2.0}), (gappy, {"inference": "variational"})]
    else:  # the posterior learns what the penalties stand for
        others += [
            (gappy, {"inference": "map"}),
            (gappy, {"noise": "features"}),
            (gappy, {"likelihood": "student"}),
            (gappy, {"covariance": "diagonal"}),
        ]
    for table, parameters in others:
        other = clone(model).set_params(**parameters)
        with pytest.raises(CheckpointError, match="other data or other settings"):
            other.fit(table, checkpoint=path)
    assert path.read_bytes() == before
    model.set_params(max_iter=5).fit(gappy, checkpoint=path)
    assert model.n_iter_ == 5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", INFERENCES)
def test_a_damaged_checkpoint_is_refused(make_table, tmp_path, inference):
    _, gappy = make_table()
    path = tmp_path / "run.npz"
    model = PMF(n_components=2, inference=inference, max_iter=2)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(
        CheckpointError, match=r"is no checkpoint, or a damaged one: it is no archive\. Pass another path"
    ):
        model.fit(gappy, checkpoint=path)
    assert path.read_bytes() == b"not a checkpoint"
    with pytest.raises(CheckpointError, match=r"is a folder\. Pass the path of a file"):
        model.fit(gappy, checkpoint=tmp_path)
    PMF(n_components=2).fit(gappy).save(tmp_path / "model.npz")
    with pytest.raises(CheckpointError, match=r"another file of lgmd, not a checkpoint"):
        model.fit(gappy, checkpoint=tmp_path / "model.npz")
    path.unlink()
    model.fit(gappy, checkpoint=path)
    header, arrays = read_archive(path)
    for lost in (name for name, array in arrays.items() if array.size):
        write_archive(path, header, {name: array for name, array in arrays.items() if name != lost})
        with pytest.raises(CheckpointError, match=r"cannot be used.*Delete it to start anew"):
            model.fit(gappy, checkpoint=path)
    for lost in header["state"]:
        values = {name: value for name, value in header["state"].items() if name != lost}
        write_archive(path, header | {"state": values}, arrays)
        with pytest.raises(CheckpointError, match=r"cannot be used.*Delete it to start anew"):
            model.fit(gappy, checkpoint=path)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("with_gaps", [False, True])
def test_the_printed_update_stops_with_a_clear_error_when_it_diverges(make_table, make_precision, with_gaps):
    table = make_table(n=25, p=18)[int(with_gaps)]
    calm = fixed_graph_model(make_precision, 25, 18, update="paper", max_iter=30)
    calm.set_params(sample_penalty=1e-3, feature_penalty=1e-3).fit(table)
    wild = fixed_graph_model(make_precision, 25, 18, update="paper")
    with pytest.raises(DivergenceError, match=r"diverged in iteration \d+.*use update=.auto., which is exact"):
        wild.set_params(sample_penalty=1e4, feature_penalty=1e4).fit(table)
    exact = wild.set_params(update="auto").fit(table)
    assert np.all(np.isfinite(exact.reconstruct()))


@pytest.mark.parametrize(
    "parameters",
    [
        {"inference": "map"},
        {"inference": "map", **LEARNED},
        {},
        LEARNED,
        {"noise": "samples"},
        {"likelihood": "student"},
        {"covariance": "diagonal"},
    ],
    ids=str,
)
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("noise", [0.1, 0.01])
def test_single_precision_objective_falls_to_its_own_accuracy(make_table, parameters, index, noise):
    table = make_table(n=30, p=20, noise=noise)[index]
    single = table.astype(np.float32)
    model = LGMD(n_components=3, **parameters).fit(single)
    assert model.converged_
    assert model.sample_factors_.dtype == np.float32
    assert model.transform(single).dtype == model.reconstruct().dtype == model.reconstruct(single).dtype == np.float32
    reference = LGMD(n_components=3, **parameters).fit(table)
    history = model.history_
    # The bound of a posterior can be near zero: what counts is its difference an entry.
    entries = np.count_nonzero(~np.isnan(table))
    tolerance = {"rel": 1e-3} if model.inference == "map" else {"abs": 1e-3 * entries}
    assert history.objective[-1] == pytest.approx(reference.history_.objective[-1], **tolerance)
    assert np.all(history.change[~np.isnan(history.change)] > -1e-5)
    if model.inference == "variational":
        (table, std), (expected, expected_std) = (
            model.reconstruct(return_std=True),
            reference.reconstruct(return_std=True),
        )
        assert std.dtype == model.predict(0, 0, return_std=True)[1].dtype == np.float32
        # Errors in the last digit of the table are small beside its error bars.
        np.testing.assert_array_less(np.abs(table - expected), 0.1 * expected_std)
        np.testing.assert_allclose(std, expected_std, rtol=0.05)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("index", [0, 1])
def test_an_isolated_graph_equals_no_graph(make_table, index, inference):
    table = make_table()[index]
    identity = scipy.sparse.eye_array(14, format="csr")
    with_graph = LGMD(3, inference=inference, sample_graph=identity, feature_graph="none").fit(table)
    without = PMF(3, inference=inference).fit(table)
    np.testing.assert_allclose(with_graph.reconstruct(), without.reconstruct(), atol=1e-10)


@pytest.mark.parametrize("inference", ["map", "variational"])
@pytest.mark.parametrize("sparse", [False, True])
def test_graphs_of_every_solver_can_be_kept_in_a_checkpoint(make_table, tmp_path, inference, sparse):
    table, path = make_table(n=20, p=12)[1], tmp_path / "run.npz"
    model = LGMD(2, inference=inference, sample_graph=LaplacianGraph(sparse=sparse), feature_graph="none")
    first = model.fit(table, checkpoint=path).reconstruct()
    np.testing.assert_allclose(model.fit(table, checkpoint=path).reconstruct(), first, rtol=1e-8)


def test_a_checkpoint_without_a_folder_is_refused_before_the_work(make_table, tmp_path):
    path = tmp_path / "nowhere" / "run.npz"
    with pytest.raises(CheckpointError, match=r"There is no folder .*nowhere for the checkpoint run\.npz"):
        PMF(2).fit(make_table()[1], checkpoint=path, callback=lambda progress: pytest.fail("it ran"))

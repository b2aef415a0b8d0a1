"""What may be searched, how it is written, and what is refused."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Ridge

from lgmd import DGRMD, GPCA, LGMD, PMF, LGMDImputer, LGMDPlus, graphs
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.observed import as_observed
from lgmd.tuning import Choices, Range, default_space, tune, with_parameters
from lgmd.tuning.parameters import present_value
from lgmd.tuning.pruning import heading_for
from lgmd.tuning.sampling import start_point
from lgmd.tuning.spaces import as_space

TABLE = np.random.default_rng(0).standard_normal((12, 9))
MODEL = LGMD(4, inference="map", sample_graph="threshold", feature_graph=graphs.LaplacianGraph(rho=0.2, sparse=True))


def test_parameters_of_learners_are_set_on_copies():
    learner = MODEL.feature_graph
    changed = with_parameters(MODEL, {"sample_graph__eta": 0.4, "feature_graph__rho": 0.7, "penalty": 3.0})
    assert changed.sample_graph.eta == 0.4
    assert changed.feature_graph.rho == 0.7
    assert changed.feature_graph.sparse is True
    assert (changed.sample_penalty, changed.feature_penalty) == (3.0, 3.0)
    assert MODEL.sample_graph == "threshold"
    assert MODEL.feature_graph is learner
    assert learner.rho == 0.2


def test_eta_takes_the_place_of_a_density_and_the_other_way_round():
    dense = LGMD(sample_graph=graphs.ThresholdGraph(density=0.1), feature_graph=graphs.GraphicalLassoGraph(eta=0.5))
    changed = with_parameters(dense, {"sample_graph__eta": 0.4, "feature_graph__density": 0.2})
    assert (changed.sample_graph.eta, changed.sample_graph.density) == (0.4, None)
    assert (changed.feature_graph.eta, changed.feature_graph.density) == (None, 0.2)
    changed.sample_graph.validate()
    changed.feature_graph.validate()


def test_both_graphs_can_share_a_parameter():
    changed = with_parameters(LGMD(inference="map"), {"graph__fdr": 0.3})
    assert (changed.sample_graph.fdr, changed.feature_graph.fdr) == (0.3, 0.3)


def test_default_spaces_follow_the_learners():
    densities = LGMD(inference="map", sample_graph=graphs.ThresholdGraph(density=0.1), feature_graph=np.eye(9))
    assert list(default_space(densities, TABLE)) == ["penalty", "sample_graph__density"]
    assert list(default_space(LGMDPlus(), TABLE)) == ["prior", "noise", "sample_graph__rho", "feature_graph__rho"]
    assert default_space(DGRMD(), TABLE)["n_neighbors"] == (1, 11, "log")
    low, high, scale = default_space(PMF(), TABLE)["penalty"]
    assert scale == "log"
    assert low < 0.1
    assert high >= 10


def test_the_largest_penalty_leaves_nothing_of_noise():
    noise = np.random.default_rng(1).standard_normal((60, 40))
    high = default_space(PMF(), noise)["penalty"][1]
    model = PMF(5, sample_penalty=high, feature_penalty=high, intercept="none").fit(noise)
    assert np.abs(model.reconstruct()).max() < 1e-3


def test_names_alone_take_the_default_range():
    space = as_space(["n_components", "penalty"], PMF(5), as_observed(TABLE))
    assert space["n_components"] == Range(1, 5, log=True, integer=True)
    assert as_space("n_components", PMF(20), as_observed(TABLE))["n_components"].high == 8
    assert as_space({"penalty": None}, PMF(5), as_observed(TABLE)) == as_space(None, PMF(5), as_observed(TABLE))


def test_integers_and_floats_are_told_apart():
    data = as_observed(TABLE)
    assert as_space({"penalty": (1, 10)}, PMF(5, sample_penalty=1), data)["penalty"].integer is False
    assert as_space({"max_iter": (1, 10)}, PMF(5), data)["max_iter"].integer is True
    assert as_space({"tol": (0, 1)}, PMF(5), data)["tol"].integer is False
    assert as_space({"n_components": (np.int64(2), np.int64(3))}, PMF(5), data)["n_components"].integer is True


def test_ranges_are_spanned_from_end_to_end():
    assert Range(0.1, 10.0, log=True, integer=False).at(0.5) == pytest.approx(1.0)
    shares = np.linspace(0, 1 - 1e-12, 1001)
    counts = np.bincount([Range(1, 4, log=False, integer=True).at(share) for share in shares])
    assert counts[1:].min() > 240
    assert Choices(("a", "b")).at(1.0) == "b"


def test_start_points_leave_no_large_gap():
    space = as_space({"penalty": (1e-2, 1e2, "log")}, PMF(), as_observed(TABLE))
    for seed in range(5):
        points = sorted(np.log10(start_point(space, number, seed)["penalty"]) for number in range(12))
        assert np.diff([-2, *points, 2]).max() < 4 * 2.7 / 12


def test_learners_and_matrices_can_be_choices():
    chain = scipy.sparse.diags_array([-np.ones(11), 2.1 * np.ones(12), -np.ones(11)], offsets=[-1, 0, 1])
    choices = ["none", graphs.KNNGraph(3), chain.tocsr()]
    model = LGMD(3, inference="map", feature_graph="none", max_iter=20, tol=1e-2)
    result = tune(model, TABLE, n_trials=8, space={"sample_graph": choices}, random_state=0)
    assert any(result.best_params_["sample_graph"] is choice for choice in choices)
    assert set(result.trials_["state"]) == {"complete"}
    assert result.trials_["param_sample_graph"].nunique() == 3


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "empty"),
        ([], "empty"),
        (3, r"must map names of parameters to ranges, such as \{'n_components': \(low, high\)\}"),
        ({"penalties": (1, 2)}, r"LGMD has no parameter 'penalties'\. It has .*'sample_graph__eta'"),
        ({"sample_graph__rho": (0.1, 1.0)}, "no parameter 'sample_graph__rho'"),
        ({3: (1, 2)}, "must be strings, but 3"),
        ({"penalty": (2.0, 1.0)}, r"from 2\.0 down to 1\.0"),
        ({"penalty": (0.0, 1.0, "log")}, "start above zero"),
        ({"penalty": (0.1, 1.0, "logarithmic")}, r"must be \(low, high\)"),
        ({"penalty": (1.0,)}, r"must be \(low, high\)"),
        ({"penalty": (1.0, np.inf)}, "finite numbers, but one is inf"),
        ({"penalty": ("a", "b")}, "finite numbers, but one is 'a'"),
        ({"penalty": (True, 2)}, "finite numbers, but one is True"),
        ({"penalty": 1.0}, "or a list of choices, but is 1.0"),
        ({"penalty": []}, "is empty"),
        ({"penalty": [1.0, 1]}, "twice"),
        ({"n_components": (1.0, 5.0)}, "whole number"),
        ({"intercept": None}, "no default range for 'intercept'"),
        ({"penalty": None, "sample_penalty": None}, "both set sample_penalty"),
        ({"sample_graph": ["none", "knn"], "sample_graph__eta": None}, "replaces what 'sample_graph__eta'"),
    ],
)
def test_spaces_that_make_no_sense_are_refused(space, message):
    with pytest.raises(InvalidParameterError, match=message):
        tune(MODEL, TABLE, space=space)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_trials": 0}, "n_trials must be at least 1"),
        ({"n_trials": 2.5}, "n_trials must be an integer"),
        ({"held_out": 0.0}, "between 0 and 1, but is 0"),
        ({"held_out": 1.0}, "between 0 and 1"),
        ({"held_out": "0.1"}, "held_out must be a number"),
        ({"n_splits": 0}, "n_splits"),
        ({"n_workers": 0}, "n_workers"),
        ({"timeout": -1}, "timeout must not be negative"),
        ({"random_state": "seed"}, "random_state"),
        ({"callback": 3}, "callback must be a function of one argument, .* but is 3"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        tune(PMF(2), TABLE, **settings)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PMF, "but is the class PMF"),
        ("PMF", "but is a str"),
        (GPCA(3), r"GPCA cannot be tuned: it needs a complete table.*GPCA\.from_model"),
        (Ridge(), r"Ridge cannot be scored .* predict\(rows, columns\)"),
    ],
)
def test_estimators_that_cannot_be_scored_are_refused(model, message):
    with pytest.raises(InvalidParameterError, match=message):
        tune(model, TABLE, space={"alpha": (0.1, 1.0)})


def test_an_estimator_about_which_nothing_is_known_needs_a_space():
    from sklearn.impute import KNNImputer

    class Mystery(KNNImputer):
        def get_params(self, deep=True):
            return {"weights": "uniform"}

    advice = r"Nothing is known to be worth tuning in this Mystery.*space=\{'weights': \[one, another\]\}"
    with pytest.raises(InvalidParameterError, match=advice):
        tune(Mystery(), TABLE)


@pytest.mark.parametrize(
    ("model", "space"),
    [
        (LGMD(3), ["penalty"]),
        (LGMD(3), {"feature_penalty": (0.1, 1.0)}),
        (LGMDImputer(), ["estimator__penalty"]),
        (PMF(3), {"penalty": None, "inference": ["variational"]}),
    ],
)
def test_penalties_that_are_learned_are_not_tuned(model, space):
    with pytest.raises(InvalidParameterError, match=r"penalties belong to inference='map'.*Tune a model with"):
        tune(model, TABLE, space=space)


def test_a_penalty_may_be_tuned_where_inference_is_too():
    space = {"penalty": None, "inference": ["variational", "map"]}
    assert list(as_space(space, LGMD(3), as_observed(TABLE))) == ["penalty", "inference"]


def test_tables_that_cannot_be_tuned_on_are_refused():
    with pytest.raises(InvalidDataError, match="Row 0 has no observed entry"):
        tune(PMF(2), np.vstack([np.full(9, np.nan), TABLE]))
    with pytest.raises(InvalidDataError, match="leaves no entry to judge by"):
        tune(PMF(2), TABLE[:4, :3], held_out=1e-6)
    empty_row = tune(
        PMF(2, allow_empty=True), np.vstack([np.full(9, np.nan), TABLE]), n_trials=2, random_state=0, refit=False
    )
    assert set(empty_row.trials_["state"]) == {"complete"}


def test_a_geometric_course_is_followed_to_its_end():
    course = [2.0 + 0.5**i for i in range(6)]
    # Three times the gain that is left: below the limit, and close to it near the end.
    assert heading_for(course) == pytest.approx(course[-1] - 3 * (course[-1] - 2.0))
    assert heading_for(course[:2]) == -np.inf
    assert heading_for([3.0, 2.9, 2.7]) == -np.inf
    assert heading_for([2.0, 2.1, 2.2]) == 2.2


@pytest.mark.parametrize(
    "model", [LGMD(), LGMD(prior="auto"), LGMD(prior="shared", noise="samples"), PMF(inference="variational")]
)
def test_the_default_search_contains_the_model_as_it_is(model):
    space = as_space(None, model, as_observed(TABLE))
    assert {"prior", "noise"} <= set(space)
    for name in space:
        assert space[name].encoded(present_value(model, name)) is not None
    assert as_space("prior", LGMD(prior="auto"), as_observed(TABLE))["prior"].values[0] == "auto"
    assert len(as_space("prior", LGMD(prior="shared"), as_observed(TABLE))["prior"].values) == 3

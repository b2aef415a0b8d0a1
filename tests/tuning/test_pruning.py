"""Runs are watched from the time on when all their graphs are learned."""

import pytest

from lgmd import LGMD
from lgmd.datasets import make_matrix_normal
from lgmd.observed import as_observed, hold_out
from lgmd.tuning.pruning import Bar, GivenUpError, watch


@pytest.mark.parametrize("family", ["none", "blocks"])
def test_a_run_without_a_hope_is_given_up_with_graphs_and_without(family):
    """A default run whose first look shows no edge learns its graphs once, another twice."""
    table = make_matrix_normal(
        60, 50, 10, sample_graph=family, feature_graph=family, missing=0.4, random_state=0
    ).observed
    model = LGMD(10, inference="map", tol=1e-9)
    assert model.fit(table).history_.graph_steps.any()
    _, held = hold_out(as_observed(table), 0.1, 0)
    with pytest.raises(GivenUpError, match="heading for more than 1e-06"):
        model.fit(table, **watch(model, held, Bar(1e-6, 1.0)))

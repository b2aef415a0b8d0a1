"""When graphs are learned, and by what."""

import numpy as np
import pytest

from lgmd.graphs import FactorMoments, GraphEstimate, GraphLearner
from lgmd.solver.graph_updates import updated, updates_left

EMPTY = GraphEstimate.identity(4)


def graph(weight, **values):
    precision = np.eye(4)
    precision[0, 1] = precision[1, 0] = -weight
    return GraphEstimate(EMPTY.precision.__class__(precision), float(np.linalg.slogdet(precision)[1]), **values)


class Recorder(GraphLearner):
    """Says which of its methods was called by the weight of an edge."""

    rounds = 2

    def start(self, data, side):
        return EMPTY

    def learn(self, moments, previous):
        return graph(0.1)

    def relearn(self, moments, previous):
        return graph(0.2)

    def unproven(self, moments, previous):
        return graph(0.3)


def moments():
    return FactorMoments(np.ones((4, 2)))


def never():
    raise AssertionError


@pytest.mark.parametrize(
    ("done", "previous", "weight"), [(0, EMPTY, 0.1), (1, graph(0.5), 0.2), (1, graph(0.5, proven=False), 0.3)]
)
def test_each_look_has_its_method(done, previous, weight):
    found = updated(Recorder(), moments, previous, done)
    assert found.precision[0, 1] == -weight
    assert found.proven == (weight != 0.3)


@pytest.mark.parametrize(("done", "previous"), [(1, EMPTY), (2, graph(0.5)), (5, EMPTY)])
def test_where_there_is_nothing_to_learn_nobody_asks_for_moments(done, previous):
    assert updated(Recorder(), never, previous, done) is previous


def test_a_learner_that_does_not_look_again_is_not_shown_moments():
    class Content(Recorder):
        def looks_again(self, previous):
            return False

    before = graph(0.5)
    assert updated(Content(), never, before, 1) is before
    assert updated(Content(), moments, before, 0) is not before


def test_what_is_offered_without_an_edge_is_no_offer():
    class Silent(Recorder):
        def unproven(self, moments, previous):
            return EMPTY

    before = graph(0.5, proven=False)
    assert updated(Silent(), moments, before, 1) is before


def test_updates_end_where_the_first_look_showed_no_edge():
    assert updates_left(3, 0, (EMPTY, EMPTY)) == 3
    assert updates_left(3, 1, (EMPTY, EMPTY)) == 0
    assert updates_left(3, 1, (EMPTY, graph(0.5))) == 2


def test_a_scale_that_was_learned_is_learned_again():
    """Without an edge a precision may still say how much rows vary."""
    scaled = GraphEstimate(2.0 * EMPTY.precision, 4 * float(np.log(2.0)))
    assert not scaled.is_identity
    assert updates_left(3, 1, (EMPTY, scaled)) == 2
    assert updated(Recorder(), moments, scaled, 1).n_edges == 1

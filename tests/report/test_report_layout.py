"""Where nodes are drawn, and what of a large graph is."""

import numpy as np
import pytest
import scipy.sparse

from lgmd.graphs import laplacian
from lgmd.report import layout, networks
from lgmd.report.layout import graph_layout
from lgmd.report.names import SideNames


def path(n):
    i = np.arange(n - 1)
    return i, i + 1, np.ones(n - 1)


def distances(places, rows, columns):
    return np.linalg.norm(places[rows] - places[columns], axis=1)


def test_joined_nodes_lie_nearer_than_others(rng):
    rows, columns, weights = path(60)
    places = graph_layout(60, rows, columns, weights)
    others = distances(places, rng.integers(0, 60, 500), rng.integers(0, 60, 500))
    assert distances(places, rows, columns).max() < np.median(others)


@pytest.mark.parametrize("n", [100, 900])
def test_clusters_stay_apart(n, rng):
    """Below and above the size from which forces come from a grid."""
    group = np.arange(n) % 3
    pairs = rng.integers(0, n, (12 * n, 2))
    pairs = pairs[(group[pairs[:, 0]] == group[pairs[:, 1]]) & (pairs[:, 0] < pairs[:, 1])]
    pairs = np.unique(np.vstack([pairs, [[0, 1], [1, 2]]]), axis=0)
    places = graph_layout(n, *pairs.T, np.ones(len(pairs)))
    centres = np.array([places[group == g].mean(axis=0) for g in range(3)])
    nearest = np.linalg.norm(places[:, None] - centres, axis=2).argmin(axis=1)
    assert np.mean(nearest == group) > 0.95


def test_repulsion_from_the_grid_is_that_of_all_pairs(rng):
    """Far from each other, where cells are points."""
    places = np.vstack([rng.standard_normal((200, 2)), rng.standard_normal((200, 2)) + 40])
    pairs, grid = layout._pair_repulsion(places), layout._grid_repulsion(places)
    both = [force.reshape(2, 200, 2).mean(axis=1) for force in (pairs, grid)]
    np.testing.assert_allclose(both[1], both[0], rtol=0.05)


def test_components_do_not_overlap_and_single_nodes_stand_aside():
    n = 30
    rows = np.concatenate([np.arange(0, 9), np.arange(10, 14), [16]])
    places = graph_layout(n, rows, rows + 1, np.ones(len(rows)))
    assert len(np.unique(places.round(6), axis=0)) == n
    boxes = [(places[a:b].min(axis=0), places[a:b].max(axis=0)) for a, b in ((0, 10), (10, 15), (16, 18))]
    for first in range(3):
        for second in range(first):
            (low, high), (other_low, other_high) = boxes[first], boxes[second]
            assert np.any(low > other_high) or np.any(other_low > high)
    assert places[18:, 1].min() > places[:18, 1].max() - 1e-9 or places[18:, 1].min() > places[:15, 1].max()


def test_thousands_of_components_keep_neighbours_about_one_apart():
    first = np.arange(0, 1200, 3)
    rows, columns = np.concatenate([first, first + 1]), np.concatenate([first + 1, first + 2])
    places = graph_layout(1200, rows, columns, np.ones(len(rows)))
    assert len(np.unique(places.round(6), axis=0)) == 1200
    lengths = distances(places, rows, columns)
    assert lengths.min() > 0.3
    assert lengths.max() < 3


def test_a_graph_without_edges_is_a_block_of_nodes():
    places = graph_layout(20, np.empty(0, int), np.empty(0, int), np.empty(0))
    assert len(np.unique(places, axis=0)) == 20


def test_large_graphs_are_cut_to_their_strongest_edges(rng, monkeypatch):
    monkeypatch.setattr(networks, "MOST_EDGES", 40)
    monkeypatch.setattr(networks, "MOST_NODES", 30)
    n = 100
    pairs = np.unique(np.sort(rng.integers(0, n, (150, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    upper = scipy.sparse.csr_array((rng.random(len(pairs)), pairs.T), shape=(n, n))
    precision = scipy.sparse.csr_array(laplacian(upper + upper.T) + 0.1 * scipy.sparse.eye_array(n))
    drawn = networks.network(precision, SideNames("row", n))
    assert len(drawn.nodes) == 30
    assert len(drawn.sources) <= 40
    assert set(np.r_[drawn.sources, drawn.targets]) <= set(range(30))
    assert len(drawn.top_edges) == len(pairs)
    assert np.abs(drawn.partial_correlations).min() >= 0
    assert drawn.partial_correlations[0] == pytest.approx(drawn.top_edges[0].partial_correlation)
    assert "strongest are in this file" in drawn.notes[0]
    assert drawn.notes[1].startswith("Of 100 rows 30 are drawn")
    assert drawn.places.max() == 65_535
    assert drawn.to_json()["positions"] is not None

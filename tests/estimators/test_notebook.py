"""Models in a notebook."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from lgmd import DGRMD, GPCA, LGMD, PMF, LGMDImputer
from lgmd.graphs import EvidenceGraph, FixedGraph

N = 40
CHAIN = scipy.sparse.csr_array(
    scipy.sparse.diags_array([np.full(N - 1, -0.5), np.full(N, 2.0), np.full(N - 1, -0.5)], offsets=[-1, 0, 1])
)
GRAPHS = {
    "array": CHAIN,
    "matrix": scipy.sparse.csr_matrix(CHAIN),
    "dense": CHAIN.toarray(),
    "small": np.eye(3),
    "frame": pd.DataFrame(CHAIN.toarray()),
    "learner": FixedGraph(CHAIN),
    "candidates": EvidenceGraph(candidates=CHAIN.toarray()),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((N, 2)) @ rng.standard_normal((2, 9)) + 0.1 * rng.standard_normal((N, 9))
    return pd.DataFrame(values, [f"<script>alert({i})</script>" for i in range(N)], [f"<i>{j}</i>" for j in range(9)])


def facts(html):
    """The rows of the summary."""
    found = re.search(r'<table class="lgmd-summary".*?</table>', html, re.DOTALL)
    assert found, "no summary"
    return dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", found.group()))


@pytest.mark.parametrize("kind", GRAPHS)
def test_matrices_among_the_parameters_neither_break_nor_fill_the_page(kind):
    plain = estimator_html_repr(LGMD(2, sample_graph="knn", max_iter=7))
    graph = GRAPHS[kind]
    for model in (LGMD(2, sample_graph=graph), GPCA(2, graph), LGMDImputer(LGMD(2, sample_graph=graph))):
        assert len(model._repr_html_()) < len(plain) + 6000
        # A line for each parameter, indented.
        assert len(repr(model)) < 600
        assert "text/html" in model._repr_mimebundle_()
        if kind != "frame":  # which scikit-learn's own models take a minute to print
            assert len(make_pipeline(model)._repr_html_()) < len(plain) + 20_000


def test_parameters_are_shown_by_their_size_and_are_not_changed():
    model = LGMD(2, sample_graph=CHAIN, feature_graph=FixedGraph(CHAIN.toarray(), ridge=0.3))
    html = model._repr_html_()
    assert model.sample_graph is CHAIN
    assert isinstance(model.feature_graph.matrix, np.ndarray)
    assert "40 x 40 sparse matrix with 118 entries" in html
    assert "ridge=0.3" in html
    expected = """LGMD(feature_graph=FixedGraph(matrix=<40 x 40 ndarray>, kind='auto', ridge=0.3),
     n_components=2, sample_graph=<40 x 40 sparse matrix with 118 entries>)"""
    assert repr(model) == expected
    wrapped = repr(LGMDImputer(model)).splitlines()
    assert "".join(line.strip() for line in wrapped).startswith("LGMDImputer(estimator=LGMD(feature_graph=FixedGraph(")
    assert max(map(len, wrapped)) <= 90


def test_what_scikit_learn_shows_stays_and_a_fit_adds_a_summary(table):
    model = LGMD(4, sample_graph="none", feature_graph="none", max_iter=200, tol=1e-3)
    assert "lgmd-summary" not in model._repr_html_()
    model.fit(table)
    html = model._repr_html_()
    assert "sk-top-container" in html
    assert "Fitted</span>" in html
    found = facts(html)
    assert found["rank"] == f"{model.rank_} of at most 4"
    assert found["noise"] == f"{model.noise_std_:.4g} (standard deviation)"
    assert found["inference"] == "variational"
    assert found["edges"] == "0 between rows, 0 between columns"
    assert found["fit"] == f"converged, {model.n_iter_} iterations"
    assert found["columns"] == "9 (&lt;i&gt;0&lt;/i&gt;, &lt;i&gt;1&lt;/i&gt;, &lt;i&gt;2&lt;/i&gt;, …)"
    assert model._repr_mimebundle_()["text/html"].count("lgmd-summary") == 1


def test_names_stay_text(table):
    for model in (LGMD(2, max_iter=100, tol=1e-2), LGMDImputer(PMF(2, max_iter=100, tol=1e-2)), GPCA(2)):
        html = model.fit(table)._repr_html_()
        assert "&lt;i&gt;0" in html
        assert "<script>alert" not in html
        assert "<i>0" not in html


def test_each_model_says_what_it_has(table):
    point = DGRMD(2, inference="map", max_iter=300, tol=1e-3).fit(table)
    found = facts(point._repr_html_())
    edges = (scipy.sparse.triu(point.sample_graph_, 1).nnz, scipy.sparse.triu(point.feature_graph_, 1).nnz)
    assert found["inference"] == "map (no error bars)"
    assert found["edges"] == f"{edges[0]} between rows, {edges[1]} between columns"
    assert edges[0] > 0
    imputer = LGMDImputer(point)
    assert "lgmd-summary" not in imputer._repr_html_()
    assert facts(imputer.fit(table)._repr_html_()) == facts(imputer.estimator_._repr_html_())
    assert facts(GPCA(3).fit(table)._repr_html_())["components"].startswith("3, singular values from")


def test_a_fit_that_did_not_converge_says_so(table):
    with pytest.warns(UserWarning, match="max_iter"):
        model = PMF(2, inference="map", max_iter=1, tol=0).fit(table)
    assert facts(model._repr_html_())["fit"] == "not converged (max_iter), 1 iteration"


def test_text_is_what_is_shown_where_scikit_learn_is_told_so(table):
    model = GPCA(2).fit(table)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert model._repr_mimebundle_() == {"text/plain": repr(model)}

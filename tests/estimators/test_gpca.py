"""Generalised principal components."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lgmd import GPCA, LGMD, PMF, LGMDImputer
from lgmd.estimators import gpca as gpca_module
from lgmd.exceptions import InvalidDataError, InvalidGraphError, InvalidParameterError
from lgmd.metrics import subspace_angle


def test_without_graphs_it_is_pca(make_table):
    complete, _ = make_table()
    ours = GPCA(4).fit(complete)
    reference = PCA(4).fit(complete)
    np.testing.assert_allclose(ours.singular_values_, reference.singular_values_)
    np.testing.assert_allclose(np.abs(ours.components_), np.abs(reference.components_), atol=1e-8)
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(complete)), reference.inverse_transform(reference.transform(complete))
    )


@pytest.fixture
def graphs(make_precision):
    return make_precision(14, seed=3), make_precision(11, seed=4)


def test_the_metrics_are_the_right_way_round(make_table, graphs):
    complete, _ = make_table()
    A, B = graphs
    model = GPCA(4, A, B, center=False).fit(complete)
    U, V = model.sample_components_, model.components_.T
    np.testing.assert_allclose(U.T @ np.linalg.solve(A.toarray(), U), np.eye(4), atol=1e-10)
    np.testing.assert_allclose(V.T @ np.linalg.solve(B.toarray(), V), np.eye(4), atol=1e-10)


def test_no_other_factors_of_the_rank_are_nearer_in_the_norm(make_table, graphs, rng):
    complete, _ = make_table()
    A, B = graphs
    model = GPCA(3, A, B, center=False).fit(complete)

    def distance(approximation):
        difference = complete - approximation
        return np.trace(np.linalg.solve(A.toarray(), difference) @ np.linalg.solve(B.toarray(), difference.T))

    U, V = model.sample_components_ * model.singular_values_, model.components_
    best = distance(U @ V)
    # The optimum of alternating generalised least squares from random starts, an independent route to the same problem.
    inverse_A, inverse_B = np.linalg.inv(A.toarray()), np.linalg.inv(B.toarray())
    found = []
    for _ in range(5):
        Q = rng.standard_normal((11, 3))
        for _ in range(500):
            P = np.linalg.solve(Q.T @ inverse_B @ Q, Q.T @ inverse_B @ complete.T).T
            Q = np.linalg.solve(P.T @ inverse_A @ P, P.T @ inverse_A @ complete).T
        found.append(distance(P @ Q.T))
    assert best == pytest.approx(min(found), rel=1e-8)


def test_scores_of_the_fitted_rows_are_u_d(make_table, graphs):
    complete, _ = make_table()
    model = GPCA(4, *graphs).fit(complete)
    np.testing.assert_allclose(model.transform(complete), model.sample_components_ * model.singular_values_, atol=1e-9)


@pytest.mark.parametrize("inference", ["map", "variational"])
def test_a_fitted_model_with_gaps_is_post_processed_in_closed_form(make_table, graphs, inference):
    _, gappy = make_table()
    A, B = graphs
    model = LGMD(3, inference=inference, sample_graph=A, feature_graph=B).fit(gappy)
    assert model.rank_ == 3
    components = GPCA.from_model(model)
    U, V = components.sample_components_, components.components_.T
    np.testing.assert_allclose(
        (U * components.singular_values_) @ V.T, model.sample_factors_ @ model.feature_factors_.T, atol=1e-10
    )
    np.testing.assert_allclose(U.T @ np.linalg.solve(A.toarray(), U), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(V.T @ np.linalg.solve(B.toarray(), V), np.eye(3), atol=1e-10)
    assert subspace_angle(U, model.sample_factors_) < 1e-6


@pytest.mark.parametrize("inference", ["map", "variational"])
def test_the_closed_form_agrees_with_the_decomposition_of_the_low_rank_matrix(make_table, graphs, inference):
    complete, _ = make_table()
    A, B = graphs
    model = LGMD(3, inference=inference, sample_graph=A, feature_graph=B, intercept="none").fit(complete)
    closed = GPCA.from_model(model)
    direct = GPCA(3, A, B, center=False).fit(model.reconstruct())
    np.testing.assert_allclose(closed.singular_values_, direct.singular_values_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(closed.components_), np.abs(direct.components_), atol=1e-7)


def test_the_randomised_decomposition_agrees_with_the_exact_one(make_table, make_precision, monkeypatch):
    complete, _ = make_table(n=60, p=50, noise=0.01)
    A, B = make_precision(60, density=0.05), make_precision(50, density=0.05)
    exact = GPCA(3, A, B).fit(complete)
    monkeypatch.setattr(gpca_module, "_EXACT_LIMIT", 10)
    randomised = GPCA(3, A, B, random_state=0).fit(complete)
    np.testing.assert_allclose(randomised.singular_values_, exact.singular_values_, rtol=1e-4)


def test_bad_input_is_refused(make_table):
    complete, gappy = make_table()
    missing = int(np.isnan(gappy).sum())
    with pytest.raises(InvalidDataError, match=f"{missing} of 154 entries are NaN or missing. Fit LGMD"):
        GPCA(3).fit(gappy)
    with pytest.raises(InvalidParameterError, match="the rank is at most 11"):
        GPCA(12).fit(complete)
    with pytest.raises(InvalidGraphError, match="sample_graph is 3 x 3 but the data has 14 rows"):
        GPCA(2, sample_graph=np.eye(3)).fit(complete)
    with pytest.raises(InvalidDataError, match=r"Use LGMD.transform for rows with gaps"):
        GPCA(2).fit(complete).transform(gappy)
    with pytest.raises(Exception, match="not fitted"):
        GPCA.from_model(PMF(2))


def test_the_default_number_of_components_goes_no_further_than_the_table(make_table):
    complete, _ = make_table(n=12, p=9)
    assert len(GPCA().fit(complete).singular_values_) == 9


def test_only_models_have_components(make_table):
    complete, _ = make_table()
    with pytest.raises(InvalidParameterError, match=r"is a LGMDImputer. Of an imputer pass estimator_"):
        GPCA.from_model(LGMDImputer(PMF(2)).fit(complete))

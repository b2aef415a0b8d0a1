"""The average marginal variance of a graph."""

import numpy as np
import pytest
import scipy.sparse

from lgmd.linalg import cholesky, marginals
from lgmd.linalg.marginals import mean_marginal_variance


def test_small_and_diagonal_matrices_are_exact(make_precision):
    A = make_precision(30)
    assert mean_marginal_variance(A) == pytest.approx(np.trace(np.linalg.inv(A.toarray())) / 30)
    diagonal = scipy.sparse.csr_array(scipy.sparse.diags_array([1.0, 2.0, 4.0]))
    assert mean_marginal_variance(diagonal) == pytest.approx(np.mean([1, 0.5, 0.25]))


@pytest.mark.parametrize("entangled", [False, True])
def test_large_matrices_are_estimated_well(make_precision, monkeypatch, entangled):
    A = make_precision(300, density=0.02)
    exact = np.trace(np.linalg.inv(A.toarray())) / 300
    monkeypatch.setattr(marginals, "_EXACT_NODES", 10)
    if entangled:
        monkeypatch.setattr(cholesky, "DENSE_LIMIT", 10)
        monkeypatch.setattr(cholesky, "FILL_LIMIT", 10)
    # The error of a sign probe comes from the off-diagonal entries of the inverse alone, which are small here.
    assert mean_marginal_variance(A) == pytest.approx(exact, rel=0.02)

"""A small fitted model whose names try to be markup, and its table."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lgmd import LGMD
from lgmd.exceptions import ConvergenceWarning
from lgmd.graphs import laplacian
from lgmd.observed import as_observed, hold_out
from lgmd.report import HeldOutScores

NASTY = "<script>document.title = 'owned'</script>"


def ring(n):
    """Neighbours joined in a circle, with weights that all differ."""
    i = np.arange(n)
    weights = 1 + i / n
    adjacency = scipy.sparse.csr_array((weights, (i, (i + 1) % n)), shape=(n, n))
    return scipy.sparse.csr_array(laplacian(adjacency + adjacency.T) + 0.5 * scipy.sparse.eye_array(n))


@pytest.fixture(scope="session")
def named_table():
    rng = np.random.default_rng(7)
    table = rng.standard_normal((14, 3)) @ rng.standard_normal((3, 10)) + 0.2 * rng.standard_normal((14, 10)) + 5
    table[rng.random(table.shape) < 0.15] = np.nan
    table[:, 0] = np.where(np.isnan(table[:, 0]), 5.0, table[:, 0])
    table[0] = np.where(np.isnan(table[0]), 5.0, table[0])
    rows = [NASTY, "</script><b>", "a & b", 'quote " mark', "line\u2028separator"] + [f"place {i}" for i in range(9)]
    columns = ["<img src=x onerror=alert(1)>"] + [f"day {j}" for j in range(9)]
    return pd.DataFrame(table, index=rows, columns=columns)


@pytest.fixture(scope="session")
def named_model(named_table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LGMD(3, sample_graph=ring(14), feature_graph="none", max_iter=8, random_state=0)
        return model.fit(named_table)


@pytest.fixture(scope="session")
def scores(named_table):
    kept, aside = hold_out(as_observed(named_table), 0.15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trial = LGMD(3, sample_graph="none", feature_graph="none", max_iter=8, random_state=0).fit(kept)
    return HeldOutScores.of(trial, aside.rows, aside.columns, aside.values)

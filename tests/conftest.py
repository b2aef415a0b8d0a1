"""Fixtures and small builders that several test folders share."""

import os

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread_a_worker():
    """Workers side by side fill the machine: threads of their own would only wait for each other."""
    with threadpool_limits(1 if "PYTEST_XDIST_WORKER" in os.environ else None):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(12345)


@pytest.fixture
def make_precision():
    """A builder of sparse, symmetric, diagonally dominant precision matrices."""

    def make(n, seed=0, density=0.2):
        rng = np.random.default_rng(seed)
        weights = rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < density)
        weights = np.triu(weights, 1)
        weights += weights.T
        return scipy.sparse.csr_array(np.diag(np.abs(weights).sum(axis=1) + rng.uniform(0.5, 1.5, n)) + weights)

    return make


@pytest.fixture
def make_table():
    """A builder of low-rank tables with noise, as an array and as the same with NaN in its gaps."""

    def make(n=14, p=11, rank=3, missing=0.3, noise=0.1, seed=0):
        rng = np.random.default_rng(seed)
        table = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
        table += rng.standard_normal((n, 1)) + rng.standard_normal(p) + 3.0
        table += noise * rng.standard_normal((n, p))
        gaps = rng.random((n, p)) < missing
        gaps[np.arange(n), np.arange(n) % p] = False
        gaps[np.arange(p) % n, np.arange(p)] = False
        return table, np.where(gaps, np.nan, table)

    return make

"""Vectors in compiled loops against the same on arrays."""

import numba
import numpy as np
import pytest

from lgmd.linalg.vectors import VECTOR_BYTES, add_to, load, repeated, store


@numba.njit
def combine(x, y, number, out):
    store(out, (1, 2), load(x, (1, 2)) * load(y, (3,)) - load(x, (0, 0)) + repeated(number))


@numba.njit
def accumulate(x, out):
    add_to(out, (1,), load(x, (2,)))
    add_to(out, (1,), load(x, (0,)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arithmetic_is_that_of_each_number(dtype):
    width = VECTOR_BYTES // np.dtype(dtype).itemsize
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, width + 3)).astype(dtype), rng.standard_normal(width + 3).astype(dtype)
    out = np.full((2, width + 3), 7.0, dtype)
    combine(x, y, dtype(0.5), out)
    expected = np.full_like(out, 7.0)
    expected[1, 2:-1] = x[1, 2:-1] * y[3:] - x[0, :-3] + dtype(0.5)
    np.testing.assert_allclose(out, expected, rtol=0, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_vectors_are_added_in_double_precision(dtype):
    width = VECTOR_BYTES // np.dtype(dtype).itemsize
    x = np.random.default_rng(1).standard_normal(width + 2).astype(dtype)
    out = np.full(width + 2, 1e6)
    accumulate(x, out)
    expected = np.full(width + 2, 1e6)
    expected[1:-1] += x[2:].astype(float) + x[:-2]
    np.testing.assert_allclose(out, expected, rtol=1e-15)

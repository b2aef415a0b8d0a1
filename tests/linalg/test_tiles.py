"""Across the diagonal of a square array."""

import numpy as np
import pytest

from lgmd.linalg.tiles import reflect_upper


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_upper_triangle_is_mirrored_or_the_array_transposed(rng, n, dtype):
    matrix = rng.standard_normal((n, n)).astype(dtype)
    mirrored, transposed = matrix.copy(), matrix.copy()
    reflect_upper(mirrored, False)
    np.testing.assert_array_equal(mirrored, np.triu(matrix) + np.triu(matrix, 1).T)
    reflect_upper(transposed, True)
    np.testing.assert_array_equal(transposed, matrix.T)

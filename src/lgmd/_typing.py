"""Names for the array types that run through the package."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "FloatArray", "IntArray", "RandomState", "SparseGraph"]

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

# A symmetric scipy.sparse.csr_array; scipy's own stubs are stricter than its functions.
SparseGraph: TypeAlias = Any

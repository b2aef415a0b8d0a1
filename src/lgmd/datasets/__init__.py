"""
Data to try things on, with the truth at hand.

``matrix_normal`` draws whole tables from the model; ``graphs`` has the precision matrices behind them, and
``_gaps`` hides entries.
"""

from lgmd.datasets.graphs import (
    block_precision,
    chain_precision,
    geometric_precision,
    identity_precision,
    random_precision,
)
from lgmd.datasets.matrix_normal import MatrixNormalData, make_matrix_normal

__all__ = [
    "MatrixNormalData",
    "block_precision",
    "chain_precision",
    "geometric_precision",
    "identity_precision",
    "make_matrix_normal",
    "random_precision",
]

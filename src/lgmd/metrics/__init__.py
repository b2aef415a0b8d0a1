"""
How good a decomposition is: errors of entries, angles of subspaces, edges found.

``errors`` compares tables, ``subspaces`` compares and describes factors, ``edges`` compares graphs. All are
plain functions of arrays; none knows an estimator.
"""

from lgmd.metrics.edges import edge_recovery
from lgmd.metrics.errors import rmse
from lgmd.metrics.subspaces import column_correlations, subspace_angle

__all__ = ["column_correlations", "edge_recovery", "rmse", "subspace_angle"]

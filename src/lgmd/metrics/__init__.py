"""
How good a decomposition is: errors of entries, angles of subspaces, edges found, clusters, error bars.

``errors`` compares tables, ``subspaces`` compares and describes factors, ``edges`` compares graphs, ``clustering``
compares groups of samples, ``calibration`` compares error bars with errors. All are plain functions of arrays; none
knows an estimator. ``paper`` maps the paper's labels E1 to E8 to them.
"""

from lgmd.metrics.calibration import calibration_curve, coverage
from lgmd.metrics.clustering import clustering_accuracy, normalized_mutual_information
from lgmd.metrics.edges import edge_recovery
from lgmd.metrics.errors import rmse
from lgmd.metrics.paper import PAPER_MEASURES, PaperMeasure
from lgmd.metrics.subspaces import column_correlations, subspace_angle

__all__ = [
    "PAPER_MEASURES",
    "PaperMeasure",
    "calibration_curve",
    "clustering_accuracy",
    "column_correlations",
    "coverage",
    "edge_recovery",
    "normalized_mutual_information",
    "rmse",
    "subspace_angle",
]

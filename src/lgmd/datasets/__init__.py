"""
Data to try things on.

``matrix_normal`` draws whole tables from the model, with the truth at hand; ``graphs`` has the precision matrices
behind them, and ``_gaps`` hides entries. ``temperature``, ``ratings`` and ``labelled`` load real sets from the folder
that the variable LGMD_DATA names. ``readers`` has parsers for the files that the sets' owners publish.
"""

from lgmd.datasets.containers import (
    GraphCompletionData,
    LabelledData,
    MovieLensData,
    RatingsData,
    SparseRatings,
    StationExtremes,
    TemperatureData,
)
from lgmd.datasets.graphs import (
    block_precision,
    chain_precision,
    geometric_precision,
    identity_precision,
    random_precision,
)
from lgmd.datasets.labelled import load_expression, load_images, load_mnist, load_tdt2
from lgmd.datasets.matrix_normal import MatrixNormalData, make_matrix_normal
from lgmd.datasets.ratings import load_graph_completion, load_movielens, load_netflix
from lgmd.datasets.readers import (
    read_ghcn_daily,
    read_gsod,
    read_idx,
    read_mnist,
    read_movielens,
    read_netflix_prize,
    read_tdt2,
)
from lgmd.datasets.temperature import load_station_extremes, load_temperature

__all__ = [
    "GraphCompletionData",
    "LabelledData",
    "MatrixNormalData",
    "MovieLensData",
    "RatingsData",
    "SparseRatings",
    "StationExtremes",
    "TemperatureData",
    "block_precision",
    "chain_precision",
    "geometric_precision",
    "identity_precision",
    "load_expression",
    "load_graph_completion",
    "load_images",
    "load_mnist",
    "load_movielens",
    "load_netflix",
    "load_station_extremes",
    "load_tdt2",
    "load_temperature",
    "make_matrix_normal",
    "random_precision",
    "read_ghcn_daily",
    "read_gsod",
    "read_idx",
    "read_mnist",
    "read_movielens",
    "read_netflix_prize",
    "read_tdt2",
]

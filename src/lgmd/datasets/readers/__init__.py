"""
Readers of public data files, as their owners publish them.

One format a module: ``ghcn`` and ``gsod`` for weather stations, ``netflix_prize`` and ``movielens`` for ratings,
``idx`` for MNIST and its kin, ``tdt2`` for Deng Cai's Matlab matrices. Nothing is downloaded. A file that is truncated
or of another kind raises an error with the place and what was expected there.
"""

from lgmd.datasets.readers.ghcn import read_ghcn_daily
from lgmd.datasets.readers.gsod import read_gsod
from lgmd.datasets.readers.idx import read_idx, read_mnist
from lgmd.datasets.readers.movielens import read_movielens
from lgmd.datasets.readers.netflix_prize import read_netflix_prize
from lgmd.datasets.readers.tdt2 import read_tdt2

__all__ = [
    "read_ghcn_daily",
    "read_gsod",
    "read_idx",
    "read_mnist",
    "read_movielens",
    "read_netflix_prize",
    "read_tdt2",
]

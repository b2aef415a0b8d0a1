"""Variational inference on the paper's temperature table, where the data folder is at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from lgmd import LGMD, metrics

FOLDER = os.environ.get("LGMD_DATA")

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not FOLDER, reason="LGMD_DATA does not name the data folder"),
]


def test_a_fifth_of_the_temperatures_tells_the_rest_and_how_surely():
    with np.load(Path(FOLDER) / "temperature" / "us_daily_mean_2017_2021.npz") as data:
        temperature = data["temp_f"][data["idx150"]][:, data["window_2018_2019"]].astype(float)
    seen = np.random.default_rng(0).random(temperature.shape) < 0.2
    model = LGMD(sample_graph="none", feature_graph="none").fit(np.where(seen, temperature, np.nan))
    mean, std = model.reconstruct(return_std=True)
    # Point estimates with rank and penalty tuned on held-out entries were measured above 4.4.
    assert metrics.rmse(temperature[~seen], mean[~seen]) < 4.15
    bar = scipy.stats.norm.ppf(0.95)
    inside = np.abs(temperature - mean) < bar * std
    # 80,000 hidden entries. Days in a row hang together, which no bar knows of without a graph.
    assert 0.86 < np.mean(inside[~seen]) < 0.93
    # Hidden entries are less certain than observed ones would be.
    assert np.mean(std[~seen]) > np.sqrt(model.noise_variance_)

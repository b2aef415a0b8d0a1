"""The package as a whole."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import lgmd
from lgmd import datasets, graphs, metrics


def test_the_public_names_are_there():
    assert set(lgmd.__all__) >= {"LGMD", "PMF", "DGRMD", "GPCA", "LGMDImputer", "graphs", "metrics", "datasets"}
    for module in (lgmd, graphs, metrics, datasets):
        assert all(hasattr(module, name) for name in module.__all__)


def test_importing_loads_no_plotting_no_tuning_and_no_command_line():
    code = "import sys, lgmd; lgmd.LGMD; lgmd.datasets; lgmd.metrics; "
    code += "print(sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("matplotlib", "optuna", "torch", "typer", "rich", "cvxpy"):
        assert f"'{heavy}'" not in loaded


def test_unknown_names_are_refused_and_known_ones_listed():
    assert set(lgmd.__all__) <= set(dir(lgmd))
    with pytest.raises(AttributeError, match="module 'lgmd' has no attribute 'PCA'"):
        lgmd.PCA  # noqa: B018


def test_the_version_is_that_of_the_package():
    assert lgmd.__version__ == version("lgmd")

"""The demo, run as users run it."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from PIL import Image

import lgmd
from lgmd.cli.pictures import draw_inpainting, draw_row_graph


def lgmd_command(*arguments):
    code = "from lgmd.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_demo_fills_the_photograph_better_with_graphs(tmp_path):
    result = lgmd_command("demo", "--output", str(tmp_path / "pictures"))
    assert result.returncode == 0, result.stderr
    errors = {
        name: float(line.split()[3])
        for line in result.stdout.splitlines()
        for name in ("PMF", "LGMD")
        if line.split()[1:2] == [name]
    }
    assert errors["LGMD"] < 0.9 * errors["PMF"]
    for name in ("inpainting.png", "row_graph.png"):
        assert str(tmp_path / "pictures" / name) in result.stdout.replace("\n", "")
        with Image.open(tmp_path / "pictures" / name) as picture:
            assert min(picture.size) > 300


def test_the_demo_says_what_is_wrong_without_a_traceback(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    result = lgmd_command("demo", "-o", str(blocked))
    assert result.returncode == 1
    assert "Error" in result.stderr
    assert "Traceback" not in result.stderr
    assert blocked.read_text() == "not a folder"


def test_version_and_help():
    assert lgmd_command("--version").stdout.strip() == f"lgmd {lgmd.__version__}"
    assert "demo" in lgmd_command("--help").stdout


def test_pictures_are_drawn_for_any_graph(tmp_path):
    rng = np.random.default_rng(0)
    original = rng.random((40, 60, 3))
    seen = rng.random((40, 60)) < 0.3
    path = tmp_path / "inpainting.png"
    draw_inpainting(original, seen, {"PMF": original, "LGMD": original}, {"PMF": 0.1, "LGMD": 0.05}, path)
    with Image.open(path) as picture:
        assert picture.size[0] > 1000
    for number, precision in enumerate(
        (scipy.sparse.eye_array(40), scipy.sparse.diags_array([-0.3, 1, -0.3], offsets=[-1, 0, 1], shape=(40, 40)))
    ):
        path = tmp_path / f"graph{number}.png"
        draw_row_graph(original, scipy.sparse.csr_array(precision), path)
        assert path.stat().st_size > 1000

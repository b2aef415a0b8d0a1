"""The script that makes the pictures of the report for the documentation."""

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SCRIPT = Path(__file__).parents[2] / "docs" / "pictures" / "report_screenshots.py"


def test_a_small_picture_keeps_the_colours_of_its_legend(tmp_path):
    """A heat map of many colours, and a few pixels of orange."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    spec = importlib.util.spec_from_file_location("report_screenshots", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    shade = np.linspace(0, 0.7, 300)[None, :, None] + np.linspace(0, 0.3, 300)[:, None, None]
    pixels = np.full((400, 600, 3), 255, dtype=np.uint8)
    pixels[50:350, 50:350] = np.array([68, 1, 84]) * (1 - shade) + np.array([253, 231, 37]) * shade
    pixels[20:26, 500:506] = (230, 159, 0)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    script.write_small(buffer.getvalue(), tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as small:
        assert small.convert("RGB").getpixel((502, 22)) == (230, 159, 0)

"""Pictures of the report: of `lgmd demo`, of a small table, and of the temperatures where the data folder is at hand.

``python docs/pictures/report_screenshots.py FOLDER`` writes each report and full-page screenshots of it, 1280 and 390
pixels wide, in light and dark. With ``--docs`` it also renews ``docs/images/report.png``. Needs selenium and Chromium
with its driver.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from selenium import webdriver

from lgmd import LGMD, datasets
from lgmd.cli.demo import demo
from lgmd.exceptions import ConvergenceWarning
from lgmd.observed import as_observed, hold_out
from lgmd.report import HeldOutScores, write_report

IMAGES = Path(__file__).parent.parent / "images"
WIDTHS = {1280: 900, 390: 844}
THEMES = ("light", "dark")


def sites_table() -> pd.DataFrame:
    """Sixty sites in ten valleys and forty days in eight weeks' weather, a fifth of the readings missing."""
    data = datasets.make_matrix_normal(
        60, 40, rank=14, sample_graph="blocks", feature_graph="blocks", noise=0.3, missing=0.2, random_state=3
    )
    days = pd.date_range("2024-03-01", periods=40).strftime("%d %b")
    return pd.DataFrame(data.observed + 10, index=[f"site {i:02d}" for i in range(60)], columns=days)


def temperature_table() -> pd.DataFrame:
    """Stations by days, of which half are hidden."""
    data = datasets.load_temperature()
    names = [f"{name.title()}, {state}" for name, state in zip(data.names, data.states, strict=True)]
    hidden = np.random.default_rng(0).random(data.values.shape) < 0.5
    return pd.DataFrame(np.where(hidden, np.nan, data.values), index=names, columns=data.dates.astype(str))


def report_of(table: pd.DataFrame, path: Path, title: str, **settings: object) -> Path:
    """Fit without some entries to judge the model, then with all of them."""
    kept, aside = hold_out(as_observed(table), 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trial = LGMD(**settings, random_state=0).fit(kept)
        model = LGMD(**settings, random_state=0).fit(table)
    scores = HeldOutScores.of(trial, aside.rows, aside.columns, aside.values)
    return write_report(model, path, table=table, title=title, held_out=scores)


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """Chromium without a window and without a word to the network."""
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in (
            "headless",
            "no-sandbox",
            "disable-gpu",
            "disable-quic",
            "no-first-run",
            "disable-background-networking",
            "disable-component-update",
            "disable-sync",
            f"user-data-dir={profile}",
        ):
            options.add_argument(f"--{flag}")
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            yield driver
        finally:
            driver.quit()


def screenshot(
    driver: webdriver.Chrome, report: Path, width: int, theme: str, *, first: str = "html", last: str = "html"
) -> bytes:
    """The page as a PNG, from the top of one element to the bottom of another."""
    size = {"width": width, "height": WIDTHS[width], "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(report.resolve().as_uri())
    # Drawings follow in the next two frames.
    driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 200)))"
    )
    script = "return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]] + window.scrollY"
    top, bottom = driver.execute_script(script, first, "top"), driver.execute_script(script, last, "bottom")
    clip = {"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1}
    found = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    return base64.b64decode(found["data"])


def write_small(picture: bytes, path: Path) -> None:
    """Write a picture with a palette that keeps rare colours: those of a legend are few pixels."""
    with Image.open(io.BytesIO(picture)) as shot:
        shot.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def main() -> None:
    """Write reports and pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true", help="renew docs/images/report.png")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    demo(arguments.folder)
    reports = {
        "demo": arguments.folder / "report.html",
        "sites": report_of(
            sites_table(), arguments.folder / "sites.html", "Sixty sites and forty days", n_components=14
        ),
    }
    if os.environ.get("LGMD_DATA"):
        path = arguments.folder / "temperature.html"
        title = "Daily temperatures of 150 US stations, half of them hidden"
        reports["temperature"] = report_of(temperature_table(), path, title)
    with browser() as driver:
        for name, report in reports.items():
            print(f"{report}: {report.stat().st_size / 1e6:.2f} MB")
            for width in WIDTHS:
                for theme in THEMES:
                    picture = arguments.folder / f"{name}_{width}_{theme}.png"
                    picture.write_bytes(screenshot(driver, report, width, theme))
                    print(picture)
        if arguments.docs:
            picture = screenshot(driver, reports["demo"], 1280, "light", first="#table", last="#graph-rows")
            write_small(picture, IMAGES / "report.png")


if __name__ == "__main__":
    main()

"""A picture with holes: filled in without graphs, with graphs that are learned, and told that pixels are in order.

Run: python examples/images.py [picture.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_sample_image

from lgmd import LGMD, metrics
from lgmd.graphs import PriorGraph, candidates

PICTURE = Path(__file__).parent / "pictures" / "images.png"


def main(picture: Path) -> None:
    photograph = load_sample_image("china.jpg").mean(axis=2) / 255
    truth = photograph[100:340, 100:580].reshape(60, 4, 120, 4).mean(axis=(1, 3))
    hidden = np.random.default_rng(0).random(truth.shape) < 0.5
    holes = np.where(hidden, np.nan, truth)

    chains = [PriorGraph(candidates.chain(length)) for length in truth.shape]
    models = {
        "no graphs": LGMD(20, sample_graph="none", feature_graph="none", random_state=0),
        "graphs learned": LGMD(20, random_state=0),
        "pixels in order": LGMD(20, sample_graph=chains[0], feature_graph=chains[1], random_state=0),
    }
    panels = {"half of the pixels hidden": holes}
    for name, model in models.items():
        filled = model.fit(holes).reconstruct()
        error = metrics.rmse(truth[hidden], filled[hidden])
        print(f"{name}: error on hidden pixels {error:.4f}")
        panels[f"{name}: error {error:.4f}"] = np.where(hidden, filled, truth)
    bars = models["pixels in order"].reconstruct(return_std=True)[1]
    panels["error bars, pixels in order"] = bars
    panels["the picture"] = truth

    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    for ax, (title, values) in zip(figure.subplots(2, 3).ravel(), panels.items(), strict=True):
        is_picture = "bars" not in title
        limits = {"vmin": 0, "vmax": 1} if is_picture else {}
        ax.imshow(np.ma.masked_invalid(values), cmap="gray" if is_picture else "magma", aspect="auto", **limits)
        ax.set_facecolor("#7fa6d6" if is_picture else "white")
        ax.set_title(title, fontsize="medium")
        ax.set(xticks=[], yticks=[])
    figure.savefig(picture, dpi=70)
    # Few colours are enough for grey pixels, and make a file of a third of the size.
    Image.open(picture).convert("RGB").quantize(40).save(picture, optimize=True)
    print(f"Picture: {picture}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)

"""Single cells: an embedding of cells from sparse counts, clusters, and the graph between cells.

Run: python examples/single_cells.py [picture.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans

from lgmd import LGMD, graphs, metrics, plot

PICTURE = Path(__file__).parent / "pictures" / "single_cells.png"
KINDS = ("B", "T", "NK", "mono")
CELLS, GENES = 60, 80


def make_counts(rng: np.random.Generator):
    """Kinds of cells, and their counts: a programme a kind, a depth a cell, noise of genes and of counting."""
    kind = np.repeat(KINDS, CELLS)
    programs = dict(zip(KINDS, rng.gamma(0.6, 1.0, (len(KINDS), GENES)), strict=True))
    depth = rng.lognormal(0.0, 0.4, (len(kind), 1))
    rate = depth * np.array([programs[name] for name in kind]) * rng.gamma(6, 1 / 6, (len(kind), GENES))
    return kind, rng.poisson(0.6 * rate)


def main(picture: Path) -> None:
    kind, counts = make_counts(np.random.default_rng(0))
    size = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    expression = np.log1p(counts / size * np.median(size))

    model = LGMD(n_components=10, random_state=0).fit(expression)
    clusters = KMeans(len(KINDS), n_init=10, random_state=0).fit_predict(model.sample_factors_)
    print(f"{100 * np.mean(counts == 0):.0f} % zeros, rank {model.rank_}")
    print(f"accuracy of clusters {metrics.clustering_accuracy(kind, clusters):.2f}")
    print(graphs.describe(model.sample_graph_))

    figure = Figure(figsize=(10.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.embedding(model, labels=kind, ax=left)
    plot.graph(model, positions=model.sample_factors_[:, :2], ax=right, max_edges=400)
    right.set(xlabel="factor 0", ylabel="factor 1")
    figure.savefig(picture, dpi=75)
    print(f"Picture: {picture}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)

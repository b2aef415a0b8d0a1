"""The pictures of docs/choosing_a_graph.md, and the tables that stand in it.

``python docs/pictures/graphs.py`` writes ``docs/images/graphs_*.png``, prints what they show and puts the tables into
the page. Data comes from ``lgmd.datasets``; no data folder is needed. Two processes with one thread each for linear
algebra (``OPENBLAS_NUM_THREADS=1``) take some minutes.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from joblib import Parallel, delayed
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from lgmd import LGMD, datasets, graphs
from lgmd.exceptions import ConvergenceWarning
from lgmd.metrics import rmse

IMAGES = Path(__file__).parent.parent / "images"
PAGE = IMAGES.parent / "choosing_a_graph.md"
SEEDS = range(3)
FAMILIES = {"chain": "chain", "blocks": "blocks", "geometric": "geometric", "none": "independent"}
PENALTIES = (1.0, 2.0, 4.0, 8.0, 16.0)
REWIRED = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLORS = {
    "evidence": "#0072B2",
    "true graph as PriorGraph": "#000000",
    "knn": "#CC79A7",
    "threshold": "#E69F00",
    "glasso": "#F0E442",
    "laplacian": "#009E73",
    "laplacian, sparse=True": "#56B4E9",
}

# Weak edges are edges too: the lightest shade can be told from white.
SHADES = ListedColormap(colormaps["viridis_r"](np.linspace(0.15, 1, 256)))


def learner(name: str, precision: scipy.sparse.csr_array) -> object:
    """What to pass for a graph; tables are drawn in order, and nobody is to find that out."""
    if name == "evidence":
        return graphs.EvidenceGraph(order=False)
    if name.startswith("laplacian"):
        return graphs.LaplacianGraph(sparse=name != "laplacian", order=False)
    if name == "true graph as PriorGraph":
        return graphs.PriorGraph(adjacency(precision))
    return name


def adjacency(precision: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The edges of a precision, with what each entry weighs."""
    weights = abs(scipy.sparse.csr_array(precision))
    return scipy.sparse.csr_array(weights - scipy.sparse.diags_array(weights.diagonal()))


def fitted(model: LGMD, table: np.ndarray) -> LGMD:
    """Fit; a run that ends at ``max_iter`` is near enough for a picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(table)


def hidden_error(model: LGMD, data: datasets.MatrixNormalData) -> float:
    """Error on the hidden entries, in standard deviations of the truth."""
    hidden = ~data.mask
    return rmse(data.truth[hidden], model.reconstruct()[hidden]) / data.truth.std()


# Learned graphs -----------------------------------------------------------------------------------------------------


def draw_learned() -> None:
    """Partial correlations of the true and the learned row graphs of two tables."""
    names = ("evidence", "threshold", "glasso", "laplacian", "laplacian, sparse=True")
    figure = Figure(figsize=(10.5, 4.0), layout="constrained", facecolor="white")
    axes = figure.subplots(2, 1 + len(names))
    print("\nLearned row graphs, 60 x 60, rank 15, noise 0.3, 30 % hidden: edges, edges that are true")
    for row, family in enumerate(("blocks", "chain")):
        data = datasets.make_matrix_normal(
            60, 60, 15, sample_graph=family, feature_graph=family, noise=0.3, missing=0.3, random_state=0
        )
        true = adjacency(data.sample_precision).toarray() > 0
        panels = {"truth": data.sample_precision}
        for name in names:
            panels[name] = fitted(
                LGMD(sample_graph=learner(name, None), feature_graph="none"), data.observed
            ).sample_graph_
        for axis, (name, precision) in zip(axes[row], panels.items(), strict=True):
            strength = np.abs(graphs.partial_correlations(precision).toarray())
            n_edges, n_true = np.count_nonzero(strength) // 2, np.count_nonzero((strength > 0) & true) // 2
            print(f"  {family:7} {name:24} {n_edges:4} {n_true:4}")
            image = axis.imshow(np.where(strength > 0, strength, np.nan), cmap=SHADES, vmin=0, vmax=0.6)
            counts = f"{n_edges} edges" if name == "truth" else f"{n_edges} edges, {n_true} true"
            axis.set_title(f"{name}\n{counts}", fontsize=9)
            axis.set(xticks=[], yticks=[], facecolor="white")
        axes[row, 0].set_ylabel(f"{family}: row", fontsize=9)
    for axis in axes[1]:
        axis.set_xlabel("row", fontsize=9)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01, extend="max")
    bar.set_label("size of the partial correlation", fontsize=9)
    save(figure, "graphs_learned.png")
    compare_penalties()


def compare_penalties() -> None:
    """Edges of the two penalties of LGMD+ on the correlations of one factor."""
    X = datasets.make_matrix_normal(60, 60, 20, sample_graph="blocks", random_state=0).sample_factors
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    penalties = (0.01, 0.03, 0.1, 0.3, 1.0)
    rows = {
        name: [graphs.laplacian_precision(unit @ unit.T, rho, sparse=sparse).n_edges for rho in penalties]
        for name, sparse in (("edges, plain", False), ("edges, `sparse=True`", True))
    }
    write("penalties", ["`rho`", *map(str, penalties)], [[name, *map(str, row)] for name, row in rows.items()])


# What each learner changes ------------------------------------------------------------------------------------------


def error(family: str, name: str, inference: str, seed: int) -> float:
    """Error of one fit to a table half of which is hidden."""
    data = datasets.make_matrix_normal(
        120, 90, 12, sample_graph=family, feature_graph=family, noise=0.5, missing=0.5, random_state=seed
    )
    chosen = {
        "sample_graph": learner(name, data.sample_precision),
        "feature_graph": learner(name, data.feature_precision),
    }
    if inference == "variational":
        return hidden_error(fitted(LGMD(20, **chosen), data.observed), data)
    judges = data.mask & (np.random.default_rng([seed, 1]).random(data.mask.shape) < 0.1)

    def model(penalty: float, table: np.ndarray) -> LGMD:
        penalties = {"sample_penalty": penalty, "feature_penalty": penalty}
        return fitted(LGMD(12, "map", **chosen, **penalties), table)

    def loss(penalty: float) -> float:
        table = np.where(judges, np.nan, data.observed)
        return rmse(data.observed[judges], model(penalty, table).reconstruct()[judges])

    return hidden_error(model(min(PENALTIES, key=loss), data.observed), data)


def draw_errors() -> None:
    """Error of each learner relative to no graph, by family of tables and inference."""
    cases = [
        (family, name, inference, seed)
        for inference in ("variational", "map")
        for family in FAMILIES
        for name in ("none", *COLORS)
        for seed in SEEDS
        if not (family == "none" and name == "true graph as PriorGraph")
    ]
    found = dict(zip(cases, Parallel(n_jobs=-1)(delayed(error)(*case) for case in cases), strict=True))
    figure = Figure(figsize=(10.5, 6.2), layout="constrained", facecolor="white")
    axes = figure.subplots(2, 1, sharex=True)
    print("\nError on hidden entries relative to no graph, each seed")
    lines = {(inference, name): [] for inference in ("variational", "map") for name in ("none", *COLORS)}
    for axis, inference in zip(axes, ("variational", "map"), strict=True):
        for place, family in enumerate(FAMILIES):
            plain = np.array([found[family, "none", inference, seed] for seed in SEEDS])
            lines[inference, "none"].append(f"{plain.mean():.3f} sd")
            names = [name for name in COLORS if (family, name, inference, SEEDS[0]) in found]
            for position, name in enumerate(names):
                ratio = np.array([found[family, name, inference, seed] for seed in SEEDS]) / plain
                print(f"  {inference:11} {family:9} {name:26} {' '.join(f'{each:.3f}' for each in ratio)}")
                lines[inference, name].append(f"{100 * (ratio.mean() - 1):+.1f} %")
                x = place + 0.12 * (position - (len(names) - 1) / 2)
                change = 100 * (ratio - 1)
                label = name if place == 0 else None
                axis.bar(x, change.mean(), 0.11, color=COLORS[name], edgecolor="black", linewidth=0.5, label=label)
                axis.plot([x] * len(change), change, "o", color="white", markeredgecolor="black", markersize=3)
        axis.axhline(0, color="black", linewidth=1)
        axis.set_ylabel("change of the error, %")
        tuned = "" if inference == "variational" else ", penalty chosen on held-out entries"
        axis.set_title(f'inference="{inference}"{tuned}', fontsize=10, loc="left")
        axis.grid(axis="y", color="0.9")
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].set_xticks(range(len(FAMILIES)), list(FAMILIES.values()))
    axes[1].set_xlabel("true graphs of rows and columns")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=9, frameon=False)
    save(figure, "graphs_errors.png")
    rows = [[f"`{inference}`", name, *cells, *[""] * (4 - len(cells))] for (inference, name), cells in lines.items()]
    write("errors", ["inference", "graph", *FAMILIES.values()], rows)


# How far a given graph is trusted -----------------------------------------------------------------------------------


def rewired(n: int, share: float, seed: int) -> scipy.sparse.csr_array:
    """A chain some of whose edges join rows at random instead."""
    rng = np.random.default_rng([seed, 2])
    ends = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    moved = rng.permutation(n - 1)[: round(share * (n - 1))]
    for edge in moved:
        ends[edge] = rng.choice(n, 2, replace=False)
    graph = scipy.sparse.csr_array((np.ones(n - 1), ends.T), shape=(n, n))
    return scipy.sparse.csr_array(((graph + graph.T) > 0).astype(float))


def trust(share: float, seed: int) -> tuple[float, float, float]:
    """Learned strength, and errors relative to no graph of the graph with that strength and of the fixed graph."""
    data = datasets.make_matrix_normal(
        150, 60, 6, sample_graph="chain", feature_graph="none", noise=0.5, missing=0.5, random_state=seed
    )
    given = rewired(150, share, seed)
    models = [
        fitted(LGMD(10, sample_graph=graph, feature_graph="none"), data.observed)
        for graph in ("none", graphs.PriorGraph(given), graphs.FixedGraph(given, kind="adjacency"))
    ]
    plain, prior, fixed = (hidden_error(model, data) for model in models)
    return models[1].sample_strength_, prior / plain, fixed / plain


def draw_trust() -> None:
    """Strength and error as a true graph becomes a random one."""
    cases = [(share, seed) for share in REWIRED for seed in SEEDS]
    found = np.array(Parallel(n_jobs=-1)(delayed(trust)(*case) for case in cases))
    found = found.reshape(len(REWIRED), len(SEEDS), 3)
    strengths, priors, fixed = found.mean(axis=1).T
    rows = [
        ["learned strength", *(f"{each:.2f}" for each in strengths)],
        ["error, `PriorGraph`", *(f"{100 * (each - 1):+.1f} %" for each in priors)],
        ["error, `FixedGraph`", *(f"{100 * (each - 1):+.1f} %" for each in fixed)],
    ]
    write("trust", ["edges that are random", *(f"{share:.0%}" for share in REWIRED)], rows)
    figure = Figure(figsize=(10.5, 3.6), layout="constrained", facecolor="white")
    strength, errors = figure.subplots(1, 2)
    x = 100 * np.array(REWIRED)
    with_points(strength, x, found[:, :, 0], "#0072B2", "o-", "PriorGraph")
    strength.set(ylabel="learned strength b / a", xlabel="edges replaced by random ones, %", ylim=(0, 100))
    strength.set_yscale("symlog", linthresh=0.1)
    strength.set_yticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    with_points(errors, x, 100 * (found[:, :, 1] - 1), "#0072B2", "o-", "PriorGraph: strength learned")
    with_points(errors, x, 100 * (found[:, :, 2] - 1), "#D55E00", "s--", "FixedGraph: strength given")
    errors.axhline(0, color="black", linewidth=1)
    errors.annotate("no graph", (0, 0), xytext=(2, 3), textcoords="offset points", fontsize=9)
    errors.set(ylabel="change of the error, %", xlabel="edges replaced by random ones, %")
    errors.legend(frameon=False, fontsize=9)
    for axis in (strength, errors):
        axis.grid(color="0.9")
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, "graphs_trust.png")


def with_points(axis: Axes, x: np.ndarray, values: np.ndarray, color: str, style: str, label: str) -> None:
    """The mean as a line and every seed as a point."""
    axis.plot(x, values.mean(axis=1), style, color=color, label=label, linewidth=2)
    axis.plot(np.repeat(x, values.shape[1]), values.ravel(), style[0], color=color, alpha=0.35, markersize=4)


def save(figure: Figure, name: str) -> None:
    """Write a picture in few colours, so that it stays small."""
    FigureCanvasAgg(figure)
    path = IMAGES / name
    figure.savefig(path, dpi=130, metadata={"Software": None})
    print(f"  {path.relative_to(IMAGES.parent)}: {path.stat().st_size / 1000:.0f} kB")


def write(name: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table and put it into the page between its two marks."""
    lines = [header, ["---"] * len(header), *rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    print(f"\n{table}")
    page, count = re.subn(
        f"(?s)(<!-- {name} -->\n).*?(<!-- end {name} -->)",
        lambda marks: f"{marks[1]}{table}\n{marks[2]}",
        PAGE.read_text(),
    )
    if count != 1:
        raise SystemExit(
            f"{PAGE.name} has no place for the table {name!r}: put <!-- {name} --> and <!-- end {name} -->."
        )
    PAGE.write_text(page)


DRAWINGS = {"learned": draw_learned, "errors": draw_errors, "trust": draw_trust}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="*", default=list(DRAWINGS), help=f"of {', '.join(DRAWINGS)}; all by default")
    started = time.perf_counter()
    for name in parser.parse_args().pictures:
        DRAWINGS[name]()
    print(f"\n{time.perf_counter() - started:.0f} s")

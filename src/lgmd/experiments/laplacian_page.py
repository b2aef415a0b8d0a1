"""Tables and pictures of the laplacian experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgmd._typing import SparseGraph
from lgmd.experiments.base import Section
from lgmd.experiments.figures import draw_curves, new_figure, save_figure
from lgmd.experiments.summaries import mean_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["GRAPHS", "RUNS", "matrix_section", "run_section", "sweep_section"]

GRAPHS = ("correlation graph", "kNN graph", "kNN graph of LGMD's table", "LGMD")
"""Graphs over the rows of a table."""

RUNS = ("no penalty", "PMF", "LGMD, MAP")
"""Ways to factorise it from random factors on."""

_FIGURES = {
    "edges": "number of edges",
    "kept": "share of the clean graph kept",
    "found": "share of true edges found",
    "precision": "share of edges true",
}

_SWEEP_TEXT = """\
Tables with a known graph over their rows. "correlation graph": pairs of rows that correlate, over the columns that \
both have, by more than a threshold, which is set once on the clean table (no noise, no gaps) so that there are as \
many edges as the true graph has (dotted). "kNN graph" is dGRMD's; its number of edges can hardly change. "kNN graph \
of LGMD's table" is the same of the table after LGMD has denoised and completed it. "LGMD" is the graph that LGMD \
learns: edges for which there is evidence, and none where they do not help.

From left to right: the number of edges, as in the paper's figure; the share of the edges of the clean table's graph \
that are still there, which is what matters to a method that trusts such a graph (the graph of LGMD's table is \
compared with the clean kNN graph; LGMD's own graph has no such reference); the share of the true edges that are \
found; and the share of edges that are true, over the tables in which there are any."""

_RUN_TEXT = """\
Alternating least squares from random factors. After each iteration the pairs of rows of X that correlate by more \
than a threshold are counted; the threshold is where the true X has as many pairs as the true graph has edges \
(dotted). Dashed: how many of the counted pairs are true edges. "no penalty" minimises the error alone; "PMF" has the \
penalty that belongs to the noise and the factors that were drawn; "LGMD, MAP" the same penalty and the paper's \
graphs, learned three times once the factors have settled."""

_MATRIX_TEXT = """\
Matrices over the samples of one table whose rows lie on a map; rows are in an order in which neighbours of the true \
graph are close to each other (reverse Cuthill-McKee). Laplacians are without their ridge, and all matrices have a \
diagonal of one on average; off the diagonal blue joins samples that are alike and red samples that are opposite. The \
table counts edges and says how many of them are true."""


def sweep_section(
    rows: pd.DataFrame, family: str, sweep: str, what: str, folder: Path, *, explain: bool = False
) -> Section:
    """Graphs against noise or gaps.

    Parameters
    ----------
    rows : DataFrame
        One for each graph, level and repetition of a family.
    family : str
    sweep : {"noise", "missing"}
    what : str
        What is varied, for the title.
    folder : Path
        Where the picture goes.
    explain : bool, default=False
        Whether to say what is shown; once is enough.
    """
    import pandas as pd

    rows = rows[rows["sweep"] == sweep]
    label = "noise / standard deviation" if sweep == "noise" else "share of missing entries"
    figure, panels = new_figure(len(_FIGURES), width=3.2, height=3.4)
    tables = []
    for axes, (value, text) in zip(panels, _FIGURES.items(), strict=True):
        draw_curves(axes, rows, "level", value, GRAPHS, x_label=label, y_label=text)
        if value == "edges":
            axes.axhline(rows["true_edges"].mean(), color="black", linewidth=0.8, linestyle=":")
            axes.set_ylim(bottom=0)
        else:
            axes.set_ylim(-0.03, 1.03)
        table = mean_table(rows, value, "level", GRAPHS, digits=0 if value == "edges" else 2)
        table.insert(0, "figure", text)
        tables.append(table[(table.iloc[:, 2:] != "").any(axis=1)])
    _common_legend(figure, panels)
    picture = save_figure(figure, folder, f"laplacian_{family}_{sweep}")
    text = _SWEEP_TEXT if explain else ""
    return Section(f"Edges against {what}, {family}", text, pd.concat(tables), (picture,))


def run_section(rows: pd.DataFrame, folder: Path) -> Section:
    """Pairs of rows of X that are alike, against iterations."""
    import pandas as pd

    kinds = list(rows[["family", "level"]].drop_duplicates().itertuples(index=False, name=None))
    figure, panels = new_figure(len(kinds), width=3.2, height=3.4)
    tables = []
    for axes, (family, missing) in zip(panels, kinds, strict=True):
        chosen = rows[(rows["family"] == family) & (rows["level"] == missing)]
        _draw_run(axes, chosen)
        axes.axhline(chosen["true_edges"].mean(), color="black", linewidth=0.8, linestyle=":")
        axes.set_title(f"{family}, {100 * missing:.0f} % missing", fontsize=10)
        axes.set_ylim(bottom=0)
        few = chosen[chosen["iteration"].isin([0, 1, 2, 5, 10, chosen["iteration"].max()])].copy()
        few["iteration"] = few["iteration"].astype(int)
        for value, text in (("edges", "pairs"), ("true_found", "true edges among them")):
            table = mean_table(few.sort_values("iteration"), value, "iteration", RUNS, digits=0)
            table.insert(0, "table", f"{family}, {100 * missing:.0f} % missing")
            table.insert(1, "count", text)
            tables.append(table)
    _common_legend(figure, panels)
    picture = save_figure(figure, folder, "laplacian_iterations")
    return Section("Edges of the factors against iterations", _RUN_TEXT, pd.concat(tables), (picture,))


def matrix_section(rows: pd.DataFrame, matrices: dict[str, SparseGraph], folder: Path) -> Section:
    """Heat maps side by side.

    Parameters
    ----------
    rows : DataFrame
        Counts of each matrix.
    matrices : dict of str to csr_array
    folder : Path
        Where the picture goes.
    """
    figure, panels = new_figure(len(matrices), width=2.7, height=3.0)
    for axes, (name, graph) in zip(panels, matrices.items(), strict=True):
        image = axes.imshow(graph.toarray(), cmap="RdBu_r", vmin=-0.4, vmax=0.4, interpolation="nearest")
        axes.set_title(name, fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.colorbar(image, ax=panels, shrink=0.8, extend="both")
    picture = save_figure(figure, folder, "laplacian_matrices")
    counts = {"edges": "edges", "true_found": "true ones", "positive": "between opposites"}
    shares = {"found": "share of true edges found", "precision": "share of edges true"}
    table = rows[["method", *counts, *shares]].copy()
    for column in counts:
        table[column] = table[column].astype(int)
    for column in shares:
        table[column] = table[column].map(lambda share: "" if share != share else f"{share:.2f}")
    table = table.rename(columns={"method": "matrix", **counts, **shares})
    n_samples = next(iter(matrices.values())).shape[0]
    return Section(f"Laplacians and precisions of {n_samples} samples", _MATRIX_TEXT, table, (picture,))


def _draw_run(axes: Any, rows: pd.DataFrame) -> None:
    """Counts against iterations, true edges dashed in the same colour."""
    draw_curves(axes, rows, "iteration", "edges", RUNS, x_label="iteration", y_label="pairs above the threshold")
    means = rows.groupby(["method", "iteration"])["true_found"].mean()
    for container in axes.containers:
        line = container.lines[0]
        line.set_marker("")
        counts = means.loc[container.get_label()]
        axes.plot(counts.index, counts.to_numpy(), linestyle="--", color=line.get_color(), linewidth=1.2)


def _common_legend(figure: Figure, panels: list[Any]) -> None:
    """One legend above all panels in place of one in each."""
    handles, labels = panels[0].get_legend_handles_labels()
    for axes in panels:
        if axes.get_legend() is not None:
            axes.get_legend().remove()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=9)

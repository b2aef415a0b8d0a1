"""Tables and figures of the synthetic experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from lgmd._typing import FloatArray
from lgmd.estimators import LGMD, LGMDPlus
from lgmd.experiments.base import Section
from lgmd.experiments.figures import draw_curves, new_figure, save_figure
from lgmd.experiments.methods import fit
from lgmd.experiments.paper_numbers import NOISE_LEVELS, SUBSPACE_ANGLES
from lgmd.experiments.summaries import mean_table, paired_table, pairs_table
from lgmd.experiments.synthetic import (
    AT_EQUAL_COLUMNS,
    COMPLETION_NOISE,
    EDGE_SHARES,
    LGMD_WITHOUT_MEANS,
    METHODS,
    PMF_WITH_MEANS,
    RANK,
    SEARCH_SEED,
    Synthetic,
    make_table,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_sections"]

_NAMES = {
    "paper": "the paper's random graphs",
    "blocks": "blocks of correlated nodes",
    "geometric": "neighbours on a map",
}
_GRAPH_SEED = 0
_NOISE, _SHARE = "noise / sd of the truth", "share of remaining entries"


def write_sections(experiment: Synthetic, results: pd.DataFrame, folder: Path) -> list[Section]:
    """All sections, their pictures saved in the folder."""
    denoising, completion = (results[results["task"] == task] for task in ("denoising", "completion"))
    sections = [
        Section(
            "What was run",
            f"Tables of 100 x 100 and rank {RANK}, Y = X W' + E, drawn from the model. The paper does not say how the "
            "weights of its graphs were drawn, only that 6 % of the pairs are joined. Here they are random signed "
            "edges with a diagonally dominant precision, 0.5 of the way to losing dominance over rows and 0.3 over "
            "columns: with these PCA's angles are nearest to the paper's. Blocks and neighbours on a map are graphs "
            "with strong local structure, which random ones lack.\n\n"
            "PMF, dGRMD, LGMD by MAP and GRMD-real by MAP have their two penalties chosen by Bayesian optimisation on "
            "held-out entries of one more table of each level. LGMD, LGMD+ and GRMD-real run with their defaults, by "
            "variational inference, and nothing is tuned. GRMD-real is given the true graphs.\n\n"
            f"{_seeds(experiment)}",
        )
    ]
    sections += _angle_sections(denoising[denoising["family"] == "paper"], folder)
    for family in dict.fromkeys(results["family"]):
        sections += _family_sections(
            family, denoising[denoising["family"] == family], completion[completion["family"] == family], folder
        )
    sections += [_correlations(denoising, folder), _edges(denoising, folder), _graphs(folder)]
    return sections


def _seeds(experiment: Synthetic) -> str:
    first, n = experiment.first_seed, experiment.n_repetitions
    repetitions = f"have the seeds {first} to {first + n - 1}" if n > 1 else f"have the seed {first}"
    return (
        f"At every level the tables {repetitions}, one a repetition; the table on which penalties are chosen has "
        f"{first - 1}, and the search for them {SEARCH_SEED}. The graphs at the end are of tables with the seed "
        f"{_GRAPH_SEED}."
    )


def _angle_sections(rows: pd.DataFrame, folder: Path) -> list[Section]:
    """Tables 1 and 2, the paper's rows beside ours."""
    import pandas as pd

    sections = []
    for measure, side in (("E5", "X"), ("E6", "W")):
        ours = mean_table(rows, measure, "level", METHODS)
        levels = [float(column) for column in ours.columns[1:]]
        printed = [
            {
                "method": f"{method}, in the paper",
                **{f"{level:g}": f"{values[NOISE_LEVELS.index(level)]:.4f}" for level in levels},
            }
            for method, values in SUBSPACE_ANGLES[measure].items()
        ]
        text = (
            f"Largest principal angle between the true and the recovered subspace of {side} ({measure}), against the "
            "noise. Where a method keeps fewer columns the angle is that of the space it keeps."
        )
        table = pd.concat([ours, pd.DataFrame(printed)], ignore_index=True)
        sections.append(Section(f"Subspace angles of {side}", text, table))
    return [*sections, _columns_kept(rows)]


def _columns_kept(denoising: pd.DataFrame, where: str = "") -> Section:
    ranks = mean_table(denoising, "rank", "level", METHODS, digits=1, errors=False)
    return Section(f"Columns kept{where}", "Mean number of columns of the factors.", ranks)


def _family_sections(family: str, denoising: pd.DataFrame, completion: pd.DataFrame, folder: Path) -> list[Section]:
    """Errors of one family, and its angles where the paper has none."""
    figure, panels = new_figure(2 if len(completion) else 1)
    draw_curves(panels[0], denoising, "level", "E2", METHODS, x_label=_NOISE, y_label="E2, error of the truth / sd")
    if len(completion):
        draw_curves(
            panels[1], completion, "level", "E1", METHODS[1:], x_label=_SHARE, y_label="E1, hidden entries / sd"
        )
    picture = save_figure(figure, folder, f"rmse_{family}")
    name = _NAMES[family]
    sections = [
        Section(
            f"Denoising, {name}",
            "RMSE against the noise-free truth, relative to its standard deviation (E2), against the noise.",
            mean_table(denoising, "E2", "level", METHODS),
            (picture,),
        ),
        Section(
            f"Denoising, {name}: LGMD on the same tables",
            "Change of E2 from each method to LGMD with its defaults, and on how many tables LGMD is lower.",
            paired_table(denoising, "E2", "level", "LGMD", [m for m in METHODS if m != "LGMD"], ["repetition"]),
        ),
    ]
    if family != "paper":
        sections += [
            Section(f"Subspace angles of {side}, {name}", "", mean_table(denoising, measure, "level", METHODS))
            for measure, side in (("E5", "X"), ("E6", "W"))
        ]
        sections.append(_columns_kept(denoising, f", {name}"))
        sections += [
            Section(
                f"Subspace angles of {side} at equal columns, {name}",
                "Fewer columns have smaller angles. Here every method is judged by its first principal directions, as "
                "many as the method with the fewest columns keeps on the same table.",
                mean_table(denoising, measure, "level", METHODS),
            )
            for measure, side in zip(AT_EQUAL_COLUMNS, "XW", strict=True)
        ]
    if len(completion):
        rivals = [method for method in METHODS[1:] if method != "LGMD"]
        sections += [
            Section(
                f"Completion, {name}",
                f"RMSE on the hidden entries of the noisy table (E1) at noise {COMPLETION_NOISE}, relative to the "
                "standard deviation of the truth, against the share of remaining entries. "
                f"The noise alone is {COMPLETION_NOISE}. PCA takes no gaps.",
                mean_table(completion, "E1", "level", METHODS[1:]),
            ),
            Section(
                f"Completion, {name}: LGMD on the same tables",
                "Change of E1 from each method to LGMD with its defaults.",
                paired_table(completion, "E1", "level", "LGMD", rivals, ["repetition"]),
            ),
            *_means(completion, name),
        ]
    return sections


def _means(completion: pd.DataFrame, where: str) -> tuple[Section, Section]:
    """What it is worth to be told that a table has no means."""
    return (
        Section(
            f"Completion, {where}: means",
            "The tables have no means. PMF, dGRMD and the other methods by MAP are told so, as in the paper; LGMD with "
            "its defaults learns a mean of every row and column, which is none. Here each of the two is also run the "
            "other way.",
            mean_table(completion, "E1", "level", ("PMF", LGMD_WITHOUT_MEANS, PMF_WITH_MEANS, "LGMD")),
        ),
        Section(
            f"Completion, {where}: means, on the same tables",
            "Change of E1 between methods that are told the same.",
            pairs_table(
                completion, "E1", "level", ((LGMD_WITHOUT_MEANS, "PMF"), ("LGMD", PMF_WITH_MEANS)), ["repetition"]
            ),
        ),
    )


def _correlations(denoising: pd.DataFrame, folder: Path) -> Section:
    """E3 and E4."""
    rows = denoising[denoising["family"] == "paper"]
    figure, panels = new_figure(2)
    for panel, measure, side in zip(panels, ("E3", "E4"), "XW", strict=True):
        label = f"{measure}, mean |correlation| of columns of {side}"
        draw_curves(panel, rows, "level", f"{measure} mean", METHODS, x_label=_NOISE, y_label=label)
    return Section(
        "Correlations between columns",
        "Mean absolute Pearson correlation of the 190 pairs of columns (E3 of X below, E4 of W in the picture). All "
        "our estimators return factors along principal axes, which leaves only what the means of the columns add; the "
        "paper's PMF and dGRMD are not rotated, and its figure shows that.",
        mean_table(rows, "E3 mean", "level", METHODS),
        (save_figure(figure, folder, "correlations"),),
    )


def _edges(denoising: pd.DataFrame, folder: Path) -> Section:
    """E7 and E8."""
    families = list(dict.fromkeys(denoising["family"]))
    share = f"E7 {100 * EDGE_SHARES[-1]:.0f} %"
    figure, panels = new_figure(len(families))
    methods = [method for method in METHODS if not method.startswith("GRMD-real")]
    for panel, family in zip(panels, families, strict=True):
        chosen = denoising[denoising["family"] == family]
        draw_curves(panel, chosen, "level", share, methods, x_label=_NOISE, y_label="strongest 30 % of edges found")
        panel.set_title(_NAMES[family], fontsize=10)
        panel.set_ylim(0, 1)
    picture = save_figure(figure, folder, "edges")
    return Section(
        "Edges recovered",
        "Share of the strongest 10, 20 and 30 % of the true edges over rows that the learned graph has (E7), mean over "
        "all noise levels; the picture shows 30 % against the noise. A graph with more edges than the true one counts "
        "with as many, its strongest. PCA and PMF have no graph: their strongest correlations between rows stand in. "
        "Random edges would find 6 %.",
        _edge_table(denoising, methods, families),
        (picture,),
    )


def _edge_table(denoising: pd.DataFrame, methods: list[str], families: list[str]) -> pd.DataFrame:
    import pandas as pd

    lines = []
    for method in methods:
        line = {"method": method}
        for family in families:
            chosen = denoising[(denoising["method"] == method) & (denoising["family"] == family)]
            found = [chosen[f"E7 {100 * share:.0f} %"].mean() for share in EDGE_SHARES]
            line[family] = " / ".join(f"{each:.2f}" for each in found)
        lines.append(line)
    return pd.DataFrame(lines)


def _graphs(folder: Path) -> Section:
    """The graphs themselves, of one table."""
    data = make_table("blocks", 0.4, 0.0, _GRAPH_SEED)
    # The table has its rows in random order; beside those of their block they can be seen.
    by_block = np.argsort(connected_components(data.sample_precision, directed=False)[1], kind="stable")
    of_table = {
        "true, blocks": data.sample_precision,
        "LGMD": fit(LGMD(RANK), data.observed).sample_graph_,
        "LGMD+": fit(LGMDPlus(RANK), data.observed).sample_graph_,
    }
    graphs = {"true, the paper's random edges": make_table("paper", 0.4, 0.0, _GRAPH_SEED).sample_precision}
    graphs |= {name: precision[by_block][:, by_block] for name, precision in of_table.items()}
    figure, panels = new_figure(len(graphs), width=3.2, height=3.4)
    for panel, (name, precision) in zip(panels, graphs.items(), strict=True):
        _draw_circle(panel, precision)
        panel.set_title(name, fontsize=10)
    return Section(
        "Graphs",
        "Rows on a circle, those of a block side by side, an edge a line, blue where neighbours move together and "
        "orange where they move apart; the stronger the edge, the darker the line. The learned graphs are of one table "
        "with blocks at noise 0.4.",
        figures=(save_figure(figure, folder, "graphs"),),
    )


def _draw_circle(panel: Any, precision: scipy.sparse.csr_array) -> None:
    from matplotlib.collections import LineCollection

    n = precision.shape[0]
    angles = 2 * np.pi * np.arange(n) / n
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    edges = scipy.sparse.triu(precision, k=1).tocoo()
    rows, columns = edges.coords
    partial: FloatArray = -edges.data / np.sqrt(precision.diagonal()[rows] * precision.diagonal()[columns])
    strength = np.abs(partial) / max(float(np.abs(partial).max(initial=0.0)), np.finfo(float).tiny)
    colours = np.where(partial[:, None] > 0, [[0.0, 0.45, 0.70]], [[0.84, 0.37, 0.0]])
    lines = np.stack([places[rows], places[columns]], axis=1)
    shades = np.column_stack([colours, 0.1 + 0.7 * strength])
    panel.add_collection(LineCollection(list(lines), colors=shades, linewidths=0.8))
    panel.plot(*places.T, ".", color="#444444", markersize=2)
    panel.set_aspect("equal")
    panel.axis("off")

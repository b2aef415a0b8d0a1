"""Tables and figures of the experiments on real tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lgmd.experiments.base import Section
from lgmd.experiments.figures import draw_curves, new_figure, save_figure
from lgmd.experiments.methods import DEFAULTS, TUNED
from lgmd.experiments.real_tables import METHODS, TASKS, RealTable
from lgmd.experiments.summaries import mean_table, pairs_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_sections"]

_AXES = {"denoising": "noise / sd of the table", "completion": "share of remaining entries"}
_MEASURES = {
    "denoising": "RMSE against the table as it was before noise was added (E2), against the noise relative to the "
    "standard deviation of the table. What of the table is itself no more than noise counts as truth here.",
    "completion": "RMSE on the hidden entries (E1), against the share of entries that remain; no noise is added.",
}


def write_sections(experiment: RealTable, results: pd.DataFrame, folder: Path) -> list[Section]:
    """All sections, their pictures saved in the folder."""
    scale = (results["rmse"] / results["relative"]).median()
    sections = [
        Section(
            "What was run",
            f"{experiment.story} Here: {experiment.n_rows} x {experiment.n_columns}, standard deviation {scale:.3g} "
            f"{experiment.unit}.\n\n"
            f"All methods have at most {experiment.n_components} columns and the same tables; every repetition draws "
            "its own noise or its own gaps. PMF, dGRMD and LGMD by MAP have their penalty chosen by "
            f"Bayesian optimisation with {experiment.n_trials} trials on held-out entries of the first repetition's "
            "table, noise and gaps included; hidden entries and entries without noise are never seen. LGMD and LGMD+ "
            "run with their defaults, by variational inference, and nothing is tuned; where a line says *no order*, "
            "they do not see in which order rows and columns stand.\n\n"
            "The paper shows its results as curves without numbers; it states that LGMD and LGMD+ are below PMF and "
            "dGRMD at every noise level and every share, and that LGMD+ is the lowest.",
            figures=(_curves(experiment, results, folder),),
        )
    ]
    for task in TASKS:
        sections += _task_sections(experiment, task, results[results["task"] == task])
    return sections


def _curves(experiment: RealTable, results: pd.DataFrame, folder: Path) -> str:
    figure, panels = new_figure(2)
    for panel, task in zip(panels, TASKS, strict=True):
        chosen = results[results["task"] == task]
        y_label = f"RMSE of {task}, {experiment.unit}"
        draw_curves(panel, chosen, "level", "rmse", (*TUNED, *DEFAULTS), x_label=_AXES[task], y_label=y_label)
        panel.set_title(f"({'ab'[TASKS.index(task)]}) {task}", fontsize=10)
    return save_figure(figure, folder, f"{experiment.name}_rmse")


def _task_sections(experiment: RealTable, task: str, rows: pd.DataFrame) -> list[Section]:
    title = task.capitalize()
    sections = [
        Section(
            title,
            f"{_MEASURES[task]} In {experiment.unit}, mean and standard error of {experiment.n_repetitions} "
            "repetitions.",
            mean_table(rows, "rmse", "level", METHODS),
        ),
        Section(
            f"{title}, relative",
            "The same, divided by the standard deviation of the table.",
            mean_table(rows, "relative", "level", METHODS),
        ),
    ]
    sections.append(
        Section(
            f"{title}: on the same tables",
            "Change of the RMSE from each method to LGMD and to LGMD+ with their defaults, and on how many of the "
            "tables they are lower.",
            _paired(rows),
        )
    )
    sections.append(
        Section(
            f"{title}: seconds of a fit",
            "Processor time of one fit, tuning not counted; the penalties of a tuned method cost one such fit a trial.",
            mean_table(rows, "seconds", "level", METHODS, digits=1, errors=False),
        )
    )
    sections.append(
        Section(
            f"{title}: what was learned",
            "Columns kept / edges over rows / edges over columns, on average.",
            _findings(rows),
        )
    )
    return sections


def _paired(rows: pd.DataFrame) -> pd.DataFrame:
    pairs = [(method, rival) for method in DEFAULTS for rival in TUNED]
    return pairs_table(rows, "rmse", "level", pairs, ["repetition"])


def _findings(rows: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    lines = []
    for method in METHODS:
        line = {"method": method}
        for level in dict.fromkeys(rows["level"]):
            found = rows[(rows["method"] == method) & (rows["level"] == level)]
            columns = (found[name].mean() for name in ("rank", "row edges", "column edges"))
            line[f"{level:g}"] = " / ".join(f"{each:,.0f}" for each in columns)
        lines.append(line)
    return pd.DataFrame(lines)

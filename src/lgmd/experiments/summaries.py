"""From rows of figures to tables: means with their standard errors, and paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["mean_and_error", "mean_table", "paired_table", "pairs_table"]


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Mean and its standard error; the error of a single value is NaN."""
    figures = values.dropna().to_numpy(dtype=float)
    if len(figures) == 0:
        return float("nan"), float("nan")
    error = figures.std(ddof=1) / np.sqrt(len(figures)) if len(figures) > 1 else float("nan")
    return float(figures.mean()), float(error)


def mean_table(
    rows: pd.DataFrame, value: str, column: str, methods: Sequence[str], *, digits: int = 4, errors: bool = True
) -> pd.DataFrame:
    """Methods down, levels of ``column`` across, mean and standard error in the cells.

    The smallest standard error is not a promise: it says how far the mean would move with other repetitions.
    """
    import pandas as pd

    levels = list(dict.fromkeys(rows[column]))
    lines = []
    for method in methods:
        line = {"method": method}
        for level in levels:
            chosen = rows[(rows["method"] == method) & (rows[column] == level)]
            mean, error = mean_and_error(chosen[value]) if len(chosen) else (float("nan"), float("nan"))
            line[f"{level:g}" if isinstance(level, float) else str(level)] = _cell(mean, error, digits, errors)
        lines.append(line)
    return pd.DataFrame(lines)


def paired_table(
    rows: pd.DataFrame,
    value: str,
    column: str,
    method: str,
    rivals: Sequence[str],
    pair: Sequence[str],
    *,
    larger_is_better: bool = False,
) -> pd.DataFrame:
    """By how many per cent a method differs from each rival on the same repetitions, and how often it wins.

    Parameters
    ----------
    rows : DataFrame
    value, column : str
        What is compared, and what is laid out across.
    method : str
    rivals : sequence of str
    pair : sequence of str
        Columns that tell repetitions apart.
    larger_is_better : bool, default=False
        Whether a larger value wins.
    """
    import pandas as pd

    wide = rows.pivot_table(index=[column, *pair], columns="method", values=value)
    levels = list(dict.fromkeys(rows[column]))
    lines = []
    for rival in rivals:
        line = {f"{method} against": rival}
        for level in levels:
            both = wide.loc[[level], [method, rival]].dropna()
            change = 100 * (both[method] / both[rival] - 1)
            wins = (both[method] > both[rival]) if larger_is_better else (both[method] < both[rival])
            mean, error = mean_and_error(change)
            label = f"{level:g}" if isinstance(level, float) else str(level)
            spread = "" if np.isnan(error) else f" ± {error:.1f}"
            line[label] = f"{mean:+.1f}{spread} % ({int(wins.sum())} of {len(both)})" if len(both) else ""
        lines.append(line)
    return pd.DataFrame(lines)


def pairs_table(
    rows: pd.DataFrame, value: str, column: str, pairs: Sequence[tuple[str, str]], pair: Sequence[str]
) -> pd.DataFrame:
    """The same for several methods, each against a rival of its own; parameters as in :func:`paired_table`."""
    import pandas as pd

    tables = []
    for method, rival in pairs:
        table = paired_table(rows, value, column, method, [rival], pair)
        against = f"{method} against"
        table.insert(0, "compared", [f"{against} {each}" for each in table.pop(against)])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _cell(mean: float, error: float, digits: int, errors: bool) -> str:
    if np.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" if np.isnan(error) or not errors else f"{mean:.{digits}f} ± {error:.{digits}f}"

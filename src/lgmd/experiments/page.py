"""The page of an experiment: HTML for the browser, Markdown for the documentation, a CSV file for each table."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from lgmd._files import write_text
from lgmd.experiments.base import Experiment, Section

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["markdown_table", "write_page"]

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; background: white; border-radius: 4px; }
footer { margin-top: 3rem; color: #888; font-size: 0.85rem; }
pre { background: var(--soft); padding: 0.8rem; overflow-x: auto; }
"""


def write_page(folder: Path, experiment: Experiment, sections: list[Section], run: str) -> Path:
    """Write ``index.html``, ``page.md`` and the tables; returns the HTML file.

    ``run`` says when and with what the numbers were computed.
    """
    for section in sections:
        if section.table is not None:
            write_text(folder / f"{_slug(section.title)}.csv", section.table.to_csv(index=False))
    write_text(folder / "page.md", _markdown(experiment, sections, run))
    page = folder / "index.html"
    write_text(page, _html(experiment, sections, run))
    return page


def markdown_table(table: pd.DataFrame) -> str:
    """A table as Markdown has it."""
    lines = [table.columns, ["---"] * len(table.columns), *table.itertuples(index=False, name=None)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _markdown(experiment: Experiment, sections: list[Section], run: str) -> str:
    parts = []
    for section in sections:
        parts += [f"### {section.title}", section.text]
        if section.table is not None:
            parts.append(markdown_table(section.table))
        parts += [f"![{section.title}]({name}.png)" for name in section.figures]
    parts += [f"Settings: `{json.dumps(experiment.settings())}`", run]
    return "\n\n".join(part for part in parts if part) + "\n"


def _html(experiment: Experiment, sections: list[Section], run: str) -> str:
    parts = []
    for section in sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        parts += [f"<p>{html.escape(text)}</p>" for text in section.text.split("\n\n") if text]
        if section.table is not None:
            table = section.table.to_html(index=False, border=0, na_rep="")
            parts.append(f'<div class="wide">{table}</div>')
        parts += [f'<p><img src="{name}.svg" alt="{html.escape(section.title)}"></p>' for name in section.figures]
    settings = html.escape(json.dumps(experiment.settings(), indent=2))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(experiment.heading())}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(experiment.heading())}</h1>\n"
        + "\n".join(parts)
        + f"\n<h2>Settings</h2>\n<pre>{settings}</pre>\n<footer>{html.escape(run)}</footer>\n"
        "</body>\n</html>\n"
    )


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", title.lower().replace("+", " plus")).strip("_")

"""All benchmarks, one after the other; ``--write`` puts their tables into docs/benchmarks.md."""

from __future__ import annotations

import argparse
import platform
import re
from datetime import date
from importlib.metadata import version
from pathlib import Path

import als_iteration
import calibration
import command_line
import edge_search
import graph_gain
import graphical_lasso
import imputer_time
import laplacian_solver
import netflix_size
import paper_update
import rank
import ratings
import synthetic_gain
import temperature
import temperature_graphs
import thin_tables
import variational_iteration
from lgmd.linalg.threads import available_threads

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
SECTIONS = {
    "temperature": temperature.main,
    "temperature_graphs": temperature_graphs.main,
    "imputer_time": imputer_time.main,
    "calibration": calibration.main,
    "ratings": ratings.main,
    "rank": rank.main,
    "synthetic_gain": synthetic_gain.main,
    "thin_tables": thin_tables.main,
    "graph_gain": graph_gain.main,
    "graphical_lasso": graphical_lasso.main,
    "laplacian_solver": laplacian_solver.main,
    "variational_iteration": variational_iteration.main,
    "als_iteration": als_iteration.main,
    "netflix_size": netflix_size.main,
    "paper_update": paper_update.main,
    "edge_search": edge_search.main,
    "command_line": command_line.main,
}


def environment() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("lgmd", "numpy", "scipy", "numba"))
    return (
        f"Measured {date.today()} with {available_threads()} threads, Python {platform.python_version()}, {packages}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    page = PAGE.read_text() if options.write else ""
    for name in options.names or SECTIONS:
        print(f"\n## {name}\n", flush=True)
        lines = SECTIONS[name]()
        if not lines:  # its data is not at hand
            continue
        table = "\n".join([*lines, "", environment()])
        print(table, flush=True)
        marks = (f"<!-- {name} -->", f"<!-- end {name} -->")
        page = re.sub(f"(?s){marks[0]}.*?{marks[1]}", lambda _, t=table, m=marks: f"{m[0]}\n{t}\n{m[1]}", page)
    if options.write:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()

"""The runner: cells are run once, in any number of processes, and everything is on the page."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from lgmd.cli import app
from lgmd.exceptions import InvalidParameterError
from lgmd.experiments import EXPERIMENTS, Experiment, Section, find_experiment, reproduce
from lgmd.experiments.figures import draw_curves, new_figure, save_figure
from lgmd.experiments.page import markdown_table
from lgmd.experiments.summaries import mean_and_error, mean_table, paired_table


@dataclass(frozen=True)
class Squares(Experiment):
    """Squares of numbers; counts how often each cell was run in a file beside it."""

    name: ClassVar[str] = "squares"
    title: ClassVar[str] = "Squares & <numbers>"

    numbers: tuple[int, ...] = (1, 2, 3)
    log: str = ""
    fail_at: int = -1

    @classmethod
    def quick(cls):
        return cls((1,))

    def cells(self):
        return [{"number": number} for number in self.numbers]

    def run(self, cell):
        number = int(cell["number"])
        if number == self.fail_at and not Path(self.log).with_suffix(".mended").exists():
            raise RuntimeError("interrupted")
        with Path(self.log).open("a") as file:
            file.write(f"{number}\n")
        return [{"method": "square", "value": np.float64(number**2), "list": np.arange(2)}]

    def sections(self, results, folder):
        figure, panels = new_figure(1)
        draw_curves(panels[0], results, "number", "value", ["square"], x_label="number", y_label="its square")
        return [
            Section(
                "All <squares>",
                "Two.\n\nParagraphs.",
                results[["number", "value"]],
                (save_figure(figure, folder, "curve"),),
            )
        ]


def quiet() -> Console:
    return Console(file=StringIO())


@pytest.fixture
def squares(tmp_path):
    return Squares(log=str(tmp_path / "log"))


class TestRunner:
    def test_writes_results_tables_figures_and_pages(self, squares, tmp_path):
        done = reproduce(squares, tmp_path / "out", console=quiet())
        assert done.results["value"].tolist() == [1.0, 4.0, 9.0]
        names = {path.name for path in done.folder.iterdir()}
        assert names == {
            *("settings.json", "cells", "results.csv", "index.html", "page.md"),
            *("curve.svg", "curve.png", "all_squares.csv"),
        }
        assert pd.read_csv(done.folder / "results.csv")["value"].tolist() == [1.0, 4.0, 9.0]
        page = done.page.read_text()
        assert "Squares &amp; &lt;numbers&gt;" in page
        assert "<squares>" not in page
        assert "<p>Paragraphs.</p>" in page
        assert '"numbers"' in page or "&quot;numbers&quot;" in page
        assert "| 3 | 9.0 |" in (done.folder / "page.md").read_text()

    def test_goes_on_where_it_stopped(self, tmp_path):
        experiment = Squares(log=str(tmp_path / "log"), fail_at=3)
        with pytest.raises(RuntimeError, match="interrupted"):
            reproduce(experiment, tmp_path / "out", console=quiet())
        assert (tmp_path / "log").read_text() == "1\n2\n"
        (tmp_path / "log.mended").touch()
        reproduce(experiment, tmp_path / "out", console=quiet())
        assert (tmp_path / "log").read_text() == "1\n2\n3\n"

    def test_a_finished_run_is_not_run_again(self, squares, tmp_path):
        first = reproduce(squares, tmp_path / "out", console=quiet()).results
        second = reproduce(squares, tmp_path / "out", console=quiet()).results
        pd.testing.assert_frame_equal(first, second)
        assert (tmp_path / "log").read_text() == "1\n2\n3\n"

    def test_processes_give_the_same(self, squares, tmp_path):
        alone = reproduce(squares, tmp_path / "alone", console=quiet()).results
        together = reproduce(squares, tmp_path / "together", workers=2, console=quiet()).results
        pd.testing.assert_frame_equal(alone, together)

    def test_other_settings_in_the_folder_are_refused(self, squares, tmp_path):
        reproduce(squares, tmp_path / "out", console=quiet())
        with pytest.raises(InvalidParameterError, match="numbers differ"):
            reproduce(Squares((1,), log=squares.log), tmp_path / "out", console=quiet())

    @pytest.mark.parametrize("content", [b"", b'{"cell": {"number"', b"[]", b"\xff", b'{"cell": {"number": 2}}', None])
    def test_a_damaged_cell_is_run_again_with_a_word_about_it(self, squares, tmp_path, content):
        first = reproduce(squares, tmp_path / "out", console=quiet())
        (path,) = [path for path in first.folder.glob("cells/*") if json.loads(path.read_text())["cell"]["number"] == 2]
        whole = json.loads(path.read_text())
        path.write_bytes(json.dumps(whole | {"rows": [3]}).encode() if content is None else content)
        console = quiet()
        second = reproduce(squares, first.folder, console=console)
        pd.testing.assert_frame_equal(first.results, second.results)
        assert (tmp_path / "log").read_text() == "1\n2\n3\n2\n"
        assert f"{path} is damaged; its cell is run again." in console.file.getvalue()
        assert json.loads(path.read_text())["rows"] == whole["rows"]

    @pytest.mark.parametrize("content", [b"", b'{"experiment": "squ', b"[]", b"\xff"])
    def test_damaged_settings_are_refused_by_name(self, squares, tmp_path, content):
        folder = reproduce(squares, tmp_path / "out", console=quiet()).folder
        (folder / "settings.json").write_bytes(content)
        message = r"settings\.json is damaged.*Name another folder, or remove this one"
        with pytest.raises(InvalidParameterError, match=message):
            reproduce(squares, folder, console=quiet())
        assert (folder / "settings.json").read_bytes() == content

    def test_says_how_much_is_left_where_there_is_no_terminal(self, squares, tmp_path):
        console = quiet()
        reproduce(squares, tmp_path / "out", console=console)
        lines = console.file.getvalue().splitlines()
        assert lines[0].startswith("1/3  number 1")
        assert "left" in lines[0]

    @pytest.mark.parametrize("workers", [0, 1.5, "two"])
    def test_workers_must_be_a_count(self, squares, tmp_path, workers):
        with pytest.raises(InvalidParameterError, match="workers"):
            reproduce(squares, tmp_path / "out", workers=workers)
        assert not (tmp_path / "out").exists()


class TestProvenance:
    """A page says when and with what its numbers were computed, not when it was written."""

    @staticmethod
    def footers(done):
        last = (done.folder / "page.md").read_text().splitlines()[-1]
        assert f"<footer>{last}</footer>" in done.page.read_text()
        return last

    @staticmethod
    def change(folder, number, **changes):
        """Change what is recorded of the cell of a number; None removes it."""
        for path in folder.glob("cells/*"):
            stored = json.loads(path.read_text())
            if stored["cell"]["number"] == number:
                stored |= changes
                path.write_text(json.dumps({key: value for key, value in stored.items() if value is not None}))

    def test_a_page_that_is_written_again_keeps_the_date_and_versions_of_its_cells(self, squares, tmp_path):
        done = reproduce(squares, tmp_path / "out", console=quiet())
        assert f"Run {date.today()}, 0 seconds of one core, Python {platform.python_version()}, lgmd" in self.footers(
            done
        )
        for number in squares.numbers:
            self.change(done.folder, number, date="2001-02-03", versions={"Python": "2.0", "lgmd": "0.0.1"})
        again = reproduce(squares, done.folder, console=quiet())
        assert self.footers(again) == "Run 2001-02-03, 0 seconds of one core, Python 2.0, lgmd 0.0.1."

    def test_a_run_on_several_days_and_versions_says_so(self, squares, tmp_path):
        folder = reproduce(squares, tmp_path / "out", console=quiet()).folder
        for number, day, lgmd in ((1, "2001-02-03", "0.0.1"), (2, "2001-01-31", "0.0.2"), (3, "2001-02-01", "0.0.1")):
            self.change(folder, number, date=day, versions={"Python": "2.0", "lgmd": lgmd})
        expected = (
            "Run 2001-01-31 to 2001-02-03, 0 seconds of one core, cells with mixed versions: Python 2.0, "
            "lgmd 0.0.1 and 0.0.2."
        )
        assert self.footers(reproduce(squares, folder, console=quiet())) == expected

    def test_cells_of_early_versions_have_no_record_and_count(self, squares, tmp_path):
        folder = reproduce(squares, tmp_path / "out", console=quiet()).folder
        self.change(folder, 2, date=None, versions=None)
        last = self.footers(reproduce(squares, folder, console=quiet()))
        assert last.startswith(f"Run {date.today()}, ")
        assert last.endswith("Date and versions of 1 of 3 cells are not recorded.")
        for number in (1, 3):
            self.change(folder, number, date=None, versions=None)
        last = self.footers(reproduce(squares, folder, console=quiet()))
        assert last == "0 seconds of one core. Date and versions of 3 of 3 cells are not recorded."
        assert (tmp_path / "log").read_text() == "1\n2\n3\n"


class TestSummaries:
    rows = pd.DataFrame(
        {
            "method": ["a", "a", "b", "b"],
            "level": [0.5, 0.5, 0.5, 0.5],
            "repetition": [0, 1, 0, 1],
            "error": [1.0, 3.0, 2.0, 4.0],
        }
    )

    def test_standard_error_is_that_of_the_mean(self):
        values = np.random.default_rng(0).normal(size=50)
        mean, error = mean_and_error(pd.Series(values))
        assert mean == pytest.approx(values.mean())
        assert error == pytest.approx(np.sqrt(values.var(ddof=1) / 50))
        assert np.isnan(mean_and_error(pd.Series([2.0]))[1])
        assert np.isnan(mean_and_error(pd.Series([np.nan]))[0])

    def test_tables_hold_means_and_errors(self):
        table = mean_table(self.rows, "error", "level", ["a", "b", "absent"], digits=2)
        assert table["0.5"].tolist() == ["2.00 ± 1.00", "3.00 ± 1.00", ""]

    def test_pairs_are_those_of_one_repetition(self):
        table = paired_table(self.rows, "error", "level", "a", ["b"], ["repetition"])
        # Changes are -50 % and -25 %.
        assert table["0.5"].tolist() == ["-37.5 ± 12.5 % (2 of 2)"]
        other = paired_table(self.rows, "error", "level", "a", ["b"], ["repetition"], larger_is_better=True)
        assert other["0.5"].tolist() == ["-37.5 ± 12.5 % (0 of 2)"]

    def test_markdown_keeps_bars_in_cells(self):
        assert markdown_table(pd.DataFrame({"a|b": [1]})) == "| a\\|b |\n| --- |\n| 1 |"


class TestRegistry:
    @pytest.mark.parametrize("name", EXPERIMENTS)
    def test_every_experiment_has_a_full_and_a_quick_size(self, name):
        kind = find_experiment(name)
        assert kind.name == name
        full, quick = kind(), kind.quick()
        assert len(quick.cells()) <= len(full.cells())
        keys = [json.dumps(dict(cell), sort_keys=True) for cell in full.cells()]
        assert len(set(keys)) == len(keys)
        json.dumps(full.settings())

    def test_an_unknown_name_lists_the_known_ones(self):
        with pytest.raises(InvalidParameterError, match=r"'table9'.*synthetic, laplacian"):
            find_experiment("table9")

    def test_the_command_says_so_in_one_line(self):
        result = CliRunner().invoke(app, ["reproduce", "table9"])
        assert result.exit_code != 0
        assert isinstance(result.exception, InvalidParameterError)

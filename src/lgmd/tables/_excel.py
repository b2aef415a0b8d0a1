"""Tables in Excel files."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lgmd.exceptions import TableError
from lgmd.tables._cells import Cells, is_whole
from lgmd.tables._grid import Source, parse_grid
from lgmd.tables._layout import warn_of_counting
from lgmd.tables._names import as_names, listed, nearest
from lgmd.tables._options import Options
from lgmd.tables._row_ids import warn_of_guess
from lgmd.tables._storage import dense
from lgmd.tables._text_file import Row
from lgmd.tables.formats import library
from lgmd.tables.table import Form, Table

__all__ = ["read_excel", "write_excel"]

_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384


def read_excel(options: Options) -> Table:
    """
    Read a sheet, the first unless one is named; empty rows and columns around the cells are left out.

    Cells go through the rules for text, so that a header and row names are recognised in the same way.
    """
    openpyxl = library("openpyxl", options.path)
    with options.path.open("rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheet = _sheet(book, options)
            cells = list(sheet.iter_rows(values_only=True))
            rows = _filled([[_text(cell) for cell in row] for row in cells])
            title = sheet.title
            book.close()
            if _may_have_formulas(options.path):
                _refuse_formulas(openpyxl.load_workbook(file, read_only=True), rows, title, options.path)
        except TableError:
            raise
        except Exception as error:  # damage shows in many ways, deep down in zipfile, the XML parser and openpyxl
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise TableError(
                f"{options.path} is no Excel file (.xlsx), or is damaged ({error}). Save it again as .xlsx, or as CSV."
            ) from error
    place = f"{options.path}, sheet {title!r}"
    if not rows:
        raise TableError(f"{place} is empty. A table has at least two rows and two columns of numbers.")
    letters = openpyxl.utils.get_column_letter
    shift = len(rows[0][1]) - len(_cut(rows)[0][1])
    source = Source(
        place,
        lambda: iter(_cut(rows)),
        lambda line: f"row {line:,}",
        lambda line, column: f"cell {letters(column + shift)}{line}",
    )
    grid = parse_grid(source, Cells(options.missing), options.header, options.row_names)
    if not len(grid.values):
        raise TableError(f"{place} has a header and no rows below it. Pass header=False if these are numbers.")
    first = _first_used(rows)
    warn_of_guess(grid.ids, rows[0][1][first], options.path)
    if grid.counts:
        warn_of_counting(grid.column_names is not None, options.path)
    named = [cells[line - 1][first] for line, _ in rows[grid.column_names is not None :]]
    heading = cells[rows[0][0] - 1][first + (grid.row_names is not None) :]
    form = Form(
        "xlsx",
        integers=grid.integers,
        integer_names=(grid.row_names is not None and all(type(cell) is int for cell in named), False),
        name_cells=(_other_than_text(grid.row_names, named), _other_than_text(grid.column_names, heading)),
        sheet=title,
    )
    return Table(grid.values, as_names(grid.row_names), as_names(grid.column_names), grid.corner, options.path, form)


def _sheet(book: Any, options: Options) -> Any:
    names = book.sheetnames
    if not names:
        raise TableError(f"{options.path} has no sheets.")
    if options.sheet is None:
        return book[names[0]]
    if isinstance(options.sheet, int):
        if not 0 <= options.sheet < len(names):
            raise TableError(
                f"{options.path} has {len(names)} sheets, so that there is none at position {options.sheet}. Positions "
                f"are counted from 0; the sheets are {listed(names)}."
            )
        return book[names[options.sheet]]
    if options.sheet not in names:
        raise TableError(
            f"{options.path} has no sheet {options.sheet!r}; it has {listed(names)}.{nearest(options.sheet, names)}"
        )
    return book[options.sheet]


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ").removesuffix(" 00:00:00")
    return str(cell)


def _other_than_text(names: list[str] | None, cells: Sequence[Any]) -> dict[str, Any]:
    """Names that stand for numbers or dates."""
    return {
        name: cell
        for name, cell in zip(names or (), cells, strict=False)
        if not isinstance(cell, str | bool) and cell is not None
    }


def _filled(rows: list[list[str]]) -> list[Row]:
    """Rows up to the last that has anything in it, all equally long; those that are blank are left out."""
    width = max((len(row) for row in rows), default=0)
    return [(line, row + [""] * (width - len(row))) for line, row in enumerate(rows, 1) if any(map(str.strip, row))]


def _cut(rows: list[Row]) -> list[Row]:
    """The rows without empty columns around the filled ones."""
    used = [position for position in range(len(rows[0][1])) if any(row[position].strip() for _, row in rows)]
    return [(line, row[used[0] : used[-1] + 1]) for line, row in rows]


def _first_used(rows: list[Row]) -> int:
    """Where the table begins: the corner is often empty, so a first column is cut only where all of it is."""
    return next(position for position in range(len(rows[0][1])) if any(row[position].strip() for _, row in rows))


def _may_have_formulas(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        return any(b"<f>" in (content := archive.read(name)) or b"<f " in content for name in sheets)


def _refuse_formulas(book: Any, rows: list[Row], title: str, path: Path) -> None:
    """A formula whose result was never stored would otherwise look like a gap."""
    known = dict(rows)
    for line, row in enumerate(book[title].iter_rows(), 1):
        for position, cell in enumerate(row):
            if cell.data_type == "f" and not (line in known and known[line][position].strip()):
                raise TableError(
                    f"{path}, sheet {title!r}, cell {cell.coordinate}: the formula {cell.value!r} has no stored "
                    "result. Open the file in Excel or LibreOffice and save it."
                )
    book.close()


def write_excel(table: Table, path: Path) -> None:
    """Write one sheet; integers stay integers in columns that held nothing else."""
    openpyxl = library("openpyxl", path)
    n, p = table.shape
    if n + 1 > _MOST_ROWS or p + 1 > _MOST_COLUMNS:
        raise TableError(
            f"A sheet of Excel has at most {_MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns, but the table is {n:,} x "
            f"{p:,}. Write .csv or .parquet instead."
        )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(table.form.sheet or "Sheet1")
    new_cell = openpyxl.cell.WriteOnlyCell

    def name(value: str, stored: Mapping[str, Any]) -> Any:
        if value in stored:
            return _as_stored(stored[value])
        cell = new_cell(sheet, value=value)
        cell.data_type = "s"  # a name that starts with = is no formula
        return cell

    def number(value: float, whole: bool) -> Any:
        if value != value:
            return None
        if whole and value.is_integer() and repr(value) != "-0.0":
            return int(value)
        text = repr(value)
        if text == f"{value:.16g}":  # which is what openpyxl writes
            return value
        cell = new_cell(sheet, value=text)
        cell.data_type = "n"
        return cell

    rows, columns = table.form.name_cells
    try:
        if table.column_names is not None:
            corner = [] if table.row_names is None else [name(table.corner, {}) if table.corner else None]
            sheet.append([*corner, *(name(text, columns) for text in table.column_names.tolist())])
        integers = _integer_columns(table)
        values = dense(table.values)
        for position in range(n):
            numbers = list(map(number, values[position].tolist(), integers))
            if table.row_names is None:
                sheet.append(numbers)
                continue
            text = str(table.row_names[position])
            sheet.append([int(text) if table.form.integer_names[0] and is_whole(text) else name(text, rows), *numbers])
    except openpyxl.utils.exceptions.IllegalCharacterError as error:
        raise TableError(
            f"Excel files cannot hold control characters, but a name has one ({error!s:.60}). Write .csv or .parquet."
        ) from error
    book.save(path)


def _as_stored(cell: Any) -> Any:
    """A cell as the file had it; a day without a time, which Excel would show."""
    is_day = isinstance(cell, datetime.datetime) and cell.time() == datetime.time()
    return cell.date() if is_day else cell


def _integer_columns(table: Table) -> list[bool]:
    known = table.form.integers
    return [False] * table.shape[1] if known is None or len(known) != table.shape[1] else known.tolist()

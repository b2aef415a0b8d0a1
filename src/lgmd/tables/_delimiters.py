"""Which character separates cells."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import islice

from lgmd.exceptions import TableError
from lgmd.tables._cells import DECIMAL_COMMA, Cells
from lgmd.tables._text_file import TextFile

__all__ = ["find_delimiter"]

_CANDIDATES = {"csv": (",", ";", "\t", "|"), "tsv": ("\t",), "txt": ("\t", ",", ";", "|", " ")}
_ROWS = 50


def find_delimiter(file: TextFile, format: str) -> tuple[str, TextFile]:
    """
    Delimiter under which most rows are equally long and most cells after the first row and column are numbers.

    A space stands for any run of white space; the text is returned with single ones then.
    """
    candidates = _CANDIDATES[format]
    if len(candidates) == 1:
        return candidates[0], file
    head = file.head()
    scores = {sign: _score(head.with_single_spaces() if sign == " " else head, sign) for sign in candidates}
    if " " in scores:
        scores[" "] = scores[" "][0], 0  # names may hold spaces, so another sign that does as well is the delimiter
    best = max(candidates, key=lambda sign: scores[sign])  # the first of equals
    return best, file.with_single_spaces() if best == " " else file


def _score(file: TextFile, delimiter: str) -> tuple[float, int]:
    cells = Cells(delimiter=delimiter)
    rows: list[list[str]] = []
    with suppress(TableError):  # quotes that make sense under another delimiter, or that the head's end leaves open
        rows.extend(row for _, row in islice(file.rows(delimiter), _ROWS))
    if not rows:
        return 0.0, 0
    width, equal = Counter(len(row) for row in rows[1:] or rows).most_common(1)[0]
    if width == 1:
        return 0.0, 1
    inner = [cell for row in rows[1:] for cell in row[1:]]
    plain = sum(not cells.is_text(cell) or DECIMAL_COMMA.fullmatch(cell.strip()) is not None for cell in inner)
    return (0.01 + plain / max(len(inner), 1)) * equal / len(rows), width

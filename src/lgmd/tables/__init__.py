"""
Tables in files: what people hold, read with its names and gaps, and written again in the same form.

:func:`read_table` is the door in and :func:`write_table` the door out; ``table`` says what lies between them and
``formats`` which files are known. ``transformations`` has ``log1p``, scaling and transposition with their way back.
Every other module is one format, or one idea that text formats share: ``_layout`` holds the rules by which a header
and row names are recognised.
"""

from lgmd.exceptions import TableError
from lgmd.tables.formats import ENDINGS, FORMATS
from lgmd.tables.reading import read_table
from lgmd.tables.table import Form, Table, Transformation
from lgmd.tables.transformations import fill, undo, undo_std
from lgmd.tables.writing import check_writable, write_table

__all__ = [
    "ENDINGS",
    "FORMATS",
    "Form",
    "Table",
    "TableError",
    "Transformation",
    "check_writable",
    "fill",
    "read_table",
    "undo",
    "undo_std",
    "write_table",
]

"""A table as it came from a file: numbers, names, and what it takes to write the same form again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import Array, FloatArray

__all__ = ["Form", "Table", "Transformation"]


@dataclass(frozen=True)
class Transformation:
    """
    What was done to the numbers after reading, in this order: transposed, ``log1p``, centred and scaled by column.

    Attributes
    ----------
    transposed, log1p : bool
    center, scale : ndarray of shape (columns,) or None
        Mean and standard deviation of the observed entries of each column, or None if columns were not scaled.
    """

    transposed: bool = False
    log1p: bool = False
    center: FloatArray | None = None
    scale: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Form:
    """
    How a file writes its table. What another format has no use for is ignored there.

    Attributes
    ----------
    format : str
        A key of :data:`lgmd.tables.FORMATS`.
    delimiter, encoding : str
        Of text.
    dtype : str or None
        Type of the numbers in a file of one array.
    column_types : tuple of str or None
        Type of each column of a Parquet file.
    integers : ndarray of bool or None
        Columns whose numbers are all written as integers.
    names_are_index : bool
        Whether row names are the index of a Parquet file from pandas, rather than a column.
    integer_names : tuple of bool
        Whether row and column names are stored as integers (Parquet, Excel).
    labels : object
        Row names as a Parquet file stores them: a column of pyarrow, or a range that pandas counts by.
    long : tuple of str or None
        Names of the columns with row, column and value if this is a long table.
    header : bool
        Whether a long table in text names its columns.
    name_cells : tuple of dict
        Row and column names that an Excel file stores as numbers or dates: their text, and what it stands for.
    sheet, key : str or None
        Of an Excel file, and of an archive of numpy arrays.
    annotations : object
        What an AnnData file holds besides its matrix.
    """

    format: str = "csv"
    delimiter: str | None = None
    encoding: str = "utf-8"
    dtype: str | None = None
    column_types: tuple[str, ...] | None = None
    integers: Array | None = None
    names_are_index: bool = True
    integer_names: tuple[bool, bool] = (False, False)
    labels: Any = field(default=None, repr=False)
    long: tuple[str, str, str] | None = None
    header: bool = True
    name_cells: tuple[Mapping[str, Any], Mapping[str, Any]] = field(default=({}, {}), repr=False)
    sheet: str | None = None
    key: str | None = None
    annotations: Any = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Table:
    """
    Numbers with names.

    Attributes
    ----------
    values : ndarray of shape (n, p), or scipy.sparse coo_array or csr_array
        float64, or float32 where the file has no wider type. Gaps are NaN in an array; in a sparse one the stored
        entries are the observed ones, zeros among them.
    row_names, column_names : ndarray of str, or None
    corner : str or None
        What stands above the row names; None where the header has no such cell.
    source : Path or None
        The file it came from.
    form : Form
        What :func:`write_table` needs to write the same kind of file.
    transformation : Transformation
        What was done to the numbers of the file.
    original : Table or None
        The table as the file has it, or None if nothing was done to it.
    """

    values: Any
    row_names: Array | None = None
    column_names: Array | None = None
    corner: str | None = None
    source: Path | None = None
    form: Form = field(default_factory=Form)
    transformation: Transformation = field(default_factory=Transformation)
    original: Table | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n, p = self.values.shape
        return int(n), int(p)

    @property
    def format(self) -> str:
        """Format of the file, a key of :data:`lgmd.tables.FORMATS`."""
        return self.form.format

    @property
    def is_sparse(self) -> bool:
        """Whether only observed entries are stored."""
        return bool(scipy.sparse.issparse(self.values))

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        if self.is_sparse:
            return int(self.values.nnz)
        return int(self.values.size - np.isnan(self.values).sum())

    def to_fit(self) -> Any:
        """What a model is fitted on: an array or a sparse matrix, or a DataFrame where there are names."""
        if self.is_sparse or (self.row_names is None and self.column_names is None):
            return self.values
        import pandas as pd

        names = (
            None if known is None else pd.Index(list(map(str, known)), dtype=object)
            for known in (self.row_names, self.column_names)
        )
        return pd.DataFrame(self.values, *names)

    def __repr__(self) -> str:
        n, p = self.shape
        source = "" if self.source is None else f" from {self.source.name}"
        return f"<Table of {n:,} x {p:,} with {self.n_observed:,} observed entries{source}>"

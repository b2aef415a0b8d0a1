"""What can go wrong, under one root, so that callers can catch all of it or one kind."""

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CheckpointError",
    "ConvergenceWarning",
    "DivergenceError",
    "InvalidDataError",
    "InvalidGraphError",
    "InvalidParameterError",
    "LGMDError",
    "MissingDataError",
    "ModelFileError",
    "TableError",
]


class LGMDError(Exception):
    """Root of the errors this package raises on purpose."""


class InvalidDataError(LGMDError, ValueError):
    """The table cannot be decomposed as it is."""


class MissingDataError(LGMDError, FileNotFoundError):
    """A data set is not where it was looked for; the message says how to get it."""


class InvalidParameterError(LGMDError, ValueError):
    """A setting is outside what makes sense."""


class InvalidGraphError(LGMDError, ValueError):
    """A given graph does not fit the data, or is not a graph."""


class DivergenceError(LGMDError, ArithmeticError):
    """An update that is not guaranteed to converge did not."""


class ModelFileError(LGMDError, ValueError):
    """A file is not a saved model, is damaged, or comes from a newer version."""


class CheckpointError(LGMDError, ValueError):
    """A checkpoint belongs to other data or other settings, or is damaged."""


class TableError(LGMDError, ValueError):
    """A table cannot be read from a file, or written to one; the message names the file and the way out."""

"""A text file as UTF-8 bytes and as rows of cells, whatever its encoding and compression."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lgmd.exceptions import TableError
from lgmd.tables.formats import is_compressed

__all__ = ["Row", "TextFile", "open_binary", "open_text"]

Row = tuple[int, list[str]]  # the line on which it starts, and its cells

_SAMPLE = 1 << 16
_HEAD = 1 << 20
_BYTE_ORDER = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_MAGIC = {
    b"PK\x03\x04": "a zip archive, as Excel files are",
    b"PAR1": "a Parquet file",
    b"\x93NUMPY": "a numpy array",
    b"\x89HDF": "an HDF5 file, as AnnData files are",
    b"%PDF": "a PDF document",
}


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """
    Bytes of a file, unpacked if it is compressed with gzip, whatever its name.

    Raises
    ------
    TableError
        If it is called ``.gz`` and is not, or the compressed data is damaged.
    """
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if is_compressed(path) and not compressed:
            raise TableError(
                f"{path} ends in .gz but is not compressed with gzip. Rename it without .gz, or compress it."
            )
        try:
            if compressed:
                with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield file
        except EOFError:
            raise TableError(
                f"{path} is cut off: its compressed data ends too early. Copy or download it again."
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TableError(
                f"{path} is damaged: its compressed data cannot be unpacked ({error}). Copy or download it again."
            ) from error


@dataclass(frozen=True)
class TextFile:
    """
    Text.

    Attributes
    ----------
    path : Path
    encoding : str
        The file's own; ``utf-8-sig`` where it starts with a byte-order mark.
    content : bytes or None
        All of it in UTF-8, where the file itself is something else.
    """

    path: Path
    encoding: str
    content: bytes | None = None

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """Bytes in UTF-8, without a byte-order mark."""
        if self.content is not None:
            yield io.BytesIO(self.content)
            return
        with open_binary(self.path) as file:
            if self.encoding == "utf-8-sig":
                file.read(3)
            yield file

    def rows(self, delimiter: str) -> Iterator[Row]:
        """
        Rows that are not blank, each with the line on which it starts.

        Raises
        ------
        TableError
            If the text is not in its encoding, or a quote is not closed.
        """
        with self.stream() as stream:
            reader = csv.reader(self._lines(stream), delimiter=delimiter, strict=True)
            line = 1
            try:
                for cells in reader:
                    if len(cells) > 1 or (cells and cells[0].strip()):
                        yield line, cells
                    line = reader.line_num + 1
            except csv.Error as error:
                if "new-line character" in str(error):
                    raise TableError(
                        f"{self.path}, line {line:,}: lines end in a lone carriage return. Save it with Unix or "
                        "Windows line ends."
                    ) from None
                raise TableError(
                    f"{self.path}, line {line:,}: a quote is not closed, or text follows a closing one ({error}). "
                    'Write a quote inside a name twice, as in "5"" pipe".'
                ) from None

    def head(self) -> TextFile:
        """The first lines alone."""
        with self.stream() as stream:
            content = stream.read(_HEAD)
        return TextFile(
            self.path, self.encoding, content if len(content) < _HEAD else content[: content.rfind(b"\n") + 1]
        )

    def with_single_spaces(self) -> TextFile:
        """The same with every run of white space inside a line as one space."""
        with self.stream() as stream:
            content = re.sub(rb"(?m)^[ \t]+|[ \t\r]+$", b"", stream.read())
        return TextFile(self.path, self.encoding, re.sub(rb"[ \t]+", b" ", content))

    def _lines(self, stream: IO[bytes]) -> Iterator[str]:
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                raise TableError(
                    f"{self.path}, line {number:,}: byte 0x{byte:02x} at position {error.start + 1} is not UTF-8. Say "
                    "which encoding it is, for example encoding='latin-1' or 'cp1252', or save it as UTF-8."
                ) from None


def open_text(path: Path, encoding: str | None) -> TextFile:
    """
    Text of a file, after a look at its first bytes.

    Raises
    ------
    TableError
        If it is empty, binary, or not in the encoding.
    """
    if encoding is not None and encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        return TextFile(path, encoding, _transcode(path, encoding))
    with open_binary(path) as file:
        sample = file.read(_SAMPLE)
    if not sample.strip():
        raise TableError(f"{path} is empty. A table has at least two rows and two columns of numbers.")
    for mark, name in _BYTE_ORDER.items():
        if sample.startswith(mark):
            raise TableError(f"{path} is not UTF-8 but {name.upper()}. Pass encoding='{name}', or save it as UTF-8.")
    for magic, name in _MAGIC.items():
        if sample.startswith(magic):
            raise TableError(f"{path} is no text but {name}. Give it the ending of its kind, or pass format=.")
    if b"\x00" in sample:
        _refuse_binary(path, sample)
    return TextFile(path, "utf-8-sig" if sample.startswith(b"\xef\xbb\xbf") else "utf-8")


def _transcode(path: Path, encoding: str) -> bytes:
    try:
        with open_binary(path) as file:
            text = file.read().decode(encoding)
    except LookupError:
        raise TableError(f"{path}: there is no encoding {encoding!r}. Try 'utf-8', 'latin-1' or 'utf-16'.") from None
    except UnicodeError as error:
        raise TableError(f"{path} is not in the encoding {encoding!r} ({error}). Pass the right one.") from None
    if not text.strip():
        raise TableError(f"{path} is empty. A table has at least two rows and two columns of numbers.")
    return text.removeprefix("\ufeff").encode("utf-8")


def _refuse_binary(path: Path, sample: bytes) -> None:
    for start, name in ((0, "utf-16-be"), (1, "utf-16-le")):
        if sample[start::2].count(0) > 0.4 * len(sample) / 2:
            raise TableError(f"{path} is not UTF-8 but looks like UTF-16. Pass encoding='{name}', or save it as UTF-8.")
    position = sample.index(0)
    raise TableError(
        f"{path} is binary, not text: byte {position + 1:,} is 0. If it is a table of another kind, give it that "
        "ending or pass format=."
    )

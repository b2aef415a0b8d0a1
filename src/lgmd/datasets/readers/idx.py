"""IDX, the format of MNIST and its kin: a header of big-endian numbers, then the array."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lgmd._typing import Array
from lgmd.datasets.containers import LabelledData
from lgmd.datasets.readers._files import PathLike, read_bytes
from lgmd.exceptions import InvalidDataError

__all__ = ["read_idx", "read_mnist"]

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: PathLike) -> Array:
    """
    Array of an IDX file, compressed or not.

    Parameters
    ----------
    path : path
        Such as ``t10k-images-idx3-ubyte`` or ``t10k-images-idx3-ubyte.gz``.

    Returns
    -------
    ndarray
        With the dimensions and the kind of number that the file states, in the machine's byte order.

    Raises
    ------
    MissingDataError
        If the file is not there.
    InvalidDataError
        If it is no IDX file, its length does not fit its header, or no array has the dimensions in it.
    """
    path = Path(path)
    content = read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise InvalidDataError(
            f"{path} begins with {content[:4].hex(' ') or 'nothing'}, but an IDX file begins with 00 00, a type (08, "
            "09, 0b, 0c, 0d or 0e) and the number of dimensions. A compressed file must have a name that ends in .gz."
        )
    kind, n_dimensions = np.dtype(_TYPES[content[2]]), content[3]
    begin = 4 + 4 * n_dimensions
    if len(content) < begin:
        raise InvalidDataError(f"{path} ends at byte {len(content)}, inside its header of {begin} bytes.")
    shape = tuple(np.frombuffer(content, dtype=">u4", count=n_dimensions, offset=4).tolist())
    expected = begin + int(np.prod(shape, dtype=object)) * kind.itemsize
    written = " x ".join(f"{length:,}" for length in shape)
    if len(content) != expected:
        raise InvalidDataError(
            f"{path} has {len(content):,} bytes, but its header announces {written} numbers of {kind.itemsize} bytes, "
            f"which makes {expected:,}. It is truncated or damaged."
        )
    try:
        values = np.frombuffer(content, dtype=kind, offset=begin).reshape(shape)
    except ValueError as error:
        raise InvalidDataError(
            f"{path} announces {written} numbers, which no array can hold. It is damaged."
        ) from error
    return values.astype(kind.newbyteorder("="))


def read_mnist(images: PathLike, labels: PathLike) -> LabelledData:
    """
    MNIST, or a set of the same form such as Fashion-MNIST, from its two IDX files.

    Parameters
    ----------
    images : path
        Such as ``t10k-images-idx3-ubyte.gz``.
    labels : path
        Such as ``t10k-labels-idx1-ubyte.gz``.

    Returns
    -------
    LabelledData
        A row an image, grey levels from 0 to 255; the label names are the numbers in the file.

    Raises
    ------
    MissingDataError
        If a file is not there.
    InvalidDataError
        If a file is no IDX file, is damaged, or the two do not belong together.
    """
    pictures, classes = read_idx(images), read_idx(labels)
    if pictures.ndim != 3:
        raise InvalidDataError(f"{images} has {pictures.ndim} dimensions, but images have 3. Is it the labels' file?")
    if classes.ndim != 1:
        raise InvalidDataError(f"{labels} has {classes.ndim} dimensions, but labels have 1. Is it the images' file?")
    if len(pictures) != len(classes):
        raise InvalidDataError(
            f"{images} has {len(pictures):,} images, but {labels} has {len(classes):,} labels. Pass two of one set."
        )
    numbers, codes = np.unique(classes, return_inverse=True)
    return LabelledData(
        name="MNIST",
        values=pictures.reshape(len(pictures), -1).astype(np.float64),
        labels=codes.astype(np.int64),
        label_names=numbers.astype(str),
        image_shape=(pictures.shape[1], pictures.shape[2]),
    )

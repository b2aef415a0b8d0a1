"""Samples with classes from the data folder: digits, faces and objects, news stories, cells and patients."""

from __future__ import annotations

import os

import numpy as np
from scipy import sparse

from lgmd._typing import Array
from lgmd._validation import check_choice, check_integer
from lgmd.datasets._folder import DataSource, read_arrays
from lgmd.datasets.containers import LabelledData
from lgmd.exceptions import InvalidDataError, InvalidParameterError

__all__ = ["load_expression", "load_images", "load_mnist", "load_tdt2"]

_TABLE = {"X": "samples features", "y": "samples"}

_MNIST = DataSource(
    file="images/mnist_test.npz",
    what="MNIST (its 10,000 test digits)",
    origin="LeCun, Cortes and Burges",
    instead=(
        "Or download t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz and read them with "
        "lgmd.datasets.read_mnist(images, labels)."
    ),
    arrays=_TABLE,
)

_IMAGES = {
    "coil20": DataSource(
        file="images/coil20_32x32.npz",
        what="COIL-20 (20 objects from 72 sides, 32 x 32 pixels)",
        origin="Columbia University (research use)",
        instead="Or write the pixels as X and the labels as y into that file with numpy.savez.",
        arrays=_TABLE,
    ),
    "orl": DataSource(
        file="images/orl_32x32.npz",
        what="The ORL face set (40 people, 10 pictures each, 32 x 32 pixels)",
        origin="AT&T Laboratories Cambridge, through Deng Cai's Matlab files",
        instead="Or write fea and gnd of ORL_32x32.mat as X and y into that file with numpy.savez.",
        arrays=_TABLE,
    ),
    "yale": DataSource(
        file="images/yale_32x32.npz",
        what="The Yale face set (15 people, 11 pictures each, 32 x 32 pixels)",
        origin="Yale University, through Deng Cai's Matlab files",
        instead="Or write fea and gnd of Yale_32x32.mat as X and y into that file with numpy.savez.",
        arrays=_TABLE,
    ),
}

# Matlab unrolls an image column by column.
_COLUMN_MAJOR = ("orl", "yale")
_CLASS_WORDS = {"coil20": "object", "orl": "person", "yale": "person"}

_TDT2 = DataSource(
    file="tdt2/tdt2_top30.npz",
    what="TDT2 (9,394 news stories of 1998, term counts, 30 topics)",
    origin="the Linguistic Data Consortium, as a matrix by Deng Cai",
    instead="Or get Deng Cai's TDT2.mat and read it with lgmd.datasets.read_tdt2.",
    arrays={"data": "counts", "indices": "counts", "indptr": "ends", "shape": "sides", "y": "samples"},
)

_EXPRESSION = {
    "pbmc68k": DataSource(
        file="expression/pbmc68k_reduced.npz",
        what="PBMC 68k, reduced (700 blood cells x 765 genes)",
        origin="10x Genomics (Zheng et al. 2017), through the Python package scanpy",
        instead="Or write scanpy.datasets.pbmc68k_reduced() as X, y, label_names and gene into that file.",
        arrays=_TABLE | {"label_names": "classes", "gene": "features"},
    ),
    "mecs": DataSource(
        file="expression/mecs.npz",
        what="mECS (182 mouse embryonic stem cells x 8,989 genes)",
        origin="Buettner et al. 2015, through the repository of SIMLR (GPL-3)",
        instead="Or write its Test_1_mECS.RData, cells in rows, as X and the stages as y into that file.",
        arrays=_TABLE,
    ),
    "golub": DataSource(
        file="expression/golub.npz",
        what="The leukaemia set (38 patients x 3,051 genes)",
        origin="Golub et al. 1999, through the Bioconductor package multtest (LGPL-3)",
        instead="Or write its golub, patients in rows, as X, the classes as y and the genes as gene_id into that file.",
        arrays=_TABLE | {"gene_id": "features"},
    ),
}


def load_mnist(*, folder: str | os.PathLike[str] | None = None) -> LabelledData:
    """
    The 10,000 test digits of MNIST in their original order, 28 x 28 grey levels from 0 to 255.

    Parameters
    ----------
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    LabelledData
        A row an image; the label is the digit.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    arrays = read_arrays(_MNIST, folder)
    labels, names = _from_zero(arrays["y"], np.arange(10), "{}", _MNIST)
    return LabelledData(
        name="MNIST",
        values=arrays["X"].astype(np.float64),
        labels=labels,
        label_names=names,
        image_shape=_square(arrays["X"], _MNIST),
    )


def load_images(name: str, *, folder: str | os.PathLike[str] | None = None) -> LabelledData:
    """
    Small pictures of objects or faces, 32 x 32 grey levels from 0 to 255, unrolled row by row.

    Parameters
    ----------
    name : {"coil20", "orl", "yale"}
        COIL-20 has 1,440 pictures of 20 objects, ORL 400 of 40 people, Yale 165 of 15 people.
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    LabelledData
        A row an image.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    name = check_choice(name, "name", tuple(_IMAGES))
    arrays = read_arrays(_IMAGES[name], folder)
    values = arrays["X"].astype(np.float64)
    side, _ = shape = _square(values, _IMAGES[name])
    if name in _COLUMN_MAJOR:
        values = values.reshape(-1, side, side).transpose(0, 2, 1).reshape(values.shape)
    labels, names = _from_zero(arrays["y"], None, _CLASS_WORDS[name] + " {}", _IMAGES[name])
    return LabelledData(name=name, values=values, labels=labels, label_names=names, image_shape=shape)


def load_tdt2(n_topics: int = 30, *, folder: str | os.PathLike[str] | None = None) -> LabelledData:
    """
    News stories of the first half of 1998 as counts of 36,771 terms, each on one topic.

    Parameters
    ----------
    n_topics : int, default=30
        Keep the largest topics, from 1 to 30; they are very uneven, from 1,844 stories down to 52.
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    LabelledData
        Raw counts as a csr_array of float64; a term not in a story is a zero, not a gap. Topics are ordered by size.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    n_topics = check_integer(n_topics, "n_topics", minimum=1)
    arrays = read_arrays(_TDT2, folder)
    try:
        counts = sparse.csr_array(
            (arrays["data"].astype(np.float64), arrays["indices"].astype(np.int32), arrays["indptr"]),
            shape=tuple(arrays["shape"].tolist()),
        )
        counts.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"{_TDT2.file} holds no sparse table ({error}). It is damaged.") from error
    labels, names = _from_zero(arrays["y"], None, "topic {}", _TDT2)
    if n_topics > len(names):
        raise InvalidParameterError(f"n_topics must be at most {len(names)}, the topics there are, but is {n_topics}.")
    if counts.shape[0] != len(labels):
        raise InvalidDataError(
            f"{_TDT2.file}: y is for {len(labels):,} stories, but the counts for {counts.shape[0]:,}."
        )
    kept = np.flatnonzero(labels < n_topics)
    return LabelledData(name="TDT2", values=counts[kept], labels=labels[kept], label_names=names[:n_topics])


def load_expression(name: str, *, folder: str | os.PathLike[str] | None = None) -> LabelledData:
    """
    Gene expression: cells or patients in rows, genes in columns.

    Parameters
    ----------
    name : {"pbmc68k", "mecs", "golub"}
        700 blood cells of 10 types (log-normalised, two thirds zeros), 182 mouse stem cells in 3 stages of the
        cell cycle, or 38 patients with one of two leukaemias (log-ratios).
    folder : path, optional
        The data folder; by default the one that the variable LGMD_DATA names.

    Returns
    -------
    LabelledData
        With the genes' names, except for "mecs", whose source has none.

    Raises
    ------
    MissingDataError
        If the file is not there; the message says how to get it.
    InvalidDataError
        If the file is damaged or another one.
    """
    name = check_choice(name, "name", tuple(_EXPRESSION))
    source = _EXPRESSION[name]
    arrays = read_arrays(source, folder)
    labels, names = _from_zero(arrays["y"], None, "stage {}", source)
    given = {"pbmc68k": arrays.get("label_names"), "golub": np.array(["ALL", "AML"])}.get(name)
    if given is not None:
        if len(given) != len(names):
            raise InvalidDataError(f"{source.file}: y has {len(names)} classes, but {len(given)} have a name.")
        names = given
    return LabelledData(
        name=name,
        values=arrays["X"].astype(np.float64),
        labels=labels,
        label_names=names,
        feature_names=arrays.get({"pbmc68k": "gene", "golub": "gene_id"}.get(name, "")),
    )


def _from_zero(classes: Array, expected: Array | None, pattern: str, source: DataSource) -> tuple[Array, Array]:
    """Number the classes from 0 in their order, and name each after the source's own number."""
    numbers = np.unique(classes) if expected is None else expected
    labels = np.searchsorted(numbers, classes)
    if np.any(numbers[np.minimum(labels, len(numbers) - 1)] != classes):
        raise InvalidDataError(f"{source.file}: y has classes outside {numbers[0]} to {numbers[-1]}.")
    return labels.astype(np.int64), np.array([pattern.format(number) for number in numbers])


def _square(images: Array, source: DataSource) -> tuple[int, int]:
    side = round(images.shape[1] ** 0.5)
    if side * side != images.shape[1]:
        raise InvalidDataError(f"{source.file}: X has {images.shape[1]:,} columns, which is no square image.")
    return side, side

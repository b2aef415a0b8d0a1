"""TDT2 as Deng Cai publishes it: a Matlab file with a sparse table ``fea`` and topics ``gnd``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from lgmd.datasets.containers import LabelledData
from lgmd.datasets.readers._files import PathLike
from lgmd.exceptions import InvalidDataError, MissingDataError

__all__ = ["read_tdt2"]


def read_tdt2(path: PathLike) -> LabelledData:
    """
    Documents x terms with topics, from ``TDT2.mat`` or another of Deng Cai's text sets (Reuters21578, 20NewsHome).

    Parameters
    ----------
    path : path
        A Matlab file up to version 7 with ``fea`` (documents x terms) and ``gnd`` (the topic of each document).

    Returns
    -------
    LabelledData
        Raw counts as a csr_array of float64; a term not in a document is a zero, not a gap.

    Raises
    ------
    MissingDataError
        If the file is not there.
    InvalidDataError
        If it is no such Matlab file, lacks one of the two, or has counts that are not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}. TDT2.mat is on Deng Cai's page of text data sets.")
    from scipy.io import loadmat

    try:
        content = loadmat(path)
    except NotImplementedError as error:
        raise InvalidDataError(f"{path} is a Matlab file of version 7.3. Save it with save -v7.") from error
    except Exception as error:  # damage shows in many ways, deep down in the parser
        raise InvalidDataError(f"{path} is no Matlab file, or a damaged one ({error}).") from error
    for name in ("fea", "gnd"):
        if name not in content:
            found = ", ".join(key for key in content if not key.startswith("__")) or "nothing"
            raise InvalidDataError(f"{path} lacks {name!r}; it has {found}. Deng Cai's files have 'fea' and 'gnd'.")
    topics = np.asarray(content["gnd"]).ravel()
    if content["fea"].ndim != 2 or content["fea"].dtype.kind not in "fiub":
        raise InvalidDataError(f"{path}: fea is no table of numbers.")
    counts = sparse.csr_array(content["fea"], dtype=np.float64)
    if not np.isfinite(counts.data).all():
        raise InvalidDataError(f"{path}: fea has entries that are NaN or infinite, so they are no counts.")
    if counts.shape[0] != len(topics):
        raise InvalidDataError(f"{path}: gnd is for {len(topics):,} documents, but fea has {counts.shape[0]:,} rows.")
    if topics.dtype.kind not in "fiu" or np.any(topics != np.rint(topics)):
        raise InvalidDataError(f"{path}: gnd has values that are no whole numbers, so they are no topics.")
    counts.eliminate_zeros()
    counts.sort_indices()
    numbers, labels = np.unique(topics.astype(np.int64), return_inverse=True)
    names = np.array([f"topic {number}" for number in numbers])
    return LabelledData(name=path.stem, values=counts, labels=labels.astype(np.int64), label_names=names)

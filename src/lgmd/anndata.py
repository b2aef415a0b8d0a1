"""Models on AnnData: cells x genes, with embeddings and graphs where single-cell tools look for them.

:func:`fit` puts the embedding of cells into ``obsm["X_lgmd"]``, that of genes into ``varm["lgmd"]``, and the two
learned graphs into ``obsp`` and ``varp``. ``uns["lgmd"]`` says where they are in the form in which scanpy keeps
neighbours, so that its tools find the graph by ``neighbors_key="lgmd"``::

    import lgmd, scanpy as sc

    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    lgmd.anndata.fit(adata)
    sc.tl.leiden(adata, neighbors_key="lgmd")

The noise of the model is Gaussian: normalise counts and take logarithms first. Needs the extra
``pip install 'lgmd[anndata]'``.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse

from lgmd._typing import FloatArray, SparseGraph
from lgmd._validation import check_choice, check_real
from lgmd.estimators import LGMD
from lgmd.estimators.factorization import Factorization
from lgmd.exceptions import InvalidDataError, InvalidParameterError
from lgmd.graphs import partial_correlations

__all__ = ["fit"]

_ZEROS = ("observed", "missing")


def fit(
    adata: Any,
    model: Factorization | None = None,
    *,
    layer: str | None = None,
    zeros: str = "observed",
    key: str = "lgmd",
    denoise: bool = False,
    copy: bool = False,
    max_gigabytes: float = 4.0,
    **fit_options: Any,
) -> Any:
    """
    Fit a model to the cells x genes of an AnnData, and write what it finds into it.

    Nothing is written where the fit fails. With ``zeros="observed"`` the table is dense, and the fit takes up to
    about five times its size: 10,000 cells x 2,000 genes in single precision are 80 MB, and 0.4 GB in all.

    Parameters
    ----------
    adata : AnnData
    model : LGMD, LGMDPlus, PMF or DGRMD, optional
        What to fit; it is itself fitted, so that it can be saved, plotted and asked for error bars afterwards. By
        default ``LGMD`` with rank 20, or the largest that the table allows, and ``random_state=0``.
    layer : str, optional
        The layer to fit instead of ``adata.X``.
    zeros : {"observed", "missing"}, default="observed"
        Whether a zero is a value or a gap, wherever it stands: a sparse table that does not store its zeros and a dense
        one mean the same. NaN is always a gap.
    key : str, default="lgmd"
        The name under which results are kept; scanpy finds the graph by ``neighbors_key=key``.
    denoise : bool, default=False
        Whether to keep the denoised and completed table, which is dense, in ``layers[key]``.
    copy : bool, default=False
        Whether to leave ``adata`` as it is and write to a copy.
    max_gigabytes : float, default=4.0
        The largest dense table to make of a sparse one. Larger ones are refused; raise it where the memory is there.
    **fit_options
        As in :meth:`LGMD.fit`: ``callback``, ``checkpoint``.

    Returns
    -------
    AnnData
        ``adata``, or the copy, with

        - ``obsm["X_" + key]``, ``varm[key]``: factors of cells and of genes;
        - ``obsp[key + "_connectivities"]``, and the same in ``varp``: absolute partial correlations;
        - ``obsp[key + "_precision"]``, and the same in ``varp``: the precision matrices;
        - ``obsp[key + "_distances"]``: distances between the factors of joined cells, for tools that need them;
        - ``layers[key]``: the denoised table, where it was asked for;
        - ``uns[key]``: where these are, the model's settings, and how the fit went.
    """
    _refuse_stranger(adata)
    _check_key(key)
    check_choice(zeros, "zeros", _ZEROS)
    check_real(max_gigabytes, "max_gigabytes")
    table = _table(adata, layer, zeros, max_gigabytes)
    if model is None:
        model = LGMD(n_components=min(20, *adata.shape), random_state=0)
    elif not isinstance(model, Factorization):
        raise InvalidParameterError(
            f"model must be a factorisation such as LGMD() or PMF(), but is {type(model).__name__}."
        )
    model.fit(table, **fit_options)
    model.sample_names_in_ = np.asarray(adata.obs_names, dtype=str)
    model.feature_names_in_ = np.asarray(adata.var_names, dtype=object)
    denoised = model.reconstruct() if denoise else None
    graphs = [_graphs(precision) for precision in (model.sample_graph_, model.feature_graph_)]
    distances = _distances(graphs[0][0], model.sample_factors_)
    settings = _settings(model, key, "X" if layer is None else layer, zeros, denoise, graphs[0][0])
    target = adata.copy() if copy else adata
    with warnings.catch_warnings():
        # A view becomes a table of its own when it is written to, which is what is asked for here.
        warnings.filterwarnings("ignore", message=".*view", category=UserWarning)
        target.obsm[f"X_{key}"], target.varm[key] = model.sample_factors_, model.feature_factors_
        for side, (connectivities, precision) in zip((target.obsp, target.varp), graphs, strict=True):
            side[f"{key}_connectivities"], side[f"{key}_precision"] = connectivities, precision
        target.obsp[f"{key}_distances"] = distances
        if denoised is not None:
            target.layers[key] = denoised
        elif key in target.layers and target.uns.get(key, {}).get("denoised", False):
            del target.layers[key]  # of an earlier fit
        target.uns[key] = settings
    return target


def _refuse_stranger(adata: Any) -> None:
    try:
        kind = import_module("anndata").AnnData
    except ImportError:
        raise ImportError(
            "lgmd.anndata needs anndata, which is not installed. Run: pip install 'lgmd[anndata]'"
        ) from None
    if not isinstance(adata, kind):
        raise InvalidDataError(
            f"adata must be an AnnData, but is a {type(adata).__name__}. Pass other tables to LGMD().fit."
        )
    if adata.isbacked:
        raise InvalidDataError("adata is backed by a file, but the fit needs it in memory. Pass adata.to_memory().")


def _check_key(key: Any) -> None:
    if not isinstance(key, str) or not key or "/" in key:
        raise InvalidParameterError(f"key must be a name without a slash, but is {key!r}.")
    if key == "neighbors":
        raise InvalidParameterError(
            'key="neighbors" is where scanpy keeps its own graph. Take another name, and pass it as neighbors_key.'
        )


def _table(adata: Any, layer: str | None, zeros: str, max_gigabytes: float) -> Any:
    """The values in the form in which a model takes them: NaN, or what is not stored, is a gap."""
    if layer is not None and layer not in adata.layers:
        known = ", ".join(repr(name) for name in adata.layers) or "none"
        raise InvalidParameterError(f"layer={layer!r} is not in adata.layers. There are: {known}.")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise InvalidDataError("adata has no X. Pass layer= to say which table to fit.")
    if not scipy.sparse.issparse(values):
        dense = np.asarray(values)
        return np.where(dense == 0, np.nan, dense) if zeros == "missing" else dense
    if zeros == "observed":
        _refuse_large(values, max_gigabytes)
        return values.toarray()
    stored = scipy.sparse.csr_array(values, copy=True)
    stored.eliminate_zeros()
    return stored


def _refuse_large(values: Any, max_gigabytes: float) -> None:
    (n, p), single = values.shape, values.dtype.kind == "f" and values.dtype.itemsize <= 4
    gigabytes = n * p * (4 if single else 8) / 1e9
    if gigabytes > max_gigabytes:
        smaller = "" if single else ", store it in single precision (adata.X.astype('float32'))"
        raise InvalidDataError(
            f"The {n:,} x {p:,} table is sparse, and as its zeros are values the fit needs it dense: {gigabytes:,.1f} "
            f"GB, and about five times that while it runs, where max_gigabytes={max_gigabytes:g}. Keep fewer genes, "
            f'such as the highly variable ones{smaller}, pass zeros="missing" if zeros are gaps, or raise '
            "max_gigabytes."
        )


def _graphs(precision: SparseGraph) -> tuple[Any, Any]:
    """Connectivities and precision, as the older kind of sparse matrix, which every version of AnnData can write."""
    return scipy.sparse.csr_matrix(abs(partial_correlations(precision))), scipy.sparse.csr_matrix(precision)


def _distances(connectivities: Any, X: FloatArray) -> Any:
    """Distances of joined rows, stored where the graph has its edges."""
    distances = connectivities.copy()
    i = np.repeat(np.arange(len(X)), np.diff(distances.indptr))
    # A stored zero would be no neighbour to the tools that count them.
    lengths = np.linalg.norm((X[i] - X[distances.indices]).astype(np.float64), axis=1)
    distances.data = np.maximum(lengths, np.finfo(np.float32).tiny)
    return distances


def _settings(model: Factorization, key: str, layer: str, zeros: str, denoised: bool, connectivities: Any) -> Any:
    """What was fitted and how it went, in values that a file can hold."""
    neighbors = round(connectivities.nnz / connectivities.shape[0])
    return {
        # What scanpy asks of a graph.
        "connectivities_key": f"{key}_connectivities",
        "distances_key": f"{key}_distances",
        "params": {
            "n_neighbors": max(neighbors, 1),
            "method": "lgmd",
            "metric": "euclidean",
            "use_rep": f"X_{key}",
        },
        "precision_key": f"{key}_precision",
        "estimator": type(model).__name__,
        "settings": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "layer": layer,
        "zeros": zeros,
        "denoised": bool(denoised),
        "rank": int(model.rank_),
        "noise_std": float(model.noise_std_),
        "scale": float(model.scale_),
        "intercept": float(model.intercept_),
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "objective": np.asarray(model.history_.objective),
        "version": version("lgmd"),
    }


def _plain(value: Any) -> Any:
    """A number, a truth value or a word; anything else by its name."""
    if isinstance(value, bool | int | float | str):
        return value
    return "None" if value is None else type(value).__name__

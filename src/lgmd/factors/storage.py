"""Posteriors as JSON values and plain arrays, for files."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from lgmd._typing import Array
from lgmd.factors.covariance import (
    CoupledCovariances,
    Covariance,
    DiagonalCovariances,
    RowCovariances,
    SpectralCovariance,
)
from lgmd.factors.noise import Noise
from lgmd.factors.posterior import SidePosterior
from lgmd.factors.prediction import TablePosterior
from lgmd.factors.tails import Tails
from lgmd.factors.variances import VariancePrior

__all__ = ["pack_noise", "pack_posterior", "pack_table", "unpack_noise", "unpack_posterior", "unpack_table"]

_FORMS: dict[str, type[Any]] = {
    "rows": RowCovariances,
    "coupled": CoupledCovariances,
    "diagonal": DiagonalCovariances,
    "spectral": SpectralCovariance,
}


_SPREADS = ("sample_spread", "feature_spread")


def pack_posterior(side: SidePosterior, name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """JSON values; arrays go beside them under ``name``."""
    covariance = side.covariance.applied() if isinstance(side.covariance, RowCovariances) else side.covariance
    form = next(form for form, kind in _FORMS.items() if type(covariance) is kind)
    arrays[f"{name}.mean"], arrays[f"{name}.prior_variance"] = side.mean, side.prior_variance
    values: dict[str, Any] = {"form": form, "intercept_variance": side.intercept_variance}
    for item in fields(covariance):  # type: ignore[arg-type]
        value = getattr(covariance, item.name)
        if isinstance(value, int):
            values[item.name] = value
        elif value is not None:
            arrays[f"{name}.{item.name}"] = value
    return values


def unpack_posterior(values: dict[str, Any], name: str, arrays: dict[str, Array]) -> SidePosterior:
    """The inverse of :func:`pack_posterior`."""
    kind = _FORMS[values["form"]]
    found: dict[str, Any] = {}
    for item in fields(kind):
        if item.name in values:
            found[item.name] = values[item.name]
        elif f"{name}.{item.name}" in arrays:
            found[item.name] = arrays[f"{name}.{item.name}"]
    covariance: Covariance = kind(**found)
    return SidePosterior(
        arrays[f"{name}.mean"], covariance, float("nan"), arrays[f"{name}.prior_variance"], values["intercept_variance"]
    )


def pack_noise(noise: Noise, name: str, arrays: dict[str, Array], *, weights: bool) -> dict[str, Any]:
    """JSON values; arrays go beside them. The weights of the entries only where a run is to go on with them."""
    for key in ("samples", "features", *(() if noise.prior is None else _SPREADS)):
        arrays[f"{name}.{key}"] = getattr(noise, key)
    if weights:
        arrays[f"{name}.weights"], arrays[f"{name}.other_weights"] = noise.weights, noise.other_weights
    return {
        "degrees": None if noise.tails.is_gaussian else noise.degrees,
        "gross_share": noise.tails.gross_share,
        "gross_variance": noise.tails.gross_variance,
        "optimism": noise.optimism,
        "unexplained": noise.unexplained,
        "prior": None if noise.prior is None else asdict(noise.prior),
    }


def unpack_noise(values: dict[str, Any], name: str, arrays: dict[str, Array]) -> Noise:
    """The inverse of :func:`pack_noise`."""
    degrees = float("inf") if values["degrees"] is None else values["degrees"]
    tails = Tails(degrees, **{key: values[key] for key in ("gross_share", "gross_variance") if key in values})
    weights: dict[str, Any] = {
        key: arrays[f"{name}.{key}"] for key in ("weights", "other_weights") if f"{name}.{key}" in arrays
    }
    beliefs: dict[str, Any] = {key: values[key] for key in ("optimism", "unexplained")}
    if values.get("prior") is not None:
        beliefs["prior"] = VariancePrior(**values["prior"])
        beliefs |= {key: arrays[f"{name}.{key}"] for key in _SPREADS}
    return Noise(arrays[f"{name}.samples"], arrays[f"{name}.features"], tails, **beliefs, **weights)


def pack_table(posterior: TablePosterior, name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """JSON values; arrays go beside them."""
    return {
        "overall": posterior.overall,
        "new_row_variance": posterior.new_row_variance,
        "samples": pack_posterior(posterior.samples, f"{name}.samples", arrays),
        "features": pack_posterior(posterior.features, f"{name}.features", arrays),
        "noise": pack_noise(posterior.noise, f"{name}.noise", arrays, weights=False),
    }


def unpack_table(values: dict[str, Any], name: str, arrays: dict[str, Array]) -> TablePosterior:
    """The inverse of :func:`pack_table`."""
    return TablePosterior(
        unpack_posterior(values["samples"], f"{name}.samples", arrays),
        unpack_posterior(values["features"], f"{name}.features", arrays),
        values["overall"],
        unpack_noise(values["noise"], f"{name}.noise", arrays),
        values["new_row_variance"],
    )

"""Words that options take."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["InferenceKind", "InterceptKind", "LikelihoodKind", "ModelKind", "NoiseKind", "ReconstructionKind"]


class ModelKind(StrEnum):
    """Models by name."""

    lgmd = "lgmd"
    lgmd_plus = "lgmd+"
    pmf = "pmf"
    dgrmd = "dgrmd"


class InferenceKind(StrEnum):
    """Posteriors with error bars, or the most probable factors."""

    variational = "variational"
    map = "map"


class NoiseKind(StrEnum):
    """What has a noise variance of its own."""

    homoscedastic = "homoscedastic"
    samples = "samples"
    features = "features"


class LikelihoodKind(StrEnum):
    """Noise without outliers, or with."""

    gaussian = "gaussian"
    student = "student"


class InterceptKind(StrEnum):
    """Which means there are."""

    none = "none"
    overall = "global"
    samples = "samples"
    features = "features"
    both = "both"


class ReconstructionKind(StrEnum):
    """How much of the completed table is written."""

    auto = "auto"
    all = "all"
    observed = "observed"
    none = "none"

"""What was fitted and how well, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgmd.observed import Observed
from lgmd.report.decomposition import Decomposition

__all__ = ["FitFacts"]

_STATUS = {
    "converged": "yes",
    "max_iter": "no: stopped at max_iter",
    "stopped": "no: stopped by the caller",
    "interrupted": "no: interrupted",
}


@dataclass(frozen=True)
class FitFacts:
    """
    A fit in a few numbers; what a model does not have is None.

    Attributes
    ----------
    model : str
    inference : str or None
    n_rows, n_columns : int
    n_observed : int or None
    rank, most_components : int
    noise_std : float or None
    explained : float or None
        Share of the variance of the observed entries that the fit explains.
    status : str or None
        Of :attr:`lgmd.LGMD.status_`.
    n_iter : int or None
    seconds : float or None
    """

    model: str
    inference: str | None
    n_rows: int
    n_columns: int
    n_observed: int | None
    rank: int
    most_components: int
    noise_std: float | None
    explained: float | None
    status: str | None
    n_iter: int | None
    seconds: float | None

    @classmethod
    def of(cls, model: Decomposition, observed: Observed | None) -> FitFacts:
        """Read a model, and the table it was fitted on where that is at hand."""
        estimator, (n, p) = model.estimator, model.shape
        iterated = len(model.history) > 0
        return cls(
            model=type(estimator).__name__,
            inference=getattr(estimator, "inference", None),
            n_rows=n,
            n_columns=p,
            n_observed=None if observed is None else observed.n_observed,
            rank=model.X.shape[1],
            most_components=int(estimator.n_components),
            noise_std=getattr(estimator, "noise_std_", None),
            explained=None if observed is None else _explained(model, observed),
            status=getattr(estimator, "status_", None),
            n_iter=len(model.history) if iterated else None,
            seconds=float(model.history.seconds[-1]) if iterated else None,
        )

    def lines(self) -> list[tuple[str, str]]:
        """Labels and values as people read them."""
        n_entries = self.n_rows * self.n_columns
        out = [("Model", self.model)]
        if self.inference is not None:
            out.append(("Inference", "most probable (MAP)" if self.inference == "map" else self.inference))
        out.append(("Table", f"{self.n_rows:,} rows x {self.n_columns:,} columns"))
        if self.n_observed is not None:
            out.append(("Observed", f"{self.n_observed:,} entries, {_percent(self.n_observed / n_entries)}"))
        out.append(("Rank", f"{self.rank} of at most {self.most_components}"))
        if self.noise_std is not None:
            out.append(("Noise", f"standard deviation {self.noise_std:.4g}"))
        if self.explained is not None:
            out.append(("Variance explained", f"{_percent(self.explained)} in observed entries"))
        if self.status is not None:
            out.append(("Converged", _STATUS.get(self.status, self.status)))
        if self.n_iter is not None and self.seconds is not None:
            out.append(("Time", f"{_duration(self.seconds)}, {self.n_iter:,} iterations"))
        return out


def _explained(model: Decomposition, observed: Observed) -> float | None:
    """One less the residual sum of squares over the total one; None for a constant table."""
    dtype, k = observed.dtype, model.X.shape[1]
    n, p = observed.shape
    nothing = np.zeros((n, k), dtype), np.zeros((p, k), dtype)
    squares, total = observed.residual_sums(np.zeros(n, dtype), np.zeros(p, dtype), *nothing)
    spread = squares - total * total / observed.n_observed
    if not np.isfinite(spread) or spread <= 1e-12 * squares:
        return None
    rows, columns = model.row_means.astype(dtype), (model.column_means + model.overall).astype(dtype)
    residual, _ = observed.residual_sums(rows, columns, model.X.astype(dtype), model.W.astype(dtype))
    return 1 - residual / spread


def _percent(share: float) -> str:
    # Not everything is 100.0 %, nor nothing 0.0 %.
    number = f"{100 * share:.1f}" if 0.001 <= share <= 0.999 or share in (0, 1) else f"{100 * share:.4g}"
    return f"{number}\u00a0%"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"

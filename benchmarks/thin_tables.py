"""Tables with hardly more entries than there are numbers to learn: what is possible at all, and who comes near.

The tables of the paper's synthetic experiment, 100 x 100 and rank 20 with random graphs and noise 0.3, have no means.
Methods by MAP are told so there, and LGMD with its defaults is not, so each is also run the other way. The penalty of
PMF is the one that is best against the hidden entries themselves, which nobody has. The mean under the exact posterior,
with all variances known but not the graphs, which are too weak to matter, is what nobody can better on average by much.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from exact_posterior import posterior_mean_of_gaps
from held_out import fit_seconds, fresh, say
from lgmd import LGMD, PMF
from lgmd.experiments.synthetic import COMPLETION_NOISE, RANK, make_table
from lgmd.metrics import rmse

SHARES = (0.2, 0.4, 0.6)
PENALTIES = np.geomspace(0.25, 16.0, 25)


def main(n_seeds: int = 10) -> list[str]:
    """Measure and return the lines of a table."""
    lines = []
    for share in SHARES:
        errors = []
        for seed in fresh(n_seeds):
            errors.append(_errors(share, seed))
            say(f"{share:g}, seed {seed}: {', '.join(f'{each:.4f}' for each in errors[-1].values())}")
        if not lines:
            lines = [f"| observed | {' | '.join(errors[0])} |", "|---" * (len(errors[0]) + 1) + "|"]
        means = [float(np.mean([each[name] for each in errors])) for name in errors[0]]
        lines.append(f"| {100 * share:.0f} % | {' | '.join(f'{mean:.4f}' for mean in means)} |")
    return lines


def _errors(share: float, seed: int) -> dict[str, float]:
    """RMSE on the hidden entries of the noisy table, relative to the standard deviation of the truth."""
    data = make_table("paper", COMPLETION_NOISE, 1 - share, seed)
    hidden = ~data.mask

    def error(estimate: np.ndarray) -> float:
        return rmse(data.noisy[hidden], estimate[hidden]) / data.truth.std()

    def of(model: LGMD) -> float:
        fit_seconds(model, data.observed)
        return error(model.reconstruct())

    def hindsight(model: Callable[[float], LGMD]) -> float:
        return min(of(model(penalty)) for penalty in PENALTIES)

    def pmf(intercept: str) -> float:
        return hindsight(
            lambda penalty: PMF(
                RANK, inference="map", intercept=intercept, sample_penalty=penalty, feature_penalty=penalty
            )
        )

    return {
        "LGMD, told of no means": of(LGMD(RANK, intercept="none")),
        "PMF, told of no means, best penalty in hindsight": pmf("none"),
        "exact posterior, variances known": error(posterior_mean_of_gaps(data, seed)),
        "LGMD, defaults": of(LGMD(RANK)),
        "PMF, means learned, best penalty in hindsight": pmf("both"),
    }


if __name__ == "__main__":
    print("\n".join(main()))

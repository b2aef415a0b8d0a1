"""Error against the noise-free truth: true graphs, no graphs, MAP tuned in hindsight and PCA; and what outliers do.

Complete tables of 100 x 100 and rank 20, as in the paper's synthetic experiment. Random graphs are those of
``make_matrix_normal``, whose nodes all have unit variance, and others whose variances are left as they come. The
penalty of MAP is the one that is best against the truth itself, which nobody has. The mean under the exact posterior,
with graphs and variances known, is what no method can better on average. Errors are relative to the standard deviation
of the truth.
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from exact_posterior import posterior_mean
from held_out import fit_seconds, fresh, percent, say
from lgmd import LGMD, PMF, datasets
from lgmd.metrics import rmse

UNEQUAL = "random, unequal variances"
FAMILIES = ("blocks", "random", UNEQUAL)
RANK = 20
PENALTIES = np.geomspace(2.0, 50.0, 41)
OUTLIER_SHARE = 0.05
OUTLIER_SIZE = 10.0
OUTLIER_TABLES = ((100, 100, 5, 0.3), (200, 150, 8, 0.5), (300, 200, 10, 1.0), (100, 100, 20, 0.3))


def make(
    family: str, noise: float, seed: int, shape: tuple[int, int] = (100, 100), rank: int = RANK
) -> datasets.MatrixNormalData:
    graphs = [unequal_precision(n, seed, side) for side, n in enumerate(shape)] if family == UNEQUAL else [family] * 2
    return datasets.make_matrix_normal(
        *shape, rank, sample_graph=graphs[0], feature_graph=graphs[1], noise=noise, random_state=seed
    )


def unequal_precision(n: int, seed: int, side: int, density: float = 0.06) -> np.ndarray:
    """Random signed edges and a diagonal that just dominates them: nodes with few edges vary more than others."""
    rng = np.random.default_rng([seed, side])
    rows, columns = np.triu_indices(n, 1)
    chosen = rng.choice(len(rows), round(density * len(rows)), replace=False)
    precision = np.zeros((n, n))
    precision[rows[chosen], columns[chosen]] = rng.uniform(0.5, 1.0, len(chosen)) * rng.choice([-1, 1], len(chosen))
    precision += precision.T
    return precision + np.diag(np.abs(precision).sum(axis=1) + 0.1)


def error(model, table: np.ndarray, truth: np.ndarray) -> float:
    fit_seconds(model, table)
    return rmse(truth, model.reconstruct()) / truth.std()


def hindsight_map(table: np.ndarray, truth: np.ndarray) -> float:
    errors = [
        error(PMF(RANK, inference="map", sample_penalty=penalty, feature_penalty=penalty), table, truth)
        for penalty in PENALTIES
    ]
    best = int(np.argmin(errors))
    if best in (0, len(PENALTIES) - 1):
        say(f"the best penalty, {PENALTIES[best]:g}, lies at the edge of the grid")
    return errors[best]


def principal_components(table: np.ndarray, truth: np.ndarray) -> float:
    model = PCA(RANK)
    return rmse(truth, model.inverse_transform(model.fit_transform(table))) / truth.std()


def gains(n_seeds: int, noise: float = 1.0) -> list[str]:
    lines = [
        "| graphs | LGMD, true graphs given | LGMD, no graphs | MAP, best penalty in hindsight | PCA "
        "| exact posterior, all known | true graphs below MAP by | no graphs below MAP by "
        "| exact posterior below MAP by |",
        "|---" * 9 + "|",
    ]
    for family in FAMILIES:
        errors = []
        for seed in fresh(n_seeds):
            data = make(family, noise, seed)
            given = LGMD(RANK, sample_graph=data.sample_precision, feature_graph=data.feature_precision)
            errors.append(
                (
                    error(given, data.noisy, data.truth),
                    error(LGMD(RANK, sample_graph="none", feature_graph="none"), data.noisy, data.truth),
                    hindsight_map(data.noisy, data.truth),
                    principal_components(data.noisy, data.truth),
                    rmse(data.truth, posterior_mean(data, seed)) / data.truth.std(),
                )
            )
            say(f"{family}, seed {seed}: {', '.join(f'{each:.4f}' for each in errors[-1])}")
        mean = np.mean(errors, axis=0)
        figures = " | ".join(f"{each:.4f}" for each in mean)
        below = " | ".join(percent(1 - mean[method] / mean[2], 1) for method in (0, 1, 4))
        lines.append(f"| {family} | {figures} | {below} |")
    return lines


def with_outliers(data: datasets.MatrixNormalData, seed: int) -> np.ndarray:
    """Entries anywhere replaced by gross errors of either sign."""
    rng = np.random.default_rng([seed, 1])
    size = OUTLIER_SIZE * data.truth.std() * rng.choice([-1.0, 1.0], data.truth.shape)
    return np.where(rng.random(data.truth.shape) < OUTLIER_SHARE, size, data.noisy)


def outliers(n_seeds: int) -> list[str]:
    lines = [
        "| table, rank, noise | Student, no outliers | Student, 5 % outliers | ratio | Gaussian, no outliers "
        "| Gaussian, 5 % outliers | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for n, p, rank, noise in OUTLIER_TABLES:
        errors = []
        for seed in fresh(n_seeds):
            data = make("blocks", noise, seed, (n, p), rank)
            tables = data.noisy, with_outliers(data, seed)
            errors.append(
                [
                    [error(LGMD(likelihood=likelihood), table, data.truth) for table in tables]
                    for likelihood in ("student", "gaussian")
                ]
            )
            say(f"outliers, {n} x {p}, noise {noise}, seed {seed}: {np.round(errors[-1], 4).tolist()}")
        cells = [f"{clean:.4f} | {spoilt:.4f} | {spoilt / clean:.2f}" for clean, spoilt in np.mean(errors, axis=0)]
        lines.append(f"| {n} x {p}, {rank}, {noise} | {' | '.join(cells)} |")
    return lines


def main(n_seeds: int = 5) -> list[str]:
    """Measure and return the lines of two tables."""
    return [*gains(n_seeds), "", *outliers(n_seeds)]


if __name__ == "__main__":
    print("\n".join(main()))

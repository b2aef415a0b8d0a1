"""The rank that is found from the data, with forty columns to choose from.

The factors are independent and the noise has 0.3 times the standard deviation of the truth.
"""

from __future__ import annotations

from itertools import product

from held_out import fit_seconds, fresh, percent, say
from lgmd import LGMD, datasets

SHAPES = ((100, 100), (1000, 300))
RANKS = (5, 20)
MISSING = (0.0, 0.5)


def found_rank(shape: tuple[int, int], rank: int, missing: float, seed: int) -> int:
    data = datasets.make_matrix_normal(
        *shape, rank, sample_graph="none", feature_graph="none", noise=0.3, missing=missing, random_state=seed
    )
    model = LGMD(n_components=40)
    seconds = fit_seconds(model, data.observed)
    say(f"{shape}, rank {rank}, {percent(missing)} missing, seed {seed}: {model.rank_} in {seconds:.1f} s")
    return model.rank_


def main(n_seeds: int = 10) -> list[str]:
    """Measure and return the lines of a table."""
    lines = ["| table | true rank | observed | seeds within 1 | ranks found |", "|---|---|---|---|---|"]
    for shape, rank, missing in product(SHAPES, RANKS, MISSING):
        found = [found_rank(shape, rank, missing, seed) for seed in fresh(n_seeds)]
        near = sum(abs(each - rank) <= 1 for each in found)
        lines.append(
            f"| {shape[0]} x {shape[1]} | {rank} | {percent(1 - missing)} | {near} of {n_seeds} "
            f"| {', '.join(map(str, sorted(found)))} |"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(main()))

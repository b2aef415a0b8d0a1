"""Ratings and a social network: how much friends help, and what a network of strangers does.

Run: python examples/ratings.py [picture.png]
"""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse
from matplotlib.figure import Figure

from lgmd import LGMD, metrics
from lgmd.graphs import PriorGraph

PICTURE = Path(__file__).parent / "pictures" / "ratings.png"
USERS, FILMS = 150, 60
SHARES = (0.0, 0.5, 1.0)


def make_ratings(rng: np.random.Generator):
    """Users and films of a list, ratings from 1 to 5, and the pairs of users who are friends."""
    circle = rng.integers(15, size=USERS)
    taste = rng.standard_normal((15, 4))[circle] + 0.5 * rng.standard_normal((USERS, 4))
    liking = 3.4 + 0.4 * rng.standard_normal((USERS, 1)) + 0.4 * rng.standard_normal(FILMS)
    liking = liking + 0.45 * taste @ rng.standard_normal((FILMS, 4)).T + 0.5 * rng.standard_normal((USERS, FILMS))
    users, films = np.nonzero(rng.random((USERS, FILMS)) < 0.25)
    friends = np.argwhere(np.triu((circle[:, None] == circle) & (rng.random((USERS, USERS)) < 0.5), 1))
    return users, films, np.clip(np.rint(liking[users, films]), 1, 5), friends


def network(friends, share: float, rng: np.random.Generator):
    """The friendships, a share of them replaced by such between any two users."""
    pairs = friends.copy()
    wrong = rng.random(len(pairs)) < share
    pairs[wrong] = rng.integers(USERS, size=(wrong.sum(), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    joined = scipy.sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(USERS, USERS)).tocsr()
    joined = joined + joined.T
    joined.data[:] = 1.0
    return joined


def main(picture: Path) -> None:
    rng = np.random.default_rng(0)
    users, films, ratings, friends = make_ratings(rng)
    later = rng.random(len(ratings)) < 0.2
    known = scipy.sparse.coo_array((ratings[~later], (users[~later], films[~later])), shape=(USERS, FILMS))
    asked = (users[later], films[later])

    def fit(graph):
        return LGMD(n_components=5, sample_graph=graph, feature_graph="none", random_state=0).fit(known)

    alone = fit("none")
    models = [fit(PriorGraph(network(friends, share, rng))) for share in SHARES]
    errors = [metrics.rmse(ratings[later], model.predict(*asked)) for model in (alone, *models)]
    for share, model, error in zip(SHARES, models, errors[1:], strict=True):
        print(f"{share:.0%} of the friendships random: strength {model.sample_strength_:.2f}, error {error:.3f}")
    print(f"no network: error {errors[0]:.3f}")

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_predictions(left, ratings[later], *models[0].predict(*asked, return_std=True))
    draw_errors(right, errors, [model.sample_strength_ for model in models])
    figure.savefig(picture, dpi=80)
    print(f"Picture: {picture}")


def draw_predictions(ax, truth, predicted, bars) -> None:
    """Predictions with error bars, by the rating that was given later."""
    places = truth + np.random.default_rng(0).uniform(-0.3, 0.3, len(truth))
    ax.errorbar(places, predicted, bars, fmt=".", color="#1f5a99", ecolor="#1f5a9930", markersize=4)
    ax.plot([1, 5], [1, 5], color="#8a8f98", linewidth=1)
    ax.set(xlabel="rating that was given later", ylabel="prediction, one standard deviation")
    ax.set_title(f"{len(truth)} ratings not seen, with the network", fontsize="medium")


def draw_errors(ax, errors, strengths) -> None:
    """The error without a network, and with networks of more and more strangers."""
    ax.bar(["none", *(f"{share:.0%}" for share in SHARES)], errors, color=["#8a8f98"] + ["#1f5a99"] * len(SHARES))
    for place, strength in enumerate(strengths, 1):
        ax.annotate(f"strength {strength:.1f}", (place, errors[place]), ha="center", va="bottom", fontsize=8)
    ax.set(xlabel="friendships of the network that are random", ylabel="error of ratings not seen")
    ax.set_title("strength and error, by the network that is given", fontsize="medium")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)

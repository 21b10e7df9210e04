"""The sushi pairs of Support vector comparison machines, section 4.2."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from concordant.supervision.datasets.dataset import ComparisonData, Dataset, Options
from concordant.supervision.datasets.loaders import read_sushi_scores
from concordant.supervision.labels import Comparisons
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["FEATURES", "PREFECTURES", "read_sushi_pairs"]

FEATURES = (
    *("style", "major", "minor", "oily", "frequency eaten", "price", "frequency sold"),
    *("gender", "age", "time", "latitude until 15", "longitude until 15", "latitude now", "longitude now"),
)
N_SCORED = 10  # items of a user
SUSHI, PERSON, HOMES = slice(0, 7), slice(7, 10), (10, 13)  # columns of the scored set; homes are codes

# Latitude and longitude of the capital of each prefecture, by the code of sushi3.udata, to about a kilometre;
# the last code is a foreign country, which the paper took to be Berkeley.
PREFECTURES = np.array(
    [
        *((43.06, 141.35), (40.82, 140.74), (39.70, 141.15), (39.72, 140.10), (38.27, 140.87)),
        *((38.24, 140.36), (37.75, 140.47), (37.90, 139.02), (36.34, 140.45), (36.57, 139.88)),
        *((36.39, 139.06), (35.86, 139.65), (35.60, 140.12), (35.69, 139.69), (35.45, 139.64)),
        *((35.66, 138.57), (34.98, 138.38), (36.65, 138.18), (35.18, 136.91), (35.39, 136.72)),
        *((36.70, 137.21), (36.59, 136.63), (36.07, 136.22), (35.00, 135.87), (34.73, 136.51)),
        *((35.02, 135.76), (34.69, 135.52), (34.69, 135.83), (34.23, 135.17), (34.69, 135.18)),
        *((34.66, 133.93), (34.40, 132.46), (35.50, 134.24), (35.47, 133.05), (34.19, 131.47)),
        *((33.84, 132.77), (34.34, 134.04), (34.07, 134.56), (33.56, 133.53), (33.61, 130.42)),
        *((32.74, 129.87), (33.25, 130.30), (32.79, 130.74), (31.56, 130.56), (31.91, 131.42)),
        *((33.24, 131.61), (26.21, 127.68), (37.87, -122.27)),
    ]
)


def read_sushi_pairs(dataset: Dataset, paths: list[Path], options: Options) -> ComparisonData:
    """Five pairs of each user: the two lowest-scored of the items that are left, again and again.

    Of items with equal scores the lower number comes first. The counts of the paper, 17,832 ties and 7,168
    differences, follow from pairing neighbours in the order of the scores, and hold as well where the scores
    run the other way (in the edition before 2016, 0 was the best); which items meet, and who is better,
    does not. Here 4 is the best, and the better item is the one that the user likes more.

    Seven features describe the sushi, seven the person. Those of the person are equal on both sides: they
    cancel in a linear model, and matter to kernels only.

    As published, the right item is never the worse one. Sides are drawn at random by `options.seed`; None
    leaves them as published. "rows" has the user and both scores.
    """
    from pyarrow import table

    scored = read_sushi_scores(dataset, paths, Options())
    low, high = lowest_first(scored.y)
    turned = sides(len(low), options.seed)
    left, right = np.where(turned, high, low), np.where(turned, low, high)
    score_left, score_right = (scored.y[rows].astype(np.int64) for rows in (left, right))
    item = np.asarray(scored.docid)
    comparisons = Comparisons(item[left], item[right], np.sign(score_right - score_left))
    features = described(scored.X)
    rows = {"user": scored.qid[left], "score_left": score_left, "score_right": score_right}
    pairs = np.stack((features[left], features[right]), axis=1)
    return ComparisonData(comparisons, pairs, FEATURES, {"rows": table(rows)})


def lowest_first(scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Give the rows of both items of each pair, users in order; the lower-scored, or the earlier, first."""
    by_user = scores.reshape(-1, N_SCORED)
    order = np.argsort(by_user, axis=1, kind="stable")
    rows = (order + N_SCORED * np.arange(len(by_user))[:, None]).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def sides(n_pairs: int, seed: int | None) -> BoolArray:
    """Tell which pairs are turned round; none without a seed."""
    turned: BoolArray = np.random.default_rng(seed).random(n_pairs) < 0.5
    return turned & (seed is not None)


def described(X: FloatArray) -> FloatArray:
    """Give the paper's 14 columns: those of the sushi, and the person's with homes as coordinates."""
    homes = [PREFECTURES[X[:, column].astype(np.int64)] for column in HOMES]
    return np.concatenate((X[:, SUSHI], X[:, PERSON], *homes), axis=1)

"""What every generator of queries shares: features, query sizes, intents and their probabilities."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant._numbers import as_double
from concordant.exceptions import LabelError, ParameterError
from concordant.supervision.data import RankingData
from concordant.supervision.queries import Queries
from concordant.supervision.synthetic.distribution import Label, LabelDistribution
from concordant.types import FloatArray, IntArray

__all__ = [
    "Items",
    "Synthetic",
    "check_counts",
    "check_noise",
    "draw_items",
    "finish",
    "least_and_most",
    "sizes_and_starts",
]


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Features, one draw of the labels, and the distribution the draw was taken from.

    Attributes
    ----------
    X
        Features, one row per item.
    y
        One draw of the labels: an array of grades, a `Preferences` or a `Permutations`.
    qid
        Query id of each row.
    distribution
        The conditional distribution of the labels, given the features.
    features
        Names of the columns of X, where they mean something.
    """

    X: FloatArray
    y: Label
    qid: IntArray
    distribution: LabelDistribution
    features: tuple[str, ...] = ()

    @property
    def table(self) -> Any:
        """The features as a `pyarrow.Table` with their names, which rankers keep."""
        import pyarrow as pa

        names = self.features or tuple(map(str, range(self.X.shape[1])))
        return pa.table(dict(zip(names, self.X.T, strict=True)))

    @property
    def data(self) -> RankingData:
        """The same rows as a `RankingData`; for grades only."""
        if not isinstance(self.y, np.ndarray):
            kind = type(self.y).__name__
            raise LabelError(f"y is a {kind}, RankingData holds grades", "use .X, .y and .qid.")
        return RankingData(self.X, self.y, self.qid)


@dataclass(frozen=True, eq=False)
class Items:
    """Rows before labels: features, queries, and each outcome's unit-variance latent score of each row."""

    X: FloatArray
    qid: IntArray
    queries: Queries
    latent: FloatArray  # one row per outcome
    probs: FloatArray


def draw_items(
    rng: np.random.Generator,
    n_queries: int,
    n_items: int | tuple[int, int],
    n_features: int,
    n_labels: int,
    *,
    noise: float,
    shuffle: bool,
) -> Items:
    """Draw normal features, query sizes, and per outcome a latent score and a probability."""
    least, most = least_and_most(n_items)
    check_counts(n_queries=n_queries, n_features=n_features, n_labels=n_labels)
    check_noise(noise)
    qid = np.repeat(np.arange(n_queries), rng.integers(least, most + 1, n_queries))
    qid = rng.permutation(qid) if shuffle else qid
    queries = Queries.from_ids(qid)
    X = rng.standard_normal((len(qid), n_features))
    directions = rng.standard_normal((n_labels, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    latent = directions @ X.T + noise * rng.standard_normal((n_labels, len(qid)))
    # A query is described by its mean features, scaled back to unit variance.
    means = np.add.reduceat(queries.gather(X), queries.offsets[:-1]) / np.sqrt(queries.sizes)[:, None]
    weights = np.exp(means @ rng.standard_normal((n_features, n_labels)) / np.sqrt(n_features))
    probs = weights / weights.sum(axis=1, keepdims=True)
    return Items(X, qid, queries, latent / np.sqrt(1 + noise**2), probs)


def least_and_most(n_items: int | tuple[int, int]) -> tuple[int, int]:
    """Give the least and the most items of a query.

    >>> least_and_most(5), least_and_most((2, 8))
    ((5, 5), (2, 8))
    """
    bounds = tuple(n_items) if isinstance(n_items, (tuple, list)) else (n_items, n_items)
    if len(bounds) != 2:
        raise ParameterError("n_items", n_items, "a number, or (least, most)")
    least, most = bounds
    check_counts(n_items=least)
    check_counts(n_items=most)
    if most < least:
        raise ParameterError("n_items", n_items, "a number, or (least, most) with least <= most")
    return least, most


def check_counts(**counts: int) -> None:
    """Refuse counts below 1."""
    for name, count in counts.items():
        if not (isinstance(count, numbers.Integral) and count >= 1):
            raise ParameterError(name, count, "a whole number >= 1")


def check_noise(noise: float) -> None:
    """Refuse a standard deviation that is none."""
    if not 0.0 <= as_double(noise) < np.inf:
        raise ParameterError("noise", noise, "finite and >= 0")


def sizes_and_starts(queries: Queries) -> list[tuple[int, int]]:
    """Size and first sorted row of each query."""
    return list(zip(queries.sizes.tolist(), queries.offsets[:-1].tolist(), strict=True))


def finish(items: Items, labels: tuple[Label, ...], probs: FloatArray, rng: np.random.Generator) -> Synthetic:
    """Draw the observed labels."""
    distribution = LabelDistribution(labels, probs, items.queries)
    return Synthetic(items.X, distribution.sample(rng), items.qid, distribution)

"""Populations of queries whose label distributions are known: what experiments draw training queries from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant import Preferences, Queries, synthetic
from concordant.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Population:
    """Queries of known label distribution; a training query is one of them, drawn with equal probability.

    Attributes
    ----------
    name, about
        One word, and one line.
    X
        Features, one row per item.
    distribution
        The labels of each query: its outcomes are grades or preferences.
    pairs
        Features of pairs of items, as `PairRanker` reads them.
    """

    name: str
    about: str
    X: FloatArray
    distribution: synthetic.LabelDistribution
    pairs: Any = "auto"

    def outcomes(self) -> Outcomes:
        """Every query with every label it can have."""
        queries, times = self.distribution.queries, self.distribution.n_labels
        numbers = np.repeat(np.arange(queries.n_queries), times)
        labels = np.tile(np.arange(times), queries.n_queries)
        rows, sizes = queries.rows(numbers), queries.sizes[numbers]
        label_rows = np.repeat(labels, sizes) * queries.n_rows + rows
        probs = self.distribution.probs.ravel() / queries.n_queries
        return Outcomes(
            self.X[rows],
            _take_labels(_concatenate_labels(self.distribution.labels), label_rows),
            sizes,
            probs,
        )


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Labelled queries, one after another, and the probability of drawing each."""

    X: FloatArray
    y: FloatArray | Preferences
    sizes: IntArray
    probs: FloatArray

    def draw(self, n_queries: int, seed: int) -> FloatArray:
        """Count each outcome among `n_queries` independent draws."""
        rng = np.random.default_rng([seed, n_queries])
        return rng.multinomial(n_queries, self.probs / self.probs.sum()).astype(np.float64)

    def fit_arguments(self, weights: FloatArray) -> dict[str, Any]:
        """Return the queries of positive weight, as the arguments of `fit`.

        A query drawn twice is one query of weight 2: the objective is the same, and its cost does not grow
        with the number of draws.
        """
        is_drawn = weights > 0
        rows, sizes = np.flatnonzero(np.repeat(is_drawn, self.sizes)), self.sizes[is_drawn]
        return {
            "X": self.X[rows],
            "y": _take_labels(self.y, rows),
            "qid": Queries.from_sizes(sizes),
            "query_weight": np.repeat(weights[is_drawn], sizes),
        }


def _concatenate_labels(labels: Sequence[synthetic.Label]) -> FloatArray | Preferences:
    """Join all labels into one, the rows of each after those of the one before."""
    graphs = [label for label in labels if isinstance(label, Preferences)]
    if not graphs:
        return np.concatenate([np.asarray(label) for label in labels])
    n_rows, starts = (
        graphs[0].n_rows,
        np.repeat(np.arange(len(graphs)), [len(graph.better) for graph in graphs]),
    )
    better, worse, weights = (
        np.concatenate([getattr(graph, name) for graph in graphs]) for name in ("better", "worse", "weights")
    )
    return Preferences(better + n_rows * starts, worse + n_rows * starts, n_rows * len(graphs), weights)


def _take_labels(y: FloatArray | Preferences, rows: IntArray) -> FloatArray | Preferences:
    return y.take(rows) if isinstance(y, Preferences) else y[rows]


@dataclass(frozen=True)
class OwnPairs:
    """Features of pairs where each item has a feature of its own: one for each two items of a query.

    >>> OwnPairs((2, 2))(np.eye(4)[[0, 3]], np.eye(4)[[1, 2]]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]

    Attributes
    ----------
    sizes
        Items of each query.
    sign
        1: the same with the items exchanged; -1: the negative.
    """

    sizes: tuple[int, ...]
    sign: float = 1.0

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """One row per pair."""
        starts = np.cumsum((0, *self.sizes[:-1]))
        upper = [
            np.array(np.triu_indices(size, 1)) + start for size, start in zip(self.sizes, starts, strict=True)
        ]
        a, b = np.concatenate(upper, axis=1)
        products: FloatArray = left[:, a] * right[:, b] + self.sign * left[:, b] * right[:, a]
        return products


def exhibited() -> Population:
    """Query on which every weighting of the preorder loss fails: a coin decides between two labels.

    Item 1 is above and below each other item equally often, but where it is above, it is far above. Found by
    `witness.search("ndcg", preorders, restarts=2, steps=150, seed=1)`.
    """
    return one_query("exhibited", "a coin between two labels of 3 items", ([3, 1, 0], [3, 4, 4]), (0.5, 0.5))


def two_items() -> Population:
    """Query of two items on which the gain weighting fails: small gains often, large ones rarely.

    Found by `witness.search("ndcg", [Preorder("gain")], n_items=2, restarts=4, steps=60)`.
    """
    return one_query("two_items", "one query of 2 items", ([1, 0], [2, 4]), (0.9, 0.1))


def company() -> Population:
    """Query on which every score of single items fails for AP: an item that is relevant in company.

    Item 2 is relevant with item 1 only, item 3 alone. Item 3 has the larger share of the relevance, but the
    place after item 1 is worth more to item 2.
    """
    labels, probs = ([1, 1, 0], [1, 0, 0], [0, 0, 1]), (0.5, 0.2, 0.3)
    return one_query("company", "three label vectors, 3 items", labels, probs)


def incomplete() -> Population:
    """Query on which edge deletion and every score of single items fail for PD.

    Two of five annotators put item 2 above 3 and 4, and those above 1; three of five put 3 and 4 above 1, and
    1 above 2. Either leaves pairs out.
    """
    first = Preferences([1, 1, 2, 3], [2, 3, 0, 0], n_rows=4)
    second = Preferences([2, 3, 0], [0, 0, 1], n_rows=4)
    return one_query("incomplete", "two kinds of annotators, 4 items", (first, second), (0.4, 0.6))


def typical(kind: str = "grades") -> Population:
    """Twenty random queries of four items; each item has a feature of its own, and so has each pair."""
    toy = _random_queries(kind, n_queries=20)
    pairs = OwnPairs((4,) * 20, 1.0 if kind == "grades" else -1.0)
    about = "20 random queries, a weight per item"
    return Population("typical", about, np.eye(len(toy.X)), toy.distribution, pairs)


def misspecified(kind: str = "grades") -> Population:
    """Two hundred random queries with five features, which do not determine the labels."""
    toy = _random_queries(kind, n_queries=200)
    return Population("misspecified", "200 random queries, 5 features only", toy.X, toy.distribution)


def _random_queries(kind: str, n_queries: int) -> synthetic.Synthetic:
    """Draw queries of four items with grades or preferences: four labels, five features."""
    shape: Any = {"n_queries": n_queries, "n_items": 4, "n_features": 5, "n_labels": 4, "seed": 0}
    return synthetic.grades(**shape) if kind == "grades" else synthetic.preferences(**shape)


def one_query(
    name: str, about: str, labels: Sequence[Sequence[float] | Preferences], probs: Sequence[float]
) -> Population:
    """Population of a single query; each item has a feature of its own, so that all scores can be fitted."""
    n_items = len(labels[0])
    label_tuple: Any = tuple(labels)
    distribution = synthetic.LabelDistribution(label_tuple, np.array([probs]), Queries.from_sizes([n_items]))
    return Population(name, about, np.eye(n_items), distribution, pairs=("cross",))

"""Populations of queries whose label distributions are known: what the consistency experiment draws from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.supervision.queries import Queries
from concordant.supervision.synthetic import LabelDistribution, grades
from concordant.types import FloatArray, IntArray

__all__ = ["Outcomes", "Population", "exhibited", "misspecified", "one_query", "two_items", "typical"]


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
        The labels of each query: its outcomes are grades.
    """

    name: str
    about: str
    X: FloatArray
    distribution: LabelDistribution

    def outcomes(self) -> Outcomes:
        """Every query with every label it can have."""
        queries, times = self.distribution.queries, self.distribution.n_labels
        numbers = np.repeat(np.arange(queries.n_queries), times)
        labels = np.tile(np.arange(times), queries.n_queries)
        rows, sizes = queries.rows(numbers), queries.sizes[numbers]
        grades: Any = np.stack([np.asarray(label) for label in self.distribution.labels])
        probs = self.distribution.probs.ravel() / queries.n_queries
        return Outcomes(self.X[rows], grades[np.repeat(labels, sizes), rows], sizes, probs)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Labelled queries, one after another, and the probability of drawing each."""

    X: FloatArray
    y: FloatArray
    sizes: IntArray
    probs: FloatArray

    def draw(self, n_queries: int, seed: int) -> FloatArray:
        """Give how often each is among `n_queries` independent draws."""
        rng = np.random.default_rng([seed, n_queries])
        return rng.multinomial(n_queries, self.probs / self.probs.sum()).astype(np.float64)


def exhibited() -> Population:
    """Give the query on which every weighting of the preorder loss fails: a coin decides between two labels.

    Item 1 is above and below each other item equally often, but where it is above, it is far above. Found by
    `theory.witness.search("ndcg", preorders, restarts=2, steps=150, seed=1)`.
    """
    return one_query("exhibited", "a coin between two labels of 3 items", ([3, 1, 0], [3, 4, 4]), (0.5, 0.5))


def two_items() -> Population:
    """Give the query of two items on which the gain weighting fails: small gains often, large ones rarely.

    Found by `theory.witness.search("ndcg", [Preorder("gain")], n_items=2, restarts=4, steps=60)`.
    """
    return one_query("two_items", "one query of 2 items", ([1, 0], [2, 4]), (0.9, 0.1))


def typical() -> Population:
    """Give twenty random queries of four items; each item has a feature of its own."""
    toy = grades(n_queries=20, n_items=4, n_features=5, n_labels=4, seed=0)
    return Population("typical", "20 random queries, a weight per item", np.eye(len(toy.X)), toy.distribution)


def misspecified() -> Population:
    """Give two hundred random queries with five features, which do not tell all about the labels."""
    toy = grades(n_queries=200, n_items=4, n_features=5, n_labels=4, seed=0)
    return Population("misspecified", "200 random queries, 5 features only", toy.X, toy.distribution)


def one_query(
    name: str, about: str, labels: tuple[Sequence[float], ...], probs: Sequence[float]
) -> Population:
    """Give a single query; each item has a feature of its own, so that all scores can be fitted."""
    n_items = len(labels[0])
    given: Any = labels
    distribution = LabelDistribution(given, np.array([probs]), Queries.from_sizes([n_items]))
    return Population(name, about, np.eye(n_items), distribution)

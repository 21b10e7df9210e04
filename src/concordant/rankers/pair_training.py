"""From labels to regressions on pairs of items: what the pair surrogates of AP and PD are trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from concordant.metrics.graphs import Pairs
from concordant.metrics.metric import Metric
from concordant.scorers.pairs import Numbering, PairScorer
from concordant.solvers import Solution
from concordant.solvers.ridge import Block, Moments, ridge
from concordant.supervision.labels import Preferences
from concordant.supervision.queries import Queries
from concordant.types import FloatArray, IntArray

__all__ = ["PairProblem", "PairTargets", "Regression", "pair_targets"]

Told: TypeAlias = Callable[[str], None]
"""Called after each block, with what it is made of."""


@dataclass(frozen=True, eq=False)
class PairTargets:
    """What the score of each pair should be, by sorted row; 0 unless a subclass says more.

    Attributes
    ----------
    levels
        One number per sorted row; those of a query differ if and only if something can be learned from it.
    """

    levels: FloatArray

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """Targets of pairs of rows, which are numbered from `start` on."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class SharedRelevance(PairTargets):
    """y_i y_j / sum(y); the levels are y_i / sum(y), which are also the targets of single items."""

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """Both relevant: the query's share."""
        del start
        return self.levels[left] * (self.levels[right] > 0.0)


@dataclass(frozen=True, eq=False)
class GradeSigns(PairTargets):
    """Which of two grades is higher; the levels are the grades."""

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """1 where the left one is, -1 where the right one is."""
        del start
        return np.sign(self.levels[left] - self.levels[right])


@dataclass(frozen=True, eq=False)
class NetPreferences(PairTargets):
    """Weight for the left item less that for the right one; 0 where nobody compared them.

    Attributes
    ----------
    numbers, net
        Numbers of the pairs where it is not 0, ascending; and what it is.
    """

    numbers: IntArray
    net: FloatArray

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """Look the pairs up."""
        del right
        found = slice(*np.searchsorted(self.numbers, (start, start + len(left))))
        targets = np.zeros(len(left))
        targets[self.numbers[found] - start] = self.net[found]
        return targets

    @classmethod
    def of(cls, labels: Preferences, queries: Queries) -> NetPreferences:
        """Add up the weights of each pair, both directions."""
        better, worse, weights, _ = Pairs.of(labels, queries)
        pairs = Numbering(queries.offsets)
        numbers = pairs.number(better, worse, queries.codes[better])
        unique, places = np.unique(numbers, return_inverse=True)
        net = np.bincount(places, np.where(better > worse, weights, -weights), len(unique))
        levels = np.zeros(queries.n_rows)
        levels[np.maximum(better, worse)[(net != 0.0)[places]]] = 1.0  # never the first row of a query
        return cls(levels, unique[net != 0.0], net[net != 0.0])


def pair_targets(metric: Metric, labels: Any, queries: Queries) -> PairTargets:
    """Give the targets of AP, or of PD on preferences or grades; labels as the metric reads them."""
    if metric.name == "ap":
        return SharedRelevance(metric.standardize_under("P_reinforce", labels, queries))
    if isinstance(labels, Preferences):
        return NetPreferences.of(labels, queries)
    return GradeSigns(queries.gather(labels.values))


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear function of features, in their own units; and how it was found."""

    coef: FloatArray
    intercept: float
    scale: FloatArray
    solution: Solution

    @classmethod
    def of(cls, moments: Moments, alpha: float, *, fit_scale: bool) -> Regression:
        """Solve, the penalty being on features divided by their spread."""
        scale = moments.spread() if fit_scale else np.ones(len(moments.means))
        solution = ridge(moments.scaled(scale), alpha)
        coef = solution.w / scale
        return cls(coef, moments.target_mean - float(coef @ moments.means), scale, solution)


@dataclass(frozen=True, eq=False)
class PairProblem:
    """Rows of the regressions: pairs of items and, where the pair scores have a diagonal, single items.

    Attributes
    ----------
    scorer, targets
        Features of pairs, and what they should add up to.
    shares, weights
        What a query counts, and what the label of a sorted row counts.
    """

    scorer: PairScorer
    targets: PairTargets
    shares: FloatArray
    weights: FloatArray

    @property
    def n_blocks(self) -> int:
        """Blocks that will be read, those for the means included."""
        pairs, items = (sum(1 for _ in cut()) for cut in (self.scorer.blocks, self.scorer.item_blocks))
        return 2 * (pairs + items) if self.scorer.symmetric else pairs

    def pair_blocks(self, told: Told) -> Iterator[Block]:
        """Pairs: the mean over a query's pairs counts by the query's share."""
        pairs = self.scorer.pairs
        rates = self.shares / np.maximum(pairs.sizes, 1)
        for start, stop in self.scorer.blocks():
            left, right, query = pairs.rows(start, stop)
            weights = rates[query] * (self.weights[left] * self.weights[right])
            yield Block(self.scorer.features(left, right, query), self.targets(left, right, start), weights)
            told("pairs")

    def item_blocks(self, told: Told) -> Iterator[Block]:
        """Single items: the mean over a query's items counts by the query's share."""
        sizes = np.diff(self.scorer.offsets)
        weights = np.repeat(self.shares / np.maximum(sizes, 1), sizes) * self.weights
        for start, stop in self.scorer.item_blocks():
            rows = slice(start, stop)
            yield Block(self.scorer.item_features(start, stop), self.targets.levels[rows], weights[rows])
            told("items")

    def pair_regression(self, alpha: float, told: Told, *, fit_scale: bool) -> Regression:
        """Fit the pairs; antisymmetric scores have no intercept."""
        intercept = self.scorer.symmetric
        moments = Moments.of(partial(self.pair_blocks, told), self.scorer.width, intercept=intercept)
        return Regression.of(moments, alpha, fit_scale=fit_scale)

    def item_regression(self, alpha: float, told: Told, *, fit_scale: bool) -> Regression:
        """Fit the items."""
        moments = Moments.of(partial(self.item_blocks, told), self.scorer.item_width, intercept=True)
        return Regression.of(moments, alpha, fit_scale=fit_scale)

"""From labels to regressions on pairs of items: what the pair surrogates of AP and PD are trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from concordant._segments import segment_reduce, segment_sum
from concordant.metrics.graphs import Pairs
from concordant.metrics.metric import Metric
from concordant.rankers.pair_sums import PairSums, Sums, Told
from concordant.rankers.progress import counted
from concordant.scorers.pairs import Numbering, PairScorer
from concordant.solvers import Solution
from concordant.solvers.checkpoint import Snapshot, digest
from concordant.solvers.moments import Block, Moments
from concordant.solvers.ridge import ridge
from concordant.supervision.labels import Preferences
from concordant.supervision.queries import Queries
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["PairProblem", "PairTargets", "Regression", "pair_targets"]


class PairTargets:
    """What the score of each pair should be. Rows are counted in the order of the queries."""

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """Targets of pairs of rows, which are numbered from `start` on."""
        raise NotImplementedError

    def of_items(self, rows: slice) -> FloatArray:
        """Targets of single rows, which symmetric scores have."""
        raise NotImplementedError

    def informed(self, counted: BoolArray, offsets: IntArray) -> BoolArray:
        """Whether something is learned from each query; rows that are not counted have no label."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class SharedRelevance(PairTargets):
    """y_i y_j / sum(y); of single items y_i / sum(y), which are the shares."""

    shares: FloatArray

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """Both relevant: the query's share."""
        del start
        return self.shares[left] * (self.shares[right] > 0.0)

    def of_items(self, rows: slice) -> FloatArray:
        """The shares."""
        return self.shares[rows]

    def informed(self, counted: BoolArray, offsets: IntArray) -> BoolArray:
        """Where something is relevant; all items may be."""
        return segment_sum(np.where(counted, self.shares, 0.0), offsets) > 0.0


@dataclass(frozen=True, eq=False)
class GradeSigns(PairTargets):
    """Which of two grades is higher."""

    grades: FloatArray

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """1 where the left one is, -1 where the right one is."""
        del start
        return np.sign(self.grades[left] - self.grades[right])

    def informed(self, counted: BoolArray, offsets: IntArray) -> BoolArray:
        """Where two grades differ."""
        lowest = segment_reduce(np.minimum, np.where(counted, self.grades, np.inf), offsets)
        highest = segment_reduce(np.maximum, np.where(counted, self.grades, -np.inf), offsets)
        return lowest < highest


@dataclass(frozen=True, eq=False)
class NetPreferences(PairTargets):
    """Weight for the left item less that for the right one; 0 where nobody compared them.

    Attributes
    ----------
    numbers, net
        Numbers of the pairs where it is not 0, ascending; and what it is.
    rows
        The two rows of each of them.
    """

    numbers: IntArray
    net: FloatArray
    rows: IntArray

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """Look the pairs up."""
        del right
        found = slice(*np.searchsorted(self.numbers, (start, start + len(left))))
        targets = np.zeros(len(left))
        targets[self.numbers[found] - start] = self.net[found]
        return targets

    def informed(self, counted: BoolArray, offsets: IntArray) -> BoolArray:
        """Where votes do not cancel."""
        kept = self.rows[:, 0][counted[self.rows].all(axis=1)]
        flags = np.zeros(len(offsets) - 1, dtype=bool)
        flags[np.searchsorted(offsets, kept, side="right") - 1] = True
        return flags

    @classmethod
    def of(cls, labels: Preferences, queries: Queries) -> NetPreferences:
        """Add up the weights of each pair, both directions."""
        better, worse, weights, _ = Pairs.of(labels, queries)
        pairs = Numbering(queries.offsets)
        numbers = pairs.number(better, worse, queries.codes[better])
        unique, first, places = np.unique(numbers, return_index=True, return_inverse=True)
        net = np.bincount(places, np.where(better > worse, weights, -weights), len(unique))
        kept, rows = net != 0.0, np.column_stack((better[first], worse[first]))
        return cls(unique[kept], net[kept], rows[kept])


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
        What a query counts, and what the label of a sorted row counts, at most 1.
    """

    scorer: PairScorer
    targets: PairTargets
    shares: FloatArray
    weights: FloatArray

    @property
    def n_informative(self) -> int:
        """Queries from which something is learned."""
        informed = self.targets.informed(self.weights > 0.0, self.scorer.offsets)
        return int((informed & (self.shares > 0.0)).sum())

    @property
    def n_blocks(self) -> int:
        """Blocks that will be read."""
        pairs, items = self.scorer.n_blocks, self.scorer.n_item_blocks
        return pairs + items if self.scorer.symmetric else pairs

    def pair_blocks(self, told: Told, done: int = 0) -> Iterator[Block]:
        """Pairs: the mean over a query's pairs counts by the query's share; `done` blocks are left out."""
        pairs = self.scorer.pairs
        rates = self.shares / np.maximum(pairs.sizes, 1)
        for start, stop in islice(self.scorer.blocks(), done, None):
            left, right, query = pairs.rows(start, stop)
            weights = rates[query] * (self.weights[left] * self.weights[right])
            yield Block(self.scorer.features(left, right, query), self.targets(left, right, start), weights)
            told("pairs")

    def item_blocks(self, told: Told, done: int = 0) -> Iterator[Block]:
        """Single items: the mean over a query's items counts by the query's share."""
        sizes = np.diff(self.scorer.offsets)
        weights = np.repeat(self.shares / np.maximum(sizes, 1), sizes) * self.weights
        for start, stop in islice(self.scorer.item_blocks(), done, None):
            rows = slice(start, stop)
            yield Block(self.scorer.item_features(start, stop), self.targets.of_items(rows), weights[rows])
            told("items")

    def moments(self, told: Told, kept: Sums | None = None) -> tuple[Moments, Moments | None]:
        """Add up the pairs and, where scores are symmetric, the items; else there is no intercept.

        `kept`: where the sums are written down, and were.
        """
        scorer, kept = self.scorer, kept or Sums(None)
        with_level = {"intercept": scorer.symmetric}
        pairs = kept.added("pairs", self.pair_blocks, told, scorer.width, **with_level)
        if not scorer.symmetric:
            return pairs, None
        return pairs, kept.added("items", self.item_blocks, told, scorer.item_width, **with_level)

    def sums(self, snapshot: Snapshot | None, verbose: int) -> PairSums:
        """Give all that a fit must know, by one pass; written down on the way, where there is a snapshot."""
        kept = Sums(snapshot)
        with counted(self.n_blocks, verbose) as told:
            return PairSums(*self.moments(told, kept), self.n_informative)

    @property
    def digest(self) -> str:
        """Of everything that the sums depend on; of a user's function, what it gives at first."""
        scorer = self.scorer
        X = scorer.X if hasattr(scorer.X, "indptr") else np.asarray(scorer.X)
        first = next(self.pair_blocks(lambda _: None), ())
        return digest(X, scorer.offsets, self.targets, self.shares, self.weights, *first)

"""Regressions on pairs of items: the training problem of the pair surrogates of AP and PD."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from concordant._base.segments import segment_reduce, segment_sum
from concordant.data.labels import Preferences
from concordant.data.queries import Queries
from concordant.exceptions import ModelFileError
from concordant.metrics.graphs import GraphPairs
from concordant.metrics.metric import Metric
from concordant.rankers.fit_progress import show_count
from concordant.rankers.pair_scores import Numbering, PairScorer
from concordant.solvers import Solution
from concordant.solvers.checkpoint import ANEW, Snapshot, digest
from concordant.solvers.ridge import Block, Moments, ridge
from concordant.types import BoolArray, FloatArray, IntArray

# Sums over blocks of pairs, which are stored on the way, so that a killed fit can resume.

BlockCallback: TypeAlias = Callable[[str], None]
"""Called after each block, with what it is made of."""

EVERY = 64  # blocks between two writes: adding a block takes far longer than its share of a write


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sufficient statistics of a fit: sums over all pairs and, for symmetric scores, over all items."""

    pairs: Moments
    items: Moments | None  # None if scores are not symmetric
    n_informative: int  # queries from which something is learned

    def __sizeof__(self) -> int:
        # Dask moves what is small to what is large.
        return int(self.pairs.gram.nbytes + (0 if self.items is None else self.items.gram.nbytes))

    def merged(self, other: PairSums) -> PairSums:
        """Return the sums of the queries of both; neither is changed."""
        items = None if self.items is None or other.items is None else self.items.merged(other.items)
        return PairSums(self.pairs.merged(other.pairs), items, self.n_informative + other.n_informative)


def pack_moments(name: str, sums: Moments) -> dict[str, Any]:
    """Convert moments to arrays, to be stored."""
    return {f"{name}.{key}": np.asarray(part) for key, part in vars(sums).items()}


def unpack_moments(name: str, arrays: Mapping[str, Any], nothing: Moments, path: Path) -> Moments:
    """Read stored moments; raise unless their shapes are those of `nothing`."""
    parts: dict[str, Any] = {}
    for key, part in vars(nothing).items():
        stored = arrays.get(f"{name}.{key}")
        if stored is None or stored.shape != np.shape(part):
            raise ModelFileError(path, f"it has no {name}.{key} of this fit", ANEW)
        parts[key] = stored if stored.ndim else type(part)(stored)
    return Moments(**parts)


class MomentSums:
    """Moments of pairs and of items: in memory, and on disk if there is a snapshot."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self.counts: dict[str, int] = {}
        self.arrays: dict[str, Any] = {}
        stored = None if snapshot is None else snapshot.read()
        if stored is not None:
            self.counts, self.arrays = stored[0].get("blocks", {}), stored[1]

    def add(
        self,
        name: str,
        blocks: Callable[[BlockCallback, int], Iterator[Block]],
        on_block: BlockCallback,
        n_features: int,
        *,
        intercept: bool,
    ) -> Moments:
        """Add up the blocks that are missing on disk."""
        if self.snapshot is None:
            return Moments.from_blocks(blocks(on_block, 0), n_features, intercept=intercept)
        done, start = self.counts.get(name, 0), self._stored_moments(name, n_features, intercept=intercept)
        for _ in range(done):
            on_block(name)
        number = done

        def count_block(sums: Moments) -> None:
            nonlocal number
            number += 1
            if number % EVERY == 0:
                self._store(name, number, sums)

        whole = Moments.from_blocks(
            blocks(on_block, done), n_features, intercept=intercept, start=start, on_sum=count_block
        )
        if number > done or name not in self.counts:
            self._store(name, number, whole)
        return whole

    def _store(self, name: str, number: int, sums: Moments) -> None:
        if self.snapshot is None:
            return
        self.counts[name] = number
        self.arrays |= pack_moments(name, sums)
        self.snapshot.write({"blocks": self.counts}, self.arrays)

    def _stored_moments(self, name: str, n_features: int, *, intercept: bool) -> Moments:
        zero = Moments.zero(n_features, intercept=intercept)
        if name not in self.counts or self.snapshot is None:
            return zero
        return unpack_moments(name, self.arrays, zero, self.snapshot.path)


class PairTargets:
    """Target of the score of each pair. Rows are counted in the order of the queries."""

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        """Return targets of pairs of rows, numbered from `start` on."""
        raise NotImplementedError

    def item_targets(self, rows: slice) -> FloatArray:
        """Return targets of single rows, for symmetric scores."""
        raise NotImplementedError

    def informed(self, labelled: BoolArray, offsets: IntArray) -> BoolArray:
        """True for queries from which something is learned; `labelled` marks rows with a label."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _SharedRelevance(PairTargets):
    """Targets y_i y_j / sum(y); of single items y_i / sum(y), which are the shares."""

    shares: FloatArray

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        del start
        return self.shares[left] * (self.shares[right] > 0.0)

    def item_targets(self, rows: slice) -> FloatArray:
        return self.shares[rows]

    def informed(self, labelled: BoolArray, offsets: IntArray) -> BoolArray:
        """True for queries with a relevant item; all items may be relevant."""
        return segment_sum(np.where(labelled, self.shares, 0.0), offsets) > 0.0


@dataclass(frozen=True, eq=False)
class _GradeSigns(PairTargets):
    """Sign of the difference of two grades."""

    grades: FloatArray

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        del start
        return np.sign(self.grades[left] - self.grades[right])

    def informed(self, labelled: BoolArray, offsets: IntArray) -> BoolArray:
        lowest = segment_reduce(np.minimum, np.where(labelled, self.grades, np.inf), offsets)
        highest = segment_reduce(np.maximum, np.where(labelled, self.grades, -np.inf), offsets)
        return lowest < highest


@dataclass(frozen=True, eq=False)
class _NetPreferences(PairTargets):
    """Weight for the left item minus that for the right item; 0 if nobody compared them."""

    numbers: IntArray  # of the pairs with a nonzero net weight, ascending
    net: FloatArray  # these weights
    rows: IntArray  # the two rows of each of these pairs

    def __call__(self, left: IntArray, right: IntArray, start: int) -> FloatArray:
        del right
        positions = slice(*np.searchsorted(self.numbers, (start, start + len(left))))
        targets = np.zeros(len(left))
        targets[self.numbers[positions] - start] = self.net[positions]
        return targets

    def informed(self, labelled: BoolArray, offsets: IntArray) -> BoolArray:
        rows = self.rows[:, 0][labelled[self.rows].all(axis=1)]
        flags = np.zeros(len(offsets) - 1, dtype=bool)
        flags[np.searchsorted(offsets, rows, side="right") - 1] = True
        return flags

    @classmethod
    def from_preferences(cls, labels: Preferences, queries: Queries) -> _NetPreferences:
        """Add up the weights of each pair, in both directions."""
        better, worse, weights, _ = GraphPairs.from_preferences(labels, queries)
        pairs = Numbering(queries.offsets)
        numbers = pairs.number(better, worse, queries.codes[better])
        unique, first, codes = np.unique(numbers, return_index=True, return_inverse=True)
        net = np.bincount(codes, np.where(better > worse, weights, -weights), len(unique))
        is_nonzero, rows = net != 0.0, np.column_stack((better[first], worse[first]))
        return cls(unique[is_nonzero], net[is_nonzero], rows[is_nonzero])


def pair_targets(metric: Metric, labels: Any, queries: Queries) -> PairTargets:
    """Build the targets of AP, or of PD on preferences or grades; labels as the metric reads them."""
    if metric.name == "ap":
        return _SharedRelevance(metric.standardize_under("P_reinforce", labels, queries))
    if isinstance(labels, Preferences):
        return _NetPreferences.from_preferences(labels, queries)
    return _GradeSigns(queries.gather(labels.values))


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear function of unscaled features, and its solution."""

    coef: FloatArray
    intercept: float
    scale: FloatArray
    solution: Solution

    @classmethod
    def from_moments(cls, moments: Moments, alpha: float, *, fit_scale: bool) -> Regression:
        """Solve, with the penalty on features divided by their spread."""
        scale = moments.spread() if fit_scale else np.ones(len(moments.means))
        solution = ridge(moments.scaled(scale), alpha)
        coef = solution.w / scale
        return cls(coef, moments.target_mean - float(coef @ moments.means), scale, solution)


@dataclass(frozen=True, eq=False)
class PairProblem:
    """Rows of the regressions: pairs of items and, where the pair scores have a diagonal, single items."""

    scorer: PairScorer
    targets: PairTargets
    shares: FloatArray  # of the queries
    weights: FloatArray  # of the label of each sorted row, at most 1

    @property
    def n_informative(self) -> int:
        """Number of queries from which something is learned."""
        informed = self.targets.informed(self.weights > 0.0, self.scorer.offsets)
        return int((informed & (self.shares > 0.0)).sum())

    @property
    def n_blocks(self) -> int:
        """Number of blocks to read."""
        pairs, items = self.scorer.n_blocks, self.scorer.n_item_blocks
        return pairs + items if self.scorer.symmetric else pairs

    def pair_blocks(self, on_block: BlockCallback, done: int = 0) -> Iterator[Block]:
        """Generate blocks of pairs: a query's mean over pairs has the query's share; skip `done` blocks."""
        pairs = self.scorer.pairs
        rates = self.shares / np.maximum(pairs.sizes, 1)
        for start, stop in islice(self.scorer.blocks(), done, None):
            left, right, query = pairs.rows(start, stop)
            weights = rates[query] * (self.weights[left] * self.weights[right])
            yield Block(self.scorer.features(left, right, query), self.targets(left, right, start), weights)
            on_block("pairs")

    def item_blocks(self, on_block: BlockCallback, done: int = 0) -> Iterator[Block]:
        """Generate blocks of items: a query's mean over items has the query's share."""
        sizes = np.diff(self.scorer.offsets)
        weights = np.repeat(self.shares / np.maximum(sizes, 1), sizes) * self.weights
        for start, stop in islice(self.scorer.item_blocks(), done, None):
            rows = slice(start, stop)
            features = self.scorer.item_features(start, stop)
            yield Block(features, self.targets.item_targets(rows), weights[rows])
            on_block("items")

    def moments(
        self, on_block: BlockCallback, stored_sums: MomentSums | None = None
    ) -> tuple[Moments, Moments | None]:
        """Add up the pairs and, for symmetric scores, the items; antisymmetric scores have no intercept.

        `stored_sums`: the sums on disk, which are continued.
        """
        scorer, stored_sums = self.scorer, stored_sums or MomentSums(None)
        with_level = {"intercept": scorer.symmetric}
        pairs = stored_sums.add("pairs", self.pair_blocks, on_block, scorer.width, **with_level)
        if not scorer.symmetric:
            return pairs, None
        return pairs, stored_sums.add("items", self.item_blocks, on_block, scorer.item_width, **with_level)

    def sums(self, snapshot: Snapshot | None, verbose: int) -> PairSums:
        """Compute the statistics of the fit in one pass; with a snapshot, they are stored on the way."""
        stored_sums = MomentSums(snapshot)
        with show_count(self.n_blocks, verbose) as on_block:
            return PairSums(*self.moments(on_block, stored_sums), self.n_informative)

    @property
    def digest(self) -> str:
        """Hash of all data that the sums depend on; for a user's function, its first block of features."""
        scorer = self.scorer
        X = scorer.X if hasattr(scorer.X, "indptr") else np.asarray(scorer.X)
        first = next(self.pair_blocks(lambda _: None), ())
        return digest(X, scorer.offsets, self.targets, self.shares, self.weights, *first)

"""Training on pairs in parts: what `data.py` and `pairs.py` have in memory, by sums over parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from concordant.comparer.calibration import folds
from concordant.comparer.data import Fitted, Split, no_weight
from concordant.comparer.machine import Machine, Weights, trained
from concordant.comparer.pairs import SGD_TOL, Scorer
from concordant.comparer.partitioned.part import (
    ALL,
    Asked,
    Seen,
    Survey,
    Told,
    decided,
    digested,
    furthest,
    judged,
    prepared,
    seen,
    squared,
    surveyed,
)
from concordant.comparer.recipe import Recipe
from concordant.comparer.scaling import Scaling
from concordant.decoders.threshold import best_threshold
from concordant.exceptions import EmptyDataError, ShapeError
from concordant.scorers.kernel import Kernel
from concordant.solvers.checkpoint import digest
from concordant.solvers.journal import Journal
from concordant.solvers.margin import MarginSolution, minimised
from concordant.solvers.partitioned.cluster_parts import anew
from concordant.solvers.partitioned.margin import PartedProblem
from concordant.solvers.partitioned.margin_sgd import sgd_streamed
from concordant.solvers.partitioned.parts import Parts
from concordant.solvers.partitioned.tree import tree_sum
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["PairSource", "PartedData", "PartedPairs"]


class PairSource(Protocol):
    """Where parts come from: Dask arrays, or a scan."""

    @property
    def n_parts(self) -> int:
        """How many there are."""

    def parts(self, own: Sequence[Told]) -> Parts:
        """Give the parts, of which each is a `PairPart`; once."""


@dataclass(frozen=True, eq=False)
class PartedFeatures:
    """Differences of scaled features, in parts."""

    parts: Parts
    left_out: int
    scaling: Scaling
    total_weight: float

    def fitted(self, recipe: Recipe, journal: Journal | None) -> MarginSolution:
        """Minimise the objective by the recipe's solver."""
        which = Asked(self.scaling, self.left_out, recipe.C, recipe.method, recipe.loss)
        problem = PartedProblem.of(self.parts, which)
        if recipe.solver == "sgd":
            return sgd_streamed(problem, tol=max(recipe.tol, SGD_TOL), seed=recipe.seed, journal=journal)
        return minimised(problem, recipe.tol, recipe.max_iter, journal=journal)

    def furthest(self, w: FloatArray) -> float:
        """Size of the largest decision."""
        return float(max(self.parts.each(furthest, self.left_out, self.scaling, Weights(w))))


@dataclass(frozen=True, eq=False)
class PartedPairs:
    """What `Pairs` is, over parts.

    Attributes
    ----------
    parts, left_out
        Of which each is a `PairPart`; and the fold that is not trained on.
    scaling, has_ties, has_others
        As of `Training`.
    total_weight
        Of the pairs that are trained on.
    """

    parts: Parts
    left_out: int
    scaling: Scaling
    total_weight: float
    has_ties: bool
    has_others: bool

    @classmethod
    def of(cls, parts: Parts, left_out: int = ALL) -> PartedPairs:
        """Measure the pairs: two passes."""
        found: list[Survey] = parts.each(surveyed, left_out)
        weight = float(tree_sum(np.array([one.weight]) for one in found)[0])
        mean = tree_sum((one.weight / weight) * one.mean for one in found)
        scaling = Scaling.from_moments(mean, parts.total(squared, left_out, weight, mean))
        ties, others = sum(one.n_ties for one in found), sum(one.n_others for one in found)
        return cls(parts, left_out, scaling, weight, ties > 0, others > 0)

    def features(self) -> PartedFeatures:
        """Give the differences of scaled features."""
        return PartedFeatures(self.parts, self.left_out, self.scaling, self.total_weight)

    def best_threshold(self, scorer: Scorer) -> float:
        """Give the threshold of least error; decisions come to this process."""
        found = self.parts.each(judged, self.left_out, self.scaling, scorer)
        return best_threshold(*(np.concatenate(column) for column in zip(*found, strict=True)))


@dataclass(eq=False)
class PartedData:
    """What `PairData` is, over parts.

    Attributes
    ----------
    parts
        Of which each is a `PairPart`.
    n_features
        Of an item.
    y, weight, folds
        Outcome, weight and fold of each pair, part after part; empty where none is to be held out.
    last
        The machine that decisions were asked of last, and these.
    """

    parts: Parts
    n_features: int
    y: IntArray
    weight: FloatArray
    folds: IntArray
    last: tuple[Machine | None, FloatArray] = field(default=(None, np.empty(0)), repr=False)

    @classmethod
    def of(cls, source: PairSource, n_folds: int, seed: int) -> PartedData:
        """Look at the parts: one pass; pairs are held out in the folds that they have in memory."""
        parts = source.parts([Told(number) for number in range(source.n_parts)])
        found: list[Seen] = parts.each(seen, n_folds > 0)
        check_all(found)
        y = np.concatenate([one.y for one in found]).astype(np.int64)
        weight = np.concatenate([one.weight for one in found])
        own = folds_by_pair(y == 0, n_folds, seed) if n_folds else np.empty(0, dtype=np.int64)
        if n_folds:
            cuts = np.cumsum([one.n_rows for one in found])[:-1]
            told = [Told(number, one) for number, one in enumerate(np.split(own, cuts))]
            parts = anew(parts, prepared, told)
        return cls(parts, found[0].n_features, y, weight, own)

    def train(self, recipe: Recipe, journal: Journal | None, split: Split | None = None) -> Fitted:
        """Train on all pairs, or on those of a split, which must be that of a fold."""
        left_out = ALL if split is None else int(self.folds[split[1][0]])
        return trained(PartedPairs.of(self.parts, left_out), recipe, journal)

    def decisions(self, fitted: Fitted, rows: IntArray | None = None) -> FloatArray:
        """Give the decisions of all pairs, or of some; those of the last machine are kept."""
        scaling, machine = fitted
        if self.last[0] is not machine:
            self.last = machine, np.concatenate(self.parts.each(decided, scaling, machine.scorer))
        return self.last[1] if rows is None else self.last[1][rows]

    def digest(self, kernel: Kernel | None) -> str:
        """Give what tells these pairs from others, cut into these parts."""
        del kernel
        return digest(np.array(self.parts.each(digested)))


def check_all(found: Sequence[Seen]) -> None:
    """Refuse pairs that are none, or none of which counts; and parts of unlike pairs."""
    if len(widths := {one.n_features for one in found}) > 1:
        raise ShapeError("pairs", tuple(sorted(widths)), "as many features in every part")
    if not sum(one.n_rows for one in found):
        raise EmptyDataError("pairs")
    if not any(one.counts for one in found):
        raise no_weight()


def folds_by_pair(tie: BoolArray, n_folds: int, seed: int) -> IntArray:
    """Give the fold in which each pair is held out."""
    found = np.zeros(len(tie), dtype=np.int64)
    for number, (_, held) in enumerate(folds(tie, n_folds, seed)):
        found[held] = number
    return found

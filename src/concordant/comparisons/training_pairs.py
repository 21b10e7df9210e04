"""Training pairs as the solvers of a machine read them: in parts, of which pairs in memory are one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant.comparisons.comparer_recipe import Recipe
from concordant.comparisons.machines.machine_part import MarginPart, ProblemSpec, as_aligned
from concordant.comparisons.machines.machine_parts import FIXED_ROWS, MachineProblem, RowPart
from concordant.comparisons.machines.machine_rows import RowProblem
from concordant.comparisons.machines.online_machine import n_passes, run_epoch, run_epochs, sgd_over_rows
from concordant.comparisons.machines.primal_newton import MarginSolution, build_problem, minimise
from concordant.decoders.threshold import best_threshold
from concordant.exceptions import ParameterError
from concordant.scale.parts import MemoryParts, Parts, StreamedParts, tree_sum
from concordant.scale.scan.pair_scan import PairRows
from concordant.solvers.checkpoint import Journal
from concordant.types import BoolArray, FloatArray, IntArray

# Features on a common scale: their means and deviations, over both sides of the training pairs.

STEADY = 1e-12  # deviations below this share of a feature's size are rounding: the feature is constant


@dataclass(frozen=True, eq=False)
class Scaling:
    """Standardization of features by mean and deviation; constant features are dropped.

    Attributes
    ----------
    mean, deviation
        Mean and deviation of the features that vary.
    kept
        True for the features that vary.
    """

    mean: FloatArray
    deviation: FloatArray
    kept: BoolArray

    @classmethod
    def from_pairs(cls, pairs: FloatArray, weight: FloatArray) -> Scaling:
        """Compute means and deviations over both sides of the pairs; a pair of weight 2 counts as two.

        >>> scaling = Scaling.from_pairs(np.array([[[0.0, 7.0], [4.0, 7.0]]]), np.ones(1))
        >>> scaling.mean.tolist(), scaling.deviation.tolist(), scaling.kept.tolist()
        ([2.0], [2.0], [True, False])
        """
        share = weight / (2.0 * weight.sum())
        mean = _weighted_means(pairs, share)
        return cls.from_moments(mean, _weighted_squares(pairs, share, mean))

    @classmethod
    def from_moments(cls, mean: FloatArray, square: FloatArray) -> Scaling:
        """Keep the features that vary, given the mean and the mean squared deviation of each feature."""
        deviation = np.sqrt(square)
        varies = deviation > STEADY * np.abs(mean)
        return cls(mean[varies], deviation[varies], varies)

    def __call__(self, items: FloatArray) -> FloatArray:
        """Scale items; the last axis holds the features."""
        scaled: FloatArray = (items[..., self.kept] - self.mean) / self.deviation
        return scaled

    def differences(self, pairs: FloatArray, y: IntArray) -> FloatArray:
        """Compute scaled differences right - left, with the sign that makes right the better side."""
        turned = pairs[:, 1] - pairs[:, 0]
        turned = turned if self.kept.all() else turned[:, self.kept]
        turned *= np.where(y < 0, -1.0, 1.0)[:, None] / self.deviation
        return turned


def _weighted_means(pairs: FloatArray, share: FloatArray) -> FloatArray:
    """Sum of the features of both sides, times the share of each pair."""
    mean: FloatArray = share @ pairs.sum(axis=1)
    return mean


def _weighted_squares(pairs: FloatArray, share: FloatArray, mean: FloatArray) -> FloatArray:
    """Sum of the squares of both sides about the mean, times the share of each pair."""
    square = np.zeros(pairs.shape[2])
    for side in (0, 1):
        centred = pairs[:, side] - mean
        square += np.einsum("i,ij,ij->j", share, centred, centred)
    return square


Scorer = Callable[[FloatArray], FloatArray]
"""Scores of scaled items."""


def pair_decisions(scaling: Scaling, scorer: Scorer, pairs: FloatArray) -> FloatArray:
    """Decision r(right) - r(left) of each pair."""
    right, left = (scorer(scaling(pairs[:, side])) for side in (1, 0))
    return right - left


# ComparerPart: pairs of one part, and the jobs that training runs on them.

ALL = -1  # no fold is left out


@dataclass(frozen=True, eq=False)
class PartInfo:
    """Information for a single part: its number, and the fold of each of its pairs, None without folds."""

    number: int
    folds: IntArray | None = None


@dataclass(frozen=True, eq=False)
class MachineSpec:
    """Problem that a part builds its rows for: the scaling, the fold that is left out, and the objective."""

    scaling: Scaling
    left_out: int
    C: float
    method: str
    loss: str

    @cached_property
    def key(self) -> Hashable:
        """Key that is equal only for equal problems."""
        scaling = (
            array.tobytes() for array in (self.scaling.mean, self.scaling.deviation, self.scaling.kept)
        )
        return self.left_out, self.C, self.method, self.loss, *scaling


class ComparerPart(MarginPart):
    """Pairs of one part, and the rows of a machine's problem built from them.

    Steps do not copy the pairs: unused ones have weight 0.
    """

    def __init__(self, rows: PairRows, info: PartInfo) -> None:
        super().__init__(info.number)
        self.rows, self.folds = _align_rows(rows), info.folds

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.rows = _align_rows(self.rows)

    def __sizeof__(self) -> int:
        # Dask moves small objects to large ones; differences are half the size of the pairs.
        return int(1.5 * self.rows.pairs.nbytes)

    def weight(self, left_out: int) -> FloatArray:
        """Weights of the pairs, 0 in the fold that is left out."""
        if left_out == ALL or self.folds is None:
            return self.rows.weight
        return np.where(self.folds == left_out, 0.0, self.rows.weight)

    def used_rows(self, left_out: int) -> PairRows:
        """Select the pairs of weight above 0."""
        rows, used = self.rows, self.weight(left_out) > 0.0
        return rows if used.all() else PairRows(rows.pairs[used], rows.y[used], rows.weight[used])

    def make(self, problem_spec: MachineSpec) -> RowProblem:
        """Build the problem of the differences of nonzero cost."""
        rows, weight = self.rows, self.weight(problem_spec.left_out)
        differences = problem_spec.scaling.differences(rows.pairs, rows.y)
        return build_problem(
            differences, rows.y == 0, problem_spec.C, problem_spec.method, problem_spec.loss, weight
        )


def _align_rows(rows: PairRows) -> PairRows:
    """Align the memory of pairs, so that sums do not depend on how they were transferred."""
    return PairRows(as_aligned(rows.pairs), rows.y, as_aligned(rows.weight))


# ---------------------------------------------------------------- jobs


def survey_part(part: ComparerPart, left_out: int) -> tuple[bool, bool, float, FloatArray]:
    """Return whether used pairs of a part are ties, and others; their total weight, and the feature means."""
    weight, tie = part.weight(left_out), part.rows.y == 0
    used, total = weight > 0.0, float(weight.sum())
    with one_blas_thread():
        mean = _weighted_means(part.rows.pairs, weight / (2.0 * total) if total else weight)
    return bool((used & tie).any()), bool((used & ~tie).any()), total, mean


def _sum_squares(part: ComparerPart, left_out: int, weight: float, mean: FloatArray) -> FloatArray:
    """Sum the squares of a part about the mean of all parts; `weight` is the total of all parts, too."""
    return _weighted_squares(part.rows.pairs, part.weight(left_out) / (2.0 * weight), mean)


def judge_pairs(part: ComparerPart, left_out: int, scaling: Scaling, scorer: Scorer) -> tuple[Any, ...]:
    """Collect decisions, outcomes and weights of the used pairs of a part."""
    rows = part.used_rows(left_out)
    return pair_decisions(scaling, scorer, rows.pairs), rows.y.astype(np.int8), rows.weight


def _collect_used(part: ComparerPart, left_out: int) -> tuple[FloatArray, IntArray, FloatArray]:
    rows = part.used_rows(left_out)
    return rows.pairs, rows.y, rows.weight


def _furthest(part: MarginPart, problem_spec: ProblemSpec, w: FloatArray) -> float:
    return float(np.abs(part.problem(problem_spec).rows @ w).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class TrainingPairs:
    """Training pairs of weight above 0, and the scaling of their features.

    Attributes
    ----------
    parts, left_out
        Parts, each a `ComparerPart`; and the fold that is not trained on.
    scaling
        Scaling of the features.
    total_weight
        Total weight of the pairs that are trained on.
    has_ties, has_others
        True if there are ties, and if there are other pairs.
    """

    parts: Parts
    left_out: int
    scaling: Scaling
    total_weight: float
    has_ties: bool
    has_others: bool

    @classmethod
    def from_parts(cls, parts: Parts, left_out: int = ALL) -> TrainingPairs:
        """Compute the scaling of the pairs: two passes."""
        ties, others, weights, means = zip(*parts.each(survey_part, left_out), strict=True)
        weight = float(tree_sum(np.array([part_weight]) for part_weight in weights)[0])
        shares = np.array(weights) / weight
        mean = tree_sum(share * part_mean for share, part_mean in zip(shares, means, strict=True))
        scaling = Scaling.from_moments(mean, parts.total(_sum_squares, left_out, weight, mean))
        return cls(parts, left_out, scaling, weight, any(ties), any(others))

    def differences(self, recipe: Recipe) -> PairDifferences:
        """Differences of scaled features, with the costs of the recipe's objective."""
        problem_spec = MachineSpec(self.scaling, self.left_out, recipe.C, recipe.method, recipe.loss)
        return PairDifferences(self.parts, problem_spec)

    def collect(self) -> CollectedPairs:
        """Collect the pairs in this process, for machines that need them all in memory."""
        parts = self.parts.each(_collect_used, self.left_out)
        if len(parts) == 1:  # not copied
            pairs, y, weight = parts[0]
        else:
            pairs, y, weight = map(np.concatenate, zip(*parts, strict=True))
        return CollectedPairs(pairs, y, weight, self.scaling)

    def best_threshold(self, scorer: Scorer) -> float:
        """Find the threshold of least training error; decisions are collected in this process."""
        part_decisions = self.parts.each(judge_pairs, self.left_out, self.scaling, scorer)
        return best_threshold(*(np.concatenate(column) for column in zip(*part_decisions, strict=True)))


@dataclass(frozen=True, eq=False)
class CollectedPairs:
    """Training pairs of weight above 0 in memory, unscaled; scaled on demand."""

    pairs: FloatArray
    y: IntArray
    weight: FloatArray
    scaling: Scaling

    @property
    def tie(self) -> BoolArray:
        """True where the pair is a tie."""
        ties: BoolArray = self.y == 0
        return ties

    def orient(self) -> FloatArray:
        """Scaled features of both sides, swapped where the left side is better."""
        scaled = self.scaling(self.pairs)
        return np.where((self.y < 0)[:, None, None], scaled[:, ::-1], scaled)

    def differences(self) -> FloatArray:
        """Scaled differences right - left, with the sign that makes right the better side."""
        return self.scaling.differences(self.pairs, self.y)


@dataclass(frozen=True, eq=False)
class PairDifferences:
    """Differences of explicit features, in parts, on which a machine is trained in the primal.

    Attributes
    ----------
    parts, problem_spec
        As in `MachineProblem`.
    """

    parts: Parts
    problem_spec: ProblemSpec

    @classmethod
    def from_rows(
        cls, differences: FloatArray, tie: BoolArray, weight: FloatArray, recipe: Recipe
    ) -> PairDifferences:
        """Differences in memory, with the costs of the recipe's objective."""
        rows = build_problem(differences, tie, recipe.C, recipe.method, recipe.loss, weight)
        return cls(MemoryParts([RowPart(rows)]), FIXED_ROWS)

    def fit(self, recipe: Recipe, journal: Journal | None) -> MarginSolution:
        """Minimise the objective by the recipe's solver."""
        problem = MachineProblem.from_parts(self.parts, self.problem_spec)
        if recipe.solver != "sgd":
            return minimise(problem, recipe.tol, recipe.max_iter, journal=journal)
        tol = max(recipe.tol, SGD_TOL)
        if isinstance(self.parts, MemoryParts):
            (part,) = self.parts.values
            return sgd_over_rows(part.problem(self.problem_spec), tol, seed=recipe.seed, journal=journal)
        return _sgd_over_parts(problem, tol, seed=recipe.seed, journal=journal)

    def furthest(self, w: FloatArray) -> float:
        """Size of the largest decision."""
        return float(max(self.parts.each(_furthest, self.problem_spec, w)))


# Stochastic gradient over pairs that are read part by part: parts in random order, and the pairs of each.

SGD_TOL = 1e-4  # change of the objective in an epoch
SGD_ON_CLUSTER = "solver='sgd' does not run on a cluster. Use solver='auto'."


def _sgd_over_parts(
    problem: MachineProblem, tol: float, *, seed: int, max_iter: int = 50, journal: Journal | None = None
) -> MarginSolution:
    """Run `sgd_over_rows` on rows that are read part by part: three passes per epoch.

    The steps of an epoch go from part to part, in random order, and within a part from row to row; rows that
    are adjacent in a file should not be similar.
    """
    parts = problem.parts
    if not isinstance(parts, StreamedParts):
        raise ParameterError.because(SGD_ON_CLUSTER)

    def start_epoch(epoch: int, steps: FloatArray) -> Callable[[], tuple[FloatArray]]:
        return partial(_walk_epoch, problem, parts, seed, epoch, steps)

    return run_epochs(replace(problem, saves_passes=False), start_epoch, tol, max_iter, journal)


def _walk_epoch(
    problem: MachineProblem,
    parts: StreamedParts[MarginPart],
    seed: int,
    epoch: int,
    steps: FloatArray,
) -> tuple[FloatArray]:
    n, total, rng = problem.n_rows, problem.total_cost, np.random.default_rng([seed, epoch])
    done = epoch * n * n_passes(n)
    for _ in range(n_passes(n)):
        for part in parts.iter_prepared(rng.permutation(parts.n_parts)):
            rows = part.problem(problem.problem_spec)
            order = rng.permutation(rows.n_rows)
            fixed = n * rows.cost / total, order, 1.0 / total, float(rows.has_bias), rows.kind
            (steps,) = run_epoch(rows, fixed, done, steps)
            done += len(order)
    return (steps,)

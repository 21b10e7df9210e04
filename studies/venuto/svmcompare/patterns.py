"""Figures 1 and 3 of "Support vector comparison machines": what pairs are, and what is learned from them.

>>> shape = geometry(n=12)
>>> shape.differences.shape, bool(np.array_equal(shape.pairs.y, np.sign(shape.gap) * (abs(shape.gap) > 1)))
((12, 2), True)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from concordant import synthetic
from concordant._internals import outcomes, squared_norm
from concordant.types import FloatArray
from studies.venuto.svmcompare.data import LabelledPairs, Pool, Split, load
from studies.venuto.svmcompare.grid import METHODS, Fit, Machine, fits, own_threshold

SIDE = 2.0  # of the square of left points, either way from 0
MESH = 81  # points a side at which ranking functions are drawn


@dataclass(frozen=True, eq=False)
class Geometry:
    """Pairs without noise, in three spaces.

    Attributes
    ----------
    pairs
        Points of the plane, r = the squared Euclidean norm.
    gap
        r(right) - r(left); ties up to 1.
    """

    pairs: LabelledPairs
    gap: FloatArray

    @property
    def features(self) -> FloatArray:
        """The squares of the coordinates: there r is their sum, linear with weights (1, 1)."""
        return self.pairs.points**2

    @property
    def differences(self) -> FloatArray:
        """Right less left in that space: one point a pair, and the boundaries are two lines."""
        return self.features[:, 1] - self.features[:, 0]


def geometry(*, n: int = 30, seed: int = 0) -> Geometry:
    """Draw pairs without noise, half of them ties."""
    drawn = synthetic.comparisons(n, "l2", tie_share=0.5, noise=0.0, seed=seed)
    return Geometry(LabelledPairs(drawn.pairs, drawn.y), drawn.gap)


@dataclass(frozen=True, eq=False)
class Learned:
    """A machine that validation pairs chose.

    Attributes
    ----------
    method, gamma, C, threshold
        What it is.
    validation, test
        Its zero-one error.
    agreement
        Spearman's correlation of its ranking function with the true one, over the mesh.
    levels
        Its ranking function at the points of the mesh, in units of the threshold; rows go up.
    """

    method: str
    gamma: float
    C: float
    threshold: float
    validation: float
    test: float
    agreement: float
    levels: FloatArray


@dataclass(frozen=True, eq=False)
class Patterns:
    """Ranking functions in the plane.

    Attributes
    ----------
    data, n, seed
        Which split.
    train
        The training pairs.
    axis
        Coordinates of the mesh, the same both ways.
    truth
        The true ranking function there.
    learned
        What each method made of the pairs.
    """

    data: str
    n: int
    seed: int
    train: LabelledPairs
    axis: FloatArray
    truth: FloatArray
    learned: tuple[Learned, ...]


def patterns(
    data: str = "l1",
    *,
    n: int = 100,
    seeds: int = 1,
    folder: str | os.PathLike[str] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> list[Patterns]:
    """Train all methods on n pairs, half of them ties, and look at their ranking functions, seed by seed.

    Parameters
    ----------
    data
        "l1", "l2" or "linf".
    n, seeds
        Pairs of each set, and splits.
    folder
        Folder of the datasets, for the published pairs of l2.
    step
        Called with what was done, once a split.
    """
    results = []
    for seed in range(1, seeds + 1):
        results.append(_learn_pattern(load(data, folder=folder, seed=seed), n, seed))
        step(f"{data}: {n} pairs, split {seed}")
    return results


def _learn_pattern(pool: Pool, n: int, seed: int) -> Patterns:
    """Learn a ranking function by each method from one split."""
    split, axis = pool.split(n, seed=seed), np.linspace(-SIDE, SIDE, MESH)
    mesh = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    truth = squared_norm(mesh, str(pool.norm))
    learned = tuple(_describe(split, method, mesh, truth) for method in METHODS)
    return Patterns(pool.name, n, seed, split.train, axis, truth.reshape(MESH, MESH), learned)


def _describe(split: Split, method: str, mesh: FloatArray, truth: FloatArray) -> Learned:
    """Choose a machine by its validation error, the first of the best, and look at it."""
    from scipy.stats import spearmanr

    error, machine, threshold = _best_machine(split, method)
    wrong = outcomes(machine.decision(split.test.points), threshold) != split.test.y
    levels = machine.rank_score(mesh)
    agreement = float(spearmanr(levels, truth).statistic)
    unit = threshold if threshold > 0.0 else 1.0
    shown = (levels / unit).reshape(MESH, MESH)
    setting = machine.setting
    return Learned(method, setting.gamma, setting.C, threshold, error, float(wrong.mean()), agreement, shown)


def _best_machine(split: Split, method: str) -> tuple[float, Machine, float]:
    """Least validation error, the first machine that has it, and its threshold."""
    fits_with_thresholds = ((fit, own_threshold(fit, split.train.y)) for fit in _candidates(split, method))
    scored = (
        (float(np.mean(outcomes(fit.others[0], threshold) != split.validation.y)), fit.machine, threshold)
        for fit, threshold in fits_with_thresholds
    )
    return min(scored, key=itemgetter(0))


def _candidates(split: Split, method: str) -> Iterator[Fit]:
    """Fit the machines of the grid, with their decisions on the validation pairs."""
    return fits(split.train, (split.validation.points,), methods=(method,))

"""Sums over rows from which a least-squares fit is found: the rows need not be in memory together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from concordant._segments import one_blas_thread
from concordant.exceptions import NonFiniteError
from concordant.scorers.spread import ROUNDING
from concordant.types import BoolArray, FloatArray

__all__ = ["Block", "Moments", "few_threads", "refuse_overflow"]

THREADED_FEATURES = 1000  # from here on a product of matrices is worth more than one thread
LARGEST = 2.0**1000  # of a sum of squares: what is made of it stays in the range of doubles


class Block(NamedTuple):
    """Rows of a regression: features, what they should add up to, and what each squared error weighs."""

    features: FloatArray
    targets: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Moments:
    """What a least-squares fit needs to know about its rows: weighted sums of them and of their products.

    Attributes
    ----------
    weight
        Sum of the weights.
    means, target_mean
        Weighted means of the features and of the targets; 0 where the fit has no intercept.
    gram, cross, square
        Weighted sums, about these means, of products of features, of features and target, and of the squared
        target.
    intercept
        Whether the fit has one.
    """

    weight: float
    means: FloatArray
    target_mean: float
    gram: FloatArray
    cross: FloatArray
    square: float
    intercept: bool

    @classmethod
    def of(
        cls,
        blocks: Iterable[Block],
        n_features: int,
        *,
        intercept: bool,
        start: Moments | None = None,
        told: Callable[[Moments], object] | None = None,
    ) -> Moments:
        """Add up blocks; each is read once.

        `start`: of blocks that have been added already, and are changed; `told` hears of each sum.
        """
        sums = cls.zero(n_features, intercept=intercept) if start is None else start
        with few_threads(n_features), np.errstate(over="ignore", invalid="ignore"):
            for block in blocks:
                sums = sums.plus(block)
                if told is not None:
                    told(sums)
        refuse_overflow(sums)
        return sums

    @classmethod
    def zero(cls, n_features: int, *, intercept: bool) -> Moments:
        """Of no rows."""
        n = n_features
        return cls(0.0, np.zeros(n), 0.0, np.zeros((n, n)), np.zeros(n), 0.0, intercept)

    def plus(self, block: Block) -> Moments:
        """Add a block; the arrays are added to in place.

        Products are taken about the block's own means: about 0, a level far from it would swallow the spread.
        How far those are from the means so far is one more row of the sums (Chan, Golub and LeVeque 1983).
        """
        weight = float(block.weights.sum())
        if not weight:
            return self
        share = weight / (self.weight + weight)
        with one_blas_thread():  # several would add up in another order, products of matrices apart
            features, targets, apart, off = self.about_means(block, weight, share)
            self.cross[:] += features.T @ targets
            square = float(targets @ targets)
        self.gram[:] += features.T @ features
        return replace(
            self,
            weight=self.weight + weight,
            means=self.means + share * apart,
            target_mean=self.target_mean + share * off,
            square=self.square + square,
        )

    def about_means(
        self, block: Block, weight: float, share: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Give rows and targets of a block about its means, by the roots of their weights, and the row more.

        Also how far the block's means are from those so far.
        """
        roots, means, level = np.sqrt(block.weights), np.zeros(len(self.means)), 0.0
        if self.intercept:
            means = block.weights @ block.features / weight
            level = float(block.weights @ block.targets) / weight
        features, targets = np.empty((len(roots) + 1, len(means))), np.empty(len(roots) + 1)
        np.subtract(block.features, means, out=features[:-1])
        features[:-1] *= roots[:, None]
        targets[:-1] = (block.targets - level) * roots
        apart, off = means - self.means, level - self.target_mean
        features[-1], targets[-1] = (math.sqrt(self.weight * share) * d for d in (apart, off))
        return features, targets, apart, off

    def merged(self, other: Moments) -> Moments:
        """Give the moments of the rows of both; neither is changed.

        How far their means are apart is one more row of the sums, as in `plus`.
        """
        if not (self.weight and other.weight):
            return self if self.weight else other
        with np.errstate(over="ignore", invalid="ignore"):  # who uses them looks
            share = other.weight / (self.weight + other.weight)
            apart, off = other.means - self.means, other.target_mean - self.target_mean
            size = math.sqrt(self.weight * share)
            row, last = size * apart, size * off
            gram = np.outer(row, row)
            gram += self.gram
            gram += other.gram
            return replace(
                self,
                weight=self.weight + other.weight,
                means=self.means + share * apart,
                target_mean=self.target_mean + share * off,
                gram=gram,
                cross=self.cross + other.cross + last * row,
                square=self.square + other.square + last * last,
            )

    @property
    def varies(self) -> BoolArray:
        """Whether each feature does, by more than rounding."""
        return np.asarray(self.deviation > ROUNDING * np.abs(self.means))

    @property
    def deviation(self) -> FloatArray:
        """Root mean square of each feature about its mean."""
        return np.asarray(np.sqrt(np.diag(self.gram) / (self.weight or 1.0)))

    def spread(self) -> FloatArray:
        """Root mean square of each feature about its mean; 1 where it has none."""
        return np.where(self.varies, self.deviation, 1.0)

    def scaled(self, scale: FloatArray) -> Moments:
        """Give the moments of features divided by these numbers; what does not vary becomes 0."""
        rates = np.where(self.varies, 1.0 / scale, 0.0)
        gram = self.gram * rates
        gram *= rates[:, None]
        return replace(self, means=self.means / scale, gram=gram, cross=self.cross * rates)


def refuse_overflow(sums: Moments) -> None:
    """Raise where sums of products have left the range of doubles."""
    squares = np.append(np.diag(sums.gram), sums.square)  # no product is larger
    if (bad := ~(squares < LARGEST)).any():
        first = int(np.argmax(bad))
        where = f"feature {first}" if first < len(sums.cross) else "the labels"
        hint = "rescale X, the labels or the weights."
        raise NonFiniteError("the sum of squares", float(squares[first]), where, int(bad.sum()), hint)


def few_threads(n_features: int) -> AbstractContextManager[object]:
    """Keep products of small matrices to one thread."""
    return one_blas_thread() if n_features < THREADED_FEATURES else nullcontext()

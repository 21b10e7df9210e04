"""Ridge regression solved exactly, from sums over its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant.exceptions import NonFiniteError
from concordant.solvers.linear_scores import ROUNDING
from concordant.solvers.solution import Solution
from concordant.types import BoolArray, FloatArray

# Sums over rows from which a least-squares fit is computed: the rows need not be in memory together.

THREADED_FEATURES = 1000  # from here on a product of matrices is worth more than one thread
LARGEST = 2.0**1000  # bound of a sum of squares: its products stay in the range of doubles


class Block(NamedTuple):
    """Rows of a regression: features, targets of their weighted sums, and weights of the squared errors."""

    features: FloatArray
    targets: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Moments:
    """Sufficient statistics of a least-squares fit: weighted sums of the rows and of their products.

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
        True if the fit has an intercept.
    """

    weight: float
    means: FloatArray
    target_mean: float
    gram: FloatArray
    cross: FloatArray
    square: float
    intercept: bool

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        n_features: int,
        *,
        intercept: bool,
        start: Moments | None = None,
        on_sum: Callable[[Moments], object] | None = None,
    ) -> Moments:
        """Add up blocks; each is read once.

        `start`: the moments of blocks that have been added already; its arrays are changed. `on_sum` is
        called with the moments after each block.
        """
        sums = cls.zero(n_features, intercept=intercept) if start is None else start
        with _few_threads(n_features), np.errstate(over="ignore", invalid="ignore"):
            for block in blocks:
                sums = sums.plus(block)
                if on_sum is not None:
                    on_sum(sums)
        check_overflow(sums)
        return sums

    @classmethod
    def zero(cls, n_features: int, *, intercept: bool) -> Moments:
        """Moments of no rows."""
        n = n_features
        return cls(0.0, np.zeros(n), 0.0, np.zeros((n, n)), np.zeros(n), 0.0, intercept)

    def plus(self, block: Block) -> Moments:
        """Add a block; the arrays are added to in place.

        Products are taken about the block's means: about 0, a level far from it would swallow the spread.
        How far those are from the means so far is one more row of the sums (Chan, Golub and LeVeque 1983).
        """
        weight = float(block.weights.sum())
        if not weight:
            return self
        share = weight / (self.weight + weight)
        with one_blas_thread():  # more threads would add up in another order, except in products of matrices
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
        """Centre a block, weight its rows by the roots of the weights, and append the row of its means.

        Also return how far the block's means are from those so far.
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
        features[-1], targets[-1] = (math.sqrt(self.weight * share) * offset for offset in (apart, off))
        return features, targets, apart, off

    def merged(self, other: Moments) -> Moments:
        """Return the moments of the rows of both; neither is changed.

        How far their means are apart is one more row of the sums, as in `plus`.
        """
        if not (self.weight and other.weight):
            return self if self.weight else other
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the sums
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
        """True for each feature that varies by more than rounding."""
        return np.asarray(self.deviation > ROUNDING * np.abs(self.means))

    @property
    def deviation(self) -> FloatArray:
        """Root mean square of each feature about its mean."""
        return np.asarray(np.sqrt(np.diag(self.gram) / (self.weight or 1.0)))

    def spread(self) -> FloatArray:
        """Root mean square of each feature about its mean; 1 if the feature does not vary."""
        return np.where(self.varies, self.deviation, 1.0)

    def scaled(self, scale: FloatArray) -> Moments:
        """Return the moments of features divided by these numbers; features that do not vary become 0."""
        rates = np.where(self.varies, 1.0 / scale, 0.0)
        gram = self.gram * rates
        gram *= rates[:, None]
        return replace(self, means=self.means / scale, gram=gram, cross=self.cross * rates)


def check_overflow(sums: Moments) -> None:
    """Raise if sums of products have left the range of doubles."""
    squares = np.append(np.diag(sums.gram), sums.square)  # no product is larger
    if (bad := ~(squares < LARGEST)).any():
        first = int(np.argmax(bad))
        where = f"feature {first}" if first < len(sums.cross) else "the labels"
        hint = "rescale X, the labels or the weights."
        raise NonFiniteError("the sum of squares", float(squares[first]), where, int(bad.sum()), hint)


def _few_threads(n_features: int) -> AbstractContextManager[object]:
    return one_blas_thread() if n_features < THREADED_FEATURES else nullcontext()


TOLERANCE = 1e-9  # relative to the objective at weights 0
REFINEMENTS = 3
SAFE = 1e-8  # share of the curvature that is the penalty's: from here on a Cholesky factor is accurate
HIDDEN = 8.0 * float(np.finfo(np.float64).eps)  # share of the largest eigenvalue that is rounding, a feature


def ridge(moments: Moments, alpha: float) -> Solution:
    """Minimise the weighted sum of squared errors plus alpha/2 times w @ w; an intercept is not penalised.

    The solution is exact up to rounding. Without a penalty, or with one that rounding hides, it is the
    shortest of the best ones, with each feature in units of its size, so that the units of features do not
    matter.

    Parameters
    ----------
    moments
        Moments of the rows.
    alpha
        Penalty, >= 0.

    Examples
    --------
    >>> from concordant.solvers.ridge import Block
    >>> rows = Block(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), np.ones(3))
    >>> solution = ridge(Moments.from_blocks([rows], 1, intercept=True), alpha=0.0)
    >>> solution.w, solution.converged
    (array([2.]), True)
    """
    cross, varies = moments.cross, moments.varies
    with _few_threads(len(cross)):
        inverse = Inverse.from_gram(moments.gram, alpha)
        w = np.where(varies, inverse(2.0 * cross), 0.0)
        for _ in range(REFINEMENTS):  # each removes the rounding error of the previous one
            w = np.where(varies, w - inverse(gradient(moments, alpha, w)), 0.0)
        return evaluate_weights(moments, alpha, w, inverse)


def gradient(moments: Moments, alpha: float, w: FloatArray) -> FloatArray:
    """Gradient of the objective at these weights."""
    return np.asarray(2.0 * (moments.gram @ w - moments.cross) + alpha * w)


def evaluate_weights(moments: Moments, alpha: float, w: FloatArray, inverse: Inverse) -> Solution:
    """Evaluate these weights: value, gradient, excess and convergence."""
    grad = gradient(moments, alpha, w)
    errors = max(moments.square - 2.0 * float(w @ moments.cross) + float(w @ moments.gram @ w), 0.0)
    value = errors + 0.5 * alpha * float(w @ w)
    norm, excess = float(np.linalg.norm(grad)), inverse.excess(grad)
    gap = norm * norm / (2.0 * alpha) if alpha > 0.0 else math.inf
    converged = excess <= TOLERANCE * moments.square
    return Solution(w, value, norm, excess, gap, 1, 1, converged, "tolerance" if converged else "precision")


@dataclass(frozen=True, eq=False)
class Inverse:
    """Inverse of the Hessian 2 gram + alpha, in coordinates in which its diagonal is 1."""

    units: FloatArray  # roots of the diagonal of the Hessian
    solve: Callable[[FloatArray], FloatArray]  # by the pseudo-inverse where it is singular
    curved: Callable[[FloatArray], float]  # half the squared length of a gradient, the Hessian being 1

    @classmethod
    def from_gram(cls, gram: FloatArray, alpha: float) -> Inverse:
        """Factorise by Cholesky if the penalty is large enough, else by eigenvalues."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        units = np.sqrt(2.0 * np.diag(gram) + alpha)
        units = np.where(units > 0.0, units, 1.0)
        if not len(units):
            return cls(units, np.copy, lambda _: 0.0)
        if alpha > SAFE * units.max() ** 2:
            hessian = _scaled_hessian(units, gram, alpha).T
            try:
                factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
            except LinAlgError:  # rounding: sums of very many rows
                return cls.by_eigenvalues(units, gram, alpha)
            solve = partial(cho_solve, factor, check_finite=False)
            return cls(units, solve, lambda grad: 0.5 * float(grad @ solve(grad)))
        return cls.by_eigenvalues(units, gram, alpha)

    @classmethod
    def by_eigenvalues(cls, units: FloatArray, gram: FloatArray, alpha: float) -> Inverse:
        """Factorise by eigenvalues, without the directions whose curvature rounding hides.

        A gradient along one of them lowers the objective by at least what it would if the curvature were as
        large as rounding can hide.
        """
        from scipy.linalg import eigh

        values, vectors = eigh(_scaled_hessian(units, gram, alpha).T, overwrite_a=True, check_finite=False)
        least = HIDDEN * len(units) * max(float(values.max()), 1.0)
        is_curved = values > least
        rates = np.where(is_curved, 1.0 / np.where(is_curved, values, 1.0), 0.0)
        curvature = np.maximum(values, least)
        return cls(
            units,
            lambda vector: vectors @ (rates * (vectors.T @ vector)),
            lambda grad: 0.5 * float(((vectors.T @ grad) ** 2 / curvature).sum()),
        )

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Multiply a vector by the inverse."""
        return np.asarray(self.solve(vector / self.units) / self.units)

    def excess(self, grad: FloatArray) -> float:
        """Newton decrement: distance of the objective from its optimum where it has this gradient."""
        return max(self.curved(grad / self.units), 0.0)


def _scaled_hessian(units: FloatArray, gram: FloatArray, alpha: float) -> FloatArray:
    """Return 2 gram + alpha, rows and columns divided by the units."""
    hessian = gram * (2.0 / units)
    hessian /= units[:, None]
    hessian[np.diag_indices(len(units))] += alpha / units / units
    return np.asarray(hessian)


def combine_solutions(first: Solution, second: Solution) -> Solution:
    """Combine the solutions of two problems that share no weight into that of their sum."""
    converged = first.converged and second.converged
    return Solution(
        w=np.concatenate((first.w, second.w)),
        value=first.value + second.value,
        gradient_norm=math.hypot(first.gradient_norm, second.gradient_norm),
        excess=first.excess + second.excess,
        gap=first.gap + second.gap,
        n_iter=max(first.n_iter, second.n_iter),
        n_gradients=max(first.n_gradients, second.n_gradients),
        converged=converged,
        stopped_by="tolerance" if converged else "precision",
    )

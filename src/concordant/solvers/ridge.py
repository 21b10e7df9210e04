"""Ridge regression solved exactly, from sums over blocks of rows that need not be in memory together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from concordant._segments import one_blas_thread
from concordant.exceptions import NonFiniteError
from concordant.scorers.spread import ROUNDING
from concordant.solvers.solution import Solution
from concordant.types import BoolArray, FloatArray

__all__ = ["Block", "Moments", "joined", "ridge"]

TOLERANCE = 1e-9  # of the objective at weights 0: what lies nearer to the optimum is there
THREADED_FEATURES = 1000  # from here on the product of a block is worth more than one thread
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
    n_passes
        How often the rows were read.
    """

    weight: float
    means: FloatArray
    target_mean: float
    gram: FloatArray
    cross: FloatArray
    square: float
    n_passes: int

    @classmethod
    def of(cls, blocks: Callable[[], Iterable[Block]], n_features: int, *, intercept: bool) -> Moments:
        """Add up blocks, once for the means if there is an intercept, and once for the products.

        Products are taken about the means: about 0, a level far from it would swallow the spread.
        """
        weight, means, level = 0.0, np.zeros(n_features), 0.0
        threads = one_blas_thread() if n_features < THREADED_FEATURES else nullcontext()
        with threads, np.errstate(over="ignore", invalid="ignore"):
            for features, targets, weights in blocks() if intercept else ():
                weight += float(weights.sum())
                means += weights @ features
                level += float(weights @ targets)
            means, level = (means / weight, level / weight) if weight > 0.0 else (0.0 * means, 0.0)
            sums = cls(0.0, means, level, np.zeros((n_features, n_features)), np.zeros(n_features), 0.0, 0)
            for block in blocks():
                sums = sums.plus(block)
        refuse_overflow(sums)
        return replace(sums, n_passes=1 + intercept)

    def plus(self, block: Block) -> Moments:
        """Add a block; the arrays are added to in place."""
        roots = np.sqrt(block.weights)
        features = block.features - self.means
        features *= roots[:, None]
        targets = (block.targets - self.target_mean) * roots
        self.gram[:] += features.T @ features
        self.cross[:] += features.T @ targets
        square = self.square + float(targets @ targets)
        return replace(self, weight=self.weight + float(block.weights.sum()), square=square)

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
        gram, cross = self.gram * rates[:, None] * rates, self.cross * rates
        return replace(self, means=self.means / scale, gram=gram, cross=cross)


def ridge(moments: Moments, alpha: float) -> Solution:
    """Minimise the weighted sum of squared errors plus alpha/2 times w @ w; an intercept is not penalised.

    The solution is exact up to rounding. Without a penalty, or with one that rounding hides, it is the
    shortest of the best ones.

    Parameters
    ----------
    moments
        Of the rows.
    alpha
        Penalty, >= 0.

    Examples
    --------
    >>> rows = Block(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), np.ones(3))
    >>> solution = ridge(Moments.of(lambda: [rows], 1, intercept=True), alpha=0.0)
    >>> solution.w, solution.converged
    (array([2.]), True)
    """
    gram, cross = moments.gram, moments.cross
    inverse = inverse_of(2.0 * gram, alpha)
    w = inverse(2.0 * cross)
    for _ in range(2):  # the second time takes away what rounding left
        grad = 2.0 * (gram @ w - cross) + alpha * w
        w = np.where(moments.varies, w - inverse(grad), 0.0)
    grad = 2.0 * (gram @ w - cross) + alpha * w
    errors = max(moments.square - 2.0 * float(w @ cross) + float(w @ gram @ w), 0.0)
    value = errors + 0.5 * alpha * float(w @ w)
    norm, excess = float(np.linalg.norm(grad)), max(0.5 * float(grad @ inverse(grad)), 0.0)
    gap = norm * norm / (2.0 * alpha) if alpha > 0.0 else math.inf
    converged = excess <= TOLERANCE * moments.square
    reason = "tolerance" if converged else "precision"
    return Solution(w, value, norm, excess, gap, 1, moments.n_passes, converged, reason)


def inverse_of(hessian: FloatArray, alpha: float) -> Callable[[FloatArray], FloatArray]:
    """Give the product with the inverse of hessian + alpha; with the pseudo-inverse, where it is singular."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

    n = len(hessian)
    if not n:
        return np.copy
    nothing = n * float(np.finfo(np.float64).eps) * float(np.diag(hessian).max(initial=0.0))
    if alpha > nothing:
        try:
            factor = cho_factor(hessian + alpha * np.eye(n))
        except LinAlgError:  # rounding: the penalty is too small to help
            pass
        else:
            return lambda vector: np.asarray(cho_solve(factor, vector))
    values, vectors = eigh(hessian)
    kept = values > n * np.finfo(np.float64).eps * max(values.max(initial=0.0), 0.0)
    rates = np.where(kept, 1.0 / (np.where(kept, values, 1.0) + alpha), 0.0)
    return lambda vector: np.asarray(vectors @ (rates * (vectors.T @ vector)))


def joined(first: Solution, second: Solution) -> Solution:
    """Give the solution of two problems that share no weight, as one of their sum."""
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


def refuse_overflow(sums: Moments) -> None:
    """Raise where sums of products have left the range of doubles."""
    squares = np.append(np.diag(sums.gram), sums.square)  # no product is larger
    if (bad := ~(squares < LARGEST)).any():
        first = int(np.argmax(bad))
        where = f"feature {first}" if first < len(sums.cross) else "the labels"
        hint = "rescale X, the labels or the weights."
        raise NonFiniteError("the sum of squares", float(squares[first]), where, int(bad.sum()), hint)

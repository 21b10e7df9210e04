"""Likelihood of strengths, advantage and tie parameter, and its maximum by Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from concordant.ratings.counts import Counts
from concordant.ratings.forms import Form
from concordant.supervision.columns import frozen
from concordant.types import FloatArray

__all__ = ["Likelihood", "Maximum", "Point", "maximise"]

DENSE_ITEMS = 300  # up to here a Newton step is solved by factors, beyond by conjugate gradients
MOST_PRODUCTS = 5000  # of a Newton step by conjugate gradients
FARTHEST = 300.0  # of log-strengths whose exponential is used; of tie parameters, what stands for infinity
SUFFICIENT = 1e-4  # share of the promised gain that a step must bring
ROUNDING = 1e-10  # gains below this share of the value cannot be told from rounding


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log-likelihood of the counts, less alpha / 2 times the squares of log-strengths and advantage.

    Its argument x is one number per item, then the advantage where it is free, then the tie parameter where
    that is. It is concave, and does not change where one number is added to all log-strengths (but for
    alpha).

    Attributes
    ----------
    counts, form
        The votes, and how probable they are.
    alpha
        Precision of the prior, >= 0.
    advantage
        Whether the first side's advantage is free; otherwise it is 0.
    tie
        Whether the tie parameter is free; otherwise it is `fixed_tie`.
    """

    counts: Counts
    form: Form
    alpha: float
    advantage: bool
    tie: bool
    fixed_tie: float

    @property
    def size(self) -> int:
        """Length of x."""
        return self.counts.n_items + self.advantage + self.tie

    def parts(self, x: FloatArray) -> tuple[FloatArray, float, float]:
        """Split x: log-strengths, advantage, tie parameter."""
        n = self.counts.n_items
        return x[:n], float(x[n]) if self.advantage else 0.0, float(x[-1]) if self.tie else self.fixed_tie

    def differences(self, x: FloatArray) -> tuple[FloatArray, float]:
        """First side's log-strength less the second's, for each pair; and the tie parameter."""
        strengths, advantage, tie = self.parts(x)
        return strengths[self.counts.first] - strengths[self.counts.second] + advantage, tie

    def centred(self, x: FloatArray) -> FloatArray:
        """Give x with log-strengths of mean 0."""
        n = self.counts.n_items
        return np.concatenate((x[:n] - x[:n].mean(), x[n:]))

    def at(self, x: FloatArray) -> Point:
        """Evaluate."""
        strengths, advantage, tie = self.parts(x)
        counts, n = self.counts, self.counts.n_items
        sums, nodes, curvature = np.empty(6), np.empty((n, 4)), np.empty(counts.n_pairs)
        far = bool(np.abs(strengths).max() + abs(advantage) > FARTHEST)
        half = 0.5 * strengths
        halves = np.stack((half, half if far else np.exp(half)), axis=1)
        votes = (frozen(column) for column in (counts.first, counts.second, counts.cells))
        tie = min(tie, FARTHEST)
        self.form.compiled()(*votes, halves, 0.5 * advantage, tie, far, sums, nodes, curvature)
        chosen = [k for k, free in enumerate((self.advantage, self.tie)) if free]
        penalty = np.array([self.alpha, 0.0])[chosen]
        value = sums[0] - 0.5 * self.alpha * (float(strengths @ strengths) + advantage**2)
        grad = np.concatenate((nodes[:, 0] - self.alpha * strengths, sums[1:3][chosen] - penalty * x[n:]))
        corner = np.array([[sums[3], sums[4]], [sums[4], sums[5]]])[np.ix_(chosen, chosen)]
        border = nodes[:, 2:][:, chosen]
        corner += np.diag(penalty)
        return Point(counts, x, float(value), grad, self.alpha, nodes[:, 1], border, corner, curvature)


@dataclass(frozen=True, eq=False)
class Point:
    """The likelihood at x, its gradient, and minus its Hessian in parts.

    That is alpha plus `degrees` on the items' diagonal, less each pair's `curvature` beside it; `border` and
    `corner` are the columns of the advantage and the tie parameter.
    """

    counts: Counts
    x: FloatArray
    value: float
    grad: FloatArray
    alpha: float
    degrees: FloatArray
    border: FloatArray
    corner: FloatArray
    curvature: FloatArray

    @cached_property
    def information(self) -> FloatArray:
        """Minus the Hessian, as a full matrix."""
        n = self.counts.n_items
        matrix = np.empty((len(self.x), len(self.x)))
        matrix[:n, :n] = np.diag(self.degrees + self.alpha) - symmetric(self.counts, self.curvature)
        matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = self.border, self.border.T, self.corner
        return matrix

    def times(self, vector: FloatArray) -> FloatArray:
        """Minus the Hessian, times a vector."""
        from concordant.ratings.kernels import laplacian_times

        n, out = self.counts.n_items, np.empty_like(vector)
        items, rest = vector[:n], vector[n:]
        ends = frozen(self.counts.first), frozen(self.counts.second)
        laplacian_times(*ends, self.curvature, items, out[:n])
        out[:n] += self.alpha * items + self.border @ rest
        out[n:] = self.border.T @ items + self.corner @ rest
        return out

    def step(self, accuracy: float) -> FloatArray:
        """Newton's step: exact for few items, otherwise to this relative residual."""
        if self.counts.n_items <= DENSE_ITEMS:
            return solved(self.grounded(), self.grad)
        from scipy.sparse.linalg import LinearOperator, cg

        scale: Any = np.concatenate((self.degrees + self.alpha, np.diagonal(self.corner)))
        scale = np.where(scale > 0.0, scale, 1.0)
        shape = (len(self.x), len(self.x))
        hessian = LinearOperator(shape, matvec=self.times_grounded, dtype=np.float64)
        inverse = LinearOperator(shape, matvec=lambda r: r / scale, dtype=np.float64)
        step, _ = cg(hessian, self.grad, rtol=accuracy, maxiter=MOST_PRODUCTS, M=inverse)
        return np.asarray(step, dtype=np.float64)

    @property
    def ground(self) -> float:
        """Curvature to add where all log-strengths change alike: there the likelihood has none."""
        return max(float(self.degrees.mean()), 1e-12)

    def grounded(self) -> FloatArray:
        """Minus the Hessian, with curvature in all directions."""
        n, matrix = self.counts.n_items, self.information.copy()
        matrix[:n, :n] += self.ground / n
        return matrix

    def times_grounded(self, vector: FloatArray) -> FloatArray:
        """Give the same, times a vector."""
        n, out = self.counts.n_items, self.times(vector)
        out[:n] += self.ground * vector[:n].mean()
        return out


def symmetric(counts: Counts, weights: FloatArray) -> FloatArray:
    """Give the full matrix with each pair's weight in both of its places."""
    n = counts.n_items
    half: FloatArray = np.bincount(counts.first * n + counts.second, weights, n * n).reshape(n, n)  # type: ignore[assignment]
    return half + half.T


def solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve for a positive definite matrix; by least squares where it is not, to rounding."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    try:
        answer = cho_solve(cho_factor(matrix, check_finite=False), right, check_finite=False)
    except LinAlgError:
        answer = lstsq(matrix, right)[0]
    return np.asarray(answer, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where the steps ended."""

    point: Point
    n_iter: int
    converged: bool


def maximise(likelihood: Likelihood, x: FloatArray, tol: float, max_iter: int) -> Maximum:
    """Climb by Newton steps until a further one would change no parameter by more than about `tol`."""
    few = likelihood.counts.n_items <= DENSE_ITEMS
    point, accuracy = likelihood.at(x), 0.0 if few else 0.1
    for n_iter in range(1, max_iter + 1):
        step = point.step(accuracy)
        following = advanced(likelihood, point, step)
        if following is None:
            return Maximum(point, n_iter, converged=False)
        moved = float(np.abs(following.x - point.x).max())
        point = following
        # A further step would be about this one's square, or its error.
        if moved * max(moved, 100.0 * accuracy) <= tol:
            return Maximum(point, n_iter, converged=True)
        accuracy = 0.0 if few else min(0.1, max(0.01 * moved, 1e-8))
    return Maximum(point, max_iter, converged=False)


def advanced(likelihood: Likelihood, point: Point, step: FloatArray) -> Point | None:
    """Go the whole step, or a part of it that climbs enough; None where no part does."""
    length, promise = 1.0, float(point.grad @ step)
    unclear = promise <= ROUNDING * abs(point.value)  # and then the step is good: it is short
    if likelihood.tie and step[-1] < 0.0 and np.isfinite(likelihood.form.least):
        length = min(1.0, 0.9 * (point.x[-1] - likelihood.form.least) / -step[-1])
    for _ in range(50):
        there = likelihood.at(likelihood.centred(point.x + length * step))
        if unclear or there.value >= point.value + SUFFICIENT * length * promise:
            return there
        length *= 0.5
    return None

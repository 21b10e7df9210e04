"""Likelihood of strengths, advantage and tie parameter, and its maximum by Newton steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from concordant.ratings.counts import Counts
from concordant.ratings.forms import Form
from concordant.supervision.columns import frozen
from concordant.types import FloatArray, IntArray

__all__ = ["Likelihood", "Maximum", "Point", "maximise", "solved", "symmetric"]

DENSE_ITEMS = 300  # up to here a Newton step is solved by factors, beyond by conjugate gradients first
FEW_PRODUCTS, MOST_PRODUCTS = 200, 5000  # of a step by conjugate gradients: before factors, and without them
FACTORED_ITEMS, FACTORED_PAIRS = 3000, 3  # factors for so many items, or for so many pairs an item
FARTHEST = 300.0  # of log-strengths whose exponential is used; of tie parameters, what stands for infinity
SUFFICIENT = 1e-4  # share of the promised gain that a step must bring
ROUNDING = 1e-11  # gains below this share of the value cannot be told from rounding
SMALL = 1e-6  # of a gradient where it ends, to the curvature
UNHELD = 1e-10  # to the curvature, of a prior that holds the mean of the ratings by itself


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

    @property
    def groups(self) -> IntArray:
        """Number of each item's part: in each the log-strengths of the maximum have mean 0, if alpha > 0.

        Without alpha there is one part, or no maximum.
        """
        return self.counts.parts if self.alpha > 0.0 else np.zeros(self.counts.n_items, dtype=np.int64)

    def centred(self, x: FloatArray) -> FloatArray:
        """Give x with log-strengths of mean 0 in each part."""
        n, groups = self.counts.n_items, self.groups
        means = np.bincount(groups, x[:n]) / np.bincount(groups)
        return np.concatenate((x[:n] - means[groups], x[n:]))

    def scaled(self, unit: float) -> Likelihood:
        """Give the likelihood of votes that weigh so many times as much, and alpha too."""
        return replace(self, counts=self.counts.with_cells(self.counts.cells * unit), alpha=self.alpha * unit)

    def at(self, x: FloatArray, *, valued: bool = True) -> Point:
        """Evaluate; the value is NaN unless `valued`."""
        strengths, advantage, tie = self.parts(x)
        counts, n = self.counts, self.counts.n_items
        sums, nodes, curvature = np.empty(6), np.empty((n, 4)), np.empty(counts.n_pairs)
        far = bool(np.abs(strengths).max() + abs(advantage) > FARTHEST)
        half = 0.5 * strengths
        halves = np.stack((half, half if far else np.exp(half)), axis=1)
        votes = (frozen(column) for column in (counts.first, counts.second, counts.cells))
        tie = min(tie, FARTHEST)
        asked = valued, self.advantage or self.tie
        self.form.compiled()(*votes, halves, 0.5 * advantage, tie, far, *asked, sums, nodes, curvature)
        chosen = [k for k, free in enumerate((self.advantage, self.tie)) if free]
        penalty = np.array([self.alpha, 0.0])[chosen]
        value = sums[0] - 0.5 * self.alpha * (float(strengths @ strengths) + advantage**2)
        value = value if valued else np.nan
        grad = np.concatenate((nodes[:, 0] - self.alpha * strengths, sums[1:3][chosen] - penalty * x[n:]))
        corner = np.array([[sums[3], sums[4]], [sums[4], sums[5]]])[np.ix_(chosen, chosen)]
        border = nodes[:, 2:][:, chosen]
        corner += np.diag(penalty)
        return Point(self, x, float(value), grad, nodes[:, 1], border, corner, curvature)


@dataclass(frozen=True, eq=False)
class Point:
    """The likelihood at x, its gradient, and minus its Hessian in parts.

    That is alpha plus `degrees` on the items' diagonal, less each pair's `curvature` beside it; `border` and
    `corner` are the columns of the advantage and the tie parameter.
    """

    likelihood: Likelihood
    x: FloatArray
    value: float
    grad: FloatArray
    degrees: FloatArray
    border: FloatArray
    corner: FloatArray
    curvature: FloatArray

    @property
    def counts(self) -> Counts:
        """The votes."""
        return self.likelihood.counts

    @property
    def alpha(self) -> float:
        """Precision of the prior."""
        return self.likelihood.alpha

    @cached_property
    def information(self) -> FloatArray:
        """Minus the Hessian, as a full matrix."""
        n = self.counts.n_items
        matrix = np.empty((len(self.x), len(self.x)))
        matrix[:n, :n] = np.diag(self.degrees + self.alpha) - symmetric(self.counts, self.curvature)
        matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = self.border, self.border.T, self.corner
        return matrix

    @cached_property
    def held(self) -> tuple[IntArray, FloatArray]:
        """Items to hold, the one with most curvature in each part, and the curvature to add to theirs.

        Where all log-strengths of a part change alike, only alpha has curvature. Adding to a single item
        changes no difference of a Newton step, and does not drown the curvature of items with few votes.
        """
        groups = self.likelihood.groups
        order = np.lexsort((-self.degrees, groups))
        first = order[np.searchsorted(groups[order], np.arange(groups.max() + 1))]
        needed = self.alpha * np.bincount(groups) <= UNHELD * self.degrees[first]
        return first[needed], np.where(self.degrees[first] > 0.0, self.degrees[first], 1.0)[needed]

    def grounded(self) -> FloatArray:
        """Minus the Hessian, with curvature in all directions."""
        (items, more), matrix = self.held, self.information.copy()
        matrix[items, items] += more
        return matrix

    def inverse(self, *, means: bool) -> FloatArray:
        """Inverse of minus the Hessian, on log-strengths of mean 0 in each part; with `means`, of these too.

        Only alpha says anything of a part's mean: its variance is 1 / (n alpha). Of a single part it is left
        out where that would hide the rest.
        """
        groups, matrix = self.likelihood.groups, solved(self.grounded(), np.eye(len(self.x)))
        loose = groups[self.held[0]] if means else np.arange(groups.max() + 1)
        for group in loose:
            part = np.flatnonzero(groups == group)
            matrix[part] -= matrix[part].mean(axis=0)
            matrix[:, part] -= matrix[:, part].mean(axis=1, keepdims=True)
            if means and groups.max() > 0:
                matrix[np.ix_(part, part)] += 1.0 / (len(part) * self.alpha)
        half: FloatArray = 0.5 * (matrix + matrix.T)
        return half

    def times(self, vector: FloatArray) -> FloatArray:
        """Minus the Hessian, times a vector."""
        from concordant.ratings.kernels import laplacian_times

        n, out = self.counts.n_items, np.empty_like(vector)
        items, rest = vector[:n], vector[n:]
        ends = frozen(self.counts.first), frozen(self.counts.second)
        laplacian_times(*ends, self.curvature, items, out[:n])
        out[:n] += self.alpha * items
        if len(rest):
            out[:n] += self.border @ rest
            out[n:] = self.border.T @ items + self.corner @ rest
        return out

    def settled(self) -> bool:
        """Whether the gradient is small: to the curvature, or as small as rounding leaves it."""
        scale = np.concatenate((self.degrees + self.alpha, np.diagonal(self.corner)))
        votes = self.counts.cells.sum(axis=1)
        n, ends = self.counts.n_items, (self.counts.first, self.counts.second)
        mass = np.full(len(self.x), votes.sum())
        mass[:n] = sum(np.bincount(end, votes, n) for end in ends)
        return bool((np.abs(self.grad) <= SMALL * scale + 64.0 * np.finfo(float).eps * mass).all())


class Steps:
    """Newton steps: by factors for few items, otherwise by conjugate gradients for as long as these do."""

    def __init__(self, counts: Counts) -> None:
        n, self.dense = counts.n_items, counts.n_items <= FACTORED_ITEMS
        self.exact = n <= DENSE_ITEMS
        self.factored = self.dense or counts.n_pairs <= FACTORED_PAIRS * n

    def step(self, point: Point, accuracy: float) -> tuple[FloatArray, bool]:
        """Give the step, exact or to this relative residual, and whether it is that."""
        if not self.exact:
            step, reached = by_products(point, accuracy, FEW_PRODUCTS if self.factored else MOST_PRODUCTS)
            if reached or not self.factored:
                return step, reached
            self.exact = True  # on long chains products take ever longer, and factors are sparse
        return solved(point.grounded(), point.grad) if self.dense else by_sparse_factors(point), True


def by_products(point: Point, accuracy: float, most: int) -> tuple[FloatArray, bool]:
    """Newton's step by conjugate gradients; the gradient is in the range even of a singular Hessian."""
    from scipy.sparse.linalg import LinearOperator, cg

    scale: Any = np.concatenate((point.degrees + point.alpha, np.diagonal(point.corner)))
    scale = np.where(scale > 0.0, scale, 1.0)
    shape = (len(point.x), len(point.x))
    hessian = LinearOperator(shape, matvec=point.times, dtype=np.float64)
    inverse = LinearOperator(shape, matvec=lambda r: r / scale, dtype=np.float64)
    step, failed = cg(hessian, point.grad, rtol=accuracy, maxiter=most, M=inverse)
    return np.asarray(step, dtype=np.float64), not failed


def by_sparse_factors(point: Point) -> FloatArray:
    """Newton's step by factors of the items' part, and of what it leaves of advantage and tie parameter."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    counts, n = point.counts, point.counts.n_items
    diagonal, items = point.degrees + point.alpha, np.arange(n)
    diagonal[point.held[0]] += point.held[1]
    ends = np.concatenate((items, counts.first, counts.second)), np.concatenate((items, counts.second, counts.first))
    entries = np.concatenate((diagonal, -point.curvature, -point.curvature))
    matrix = coo_array((entries, ends), shape=(n, n)).tocsc()
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    answers = factors.solve(np.column_stack((point.grad[:n], point.border)))
    own, through = answers[:, 0], answers[:, 1:]
    rest = solved(point.corner - point.border.T @ through, point.grad[n:] - point.border.T @ own)
    return np.concatenate((own - through @ rest, rest))


def symmetric(counts: Counts, weights: FloatArray) -> FloatArray:
    """Give the full matrix with each pair's weight in both of its places."""
    n = counts.n_items
    half: FloatArray = np.bincount(counts.first * n + counts.second, weights, n * n).reshape(n, n)  # type: ignore[assignment]
    return half + half.T


def solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve for a positive definite matrix; by least squares where it is not, to rounding."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    if not matrix.size:
        return right
    try:
        answer = cho_solve(cho_factor(matrix, check_finite=False), right, check_finite=False)
    except LinAlgError:
        answer = lstsq(matrix, right)[0]
    return np.asarray(answer, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where the steps ended."""

    x: FloatArray
    n_iter: int
    converged: bool


def maximise(likelihood: Likelihood, x: FloatArray, tol: float, max_iter: int) -> Maximum:
    """Climb by Newton steps until a further one would change no parameter by more than about `tol`.

    The votes are solved as shares of all votes: no weight is too small or too large.
    """
    cells = likelihood.counts.cells
    heaviest = float(cells.max(initial=0.0))
    if heaviest <= 0.0:  # no votes: the prior's mean
        return Maximum(np.zeros_like(x), 0, converged=True)
    shares = likelihood.scaled(1.0 / heaviest / float((cells / heaviest).sum()))
    steps = Steps(shares.counts)
    point, accuracy = shares.at(x, valued=False), 0.0 if steps.exact else 0.1
    for n_iter in range(1, max_iter + 1):
        step, reached = steps.step(point, accuracy)
        following = advanced(shares, point, step)
        if following is None:
            return Maximum(point.x, n_iter, point.settled())
        moved = float(np.abs(following.x - point.x).max())
        point, accuracy = following, 0.0 if steps.exact else accuracy
        # A further step would be about this one's square, or its error.
        if moved * max(moved, 100.0 * accuracy) <= tol:
            return Maximum(point.x, n_iter, reached and point.settled())
        accuracy = 0.0 if steps.exact else min(0.1, max(0.01 * moved, 1e-8))
    return Maximum(point.x, max_iter, converged=False)


def advanced(likelihood: Likelihood, point: Point, step: FloatArray) -> Point | None:
    """Go the whole step, or a part of it that climbs enough; None where no part does.

    A short step needs no trial: along it the curvature c grows to at most c exp(reach), so that the gain is
    at least 1 - (exp(reach) - 1 - reach) / reach^2 > 1/4 of the promised one. Where the gain is too small to
    be told from rounding, the slope decides: at the end it may be down again, but half as steeply.
    """
    length, promise = 1.0, float(point.grad @ step)
    if not promise > 0.0:
        return None
    n, least = likelihood.counts.n_items, likelihood.form.least
    reach = float(np.ptp(step[:n]) + np.abs(step[n:]).sum())
    if likelihood.tie and np.isfinite(least):
        room = float(point.x[-1] - least)
        length = min(1.0, 0.9 * room / max(-step[-1], 1e-300))
        reach = max(reach, 4.0 * abs(step[-1]) / room)
    if reach <= 1.0:
        return likelihood.at(likelihood.centred(point.x + step), valued=False)
    here = point if np.isfinite(point.value) else likelihood.at(point.x)
    for _ in range(50):
        there = likelihood.at(likelihood.centred(point.x + length * step))
        gain, aim = there.value - here.value, SUFFICIENT * length * promise
        unclear = max(aim, abs(gain)) <= ROUNDING * abs(here.value)
        if gain >= aim if not unclear else float(there.grad @ step) >= -0.5 * promise:
            return there
        length *= 0.5
    return None

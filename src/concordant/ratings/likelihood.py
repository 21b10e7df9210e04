"""Likelihood of strengths, advantage and tie parameter, its gradient and its curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from concordant.ratings.counts import Counts
from concordant.ratings.forms import Form
from concordant.supervision.columns import frozen
from concordant.types import FloatArray, IntArray

__all__ = ["FARTHEST", "Likelihood", "Point", "solved", "symmetric"]

FARTHEST = 300.0  # of log-strengths whose exponential is used; of tie parameters, what stands for infinity
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
        small = SMALL * np.concatenate((self.degrees + self.alpha, np.diagonal(self.corner)))
        if (np.abs(self.grad) <= small).all():
            return True
        votes = self.counts.cells.sum(axis=1)
        n, ends = self.counts.n_items, (self.counts.first, self.counts.second)
        mass = np.full(len(self.x), votes.sum())
        mass[:n] = sum(np.bincount(end, votes, n) for end in ends)
        return bool((np.abs(self.grad) <= small + 64.0 * np.finfo(float).eps * mass).all())


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

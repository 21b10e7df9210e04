"""Likelihood of strengths, advantage and tie parameter: value, gradient, curvature and maximum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from concordant._base.validate import freeze
from concordant.comparisons.ratings.votes import Counts
from concordant.types import FloatArray, IntArray

# Forms: probabilities of a win, a tie and a loss, given the difference of two log-strengths.


@dataclass(frozen=True)
class TieForm:
    """Model of an outcome; functions take differences d of log-strengths and the tie parameter."""

    kernel: str  # name of the compiled pass over pairs
    probabilities: Callable[[FloatArray, float], FloatArray]  # of win, tie and loss: shape (n, 3)
    # Derivatives of the three log-probabilities by d, and by the tie parameter: twice (n, 3).
    scores: Callable[[FloatArray, float], tuple[FloatArray, FloatArray]]
    no_ties: float  # tie parameter at which ties have probability 0
    first_guess: Callable[[float], float]  # of the tie parameter, given the share of ties
    least: float  # lower bound of the tie parameter

    def load_kernel(self) -> Callable[..., Any]:
        """Import and return the compiled kernel."""
        from concordant.comparisons.ratings import rating_kernels as kernels

        return getattr(kernels, self.kernel)  # type: ignore[no-any-return]


def _sigmoid(d: FloatArray) -> FloatArray:
    """Compute 1 / (1 + exp(-d)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * d))


def _davidson_probabilities(d: FloatArray, tie: float) -> FloatArray:
    """Compute exp(d / 2), nu and exp(-d / 2), over their sum; tie = log(nu)."""
    logs = np.stack((0.5 * d, np.full_like(d, tie), -0.5 * d), axis=1)
    parts = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares: FloatArray = parts / parts.sum(axis=1, keepdims=True)
    return shares


def _davidson_scores(d: FloatArray, tie: float) -> tuple[FloatArray, FloatArray]:
    """Observed minus expected: half a point per side, and ties."""
    win, level, loss = _davidson_probabilities(d, tie).T
    by_d = np.array([0.5, 0.0, -0.5]) - 0.5 * (win - loss)[:, None]
    return by_d, np.array([0.0, 1.0, 0.0]) - level[:, None]


def _rao_kupper_probabilities(d: FloatArray, tie: float) -> FloatArray:
    """Probabilities that the difference, with logistic noise, exceeds the threshold log(theta), or not."""
    win, loss = _sigmoid(d - tie), _sigmoid(-d - tie)
    level = np.clip(1.0 - win - loss, 0.0, 1.0) if tie > 1.0 else np.expm1(2.0 * tie) * win * loss
    return np.stack((win, level, loss), axis=1)


def _rao_kupper_scores(d: FloatArray, tie: float) -> tuple[FloatArray, FloatArray]:
    """Derivatives of the log-probabilities; a tie is on the near side of both thresholds."""
    not_win, not_loss = _sigmoid(tie - d), _sigmoid(d + tie)
    excess = np.expm1(2.0 * tie)
    wide = 2.0 + 2.0 / excess if excess > 0.0 else 0.0
    by_d = np.stack((not_win, not_win - not_loss, -not_loss), axis=1)
    return by_d, np.stack((-not_win, wide - not_win - not_loss, -not_loss), axis=1)


DAVIDSON = TieForm(
    "davidson",
    _davidson_probabilities,
    _davidson_scores,
    no_ties=-np.inf,
    first_guess=lambda share: float(np.log(2.0 * share / (1.0 - share))),
    least=-np.inf,
)
RAO_KUPPER = TieForm(
    "rao_kupper",
    _rao_kupper_probabilities,
    _rao_kupper_scores,
    no_ties=0.0,
    first_guess=lambda share: float(np.log((1.0 + share) / (1.0 - share))),
    least=0.0,
)


FARTHEST = 300.0  # of log-strengths whose exponential is used; of tie parameters, what stands for infinity
SMALL = 1e-6  # of a gradient where it ends, to the curvature
UNHELD = 1e-10  # to the curvature, of a prior that determines the mean of the ratings without an anchor


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log-likelihood of the counts, minus alpha / 2 times the squares of log-strengths and advantage.

    The argument x holds one number per item, then the advantage if it is free, then the tie parameter if it
    is free. The function is concave and, except for alpha, invariant to adding a number to all log-strengths.
    """

    counts: Counts
    form: TieForm
    alpha: float  # precision of the prior, >= 0
    advantage: bool  # True if the first side's advantage is free; otherwise it is 0
    tie: bool  # True if the tie parameter is free; otherwise it is `fixed_tie`
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
        """Log-strength of the first side minus that of the second, for each pair; and the tie parameter."""
        strengths, advantage, tie = self.parts(x)
        return strengths[self.counts.first] - strengths[self.counts.second] + advantage, tie

    @property
    def groups(self) -> IntArray:
        """Number of the part of each item; if alpha > 0, the maximum has mean log-strength 0 in each part.

        With alpha = 0 there is one part, or no maximum.
        """
        return self.counts.parts if self.alpha > 0.0 else np.zeros(self.counts.n_items, dtype=np.int64)

    def center(self, x: FloatArray) -> FloatArray:
        """Shift the log-strengths in x to mean 0 in each part."""
        n, groups = self.counts.n_items, self.groups
        means = np.bincount(groups, x[:n]) / np.bincount(groups)
        return np.concatenate((x[:n] - means[groups], x[n:]))

    def scale_votes(self, unit: float) -> Likelihood:
        """Multiply the weights of the votes and alpha by a unit."""
        return replace(self, counts=self.counts.with_cells(self.counts.cells * unit), alpha=self.alpha * unit)

    def at(self, x: FloatArray, *, valued: bool = True) -> LikelihoodPoint:
        """Evaluate at x; the value is NaN unless `valued`."""
        strengths, advantage, tie = self.parts(x)
        counts, n = self.counts, self.counts.n_items
        sums, nodes, curvature = np.empty(6), np.empty((n, 4)), np.empty(counts.n_pairs)
        far = bool(np.abs(strengths).max() + abs(advantage) > FARTHEST)
        half = 0.5 * strengths
        halves = np.stack((half, half if far else np.exp(half)), axis=1)
        votes = (freeze(column) for column in (counts.first, counts.second, counts.cells))
        tie = min(tie, FARTHEST)
        flags = valued, self.advantage or self.tie
        self.form.load_kernel()(*votes, halves, 0.5 * advantage, tie, far, *flags, sums, nodes, curvature)
        free_numbers = [k for k, free in enumerate((self.advantage, self.tie)) if free]
        penalty = np.array([self.alpha, 0.0])[free_numbers]
        value = sums[0] - 0.5 * self.alpha * (float(strengths @ strengths) + advantage**2)
        value = value if valued else np.nan
        by_strength = nodes[:, 0] - self.alpha * strengths
        grad = np.concatenate((by_strength, sums[1:3][free_numbers] - penalty * x[n:]))
        corner = np.array([[sums[3], sums[4]], [sums[4], sums[5]]])[np.ix_(free_numbers, free_numbers)]
        border = nodes[:, 2:][:, free_numbers]
        corner += np.diag(penalty)
        return LikelihoodPoint(self, x, float(value), grad, nodes[:, 1], border, corner, curvature)


@dataclass(frozen=True, eq=False)
class LikelihoodPoint:
    """Likelihood at x, with its gradient and minus its Hessian in blocks.

    The block of the items has alpha plus `degrees` on its diagonal, and minus the `curvature` of each pair
    off it; `border` and `corner` are the columns of the advantage and the tie parameter.
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
        matrix[:n, :n] = np.diag(self.degrees + self.alpha) - symmetric_matrix(self.counts, self.curvature)
        matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = self.border, self.border.T, self.corner
        return matrix

    @cached_property
    def anchors(self) -> tuple[IntArray, FloatArray]:
        """Anchor items, the one with most curvature in each part, and the curvature to add on their diagonal.

        If all log-strengths of a part shift equally, only alpha has curvature. Adding it at a single item
        changes no difference of a Newton step, and does not swamp the curvature of items with few votes.
        """
        groups = self.likelihood.groups
        order = np.lexsort((-self.degrees, groups))
        first = order[np.searchsorted(groups[order], np.arange(groups.max() + 1))]
        needed = self.alpha * np.bincount(groups) <= UNHELD * self.degrees[first]
        return first[needed], np.where(self.degrees[first] > 0.0, self.degrees[first], 1.0)[needed]

    def anchored_information(self) -> FloatArray:
        """Minus the Hessian, with the curvature of the anchors added: positive definite."""
        (items, more), matrix = self.anchors, self.information.copy()
        matrix[items, items] += more
        return matrix

    def inverse(self, *, means: bool) -> FloatArray:
        """Inverse of minus the Hessian, on log-strengths of mean 0 in each part; and on means with `means`.

        Only alpha determines the mean of a part: its variance is 1 / (n alpha). For a single part it is left
        out where it would hide the rest.
        """
        groups = self.likelihood.groups
        matrix = _solve_positive(self.anchored_information(), np.eye(len(self.x)))
        loose = groups[self.anchors[0]] if means else np.arange(groups.max() + 1)
        for group in loose:
            part = np.flatnonzero(groups == group)
            matrix[part] -= matrix[part].mean(axis=0)
            matrix[:, part] -= matrix[:, part].mean(axis=1, keepdims=True)
            if means and groups.max() > 0:
                matrix[np.ix_(part, part)] += 1.0 / (len(part) * self.alpha)
        return 0.5 * (matrix + matrix.T)

    def times(self, vector: FloatArray) -> FloatArray:
        """Product of minus the Hessian and a vector."""
        from concordant.comparisons.ratings.rating_kernels import laplacian_times

        n, out = self.counts.n_items, np.empty_like(vector)
        items, rest = vector[:n], vector[n:]
        ends = freeze(self.counts.first), freeze(self.counts.second)
        laplacian_times(*ends, self.curvature, items, out[:n])
        out[:n] += self.alpha * items
        if len(rest):
            out[:n] += self.border @ rest
            out[n:] = self.border.T @ items + self.corner @ rest
        return out

    def is_settled(self) -> bool:
        """True if the gradient is small relative to the curvature, or as small as rounding allows."""
        small = SMALL * np.concatenate((self.degrees + self.alpha, np.diagonal(self.corner)))
        if (np.abs(self.grad) <= small).all():
            return True
        votes = self.counts.cells.sum(axis=1)
        n, ends = self.counts.n_items, (self.counts.first, self.counts.second)
        mass = np.full(len(self.x), votes.sum())
        mass[:n] = sum(np.bincount(end, votes, n) for end in ends)
        return bool((np.abs(self.grad) <= small + 64.0 * np.finfo(float).eps * mass).all())


def symmetric_matrix(counts: Counts, weights: FloatArray) -> FloatArray:
    """Build the symmetric matrix of the weights of the pairs."""
    n = counts.n_items
    half: FloatArray = np.bincount(counts.first * n + counts.second, weights, n * n).reshape(n, n)  # type: ignore[assignment]
    return half + half.T


def _solve_positive(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a system with a positive definite matrix; by least squares if rounding makes it indefinite."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    if not matrix.size:
        return right
    try:
        answer = cho_solve(cho_factor(matrix, check_finite=False), right, check_finite=False)
    except LinAlgError:
        answer = lstsq(matrix, right)[0]
    return np.asarray(answer, dtype=np.float64)


# The maximum of a likelihood, by Newton steps: full factors, conjugate gradients, or sparse factors.

DENSE_ITEMS = 300  # up to here a Newton step is solved by factors, beyond by conjugate gradients first
FEW_PRODUCTS, MOST_PRODUCTS = 200, 5000  # of a step by conjugate gradients: before factors, and without them
FACTORED_ITEMS, FACTORED_PAIRS = 3000, 3  # factors for so many items, or for so many pairs an item
SUFFICIENT = 1e-4  # share of the promised gain that a step must bring
ROUGH = 1e-2  # steps below it shrink at once, but for rounding
ROUNDING = 1e-11  # gains below this share of the value may be rounding


class Steps:
    """Newton steps: by factors for few items, otherwise by conjugate gradients as long as these converge."""

    def __init__(self, counts: Counts) -> None:
        n, self.dense = counts.n_items, counts.n_items <= FACTORED_ITEMS
        self.exact = n <= DENSE_ITEMS
        self.factored = self.dense or counts.n_pairs <= FACTORED_PAIRS * n

    def step(self, point: LikelihoodPoint, accuracy: float) -> tuple[FloatArray, bool]:
        """Compute the step, exact or to this relative residual; also return whether it is that accurate."""
        if not self.exact:
            step, reached = _by_products(point, accuracy, FEW_PRODUCTS if self.factored else MOST_PRODUCTS)
            if reached or not self.factored:
                return step, reached
            self.exact = True  # on long chains products take too long, and factors are sparse
        if self.dense:
            return _solve_positive(point.anchored_information(), point.grad), True
        return _by_sparse_factors(point), True


def _by_products(point: LikelihoodPoint, accuracy: float, most: int) -> tuple[FloatArray, bool]:
    """Newton step by conjugate gradients.

    Curvature is added for equal shifts of all log-strengths of a part: the gradient, and so the step, has no
    such component except by rounding.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    n, groups = point.counts.n_items, point.likelihood.groups
    ground = np.bincount(groups, point.degrees) / np.bincount(groups) ** 2

    def times(vector: FloatArray) -> FloatArray:
        out = point.times(vector)
        out[:n] += (ground * np.bincount(groups, vector[:n]))[groups]
        return out

    scale: Any = np.concatenate((point.degrees + point.alpha, np.diagonal(point.corner)))
    scale = np.where(scale > 0.0, scale, 1.0)
    shape = (len(point.x), len(point.x))
    hessian = LinearOperator(shape, matvec=times, dtype=np.float64)
    inverse = LinearOperator(shape, matvec=lambda r: r / scale, dtype=np.float64)
    step, failed = cg(hessian, point.grad, rtol=accuracy, maxiter=most, M=inverse)
    return np.asarray(step, dtype=np.float64), not failed


def _by_sparse_factors(point: LikelihoodPoint) -> FloatArray:
    """Newton step by factors of the items' block, and its Schur complement in advantage and tie parameter."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    counts, n = point.counts, point.counts.n_items
    diagonal, items = point.degrees + point.alpha, np.arange(n)
    diagonal[point.anchors[0]] += point.anchors[1]
    rows = np.concatenate((items, counts.first, counts.second))
    columns = np.concatenate((items, counts.second, counts.first))
    entries = np.concatenate((diagonal, -point.curvature, -point.curvature))
    matrix = coo_array((entries, (rows, columns)), shape=(n, n)).tocsc()
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    answers = factors.solve(np.column_stack((point.grad[:n], point.border)))
    gradient_answer, through = answers[:, 0], answers[:, 1:]
    right = point.grad[n:] - point.border.T @ gradient_answer
    rest = _solve_positive(point.corner - point.border.T @ through, right)
    return np.concatenate((gradient_answer - through @ rest, rest))


@dataclass(frozen=True, eq=False)
class Maximum:
    """Final point of the Newton steps, and the likelihood there."""

    x: FloatArray
    value: float
    n_iter: int
    converged: bool


def maximise(likelihood: Likelihood, x: FloatArray, tol: float, max_iter: int) -> Maximum:
    """Maximise by Newton steps until a further step would change no parameter by more than about `tol`.

    Votes are solved as shares of all votes: no weight is too small or too large.
    """
    heaviest = float(likelihood.counts.totals.max())
    if heaviest <= 0.0:  # no votes: the prior's mean
        return Maximum(np.zeros_like(x), 0.0, 0, converged=True)
    unit = 1.0 / heaviest / float((likelihood.counts.totals / heaviest).sum())
    shares = likelihood.scale_votes(unit)
    point, n_iter, converged = _climb(shares, x, tol, max_iter)
    point = point if np.isfinite(point.value) else shares.at(point.x)
    return Maximum(point.x, point.value / unit, n_iter, converged)


def _guess_start(point: LikelihoodPoint) -> FloatArray:
    """Guess log-strengths from the gradient at equal strengths, as if all opponents were equal."""
    n, scale = point.counts.n_items, point.degrees + point.alpha
    lead = 0.5 * point.grad[:n] / np.where(scale > 0.0, scale, 1.0)
    odds = 2.0 * np.arctanh(lead.clip(-0.95, 0.95))
    return point.likelihood.center(np.concatenate((odds, point.x[n:])))


def _climb(
    likelihood: Likelihood, x: FloatArray, tol: float, max_iter: int
) -> tuple[LikelihoodPoint, int, bool]:
    """Take Newton steps; return the final point, their number, and True if it is the maximum."""
    steps, point = Steps(likelihood.counts), likelihood.at(x, valued=False)
    if not steps.exact and not x[: likelihood.counts.n_items].any():
        point = likelihood.at(_guess_start(point), valued=False)
    accuracy, before = 0.0 if steps.exact else 0.1, np.inf
    for n_iter in range(1, max_iter + 1):
        step, reached = steps.step(point, accuracy)
        accuracy = 0.0 if steps.exact else accuracy
        following = _advance(likelihood, point, step, tol)
        if following is None:
            return point, n_iter, point.is_settled()
        moved = float(np.abs(following.x - point.x).max())
        point = following
        # A further step would be about this one's square, or its error.
        if moved * max(moved, 100.0 * accuracy) <= tol:
            return point, n_iter, reached and point.is_settled()
        if ROUGH > moved >= 0.5 * before and point.is_settled():  # short, not shrinking: rounding
            return point, n_iter, reached
        before = moved
        accuracy = 0.0 if steps.exact else min(0.1, max(0.01 * moved, 1e-8))
    return point, max_iter, False


def _advance(
    likelihood: Likelihood, point: LikelihoodPoint, step: FloatArray, tol: float
) -> LikelihoodPoint | None:
    """Take the whole step, or a share of it with enough gain; None if there is none.

    A short step needs no trial: along it the curvature c grows to at most c exp(reach), so that the gain is
    at least 1 - (exp(reach) - 1 - reach) / reach^2 > 1/4 of the predicted gain. If the gain is as small as
    rounding, the slope decides: at the end it may be negative, but at most half as steep.
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
        last = reach**2 <= tol
        return likelihood.at(likelihood.center(point.x + step), valued=last)
    here = point if np.isfinite(point.value) else likelihood.at(point.x)
    for _ in range(50):
        there = likelihood.at(likelihood.center(point.x + length * step))
        gain, aim = there.value - here.value, SUFFICIENT * length * promise
        unclear = max(aim, abs(gain)) <= ROUNDING * abs(here.value)
        if gain >= aim if not unclear else float(there.grad @ step) >= -0.5 * promise:
            return there
        length *= 0.5
    return None

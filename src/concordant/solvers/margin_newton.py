"""Newton steps on the comparison family, one pass over the rows each; and the gap to the dual."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from concordant._segments import n_threads
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["Point", "Problem", "certified", "cornered", "look", "settle"]

NOISE = 1e-11  # share of the objective below which a step may be rounding
DAMPING = 1e-9  # share of the total cost, on the bias: no pair may be bent
PASSES = 60  # of a line search
SERIAL = 200_000  # numbers up to which a second thread costs more than it saves
TINY, ROUNDOFF, FLAT = 1e-300, 1e-10, 1e-100


@dataclass(frozen=True, eq=False)
class Problem:
    """Differences, which are ties, what each costs, and the loss."""

    rows: FloatArray
    tie: BoolArray
    cost: FloatArray
    has_bias: bool
    kind: int

    def part(self, chosen: IntArray) -> Problem:
        """Give the problem of some of the rows, at the same total cost."""
        share = len(self.cost) / len(chosen)
        return Problem(
            self.rows[chosen], self.tie[chosen], share * self.cost[chosen], self.has_bias, self.kind
        )


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, and everything a step needs to know there.

    `grads` are the slopes times the rows of differences and of ties; `sums` the loss, its slope and curvature
    in the bias, and the totals of the dual variables of differences and of ties; `curve` the curvatures of
    each pair in its score, and in score and bias.
    """

    w: FloatArray
    bias: float
    delta: float
    g: FloatArray
    curve: FloatArray
    grads: FloatArray
    sums: FloatArray
    has_bias: bool

    @property
    def grad(self) -> FloatArray:
        """Gradient of the objective in the weights and the bias."""
        slope = self.sums[1] if self.has_bias else 0.0
        joint: FloatArray = np.append(self.w + self.grads.sum(axis=0), slope)
        return joint

    @property
    def value(self) -> float:
        """The objective, hinges rounded."""
        return 0.5 * float(self.w @ self.w) + float(self.sums[0])


def cornered(problem: Problem, point: Point) -> tuple[FloatArray, float, float, float] | None:
    """Try for the exact optimum, once no more losses are bent than weights can put at their corner."""
    from concordant.solvers.margin_corner import CORNERS, Terms, exact_corner

    if np.count_nonzero(point.curve[:, 0]) > min(2 * len(point.w) + 2, CORNERS):
        return None
    terms = Terms.of(problem.tie, problem.cost, has_bias=problem.has_bias)
    return exact_corner(problem.rows, terms, point.g, point.bias, point.delta, has_bias=problem.has_bias)


def look(problem: Problem, w: FloatArray, bias: float, delta: float) -> Point:
    """Evaluate: one pass over the rows, on all threads."""
    from concordant.solvers.margin_kernels import sweep

    n, p = problem.rows.shape
    cuts = np.linspace(0, n, (n_threads() if n * p > SERIAL else 1) + 1).astype(np.int64)
    grads, sums = np.zeros((len(cuts) - 1, 2, p)), np.zeros((len(cuts) - 1, 5))
    g, curve = np.empty(n), np.empty((n, 2))

    def part(k: int) -> None:
        sweep(
            problem.rows, problem.tie, problem.cost, w, bias, problem.kind, delta,
            cuts[k], cuts[k + 1], g, curve, grads[k], sums[k],
        )  # fmt: skip

    if len(cuts) == 2:
        part(0)
    else:
        with ThreadPoolExecutor(len(cuts) - 1) as pool:
            list(pool.map(part, range(len(cuts) - 1)))
    return Point(w, bias, delta, g, curve, grads.sum(axis=0), sums.sum(axis=0), problem.has_bias)


def settle(problem: Problem, point: Point, budget: int, least: float) -> tuple[Point, int]:
    """Take Newton steps until none lowers the objective by that share of it; the point, and how many."""
    before = math.inf
    for taken in range(budget):
        grad = point.grad
        step = newton_step(problem, point, grad)
        decrement = -float(grad @ step)
        stuck = decrement <= NOISE * point.value and decrement > 0.5 * before
        if stuck or not decrement > least * point.value:
            return point, taken
        before = decrement
        ahead = look(problem, point.w + step[:-1], point.bias + float(step[-1]), point.delta)
        if float(ahead.grad @ step) > 0.5 * decrement:  # too far: it rises there
            t = line_search(problem, point, ahead, step, decrement)
            ahead = look(problem, point.w + t * step[:-1], point.bias + t * float(step[-1]), point.delta)
        point = ahead
    return point, budget


def newton_step(problem: Problem, point: Point, grad: FloatArray) -> FloatArray:
    """Give the step to the minimum of the quadratic that fits here: weights first, then the bias."""
    bent = np.flatnonzero(point.curve[:, 0] > FLAT)  # less has no say beside the identity
    rows, curve = problem.rows[bent], point.curve[bent]
    against = inverse(rows, curve[:, 0])
    of_weights = against(grad[:-1])
    if not problem.has_bias:
        return -np.append(of_weights, 0.0)
    mixed = curve[:, 1] @ rows
    shared = against(mixed)
    stiff = float(point.sums[2]) + DAMPING * float(problem.cost.sum())
    rest = max(stiff - float(mixed @ shared), ROUNDOFF * stiff)
    of_bias = (float(grad[-1]) - float(mixed @ of_weights)) / rest
    reach = 4.0 + 2.0 * abs(point.bias) + float(np.abs(point.g).max())  # past it no slope changes
    of_bias = min(max(of_bias, -reach), reach)
    return -np.append(of_weights - of_bias * shared, of_bias)


def inverse(rows: FloatArray, curve: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Give x -> (I + rows' diag(curve) rows)^-1 x, by a matrix as small as rows or features allow."""
    if len(rows) >= rows.shape[1]:
        matrix = (rows * curve[:, None]).T @ rows
        np.einsum("ii->i", matrix)[:] += 1.0
        return factorised(matrix)
    matrix = rows @ rows.T
    np.einsum("ii->i", matrix)[:] += 1.0 / curve
    small = factorised(matrix)
    return lambda x: x - small(rows @ x) @ rows


def factorised(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Give x -> matrix^-1 x."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        factor = cho_factor(matrix)
    except LinAlgError:  # rows that are copies of one another, at the finest rounding
        diagonal = np.einsum("ii->i", matrix)
        diagonal += ROUNDOFF * diagonal.max()
        factor = cho_factor(matrix)
    return lambda x: np.asarray(cho_solve(factor, x), dtype=np.float64)


def line_search(problem: Problem, point: Point, ahead: Point, step: FloatArray, decrement: float) -> float:
    """Give where along the step the objective is lowest, or nearly; scores are linear, so no row is read."""
    from concordant.solvers.margin_kernels import line_slope

    w, dw, change = point.w, step[:-1], ahead.g - point.g
    linear, square = float(w @ dw), float(dw @ dw)

    def slope(t: float) -> float:
        bias_step, loss = float(step[-1]), (problem.kind, point.delta)
        losses = line_slope(point.g, change, problem.tie, problem.cost, point.bias, bias_step, t, *loss)
        return linear + t * square + float(losses)

    return root(slope, -decrement)


def root(slope: Callable[[float], float], at_zero: float) -> float:
    """Give where in (0, 1] a rising slope comes near 0: shrink until it falls, then close in."""
    low, high, at_low, at_high, t = 0.0, 1.0, at_zero, slope(1.0), 1.0
    for number in range(PASSES if at_high > 0.0 else 0):  # else rounding: it does not rise after all
        secant = at_low / (at_low - at_high)
        share = min(max(secant, 0.01 if low == 0.0 else 0.1), 0.9)
        t = low + (high - low) * (share if number % 3 else min(share, 0.5))
        here = slope(t)
        if abs(here) <= 0.2 * abs(at_zero):
            break
        if here < 0.0:
            low, at_low = t, here
        else:
            high, at_high = t, here
    return t


def certified(problem: Problem, point: Point) -> tuple[float, float]:
    """Give the objective, nothing rounded, and how far it is at most above the optimum.

    The slopes of the losses are dual variables; those of the heavier side are scaled down so that both sides
    balance, which is what the dual asks where there is a bias.
    """
    from concordant.solvers.margin_kernels import dual_terms, losses

    heavy, light = float(point.sums[3]), float(point.sums[4])
    factors = np.ones(2)
    if problem.has_bias:
        factors = np.minimum([light / max(heavy, TINY), heavy / max(light, TINY)], 1.0)
    where = point.g, problem.tie, problem.cost, point.bias, problem.kind
    value = 0.5 * float(point.w @ point.w) + float(losses(*where, 0.0))
    direction = factors @ point.grads
    bound = float(dual_terms(*where, point.delta, *factors)) - 0.5 * float(direction @ direction)
    return value, max(value - bound, 0.0)

"""Newton steps on the comparison family, one pass over the rows each; and the gap to the dual."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from concordant.solvers.margin_corner import CORNERS, Found, exact_corner
from concordant.solvers.margin_problem import At, Problem
from concordant.types import FloatArray

__all__ = ["certified", "cornered", "settle"]

NOISE = 1e-11  # share of the objective below which a step may be rounding
DAMPING = 1e-9  # share of the total cost, on the bias: no pair may be bent
PASSES = 60  # of a line search
TINY, ROUNDOFF = 1e-300, 1e-10


def cornered(problem: Problem[At], point: At) -> Found | None:
    """Try for the exact optimum, once no more losses are bent than weights can put at their corner."""
    if problem.n_curved(point) > min(2 * len(point.w) + 2, CORNERS):
        return None
    return exact_corner(problem.hinges(point), problem.n_features)


def settle(problem: Problem[At], point: At, budget: int, least: float) -> tuple[At, int]:
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
        ahead = problem.look(point.w + step[:-1], point.bias + float(step[-1]), point.delta)
        if float(ahead.grad @ step) > 0.5 * decrement:  # too far: it rises there
            t = line_search(problem, point, ahead, step, decrement)
            ahead = problem.look(point.w + t * step[:-1], point.bias + t * float(step[-1]), point.delta)
        point = ahead
    return point, budget


def newton_step(problem: Problem[At], point: At, grad: FloatArray) -> FloatArray:
    """Give the step to the minimum of the quadratic that fits here: weights first, then the bias."""
    against, mixed = problem.system(point)
    of_weights = against(grad[:-1])
    if not problem.has_bias:
        return -np.append(of_weights, 0.0)
    shared = against(mixed)
    stiff = float(point.sums[2]) + DAMPING * problem.total_cost
    rest = max(stiff - float(mixed @ shared), ROUNDOFF * stiff)
    of_bias = (float(grad[-1]) - float(mixed @ of_weights)) / rest
    reach = 4.0 + 2.0 * abs(point.bias)
    if abs(of_bias) > reach:
        reach += problem.widest(point)  # past it no slope changes
        of_bias = min(max(of_bias, -reach), reach)
    return -np.append(of_weights - of_bias * shared, of_bias)


def line_search(problem: Problem[At], point: At, ahead: At, step: FloatArray, decrement: float) -> float:
    """Give where along the step the objective is lowest, or nearly."""
    w, dw = point.w, step[:-1]
    linear, square = float(w @ dw), float(dw @ dw)
    losses = problem.along(point, ahead, float(step[-1]))
    return root(lambda t: linear + t * square + losses(t), -decrement)


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


def certified(problem: Problem[At], point: At) -> tuple[float, float]:
    """Give the objective, nothing rounded, and how far it is at most above the optimum.

    The slopes of the losses are dual variables; those of the heavier side are scaled down so that both sides
    balance, which is what the dual asks where there is a bias.
    """
    heavy, light = float(point.sums[3]), float(point.sums[4])
    factors = np.ones(2)
    if problem.has_bias:
        factors = np.minimum([light / max(heavy, TINY), heavy / max(light, TINY)], 1.0)
    losses, dual = problem.dual_sums(point, factors)
    value = 0.5 * float(point.w @ point.w) + losses
    direction = factors @ point.grads
    bound = dual - 0.5 * float(direction @ direction)
    return value, max(value - bound, 0.0)

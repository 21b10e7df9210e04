"""Solvers for smooth objectives: L-BFGS (scipy's) and truncated Newton."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.solvers.objective import LinearObjective, Objective
from concordant.solvers.solution import Callback, Solution, Watch
from concordant.types import FloatArray

__all__ = ["lbfgs", "newton"]

MEMORY = 20  # pairs of steps that L-BFGS keeps: X is read once a step, so that vectors of weights cost little
SUFFICIENT = 1e-4  # share of the promised decrease that a step must bring
SHORTEST = 1e-10  # step lengths below this are rounding


def lbfgs(
    objective: Objective,
    w: FloatArray,
    *,
    tol: float = 1e-4,
    max_iter: int = 500,
    callback: Callback | None = None,
) -> Solution:
    """Minimise by L-BFGS until the gradient is `tol` times as long as at the start.

    Ctrl-C ends the work; the best weights so far are returned, and `stopped_by` says so.
    """
    from scipy.optimize import minimize

    solve: Any = minimize
    watch, before = Watch(tol, callback), objective.n_gradients

    def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
        value, grad = objective.value_and_grad(point)
        watch.see(point, value, grad)
        last[:] = [value, float(np.linalg.norm(grad))]
        return value, grad

    def told(point: FloatArray) -> None:
        if watch.step(point, *last):
            raise StopIteration

    last = [math.nan, math.nan]
    options: Any = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0}
    try:
        found = solve(evaluate, np.array(w), jac=True, method="L-BFGS-B", callback=told, options=options)
        watch.stopped_by = watch.stopped_by or ("max_iter" if found.status == 1 else "precision")
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution(objective.alpha, objective.n_gradients - before)


def newton(
    objective: LinearObjective,
    w: FloatArray,
    *,
    tol: float = 1e-4,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Solution:
    """Minimise by truncated Newton steps: conjugate gradients, then a line search that does not read X.

    Otherwise as `lbfgs`.
    """
    if not hasattr(objective, "hessian_product"):
        raise ParameterError("objective", objective, "one with a hessian_product, which newton needs")
    watch, before = Watch(tol, callback), objective.n_gradients
    try:
        watch.stopped_by = newton_steps(objective, w.copy(), watch, max_iter)
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution(objective.alpha, objective.n_gradients - before)


def newton_steps(objective: LinearObjective, w: FloatArray, watch: Watch, max_iter: int) -> str:
    """Step until something ends it; says what."""
    value, grad = objective.value_and_grad(w)
    watch.see(w, value, grad)
    for _ in range(max_iter):
        norm = float(np.linalg.norm(grad))
        if norm <= watch.goal:
            return "tolerance"
        # The closer to the optimum, the more exact the step.
        share = min(0.5, math.sqrt(norm * watch.tol / max(watch.goal, 1e-300)))
        direction, moves = conjugate(objective, grad, norm * share)
        length = search(objective, w, direction, moves, value, float(grad @ direction))
        if length == 0.0:
            return "precision"
        w = w + length * direction
        value, grad = objective.value_and_grad(w)
        watch.see(w, value, grad)
        if watch.step(w, value, float(np.linalg.norm(grad))):
            return watch.stopped_by
    return "max_iter"


def conjugate(
    objective: LinearObjective, grad: FloatArray, goal: float, most: int = 50
) -> tuple[FloatArray, FloatArray]:
    """Solve Hessian @ direction = -grad to a residual of `goal`; the direction, and its change of scores."""
    direction, moves = np.zeros_like(grad), np.zeros_like(objective.scores)
    residual, step = -grad, -grad
    square = float(residual @ residual)
    for _ in range(most):
        product = objective.hessian_product(step)
        curvature = float(step @ product)
        if curvature <= 0.0:  # flat: alpha is 0 and no pair is near its margin
            break
        length = square / curvature
        direction, moves = direction + length * step, moves + length * objective.moves
        residual = residual - length * product
        previous, square = square, float(residual @ residual)
        if math.sqrt(square) <= goal:
            break
        step = residual + square / previous * step
    if not direction.any():  # along the gradient, whose scores the flat product has just filled
        return -grad, objective.moves.copy()
    return direction, moves


def search(
    objective: LinearObjective,
    w: FloatArray,
    direction: FloatArray,
    moves: FloatArray,
    value: float,
    slope: float,
) -> float:
    """Give a step length that lowers the objective enough; 0 if there is none."""
    length = 1.0
    while length > SHORTEST:
        summed, _ = objective.along(moves, length)
        there = w + length * direction
        if summed + 0.5 * objective.alpha * (there @ there) <= value + SUFFICIENT * length * slope:
            return length
        length *= 0.5
    return 0.0

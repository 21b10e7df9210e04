"""Solvers for smooth objectives: L-BFGS (scipy's) and truncated Newton, both in round coordinates."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from concordant._segments import one_blas_thread
from concordant.exceptions import ParameterError
from concordant.solvers.journal import Journal
from concordant.solvers.objective import LinearObjective, Objective
from concordant.solvers.precondition import Preconditioner, whitening
from concordant.solvers.solution import Callback, Solution, Watch
from concordant.types import FloatArray

__all__ = ["lbfgs", "newton"]

MEMORY = 20  # pairs of steps that L-BFGS keeps: against a pass over X they cost nothing
SUFFICIENT = 1e-4  # share of the promised decrease that a step must bring
SHORTEST = 1e-10  # step lengths below this are rounding
MOST_PRODUCTS = 50  # Hessian products a Newton step may take


def lbfgs(
    objective: Objective,
    w: FloatArray,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
    callback: Callback | None = None,
    journal: Journal | None = None,
) -> Solution:
    """Minimise by L-BFGS, from these weights, until the objective is near its optimum.

    By estimate, it is then above by at most `tol` times its value at weights 0 (where that is 0: times the
    lowest value seen).
    Ctrl-C ends the work; the best weights so far are returned, and `stopped_by` says so. With a journal the
    work goes on where an earlier call left it, and costs a gradient's numbers on disk for each evaluation.
    """
    watch = Watch(objective, w, tol, callback, journal)
    try:
        with one_blas_thread():
            watch.stopped_by = lbfgs_steps(objective, w, watch, max_iter)
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution()


def lbfgs_steps(objective: Objective, w: FloatArray, watch: Watch, max_iter: int) -> str:
    """Step until something ends it; says what."""
    from scipy.optimize import minimize

    solve: Any = minimize
    frame = whitening(objective)
    first = [seen(w, frame, watch)]
    if watch.done:
        return "tolerance"

    def evaluate(v: FloatArray) -> tuple[float, FloatArray]:
        value, _, pulled = first.pop() if first else seen(frame.forth(v), frame, watch)
        return value, pulled

    def told(_: FloatArray) -> None:
        if watch.step():
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0}
    start = frame.inverse(w)
    found = solve(evaluate, start, jac=True, method="L-BFGS-B", callback=told, options=options)
    return watch.stopped_by or ("max_iter" if found.status == 1 else "precision")


def seen(w: FloatArray, frame: Preconditioner, watch: Watch) -> tuple[float, FloatArray, FloatArray]:
    """Evaluate, and take note: value, gradient, and gradient in the frame's coordinates."""
    with np.errstate(over="ignore", invalid="ignore"):  # too far out a loss may leave the doubles
        value, grad = watch.evaluate(w)
        pulled = frame.back(grad)
        watch.see(w, value, grad, 0.5 * float(pulled @ pulled))
    return value, grad, pulled


def newton(
    objective: LinearObjective,
    w: FloatArray,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
    journal: Journal | None = None,
) -> Solution:
    """Minimise by truncated Newton steps: conjugate gradients, then a line search that does not read X.

    Otherwise as `lbfgs`.
    """
    if not hasattr(objective, "hessian_product"):
        raise ParameterError("objective", objective, "one with a hessian_product, which newton needs")
    watch = Watch(objective, w, tol, callback, journal)
    try:
        with one_blas_thread():
            watch.stopped_by = newton_steps(objective, w.copy(), watch, max_iter)
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution()


def newton_steps(objective: LinearObjective, w: FloatArray, watch: Watch, max_iter: int) -> str:
    """Step until something ends it; says what."""
    frame = whitening(objective)
    value, grad, pulled = seen(w, frame, watch)
    first = float(np.linalg.norm(pulled))
    if watch.done:
        return "tolerance"
    for _ in range(max_iter):
        norm = float(np.linalg.norm(pulled))
        # The closer to the optimum, the more exact the step.
        goal = norm * min(0.5, math.sqrt(norm / first))
        step = partial(newton_step, objective, w, (value, grad, pulled), frame, goal, watch)
        direction, length = watch.recall("newton step", (w,), step)
        if length == 0.0:
            return "precision"
        w = w + length * direction
        value, grad, pulled = seen(w, frame, watch)
        if watch.step():
            return watch.stopped_by
    return "max_iter"


def newton_step(
    objective: LinearObjective,
    w: FloatArray,
    here: tuple[float, FloatArray, FloatArray],
    frame: Preconditioner,
    goal: float,
    watch: Watch,
) -> tuple[FloatArray, float]:
    """Give a direction, and how far to go along it."""
    watch.catch_up(w)
    value, grad, pulled = here
    direction, moves = conjugate(objective, pulled, frame, goal)
    return direction, search(objective, w, direction, moves, value, float(grad @ direction))


def conjugate(
    objective: LinearObjective, pulled: FloatArray, frame: Preconditioner, goal: float
) -> tuple[FloatArray, FloatArray]:
    """Solve for a Newton step to a residual of `goal`; the step in the weights, and its change of scores."""
    direction, moves = np.zeros_like(pulled), np.zeros_like(objective.scores)
    residual, step = -pulled, -pulled
    square = float(residual @ residual)
    for _ in range(MOST_PRODUCTS):
        product = frame.back(objective.hessian_product(frame.forth(step)))
        bend = float(step @ product)
        if bend <= 0.0:  # flat: alpha is 0 and no pair is near its margin
            break
        length = square / bend
        direction, moves = direction + length * step, moves + length * objective.moves
        residual = residual - length * product
        previous, square = square, float(residual @ residual)
        if math.sqrt(square) <= goal:
            break
        step = residual + square / previous * step
    if not direction.any():  # along the gradient, whose scores the flat product has just filled
        return frame.forth(-pulled), objective.moves.copy()
    return frame.forth(direction), moves


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
        there = w + length * direction
        reached = objective.along(moves, length) + 0.5 * objective.alpha * float(there @ there)
        if reached < value and reached <= value + SUFFICIENT * length * slope:
            return length
        length *= 0.5
    return 0.0

"""Solvers for smooth objectives: L-BFGS (scipy's), truncated Newton, and stochastic gradient over queries."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.solvers.checkpoint import Journal
from concordant.solvers.objective import LinearObjective, Objective, Route
from concordant.solvers.precondition import Preconditioner, whitening
from concordant.solvers.solution import Callback, Solution, SolverTrace
from concordant.types import FloatArray

MEMORY = 20  # pairs of steps that L-BFGS stores: cheap, compared with a pass over X
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

    The objective is then, by estimate, above its optimum by at most `tol` times its value at weights 0 (if
    that is 0: times the lowest value so far).
    Ctrl-C ends the work; the best weights so far are returned, and `stopped_by` is "interrupt". With a
    journal the work resumes where an earlier call stopped; each evaluation writes a gradient's numbers to
    disk.
    """
    trace = SolverTrace(objective, w, tol, callback, journal)
    return trace.run(lambda: _lbfgs_steps(objective, w, trace, max_iter))


def _lbfgs_steps(objective: Objective, w: FloatArray, trace: SolverTrace, max_iter: int) -> str:
    from scipy.optimize import minimize

    solve: Any = minimize
    frame = whitening(objective)
    first = [_record_point(w, frame, trace)]
    if trace.done:
        return "tolerance"

    def evaluate(v: FloatArray) -> tuple[float, FloatArray]:
        value, _, pulled = first.pop() if first else _record_point(frame.forth(v), frame, trace)
        return value, pulled

    def stop_if_done(_: FloatArray) -> None:
        if trace.step():
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0}
    start = frame.inverse(w)
    result = solve(evaluate, start, jac=True, method="L-BFGS-B", callback=stop_if_done, options=options)
    return trace.stopped_by or ("max_iter" if result.status == 1 else "precision")


def _record_point(
    w: FloatArray, frame: Preconditioner, trace: SolverTrace
) -> tuple[float, FloatArray, FloatArray]:
    """Evaluate and record a point: value, gradient, and gradient in the frame's coordinates."""
    with np.errstate(over="ignore", invalid="ignore"):  # too far out a loss may leave the doubles
        value, grad = trace.evaluate(w)
        pulled = frame.back(grad)
        trace.see(w, value, grad, 0.5 * float(pulled @ pulled))
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
        raise ParameterError("objective", objective, "an object with hessian_product for newton")
    trace = SolverTrace(objective, w, tol, callback, journal)
    return trace.run(lambda: _newton_steps(objective, w.copy(), trace, max_iter))


def _newton_steps(objective: LinearObjective, w: FloatArray, trace: SolverTrace, max_iter: int) -> str:
    frame = whitening(objective)
    value, grad, pulled = _record_point(w, frame, trace)
    first = float(np.linalg.norm(pulled))
    if trace.done:
        return "tolerance"
    for _ in range(max_iter):
        norm = float(np.linalg.norm(pulled))
        # The closer to the optimum, the more exact the step.
        goal = norm * min(0.5, math.sqrt(norm / first))
        step = partial(_newton_step, objective, w, (value, grad, pulled), frame, goal, trace)
        direction, length = trace.recall("newton step", (w,), step)
        if length == 0.0:
            return "precision"
        w = w + length * direction
        value, grad, pulled = _record_point(w, frame, trace)
        if trace.step():
            return trace.stopped_by
    return "max_iter"


def _newton_step(
    objective: LinearObjective,
    w: FloatArray,
    here: tuple[float, FloatArray, FloatArray],
    frame: Preconditioner,
    goal: float,
    trace: SolverTrace,
) -> tuple[FloatArray, float]:
    """Compute a direction, and how far to go along it."""
    trace.catch_up(w)
    value, grad, pulled = here
    direction, moves = _conjugate(objective, pulled, frame, goal)
    return direction, _line_search(objective, w, direction, moves, value, float(grad @ direction))


def _conjugate(
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


def _line_search(
    objective: LinearObjective,
    w: FloatArray,
    direction: FloatArray,
    moves: FloatArray,
    value: float,
    slope: float,
) -> float:
    """Return a step length that lowers the objective enough; 0 if there is none."""
    length = 1.0
    while length > SHORTEST:
        there = w + length * direction
        reached = objective.along(moves, length) + 0.5 * objective.alpha * float(there @ there)
        if reached < value and reached <= value + SUFFICIENT * length * slope:
            return length
        length *= 0.5
    return 0.0


# Stochastic gradient over whole queries, with averaged weights.

TRIALS = tuple(4.0**power for power in range(-8, 3))  # first step lengths that are tried
SAMPLE = 200  # queries on which they are tried
POWER = 0.75  # steps shrink like (1 + rate * t)^-power, as averaging needs


def sgd(
    objective: LinearObjective,
    w: FloatArray,
    *,
    tol: float = 1e-6,
    max_iter: int = 20,
    callback: Callback | None = None,
    seed: int = 0,
    journal: Journal | None = None,
) -> Solution:
    """Minimise by stochastic gradient: one query a step, in random order; weights averaged from epoch 2 on.

    Steps are taken in the coordinates of `whitening`. After each epoch the objective is evaluated at the
    average, so that the best epoch is returned with its gradient. `max_iter` counts epochs; a journal has the
    weights of each; otherwise as `lbfgs`.

    References
    ----------
    Bottou (2004); Polyak and Juditsky (1992) and Xu (2011) for the averaging.
    """
    trace = SolverTrace(objective, w, tol, callback, journal)
    rng = np.random.default_rng(seed)
    return trace.run(lambda: _sgd_epochs(objective, w.copy(), trace, max_iter, rng))


def _sgd_epochs(
    objective: LinearObjective,
    w: FloatArray,
    trace: SolverTrace,
    max_iter: int,
    rng: np.random.Generator,
) -> str:
    frame = whitening(objective)
    _record_point(w, frame, trace)
    if trace.done:
        return "tolerance"
    rate, done, mean = _first_rate(objective, w, frame, rng, trace), 0, w.copy()
    for epoch in range(max_iter):
        steps = w, mean, frame, objective.route(rng), rate, done
        run_epoch = partial(_walk, objective, *steps, averaging=epoch > 0)
        w, mean = trace.recall("epoch", (w, mean, rate, done), run_epoch)
        done += objective.n_queries
        mean = mean if epoch else w.copy()
        _record_point(mean, frame, trace)
        if trace.step():
            return trace.stopped_by
    return "max_iter"


def _walk(
    objective: LinearObjective,
    w: FloatArray,
    mean: FloatArray,
    frame: Preconditioner,
    route: Route,
    rate: float,
    done: int,
    *,
    averaging: bool,
) -> tuple[FloatArray, FloatArray]:
    """Take one step per query of the route; the weights, and their mean since averaging began."""
    time, n_queries = done, objective.n_queries
    for part, order in objective.visits(route):
        for q in order.tolist():
            slope = part.query_slope(q, w / objective.scale)
            grad = n_queries * slope / objective.scale + objective.alpha * w
            # In the frame's coordinates the curvature is about 1: so steps shrink with 1 + rate * time.
            w = w - rate / (1.0 + rate * time) ** POWER * frame.forth(frame.back(grad))
            if averaging:
                mean = mean + (w - mean) / (time - n_queries + 1.0)
            time += 1
    return w, mean


def _first_rate(
    objective: LinearObjective,
    w: FloatArray,
    frame: Preconditioner,
    rng: np.random.Generator,
    trace: SolverTrace,
) -> float:
    """Return the rate that lowers the objective most in one pass over a sample of queries."""
    sample = objective.route(rng, SAMPLE)
    best, best_rate = np.inf, TRIALS[0]
    for rate in TRIALS:
        with np.errstate(over="ignore", invalid="ignore"):
            there, _ = _walk(objective, w, w, frame, sample, rate, 0, averaging=False)
            value = trace.evaluate(there)[0] if np.isfinite(there).all() else np.inf
        if value < best:
            best, best_rate = value, rate
    return best_rate

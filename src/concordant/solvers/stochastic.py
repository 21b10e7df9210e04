"""Stochastic gradient over whole queries, with averaged weights."""

from __future__ import annotations

from functools import partial

import numpy as np

from concordant._segments import one_blas_thread
from concordant.solvers.journal import Journal
from concordant.solvers.objective import LinearObjective, Route
from concordant.solvers.precondition import Preconditioner, whitening
from concordant.solvers.smooth import seen
from concordant.solvers.solution import Callback, Solution, Watch
from concordant.types import FloatArray

__all__ = ["sgd"]

TRIALS = tuple(4.0**power for power in range(-8, 3))  # first step lengths that are tried
SAMPLE = 200  # queries on which they are tried
POWER = 0.75  # steps shrink like (1 + rate * t)^-power: what averaging wants


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
    watch = Watch(objective, w, tol, callback, journal)
    try:
        with one_blas_thread():
            watch.stopped_by = epochs(objective, w.copy(), watch, max_iter, np.random.default_rng(seed))
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution()


def epochs(
    objective: LinearObjective,
    w: FloatArray,
    watch: Watch,
    max_iter: int,
    rng: np.random.Generator,
) -> str:
    """Run until something ends it; says what."""
    frame = whitening(objective)
    seen(w, frame, watch)
    if watch.done:
        return "tolerance"
    rate, done, mean = first_rate(objective, w, frame, rng, watch), 0, w.copy()
    for epoch in range(max_iter):
        steps = w, mean, frame, objective.route(rng), rate, done
        taken = partial(walk, objective, *steps, averaging=epoch > 0)
        w, mean = watch.recall("epoch", (w, mean, rate, done), taken)
        done += objective.n_queries
        mean = mean if epoch else w.copy()
        seen(mean, frame, watch)
        if watch.step():
            return watch.stopped_by
    return "max_iter"


def walk(
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
    """Take one step per query of the route; the weights, and the mean of those since averaging began."""
    time, n_queries = done, objective.n_queries
    for part, order in objective.visits(route):
        for q in order.tolist():
            slope = part.slope_of(q, w / objective.scale)
            grad = n_queries * slope / objective.scale + objective.alpha * w
            # In the frame's coordinates the curvature is about 1: so steps shrink with 1 + rate * time.
            w = w - rate / (1.0 + rate * time) ** POWER * frame.forth(frame.back(grad))
            if averaging:
                mean = mean + (w - mean) / (time - n_queries + 1.0)
            time += 1
    return w, mean


def first_rate(
    objective: LinearObjective, w: FloatArray, frame: Preconditioner, rng: np.random.Generator, watch: Watch
) -> float:
    """Give the rate that lowers the objective most in one pass over a sample of queries."""
    sample = objective.route(rng, SAMPLE)
    best, chosen = np.inf, TRIALS[0]
    for rate in TRIALS:
        with np.errstate(over="ignore", invalid="ignore"):
            there, _ = walk(objective, w, w, frame, sample, rate, 0, averaging=False)
            value = watch.evaluate(there)[0] if np.isfinite(there).all() else np.inf
        if value < best:
            best, chosen = value, rate
    return chosen

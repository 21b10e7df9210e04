"""Stochastic gradient over whole queries, with averaged weights."""

from __future__ import annotations

import numpy as np

from concordant.solvers.objective import LinearObjective
from concordant.solvers.solution import Callback, Solution, Watch
from concordant.supervision.columns import frozen
from concordant.types import FloatArray, IntArray

__all__ = ["sgd"]

TRIALS = tuple(4.0**power for power in range(-8, 9))  # first step lengths that are tried
SAMPLE = 200  # queries on which they are tried
POWER = 0.75  # steps shrink like (1 + alpha * rate * t)^-power: what averaging wants


def sgd(
    objective: LinearObjective,
    w: FloatArray,
    *,
    tol: float = 1e-4,
    max_iter: int = 20,
    callback: Callback | None = None,
    seed: int = 0,
) -> Solution:
    """Minimise by stochastic gradient: one query a step, in random order; weights averaged from epoch 2 on.

    After each epoch the objective is evaluated at the average, so that the best epoch is returned with its
    gradient. `max_iter` counts epochs; otherwise as `lbfgs`.

    References
    ----------
    Bottou (2004); Polyak and Juditsky (1992) and Xu (2011) for the averaging.
    """
    watch, before = Watch(tol, callback), objective.n_gradients
    watch.see(w, *objective.value_and_grad(w))
    try:
        watch.stopped_by = epochs(objective, w.copy(), watch, max_iter, np.random.default_rng(seed))
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution(objective.alpha, objective.n_gradients - before)


def epochs(
    objective: LinearObjective, w: FloatArray, watch: Watch, max_iter: int, rng: np.random.Generator
) -> str:
    """Run until something ends it; says what."""
    n_queries = len(objective.values)
    rate, done, mean = first_rate(objective, w, rng), 0, w.copy()
    for epoch in range(max_iter):
        order = rng.permutation(n_queries)
        w, mean = walk(objective, w, mean, order, rate, done, averaging=epoch > 0)
        done += n_queries
        point = mean if epoch else w
        value, grad = objective.value_and_grad(point)
        watch.see(point, value, grad)
        if watch.step(point, value, float(np.linalg.norm(grad))):
            return watch.stopped_by
        mean = point.copy() if epoch == 0 else mean
    return "max_iter"


def walk(
    objective: LinearObjective,
    w: FloatArray,
    mean: FloatArray,
    order: IntArray,
    rate: float,
    done: int,
    *,
    averaging: bool,
) -> tuple[FloatArray, FloatArray]:
    """Take one step per query of the order; the weights, and the mean of those since averaging began."""
    n_queries, offsets = len(objective.values), objective.loss.offsets
    for taken, q in enumerate(order.tolist()):
        time = done + taken
        length = rate / (1.0 + objective.alpha * rate * time) ** POWER
        own, slope = (int(offsets[q]), int(offsets[q + 1])), np.zeros(objective.n_features)
        objective.scorer.scores(w / objective.scale, *own, objective.scores)
        objective.loss.chunk(frozen(objective.scores), q, q + 1, objective.values, objective.rows)
        objective.scorer.pull(objective.rows, *own, slope)
        w = (1.0 - length * objective.alpha) * w - length * n_queries * slope / objective.scale
        if averaging:
            mean = mean + (w - mean) / (time - n_queries + 1.0)
    return w, mean


def first_rate(objective: LinearObjective, w: FloatArray, rng: np.random.Generator) -> float:
    """Give the rate that lowers the objective of a sample of queries most, in one pass over it."""
    n_queries = len(objective.values)
    sample = rng.permutation(n_queries)[:SAMPLE]
    best, chosen = np.inf, TRIALS[0]
    for rate in TRIALS:
        with np.errstate(over="ignore", invalid="ignore"):
            there, _ = walk(objective, w, w, sample, rate, 0, averaging=False)
        if not np.isfinite(there).all():
            break
        value, _ = objective.value_and_grad(there)
        if value < best:
            best, chosen = value, rate
    return chosen

"""Bundle solver: for losses with corners, with a certified duality gap.

The mean loss lies above each of its tangent planes. The highest of the planes seen so far, plus the penalty,
is a model whose minimum, found by its dual, is a lower bound of the optimum: what the best weights cost above
it is the gap. The next weights minimise the model plus a distance from the best ones, measured in the
coordinates of `whitening`. The smaller the penalty, the more gradients this saves, against the minimum of the
model alone (SVMstruct) and against the plain distance; `python -m benchmarks maxmargin` counts them.
"""

from __future__ import annotations

import math

import numpy as np

from concordant._segments import one_blas_thread
from concordant.exceptions import ParameterError
from concordant.solvers.journal import Journal
from concordant.solvers.objective import LinearObjective
from concordant.solvers.planes import Distance, Planes
from concordant.solvers.precondition import whitening
from concordant.solvers.solution import Callback, Solution, Watch
from concordant.types import FloatArray

__all__ = ["bundle"]

STIFF = 32.0  # weight of the distance at first: too much costs a few halvings, too little a wild start
PROMISED = 0.5  # share of the decrease the model promised from which it is trusted more
SOFT = 1e-9  # below this weight the distance no longer matters
ROUNDING = 1e-14  # share of the objective that is no decrease
IDLE = 50  # rounds without one, and without a better bound, after which no more is to be had


def bundle(
    objective: LinearObjective,
    w: FloatArray,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
    journal: Journal | None = None,
) -> Solution:
    """Minimise a convex objective, corners or not, until its duality gap is small.

    The gap is certified: the objective is above its optimum by at most `tol` times its value at weights 0
    (where that is 0: times the lowest value seen). The penalty must be > 0. Ctrl-C ends the work; the best
    weights so far are returned, and `stopped_by` says so. A journal is as for `lbfgs`.

    References
    ----------
    Joachims, Finley and Yu (2009) and Teo et al. (2010) for the planes and the gap; Lemaréchal, Nemirovskii
    and Nesterov (1995) for the distance.
    """
    if not objective.alpha > 0.0:
        raise ParameterError("alpha", objective.alpha, "> 0: without a penalty there is no duality gap")
    watch = Watch(objective, w, tol, callback, journal)
    try:
        with one_blas_thread():
            watch.stopped_by = steps(objective, w.copy(), watch, max_iter)
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution()


def steps(objective: LinearObjective, w: FloatArray, watch: Watch, max_iter: int) -> str:
    """Step until something ends it; says what."""
    planes, distance = Planes(objective.n_features, objective.alpha), Distance(whitening(objective))
    weight, promised, widest, idle = STIFF, math.inf, objective.widest() / objective.scale, 0
    for number in range(max_iter):
        best, bound = watch.best.value, watch.bound
        with np.errstate(over="ignore", invalid="ignore"):  # too far out a loss may leave the doubles
            value, grad, slopes = evaluated(objective, w, watch)
            usable = math.isfinite(value + float(grad @ grad) / objective.alpha)
        if usable:
            far = max(np.linalg.norm(w), np.linalg.norm(watch.best.w))
            size = float(slopes * np.linalg.norm(widest) * far)
            planes.add(w, value, grad, size)
            watch.bound = max(watch.bound, planes.lower_bound())
        watch.see(w, value, grad, math.inf)
        # Weights 0 rank nothing: within the tolerance or not, one step is taken.
        unmoved = number == 0 and not w.any() and watch.excess(watch.best) > ROUNDING * abs(value)
        if watch.step() and not (unmoved and watch.stopped_by == "tolerance"):
            return watch.stopped_by
        watch.stopped_by = ""
        moved = max(best - watch.best.value, watch.bound - bound)
        idle = idle + 1 if moved <= ROUNDING * abs(value) else 0
        if weight == 0.0 or idle > IDLE or not planes.heights.size:
            return "precision"
        if best - value >= PROMISED * promised or promised <= ROUNDING * abs(value):
            weight *= 0.5
        elif value - best > promised or not usable:
            weight *= 2.0
        if weight < SOFT:
            weight = 0.0  # once: the minimum of the model itself
        w = planes.nearest(watch.best.w, distance, weight)
        promised = watch.best.value - planes.height(w)
        planes.drop_idle()
    return "max_iter"


def evaluated(objective: LinearObjective, w: FloatArray, watch: Watch) -> tuple[float, FloatArray, float]:
    """Give the objective, its gradient, and the summed sizes of the slopes in the scores."""

    def work() -> tuple[float, FloatArray, float]:
        value, grad = objective.value_and_grad(w)
        return value, grad, objective.slopes

    value, grad, slopes = watch.recall("value, gradient and slopes", (w,), work)
    return float(value), grad, float(slopes)

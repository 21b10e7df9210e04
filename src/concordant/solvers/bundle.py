"""Bundle solver: for losses with corners, with a certified duality gap.

The mean loss lies above each of its tangent planes. The highest of the planes seen so far, plus the penalty,
is a model whose minimum, found by its dual, is a lower bound of the optimum: what the best weights cost above
it is the gap. The next weights minimise the model plus a distance from the best ones, measured in the
coordinates of `whitening`: this takes 5 to 20 times fewer gradients than without (`python -m benchmarks
maxmargin` counts them).
"""

from __future__ import annotations

import math

import numpy as np

from concordant._segments import one_blas_thread
from concordant.exceptions import ParameterError
from concordant.solvers.objective import LinearObjective
from concordant.solvers.precondition import Preconditioner, whitening
from concordant.solvers.simplex import best_mixture
from concordant.solvers.solution import Callback, Solution, Watch
from concordant.types import FloatArray

__all__ = ["bundle"]

STIFF = 32.0  # weight of the distance at first: too much costs a few halvings, too little a wild start
PROMISED = 0.5  # share of the decrease the model promised from which it is trusted more
SOFT = 1e-9  # below this weight the distance no longer matters
ROUNDING = 1e-14  # share of the objective that is no decrease
IDLE = 50  # rounds after which a plane that bears nothing is dropped


def bundle(
    objective: LinearObjective,
    w: FloatArray,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Solution:
    """Minimise a convex objective, corners or not, until its duality gap is small.

    The gap is certified: the objective is above its optimum by at most `tol` times its value at weights 0
    (where that is 0: times the lowest value seen). The penalty must be > 0. Ctrl-C ends the work; the best
    weights so far are returned, and `stopped_by` says so.

    References
    ----------
    Joachims, Finley and Yu (2009) and Teo et al. (2010) for the planes and the gap; Lemaréchal, Nemirovskii
    and Nesterov (1995) for the distance.
    """
    if not objective.alpha > 0.0:
        raise ParameterError("alpha", objective.alpha, "> 0: without a penalty there is no duality gap")
    watch = Watch(objective, w, tol, callback)
    try:
        with one_blas_thread():
            watch.stopped_by = steps(objective, w.copy(), watch, max_iter)
    except KeyboardInterrupt:
        watch.stopped_by = "interrupt"
    return watch.solution()


class Planes:
    """Tangent planes of the mean loss: values and slopes at the origin, and shares of the last mixture."""

    def __init__(self, n_features: int, alpha: float) -> None:
        self.alpha = alpha
        self.slopes, self.heights = np.empty((0, n_features)), np.empty(0)
        self.products = np.empty((0, 0))  # of the slopes
        self.shares, self.near, self.idle = np.empty(0), np.empty(0), np.empty(0)

    def add(self, w: FloatArray, value: float, grad: FloatArray) -> None:
        """Add the plane at these weights, given the objective there and its gradient."""
        slope = grad - self.alpha * w
        height = value - 0.5 * self.alpha * float(w @ w) - float(slope @ w)
        crossed = self.slopes @ slope
        self.products = np.block([[self.products, crossed[:, None]], [crossed, slope @ slope]])
        self.slopes, self.heights = np.vstack([self.slopes, slope]), np.r_[self.heights, height]
        first = float(not self.shares.size)
        self.shares, self.near = np.r_[self.shares, first], np.r_[self.near, first]
        self.idle = np.r_[self.idle, 0.0]

    def lower_bound(self) -> float:
        """Minimum of the model: no weights cost less."""
        H = self.products / self.alpha
        self.shares = best_mixture(H, self.heights, self.shares)
        return float(self.heights @ self.shares - 0.5 * self.shares @ H @ self.shares)

    def nearest(self, centre: FloatArray, metric: Metric, weight: float) -> FloatArray:
        """Minimise the model plus weight/2 times the squared distance from the centre."""
        pull = weight * metric.times(centre)
        back = metric.solve(np.vstack([self.slopes, pull]).T, self.alpha, weight)
        H = self.slopes @ back[:, :-1]
        self.near = best_mixture(0.5 * (H + H.T), self.heights + self.slopes @ back[:, -1], self.near)
        there: FloatArray = back[:, -1] - back[:, :-1] @ self.near
        return there

    def height(self, w: FloatArray) -> float:
        """Give the model at these weights."""
        return float((self.slopes @ w + self.heights).max() + 0.5 * self.alpha * (w @ w))

    def drop_idle(self) -> None:
        """Forget planes that have not borne anything for long."""
        self.idle = np.where((self.shares > 0.0) | (self.near > 0.0), 0.0, self.idle + 1.0)
        kept = np.flatnonzero(self.idle < IDLE)
        if len(kept) < len(self.idle):
            self.slopes, self.heights, self.idle = self.slopes[kept], self.heights[kept], self.idle[kept]
            self.products = self.products[np.ix_(kept, kept)]
            self.shares, self.near = self.shares[kept], self.near[kept]


class Metric:
    """C = (P P')^-1, the distance of whitened coordinates; solves (alpha + weight * C) x = y."""

    def __init__(self, frame: Preconditioner) -> None:
        matrix = frame.matrix
        self.diagonal = matrix.ndim == 1
        # With C = V diag(c) V' any weight is solved for at once.
        if self.diagonal:
            self.curves = matrix**-2.0
        else:
            left, sizes, _ = np.linalg.svd(matrix)
            self.curves, self.axes = sizes**-2.0, left

    def times(self, w: FloatArray) -> FloatArray:
        """C w."""
        if self.diagonal:
            return self.curves * w
        product: FloatArray = self.axes @ (self.curves * (self.axes.T @ w))
        return product

    def solve(self, right: FloatArray, alpha: float, weight: float) -> FloatArray:
        """Columns x with alpha x + weight C x = the columns of `right`."""
        shrunk = 1.0 / (alpha + weight * self.curves)
        if self.diagonal:
            return shrunk[:, None] * right
        solved: FloatArray = self.axes @ (shrunk[:, None] * (self.axes.T @ right))
        return solved


def steps(objective: LinearObjective, w: FloatArray, watch: Watch, max_iter: int) -> str:
    """Step until something ends it; says what."""
    planes, metric = Planes(objective.n_features, objective.alpha), Metric(whitening(objective))
    weight, promised = STIFF, math.inf
    for _ in range(max_iter):
        best = watch.best.value
        value, grad = objective.value_and_grad(w)
        planes.add(w, value, grad)
        watch.bound = max(watch.bound, planes.lower_bound())
        watch.see(w, value, grad, math.inf)
        if watch.step():
            return watch.stopped_by
        if best - value >= PROMISED * promised or promised <= ROUNDING * abs(value):
            weight *= 0.5
        elif value - best > promised:
            weight *= 2.0
        if weight < SOFT:
            return "precision"
        w = planes.nearest(watch.best.w, metric, weight)
        promised = watch.best.value - planes.height(w)
        planes.drop_idle()
    return "max_iter"

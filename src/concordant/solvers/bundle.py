"""Bundle solver: for losses with corners, with a certified duality gap.

The mean loss lies above each of its tangent planes. The maximum of the planes so far, plus the penalty, is
a model whose minimum, computed from its dual, is a lower bound of the optimum; the gap is the objective at
the best weights minus this bound. The next weights minimise the model plus a distance from the best ones,
measured in the coordinates of `whitening`. The smaller the penalty, the more gradients this saves, compared
with the minimum of the model alone (SVMstruct) and with the plain distance; `python -m benchmarks maxmargin`
counts them.
"""

from __future__ import annotations

import math

import numpy as np

from concordant.exceptions import ParameterError
from concordant.solvers.checkpoint import Journal
from concordant.solvers.objective import LinearObjective
from concordant.solvers.precondition import Preconditioner, whitening
from concordant.solvers.solution import Callback, Solution, SolverTrace
from concordant.types import FloatArray

# A concave quadratic over the simplex: the shares of the planes in the lower bound.

EPSILON = float(np.finfo(float).eps)
RIDGE = 1e-13  # relative to a curvature: planes may repeat
SLOPE_ROUNDING = 1e-14  # a slope this small is rounding, no reason to add a plane
MOST_CHANGES = 10  # of the active planes, per plane


def best_mixture(H: FloatArray, b: FloatArray, start: FloatArray) -> FloatArray:
    """Return shares >= 0 that add up to 1 and maximise b @ shares - shares @ H @ shares / 2.

    Active sets: the maximum over the nonzero shares solves a linear system, and shares enter or leave one
    at a time. From a good start few changes are needed. Every result is feasible, so that a bound computed
    from it holds despite rounding.

    Parameters
    ----------
    H
        Symmetric, no direction of negative curvature.
    b
        One number per share.
    start
        Feasible shares.

    Examples
    --------
    >>> best_mixture(np.eye(3), np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])).round(6).tolist()
    [0.0, 0.5, 0.5]
    """
    alone = b - 0.5 * np.diagonal(H)
    start, reached = start / start.sum(), float(start @ (b - 0.5 * (H @ start)))
    if not reached > alone.max():
        start, reached = np.eye(len(b))[np.argmax(alone)], float(alone.max())
    room = float(b.max()) - reached  # the maximum exceeds `reached` by at most this
    if not room > EPSILON * abs(float(b.max())):
        return start
    # In units of the room, and of each plane's curvature: one steep plane does not drown the others.
    units = 1.0 / np.sqrt(1.0 + np.diagonal(H) / room)
    round_H, low = units[:, None] * (H / room) * units, (b - b.max()) / room * units
    shares = _climb_shares(round_H, low, units, start / units) * units
    mixture: FloatArray = shares / shares.sum()
    return mixture


def _climb_shares(H: FloatArray, b: FloatArray, units: FloatArray, shares: FloatArray) -> FloatArray:
    """Add and remove shares, one at a time, while the objective rises; units @ shares stays 1."""
    active, reached = np.flatnonzero(shares > 0.0).tolist(), -np.inf
    for _ in range(MOST_CHANGES * len(b)):
        target, level = _unconstrained_shares(H, b, units, active)
        if (target > 0.0).all():
            shares[active] = target
            value = float(b @ shares - 0.5 * shares @ (H @ shares))
            if not value > reached:  # rounding: it would cycle
                break
            reached, slopes = value, b - H @ shares - level * units
            slopes[active] = 0.0
            best = int(np.argmax(slopes))
            if slopes[best] <= SLOPE_ROUNDING:
                break
            active.append(best)
        else:
            shares[active], leaver = _move_to_boundary(shares[active], target)
            del active[leaver]
    return shares


def _unconstrained_shares(
    H: FloatArray, b: FloatArray, units: FloatArray, active: list[int]
) -> tuple[FloatArray, float]:
    """Return the best shares of the active planes, of any sign, with units @ shares = 1; and the dual."""
    n = len(active)
    system, right = np.zeros((n + 1, n + 1)), np.ones(n + 1)
    system[:n, :n], right[:n] = H[np.ix_(active, active)], b[active]
    system[n, :n] = system[:n, n] = units[active]
    system.flat[: n * (n + 2) : n + 2] += RIDGE
    solved = np.linalg.solve(system, right).astype(np.float64, copy=False)
    return solved[:n], float(solved[n])


def _move_to_boundary(shares: FloatArray, target: FloatArray) -> tuple[FloatArray, int]:
    """Move the shares towards the target until one becomes 0; return them and the index of that one."""
    falling = target <= 0.0
    ratios = np.full(len(shares), np.inf)
    # A share that is 0 and should fall leaves at once, whatever 0/0 would say.
    ratios[falling] = shares[falling] / np.maximum(shares[falling] - target[falling], np.finfo(float).tiny)
    leaver = int(np.argmin(ratios))
    moved: FloatArray = np.maximum(shares + ratios[leaver] * (target - shares), 0.0)
    moved[leaver] = 0.0
    return moved, leaver


# Tangent planes of a convex loss, and the distance in which steps between them are measured.

ROUNDED = 1e-15  # share of a sum that rounding may lose
IDLE_ROUNDS = 50  # rounds without a share after which a plane is dropped


class Planes:
    """Tangent planes of the mean loss: values and slopes at the origin, and shares of the last mixture."""

    def __init__(self, n_features: int, alpha: float) -> None:
        self.alpha = alpha
        self.slopes, self.heights = np.empty((0, n_features)), np.empty(0)
        self.products = np.empty((0, 0))  # of the slopes
        self.shares, self.near, self.idle = np.empty(0), np.empty(0), np.empty(0)
        self.turned = np.empty((0, n_features))  # slopes along the axes of the distance

    def add(self, w: FloatArray, value: float, grad: FloatArray, size: float = 0.0) -> None:
        """Add the plane at these weights, given the objective there and its gradient.

        `size` is the magnitude of the terms whose difference gradient @ w is; it bounds the rounding error.
        """
        slope, penalty = grad - self.alpha * w, 0.5 * self.alpha * float(w @ w)
        size += abs(value) + penalty + float(np.abs(slope) @ np.abs(w))
        # Far out the height is a small difference of large numbers: the rounding error is subtracted.
        height = value - penalty - float(slope @ w) - ROUNDED * size
        crossed = self.slopes @ slope
        self.products = np.block([[self.products, crossed[:, None]], [crossed, slope @ slope]])
        self.slopes, self.heights = np.vstack([self.slopes, slope]), np.r_[self.heights, height]
        first = float(not self.shares.size)
        self.shares, self.near = np.r_[self.shares, first], np.r_[self.near, first]
        self.idle = np.r_[self.idle, 0.0]

    def lower_bound(self) -> float:
        """Minimise the model exactly: a lower bound of the objective at any weights."""
        self.shares = best_mixture(self.products / self.alpha, self.heights, self.shares)
        pull = self.shares @ self.slopes  # its square, unlike one of the products, is never rounded below 0
        return float(self.heights @ self.shares - 0.5 * (pull @ pull) / self.alpha)

    def nearest(self, centre: FloatArray, distance: Distance, weight: float) -> FloatArray:
        """Minimise the model plus weight/2 times the squared distance from the centre."""
        fresh = self.slopes[len(self.turned) :]
        self.turned = np.vstack([self.turned, distance.turn(fresh)])
        shrunk = 1.0 / (self.alpha + weight * distance.curves)
        start = shrunk * (weight * distance.curves) * distance.turn(centre)
        H = (self.turned * shrunk) @ self.turned.T
        self.near = best_mixture(0.5 * (H + H.T), self.heights + self.turned @ start, self.near)
        return distance.back(start - shrunk * (self.near @ self.turned))

    def height(self, w: FloatArray) -> float:
        """Evaluate the model at these weights."""
        return float((self.slopes @ w + self.heights).max() + 0.5 * self.alpha * (w @ w))

    def drop_idle(self) -> None:
        """Drop planes that have had no share for long."""
        self.idle = np.where((self.shares > 0.0) | (self.near > 0.0), 0.0, self.idle + 1.0)
        busy = np.flatnonzero(self.idle < IDLE_ROUNDS)
        if len(busy) < len(self.idle):
            self.slopes, self.heights, self.idle = self.slopes[busy], self.heights[busy], self.idle[busy]
            self.products = self.products[np.ix_(busy, busy)]
            self.turned = self.turned[busy[busy < len(self.turned)]]
            self.shares, self.near = self.shares[busy], self.near[busy]


class Distance:
    """Squared distance in whitened coordinates, w'(P P')^-1 w: a sum of curves * squares along its axes."""

    def __init__(self, frame: Preconditioner) -> None:
        matrix = frame.matrix
        self.axes: FloatArray | None = None
        if matrix.ndim == 1:
            self.curves = matrix**-2.0
        else:
            self.axes, sizes, _ = np.linalg.svd(matrix)
            self.curves = sizes**-2.0

    def turn(self, w: FloatArray) -> FloatArray:
        """Return the coordinates of a vector, or of each row of a matrix, along the axes."""
        return w if self.axes is None else w @ self.axes

    def back(self, turned: FloatArray) -> FloatArray:
        """Return the vector with these coordinates along the axes."""
        return turned if self.axes is None else self.axes @ turned


STIFF = 32.0  # initial weight of the distance: too large costs a few halvings, too small a wild start
PROMISED = 0.5  # share of the predicted decrease above which the model is trusted more
SOFT = 1e-9  # below this weight the distance no longer matters
ROUNDING = 1e-14  # a decrease below this share of the objective is rounding
IDLE = 50  # rounds with no decrease and no better bound, after which the work stops


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
    (if that is 0: times the lowest value so far). The penalty must be > 0. Ctrl-C ends the work; the best
    weights so far are returned, and `stopped_by` is "interrupt". The journal is as in `lbfgs`.

    References
    ----------
    Joachims, Finley and Yu (2009) and Teo et al. (2010) for the planes and the gap; Lemaréchal, Nemirovskii
    and Nesterov (1995) for the distance.
    """
    if not objective.alpha > 0.0:
        raise ParameterError("alpha", objective.alpha, "> 0")
    trace = SolverTrace(objective, w, tol, callback, journal)
    return trace.run(lambda: _bundle_steps(objective, w.copy(), trace, max_iter))


def _bundle_steps(objective: LinearObjective, w: FloatArray, trace: SolverTrace, max_iter: int) -> str:
    planes, distance = Planes(objective.n_features, objective.alpha), Distance(whitening(objective))
    weight, promised, widest, idle = STIFF, math.inf, objective.widest() / objective.scale, 0
    for number in range(max_iter):
        best, bound = trace.best.value, trace.bound
        with np.errstate(over="ignore", invalid="ignore"):  # too far out a loss may leave the doubles
            value, grad, slopes = _evaluate(objective, w, trace)
            usable = math.isfinite(value + float(grad @ grad) / objective.alpha)
        if usable:
            far = max(np.linalg.norm(w), np.linalg.norm(trace.best.w))
            size = float(slopes * np.linalg.norm(widest) * far)
            planes.add(w, value, grad, size)
            trace.bound = max(trace.bound, planes.lower_bound())
        trace.see(w, value, grad, math.inf)
        # Weights 0 rank nothing: within the tolerance or not, one step is taken.
        unmoved = number == 0 and not w.any() and trace.excess(trace.best) > ROUNDING * abs(value)
        if trace.step() and not (unmoved and trace.stopped_by == "tolerance"):
            return trace.stopped_by
        trace.stopped_by = ""
        moved = max(best - trace.best.value, trace.bound - bound)
        idle = idle + 1 if moved <= ROUNDING * abs(value) else 0
        if weight == 0.0 or idle > IDLE or not planes.heights.size:
            return "precision"
        if best - value >= PROMISED * promised or promised <= ROUNDING * abs(value):
            weight *= 0.5
        elif value - best > promised or not usable:
            weight *= 2.0
        if weight < SOFT:
            weight = 0.0  # once: the minimum of the model itself
        w = planes.nearest(trace.best.w, distance, weight)
        promised = trace.best.value - planes.height(w)
        planes.drop_idle()
    return "max_iter"


def _evaluate(
    objective: LinearObjective, w: FloatArray, trace: SolverTrace
) -> tuple[float, FloatArray, float]:
    """Evaluate the objective, its gradient, and the summed sizes of the slopes in the scores."""

    def work() -> tuple[float, FloatArray, float]:
        value, grad = objective.value_and_grad(w)
        return value, grad, objective.slopes

    value, grad, slopes = trace.recall("value, gradient and slopes", (w,), work)
    return float(value), grad, float(slopes)

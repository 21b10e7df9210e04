"""Where a solver stopped, and how far from optimal it may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from concordant.types import FloatArray

__all__ = ["Callback", "Solution", "Step", "Watch"]


@dataclass(frozen=True, eq=False)
class Step:
    """What a callback is told after each iteration (an epoch, of the stochastic solver).

    Attributes
    ----------
    iteration
        Counted from 1.
    value
        The objective.
    excess, goal
        How far the objective is, by estimate, above its optimum; and where the solver stops.
    w
        The weights; a copy.
    """

    iteration: int
    value: float
    excess: float
    goal: float
    w: FloatArray


Callback = Callable[[Step], object]
"""Called after each iteration; a true answer ends the work there."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver stopped, and how far from optimal it may be.

    Attributes
    ----------
    w
        The best weights seen.
    value, gradient_norm
        The objective there, and the length of its gradient.
    excess
        How far the objective is above its optimum, by estimate: half the squared length of the gradient in
        coordinates in which the Hessian is about 1 (the Newton decrement).
    gap
        How far it is above at most: gradient_norm^2 / (2 alpha), since the objective is alpha-strongly
        convex. Infinite where alpha is 0; where the surrogate has corners, an indication only.
    n_iter, n_gradients
        Iterations, and passes over X that gave a gradient or a Hessian product.
    converged
        Whether the excess came below the tolerance.
    stopped_by
        "tolerance", "max_iter", "callback", "interrupt", or "precision": no step could lower the objective.
    """

    w: FloatArray
    value: float
    gradient_norm: float
    excess: float
    gap: float
    n_iter: int
    n_gradients: int
    converged: bool
    stopped_by: str


@dataclass(frozen=True, eq=False)
class Point:
    """An evaluation."""

    w: FloatArray
    value: float
    grad: FloatArray
    excess: float


class Watch:
    """What a solver has seen: the last and the best point, and when it is good enough."""

    def __init__(self, tol: float, callback: Callback | None) -> None:
        self.tol, self.callback = tol, callback
        self.goal = 0.0
        self.last: Point | None = None
        self.best: Point | None = None
        self.n_iter, self.stopped_by = 0, ""

    def see(self, w: FloatArray, value: float, grad: FloatArray, excess: float) -> None:
        """Take note of an evaluation."""
        if self.best is None:  # some losses begin at 0: then the first excess is the measure
            self.goal = self.tol * max(abs(value), excess)
        self.last = Point(w.copy(), value, grad, excess)
        if self.best is None or (value, excess) < (self.best.value, self.best.excess):
            self.best = self.last

    @property
    def done(self) -> bool:
        """Whether the last point is good enough."""
        return self.last is not None and self.last.excess <= self.goal

    def step(self) -> bool:
        """Tell the callback of an iteration; whether to stop."""
        self.n_iter += 1
        if self.done:
            self.stopped_by = "tolerance"
        if self.callback is not None and self.last is not None:
            point = self.last
            told = Step(self.n_iter, point.value, point.excess, self.goal, point.w.copy())
            if self.callback(told) and not self.stopped_by:
                self.stopped_by = "callback"
        return bool(self.stopped_by)

    def solution(self, alpha: float, n_gradients: int) -> Solution:
        """Give the best point."""
        best = self.best or Point(np.empty(0), math.nan, np.empty(0), math.inf)
        norm = float(np.linalg.norm(best.grad))
        gap = norm * norm / (2.0 * alpha) if alpha > 0.0 else math.inf
        converged = best.excess <= self.goal
        reason = "tolerance" if converged else self.stopped_by
        counts = self.n_iter, n_gradients
        return Solution(best.w, best.value, norm, best.excess, gap, *counts, converged, reason)

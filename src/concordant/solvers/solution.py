"""Where a solver stopped, and how far from optimal it may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from concordant.types import FloatArray

__all__ = ["Callback", "Solution", "Step", "Watch"]


@dataclass(frozen=True)
class Step:
    """What a callback is told after each iteration (an epoch, of the stochastic solver).

    Attributes
    ----------
    iteration
        Counted from 1.
    value
        The objective.
    gradient_norm, gradient_goal
        The gradient's length, and where the solver stops.
    w
        The weights; a copy.
    """

    iteration: int
    value: float
    gradient_norm: float
    gradient_goal: float
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
    gap
        No weights have an objective more than this below `value`: gradient_norm^2 / (2 alpha), since the
        objective is alpha-strongly convex. Infinite where alpha is 0 or the surrogate has corners.
    n_iter, n_gradients
        Iterations, and passes over X that gave a gradient or a Hessian product.
    converged
        Whether the gradient came below the tolerance.
    stopped_by
        "tolerance", "max_iter", "callback", "interrupt", or "precision": no step could lower the objective.
    """

    w: FloatArray
    value: float
    gradient_norm: float
    gap: float
    n_iter: int
    n_gradients: int
    converged: bool
    stopped_by: str


class Watch:
    """What a solver has seen: the best point so far, and the goal, a share of the first gradient."""

    def __init__(self, tol: float, callback: Callback | None) -> None:
        self.tol, self.callback = tol, callback
        self.goal = math.nan
        self.best: tuple[float, float, FloatArray] | None = None  # value, gradient's length, weights
        self.n_iter, self.stopped_by = 0, ""

    def see(self, w: FloatArray, value: float, grad: FloatArray) -> None:
        """Take note of an evaluation."""
        norm = float(np.linalg.norm(grad))
        if self.best is None:
            self.goal = self.tol * norm
        if self.best is None or value < self.best[0] or (value == self.best[0] and norm < self.best[1]):
            self.best = value, norm, w.copy()

    def step(self, w: FloatArray, value: float, norm: float) -> bool:
        """Tell the callback of an iteration; whether to stop."""
        self.n_iter += 1
        told = Step(self.n_iter, value, norm, self.goal, w.copy())
        if self.callback is not None and self.callback(told):
            self.stopped_by = "callback"
        elif norm <= self.goal:
            self.stopped_by = "tolerance"
        return bool(self.stopped_by)

    def solution(self, alpha: float, n_gradients: int) -> Solution:
        """Give the best point."""
        value, norm, w = self.best if self.best is not None else (math.nan, math.nan, np.empty(0))
        converged = norm <= self.goal
        gap = norm * norm / (2.0 * alpha) if alpha > 0.0 else math.inf
        reason = "tolerance" if converged else self.stopped_by
        return Solution(w, value, norm, gap, self.n_iter, n_gradients, converged, reason)

"""Where a solver stopped, and how far from optimal it may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant.solvers.checkpoint import Journal, Numbers, recall_or_run
from concordant.types import FloatArray

if TYPE_CHECKING:
    from concordant.solvers.objective import Objective

REASONS = "tolerance", "max_iter", "callback", "interrupt", "precision"


@dataclass(frozen=True, eq=False)
class Step:
    """State of a solver after an iteration (an epoch, of the stochastic solver), passed to the callback.

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
        Upper bound of that distance. For the bundle solver the duality gap, which is also the excess;
        otherwise gradient_norm^2 / (2 alpha), since the objective is alpha-strongly convex: infinite if
        alpha is 0; only an indication if the surrogate has corners.
    n_iter, n_gradients
        Iterations, and passes over X that gave a gradient or a Hessian product.
    converged
        True if the excess came below the tolerance.
    stopped_by
        "tolerance", "max_iter", "callback", "interrupt" (Ctrl-C; before the first evaluation `w` is the
        start, and the value NaN), or "precision": no step could lower the objective.
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

    @property
    def numbers(self) -> Numbers:
        """Everything as numbers, for a journal."""
        sizes = self.value, self.gradient_norm, self.excess, self.gap
        counts = self.n_iter, self.n_gradients, self.converged, REASONS.index(self.stopped_by)
        return self.w, sizes, counts

    @classmethod
    def from_numbers(cls, w: FloatArray, sizes: Sequence[float], counts: Sequence[float]) -> Self:
        """Rebuild a solution from `numbers`."""
        n_iter, n_gradients, converged, reason = map(int, counts)
        value, gradient_norm, excess, gap = map(float, sizes)
        how = n_iter, n_gradients, bool(converged), REASONS[reason]
        return cls(w, value, gradient_norm, excess, gap, *how)


@dataclass(frozen=True, eq=False)
class Point:
    """An evaluation of the objective."""

    w: FloatArray
    value: float
    grad: FloatArray
    excess: float


class SolverTrace:
    """Evaluations of a solver: the last and the best point, and the stopping rule."""

    def __init__(
        self,
        objective: Objective,
        w: FloatArray,
        tol: float,
        callback: Callback | None,
        journal: Journal | None = None,
    ) -> None:
        self.objective, self.tol, self.callback, self.journal = objective, tol, callback, journal
        self.scores_are_stale = False  # the objective was not evaluated at the last weights
        self.before = objective.n_gradients
        self.level = 0.0  # size of the objective at weights 0, the unit of the tolerance
        self.best = self.last = Point(w.copy(), math.nan, np.full(len(w), math.nan), math.inf)
        self.n_iter, self.stopped_by = 0, ""
        self.bound = -math.inf  # lower bound of the objective, if the solver has one

    def recall(self, kind: str, inputs: Numbers, work: Callable[[], Numbers]) -> list[Any]:
        """Evaluate work on the objective, or replay it from the journal; passes are counted either way."""
        before = self.objective.n_gradients
        if self.journal is None:
            return list(work())

        def run_and_count() -> Numbers:
            return *work(), self.objective.n_gradients - before

        (*result, passes), self.scores_are_stale = recall_or_run(self.journal, kind, inputs, run_and_count)
        self.objective.n_gradients = before + int(passes)
        return result

    def evaluate(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Evaluate the objective and its gradient."""
        value, grad = self.recall("value and gradient", (w,), lambda: self.objective.value_and_grad(w))
        return float(value), grad

    def catch_up(self, w: FloatArray) -> None:
        """Evaluate the objective at `w` again, if the last evaluation was read from the journal."""
        if self.scores_are_stale:
            before = self.objective.n_gradients
            self.objective.value_and_grad(w)
            self.objective.n_gradients, self.scores_are_stale = before, False

    def see(self, w: FloatArray, value: float, grad: FloatArray, excess: float) -> None:
        """Record an evaluation."""
        if math.isnan(self.last.value):  # the first evaluation: a bad start must not loosen the tolerance
            self.level = abs(self.objective.at_rest()) if w.any() else abs(value)
        self.last = Point(w.copy(), value, grad, excess)
        if math.isnan(self.best.value) or (value, excess) < (self.best.value, self.best.excess):
            self.best = self.last

    @property
    def goal(self) -> float:
        """Excess that is small enough; relative to the best value where the loss is 0 at weights 0."""
        return self.tol * (self.level or abs(self.best.value))

    def excess(self, point: Point) -> float:
        """Distance of a point's objective from its optimum: an estimate, or an upper bound."""
        return min(point.excess, point.value - self.bound)

    @property
    def done(self) -> bool:
        """True if the last point is good enough, or an earlier one, now that the bound has risen."""
        return self.excess(self.last) <= self.goal or self.excess(self.best) <= self.goal

    def step(self) -> bool:
        """Count an iteration and call the callback; True if the solver should stop."""
        self.n_iter += 1
        if self.done:
            self.stopped_by = "tolerance"
        if self.callback is not None:
            point = self.last if self.bound == -math.inf else self.best
            step = Step(self.n_iter, point.value, self.excess(point), self.goal, point.w.copy())
            if self.callback(step) and not self.stopped_by:
                self.stopped_by = "callback"
        return bool(self.stopped_by)

    def run(self, take_steps: Callable[[], str]) -> Solution:
        """Take the steps, which return why they stopped; Ctrl-C ends them, too."""
        try:
            with one_blas_thread():
                self.stopped_by = take_steps()
        except KeyboardInterrupt:
            self.stopped_by = "interrupt"
        return self.solution()

    def solution(self) -> Solution:
        """Return the best point as a solution."""
        best = self.last if self.done and self.excess(self.best) > self.goal else self.best
        with np.errstate(over="ignore"):  # infinite: that is its value in doubles
            norm = float(np.linalg.norm(best.grad))
        alpha, excess = self.objective.alpha, self.excess(best)
        gap = norm * norm / (2.0 * alpha) if alpha > 0.0 else math.inf
        gap = gap if self.bound == -math.inf else excess
        converged = excess <= self.goal
        reason = "tolerance" if converged and self.stopped_by != "interrupt" else self.stopped_by
        counts = self.n_iter, self.objective.n_gradients - self.before
        return Solution(best.w, best.value, norm, excess, gap, *counts, converged, reason)

"""The comparison family on linear features: Newton steps in the primal, certified by the dual.

With flipped differences d (right - left, turned so that right is better), g = u.d and cost C, all methods
minimise over u, and over b where there is a bias,

    1/2 u.u + C [wD sum over differences of h(1 - b - g) + wT sum over ties of h(1 + b - g) + h(1 + b + g)]

- compare: wD = wT = 1 with a bias: the binary machine of the paper (equations 9 and 15), where each tie
  enters once each way round; r = -u/b and threshold 1, by its Lemma 1;
- rank: wT = 0 and b = 0, the ranking machine; rank2: wD = 2, wT = 1 and b = 0. Their threshold is fitted.

h is the hinge, its square, or (with margin 0 in place of 1) the logistic loss. A hinge is rounded over
[0, delta], delta falling until the duality gap of the hinge itself is small; where few enough losses sit at
their corner, the exact optimum is tried. A step passes over the rows once, copies those that are bent (at
first all) and factorises a matrix of their number or that of the features, whichever is less; no tie is
written twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from concordant._segments import one_blas_thread
from concordant.solvers.journal import Journal, Numbers, recalled
from concordant.solvers.margin_newton import certified, cornered, settle
from concordant.solvers.margin_problem import At, Problem
from concordant.solvers.margin_rows import RowProblem
from concordant.types import BoolArray, FloatArray

__all__ = [
    "LOSSES",
    "METHODS",
    "MarginSolution",
    "Method",
    "fit_margin",
    "minimised",
    "objective",
    "problem_of",
]

LOSSES: Mapping[str, int] = {"hinge": 0, "squared_hinge": 1, "logistic": 2}
COARSEST, FINEST = 2.0, 1e-9  # where rounding begins (every hinge is bent at rest), and where doubles end
STEPS = 60  # at one rounding
UNSETTLED, NEGLIGIBLE = 1e-7, 1e-24  # shares at which steps end: of the gap wanted, and of all there is
RISING = (1e-6, 1e-4, 1e-2)  # shares of the cost
SAMPLE, SAMPLE_FROM = 4_000, 20_000  # rows to start from, and of how many
SMALL = 200  # features up to which threads of matrix products only wait
TINY = 1e-300


@dataclass(frozen=True)
class Method:
    """One member of the family: the weights of differences and ties, and whether there is a bias."""

    difference_weight: float
    tie_weight: float
    has_bias: bool


METHODS: Mapping[str, Method] = {
    "compare": Method(1.0, 1.0, has_bias=True),
    "rank": Method(1.0, 0.0, has_bias=False),
    "rank2": Method(2.0, 1.0, has_bias=False),
}


@dataclass(frozen=True, eq=False)
class MarginSolution:
    """Where the solver stopped.

    Attributes
    ----------
    w, bias
        Direction u and bias b.
    value, gap
        The objective, and how far it is above its optimum at most: the difference to a feasible point of the
        dual.
    n_iter
        Newton steps.
    converged
        Whether the gap came below the tolerance times the objective.
    """

    w: FloatArray
    bias: float
    value: float
    gap: float
    n_iter: int
    converged: bool


def fit_margin(
    differences: FloatArray,
    is_tie: BoolArray,
    *,
    C: float,
    method: str = "compare",
    loss: str = "hinge",
    sample_weight: FloatArray | None = None,
    tol: float = 1e-5,
    max_iter: int = 1000,
    start: tuple[FloatArray, float] | None = None,
    callback: Callable[[int, float], object] | None = None,
    journal: Journal | None = None,
) -> MarginSolution:
    """Minimise the objective of this module.

    Parameters
    ----------
    differences
        right - left, turned so that right is better; ties either way round. Shape (n, p).
    is_tie
        Which pairs are ties.
    C, method, loss, sample_weight
        As in the objective; weights multiply C.
    tol
        Share of the objective at which the duality gap is small enough.
    max_iter
        Newton steps at most.
    start
        Direction and bias to start from, say those of a neighbouring C.
    callback
        Called with the number of steps and the gap after each round; a true answer ends the work.
    journal
        Where the weights after each round are written down: the work goes on from there.

    Examples
    --------
    >>> d = np.array([[2.0], [0.5]])
    >>> found = fit_margin(d, np.array([False, True]), C=100.0, tol=1e-10)
    >>> found.w.round(6).tolist(), round(found.bias, 6), found.converged
    ([1.333333], -1.666667, True)
    """
    problem = problem_of(differences, is_tie, C, method, loss, sample_weight)
    return minimised(problem, tol, max_iter, start=start, callback=callback, journal=journal)


def minimised(
    problem: Problem[At],
    tol: float,
    max_iter: int,
    *,
    start: tuple[FloatArray, float] | None = None,
    callback: Callable[[int, float], object] | None = None,
    journal: Journal | None = None,
) -> MarginSolution:
    """Minimise over rows that are in memory, or in parts; the parameters are those of `fit_margin`."""
    with one_blas_thread() if problem.n_features <= SMALL else nullcontext():
        if start is None and problem.n_rows > SAMPLE_FROM:
            start = rough_start(problem, journal)
        found = solve(problem, tol, max_iter, start, callback, journal=journal)
        if found.converged or callback is not None:
            return found
        other = with_care(problem, tol, max_iter, journal)
        return other if other.gap < found.gap else found


def with_care(problem: Problem[At], tol: float, max_iter: int, journal: Journal | None) -> MarginSolution:
    """Solve what did not come near: by a cost that rises to its own, and steps until nothing moves."""
    start = None
    for share in RISING:
        cheaper = problem.cheaper(share)
        found = solve(cheaper, 1e-2, max_iter, start, None, journal=journal)
        start = found.w, found.bias
    return solve(problem, tol, max_iter, start, None, NEGLIGIBLE, journal)


def problem_of(
    differences: FloatArray,
    is_tie: BoolArray,
    C: float,
    method: str,
    loss: str,
    sample_weight: FloatArray | None = None,
) -> RowProblem:
    """Give the rows that cost something."""
    family, cost = METHODS[method], costs(is_tie, C, method, sample_weight)
    used = cost > 0.0
    chosen = (differences, is_tie, cost) if used.all() else (differences[used], is_tie[used], cost[used])
    rows = np.ascontiguousarray(chosen[0], dtype=np.float64)
    return RowProblem(rows, chosen[1], chosen[2], family.has_bias, LOSSES[loss])


def costs(is_tie: BoolArray, C: float, method: str, sample_weight: FloatArray | None) -> FloatArray:
    """Give what a unit of loss costs, row by row."""
    family = METHODS[method]
    cost: FloatArray = C * np.where(is_tie, family.tie_weight, family.difference_weight)
    return cost if sample_weight is None else cost * sample_weight


def rough_start(problem: Problem[At], journal: Journal | None) -> tuple[FloatArray, float]:
    """Solve a sample of the rows first: its optimum is near that of all, at a fraction of the cost."""
    size = max(SAMPLE, 4 * problem.n_features)
    chosen = np.random.default_rng(0).permutation(problem.n_rows)[:size]
    found = solve(problem.sample(np.sort(chosen)), 1e-2, 50, None, None, journal=journal)
    return found.w, found.bias


def solve(
    problem: Problem[At],
    tol: float,
    max_iter: int,
    start: tuple[FloatArray, float] | None,
    callback: Callable[[int, float], object] | None,
    least: float | None = None,
    journal: Journal | None = None,
) -> MarginSolution:
    """Round the hinge less and less, until the gap is small; steps end at `least` of the objective."""
    least = max(1e-15, UNSETTLED * tol) if least is None else least
    w, bias = start if start is not None else (np.zeros(problem.n_features), 0.0)
    delta = COARSEST if start is None else 0.1
    best, n_iter = MarginSolution(w, bias, math.inf, math.inf, 0, converged=False), 0
    while True:
        point, taken = settled(problem, (w, bias, delta), min(STEPS, max_iter - n_iter), least, journal)
        n_iter += taken
        value, gap = certified(problem, point)
        w, bias = point.w, point.bias
        if problem.kind == 0 and gap > tol * value and (corner := cornered(problem, point)) is not None:
            w, bias, value, gap = corner if corner[3] < gap else (w, bias, value, gap)
        if gap < best.gap:
            best = MarginSolution(w, bias, value, gap, n_iter, converged=gap <= tol * max(value, TINY))
        at_rest = point.delta <= FINEST if problem.kind == 0 else taken < STEPS
        over = at_rest or n_iter >= max_iter
        if best.converged or over or (callback is not None and callback(n_iter, gap)):
            return best
        # The gap falls like delta squared: pairs in the rounded part, times what each of them loses.
        share = math.sqrt(0.5 * tol * value / max(gap, TINY))
        w, bias, delta = point.w, point.bias, point.delta * min(max(share, 0.1), 0.5)


def settled(
    problem: Problem[At],
    place: tuple[FloatArray, float, float],
    budget: int,
    least: float,
    journal: Journal | None,
) -> tuple[At, int]:
    """Take Newton steps at one rounding, or look where those of the journal ended; the point, how many."""
    reached: list[At] = []

    def work() -> Numbers:
        point, taken = settle(problem, problem.look(*place), budget, least)
        reached.append(point)
        return point.w, point.bias, taken

    (w, bias, taken), _ = recalled(journal, "round", (*place, budget), work)
    return reached[0] if reached else problem.look(w, float(bias), place[2]), int(taken)


def objective(
    g: FloatArray, is_tie: BoolArray, weight: FloatArray, *, bias: float, C: float, family: Method
) -> float:
    """Give the hinge losses of scores g."""
    from concordant.solvers.margin_kernels import losses

    cost = C * weight * np.where(is_tie, family.tie_weight, family.difference_weight)
    return float(losses(g, is_tie, cost, bias, LOSSES["hinge"], 0.0))

"""Solver of the comparison family on linear features: Newton steps in the primal, certified by the dual.

With flipped differences d (right - left, turned so that right is better), g = u.d and cost C, all methods
minimise over u, and over b where there is a bias,

    1/2 u.u + C [wD sum over differences of h(1 - b - g) + wT sum over ties of h(1 + b - g) + h(1 + b + g)]

- compare: wD = wT = 1 with a bias: the binary machine of the paper (equations 9 and 15), where each tie
  enters once in each direction; r = -u/b and threshold 1, by its Lemma 1;
- rank: wT = 0 and b = 0, the ranking machine; rank2: wD = 2, wT = 1 and b = 0. Their threshold is fitted.

h is the hinge, its square, or (with margin 0 in place of 1) the logistic loss. A hinge is rounded over
[0, delta], with delta decreasing until the duality gap of the hinge itself is small; where few enough losses
are at their corner, the exact optimum is tried. A step passes over the rows once, copies the rows with
curvature (at first all) and factorizes a matrix of their number or of the number of features, whichever is
less; no tie is stored twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from concordant._base.segments import one_blas_thread
from concordant.comparisons.machines.corner import CORNERS, CornerSolution, exact_corner
from concordant.comparisons.machines.machine_parts import MachinePoint, MachineProblem
from concordant.comparisons.machines.machine_rows import RowProblem
from concordant.solvers.checkpoint import Journal, Numbers, recall_or_run
from concordant.types import BoolArray, FloatArray

# Newton steps on the comparison family, one pass over the rows each; and the gap to the dual.

NOISE = 1e-11  # share of the objective below which a step may be rounding
DAMPING = 1e-9  # share of the total cost, on the bias: possibly no pair has curvature
PASSES = 60  # of a line search
TINY, ROUNDOFF = 1e-300, 1e-10


def _solve_corner(problem: MachineProblem, point: MachinePoint) -> CornerSolution | None:
    """Try the exact optimum, once no more losses have curvature than weights can put at their corner."""
    if point.n_curved > min(2 * len(point.w) + 2, CORNERS):
        return None
    return exact_corner(problem.hinges(point), problem.n_features)


def _settle(
    problem: MachineProblem, point: MachinePoint, budget: int, least: float
) -> tuple[MachinePoint, int]:
    """Take Newton steps until none lowers the objective by this share; return the point and their number."""
    before = math.inf
    for taken in range(budget):
        grad = point.grad
        step = _newton_step(problem, point, grad)
        decrement = -float(grad @ step)
        stuck = decrement <= NOISE * point.value and decrement > 0.5 * before
        if stuck or not decrement > least * point.value:
            return point, taken
        before = decrement
        ahead = problem.look(point.w + step[:-1], point.bias + float(step[-1]), point.delta)
        if float(ahead.grad @ step) > 0.5 * decrement:  # too far: it rises there
            t = _line_search(problem, point, ahead, step, decrement)
            ahead = problem.look(point.w + t * step[:-1], point.bias + t * float(step[-1]), point.delta)
        point = ahead
    return point, budget


def _newton_step(problem: MachineProblem, point: MachinePoint, grad: FloatArray) -> FloatArray:
    """Newton step: to the minimum of the quadratic model; weights first, then the bias."""
    against, mixed = problem.system(point)
    of_weights = against(grad[:-1])
    if not problem.has_bias:
        return -np.append(of_weights, 0.0)
    shared = against(mixed)
    stiff = float(point.sums[2]) + DAMPING * problem.total_cost
    rest = max(stiff - float(mixed @ shared), ROUNDOFF * stiff)
    of_bias = (float(grad[-1]) - float(mixed @ of_weights)) / rest
    reach = 4.0 + 2.0 * abs(point.bias)
    if abs(of_bias) > reach:
        reach += problem.max_score(point)  # past it no slope changes
        of_bias = min(max(of_bias, -reach), reach)
    return -np.append(of_weights - of_bias * shared, of_bias)


def _line_search(
    problem: MachineProblem, point: MachinePoint, ahead: MachinePoint, step: FloatArray, decrement: float
) -> float:
    """Find the share of the step at which the objective is nearly lowest."""
    w, dw = point.w, step[:-1]
    linear, square = float(w @ dw), float(dw @ dw)
    losses = problem.along(point, ahead, float(step[-1]))
    return root(lambda t: linear + t * square + losses(t), -decrement)


def root(slope: Callable[[float], float], at_zero: float) -> float:
    """Find where in (0, 1] an increasing slope is near 0: shrink until it is negative, then bracket."""
    low, high, at_low, at_high, t = 0.0, 1.0, at_zero, slope(1.0), 1.0
    for number in range(PASSES if at_high > 0.0 else 0):  # else rounding: it does not rise after all
        secant = at_low / (at_low - at_high)
        share = min(max(secant, 0.01 if low == 0.0 else 0.1), 0.9)
        t = low + (high - low) * (share if number % 3 else min(share, 0.5))
        here = slope(t)
        if abs(here) <= 0.2 * abs(at_zero):
            break
        if here < 0.0:
            low, at_low = t, here
        else:
            high, at_high = t, here
    return t


def value_and_gap(problem: MachineProblem, point: MachinePoint) -> tuple[float, float]:
    """Evaluate the objective without rounding, and a bound on its distance from the optimum.

    The slopes of the losses are dual variables; those of the heavier side are scaled down so that both sides
    balance, as the dual requires with a bias.
    """
    heavy, light = float(point.sums[3]), float(point.sums[4])
    factors = np.ones(2)
    if problem.has_bias:
        factors = np.minimum([light / max(heavy, TINY), heavy / max(light, TINY)], 1.0)
    losses, dual = problem.dual_sums(point, factors)
    value = 0.5 * float(point.w @ point.w) + losses
    direction = factors @ point.grads
    bound = dual - 0.5 * float(direction @ direction)
    return value, max(value - bound, 0.0)


LOSSES: Mapping[str, int] = {"hinge": 0, "squared_hinge": 1, "logistic": 2}
COARSEST, FINEST = 2.0, 1e-9  # where rounding begins (every hinge is bent at rest), and where doubles end
STEPS = 60  # at one rounding
UNSETTLED, NEGLIGIBLE = 1e-7, 1e-24  # shares at which steps end: of the target gap, and of the objective
RISING = (1e-6, 1e-4, 1e-2)  # shares of the cost
SAMPLE, SAMPLE_FROM = 4_000, 20_000  # rows to start from, and of how many
SMALL = 200  # features up to which threads of matrix products only wait


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
    """Solution of the primal, with its duality gap.

    Attributes
    ----------
    w, bias
        Direction u and bias b.
    value, gap
        The objective, and a bound on its distance from the optimum: the difference to a feasible point of the
        dual.
    n_iter
        Newton steps.
    converged
        True if the gap came below the tolerance times the objective.
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
        right - left, with the sign that makes right the better side; ties with either sign. Shape (n, p).
    is_tie
        True where the pair is a tie.
    C, method, loss, sample_weight
        As in the objective; weights multiply C.
    tol
        Share of the objective at which the duality gap is small enough.
    max_iter
        Newton steps at most.
    start
        Direction and bias to start from, say those of a neighbouring C.
    callback
        Called with the number of steps and the gap after each round; a true return value stops the solver.
    journal
        Records the weights after each round, from which an interrupted run resumes.

    Examples
    --------
    >>> d = np.array([[2.0], [0.5]])
    >>> found = fit_margin(d, np.array([False, True]), C=100.0, tol=1e-10)
    >>> found.w.round(6).tolist(), round(found.bias, 6), found.converged
    ([1.333333], -1.666667, True)
    """
    rows = build_problem(differences, is_tie, C, method, loss, sample_weight)
    problem = MachineProblem.from_rows(rows)
    return minimise(problem, tol, max_iter, start=start, callback=callback, journal=journal)


def minimise(
    problem: MachineProblem,
    tol: float,
    max_iter: int,
    *,
    start: tuple[FloatArray, float] | None = None,
    callback: Callable[[int, float], object] | None = None,
    journal: Journal | None = None,
) -> MarginSolution:
    """Minimise over rows in memory or in parts; the parameters are those of `fit_margin`."""
    with one_blas_thread() if problem.n_features <= SMALL else nullcontext():
        if start is None and problem.n_rows > SAMPLE_FROM:
            start = _rough_start(problem, journal)
        solution = solve(problem, tol, max_iter, start, callback, journal=journal)
        if solution.converged or callback is not None:
            return solution
        careful = _solve_with_care(problem, tol, max_iter, journal)
        return careful if careful.gap < solution.gap else solution


def _solve_with_care(
    problem: MachineProblem, tol: float, max_iter: int, journal: Journal | None
) -> MarginSolution:
    """Solve a hard problem by costs that rise to the full cost, with steps until nothing moves."""
    start = None
    for share in RISING:
        scale_cost = problem.scale_cost(share)
        solution = solve(scale_cost, 1e-2, max_iter, start, None, journal=journal)
        start = solution.w, solution.bias
    return solve(problem, tol, max_iter, start, None, NEGLIGIBLE, journal)


def build_problem(
    differences: FloatArray,
    is_tie: BoolArray,
    C: float,
    method: str,
    loss: str,
    sample_weight: FloatArray | None = None,
) -> RowProblem:
    """Build the problem of the rows of nonzero cost."""
    family, cost = METHODS[method], costs(is_tie, C, method, sample_weight)
    used = cost > 0.0
    columns = (differences, is_tie, cost) if used.all() else (differences[used], is_tie[used], cost[used])
    rows = np.ascontiguousarray(columns[0], dtype=np.float64)
    return RowProblem(rows, columns[1], columns[2], family.has_bias, LOSSES[loss])


def costs(is_tie: BoolArray, C: float, method: str, sample_weight: FloatArray | None) -> FloatArray:
    """Cost of a unit of loss, row by row."""
    family = METHODS[method]
    cost: FloatArray = C * np.where(is_tie, family.tie_weight, family.difference_weight)
    return cost if sample_weight is None else cost * sample_weight


def _rough_start(problem: MachineProblem, journal: Journal | None) -> tuple[FloatArray, float]:
    """Solve a sample of the rows first: its optimum is near that of all, at a fraction of the cost."""
    size = max(SAMPLE, 4 * problem.n_features)
    sample = np.random.default_rng(0).permutation(problem.n_rows)[:size]
    solution = solve(problem.sample(np.sort(sample)), 1e-2, 50, None, None, journal=journal)
    return solution.w, solution.bias


def solve(
    problem: MachineProblem,
    tol: float,
    max_iter: int,
    start: tuple[FloatArray, float] | None,
    callback: Callable[[int, float], object] | None,
    least: float | None = None,
    journal: Journal | None = None,
) -> MarginSolution:
    """Round the hinge less and less until the gap is small; steps end at `least` of the objective."""
    least = max(1e-15, UNSETTLED * tol) if least is None else least
    w, bias = start if start is not None else (np.zeros(problem.n_features), 0.0)
    delta = COARSEST if start is None else 0.1
    best, n_iter = MarginSolution(w, bias, math.inf, math.inf, 0, converged=False), 0
    while True:
        budget = min(STEPS, max_iter - n_iter)
        point, taken = _settle_or_recall(problem, (w, bias, delta), budget, least, journal)
        n_iter += taken
        value, gap = value_and_gap(problem, point)
        w, bias = point.w, point.bias
        if problem.kind == 0 and gap > tol * value and (corner := _solve_corner(problem, point)) is not None:
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


def _settle_or_recall(
    problem: MachineProblem,
    start: tuple[FloatArray, float, float],
    budget: int,
    least: float,
    journal: Journal | None,
) -> tuple[MachinePoint, int]:
    """Take Newton steps at one rounding, or replay them from the journal; return the point and the count."""
    reached: list[MachinePoint] = []

    def work() -> Numbers:
        point, taken = _settle(problem, problem.look(*start), budget, least)
        reached.append(point)
        return point.w, point.bias, taken

    (w, bias, taken), _ = recall_or_run(journal, "round", (*start, budget), work)
    return reached[0] if reached else problem.look(w, float(bias), start[2]), int(taken)


def objective(
    g: FloatArray, is_tie: BoolArray, weight: FloatArray, *, bias: float, C: float, family: Method
) -> float:
    """Sum of the hinge losses of scores g."""
    from concordant.comparisons.machines.machine_kernels import losses

    cost = C * weight * np.where(is_tie, family.tie_weight, family.difference_weight)
    return float(losses(g, is_tie, cost, bias, LOSSES["hinge"], 0.0))

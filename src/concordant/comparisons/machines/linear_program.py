"""Linear and quadratic programs of the comparison machine, by HiGHS: soft and hard margins."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concordant._base.validate import check_lengths, check_nonnegative, check_number, refuse_misaligned
from concordant.data.check import check_features
from concordant.data.labels import check_outcome
from concordant.exceptions import LabelError, NotSeparableError
from concordant.types import ArrayLike, FloatArray, IntArray

# Programs for HiGHS, silent and at its tightest tolerances.

TOLERANCE = 1e-10  # the smallest that HiGHS accepts
SMALLEST = 1e-12  # entries below it are dropped; again, the smallest that HiGHS accepts


def _new_highs() -> Any:
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("small_matrix_value", SMALLEST)
    for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(option, TOLERANCE)
    return highs


def solve_program(
    rows: Any, last: FloatArray, limits: FloatArray, *, cost: float, curvature: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, int]:
    """Minimise cost * z over w and a number z, subject to rows @ w + last * z >= limits.

    Returns w, the multipliers of the rows, and the number of iterations; zeros where HiGHS finds nothing.
    With a curvature, half of it times the squares of w is added to the cost.
    """
    import highspy
    from scipy import sparse

    n_rows, n_columns = rows.shape[0], rows.shape[1] + 1
    matrix = sparse.hstack((rows, sparse.csr_array(last[:, None])), format="csr")
    model = highspy.HighsModel()
    program, cells = model.lp_, model.lp_.a_matrix_
    program.num_col_, program.num_row_ = n_columns, n_rows
    program.col_cost_ = np.append(np.zeros(n_columns - 1), cost)
    program.col_lower_, program.col_upper_ = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
    program.row_lower_, program.row_upper_ = limits, np.full(n_rows, np.inf)
    cells.format_ = highspy.MatrixFormat.kRowwise
    cells.start_, cells.index_, cells.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = _new_highs()
    if curvature is not None:
        square = model.hessian_
        square.dim_, square.format_ = n_columns, highspy.HessianFormat.kTriangular
        square.start_ = np.append(np.arange(n_columns), n_columns - 1)
        square.index_, square.value_ = np.arange(n_columns - 1), curvature
        highs.setOptionValue("qp_regularization_value", 0.0)  # which would move the solution
    highs.passModel(model)
    highs.run()
    solution, info = highs.getSolution(), highs.getInfo()
    n_iter = max(info.simplex_iteration_count, 0) + max(info.qp_iteration_count, 0)
    w, multipliers = np.array(solution.col_value), np.array(solution.row_dual)
    if len(w) != n_columns or len(multipliers) != n_rows:
        return np.zeros(n_columns - 1), np.zeros(n_rows), n_iter
    return w[:-1], np.maximum(multipliers, 0.0), n_iter


# Linear programs of the comparison machine: the soft margin here, the hard one in `hard_margin`.
#
# The ranking function is r(x) = sum over k of a_k phi_k(x): kernels at basis points, or plain features. With
# g its difference over a pair (right less left), a soft margin minimises
#
#     sum_k abs(a_k) + sum_i C_i xi_i - nu mu,    0 <= mu <= 1,    xi >= 0,
#
# where mu - xi_i <= 1 - abs(g_i) on ties, and mu - xi_i <= y_i g_i - 1 on the others. Few a_k are not 0, so
# HiGHS gets few columns: first none, then, round after round, those whose absence violates the optimality
# conditions most, by the multipliers. The multipliers also bound the value of any solution, which stops the
# rounds.

BATCH = 20  # functions that enter in a round: measured, 10 to 40 take the same time
MANY_PAIRS, FEW_FUNCTIONS = 2_000, 100  # interior points take less time than the simplex algorithm: measured
NOTHING = 1e-12  # of the largest part of r: a part below it is rounding


@dataclass(frozen=True, eq=False)
class SoftMargin:
    """Ranking function with a soft margin; its threshold is 1.

    Attributes
    ----------
    a
        One coefficient per function of the basis; most are exactly 0.
    mu
        The margin, from 0 to 1.
    slack
        Amount by which each pair misses the margin, or 0. Above mu the pair is on the wrong side.
    value
        The objective at a, mu and slack.
    gap
        Bound on its distance from the optimum, by the multipliers.
    n_iter, n_rounds
        Iterations of the simplex algorithm, and programs solved.
    converged
        True if the gap came below the tolerance.
    """

    a: FloatArray
    mu: float
    slack: FloatArray
    value: float
    gap: float
    n_iter: int
    n_rounds: int
    converged: bool

    @property
    def support(self) -> IntArray:
        """Numbers of the basis functions with a nonzero coefficient."""
        return np.flatnonzero(self.a)


def soft_margin_lp(
    basis: ArrayLike,
    y: ArrayLike,
    C: float,
    nu: float = 1.0,
    weights: ArrayLike = None,
    *,
    tol: float = 1e-6,
) -> SoftMargin:
    """Minimise the l1 norm of the coefficients plus C times the slack, minus nu times the margin.

    nu / C is the weight of pairs that may miss the margin: where mu lies between 0 and 1, pairs that miss it
    weigh at most nu / C in total, and pairs that do not exceed it at least nu / C. So mu is 0 where
    even a margin of 0 is missed by more: nu = C times a share of the pairs gives a margin.

    Parameters
    ----------
    basis
        Values of the functions at the right item minus those at the left, (n, K); dense or sparse.
    y
        -1 the left is better, 1 the right is better, 0 a tie. Without ties, or with ties
        only, the program is the same: r is 0 in the second case, and in the first 1 is a threshold for r only
        because mu is at most 1.
    C, nu
        Weight of the slack, above 0, and of the margin, >= 0.
    weights
        Numbers >= 0 that multiply C, one per pair; default 1.
    tol
        Tolerated gap, as a share of the sum of the sizes of the three terms.

    Examples
    --------
    >>> found = soft_margin_lp([[3.0, 1.0], [-4.0, 1.0], [1.0, 0.0]], [1, -1, 0], C=10.0)
    >>> found.a.round(6).tolist(), round(found.mu, 6), found.slack.round(6).tolist()
    ([0.5, 0.0], 0.5, [0.0, 0.0, 0.0])
    """
    refuse_misaligned(basis=basis, y=y, weights=weights)
    functions, outcome = check_features(basis, "basis"), check_outcome(y, "y")
    n = functions.shape[0]
    loads = np.ones(n) if weights is None else check_nonnegative(weights, "weights", "pair")
    check_lengths("basis", n, y=outcome, weights=loads)
    check_number("C", C, above=0.0)
    check_number("nu", nu, least=0.0)
    check_number("tol", tol, least=0.0)
    return _MarginProgram(functions, outcome, C * loads, float(nu)).solve(tol)


class _MarginProgram:
    """Linear program over the functions that entered so far; rows are ties, ties again, other pairs."""

    def __init__(self, functions: Any, y: IntArray, costs: FloatArray, nu: float) -> None:
        self.functions = functions.tocsc() if hasattr(functions, "tocsc") else functions
        self.y, self.costs, self.nu = y, costs, nu
        ties, others = np.flatnonzero(y == 0), np.flatnonzero(y)
        self.pairs = np.concatenate((ties, ties, others))
        self.signs = np.concatenate((np.ones(len(ties)), -np.ones(len(ties)), -y[others]))
        self.limits = np.concatenate((np.ones(2 * len(ties)), -np.ones(len(others))))
        self.entered: dict[tuple[int, float], float] = {}  # function and sign -> its unit
        self.highs, self.stuck = _new_highs(), False
        if len(y) > MANY_PAIRS and functions.shape[1] <= FEW_FUNCTIONS:
            self.by_interior_points()
        # HiGHS treats costs far below 1 as rounding.
        self.unit = min(max(float(costs.max()), nu), 1.0) or 1.0
        self.begin()

    def begin(self) -> None:
        m, n = len(self.pairs), len(self.y)
        empty = np.empty(0, dtype=np.int32), np.empty(0)
        self.highs.addRows(m, np.full(m, -np.inf), self.limits, 0, np.zeros(m, dtype=np.int32), *empty)
        self.highs.addCol(-self.nu / self.unit, 0.0, 1.0, m, np.arange(m, dtype=np.int32), np.ones(m))
        starts = np.searchsorted(np.sort(self.pairs), np.arange(n)).astype(np.int32)
        rows = np.argsort(self.pairs, kind="stable").astype(np.int32)
        costs = self.costs / self.unit
        self.highs.addCols(n, costs, np.zeros(n), np.full(n, np.inf), m, starts, rows, -np.ones(m))

    def solve(self, tol: float) -> SoftMargin:
        a, mu, bound, n_iter, n_rounds = self.coefficients(np.zeros(0)), 0.0, -math.inf, 0, 0
        best, goal = self.value(a, mu)[0], 0.0
        while not n_rounds or (best - bound > goal and (self.enter() or self.by_interior_points())):
            self.highs.run()
            n_rounds += 1
            n_iter += max(int(self.highs.getInfo().simplex_iteration_count), 0)
            columns = np.array(self.highs.getSolution().col_value)
            reached = self.coefficients(columns[1 + len(self.y) :]), float(np.clip(columns[0], 0.0, 1.0))
            if (value := self.value(*reached)[0]) < best:
                (a, mu), best = reached, value
            bound, goal = max(bound, self.price()), tol * (best + 2.0 * self.nu * mu)
        gap = max(best - bound, 0.0)
        return SoftMargin(a, mu, self.value(a, mu)[1], best, gap, n_iter, n_rounds, gap <= goal)

    def by_interior_points(self) -> bool:
        """Switch to interior points where rounding stopped the simplex; False if already switched."""
        self.highs.clearSolver()
        self.highs.setOptionValue("solver", "ipm")
        self.stuck, before = True, self.stuck
        return not before

    def coefficients(self, parts: FloatArray) -> FloatArray:
        a = np.zeros(self.functions.shape[1])
        is_significant = np.abs(parts) > NOTHING * np.abs(parts).max(initial=0.0)
        columns = zip(self.entered.items(), parts * is_significant, strict=True)
        for ((k, sign), unit), part in columns:
            a[k] += sign * part / unit
        return a

    def value(self, a: FloatArray, mu: float) -> tuple[float, FloatArray]:
        """Objective at a and mu, with the optimal slack."""
        g = self.functions @ a
        margins = np.where(self.y == 0, 1.0 - np.abs(g), self.y * g - 1.0)
        slack = np.maximum(mu - margins, 0.0)
        return float(np.abs(a).sum() + self.costs @ slack - self.nu * mu), slack

    def price(self) -> float:
        """Lower bound of the objective by feasible multipliers; stores the slopes of the coefficients."""
        multipliers = np.maximum(-self.unit * np.array(self.highs.getSolution().row_dual), 0.0)
        totals = np.bincount(self.pairs, multipliers, len(self.y))
        multipliers *= (np.minimum(totals, self.costs) / np.where(totals > 0.0, totals, 1.0))[self.pairs]
        self.slopes = self.functions.T @ np.bincount(self.pairs, self.signs * multipliers, len(self.y))
        multipliers /= max(np.abs(self.slopes).max(initial=0.0), 1.0)
        return float(min(multipliers.sum() - self.nu, 0.0) - multipliers @ self.limits)

    def enter(self) -> bool:
        """Add the functions with the steepest slopes; False if there are none."""
        steepest = np.argsort(-np.abs(self.slopes), kind="stable")[:BATCH]
        signs = -np.sign(self.slopes[steepest])
        is_steep = np.abs(self.slopes[steepest]) > 1.0
        steep = zip(steepest[is_steep].tolist(), signs[is_steep].tolist(), strict=True)
        new = [function for function in steep if function not in self.entered]
        if new:
            self.add([k for k, _ in new], np.array([sign for _, sign in new]))
        return bool(new)

    def add(self, entering: list[int], signs: FloatArray) -> None:
        """Add these functions with these signs as columns, each scaled by its largest size."""
        from scipy import sparse

        block = self.functions[:, entering]
        block = np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=np.float64)
        units = np.abs(block).max(axis=0)
        cells = sparse.csc_array((self.signs[:, None] * (block / units)[self.pairs]) * signs)
        zeros, any_size = np.zeros(len(entering)), np.full(len(entering), np.inf)
        starts, rows = cells.indptr[:-1].astype(np.int32), cells.indices.astype(np.int32)
        costs = 1.0 / (units * self.unit)
        self.highs.addCols(len(entering), costs, zeros, any_size, cells.nnz, starts, rows, cells.data)
        self.entered.update(zip(zip(entering, signs.tolist(), strict=True), units.tolist(), strict=True))


# The widest margin of pairs that a linear ranking function separates: a linear and a quadratic program.
#
# The ties are t, the other pairs d, with the sign that makes the second item the better one. For a direction
# v let a be the least v @ d, and c the largest size of v @ t. It separates the pairs where a > c; scaled by 2
# / (a + c) it does so with threshold 1 and the margin (a - c) / (a + c). The linear program (LP) maximises
# this. The quadratic one (QP) maximises (a - c) / sqrt(v @ v): so its margin cannot be larger, which is Lemma
# 1 of the reference. An invertible linear map of the features preserves the LP's margin, but not the QP's.
#
# Venuto, Hocking, Sphanurattana and Sugiyama, "Support vector comparison machines", section 3.1.

TOUCHING = 1e-9  # a margin below it is rounding: the two kinds of pairs touch
POWERS = (0.0, 1.0, 0.5)  # of the features' sizes, tried as their units: HiGHS may stop too early in each
IN_CONFLICT = 1e-9  # a multiplier below it is rounding: the contradiction stands without the pair


@dataclass(frozen=True, eq=False)
class HardMargin:
    """Linear ranking function that separates the pairs: r(x) = w @ x, threshold 1.

    Attributes
    ----------
    w
        Weights. The size of w @ t is at most 1 - mu for ties t, y times w @ d at least 1 + mu for the others.
    mu
        The margin, above 0 and at most 1: computed from w, so that the above holds up to rounding.
    gap
        Distance from the optimum, by the multipliers of the program: for the LP, how much larger mu could be;
        for the QP, by which share u could be shorter.
    n_iter
        Iterations.
    """

    w: FloatArray
    mu: float
    gap: float
    n_iter: int

    @property
    def u(self) -> FloatArray:
        """Weights of the binary machine: bias + u @ d is 0 on a boundary, and 1 or -1 on its margins."""
        return np.asarray(self.w / self.mu)

    @property
    def bias(self) -> float:
        """Bias of the binary machine: at most -1."""
        return -1.0 / self.mu


@dataclass(frozen=True, eq=False)
class _TurnedPairs:
    """Pairs in the form of the programs, each feature in units of its largest size."""

    better: Any  # differences with the sign that makes the second item the better one; sparse rows
    ties: Any  # sparse rows
    numbers: IntArray  # of the pair of each row of better, ties, ties
    units: FloatArray  # largest size of each feature; 1 where it is 0

    @classmethod
    def from_pairs(cls, differences: Any, y: IntArray) -> _TurnedPairs:
        from scipy import sparse

        rows = sparse.csr_array(differences, dtype=np.float64)
        units = abs(rows).max(axis=0).toarray().ravel() if rows.shape[1] else np.ones(0)
        units = np.where(units > 0.0, units, 1.0)
        rows = rows @ sparse.diags_array(1.0 / units) if len(units) else rows
        better, ties = np.flatnonzero(y), np.flatnonzero(y == 0)
        turned = sparse.diags_array(y[better].astype(np.float64)) @ rows[better] if len(better) else rows[:0]
        numbers = np.concatenate((better, ties, ties))
        return cls(sparse.csr_array(turned), rows[ties], numbers, units)

    def extremes(self, v: FloatArray) -> tuple[float, float]:
        """Least v @ d and largest size of v @ t, with d signed as everywhere here."""
        return float((self.better @ v).min()), float(np.abs(self.ties @ v).max())

    def margin(self, v: FloatArray) -> float:
        """Margin of a direction after the best scaling; -1 if a pair that is no tie is on the wrong side."""
        a, c = self.extremes(v)
        return (a - c) / (a + c) if a > 0.0 else -1.0

    def hard_margin(self, v: FloatArray, gap: float, n_iter: int) -> HardMargin:
        """Build the ranking function of a direction that separates the pairs."""
        w = v * (2.0 / sum(self.extremes(v)))
        return HardMargin(w / self.units, self.margin(v), max(gap, 0.0), n_iter)

    def rows(self) -> Any:
        from scipy import sparse

        return sparse.vstack((self.better, -self.ties, self.ties), format="csr")

    def closeness(self, multipliers: FloatArray) -> tuple[FloatArray, float, float]:
        """Combine rows by these multipliers; also return the sums of these over better and over ties."""
        n = self.better.shape[0]
        return self.rows().T @ multipliers, float(multipliers[:n].sum()), float(multipliers[n:].sum())


def hard_margin_lp(differences: ArrayLike, y: ArrayLike) -> HardMargin:
    """Maximise the margin in values of the ranking function: the LP, by HiGHS.

    Pairs are separable where the largest margin is above 0 (1e-9, for rounding): at 0 the two kinds of pairs
    touch, and a threshold of 1 still predicts a tie for some difference. What is below 1e-12 of the largest
    size of its feature counts as 0. If all pairs are ties, w is 0 and the margin 1. The margin is unique, w
    need not be.

    Parameters
    ----------
    differences
        Features of the right item minus those of the left, (n, p); dense or sparse.
    y
        -1 the left is better, 1 the right is better, 0 a tie.

    Raises
    ------
    NotSeparableError
        If no linear ranking function separates the pairs; it names pairs that contradict each other.
    LabelError
        If there is no tie: the margin would be unbounded. Or if HiGHS gives up.

    Examples
    --------
    >>> found = hard_margin_lp([[3.0], [-4.0], [1.0]], [1, -1, 0])
    >>> found.w, found.mu
    (array([0.5]), 0.5)
    """
    rows, outcome = _check_differences(differences, y)
    if not outcome.any():
        return HardMargin(np.zeros(rows.shape[1]), 1.0, 0.0, 0)
    return _widest_margin(_TurnedPairs.from_pairs(rows, outcome), len(outcome))


def hard_margin_qp(differences: ArrayLike, y: ArrayLike) -> HardMargin:
    """Maximise the margin in distances of features: the QP of a binary machine, by HiGHS.

    `u` and `bias` of the result minimise u @ u subject to bias + u @ d >= 1 for signed differences d, and
    bias + u @ t <= -1 for ties t with either sign. The result is unique.

    Parameters
    ----------
    differences, y
        As for `hard_margin_lp`; the same pairs are separable.

    Raises
    ------
    NotSeparableError, LabelError
        As for `hard_margin_lp`.

    Examples
    --------
    >>> found = hard_margin_qp([[3.0, 0.0], [-4.0, 2.0], [1.0, 1.0]], [1, -1, 0])
    >>> found.w.round(3), round(found.mu, 3), round(found.bias, 3)
    (array([ 0.571, -0.286]), 0.714, -1.4)
    >>> round(hard_margin_lp([[3.0, 0.0], [-4.0, 2.0], [1.0, 1.0]], [1, -1, 0]).mu, 3)
    1.0
    """
    rows, outcome = _check_differences(differences, y)
    if not outcome.any():
        return HardMargin(np.zeros(rows.shape[1]), 1.0, 0.0, 0)
    turned = _TurnedPairs.from_pairs(rows, outcome)
    best = replace(_widest_margin(turned, len(outcome)), gap=np.inf)
    for power in POWERS:
        direction, multipliers, n_iter = _shortest_direction(turned, power)
        gap = _relative_excess(turned, direction, multipliers) if turned.margin(direction) > 0.0 else np.inf
        if gap < best.gap:
            best = turned.hard_margin(direction, gap, n_iter)
        if best.gap <= TOUCHING:
            break
    return best


def _check_differences(differences: ArrayLike, y: ArrayLike) -> tuple[Any, IntArray]:
    """Check differences and outcomes, at least one of them a tie."""
    refuse_misaligned(differences=differences, y=y)
    rows, outcome = check_features(differences, "differences"), check_outcome(y, "y")
    check_lengths("differences", rows.shape[0], y=outcome)
    if outcome.all():
        problem = f"none of the {len(outcome)} pairs is a tie, so the margin is unbounded"
        raise LabelError(problem, 'learn to rank (method "rank") and fit the threshold afterwards.')
    return rows, outcome


def _widest_margin(turned: _TurnedPairs, n_pairs: int) -> HardMargin:
    """Maximise mu subject to d @ w - mu >= 1 and -mu -+ t @ w >= -1; w = 0, mu = -1 is feasible."""
    limits = np.where(np.arange(len(turned.numbers)) < turned.better.shape[0], 1.0, -1.0)
    w, multipliers, n_iter = solve_program(turned.rows(), -np.ones(len(limits)), limits, cost=-1.0)
    rest, of_better, of_ties = turned.closeness(multipliers)
    total = of_better + of_ties
    if not total > 0.0:
        problem = f"HiGHS did not solve the linear program of these {n_pairs} pairs"
        raise LabelError(problem, "bring features to similar sizes, or use a soft margin.")
    if not turned.margin(w) > TOUCHING:
        conflict = np.unique(turned.numbers[multipliers > IN_CONFLICT * total])
        raise NotSeparableError(n_pairs, turned.margin(w), conflict.tolist())
    solution = turned.hard_margin(w, 0.0, n_iter)
    bound = (of_ties - of_better + float(np.abs(rest) @ np.abs(solution.w * turned.units))) / total
    return turned.hard_margin(w, bound - solution.mu, n_iter)


def _shortest_direction(turned: _TurnedPairs, power: float) -> tuple[FloatArray, FloatArray, int]:
    """Minimise the length of u subject to d @ u + bias >= 1 and -bias -+ t @ u >= 1.

    HiGHS gets features in units that are this power of their largest sizes.
    """
    from scipy import sparse

    signs = np.where(np.arange(len(turned.numbers)) < turned.better.shape[0], 1.0, -1.0)
    units = turned.units**power * turned.units.max() ** (1.0 - power)
    middle = np.sqrt(units.min() * units.max())
    rows = turned.rows() @ sparse.diags_array(turned.units / units)
    limits, curvature = np.ones(len(signs)), (middle / units) ** 2
    v, multipliers, n_iter = solve_program(rows, signs, limits, cost=0.0, curvature=curvature)
    return v / units * turned.units, multipliers, n_iter


def _relative_excess(turned: _TurnedPairs, direction: FloatArray, multipliers: FloatArray) -> float:
    """Share by which u could be shorter: no u is shorter than 2 over the distance of points of both hulls."""
    n, rows = turned.better.shape[0], turned.rows()
    _, of_better, of_ties = turned.closeness(multipliers)
    if not min(of_better, of_ties) > 0.0:
        return float("inf")
    shares = multipliers / np.where(np.arange(len(multipliers)) < n, of_better, of_ties)
    between = (rows.T @ shares) * turned.units
    a, c = turned.extremes(direction)
    length = float(np.linalg.norm(direction / turned.units)) * 2.0 / (a - c)
    return 1.0 - 2.0 / (float(np.linalg.norm(between)) * length)

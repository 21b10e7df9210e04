"""Linear programs of the comparison machine: the soft margin here, the hard one in `hard_margin`.

The ranking function is r(x) = sum over k of a_k phi_k(x): kernels at basis points, or plain features. With g
its difference over a pair (right less left), a soft margin minimises

    sum_k abs(a_k) + sum_i C_i xi_i - nu mu,    0 <= mu <= 1,    xi >= 0,

where mu - xi_i <= 1 - abs(g_i) on ties, and mu - xi_i <= y_i g_i - 1 on the others. Few a_k are not 0, so
HiGHS is given few: first none, then, round after round, those whose absence the multipliers of the program
find most wrong. From the multipliers follows a bound on the value of any solution, which ends the work.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.exceptions import ParameterError
from concordant.solvers.highs import new_highs
from concordant.supervision.check import check_features
from concordant.supervision.columns import check_lengths, check_nonnegative
from concordant.supervision.labels import check_outcome
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["SoftMargin", "soft_margin_lp"]

BATCH = 20  # functions that enter in a round: measured, 10 to 40 take the same time
MANY_PAIRS, FEW_FUNCTIONS = 2_000, 100  # interior points take less time than the simplex algorithm: measured
NOTHING = 1e-12  # of the largest part of r: a part below it is rounding


@dataclass(frozen=True, eq=False)
class SoftMargin:
    """A ranking function with a soft margin; its threshold is 1.

    Attributes
    ----------
    a
        One coefficient per function of the basis; most are exactly 0.
    mu
        The margin, from 0 to 1.
    slack
        By how much each pair misses the margin; 0 where it does not. Above mu the pair is on the wrong side.
    value
        The objective at a, mu and slack.
    gap
        How far it is above the optimum at most, by the multipliers.
    n_iter, n_rounds
        Iterations of the simplex algorithm, and programs solved.
    converged
        Whether the gap came below the tolerance.
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
        """Functions of the basis that r is made of."""
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
    """Minimise the size of the coefficients plus C times the slack, less nu times the margin.

    nu / C is the weight of pairs that may miss the margin: where mu lies between 0 and 1, pairs that miss it
    weigh at most nu / C in all, and pairs that do not keep more than it at least nu / C. So mu is 0 where
    even a margin of 0 is missed by more: nu = C times a share of the pairs makes a margin.

    Parameters
    ----------
    basis
        Functions' values at the right item less those at the left, (n, K); dense or sparse.
    y
        -1 the left is better, 1 the right is better, 0 a tie. Without ties, or with nothing else, the
        program is as it stands: then r is 0 in the second case, and in the first 1 is a threshold for r only
        because mu is at most 1.
    C, nu
        Weight of the slack, above 0, and of the margin, >= 0.
    weights
        Numbers >= 0 that multiply C, one per pair; default 1.
    tol
        Gap that is good enough, as a share of the sum of the three parts' sizes.

    Examples
    --------
    >>> found = soft_margin_lp([[3.0, 1.0], [-4.0, 1.0], [1.0, 0.0]], [1, -1, 0], C=10.0)
    >>> found.a.round(6).tolist(), round(found.mu, 6), found.slack.round(6).tolist()
    ([0.5, 0.0], 0.5, [0.0, 0.0, 0.0])
    """
    functions, outcome = check_features(basis, "basis"), check_outcome(y, "y")
    n = functions.shape[0]
    loads = np.ones(n) if weights is None else check_nonnegative(weights, "weights", "pair")
    check_lengths("basis", n, y=outcome, weights=loads)
    for name, number, least in (("C", C, math.ulp(0.0)), ("nu", nu, 0.0), ("tol", tol, 0.0)):
        if not (isinstance(number, numbers.Real) and least <= number < math.inf):
            raise ParameterError(name, number, "a finite number " + ("above 0" if least else ">= 0"))
    return Program(functions, outcome, C * loads, float(nu)).solve(tol)


class Program:
    """The linear program over the functions that entered so far; rows are ties, ties again, the others."""

    def __init__(self, functions: Any, y: IntArray, costs: FloatArray, nu: float) -> None:
        self.functions = functions.tocsc() if hasattr(functions, "tocsc") else functions
        self.y, self.costs, self.nu = y, costs, nu
        ties, others = np.flatnonzero(y == 0), np.flatnonzero(y)
        self.pairs = np.concatenate((ties, ties, others))
        self.signs = np.concatenate((np.ones(len(ties)), -np.ones(len(ties)), -y[others]))
        self.limits = np.concatenate((np.ones(2 * len(ties)), -np.ones(len(others))))
        self.entered: dict[tuple[int, float], float] = {}  # function and sign -> its unit
        self.highs, self.stuck = new_highs(), False
        if len(y) > MANY_PAIRS and functions.shape[1] <= FEW_FUNCTIONS:
            self.by_interior_points()
        # HiGHS takes costs far below 1 for rounding.
        self.unit = min(max(float(costs.max()), nu), 1.0) or 1.0
        self.begin()

    def begin(self) -> None:
        """Give the program its rows, mu and the slack."""
        m, n = len(self.pairs), len(self.y)
        empty = np.empty(0, dtype=np.int32), np.empty(0)
        self.highs.addRows(m, np.full(m, -np.inf), self.limits, 0, np.zeros(m, dtype=np.int32), *empty)
        self.highs.addCol(-self.nu / self.unit, 0.0, 1.0, m, np.arange(m, dtype=np.int32), np.ones(m))
        starts = np.searchsorted(np.sort(self.pairs), np.arange(n)).astype(np.int32)
        rows = np.argsort(self.pairs, kind="stable").astype(np.int32)
        costs = self.costs / self.unit
        self.highs.addCols(n, costs, np.zeros(n), np.full(n, np.inf), m, starts, rows, -np.ones(m))

    def solve(self, tol: float) -> SoftMargin:
        """Let functions enter until the value is as good as the bound."""
        a, mu, bound, n_iter, n_rounds = self.at(np.zeros(0)), 0.0, -math.inf, 0, 0
        best, goal = self.value(a, mu)[0], 0.0
        while not n_rounds or (best - bound > goal and (self.enter() or self.by_interior_points())):
            self.highs.run()
            n_rounds += 1
            n_iter += max(int(self.highs.getInfo().simplex_iteration_count), 0)
            columns = np.array(self.highs.getSolution().col_value)
            reached = self.at(columns[1 + len(self.y) :]), float(np.clip(columns[0], 0.0, 1.0))
            if (value := self.value(*reached)[0]) < best:
                (a, mu), best = reached, value
            bound, goal = max(bound, self.price()), tol * (best + 2.0 * self.nu * mu)
        gap = max(best - bound, 0.0)
        return SoftMargin(a, mu, self.value(a, mu)[1], best, gap, n_iter, n_rounds, gap <= goal)

    def by_interior_points(self) -> bool:
        """Try the other algorithm where rounding has stopped the first; whether it was not tried before."""
        self.highs.clearSolver()
        self.highs.setOptionValue("solver", "ipm")
        self.stuck, before = True, self.stuck
        return not before

    def at(self, parts: FloatArray) -> FloatArray:
        """Give the coefficients of which these are the parts of the functions that entered."""
        a = np.zeros(self.functions.shape[1])
        kept = np.abs(parts) > NOTHING * np.abs(parts).max(initial=0.0)
        for (k, sign), unit, part in zip(self.entered, self.entered.values(), parts * kept, strict=True):
            a[k] += sign * part / unit
        return a

    def value(self, a: FloatArray, mu: float) -> tuple[float, FloatArray]:
        """Give the objective, and the slack on which it is least."""
        g = self.functions @ a
        kept = np.where(self.y == 0, 1.0 - np.abs(g), self.y * g - 1.0)
        slack = np.maximum(mu - kept, 0.0)
        return float(np.abs(a).sum() + self.costs @ slack - self.nu * mu), slack

    def price(self) -> float:
        """Give a lower bound of the objective by multipliers made feasible; remember what they say of a."""
        multipliers = np.maximum(-self.unit * np.array(self.highs.getSolution().row_dual), 0.0)
        totals = np.bincount(self.pairs, multipliers, len(self.y))
        multipliers *= (np.minimum(totals, self.costs) / np.where(totals > 0.0, totals, 1.0))[self.pairs]
        self.slopes = self.functions.T @ np.bincount(self.pairs, self.signs * multipliers, len(self.y))
        multipliers /= max(np.abs(self.slopes).max(initial=0.0), 1.0)
        return float(min(multipliers.sum() - self.nu, 0.0) - multipliers @ self.limits)

    def enter(self) -> bool:
        """Let the functions with the steepest slopes enter; whether there were any."""
        steepest = np.argsort(-np.abs(self.slopes), kind="stable")[:BATCH]
        signs = -np.sign(self.slopes[steepest])
        wanted = np.abs(self.slopes[steepest]) > 1.0
        new = [
            (int(k), float(sign))
            for k, sign in zip(steepest[wanted], signs[wanted], strict=True)
            if (int(k), float(sign)) not in self.entered
        ]
        if new:
            self.add([k for k, _ in new], np.array([sign for _, sign in new]))
        return bool(new)

    def add(self, which: list[int], signs: FloatArray) -> None:
        """Give the program these functions with these signs, each in units of its largest size."""
        from scipy import sparse

        block = self.functions[:, which]
        block = np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=np.float64)
        units = np.abs(block).max(axis=0)
        cells = sparse.csc_array((self.signs[:, None] * (block / units)[self.pairs]) * signs)
        none, any_size = np.zeros(len(which)), np.full(len(which), np.inf)
        starts, rows = cells.indptr[:-1].astype(np.int32), cells.indices.astype(np.int32)
        costs = 1.0 / (units * self.unit)
        self.highs.addCols(len(which), costs, none, any_size, cells.nnz, starts, rows, cells.data)
        self.entered.update(zip(zip(which, signs.tolist(), strict=True), units.tolist(), strict=True))

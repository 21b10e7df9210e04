"""Linear ordering as an integer program, by HiGHS; triangle cuts are added as they are violated."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from concordant.types import FloatArray, IntArray

__all__ = ["rounds"]

VIOLATED = 1e-5  # a cut that is missed by less is left alone
TOLERANCE = 1e-10  # of the costs, the largest of which is 1: the least that HiGHS accepts
WHOLE = 1e-3  # of the grain: so much may be missing to a multiple of it
CUTS_PER_ITEM = 20  # at most, in a round: more slow the program down, fewer make more rounds


def rounds(net: FloatArray, grain: float, deadline: float) -> Iterator[tuple[IntArray, float]]:
    """Give, round after round, an order and a lower bound of what any order violates of the edges.

    x[i, j] is 1 where i stands above j. First the relaxation to numbers between 0 and 1 is solved until no
    cycle of three is left; then, if some of its numbers are fractions, the integer program.

    Parameters
    ----------
    net
        Weights >= 0 of the edges, not all 0.
    grain
        A number of which all weights are multiples, or 0.
    deadline
        When to end, on the clock of `time.perf_counter`.
    """
    program = Program(net, grain)
    while (bound := program.solve(deadline)) is not None:
        above = program.above()
        yield np.argsort(-above.sum(axis=1), kind="stable"), bound
        if not program.cut(above) and not program.make_whole(above):
            return


class Program:
    """Minimise the violated weight over x[i, j], i < j, subject to the cuts so far."""

    def __init__(self, net: FloatArray, grain: float) -> None:
        import highspy

        self.n = len(net)
        self.scale = float(net.max())
        self.i, self.j = np.triu_indices(self.n, 1)
        self.number = np.zeros((self.n, self.n), dtype=np.int64)
        self.number[self.i, self.j] = np.arange(len(self.i))
        edges = net / self.scale
        self.costs = edges[self.j, self.i] - edges[self.i, self.j]
        self.level = float(edges[self.i, self.j].sum())  # what x = 0 pays
        self.grain = grain
        self.signs, self.columns = np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)
        self.limits = np.empty(0)
        self.whole, self.deadline = False, math.inf
        self.highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (("output_flag", False), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0)):
            self.highs.setOptionValue(option, value)
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.highs.setOptionValue(option, TOLERANCE)
        self.highs.setOptionValue("mip_feasibility_tolerance", TOLERANCE)
        # The integer solver, measured, takes twice its time limit.
        self.highs.cbMipInterrupt.subscribe(self.interrupt_late)
        zeros, ones = np.zeros(len(self.i)), np.ones(len(self.i))
        self.highs.addVars(len(self.i), zeros, ones)
        self.highs.changeColsCost(len(self.i), np.arange(len(self.i), dtype=np.int32), self.costs)

    def solve(self, deadline: float) -> float | None:
        """Give a lower bound of the violated weight; None where time runs out first."""
        left = deadline - time.perf_counter()
        if left <= 0.0:
            return None
        self.deadline = deadline
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + left)  # it counts all runs
        self.highs.run()
        if len(self.highs.getSolution().row_dual) != len(self.limits):  # stopped before it began
            return None
        least = self.scale * (self.level + (self.whole_bound() if self.whole else self.dual_bound()))
        if self.grain and math.isfinite(least):  # values are multiples of the grain
            least = math.ceil(least / self.grain - WHOLE) * self.grain
        return least

    def whole_bound(self) -> float:
        """Give the integer program's bound; each reduced cost behind it may be off by the tolerance."""
        return float(self.highs.getInfo().mip_dual_bound) - TOLERANCE * len(self.costs)

    def interrupt_late(self, event: Any) -> None:
        """End the search of whole numbers when time is up."""
        if time.perf_counter() > self.deadline:
            event.interrupt()

    def dual_bound(self) -> float:
        """Bound the relaxation by its duals: a bound for any numbers <= 0, optimal or not."""
        duals = np.minimum(np.array(self.highs.getSolution().row_dual), 0.0)
        reduced = self.costs.copy()
        np.subtract.at(reduced, self.columns, self.signs * duals[:, None])
        return float(duals @ self.limits + np.minimum(reduced, 0.0).sum())

    def above(self) -> FloatArray:
        """Give x[i, j] of all pairs, x[j, i] = 1 - x[i, j]."""
        values = np.clip(np.array(self.highs.getSolution().col_value), 0.0, 1.0)
        above = np.zeros((self.n, self.n))
        above[self.i, self.j], above[self.j, self.i] = values, 1.0 - values
        return above

    def cut(self, above: FloatArray) -> bool:
        """Forbid the cycles of three that these numbers contain; whether there were any."""
        cycles = violated_cycles(above, CUTS_PER_ITEM * self.n)
        if not len(cycles):
            return False
        heads, tails = cycles, np.roll(cycles, -1, axis=1)
        forward = heads < tails  # x[head, tail], or 1 - x[tail, head]
        columns = self.number[np.where(forward, heads, tails), np.where(forward, tails, heads)]
        signs = np.where(forward, 1.0, -1.0)
        limits = 2.0 - (~forward).sum(axis=1)
        self.signs, self.columns = np.vstack((self.signs, signs)), np.vstack((self.columns, columns))
        self.limits = np.concatenate((self.limits, limits))
        starts = np.arange(0, 3 * len(cycles), 3, dtype=np.int32)
        lowest = np.full(len(cycles), -np.inf)
        flat = columns.ravel().astype(np.int32), signs.ravel()
        self.highs.addRows(len(cycles), lowest, limits, 3 * len(cycles), starts, *flat)
        return True

    def make_whole(self, above: FloatArray) -> bool:
        """Ask for whole numbers from now on; False where they are already."""
        import highspy

        if self.whole or np.abs(above - np.rint(above)).max() <= VIOLATED:
            return False
        kinds = np.array([highspy.HighsVarType.kInteger] * len(self.i))
        self.highs.changeColsIntegrality(len(self.i), np.arange(len(self.i), dtype=np.int32), kinds)
        self.whole = True
        return True


def violated_cycles(above: FloatArray, most: int) -> IntArray:
    """Give the cycles i, j, k with above[i, j] + above[j, k] + above[k, i] > 2, the worst ones."""
    found, sizes = [], []
    for i in range(len(above) - 2):
        rest = above[i + 1 :, i + 1 :]
        excess = above[i, i + 1 :, None] + rest + above[i + 1 :, i][None, :] - 2.0
        j, k = np.nonzero(excess > VIOLATED)
        found.append(np.column_stack((np.full(len(j), i), j + i + 1, k + i + 1)))
        sizes.append(excess[j, k])
    cycles, worst = np.concatenate(found), np.argsort(-np.concatenate(sizes), kind="stable")
    return cycles[worst[:most]]

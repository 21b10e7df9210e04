"""Pairwise disagreement: the order that violates the least weight, a minimum feedback arc set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concordant._base.validate import as_double, check_number
from concordant.decoders.decoded import Decoded, check_square
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import ArrayLike, FloatArray, IntArray

# Fast heuristics for orders of little violated weight, and lower bounds.

PACKED_ITEMS = 1000  # up to here cycles are packed for a bound, O(n^3)
EXACT = 2.0**53  # up to here sums of whole numbers are whole


def violated_weight(weights: FloatArray, order: IntArray) -> float:
    """Sum of weights[i, j] over the pairs with i after j."""
    return float(np.tril(weights[np.ix_(order, order)], -1).sum())


def _packing_bound(net: FloatArray) -> float:
    """Lower bound of the majority weight that any order violates; 0 for many items."""
    from concordant.decoders.graph_kernels import pack_triangles

    return pack_triangles(net.copy()) if len(net) <= PACKED_ITEMS else 0.0


def by_edge_deletion(net: FloatArray) -> IntArray:
    """Order of Algorithm 1: acyclicity is monotone in the number of deleted edges, so bisection finds it."""
    from concordant.decoders.graph_kernels import topological

    i, j = np.nonzero(net)
    heavier = np.lexsort((j, i, net[i, j]))
    ranks = np.full(net.shape, -1, dtype=np.int64)
    ranks[i[heavier], j[heavier]] = np.arange(len(heavier))
    order = np.empty(len(net), dtype=np.int64)
    cyclic, acyclic = -1, len(heavier)  # numbers of edges deleted
    while acyclic - cyclic > 1:
        middle = (cyclic + acyclic) // 2
        if topological(ranks, middle, order) == len(net):
            acyclic = middle
        else:
            cyclic = middle
    topological(ranks, acyclic, order)
    return order


def by_borda(net: FloatArray) -> IntArray:
    """Sort by the net weight of each item."""
    return np.argsort(-(net.sum(axis=1) - net.sum(axis=0)), kind="stable")


def _by_search(net: FloatArray) -> IntArray:
    """Better of the two heuristics, after moves of single items."""
    orders = [improve_order(net, start(net)) for start in (by_edge_deletion, by_borda)]
    return min(orders, key=lambda order: violated_weight(net, order))


def improve_order(net: FloatArray, order: IntArray) -> IntArray:
    """Move single items of a copy of the order until none helps."""
    from concordant._base.combinatorics import improve_by_insertion

    better = order.copy()
    improve_by_insertion(*as_gains(net), better)
    return better


def as_gains(net: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Express the edges as gains to maximise: an item costs its edges to all items above it."""
    return -net / (net.max() or 1.0), np.ones(len(net))


def rounding(net: FloatArray, share: float) -> float:
    """Largest difference of two values that count as equal: this share of the largest weight, per pair.

    If all weights are whole numbers, values are too, and it is half their step.
    """
    return grain(net) / 2.0 or share * float(net.max(initial=0.0)) * len(net) ** 2 / 2.0


def grain(net: FloatArray) -> float:
    """Greatest common divisor of the weights if they are whole numbers; else 0.

    >>> grain(np.array([[0.0, 6.0], [4.0, 0.0]])), grain(np.array([[0.0, 0.5], [0.0, 0.0]]))
    (2.0, 0.0)
    """
    weights = net[net > 0.0]
    if not (weights.size and weights.sum() < EXACT and (weights == np.rint(weights)).all()):
        return 0.0
    return float(np.gcd.reduce(weights.astype(np.int64)))


# Linear ordering as an integer program, by HiGHS; triangle cuts are added as they are violated.

VIOLATED = 1e-5  # smaller violations of a cut are ignored
TOLERANCE = 1e-10  # of the costs, the largest of which is 1: the least that HiGHS accepts
WHOLE = 1e-3  # of the grain: tolerance below a multiple of it
CUTS_PER_ITEM = 20  # at most, in a round: more slow the program down, fewer make more rounds


def iter_bounds(net: FloatArray, grain: float, deadline: float) -> Iterator[tuple[IntArray, float]]:
    """Iterate over rounds; yield an order and a lower bound of the weight that any order violates.

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
    program = OrderingProgram(net, grain)
    while (bound := program.solve(deadline)) is not None:
        above = program.above()
        yield np.argsort(-above.sum(axis=1), kind="stable"), bound
        if not program.cut(above) and not program.make_whole(above):
            return


class OrderingProgram:
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
        """Lower bound of the violated weight; None if time runs out first."""
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
        """Bound of the integer program; each reduced cost may be off by the tolerance."""
        return float(self.highs.getInfo().mip_dual_bound) - TOLERANCE * len(self.costs)

    def interrupt_late(self, event: Any) -> None:
        """Stop the integer program when time is up."""
        if time.perf_counter() > self.deadline:
            event.interrupt()

    def dual_bound(self) -> float:
        """Bound the relaxation by its duals; any duals <= 0 give a bound, optimal or not."""
        duals = np.minimum(np.array(self.highs.getSolution().row_dual), 0.0)
        reduced = self.costs.copy()
        np.subtract.at(reduced, self.columns, self.signs * duals[:, None])
        return float(duals @ self.limits + np.minimum(reduced, 0.0).sum())

    def above(self) -> FloatArray:
        """Matrix x[i, j] of all pairs, x[j, i] = 1 - x[i, j]."""
        values = np.clip(np.array(self.highs.getSolution().col_value), 0.0, 1.0)
        above = np.zeros((self.n, self.n))
        above[self.i, self.j], above[self.j, self.i] = values, 1.0 - values
        return above

    def cut(self, above: FloatArray) -> bool:
        """Add cuts for the violated cycles of three items; False if there are none."""
        cycles = _violated_cycles(above, CUTS_PER_ITEM * self.n)
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
        """Require whole numbers from now on; False if they are already whole."""
        import highspy

        if self.whole or np.abs(above - np.rint(above)).max() <= VIOLATED:
            return False
        kinds = np.array([highspy.HighsVarType.kInteger] * len(self.i))
        self.highs.changeColsIntegrality(len(self.i), np.arange(len(self.i), dtype=np.int32), kinds)
        self.whole = True
        return True


def _violated_cycles(above: FloatArray, most: int) -> IntArray:
    """Most violated cycles i, j, k with above[i, j] + above[j, k] + above[k, i] > 2."""
    cycle_blocks, sizes = [], []
    for i in range(len(above) - 2):
        rest = above[i + 1 :, i + 1 :]
        excess = above[i, i + 1 :, None] + rest + above[i + 1 :, i][None, :] - 2.0
        j, k = np.nonzero(excess > VIOLATED)
        cycle_blocks.append(np.column_stack((np.full(len(j), i), j + i + 1, k + i + 1)))
        sizes.append(excess[j, k])
    cycles, worst = np.concatenate(cycle_blocks), np.argsort(-np.concatenate(sizes), kind="stable")
    return cycles[worst[:most]]


# Strongly connected components of the majority graph, solved separately.

DYNAMIC_ITEMS = 16  # up to here dynamic programming, 2^n sets, takes milliseconds
PROGRAM_ITEMS = 300  # up to here an integer program: beyond, its first relaxation takes minutes
PROGRAM_SHARE = 1e-9  # of the largest weight, per pair: the accuracy of the program


def components(net: FloatArray) -> list[IntArray]:
    """Items of each strongly connected component, in an order that all edges between them follow."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    from concordant.decoders.graph_kernels import topological

    number, labels = connected_components(csr_array(net), connection="strong")
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]  # numbered by their first items
    i, j = np.nonzero(net)
    edges = np.full((number, number), -1, dtype=np.int64)
    edges[codes[i], codes[j]] = 0
    np.fill_diagonal(edges, -1)
    order = np.empty(number, dtype=np.int64)
    topological(edges, 0, order)
    return [np.flatnonzero(codes == code) for code in order]


@dataclass(eq=False)
class Component:
    """Component: its items, their majority edges, the best order so far (of 0..n-1) and a bound."""

    items: IntArray
    net: FloatArray
    order: IntArray
    bound: float
    closed: bool = False

    @classmethod
    def from_items(cls, net: FloatArray, items: IntArray) -> Component:
        """Solve a small component; start a large one with a heuristic."""
        component_net = net[np.ix_(items, items)]
        if len(items) > DYNAMIC_ITEMS:
            return cls(items, component_net, _by_search(component_net), _packing_bound(component_net))
        component = cls(items, component_net, np.arange(len(items)), 0.0)
        component.settle()
        return component

    @property
    def value(self) -> float:
        """Weight that the order violates."""
        return violated_weight(self.net, self.order)

    def settle(self) -> None:
        """Solve by dynamic programming over all sets."""
        from concordant._base.combinatorics import best_order

        self.order = best_order(*as_gains(self.net))
        self.bound, self.closed = self.value, True

    def close(self, deadline: float, on_progress: Callable[[], None]) -> None:
        """Improve order and bound until they meet, or time runs out."""
        step = grain(self.net)
        # No order as good as this one violates a heavier edge; capped, it does not hide the light ones.
        edges = np.minimum(self.net, self.value * (1.0 + 1e-6) + step)
        for order, bound in iter_bounds(edges, step, deadline) if len(self.items) <= PROGRAM_ITEMS else ():
            candidate = improve_order(self.net, order)
            if violated_weight(self.net, candidate) < self.value:
                self.order = candidate
            self.bound = max(self.bound, bound)
            self.closed = self.value - self.bound <= rounding(self.net, PROGRAM_SHARE)
            if self.closed:
                self.bound = self.value
            on_progress()
            if self.closed:
                return


FOREVER = 1e9  # seconds
SMALL = 1e-9  # a share of what is violated

Callback = Callable[[float, float], object]
"""Told of the best value and the bound so far."""


def feedback_arc(
    u: ArrayLike, *, method: str = "auto", time_limit: float = 60.0, callback: Callback | None = None
) -> Decoded:
    """Find the order with the least sum of u[i, j] over the pairs with i placed after j.

    If u[i, j] is the (expected) weight of "i is preferred to j", that is the order of least expected pairwise
    disagreement; if u[i, j] is a number of voters, Kemeny's order.

    Parameters
    ----------
    u
        Square matrix of finite numbers; the diagonal is not read. A pair without comparisons is 0 in
        both directions. Only u[i, j] - u[j, i] decides.
    method
        How to search:

        - "auto": split by the strongly connected components of the majority graph (edges u[i, j] > u[j, i]),
          which is exact; dynamic programming over sets for components of up to 16 items, an integer program
          with triangle cuts added as they are violated for larger ones. Proven optimal, unless time runs out
          or a component has more than 300 items: then the best order found, and a gap.
        - "edge-deletion": delete majority edges, lightest first (of equal ones by i, then j), until no cycle
          is left; sort topologically, smallest free item first. Optimal where the majority graph has no cycle
          (Ramaswamy, Agarwal and Tewari 2013, Algorithm 1 and Theorem 7).
        - "borda": sort by sum over j of u[i, j] - u[j, i]; equal items keep their order. Optimal where the
          majority follows these sums (Theorem 6).
        - "insertion": the better of these two, then moves of single items until none helps.
    time_limit
        Seconds after which "auto" stops proving, a few percent late where an integer program is solved;
        infinity is allowed. The others do not read it.
    callback
        Called as `callback(value, bound)` by "auto", at the start and whenever it improves either.

    Returns
    -------
    Decoded
        `value` is a loss and `bound` a lower bound of it.

    Notes
    -----
    The bound of the heuristic methods is the minimum cost of each pair, plus a packing of cycles of three
    edges that share no weight.

    References
    ----------
    Grötschel, Jünger and Reinelt (1984), A cutting plane algorithm for the linear ordering problem.

    Examples
    --------
    Two of three voters prefer 0 to 1, 1 to 2, and 2 to 0: every order overrules someone.

    >>> votes = [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    >>> feedback_arc(votes)
    Decoded(order=array([0, 1, 2]), value=4.0, proven=True, bound=4.0, gap=0.0, seconds=...)
    """
    started = time.perf_counter()
    matrix = check_square(u).copy()
    np.fill_diagonal(matrix, 0.0)
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if as_double(time_limit) != math.inf:
        check_number("time_limit", time_limit, least=0.0, also="inf")
    if callback is not None and not callable(callback):
        raise ParameterError("callback", callback, "a function that takes value and bound, or None")
    problem = _ArcProblem(matrix, started + min(time_limit, FOREVER), callback)
    result = METHODS[method](problem)
    value = violated_weight(matrix, result.order)
    bound = min(problem.unavoidable + result.bound, value)
    return Decoded.from_order(result.order, value, bound, proven=result.proven, started=started)


class _BoundedOrder(NamedTuple):
    """Order, a lower bound of the majority weight that any order violates, and whether it attains it."""

    order: IntArray
    bound: float
    proven: bool


@dataclass(frozen=True, eq=False)
class _ArcProblem:
    """Preferences for which the violated weight is minimised."""

    matrix: FloatArray  # weights u[i, j] of "i above j", 0 on the diagonal
    deadline: float  # on the clock of `time.perf_counter`
    callback: Callback | None = None  # called with the progress

    @property
    def unavoidable(self) -> float:
        """Unavoidable cost of every order: the lesser weight of each pair."""
        return float(np.minimum(self.matrix, self.matrix.T).sum() / 2.0)

    @property
    def net(self) -> FloatArray:
        """Weight of each majority edge, (u[i, j] - u[j, i])_+."""
        return np.maximum(self.matrix - self.matrix.T, 0.0)


def _search_whole(search: Callable[[FloatArray], IntArray]) -> Callable[[_ArcProblem], _BoundedOrder]:
    """Build a method that searches all items at once, with the bound by packed cycles."""

    def method(problem: _ArcProblem) -> _BoundedOrder:
        order, bound = search(problem.net), _packing_bound(problem.net)
        value, equal = violated_weight(problem.net, order), rounding(problem.net, 1e-12)
        if not grain(problem.net):  # beside a huge satisfied weight, the violated weight looks like rounding
            equal = min(equal, SMALL * value)
        return _BoundedOrder(order, bound, value - bound <= equal)

    return method


def _solve_components(problem: _ArcProblem) -> _BoundedOrder:
    net = problem.net
    parts = [Component.from_items(net, items) for items in components(net)]
    last: list[tuple[float, float]] = []

    def report_progress() -> None:
        if problem.callback is not None:
            sums = (sum(part.value for part in parts), sum(part.bound for part in parts))
            if [sums] != last[-1:]:
                last.append(sums)
                problem.callback(*(problem.unavoidable + total for total in sums))

    report_progress()
    open_parts = sorted((part for part in parts if not part.closed), key=lambda part: len(part.items))
    for number, part in enumerate(open_parts):
        now = time.perf_counter()
        part.close(now + max(problem.deadline - now, 0.0) / (len(open_parts) - number), report_progress)
    order = np.concatenate([part.items[part.order] for part in parts])
    return _BoundedOrder(order, sum(part.bound for part in parts), all(part.closed for part in parts))


METHODS: dict[str, Callable[[_ArcProblem], _BoundedOrder]] = {
    "auto": _solve_components,
    "edge-deletion": _search_whole(by_edge_deletion),
    "borda": _search_whole(by_borda),
    "insertion": _search_whole(_by_search),
}

"""Pairwise disagreement: the order that violates least preference, a minimum weighted feedback arc set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from concordant.decoders.decoded import Decoded, check_square
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["METHODS", "Callback", "feedback_arc"]

DYNAMIC_ITEMS = 16  # of a component: up to here dynamic programming, 2^n sets, takes milliseconds
PROGRAM_ITEMS = 300  # up to here an integer program: beyond, its first relaxation takes minutes
PACKED_ITEMS = 1000  # up to here cycles are looked for, O(n^3)

Callback = Callable[[float, float], object]
"""Told of the best value and the bound so far."""


def feedback_arc(
    u: ArrayLike, *, method: str = "auto", time_limit: float = 60.0, callback: Callback | None = None
) -> Decoded:
    """Give the order with the least sum of u[i, j] over the pairs with i placed after j.

    With u[i, j] the (expected) weight of "i is preferred to j" that is the order of least expected pairwise
    disagreement; with u[i, j] a number of voters, Kemeny's.

    Parameters
    ----------
    u
        Square matrix of finite numbers; the diagonal is not read. A pair nobody compared is 0 in both
        directions. Only u[i, j] - u[j, i] decides.
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
        Seconds after which "auto" stops proving; the others do not read it.
    callback
        Called as `callback(value, bound)` whenever "auto" has improved one of them.

    Returns
    -------
    Decoded
        `value` is a loss and `bound` a lower bound of it.

    Notes
    -----
    The bound of the methods that do not prove is what each pair must cost, plus cycles of three edges that
    share none of their weight.

    References
    ----------
    Grötschel, Jünger and Reinelt (1984), A cutting plane algorithm for the linear ordering problem.

    Examples
    --------
    Two of three voters prefer 0 to 1, 1 to 2, and 2 to 0: every order overrules somebody.

    >>> votes = [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    >>> feedback_arc(votes)
    Decoded(order=array([0, 1, 2]), value=4.0, proven=True, bound=4.0, gap=0.0, seconds=...)
    """
    started = time.perf_counter()
    matrix = check_square(u).copy()
    np.fill_diagonal(matrix, 0.0)
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if not (isinstance(time_limit, Real) and 0 <= float(time_limit) < math.inf):
        raise ParameterError("time_limit", time_limit, "a finite number of seconds, >= 0")
    if callback is not None and not callable(callback):
        raise ParameterError("callback", callback, "a function of value and bound, or None")
    problem = Problem(matrix, started + float(time_limit), callback)
    order, bound = METHODS[method](problem)
    return Decoded.between(order, problem.value(order), bound, float(np.abs(matrix).sum()), started)


@dataclass(frozen=True, eq=False)
class Problem:
    """Preferences to be violated as little as can be.

    Attributes
    ----------
    matrix
        Weights u[i, j] of "i above j", 0 on the diagonal.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    callback
        Told of progress.
    """

    matrix: FloatArray
    deadline: float
    callback: Callback | None = None

    @property
    def unavoidable(self) -> float:
        """What every order pays: the lesser weight of each pair."""
        return float(np.minimum(self.matrix, self.matrix.T).sum() / 2.0)

    @property
    def net(self) -> FloatArray:
        """Weight of each majority edge, (u[i, j] - u[j, i])_+."""
        return np.maximum(self.matrix - self.matrix.T, 0.0)

    def value(self, order: IntArray) -> float:
        """Sum of the weights that the order violates."""
        return violated(self.matrix, order)


def violated(weights: FloatArray, order: IntArray) -> float:
    """Sum of weights[i, j] over the pairs with i after j."""
    return float(np.tril(weights[np.ix_(order, order)], -1).sum())


def packed(net: FloatArray) -> float:
    """Give what every order violates of the majority edges, at least."""
    from concordant.decoders.kernels import pack_triangles

    return pack_triangles(net.copy()) if len(net) <= PACKED_ITEMS else 0.0


def by_edge_deletion(net: FloatArray) -> IntArray:
    """Give the order of Algorithm 1; acyclicity is monotone in the edges deleted, so bisection finds them."""
    from concordant.decoders.kernels import topological

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


def by_search(net: FloatArray) -> IntArray:
    """Give the better of the two, after moves of single items."""
    orders = [improved(net, start(net)) for start in (by_edge_deletion, by_borda)]
    return min(orders, key=lambda order: violated(net, order))


def improved(net: FloatArray, order: IntArray) -> IntArray:
    """Move single items until none helps; the order given is not changed."""
    from concordant._combinatorics import by_insertion

    better = order.copy()
    by_insertion(*as_gains(net), better)
    return better


def as_gains(net: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the edges in the form that is maximised: an item costs its edges to all that stand above it."""
    return -net / (net.max() or 1.0), np.ones(len(net))


def unproven(search: Callable[[FloatArray], IntArray]) -> Callable[[Problem], tuple[IntArray, float]]:
    """Give a method that searches all items at once, with the bound that costs no search."""
    return lambda problem: (search(problem.net), problem.unavoidable + packed(problem.net))


def exactly(problem: Problem) -> tuple[IntArray, float]:
    """Solve one component after another."""
    net = problem.net
    parts = [Part.begun(net, items) for items in components(net)]

    def told() -> None:
        if problem.callback is not None:
            values = sum(violated(part.net, part.order) for part in parts)
            bounds = sum(part.bound for part in parts)
            problem.callback(problem.unavoidable + values, problem.unavoidable + bounds)

    open_parts = sorted((part for part in parts if not part.closed), key=lambda part: len(part.items))
    for number, part in enumerate(open_parts):
        now = time.perf_counter()
        part.close(now + max(problem.deadline - now, 0.0) / (len(open_parts) - number), told)
    order = np.concatenate([part.items[part.order] for part in parts])
    return order, problem.unavoidable + sum(part.bound for part in parts)


def components(net: FloatArray) -> list[IntArray]:
    """Give the items of each strongly connected component, in an order that all edges between them follow."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    from concordant.decoders.kernels import topological

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
class Part:
    """One component: its items, their majority edges, the best order so far (of 0..n-1) and a bound."""

    items: IntArray
    net: FloatArray
    order: IntArray
    bound: float
    closed: bool

    @classmethod
    def begun(cls, net: FloatArray, items: IntArray) -> Part:
        """Solve a small component; begin a large one."""
        from concordant._combinatorics import best_order

        own = net[np.ix_(items, items)]
        if len(items) > DYNAMIC_ITEMS:
            return cls(items, own, by_search(own), packed(own), False)
        order = best_order(*as_gains(own))
        return cls(items, own, order, violated(own, order), True)

    def close(self, deadline: float, told: Callable[[], None]) -> None:
        """Improve order and bound until they meet, or time runs out."""
        told()
        if len(self.items) > PROGRAM_ITEMS:
            return
        from concordant.decoders.linear_ordering import rounds

        for order, bound in rounds(self.net, deadline):
            candidate = improved(self.net, order)
            if violated(self.net, candidate) < violated(self.net, self.order):
                self.order = candidate
            best = violated(self.net, self.order)
            self.bound = min(max(self.bound, bound), best)
            told()
            if best - self.bound <= 1e-9 * self.net.sum():
                self.bound = best
                return


METHODS: dict[str, Callable[[Problem], tuple[IntArray, float]]] = {
    "auto": exactly,
    "edge-deletion": unproven(by_edge_deletion),
    "borda": unproven(by_borda),
    "insertion": unproven(by_search),
}

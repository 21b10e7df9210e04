"""Pairwise disagreement: the order that violates least preference, a minimum weighted feedback arc set."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from concordant.decoders.arc_searches import (
    by_borda,
    by_edge_deletion,
    by_search,
    grain,
    packed,
    rounding,
    violated,
)
from concordant.decoders.components import Part, components
from concordant.decoders.decoded import Decoded, check_number, check_square
from concordant.exceptions import ParameterError, UnknownNameError
from concordant.types import ArrayLike, FloatArray, IntArray

__all__ = ["METHODS", "Callback", "feedback_arc"]

FOREVER = 1e9  # seconds
SMALL = 1e-9  # a share of what is violated

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
        Seconds after which "auto" stops proving, a few percent late where an integer program is solved;
        infinity is allowed. The others do not read it.
    callback
        Called as `callback(value, bound)` by "auto", first and whenever it has improved one of them.

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
    check_number("time_limit", time_limit, least=0, whole=False)
    if callback is not None and not callable(callback):
        raise ParameterError("callback", callback, "a function of value and bound, or None")
    problem = Problem(matrix, started + min(time_limit, FOREVER), callback)
    found = METHODS[method](problem)
    value = violated(matrix, found.order)
    bound = min(problem.unavoidable + found.bound, value)
    return Decoded.of(found.order, value, bound, proven=found.proven, started=started)


class Found(NamedTuple):
    """An order, a lower bound of the majority weight that any order violates, and whether it attains it."""

    order: IntArray
    bound: float
    proven: bool


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


def quickly(search: Callable[[FloatArray], IntArray]) -> Callable[[Problem], Found]:
    """Give a method that searches all items at once, with the bound that costs no search."""

    def method(problem: Problem) -> Found:
        order, bound = search(problem.net), packed(problem.net)
        value, equal = violated(problem.net, order), rounding(problem.net, 1e-12)
        if not grain(problem.net):  # beside a huge weight that is kept, what is violated looks like rounding
            equal = min(equal, SMALL * value)
        return Found(order, bound, value - bound <= equal)

    return method


def exactly(problem: Problem) -> Found:
    """Solve one component after another."""
    net = problem.net
    parts = [Part.begun(net, items) for items in components(net)]
    last: list[tuple[float, float]] = []

    def told() -> None:
        if problem.callback is not None:
            sums = (sum(part.value for part in parts), sum(part.bound for part in parts))
            if [sums] != last[-1:]:
                last.append(sums)
                problem.callback(*(problem.unavoidable + total for total in sums))

    told()
    open_parts = sorted((part for part in parts if not part.closed), key=lambda part: len(part.items))
    for number, part in enumerate(open_parts):
        now = time.perf_counter()
        part.close(now + max(problem.deadline - now, 0.0) / (len(open_parts) - number), told)
    order = np.concatenate([part.items[part.order] for part in parts])
    return Found(order, sum(part.bound for part in parts), all(part.closed for part in parts))


METHODS: dict[str, Callable[[Problem], Found]] = {
    "auto": exactly,
    "edge-deletion": quickly(by_edge_deletion),
    "borda": quickly(by_borda),
    "insertion": quickly(by_search),
}

"""Average precision: the order of largest expected value, a quadratic assignment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from concordant._base.validate import check_whole
from concordant.decoders.decoded import Decoded, check_square
from concordant.exceptions import LabelError, UnknownNameError
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Beam search for average precision: sets of first items, a layer for each position.


@dataclass(eq=False)
class Layer:
    """Sets of equally many first items, one per row."""

    inside: BoolArray  # True if the item is in the set
    sums: FloatArray  # of u[i, j] over the items j of the set, for every item i
    waits: IntArray  # number of items that dominate each item and are not in the set
    values: FloatArray  # of the best order found for each set
    keys: NDArray[np.uint64]  # exclusive or of the items' random numbers: equal for equal sets


def beam(u: FloatArray, above: BoolArray, width: int) -> tuple[IntArray, bool]:
    """Search for the best order; also return True if it is optimal because no set was dropped.

    Parameters
    ----------
    u
        Symmetric matrix.
    above
        Pairs that some optimal order respects all at once: above[i, j] puts i above j; if also above[j, i],
        the smaller number goes first.
    width
        Number of sets kept at each position.
    """
    n = len(u)
    above = above & ~(above.T & np.tri(n, dtype=bool))
    numbers = np.random.default_rng(0).integers(1, 2**63, n, dtype=np.uint64)
    rows = u.sum(axis=1) - np.diag(u)
    empty = np.zeros((1, n))
    layer = Layer(empty > 0, empty, above.sum(axis=0)[None, :], np.zeros(1), np.zeros(1, dtype=np.uint64))
    steps: list[tuple[IntArray, IntArray]] = []
    complete = True
    for position in range(1, n + 1):
        parents, items, dropped = _select_extensions(layer, u, rows, numbers, position, width)
        complete &= not dropped
        layer = _extend_layer(layer, u, above, numbers, parents, items, position)
        steps.append((parents, items))
    order, state = np.empty(n, dtype=np.int64), 0
    for position in range(n - 1, -1, -1):
        order[position] = steps[position][1][state]
        state = steps[position][0][state]
    return order, complete


def _select_extensions(
    layer: Layer, u: FloatArray, rows: FloatArray, numbers: NDArray[np.uint64], position: int, width: int
) -> tuple[IntArray, IntArray, bool]:
    """Select the sets to extend and the items to add: the best of equal sets, then the most promising."""
    n = len(u)
    parents, items = np.nonzero(~layer.inside & (layer.waits == 0))
    gains = layer.values[parents] + (layer.sums[parents, items] + u[items, items]) / position
    keys = layer.keys[parents] ^ numbers[items]
    candidates = _best_of_each(keys, gains)
    if len(candidates) <= width:
        return parents[candidates], items[candidates], False
    # Expected gain of the remaining items from those in the set, at the mean rate of the remaining positions.
    inner, within = layer.sums[parents[candidates], items[candidates]], items[candidates]
    cut = (layer.sums * ~layer.inside).sum(axis=1)[parents[candidates]] + rows[within] - 2.0 * inner
    rate = (1.0 / np.arange(position + 1, n + 1)).mean() if position < n else 0.0
    hope = gains[candidates] + rate * (cut - u[within, within])
    best = candidates[np.argpartition(-hope, width)[:width]]
    return parents[best], items[best], True


def _best_of_each(keys: NDArray[np.uint64], gains: FloatArray) -> IntArray:
    """Find the row with the largest gain of each key.

    >>> _best_of_each(np.array([7, 5, 7, 5], dtype=np.uint64), np.array([1.0, 2.0, 3.0, 2.0])).tolist()
    [1, 2]
    """
    order = np.argsort(keys)  # several times faster than a sort by key and gain
    starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    group = np.repeat(np.arange(len(starts)), sizes)
    best = np.flatnonzero(gains[order] == np.repeat(np.maximum.reduceat(gains[order], starts), sizes))
    return order[best[np.flatnonzero(np.diff(group[best], prepend=-1))]]


def _extend_layer(
    layer: Layer,
    u: FloatArray,
    above: BoolArray,
    numbers: NDArray[np.uint64],
    parents: IntArray,
    items: IntArray,
    position: int,
) -> Layer:
    rows, inside, sums = np.arange(len(items)), layer.inside[parents], layer.sums[parents]
    values = layer.values[parents] + (sums[rows, items] + u[items, items]) / position
    inside[rows, items] = True
    keys = layer.keys[parents] ^ numbers[items]
    return Layer(inside, sums + u[items], layer.waits[parents] - above[items], values, keys)


SMALL_ITEMS = 12  # up to here dynamic programming over 2^n sets is the fastest method
DYNAMIC_ITEMS = 20  # up to here it takes a tenth of a second
BEAM_WORK = 6_000_000  # sets of the beam times n^2, by default
NARROW = 500  # sets of the beam where trying all sets costs little more
SWAPPED_ITEMS = 400  # up to here all pairs are tried for an exchange, O(n^3)
ROUNDING = 1e-12  # of the sum of all numbers: nearer than this, value and bound are the same
ASYMMETRY = 1e-9  # of the largest entry: as much as rounding may make


def average_precision(u: ArrayLike, *, method: str = "auto", width: int | None = None) -> Decoded:
    """Find the order with the largest sum of u[i, j] / max(position of i, position of j) over all i >= j.

    With u[i, j] = E[y_i y_j / sum(y)] that sum is the expected average precision.

    Parameters
    ----------
    u
        Symmetric matrix of finite numbers.
    method
        How to search:

        - "auto": "diagonal" where it is proven optimal, else "beam"; up to 20 items dynamic programming over
          sets wherever these do not prove, so that the order is always optimal.
        - "beam": position by position, the `width` most promising sets of first items are kept, and only
          items that no remaining item dominates come next (see Notes). Optimal if no set had to be dropped;
          otherwise followed by moves and exchanges of items until none helps.
        - "diagonal": sort by u[i, i], equal items keep their order: optimal if `reinforced` is true for every
          pair (Ramaswamy, Agarwal and Tewari 2013, Theorem 4).
    width
        Number of sets that "beam" keeps at each position; more make a proof likelier. None: 6,000,000 / n^2,
        so that the work is the same for every n.

    Returns
    -------
    Decoded
        `value` is a gain and `bound` an upper bound of it.

    Notes
    -----
    If u_ii - u_jj >= sum over the other g of (u_jg - u_ig)_+, exchanging j with a later i never lowers the
    value: i dominates j, and some optimal order respects all such pairs at once. The condition of the theorem
    is that every two items are in this relation.

    The bound: the value is a sum over t of (1/t - 1/(t + 1)) U(first t items), U the sum of u[i, j] over
    i >= j in the set (the last factor is 1/n), and U of any t items is at most the sum of the t largest
    u_ii + half of the t - 1 largest u_ij.

    Examples
    --------
    Items 1 and 2 are relevant together, item 0 more often than each, but alone:

    >>> u = [[0.36, 0.0, 0.0], [0.0, 0.32, 0.32], [0.0, 0.32, 0.32]]
    >>> average_precision(u)
    Decoded(order=array([1, 2, 0]), value=0.76, proven=True, bound=0.76, gap=0.0, seconds=...)
    >>> average_precision(u, method="diagonal").order.tolist()
    [0, 1, 2]
    """
    started = time.perf_counter()
    matrix = _check_symmetric(u)
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if width is not None:
        check_whole("width", width, 1, also="None")
    exponent = int(np.frexp(np.abs(matrix).max())[1])
    scaled = np.ldexp(matrix, -exponent)  # exact: also of subnormal numbers, whose sums and products are not
    beam_width = max(1, BEAM_WORK // len(matrix) ** 2) if width is None else int(width)
    order, exact = METHODS[method](scaled, beam_width)
    value = order_value(scaled, order)
    bound = value if exact else max(_chain_bound(scaled), value)
    proven = exact or bound - value <= ROUNDING * float(np.abs(scaled).sum())
    value, bound = np.ldexp([value, bound], exponent)
    return Decoded.from_order(order, float(value), float(bound), proven=proven, started=started)


def _check_symmetric(u: ArrayLike) -> FloatArray:
    """Check for a symmetric matrix; asymmetry due to rounding is averaged away."""
    matrix = check_square(u)
    apart = np.abs(matrix - matrix.T)
    if (wrong := apart > ASYMMETRY * np.abs(matrix).max()).any():
        i, j = np.argwhere(wrong)[0]
        problem = f"u[{i}, {j}] = {matrix[i, j]:g} differs from u[{j}, {i}] = {matrix[j, i]:g}"
        raise LabelError(problem, "average precision reads pairs without a side: pass (u + u.T) / 2.")
    return matrix / 2.0 + matrix.T / 2.0 if apart.any() else matrix


def order_value(u: FloatArray, order: IntArray) -> float:
    """Sum of u[i, j] / max(position of i, position of j) over i >= j."""
    pairs = np.tril(u[np.ix_(order, order)]).sum(axis=1)
    return float(pairs @ _position_rates(len(order)))


def _position_rates(n: int) -> FloatArray:
    """Weight of each position, 1 / position."""
    return 1.0 / np.arange(1, n + 1)


def _chain_bound(u: FloatArray) -> float:
    """Upper bound of the value of every order, O(n^2 log n)."""
    n = len(u)
    diagonal = np.diag(u)
    others = -np.sort(-u[~np.eye(n, dtype=bool)].reshape(n, n - 1), axis=1)
    best = np.hstack((np.zeros((n, 1)), others.cumsum(axis=1) / 2.0)) + diagonal[:, None]
    most = [np.partition(best[:, t - 1], n - t)[n - t :].sum() for t in range(1, n + 1)]
    return float(-np.diff(_position_rates(n), append=0.0) @ np.array(most))


def reinforced(u: ArrayLike) -> BoolArray:
    """Matrix that is true where item i dominates item j: u_ii - u_jj >= sum of the (u_jg - u_ig)_+.

    >>> reinforced([[0.36, 0.0, 0.0], [0.0, 0.32, 0.32], [0.0, 0.32, 0.32]]).astype(int).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    from concordant.decoders.graph_kernels import dominates

    matrix = _check_symmetric(u)
    above = np.empty(matrix.shape, dtype=np.bool_)
    dominates(matrix, above)
    return above


def _by_diagonal(u: FloatArray, width: int) -> tuple[IntArray, bool]:
    """Sort by the diagonal; optimal where each item dominates the next: the relation is transitive."""
    del width
    order = np.argsort(-np.diag(u), kind="stable")
    ahead, behind = order[:-1], order[1:]
    missed = np.maximum(u[behind] - u[ahead], 0.0)
    pairs = np.arange(len(ahead))
    missed[pairs, ahead] = missed[pairs, behind] = 0.0
    return order, bool((np.diag(u)[ahead] - np.diag(u)[behind] >= missed.sum(axis=1)).all())


def _by_beam(u: FloatArray, width: int) -> tuple[IntArray, bool]:
    """Search among sets of first items, then among neighbours of the order found."""
    order, complete = beam(u, reinforced(u), width)
    return (order if complete else _improve(u, order)), complete


def _improve(u: FloatArray, order: IntArray) -> IntArray:
    from concordant._base.combinatorics import improve_by_insertion
    from concordant.decoders.graph_kernels import by_swaps

    better, by_place = order.copy(), _position_rates(len(order))
    improve_by_insertion(u, by_place, better)
    while len(u) <= SWAPPED_ITEMS and by_swaps(u, by_place, better):
        improve_by_insertion(u, by_place, better)
    return better


def _automatic(u: FloatArray, width: int) -> tuple[IntArray, bool]:
    """Try the quick methods; all sets, if those prove nothing and the items are few."""
    from concordant._base.combinatorics import best_order

    order, proven = _by_diagonal(u, width)
    if not proven and len(u) > SMALL_ITEMS:
        order, proven = _by_beam(u, width if len(u) > DYNAMIC_ITEMS else min(width, NARROW))
    if proven or len(u) > DYNAMIC_ITEMS:
        return order, proven
    return best_order(u, _position_rates(len(u))), True


METHODS: dict[str, Callable[[FloatArray, int], tuple[IntArray, bool]]] = {
    "auto": _automatic,
    "beam": _by_beam,
    "diagonal": _by_diagonal,
}

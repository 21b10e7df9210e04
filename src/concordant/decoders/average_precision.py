"""Average precision: the order of largest expected value, a quadratic assignment."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from concordant.decoders.decoded import Decoded, check_number, check_square
from concordant.exceptions import LabelError, UnknownNameError
from concordant.types import ArrayLike, BoolArray, FloatArray, IntArray

__all__ = ["METHODS", "average_precision", "reinforced"]

SMALL_ITEMS = 12  # up to here dynamic programming, 2^n sets, takes less time than anything else
DYNAMIC_ITEMS = 20  # up to here a tenth of a second
BEAM_WORK = 6_000_000  # sets of the beam times n^2, unless the caller says otherwise
NARROW = 500  # sets of the beam where trying all sets costs little more
SWAPPED_ITEMS = 400  # up to here all pairs are tried for an exchange, O(n^3)
ROUNDING = 1e-12  # of the sum of all numbers: nearer than this, value and bound are the same
ASYMMETRY = 1e-9  # of the largest entry: as much as rounding may make


def average_precision(u: ArrayLike, *, method: str = "auto", width: int | None = None) -> Decoded:
    """Give the order with the largest sum of u[i, j] / max(place of i, place of j) over all i >= j.

    With u[i, j] = E[y_i y_j / sum(y)] that sum is the expected average precision.

    Parameters
    ----------
    u
        Symmetric matrix of finite numbers.
    method
        How to search:

        - "auto": "diagonal" where it is proven optimal, else "beam"; up to 20 items dynamic programming over
          sets wherever these do not prove, so that the order is always optimal.
        - "beam": place by place, the `width` most promising sets of first items are kept, and only items that
          no open item dominates come next (see Notes). Optimal where no set had to be dropped; then moves and
          exchanges of items until none helps.
        - "diagonal": sort by u[i, i], equal ones in their given order: optimal where `reinforced` says so for
          every pair (Ramaswamy, Agarwal and Tewari 2013, Theorem 4).
    width
        Sets kept by "beam" at each place; the more, the likelier a proof. None: 6,000,000 / n^2, so that the
        work is the same for every n.

    Returns
    -------
    Decoded
        `value` is a gain and `bound` an upper bound of it.

    Notes
    -----
    If u_ii - u_jj >= sum over the other g of (u_jg - u_ig)_+, exchanging j with a later i never lowers the
    value: i dominates j, and some optimal order respects all such pairs at once. The theorem's condition says
    that every two items are in this relation.

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
    matrix = check_symmetric(u)
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if width is not None:
        check_number("width", width, least=1, whole=True)
    scale = float(np.abs(matrix).max()) or 1.0
    kept = max(1, BEAM_WORK // len(matrix) ** 2) if width is None else int(width)
    order, exact = METHODS[method](matrix / scale, kept)
    value = gained(matrix, order)
    bound = value if exact else max(chain_bound(matrix), value)
    proven = exact or bound - value <= ROUNDING * float(np.abs(matrix).sum())
    return Decoded.of(order, value, bound, proven=proven, started=started)


def check_symmetric(u: ArrayLike) -> FloatArray:
    """Give a symmetric matrix; asymmetry that rounding explains is averaged away."""
    matrix = check_square(u)
    apart = np.abs(matrix - matrix.T)
    if (wrong := apart > ASYMMETRY * np.abs(matrix).max()).any():
        i, j = np.argwhere(wrong)[0]
        problem = f"u[{i}, {j}] = {matrix[i, j]:g} differs from u[{j}, {i}] = {matrix[j, i]:g}"
        raise LabelError(problem, "average precision reads pairs without a side: pass (u + u.T) / 2.")
    return matrix / 2.0 + matrix.T / 2.0 if apart.any() else matrix


def gained(u: FloatArray, order: IntArray) -> float:
    """Sum of u[i, j] / max(place of i, place of j) over i >= j."""
    pairs = np.tril(u[np.ix_(order, order)]).sum(axis=1)
    return float(pairs @ rates(len(order)))


def rates(n: int) -> FloatArray:
    """What each place counts."""
    return 1.0 / np.arange(1, n + 1)


def chain_bound(u: FloatArray) -> float:
    """Give an upper bound of the value of every order, O(n^2 log n)."""
    n = len(u)
    own = np.diag(u)
    others = -np.sort(-u[~np.eye(n, dtype=bool)].reshape(n, n - 1), axis=1)
    best = np.hstack((np.zeros((n, 1)), others.cumsum(axis=1) / 2.0)) + own[:, None]
    most = [np.partition(best[:, t - 1], n - t)[n - t :].sum() for t in range(1, n + 1)]
    return float(-np.diff(rates(n), append=0.0) @ np.array(most))


def reinforced(u: ArrayLike) -> BoolArray:
    """Tell, for each pair, whether item i dominates item j: u_ii - u_jj >= sum of the (u_jg - u_ig)_+.

    >>> reinforced([[0.36, 0.0, 0.0], [0.0, 0.32, 0.32], [0.0, 0.32, 0.32]]).astype(int).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    from concordant.decoders.kernels import dominates

    matrix = check_symmetric(u)
    above = np.empty(matrix.shape, dtype=np.bool_)
    dominates(matrix, above)
    return above


def by_diagonal(u: FloatArray, width: int) -> tuple[IntArray, bool]:
    """Sort by the diagonal; optimal where each item dominates the next: the relation is transitive."""
    del width
    order = np.argsort(-np.diag(u), kind="stable")
    ahead, behind = order[:-1], order[1:]
    missed = np.maximum(u[behind] - u[ahead], 0.0)
    pairs = np.arange(len(ahead))
    missed[pairs, ahead] = missed[pairs, behind] = 0.0
    return order, bool((np.diag(u)[ahead] - np.diag(u)[behind] >= missed.sum(axis=1)).all())


def by_beam(u: FloatArray, width: int) -> tuple[IntArray, bool]:
    """Search among sets of first items, then among neighbours of the order found."""
    from concordant.decoders.beam import beam

    order, complete = beam(u, reinforced(u), width)
    return (order if complete else improved(u, order)), complete


def improved(u: FloatArray, order: IntArray) -> IntArray:
    """Move and exchange items until neither helps; the order given is not changed."""
    from concordant._combinatorics import by_insertion
    from concordant.decoders.kernels import by_swaps

    better, by_place = order.copy(), rates(len(order))
    by_insertion(u, by_place, better)
    while len(u) <= SWAPPED_ITEMS and by_swaps(u, by_place, better):
        by_insertion(u, by_place, better)
    return better


def automatic(u: FloatArray, width: int) -> tuple[IntArray, bool]:
    """Try what is quick; all sets, where that does not prove and they are not too many."""
    from concordant._combinatorics import best_order

    order, proven = by_diagonal(u, width)
    if not proven and len(u) > SMALL_ITEMS:
        order, proven = by_beam(u, width if len(u) > DYNAMIC_ITEMS else min(width, NARROW))
    return (order, proven) if proven or len(u) > DYNAMIC_ITEMS else (best_order(u, rates(len(u))), True)


METHODS: dict[str, Callable[[FloatArray, int], tuple[IntArray, bool]]] = {
    "auto": automatic,
    "beam": by_beam,
    "diagonal": by_diagonal,
}

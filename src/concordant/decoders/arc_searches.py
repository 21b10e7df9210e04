"""Orders of few violated edges, quick ones; and what no order falls below."""

from __future__ import annotations

import numpy as np

from concordant.types import FloatArray, IntArray

__all__ = [
    "as_gains",
    "by_borda",
    "by_edge_deletion",
    "by_search",
    "grain",
    "improved",
    "packed",
    "rounding",
    "violated",
]

PACKED_ITEMS = 1000  # up to here cycles are looked for, O(n^3)
EXACT = 2.0**53  # up to here sums of whole numbers are whole


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


def rounding(net: FloatArray, share: float) -> float:
    """What lies between two values that count as equal: this share of the largest weight, for every pair.

    Where all weights are whole numbers, values are too, and less than half their step.
    """
    return grain(net) / 2.0 or share * float(net.max(initial=0.0)) * len(net) ** 2 / 2.0


def grain(net: FloatArray) -> float:
    """Give the largest number of which all weights are multiples, where they are whole; else 0.

    >>> grain(np.array([[0.0, 6.0], [4.0, 0.0]])), grain(np.array([[0.0, 0.5], [0.0, 0.0]]))
    (2.0, 0.0)
    """
    weights = net[net > 0.0]
    if not (weights.size and weights.sum() < EXACT and (weights == np.rint(weights)).all()):
        return 0.0
    return float(np.gcd.reduce(weights.astype(np.int64)))

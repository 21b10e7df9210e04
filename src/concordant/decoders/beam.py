"""Beam search for average precision: sets of first items, a layer for each place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from concordant.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["beam"]


@dataclass(eq=False)
class Layer:
    """Sets of equally many first items, one a row.

    Attributes
    ----------
    inside
        Whether each item is in the set.
    sums
        Sum of u[i, j] over the items j of the set, for every item i.
    waits
        How many items that dominate each item are not in the set.
    values
        Value of the best order found of each set.
    keys
        Exclusive or of the items' random numbers: equal for equal sets, and hardly for others.
    """

    inside: BoolArray
    sums: FloatArray
    waits: IntArray
    values: FloatArray
    keys: NDArray[np.uint64]


def beam(u: FloatArray, above: BoolArray, width: int) -> tuple[IntArray, bool]:
    """Give the best order found, and whether it is the best of all because no set was dropped.

    Parameters
    ----------
    u
        Symmetric matrix.
    above
        Pairs of which some optimal order respects all: above[i, j] puts i above j, unless above[j, i] too,
        where the first of the two goes first.
    width
        Sets kept at each place.
    """
    n = len(u)
    above = above & ~(above.T & np.tri(n, dtype=bool))
    numbers = np.random.default_rng(0).integers(1, 2**63, n, dtype=np.uint64)
    rows = u.sum(axis=1) - np.diag(u)
    empty = np.zeros((1, n))
    layer = Layer(empty > 0, empty, above.sum(axis=0)[None, :], np.zeros(1), np.zeros(1, dtype=np.uint64))
    steps: list[tuple[IntArray, IntArray]] = []
    complete = True
    for place in range(1, n + 1):
        parents, items, dropped = chosen(layer, u, rows, numbers, place, width)
        complete &= not dropped
        layer = grown(layer, u, above, numbers, parents, items, place)
        steps.append((parents, items))
    order, state = np.empty(n, dtype=np.int64), 0
    for place in range(n - 1, -1, -1):
        order[place] = steps[place][1][state]
        state = steps[place][0][state]
    return order, complete


def chosen(
    layer: Layer, u: FloatArray, rows: FloatArray, numbers: NDArray[np.uint64], place: int, width: int
) -> tuple[IntArray, IntArray, bool]:
    """Give the sets to grow and the items to add: of equal sets the best, then the most promising ones."""
    n = len(u)
    parents, items = np.nonzero(~layer.inside & (layer.waits == 0))
    gains = layer.values[parents] + (layer.sums[parents, items] + u[items, items]) / place
    keys = layer.keys[parents] ^ numbers[items]
    kept = best_of_each(keys, gains)
    if len(kept) <= width:
        return parents[kept], items[kept], False
    # What the items left will gain from those in the set, at the mean rate of the places left.
    inner, within = layer.sums[parents[kept], items[kept]], items[kept]
    cut = (layer.sums * ~layer.inside).sum(axis=1)[parents[kept]] + rows[within] - 2.0 * inner
    rate = (1.0 / np.arange(place + 1, n + 1)).mean() if place < n else 0.0
    hope = gains[kept] + rate * (cut - u[within, within])
    top = kept[np.argpartition(-hope, width)[:width]]
    return parents[top], items[top], True


def best_of_each(keys: NDArray[np.uint64], gains: FloatArray) -> IntArray:
    """Give where each key has its largest gain, once.

    >>> best_of_each(np.array([7, 5, 7, 5], dtype=np.uint64), np.array([1.0, 2.0, 3.0, 2.0])).tolist()
    [1, 2]
    """
    order = np.argsort(keys)  # several times faster than a sort by key and gain
    starts = np.flatnonzero(np.r_[True, np.diff(keys[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    group = np.repeat(np.arange(len(starts)), sizes)
    best = np.flatnonzero(gains[order] == np.repeat(np.maximum.reduceat(gains[order], starts), sizes))
    return order[best[np.flatnonzero(np.diff(group[best], prepend=-1))]]


def grown(
    layer: Layer,
    u: FloatArray,
    above: BoolArray,
    numbers: NDArray[np.uint64],
    parents: IntArray,
    items: IntArray,
    place: int,
) -> Layer:
    """Add the items."""
    rows, inside, sums = np.arange(len(items)), layer.inside[parents], layer.sums[parents]
    values = layer.values[parents] + (sums[rows, items] + u[items, items]) / place
    inside[rows, items] = True
    keys = layer.keys[parents] ^ numbers[items]
    return Layer(inside, sums + u[items], layer.waits[parents] - above[items], values, keys)

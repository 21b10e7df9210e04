"""Search through orders: who goes to which place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from concordant._segments import kernel, vector_kernel
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["assign", "best_order", "by_insertion", "interleave"]


@kernel
def assign(gains: FloatArray, slopes: FloatArray, discounts: FloatArray, at: IntArray) -> None:
    """Fill `at`, the item of each place p = 0, 1, ...: the least sum of gains * discounts[p] + slopes * p.

    A linear assignment, by shortest augmenting paths (Jonker and Volgenant 1987); costs are computed where
    they are needed, so that memory is linear. Items come by slope, highest first: that order is optimal but
    for items with a gain at a place with a discount, and only those are placed anew, O(n^2) each.
    """
    n = len(slopes)
    prices, spaces, before = np.empty(n), np.empty((3, n)), np.empty(n, np.int64)
    for p in range(n):
        # Without gains any step between neighbouring slopes makes each item's own place its cheapest.
        prices[p] = prices[p - 1] + slopes[p - 1] if p else 0.0
        at[p] = -1 if gains[p] * discounts[p] > 0.0 else p
    for item in range(n):
        if gains[item] * discounts[item] > 0.0:
            end = cheapest_path(item, gains, slopes, discounts, at, prices, spaces, before)
            while end >= 0:  # everyone on the path moves on by one
                last = before[end]
                at[end] = item if last < 0 else at[last]
                end = last


@kernel
def cheapest_path(
    item: int,
    gains: FloatArray,
    slopes: FloatArray,
    discounts: FloatArray,
    at: IntArray,
    prices: FloatArray,
    spaces: FloatArray,
    before: IntArray,
) -> int:
    """Give the free place that is cheapest to reach, `before` leading back to -1; prices are updated."""
    n, (reach, ends, offers) = len(slopes), (spaces[0], spaces[1], spaces[2])
    for p in range(n):
        reach[p], ends[p], offers[p], before[p] = math.inf, math.inf, prices[p], -1
    here = relax(gains[item], slopes[item], 0.0, -1, discounts, offers, reach, before)
    while at[here] >= 0 and reach[here] < math.inf:  # else it would not end where costs overflow
        # Closed places hold infinity in `reach`, and offer nothing.
        ends[here], reach[here], offers[here] = reach[here], math.inf, -math.inf
        other = at[here]
        level = gains[other] * discounts[here] + slopes[other] * here - prices[here] - ends[here]
        here = relax(gains[other], slopes[other], level, here, discounts, offers, reach, before)
    for p in range(n):
        prices[p] += min(ends[p] - reach[here], 0.0)  # those reached on the way
    return here


@vector_kernel
def relax(
    gain: float,
    slope: float,
    level: float,
    here: int,
    discounts: FloatArray,
    offers: FloatArray,
    reach: FloatArray,
    before: IntArray,
) -> int:
    """Lower the distances that are shorter by way of `here`; the nearest open place."""
    n = len(reach)
    for p in range(n):
        distance = gain * discounts[p] + slope * p - offers[p] - level
        nearer = distance < reach[p]
        reach[p] = distance if nearer else reach[p]
        before[p] = here if nearer else before[p]
    low, lower, lowest, least = math.inf, math.inf, math.inf, math.inf  # four at a time: one would wait
    for p in range(0, n - 3, 4):
        low, lower = min(low, reach[p]), min(lower, reach[p + 1])
        lowest, least = min(lowest, reach[p + 2]), min(least, reach[p + 3])
    for p in range(n - n % 4, n):
        low = min(low, reach[p])
    low, nearest = min(low, lower, lowest, least), 0
    while reach[nearest] > low:
        nearest += 1
    return nearest


@kernel
def interleave(high: FloatArray, low: FloatArray, harmonic: FloatArray, rate: float, above: IntArray) -> None:
    """Fill `above[j]`: how many high items stand above low item j where 1 - AP plus inversions is largest.

    Both lists are sorted, highest score first. An inversion of high item k and low item j adds
    rate * (low[j] - high[k]). The terms of low item j depend on its own place among the high items only, and
    its best place never lies above that of the one before, so halving the list of low items takes
    O(n log n). `harmonic[k]` is 1 + 1/2 + ... + 1/k.

    References
    ----------
    Yue, Finley, Radlinski and Joachims (2007), whose greedy search is O(n^2).
    """
    if not len(low):
        return
    sums = np.zeros(len(high) + 1)  # of the scores of the high items from k on
    for k in range(len(high) - 1, -1, -1):
        sums[k] = sums[k + 1] + high[k]
    todo, n_todo = np.empty((64, 4), np.int64), 1
    todo[0] = np.array([0, len(low), 0, len(high)])
    while n_todo:
        n_todo -= 1
        first, last, least, most = todo[n_todo]
        j = (first + last) // 2
        above[j] = best_place(j, least, most, low[j], sums, harmonic, rate)
        if j > first:
            todo[n_todo] = np.array([first, j, least, above[j]])
            n_todo += 1
        if j + 1 < last:
            todo[n_todo] = np.array([j + 1, last, above[j], most])
            n_todo += 1


@kernel
def best_place(
    j: int, least: int, most: int, score: float, sums: FloatArray, harmonic: FloatArray, rate: float
) -> int:
    """Where low item j adds most: how many high items stand above it, the fewest where several are best."""
    n_high, number = len(sums) - 1, j + 1
    best, found = -math.inf, least
    for i in range(least, most + 1):
        # Pushed down by its j-th low item, the k-th high item loses k/(k + j - 1) - k/(k + j) of its
        # precision, which is j/(k + j) - (j - 1)/(k + j - 1): summed over k > i.
        lost = number * (harmonic[n_high + number] - harmonic[i + number])
        lost -= j * (harmonic[n_high + j] - harmonic[i + j])
        added = lost / n_high + rate * ((n_high - i) * score - sums[i])
        if added > best:
            best, found = added, i
    return found


@kernel
def best_chain(u: FloatArray, rates: FloatArray, last: NDArray[np.int8]) -> None:
    """Maximise the sum over places k of rates[k] * (sum of u[item at k, j] over the items j up to place k).

    Dynamic programming over the 2^n sets S of first items, O(2^n n) time: `last[S]` becomes the item that
    stands last in the best order of S, the highest where several do as well.
    """
    n = len(rates)
    half = n // 2
    mask = (1 << half) - 1
    low, high = row_sums(u, 0, half), row_sums(u, half, n)  # of the items of each half that are in S
    best = np.zeros(1 << n)
    sizes = np.zeros(1 << n, np.int8)
    for chosen in range(1, 1 << n):
        sizes[chosen] = sizes[chosen >> 1] + (chosen & 1)
        rate, most, end = rates[sizes[chosen] - 1], -math.inf, 0
        below, above = low[chosen & mask], high[chosen >> half]
        for item in range(n):
            if chosen >> item & 1:
                value = best[chosen ^ (1 << item)] + rate * (below[item] + above[item])
                if value >= most:
                    most, end = value, item
        best[chosen], last[chosen] = most, end


def best_order(u: FloatArray, rates: FloatArray) -> IntArray:
    """Give the order of largest value, in the objective of `best_chain`, by trying all sets."""
    n = len(rates)
    last = np.empty(1 << n, dtype=np.int8)
    best_chain(u, rates, last)
    order, chosen = np.empty(n, dtype=np.int64), (1 << n) - 1
    for place in range(n - 1, -1, -1):
        order[place] = last[chosen]
        chosen ^= 1 << int(last[chosen])
    return order


@kernel
def row_sums(u: FloatArray, first: int, stop: int) -> FloatArray:
    """For each set of items from `first` to `stop`, as bits, the sum of each row's entries in it."""
    sums = np.zeros((1 << (stop - first), len(u)))
    for chosen in range(1, len(sums)):
        newest = 0
        while not chosen >> newest & 1:
            newest += 1
        for i in range(len(u)):
            sums[chosen, i] = sums[chosen & (chosen - 1), i] + u[i, first + newest]
    return sums


@kernel
def by_insertion(u: FloatArray, rates: FloatArray, order: IntArray) -> None:
    """Move single items to better places, in the objective of `best_chain`, until none has one.

    A move is a series of swaps of neighbours. The sum of u[item at k, j] over the items j above place k makes
    each a few additions: all moves of an item take O(n), and so does moving it. Entries of `u` are at most 1.
    """
    n, since, start = len(order), 0, 0  # `since`: items tried since the last move
    sums = np.empty(n)
    for k in range(n):
        sums[k] = sum_above(u, order, k)
    while since < n:
        gain, end = best_move(u, rates, order, start, sums)
        since += 1
        if gain > 1e-12 * n:
            move(u, order, start, end, sums)
            since = 0
        start = (start + 1) % n


@kernel
def sum_above(u: FloatArray, order: IntArray, place: int) -> float:
    """Sum of u[item, j] over the items j above the item at this place."""
    total = 0.0
    for k in range(place):
        total += u[order[place], order[k]]
    return total


@kernel
def best_move(
    u: FloatArray, rates: FloatArray, order: IntArray, start: int, sums: FloatArray
) -> tuple[float, int]:
    """Give the largest gain of moving the item at a place, and where to."""
    item, most, end = order[start], 0.0, start
    gain, own = 0.0, u[item, item] + sums[start]  # with all that would stand above it
    for k in range(start, len(order) - 1):  # behind the next one, and so on
        other = order[k + 1]
        lead = u[other, other] + sums[k + 1] - u[other, item] - own
        gain += (rates[k] - rates[k + 1]) * lead + rates[k + 1] * (u[item, other] - u[other, item])
        own += u[item, other]
        if gain > most:
            most, end = gain, k + 1
    gain, own = 0.0, u[item, item] + sums[start]
    for k in range(start - 1, -1, -1):
        other = order[k]
        own -= u[item, other]
        lead = own - u[other, other] - sums[k]
        gain += (rates[k] - rates[k + 1]) * lead + rates[k + 1] * (u[other, item] - u[item, other])
        if gain > most:
            most, end = gain, k
    return most, end


@kernel
def move(u: FloatArray, order: IntArray, start: int, end: int, sums: FloatArray) -> None:
    """Move the item at one place to another; those between make room."""
    item, step = order[start], 1 if end > start else -1
    for k in range(start, end, step):
        other = order[k + step]
        order[k], sums[k] = other, sums[k + step] - step * u[other, item]
    order[end] = item
    sums[end] = sum_above(u, order, end)

"""Search over orders: which item takes which position."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from concordant._base.segments import kernel, vector_kernel
from concordant.types import FloatArray, IntArray


@kernel
def assign(gains: FloatArray, slopes: FloatArray, discounts: FloatArray, at: IntArray) -> None:
    """Fill `at[p]`, the item at position p, minimising the sum of gains * discounts[p] + slopes * p.

    A linear assignment solved by shortest augmenting paths (Jonker and Volgenant 1987); costs are computed
    when needed, so that memory is linear. Items must be sorted by slope, highest first: that order is optimal
    except for items with a gain at a position with a discount. Only those are reassigned, in O(n^2) each.
    """
    n = len(slopes)
    prices, spaces, before = np.empty(n), np.empty((3, n)), np.empty(n, np.int64)
    for p in range(n):
        # Without gains, any step between neighbouring slopes makes each item's initial position its cheapest.
        prices[p] = prices[p - 1] + slopes[p - 1] if p else 0.0
        at[p] = -1 if gains[p] * discounts[p] > 0.0 else p
    for item in range(n):
        if gains[item] * discounts[item] > 0.0:
            end = _cheapest_path(item, gains, slopes, discounts, at, prices, spaces, before)
            while end >= 0:  # every item on the path moves on by one position
                last = before[end]
                at[end] = item if last < 0 else at[last]
                end = last


@kernel
def _cheapest_path(
    item: int,
    gains: FloatArray,
    slopes: FloatArray,
    discounts: FloatArray,
    at: IntArray,
    prices: FloatArray,
    spaces: FloatArray,
    before: IntArray,
) -> int:
    """Return the free position cheapest to reach, `before` leading back to -1; updates `prices`."""
    n, (reach, ends, offers) = len(slopes), (spaces[0], spaces[1], spaces[2])
    for p in range(n):
        reach[p], ends[p], offers[p], before[p] = math.inf, math.inf, prices[p], -1
    here = _relax(gains[item], slopes[item], 0.0, -1, discounts, offers, reach, before)
    while at[here] >= 0 and reach[here] < math.inf:  # otherwise the loop would not end when costs overflow
        # Closed positions hold infinity in `reach` and are never offered.
        ends[here], reach[here], offers[here] = reach[here], math.inf, -math.inf
        other = at[here]
        level = gains[other] * discounts[here] + slopes[other] * here - prices[here] - ends[here]
        here = _relax(gains[other], slopes[other], level, here, discounts, offers, reach, before)
    for p in range(n):
        prices[p] += min(ends[p] - reach[here], 0.0)  # only positions reached on the way
    return here


@vector_kernel
def _relax(
    gain: float,
    slope: float,
    level: float,
    here: int,
    discounts: FloatArray,
    offers: FloatArray,
    reach: FloatArray,
    before: IntArray,
) -> int:
    """Shorten the distances that pass through `here`; return the nearest open position."""
    n = len(reach)
    for p in range(n):
        distance = gain * discounts[p] + slope * p - offers[p] - level
        nearer = distance < reach[p]
        reach[p] = distance if nearer else reach[p]
        before[p] = here if nearer else before[p]
    low, lower, lowest, least = math.inf, math.inf, math.inf, math.inf  # four chains: one would stall
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
    """Fill `above[j]`: the number of high items above low item j that maximises 1 - AP plus inversions.

    Both lists are sorted, highest score first. An inversion of high item k and low item j adds
    rate * (low[j] - high[k]). The terms of low item j depend only on its position among the high items, and
    the best position never lies above that of the previous low item, so that bisecting the list of low items
    takes O(n log n). `harmonic[k]` is 1 + 1/2 + ... + 1/k.

    References
    ----------
    Yue, Finley, Radlinski and Joachims (2007), whose greedy search is O(n^2).
    """
    if not len(low):
        return
    sums = np.zeros(len(high) + 1)  # sums of the scores of the high items from k on
    for k in range(len(high) - 1, -1, -1):
        sums[k] = sums[k + 1] + high[k]
    todo, n_todo = np.empty((64, 4), np.int64), 1
    todo[0] = np.array([0, len(low), 0, len(high)])
    while n_todo:
        n_todo -= 1
        first, last, least, most = todo[n_todo]
        j = (first + last) // 2
        above[j] = _best_count_above(j, least, most, low[j], sums, harmonic, rate)
        if j > first:
            todo[n_todo] = np.array([first, j, least, above[j]])
            n_todo += 1
        if j + 1 < last:
            todo[n_todo] = np.array([j + 1, last, above[j], most])
            n_todo += 1


@kernel
def _best_count_above(
    j: int, least: int, most: int, score: float, sums: FloatArray, harmonic: FloatArray, rate: float
) -> int:
    """Number of high items above low item j that adds most to the objective; the smallest if several tie."""
    n_high, number = len(sums) - 1, j + 1
    best, best_count = -math.inf, least
    for i in range(least, most + 1):
        # Pushed down by its j-th low item, the k-th high item loses k/(k + j - 1) - k/(k + j) of its
        # precision, which is j/(k + j) - (j - 1)/(k + j - 1): summed over k > i.
        lost = number * (harmonic[n_high + number] - harmonic[i + number])
        lost -= j * (harmonic[n_high + j] - harmonic[i + j])
        added = lost / n_high + rate * ((n_high - i) * score - sums[i])
        if added > best:
            best, best_count = added, i
    return best_count


@kernel
def _best_chain(u: FloatArray, rates: FloatArray, last: NDArray[np.int8]) -> None:
    """Maximise the sum over positions k of rates[k] * (sum of u[item at k, j] over the items j up to k).

    Dynamic programming over the 2^n sets S of leading items, in O(2^n n) time: `last[S]` becomes the last
    item of the best order of S, the highest-numbered if several tie.
    """
    n = len(rates)
    half = n // 2
    mask = (1 << half) - 1
    low, high = _row_sums(u, 0, half), _row_sums(u, half, n)  # sums over the items of each half that are in S
    best = np.zeros(1 << n)
    sizes = np.zeros(1 << n, np.int8)
    for subset in range(1, 1 << n):
        sizes[subset] = sizes[subset >> 1] + (subset & 1)
        rate, most, end = rates[sizes[subset] - 1], -math.inf, 0
        below, above = low[subset & mask], high[subset >> half]
        for item in range(n):
            if subset >> item & 1:
                value = best[subset ^ (1 << item)] + rate * (below[item] + above[item])
                if value >= most:
                    most, end = value, item
        best[subset], last[subset] = most, end


def best_order(u: FloatArray, rates: FloatArray) -> IntArray:
    """Return the order that maximises the objective of `_best_chain`, by exhaustive search over all sets."""
    n = len(rates)
    last = np.empty(1 << n, dtype=np.int8)
    _best_chain(u, rates, last)
    order, subset = np.empty(n, dtype=np.int64), (1 << n) - 1
    for position in range(n - 1, -1, -1):
        order[position] = last[subset]
        subset ^= 1 << int(last[subset])
    return order


@kernel
def _row_sums(u: FloatArray, first: int, stop: int) -> FloatArray:
    """Sum of each row's entries over every subset (a bit mask) of the items from `first` to `stop`."""
    sums = np.zeros((1 << (stop - first), len(u)))
    for subset in range(1, len(sums)):
        newest = 0
        while not subset >> newest & 1:
            newest += 1
        for i in range(len(u)):
            sums[subset, i] = sums[subset & (subset - 1), i] + u[i, first + newest]
    return sums


@kernel
def improve_by_insertion(u: FloatArray, rates: FloatArray, order: IntArray) -> None:
    """Move single items to better positions, in the objective of `_best_chain`, until no move improves it.

    A move is a series of swaps of neighbours. With the sum of u[item at k, j] over the items j above position
    k, each swap takes a few additions: evaluating all moves of an item takes O(n), and so does moving it.
    Entries of `u` are at most 1.
    """
    n, since, start = len(order), 0, 0  # `since`: items tried since the last move
    sums = np.empty(n)
    for k in range(n):
        sums[k] = _sum_above(u, order, k)
    while since < n:
        gain, end = _best_move(u, rates, order, start, sums)
        since += 1
        if gain > 1e-12 * n:
            _move_item(u, order, start, end, sums)
            since = 0
        start = (start + 1) % n


@kernel
def _sum_above(u: FloatArray, order: IntArray, position: int) -> float:
    """Sum of u[item, j] over the items j above the item at this position."""
    total = 0.0
    for k in range(position):
        total += u[order[position], order[k]]
    return total


@kernel
def _best_move(
    u: FloatArray, rates: FloatArray, order: IntArray, start: int, sums: FloatArray
) -> tuple[float, int]:
    """Return the largest gain of moving the item at position `start`, and its new position."""
    item, most, end = order[start], 0.0, start
    gain, item_sum = 0.0, u[item, item] + sums[start]  # includes all items that would stand above it
    for k in range(start, len(order) - 1):  # behind the next item, then the one after it, ...
        other = order[k + 1]
        lead = u[other, other] + sums[k + 1] - u[other, item] - item_sum
        gain += (rates[k] - rates[k + 1]) * lead + rates[k + 1] * (u[item, other] - u[other, item])
        item_sum += u[item, other]
        if gain > most:
            most, end = gain, k + 1
    gain, item_sum = 0.0, u[item, item] + sums[start]
    for k in range(start - 1, -1, -1):
        other = order[k]
        item_sum -= u[item, other]
        lead = item_sum - u[other, other] - sums[k]
        gain += (rates[k] - rates[k + 1]) * lead + rates[k + 1] * (u[other, item] - u[item, other])
        if gain > most:
            most, end = gain, k
    return most, end


@kernel
def _move_item(u: FloatArray, order: IntArray, start: int, end: int, sums: FloatArray) -> None:
    """Move an item from position `start` to `end`; the items between them shift by one."""
    item, step = order[start], 1 if end > start else -1
    for k in range(start, end, step):
        other = order[k + step]
        order[k], sums[k] = other, sums[k + step] - step * u[other, item]
    order[end] = item
    sums[end] = _sum_above(u, order, end)

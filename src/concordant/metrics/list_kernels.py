"""Gains and the head of a list, shared by all metric kernels; importing this module imports numba.

A list is read through its *head*: the rows that can stand in the first k places under some order compatible
with the scores, best first. `strict` says that rows of equal score keep their order; otherwise a block of
equal scores stands for the mean over its orders. A score of -inf is "not in the ranking": never in the head.
"""

from __future__ import annotations

import math

import numpy as np

from concordant._base.segments import kernel
from concordant.metrics.convention import ABOVE, BINARY, LINEAR
from concordant.types import FloatArray, IntArray

# Plain loops throughout: numba takes seconds to compile np.sort, np.argsort, np.unique or a slice assignment.
LONG = 128  # from this length numpy's sort beats ours (35 against 38 ns per row; 16 against 47 at 256)


@kernel
def gain_of(grade: float, kind: int, parameter: float) -> float:
    """Gain of one grade; 2^y - 1 is exact for whole grades."""
    if kind == LINEAR:
        return grade
    if kind == BINARY:
        return 1.0 if grade >= parameter else 0.0
    if kind == ABOVE:
        return max(grade - parameter, 0.0)
    if grade < 62.0 and grade == math.floor(grade):
        return float((1 << int(grade)) - 1)
    return float(2.0**grade - 1.0)


@kernel
def sort_rows(values: FloatArray, order: IntArray, spare: IntArray) -> None:
    """Fill `order` with the rows by descending value, earlier rows first: insertion in runs, then merging."""
    n, run = len(values), 16
    for row in range(n):
        slot = row
        while slot % run > 0 and values[order[slot - 1]] < values[row]:
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = row
    while run < n:
        for slot in range(n):
            spare[slot] = order[slot]
        for start in range(0, n, 2 * run):
            middle, end = min(start + run, n), min(start + 2 * run, n)
            left, right = start, middle
            for slot in range(start, end):
                if right >= end or (left < middle and values[spare[left]] >= values[spare[right]]):
                    order[slot] = spare[left]
                    left += 1
                else:
                    order[slot] = spare[right]
                    right += 1
        run *= 2


@kernel
def head(
    scores: FloatArray,
    k: int,
    strict: bool,
    presorted: IntArray,
    order: IntArray,
    spare: IntArray,
    top: FloatArray,
) -> int:
    """Fill `order` with the head of the list, best first; return its size.

    A long list that must be sorted completely is already sorted: numpy does that faster.
    """
    n = len(scores)
    if k < n and k <= SELECT:
        size = _select_head(scores, k, strict, order, spare, top)
    elif n < LONG:
        sort_rows(scores, order, spare)
        size = n
    else:
        for position in range(n):
            order[position] = presorted[position]
        size = n
    while size > 0 and scores[order[size - 1]] == -np.inf:
        size -= 1
    return size


@kernel
def block_end(scores: FloatArray, order: IntArray, start: int, size: int, strict: bool) -> int:
    """Return the end of the block of equal scores that starts here."""
    end = start + 1
    if not strict:
        while end < size and scores[order[end]] == scores[order[start]]:
            end += 1
    return end


@kernel
def has_ties(scores: FloatArray, order: IntArray, size: int, k: int) -> bool:
    """True if the order of tied rows matters to the first k places of this head."""
    position, last = 1, min(size - 1, k)
    while position <= last and scores[order[position]] != scores[order[position - 1]]:
        position += 1
    return position <= last


@kernel
def highest(values: FloatArray) -> float:
    """Largest value, 0 if there is none."""
    top = 0.0
    for value in values:
        top = max(top, value)
    return top


@kernel
def scratch(offsets: IntArray, first: int, last: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Allocate two orders of the longest of these queries, and the values of a selection."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(SELECT, np.float64)


# The first k of a list without sorting it.

SELECT = 64  # up to this cutoff the head is selected; beyond it, the list is sorted
LANES = 16  # two registers of eight doubles
FEW = 12  # cutoffs up to this are selected through lanes
CROWD = 32  # candidates for the head up to which counting beats insertion


@kernel
def select(values: FloatArray, k: int, top: FloatArray, rows: IntArray) -> int:
    """Fill `top` and `rows` with the k largest values, descending, earlier rows first; return the count."""
    filled = 0
    for row in range(len(values)):
        value = values[row]
        if filled < k:
            slot = filled
            filled += 1
        elif value > top[k - 1]:
            slot = k - 1
        else:
            continue
        while slot > 0 and top[slot - 1] < value:
            top[slot] = top[slot - 1]
            rows[slot] = rows[slot - 1]
            slot -= 1
        top[slot] = value
        rows[slot] = row
    return filled


@kernel
def _find_bound(values: FloatArray, k: int, lanes: FloatArray) -> float:
    """Return a number near the k-th largest value that at least k values reach; k <= LANES.

    It is the k-th largest maximum over lanes, where lane j holds the values j, j + LANES, ...: one pass
    without branches, which the compiler vectorises.
    """
    n = len(values)
    n_full = n - n % LANES
    for lane in range(LANES):
        lanes[lane] = -np.inf
    for start in range(0, n_full, LANES):
        for lane in range(LANES):
            value = values[start + lane]
            lanes[lane] = max(lanes[lane], value)
    for lane in range(n - n_full):
        lanes[lane] = max(lanes[lane], values[n_full + lane])
    bound = -np.inf
    for lane in range(LANES):
        n_above = 0
        for other in range(LANES):
            n_above += lanes[other] >= lanes[lane]
        if n_above >= k:
            bound = max(bound, lanes[lane])
    return bound


@kernel
def _insert_head(scores: FloatArray, k: int, strict: bool, order: IntArray, top: FloatArray) -> int:
    """Head by insertion; if ties have no order, with all rows that tie at the end."""
    size = select(scores, k, top, order)
    cut = top[size - 1]
    if strict or cut == -np.inf:
        return size
    while size > 0 and top[size - 1] == cut:
        size -= 1
    for row in range(len(scores)):
        if scores[row] == cut:
            order[size] = row
            size += 1
    return size


@kernel
def _select_head(
    scores: FloatArray, k: int, strict: bool, order: IntArray, spare: IntArray, top: FloatArray
) -> int:
    """Head of a list longer than k, for small k; if ties have no order, with all rows that tie at the end.

    Few rows reach a bound just below the k-th score; counting gives their positions without branches
    (1.5 times as fast as insertion at k = 10).
    """
    if k > FEW:
        return _insert_head(scores, k, strict, order, top)
    bound, n_candidates = _find_bound(scores, k, top), 0
    for row in range(len(scores)):
        spare[n_candidates] = row
        n_candidates += scores[row] >= bound
    if n_candidates > CROWD:
        return _insert_head(scores, k, strict, order, top)
    for i in range(n_candidates):
        top[i] = scores[spare[i]]
    for i in range(n_candidates):
        position = 0
        for j in range(i):
            position += top[j] >= top[i]
        for j in range(i + 1, n_candidates):
            position += top[j] > top[i]
        order[position] = spare[i]
    size = k
    while not strict and size < n_candidates and scores[order[size]] == scores[order[k - 1]]:
        size += 1
    return size

"""Gains, and the head of a list: what every metric kernel starts from."""

from __future__ import annotations

import math

import numpy as np

from concordant._segments import kernel
from concordant.metrics.gains import ABOVE, BINARY, LINEAR
from concordant.metrics.kernels.selection import SELECT, select_head
from concordant.types import FloatArray, IntArray

__all__ = [
    "LONG",
    "block_end",
    "gain_of",
    "has_ties",
    "head",
    "highest",
    "scratch",
    "sort_rows",
]

# Plain loops throughout: numba takes seconds to compile np.sort, np.argsort, np.unique or a slice assignment.
LONG = 128  # from this length numpy's sort beats ours (35 against 38 ns per row; 16 against 47 at 256)


@kernel
def gain_of(grade: float, kind: int, parameter: float) -> float:
    """Give the gain of one grade; 2^y - 1 is exact for whole grades."""
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
    """Fill `order` with the rows by falling value, earlier rows first: insertion in runs, then merging."""
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
    """Fill `order` with the head of the list, best first; give its size.

    A long list that must be sorted whole comes sorted already: numpy does that faster.
    """
    n = len(scores)
    if k < n and k <= SELECT:
        size = select_head(scores, k, strict, order, spare, top)
    elif n < LONG:
        sort_rows(scores, order, spare)
        size = n
    else:
        for place in range(n):
            order[place] = presorted[place]
        size = n
    while size > 0 and scores[order[size - 1]] == -np.inf:
        size -= 1
    return size


@kernel
def block_end(scores: FloatArray, order: IntArray, start: int, size: int, strict: bool) -> int:
    """Where the block of equal scores that starts here ends."""
    end = start + 1
    if not strict:
        while end < size and scores[order[end]] == scores[order[start]]:
            end += 1
    return end


@kernel
def has_ties(scores: FloatArray, order: IntArray, size: int, k: int) -> bool:
    """Whether the order of tied rows matters to the first k places of this head."""
    place, last = 1, min(size - 1, k)
    while place <= last and scores[order[place]] != scores[order[place - 1]]:
        place += 1
    return place <= last


@kernel
def highest(values: FloatArray) -> float:
    """Largest value, 0 if there is none."""
    top = 0.0
    for value in values:
        top = max(top, value)
    return top


@kernel
def scratch(offsets: IntArray, first: int, last: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Room for two orders of the longest of these queries, and for the values of a selection."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(SELECT, np.float64)

"""Gains, and the head of a list: what every metric kernel starts from."""

from __future__ import annotations

import math

import numpy as np

from concordant._segments import kernel
from concordant.types import FloatArray, IntArray

__all__ = [
    "ABOVE",
    "BINARY",
    "EXP2",
    "LINEAR",
    "LONG",
    "SELECT",
    "block_end",
    "gain_of",
    "head",
    "scratch",
    "select_top",
    "sort_head",
]


LINEAR, EXP2, BINARY, ABOVE = 0, 1, 2, 3  # kinds of gain; the parameter is the threshold of the last two
SELECT = 64  # up to this cutoff, select the head by insertion; beyond it, sort the list
LONG = (
    128  # from this length numpy's sort beats a compiled one (35 against 37 ns per row; 16 against 46 at 256)
)


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
def select_top(values: FloatArray, k: int, top: FloatArray) -> int:
    """Fill `top` with the k largest values, descending; give how many there are."""
    filled = 0
    for value in values:
        if filled < k:
            slot = filled
            filled += 1
        elif value > top[k - 1]:
            slot = k - 1
        else:
            continue
        while slot > 0 and top[slot - 1] < value:
            top[slot] = top[slot - 1]
            slot -= 1
        top[slot] = value
    return filled


@kernel
def select_head(scores: FloatArray, k: int, order: IntArray, top: FloatArray) -> int:
    """Head of a list longer than k, for small k: rows above the k-th score, then all rows that equal it."""
    select_top(scores, k, top)
    cut, size = top[k - 1], 0
    for row in range(len(scores)):
        if scores[row] > cut:
            slot = size
            while slot > 0 and scores[order[slot - 1]] < scores[row]:
                order[slot] = order[slot - 1]
                slot -= 1
            order[slot] = row
            size += 1
    if cut == -np.inf:
        return size
    for row in range(len(scores)):
        if scores[row] == cut:
            order[size] = row
            size += 1
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
def sort_head(scores: FloatArray, presorted: IntArray, order: IntArray) -> int:
    """Sort all rows by score; give how many are in the ranking. A long list comes sorted but for its ties."""
    n = len(scores)
    if n < LONG:
        order[:n] = np.argsort(-scores, kind="mergesort")
    else:
        order[:n] = presorted
        sort_ties(scores, order[:n])
    size = n
    while size > 0 and scores[order[size - 1]] == -np.inf:
        size -= 1
    return size


@kernel
def sort_ties(scores: FloatArray, order: IntArray) -> None:
    """Put rows of equal score into row order."""
    start = 0
    while start < len(order):
        end = block_end(scores, order, start, len(order), False)
        if end - start > 1:
            order[start:end] = np.sort(order[start:end])
        start = end


@kernel
def head(scores: FloatArray, k: int, presorted: IntArray, order: IntArray, top: FloatArray) -> int:
    """Fill `order` with the head of the list, best first, rows of equal score in row order; give its size."""
    if k < len(scores) and k <= SELECT:
        return select_head(scores, k, order, top)
    return sort_head(scores, presorted, order)


@kernel
def scratch(offsets: IntArray, first: int, last: int, k: int) -> tuple[IntArray, FloatArray]:
    """Room for the order of the longest of these queries, and for the values of a selection."""
    longest = np.max(offsets[first + 1 : last + 1] - offsets[first:last])
    return np.empty(longest, np.int64), np.empty(min(k, SELECT), np.float64)

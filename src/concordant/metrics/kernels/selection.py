"""The first k of a list without sorting it."""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.types import FloatArray, IntArray

__all__ = ["SELECT", "select", "select_head"]

SELECT = 64  # up to this cutoff the head is selected; beyond it, the list is sorted
LANES = 16  # two registers of eight doubles
FEW = 12  # cutoffs up to this are selected through lanes
CROWD = 32  # candidates for the head up to which counting beats insertion


@kernel
def select(values: FloatArray, k: int, top: FloatArray, rows: IntArray) -> int:
    """Fill `top` and `rows` with the k largest values, descending, earlier rows first; give how many."""
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
def reached(values: FloatArray, k: int, lanes: FloatArray) -> float:
    """Give a number near the k-th largest value that at least k values reach; k <= LANES.

    It is the k-th largest maximum over lanes, where lane j holds the values j, j + LANES, ...: one pass
    without branches, which the compiler vectorises.
    """
    n = len(values)
    whole = n - n % LANES
    for lane in range(LANES):
        lanes[lane] = -np.inf
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            value = values[start + lane]
            lanes[lane] = max(lanes[lane], value)
    for lane in range(n - whole):
        lanes[lane] = max(lanes[lane], values[whole + lane])
    bound = -np.inf
    for lane in range(LANES):
        reach = 0
        for other in range(LANES):
            reach += lanes[other] >= lanes[lane]
        if reach >= k:
            bound = max(bound, lanes[lane])
    return bound


@kernel
def insert_head(scores: FloatArray, k: int, strict: bool, order: IntArray, top: FloatArray) -> int:
    """Head by insertion; where ties have no order, with all rows that tie at the end."""
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
def select_head(
    scores: FloatArray, k: int, strict: bool, order: IntArray, spare: IntArray, top: FloatArray
) -> int:
    """Head of a list longer than k, for small k; where ties have no order, with all that tie at the end.

    Few rows reach a bound just below the k-th score; counting gives their places without branches
    (1.5 times as fast as insertion at k = 10).
    """
    if k > FEW:
        return insert_head(scores, k, strict, order, top)
    bound, found = reached(scores, k, top), 0
    for row in range(len(scores)):
        spare[found] = row
        found += scores[row] >= bound
    if found > CROWD:
        return insert_head(scores, k, strict, order, top)
    for i in range(found):
        top[i] = scores[spare[i]]
    for i in range(found):
        place = 0
        for j in range(i):
            place += top[j] >= top[i]
        for j in range(i + 1, found):
            place += top[j] > top[i]
        order[place] = spare[i]
    size = k
    while not strict and size < found and scores[order[size]] == scores[order[k - 1]]:
        size += 1
    return size

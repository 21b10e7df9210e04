"""Sums of gain times discount, and their best value."""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.metrics.kernels.head import SELECT, block_end, gain_of, head, scratch, select_top
from concordant.types import FloatArray, IntArray

__all__ = ["additive_chunk"]


@kernel
def additive(
    scores: FloatArray,
    grades: FloatArray,
    order: IntArray,
    size: int,
    k: int,
    strict: bool,
    kind: int,
    parameter: float,
    discounts: FloatArray,
    cumulated: FloatArray,
) -> float:
    """Sum over the first k places of gain times discount; a tie block shares its mean discount."""
    total, start = 0.0, 0
    while start < min(size, k):
        end = block_end(scores, order, start, size, strict)
        mass = 0.0
        for place in range(start, end):
            mass += gain_of(grades[order[place]], kind, parameter)
        if end - start == 1:
            total += mass * discounts[start]
        else:
            total += mass * (cumulated[min(end, k)] - cumulated[start]) / (end - start)
        start = end
    return total


@kernel
def ideal(
    grades: FloatArray, k: int, kind: int, parameter: float, discounts: FloatArray, top: FloatArray
) -> float:
    """Best additive value: the k highest grades in descending order; gains rise with the grade."""
    if k < len(grades) and k <= SELECT:
        best, filled = top, select_top(grades, k, top)
    else:
        best, filled = np.sort(grades)[::-1].copy(), min(k, len(grades))
    total = 0.0
    for place in range(filled):
        total += gain_of(best[place], kind, parameter) * discounts[place]
    return total


@kernel
def additive_chunk(
    scores: FloatArray,
    grades: FloatArray,
    offsets: IntArray,
    presorted: IntArray,
    first: int,
    last: int,
    k: int,
    values: FloatArray,
    best: FloatArray,
    strict: bool,
    kind: int,
    parameter: float,
    discounts: FloatArray,
    cumulated: FloatArray,
    normalise: bool,
) -> None:
    """Fill `values`, and `best` with the best value (normalise) or the highest gain, of these queries."""
    order, top = scratch(offsets, first, last, k)
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        s, y = scores[begin:end], grades[begin:end]
        values[q], best[q] = 0.0, 0.0
        if end == begin:
            continue
        size = head(s, k, presorted[begin:end], order, top)
        values[q] = additive(s, y, order, size, k, strict, kind, parameter, discounts, cumulated)
        if normalise:
            best[q] = ideal(y, k, kind, parameter, discounts, top)
        else:
            best[q] = gain_of(y.max(), kind, parameter)

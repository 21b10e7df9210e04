"""Sums of gain times discount, and their best value."""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.metrics.kernels.head import (
    block_end,
    gain_of,
    has_ties,
    head,
    highest,
    scratch,
    sort_rows,
)
from concordant.metrics.kernels.selection import SELECT, select
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["additive_chunk"]

WHOLE_GRADES = 32  # whole grades below this are counted rather than sorted


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
def count_grades(grades: FloatArray, counts: IntArray) -> bool:
    """Fill the histogram of whole grades below its length; False where a grade is not one."""
    counts[:] = 0
    for grade in grades:
        level = int(grade)
        if level >= len(counts) or level != grade:
            return False
        counts[level] += 1
    return True


@kernel
def ideal_of_counts(counts: IntArray, k: int, kind: int, parameter: float, discounts: FloatArray) -> float:
    """Best additive value of a histogram of grades: the highest first."""
    total, start = 0.0, 0
    for level in range(len(counts) - 1, -1, -1):
        end = min(start + counts[level], k)
        for place in range(start, end):
            total += gain_of(float(level), kind, parameter) * discounts[place]
        start = end
    return total


@kernel
def ideal(
    grades: FloatArray,
    k: int,
    kind: int,
    parameter: float,
    discounts: FloatArray,
    order: IntArray,
    spare: IntArray,
    top: FloatArray,
) -> float:
    """Best additive value: the k highest grades in descending order; gains rise with the grade."""
    if k < len(grades) and k <= SELECT:
        filled = select(grades, k, top, order)
    else:
        sort_rows(grades, order, spare)
        filled = min(k, len(grades))
    total = 0.0
    for place in range(filled):
        total += gain_of(grades[order[place]], kind, parameter) * discounts[place]
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
    tied: BoolArray,
    strict: bool,
    kind: int,
    parameter: float,
    discounts: FloatArray,
    cumulated: FloatArray,
    normalise: bool,
) -> None:
    """Fill `values`, and `best` with the best value (normalise) or the highest gain, of these queries."""
    order, spare, top = scratch(offsets, first, last)
    counts = np.empty(WHOLE_GRADES, np.int64)
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        s, y = scores[begin:end], grades[begin:end]
        values[q], best[q], tied[q] = 0.0, 0.0, False
        if end == begin:
            continue
        size = head(s, k, strict, presorted[begin:end], order, spare, top)
        tied[q] = has_ties(s, order, size, k)
        values[q] = additive(s, y, order, size, k, strict, kind, parameter, discounts, cumulated)
        if not normalise:
            best[q] = gain_of(highest(y), kind, parameter)
        elif count_grades(y, counts):
            best[q] = ideal_of_counts(counts, k, kind, parameter, discounts)
        else:
            best[q] = ideal(y, k, kind, parameter, discounts, order, spare, top)

"""The cascade user: stops at an item with a probability that its grade gives."""

from __future__ import annotations

import math

import numpy as np

from concordant._segments import kernel
from concordant.metrics.kernels.head import block_end, gain_of, has_ties, head, highest, scratch
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["cascade_chunk"]


NEGLIGIBLE = -41.5  # log(1e-18): a probability below this cannot be seen in the sum


@kernel
def passing_means(passing: FloatArray, depth: int, means: FloatArray) -> None:
    """Fill `means[j]` with the mean over j-subsets of the product of `passing` (elementary symmetric mean).

    One item at a time; every term is non-negative, so nothing cancels.
    """
    for j in range(1, depth + 1):
        means[j] = 0.0
    means[0] = 1.0
    for t in range(1, len(passing) + 1):
        for j in range(min(t, depth), 0, -1):
            means[j] = means[j] * (t - j) / t + means[j - 1] * passing[t - 1] * j / t


@kernel
def cascade_block(passing: FloatArray, block: int, start: int, slots: int) -> float:
    """Expected sum of (probability of stopping at a place)/place, over the first places of a tie block.

    `passing` holds the probability of passing by each item that can stop the user at all; the block's other
    items never do. Walks the places with the distribution of how many stoppers came before.
    """
    stoppers, depth = len(passing), min(len(passing), slots)
    slowest = highest(passing)
    if slowest < 1.0:
        depth = 1 if slowest <= 0.0 else min(depth, int(NEGLIGIBLE / math.log(slowest)) + 1)
    means, before = np.empty(depth + 2), np.zeros(depth + 2)
    means[depth + 1] = 0.0
    passing_means(passing, depth, means)
    before[0], total = 1.0, 0.0
    for place in range(1, slots + 1):
        left = block - place + 1.0
        stop = 0.0
        for j in range(min(depth, place), -1, -1):
            chance = (stoppers - j) / left
            if j < depth:
                stop += before[j] * chance * (means[j] - means[j + 1])
            arriving = before[j - 1] * (stoppers - j + 1) / left if j > 0 else 0.0
            before[j] = before[j] * (1.0 - chance) + arriving
        total += stop / (start + place)
    return total


@kernel
def cascade(
    scores: FloatArray,
    grades: FloatArray,
    order: IntArray,
    size: int,
    k: int,
    strict: bool,
    kind: int,
    parameter: float,
    scale: float,
    passing: FloatArray,
) -> float:
    """Expected reciprocal of the place where the user stops, within k; an item stops with gain * scale."""
    total, reach, start = 0.0, 1.0, 0
    while start < min(size, k) and reach > 0.0:
        end = block_end(scores, order, start, size, strict)
        stoppers, product = 0, 1.0
        for place in range(start, end):
            stop = gain_of(grades[order[place]], kind, parameter) * scale
            if stop > 0.0:
                passing[stoppers] = 1.0 - stop
                product *= 1.0 - stop
                stoppers += 1
        if stoppers > 0 and end - start == 1:
            total += reach * (1.0 - passing[0]) / (start + 1)
        elif stoppers > 0:
            total += reach * cascade_block(passing[:stoppers], end - start, start, min(end, k) - start)
        reach *= product
        start = end
    return total


@kernel
def cascade_chunk(
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
    scale: float,
) -> None:
    """Fill the cascade value and the highest gain of these queries."""
    order, spare, top = scratch(offsets, first, last)
    passing = np.empty(len(order))
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        s, y = scores[begin:end], grades[begin:end]
        values[q], best[q], tied[q] = 0.0, 0.0, False
        if end > begin:
            best[q] = gain_of(highest(y), kind, parameter)
        if best[q] > 0.0:
            size = head(s, k, strict, presorted[begin:end], order, spare, top)
            tied[q] = has_ties(s, order, size, k)
            values[q] = cascade(s, y, order, size, k, strict, kind, parameter, scale, passing)

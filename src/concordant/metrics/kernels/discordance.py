"""Pairs of grades that the scores put the wrong way round."""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.metrics.kernels.head import block_end, gain_of, scratch, sort_head
from concordant.types import FloatArray, IntArray

__all__ = ["discordance_chunk"]


@kernel
def lower(counts: FloatArray, sums: FloatArray, level: int, gain: float, weighted: bool) -> float:
    """Weight of the items seen so far whose level is below this one (Fenwick tree query)."""
    count, mass = 0.0, 0.0
    while level > 0:
        count += counts[level]
        mass += sums[level]
        level -= level & -level
    return count * gain - mass if weighted else count


@kernel
def discordance(
    scores: FloatArray, gains: FloatArray, order: IntArray, strict: bool, weighted: bool
) -> tuple[float, float]:
    """Weight of the pairs of unequal gain that stand the wrong way round (ties: half), and of all pairs.

    A pair weighs 1, or the difference of its gains. One sort and a Fenwick tree over the levels of gain.
    """
    levels = np.unique(gains)
    rank = np.searchsorted(levels, gains)
    counts, sums = np.zeros(len(levels) + 1), np.zeros(len(levels) + 1)
    wrong, start = 0.0, 0
    while start < len(order):
        end = block_end(scores, order, start, len(order), strict)
        for place in range(start, end):
            row = order[place]
            wrong += 0.5 * lower(counts, sums, rank[row], gains[row], weighted)
        for place in range(start, end):
            slot = rank[order[place]] + 1
            while slot < len(counts):
                counts[slot] += 1.0
                sums[slot] += gains[order[place]]
                slot += slot & -slot
        for place in range(start, end):
            row = order[place]
            wrong += 0.5 * lower(counts, sums, rank[row], gains[row], weighted)
        start = end
    pairs = 0.0
    for row in range(len(gains)):
        pairs += lower(counts, sums, rank[row], gains[row], weighted)
    return wrong, pairs


@kernel
def discordance_chunk(
    scores: FloatArray,
    grades: FloatArray,
    offsets: IntArray,
    presorted: IntArray,
    first: int,
    last: int,
    k: int,
    values: FloatArray,
    pairs: FloatArray,
    strict: bool,
    kind: int,
    parameter: float,
    weighted: bool,
) -> None:
    """Fill the discordance and the weight of all pairs of these queries."""
    order, _ = scratch(offsets, first, last, k)
    gains = np.empty(len(order))
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        n = end - begin
        for i in range(n):
            gains[i] = gain_of(grades[begin + i], kind, parameter)
        sort_head(scores[begin:end], presorted[begin:end], order)
        values[q], pairs[q] = discordance(scores[begin:end], gains[:n], order[:n], strict, weighted)

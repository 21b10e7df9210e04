"""Pairs of grades that the scores put the wrong way round."""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.metrics.kernels.head import block_end, gain_of, has_ties, head, scratch, sort_rows
from concordant.types import BoolArray, FloatArray, IntArray

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
def rank_levels(gains: FloatArray, order: IntArray, spare: IntArray, levels: IntArray) -> int:
    """Fill `levels` with the rank of each gain among the different ones, 0 lowest; give how many."""
    sort_rows(gains, order, spare)
    level = 0
    for place in range(len(gains) - 1, -1, -1):
        if place + 1 < len(gains) and gains[order[place]] != gains[order[place + 1]]:
            level += 1
        levels[order[place]] = level
    return level + 1


@kernel
def insert(counts: FloatArray, sums: FloatArray, level: int, gain: float) -> None:
    """Count one more item of this level (Fenwick tree update)."""
    slot = level + 1
    while slot < len(counts):
        counts[slot] += 1.0
        sums[slot] += gain
        slot += slot & -slot


@kernel
def discordance(
    scores: FloatArray,
    gains: FloatArray,
    order: IntArray,
    levels: IntArray,
    n_levels: int,
    strict: bool,
    weighted: bool,
) -> tuple[float, float]:
    """Weight of the pairs of unequal gain that stand the wrong way round (ties: half), and of all pairs.

    A pair weighs 1, or the difference of its gains. One sort and a Fenwick tree over the levels of gain.
    """
    counts, sums = np.zeros(n_levels + 1), np.zeros(n_levels + 1)
    wrong, start = 0.0, 0
    while start < len(order):
        end = block_end(scores, order, start, len(order), strict)
        for place in range(start, end):
            row = order[place]
            wrong += 0.5 * lower(counts, sums, levels[row], gains[row], weighted)
        for place in range(start, end):
            insert(counts, sums, levels[order[place]], gains[order[place]])
        for place in range(start, end):
            row = order[place]
            wrong += 0.5 * lower(counts, sums, levels[row], gains[row], weighted)
        start = end
    pairs = 0.0
    for row in range(len(gains)):
        pairs += lower(counts, sums, levels[row], gains[row], weighted)
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
    tied: BoolArray,
    strict: bool,
    kind: int,
    parameter: float,
    weighted: bool,
) -> None:
    """Fill the discordance and the weight of all pairs of these queries; k is the longest list."""
    order, spare, top = scratch(offsets, first, last)
    levels, gains = np.empty(len(order), np.int64), np.empty(len(order))
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        n = end - begin
        lowest = np.inf
        for i in range(n):
            gains[i] = gain_of(grades[begin + i], kind, parameter)
            lowest = min(lowest, gains[i])
        for i in range(n):
            gains[i] -= lowest  # differences count: sums of what all have in common would cancel
        n_levels = rank_levels(gains[:n], order, spare, levels)
        head(scores[begin:end], k, strict, presorted[begin:end], order, spare, top)
        tied[q] = has_ties(scores[begin:end], order, n, n)
        values[q], pairs[q] = discordance(
            scores[begin:end], gains[:n], order[:n], levels, n_levels, strict, weighted
        )

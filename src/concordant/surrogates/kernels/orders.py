"""Listwise hinges: what an order loses, how it leans away from the labels, and the worst order of a list."""

from __future__ import annotations

import math

import numpy as np

from concordant._combinatorics import assign, interleave
from concordant._segments import kernel
from concordant.surrogates.kernels.long import Space
from concordant.surrogates.kernels.sort import mend, ranked
from concordant.types import FloatArray, IntArray

__all__ = ["ADDITIVE", "PAIRS", "PRECISION", "centred", "lean", "lost", "worst_chunk"]

ADDITIVE, PRECISION, PAIRS = 0, 1, 2  # kinds of loss
SHORT = 40  # items that insertion sorts faster than counting


@kernel
def lost(order: IntArray, gains: FloatArray, codes: IntArray, kind: int, discounts: FloatArray) -> float:
    """What the order loses, but for the best order's sum where the loss is additive."""
    value, found, n_relevant = 0.0, 0, 0
    seen, worth = np.zeros(len(order), np.int64), np.zeros(len(order))
    for place in range(len(order)):
        item = order[place]
        if kind == ADDITIVE:
            value -= gains[item] * discounts[place]
        elif kind == PRECISION:
            found += int(gains[item] > 0.0)
            n_relevant = found
            value += found / (place + 1.0) if gains[item] > 0.0 else 0.0
        else:
            for level in range(codes[item]):
                value += seen[level] * (gains[item] - worth[level])
            seen[codes[item]] += 1
            worth[codes[item]] = gains[item]
    if kind == PRECISION:
        return 1.0 - value / n_relevant if n_relevant else 0.0
    return value


@kernel
def lean(order: IntArray, codes: IntArray, sizes: IntArray, gold: FloatArray, change: FloatArray) -> None:
    """Fill each item's coefficient in F(order) - F(gold), over pairs of different labels, times n(n - 1)/2.

    `sizes` counts the items of each label, `gold` is (items of lower labels) - (items of higher labels).
    """
    seen = np.zeros(len(order), np.int64)
    for place in range(len(order)):
        item = order[place]
        level = codes[item]
        higher = place - seen[level]  # items of other labels above it
        seen[level] += 1
        change[item] = len(order) - sizes[level] - 2 * higher - gold[item]


@kernel
def centred(scores: FloatArray, change: FloatArray, scale: float) -> float:
    """Sum of scores * scale * change, which add up to 0: from the first score on, so that levels cancel."""
    total = 0.0
    for i in range(len(scores)):
        total += (scores[i] - scores[0]) * (scale * change[i])
    return total


@kernel
def comparable(scores: FloatArray) -> bool:
    """Whether the scores and their differences are numbers."""
    low, high, finite = math.inf, -math.inf, True
    for i in range(len(scores)):
        low, high = min(low, scores[i]), max(high, scores[i])
        finite &= math.isfinite(scores[i])
    return finite and high - low < math.inf


@kernel
def level_sizes(codes: IntArray) -> IntArray:
    """Items of each label."""
    sizes = np.zeros(len(codes), np.int64)
    for i in range(len(codes)):
        sizes[codes[i]] += 1
    return sizes


@kernel
def most_lost(
    scores: FloatArray,
    gains: FloatArray,
    kind: int,
    discounts: FloatArray,
    harmonic: FloatArray,
    space: Space,
    order: IntArray,
) -> None:
    """Fill the order with the largest loss + F: items of equal label stand by score."""
    n, by_score = len(scores), space.order[: len(scores)]
    if n > SHORT:
        ranked(scores, by_score, space.counts, space.tally)
    else:
        for i in range(n):
            by_score[i] = i
        mend(by_score, scores, n * n)
    rate = 4.0 / (n * (n - 1.0))
    if kind == ADDITIVE:
        level, slopes, worth = scores[by_score[0]], space.places[0, :n], space.places[1, :n]
        for place in range(n):
            slopes[place] = rate * (scores[by_score[place]] - level)
            worth[place] = gains[by_score[place]]
        assign(worth, slopes, discounts, order)
        for place in range(n):
            order[place] = by_score[order[place]]
    else:
        interleaved(scores, gains, by_score, harmonic, rate, space, order)


@kernel
def interleaved(
    scores: FloatArray,
    gains: FloatArray,
    by_score: IntArray,
    harmonic: FloatArray,
    rate: float,
    space: Space,
    order: IntArray,
) -> None:
    """Fill the order with the largest 1 - AP + F."""
    n, level, n_high, n_low = len(scores), scores[by_score[0]], 0, 0
    highs, lows, above = space.counts[0, :n], space.counts[1, :n], space.counts[2, :n]
    high, low = space.places[0, :n], space.places[1, :n]
    for place in range(n):
        item = by_score[place]
        if gains[item] > 0.0:
            highs[n_high], high[n_high], n_high = item, scores[item] - level, n_high + 1
        else:
            lows[n_low], low[n_low], n_low = item, scores[item] - level, n_low + 1
    interleave(high[:n_high], low[:n_low], harmonic, rate, above)
    i, place = 0, 0
    for j in range(n_low):
        while i < above[j]:
            order[place], i, place = highs[i], i + 1, place + 1
        order[place], place = lows[j], place + 1
    while i < n_high:
        order[place], i, place = highs[i], i + 1, place + 1


@kernel
def worst_chunk(
    scores: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    codes: IntArray,
    gold: FloatArray,
    best: FloatArray,
    kind: int,
    discounts: FloatArray,
    harmonic: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    space: Space,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Largest loss - [F(gold) - F(order)] over the orders of each query, and its slope."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        n = b - a
        values[q], grad[a:b] = 0.0, 0.0
        sizes = level_sizes(codes[a:b])
        if n == 0 or sizes[0] == n:  # one label: every order is right
            continue
        if not comparable(scores[a:b]):
            values[q], grad[a:b] = math.nan, math.nan
            continue
        order = np.empty(n, np.int64)
        most_lost(scores[a:b], gains[a:b], kind, discounts, harmonic, space, order)
        lean(order, codes[a:b], sizes, gold[a:b], grad[a:b])
        scale = 2.0 / (n * (n - 1.0))
        value = best[q] + lost(order, gains[a:b], codes[a:b], kind, discounts)
        value += centred(scores[a:b], grad[a:b], scale)
        values[q] = weights[q] * max(value, 0.0)
        for i in range(a, b):
            grad[i] *= scale * weights[q]

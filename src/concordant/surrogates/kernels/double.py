"""Short lists: every pair in a vectorised double loop, without n x n memory.

A pair (i, j), i the better, weighs `weights[i]` (all pairs), or `weights[i] * min(levels[i] - levels[j],
top)` where that is positive (graded pairs). Each loop sees a pair once, and both its directions. The margins
are in separate loops: a choice inside the loop would keep it from being vectorised.
"""

from __future__ import annotations

import math

from concordant._segments import vector_kernel
from concordant.types import FloatArray

__all__ = ["all_clip", "all_logistic", "graded_clip", "graded_logistic"]

WIDEST = 300.0  # exp(score - highest) must stay a normal double, and so must products of two, and inverses


@vector_kernel
def all_clip(
    scores: FloatArray,
    weights: FloatArray,
    edge: float,
    width: float,
    scale: float,
    grad: FloatArray,
) -> float:
    """Sum over i, j of weights[i] * phi(scores[i] - scores[j]); phi as in `Margin`."""
    total = 0.0
    for i in range(len(scores)):
        score, weight = scores[i], weights[i]
        # An item against itself: a constant, part of the definition.
        value, own = 0.5 * weight * min(edge, width) * (2.0 * edge - min(edge, width)), 0.0
        for j in range(i):
            ahead, other = score - scores[j], weights[j]
            d = max(edge - ahead, 0.0)
            c = min(d, width)
            e = max(edge + ahead, 0.0)
            b = min(e, width)
            value += weight * c * (d - 0.5 * c) + other * b * (e - 0.5 * b)
            push = weight * c - other * b
            own += push
            grad[j] += push
        total += value
        grad[i] = -own
    for i in range(len(scores)):
        grad[i] *= 2.0 * scale
    return 2.0 * scale * total


@vector_kernel
def graded_clip(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    edge: float,
    width: float,
    scale: float,
    grad: FloatArray,
) -> float:
    """Sum over levels[i] > levels[j] of the pair's weight times phi(scores[i] - scores[j])."""
    total = 0.0
    for i in range(len(scores)):
        score, weight, level = scores[i], weights[i], levels[i]
        value, own = 0.0, 0.0
        for j in range(i):
            gap = level - levels[j]
            sign = 1.0 if gap > 0.0 else -1.0
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            d = max(edge - sign * (score - scores[j]), 0.0)
            c = min(d, width)
            value += pair * c * (d - 0.5 * c)
            push = sign * pair * c
            own += push
            grad[j] += push
        total += value
        grad[i] = -own
    for i in range(len(scores)):
        grad[i] *= 2.0 * scale
    return 2.0 * scale * total


@vector_kernel
def log1p_quotient(low: float, high: float) -> float:
    """log(1 + low/high) for 0 <= low <= high: 2 artanh(low / (low + 2 high)) by its series, up to (1/3)^31.

    A call of log1p would keep the loop from being vectorised.
    """
    x = low / (low + 2.0 * high)
    y = x * x
    series = 1.0 / 31.0
    series = series * y + 1.0 / 29.0
    series = series * y + 1.0 / 27.0
    series = series * y + 1.0 / 25.0
    series = series * y + 1.0 / 23.0
    series = series * y + 1.0 / 21.0
    series = series * y + 1.0 / 19.0
    series = series * y + 1.0 / 17.0
    series = series * y + 1.0 / 15.0
    series = series * y + 1.0 / 13.0
    series = series * y + 1.0 / 11.0
    series = series * y + 1.0 / 9.0
    series = series * y + 1.0 / 7.0
    series = series * y + 1.0 / 5.0
    series = series * y + 1.0 / 3.0
    return 2.0 * x * (series * y + 1.0)


@vector_kernel
def exponentials(scores: FloatArray, powers: FloatArray) -> bool:
    """Fill powers with exp(score - highest); False where scores lie too far apart for quotients of them."""
    high, low = -math.inf, math.inf
    for i in range(len(scores)):
        high, low = max(high, scores[i]), min(low, scores[i])
    for i in range(len(scores)):
        powers[i] = math.exp(scores[i] - high)
    return high - low < WIDEST


@vector_kernel
def all_logistic(scores: FloatArray, weights: FloatArray, powers: FloatArray, grad: FloatArray) -> float:
    """Sum over i, j of weights[i] * log(1 + exp(scores[j] - scores[i])); `powers` from `exponentials`."""
    total = 0.0
    for i in range(len(scores)):
        score, weight, power = scores[i], weights[i], powers[i]
        value, own = weight * math.log(2.0), 0.0
        for j in range(i):
            ahead, other, beside = score - scores[j], weights[j], powers[j]
            push = (weight * beside - other * power) / (power + beside)
            own += push
            grad[j] += push
            rest = log1p_quotient(min(power, beside), max(power, beside))
            value += weight * max(-ahead, 0.0) + other * max(ahead, 0.0) + (weight + other) * rest
        total += value
        grad[i] = -own
    return total


@vector_kernel
def graded_logistic(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    powers: FloatArray,
    grad: FloatArray,
) -> float:
    """Sum over levels[i] > levels[j] of the pair's weight times log(1 + exp(scores[j] - scores[i]))."""
    total = 0.0
    for i in range(len(scores)):
        score, weight, level, power = scores[i], weights[i], levels[i], powers[i]
        value, own = 0.0, 0.0
        for j in range(i):
            gap, beside = level - levels[j], powers[j]
            sign = 1.0 if gap > 0.0 else -1.0
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            push = sign * pair * (beside if gap > 0.0 else power) / (power + beside)
            own += push
            grad[j] += push
            rest = log1p_quotient(min(power, beside), max(power, beside))
            value += pair * (max(-sign * (score - scores[j]), 0.0) + rest)
        total += value
        grad[i] = -own
    return total

"""Pairwise losses of short lists: every pair in a vectorised double loop, without n x n memory.

A pair (i, j), i the better, has weight `weights[i]` (all pairs), or `weights[i] * min(levels[i] - levels[j],
top)` where that is positive (graded pairs). Each loop visits a pair once, for both directions. The margins
have separate loops: a branch inside the loop would prevent vectorisation. Whether this or `long_pair_kernels`
is faster depends on the length of the list.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from concordant._base.segments import kernel, vector_kernel
from concordant.surrogates.surrogate import Chunk
from concordant.types import FloatArray

Pairs: TypeAlias = tuple[FloatArray, FloatArray, float, bool]
"""Weights, levels, the most that a difference of levels counts, and True if pairs are graded."""
Clip: TypeAlias = tuple[float, float, float]
"""Edge, width and scale of a margin with quadratic pieces, as in `Margin`."""

# Logistic margin with scores so far apart that quotients of exponentials overflow.


@kernel
def _pair_weights(
    weights: FloatArray, levels: FloatArray, top: float, graded: bool, i: int, j: int
) -> tuple[float, float]:
    """Return the weights of "i above j" and "j above i"."""
    if not graded:
        return weights[i], weights[j]
    gap = levels[i] - levels[j]
    return weights[i] * min(max(gap, 0.0), top), weights[j] * min(max(-gap, 0.0), top)


@kernel
def _logistic_far(scores: FloatArray, pairs: Pairs, grad: FloatArray) -> float:
    """Sum over pairs of weight * log(1 + exp(-t)), with one exponential per pair."""
    (weights, levels, top, graded), total = pairs, 0.0
    for i in range(len(scores)):
        total_push, value = 0.0, 0.0 if graded else weights[i] * math.log(2.0)
        for j in range(i):
            upper, lower = _pair_weights(weights, levels, top, graded, i, j)
            ahead = scores[i] - scores[j]
            power = math.exp(-abs(ahead))
            behind = (power if ahead > 0.0 else 1.0) / (1.0 + power)  # the logistic function of -ahead
            push = upper * behind - lower * (1.0 if ahead > 0.0 else power) / (1.0 + power)
            value += upper * max(-ahead, 0.0) + lower * max(ahead, 0.0) + (upper + lower) * math.log1p(power)
            total_push += push
            grad[j] += push
        total += value
        grad[i] = -total_push
    return total


@kernel
def _logistic_far_product(scores: FloatArray, pairs: Pairs, vector: FloatArray, product: FloatArray) -> None:
    """Hessian of `_logistic_far` times the vector."""
    weights, levels, top, graded = pairs
    for i in range(len(scores)):
        total_pull = 0.0
        for j in range(i):
            upper, lower = _pair_weights(weights, levels, top, graded, i, j)
            power = math.exp(-abs(scores[i] - scores[j]))
            pull = (upper + lower) * power / (1.0 + power) ** 2 * (vector[i] - vector[j])
            total_pull += pull
            product[j] -= pull
        product[i] = total_pull


WIDEST = 300.0  # exp(score - highest) must stay a normal double, and so must products of two, and inverses


@vector_kernel
def all_clip(scores: FloatArray, weights: FloatArray, clip: Clip, grad: FloatArray) -> float:
    """Sum over i, j of weights[i] * phi(scores[i] - scores[j]); phi as in `Margin`."""
    (edge, width, scale), total = clip, 0.0
    for i in range(len(scores)):
        score, weight = scores[i], weights[i]
        # The pair of an item with itself: a constant, part of the definition.
        value, total_push = 0.5 * weight * min(edge, width) * (2.0 * edge - min(edge, width)), 0.0
        for j in range(i):
            ahead, other = score - scores[j], weights[j]
            d = max(edge - ahead, 0.0)
            c = min(d, width)
            e = max(edge + ahead, 0.0)
            b = min(e, width)
            value += weight * c * (d - 0.5 * c) + other * b * (e - 0.5 * b)
            push = weight * c - other * b
            total_push += push
            grad[j] += push
        total += value
        grad[i] = -total_push
    for i in range(len(scores)):
        grad[i] *= 2.0 * scale
    return 2.0 * scale * total


@vector_kernel
def _graded_clip(scores: FloatArray, pairs: Pairs, clip: Clip, grad: FloatArray) -> float:
    """Sum over levels[i] > levels[j] of the pair's weight times phi(scores[i] - scores[j])."""
    (weights, levels, top, _), (edge, width, scale), total = pairs, clip, 0.0
    for i in range(len(scores)):
        score, weight, level = scores[i], weights[i], levels[i]
        value, total_push = 0.0, 0.0
        for j in range(i):
            gap = level - levels[j]
            sign = 1.0 if gap > 0.0 else -1.0
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            d = max(edge - sign * (score - scores[j]), 0.0)
            c = min(d, width)
            value += pair * c * (d - 0.5 * c)
            push = sign * pair * c
            total_push += push
            grad[j] += push
        total += value
        grad[i] = -total_push
    for i in range(len(scores)):
        grad[i] *= 2.0 * scale
    return 2.0 * scale * total


@vector_kernel
def _log1p_quotient(low: float, high: float) -> float:
    """Return log(1 + low/high), 0 <= low <= high: the series of 2 artanh(low / (low + 2 high)) to (1/3)^31.

    A call of log1p would prevent vectorisation of the loop.
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
    """Fill powers with exp(score - highest); False if scores are too far apart for quotients of them."""
    high, low = -math.inf, math.inf
    for i in range(len(scores)):
        high, low = max(high, scores[i]), min(low, scores[i])
    for i in range(len(scores)):
        powers[i] = math.exp(scores[i] - high)
    return high - low < WIDEST


@vector_kernel
def _all_logistic(scores: FloatArray, weights: FloatArray, powers: FloatArray, grad: FloatArray) -> float:
    """Sum over i, j of weights[i] * log(1 + exp(scores[j] - scores[i])); `powers` from `exponentials`."""
    total = 0.0
    for i in range(len(scores)):
        score, weight, power = scores[i], weights[i], powers[i]
        value, total_push = weight * math.log(2.0), 0.0
        for j in range(i):
            ahead, other, beside = score - scores[j], weights[j], powers[j]
            push = (weight * beside - other * power) / (power + beside)
            total_push += push
            grad[j] += push
            rest = _log1p_quotient(min(power, beside), max(power, beside))
            value += weight * max(-ahead, 0.0) + other * max(ahead, 0.0) + (weight + other) * rest
        total += value
        grad[i] = -total_push
    return total


@vector_kernel
def _graded_logistic(scores: FloatArray, pairs: Pairs, powers: FloatArray, grad: FloatArray) -> float:
    """Sum over levels[i] > levels[j] of the pair's weight times log(1 + exp(scores[j] - scores[i]))."""
    (weights, levels, top, _), total = pairs, 0.0
    for i in range(len(scores)):
        score, weight, level, power = scores[i], weights[i], levels[i], powers[i]
        value, total_push = 0.0, 0.0
        for j in range(i):
            gap, beside = level - levels[j], powers[j]
            sign = 1.0 if gap > 0.0 else -1.0
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            push = sign * pair * (beside if gap > 0.0 else power) / (power + beside)
            total_push += push
            grad[j] += push
            rest = _log1p_quotient(min(power, beside), max(power, beside))
            value += pair * (max(-sign * (score - scores[j]), 0.0) + rest)
        total += value
        grad[i] = -total_push
    return total


# Short lists: the generalised Hessian of a pairwise loss times a vector, pair by pair.
#
# With m[i, j] the curvature of the pair's terms, the product is sum over j of m[i, j] * (v[i] - v[j]).


@vector_kernel
def _all_clip_product(
    scores: FloatArray, weights: FloatArray, vector: FloatArray, clip: Clip, product: FloatArray
) -> None:
    """Hessian products of all pairs, for margins with quadratic pieces."""
    edge, width, scale = clip
    for i in range(len(scores)):
        score, weight, move, total_pull = scores[i], weights[i], vector[i], 0.0
        for j in range(i):
            d, e = edge - (score - scores[j]), edge + (score - scores[j])
            bent = weight if d > 0.0 and d <= width else 0.0
            bent += weights[j] if e > 0.0 and e <= width else 0.0
            pull = 2.0 * scale * bent * (move - vector[j])
            total_pull += pull
            product[j] -= pull
        product[i] = total_pull


@vector_kernel
def _graded_clip_product(
    scores: FloatArray, pairs: Pairs, vector: FloatArray, clip: Clip, product: FloatArray
) -> None:
    """Hessian products of graded pairs, for margins with quadratic pieces."""
    (weights, levels, top, _), (edge, width, scale) = pairs, clip
    for i in range(len(scores)):
        score, weight, level, move, total_pull = scores[i], weights[i], levels[i], vector[i], 0.0
        for j in range(i):
            gap = level - levels[j]
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            d = edge - (1.0 if gap > 0.0 else -1.0) * (score - scores[j])
            pull = 2.0 * scale * (pair if d > 0.0 and d <= width else 0.0) * (move - vector[j])
            total_pull += pull
            product[j] -= pull
        product[i] = total_pull


@vector_kernel
def _all_logistic_product(
    weights: FloatArray, vector: FloatArray, powers: FloatArray, product: FloatArray
) -> None:
    """Hessian products of all pairs, logistic margin; `powers` from `exponentials`."""
    for i in range(len(weights)):
        weight, move, power, total_pull = weights[i], vector[i], powers[i], 0.0
        for j in range(i):
            quotient = 1.0 / (power + powers[j])
            pull = (weight + weights[j]) * (power * quotient) * (powers[j] * quotient) * (move - vector[j])
            total_pull += pull
            product[j] -= pull
        product[i] = total_pull


@vector_kernel
def _graded_logistic_product(
    pairs: Pairs, vector: FloatArray, powers: FloatArray, product: FloatArray
) -> None:
    """Hessian products of graded pairs, logistic margin."""
    weights, levels, top, _ = pairs
    for i in range(len(weights)):
        weight, level, move, power, total_pull = weights[i], levels[i], vector[i], powers[i], 0.0
        for j in range(i):
            gap, quotient = level - levels[j], 1.0 / (power + powers[j])
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            pull = pair * (power * quotient) * (powers[j] * quotient) * (move - vector[j])
            total_pull += pull
            product[j] -= pull
        product[i] = total_pull


# Chunks of short lists: the double loop for the margin and the kind of pairs; longer lists are skipped.
#
# The result is the gradient; if `second`, it is the Hessian times the vector, and no values are filled.


@kernel
def clip_chunk(
    scores: FloatArray,
    vector: FloatArray,
    pairs: Pairs,
    chunk: Chunk,
    limit: int,
    clip: Clip,
    second: bool,
    values: FloatArray,
    result: FloatArray,
) -> None:
    """Compute margins with quadratic pieces, in queries of at most `limit` rows."""
    (weights, levels, top, graded), (offsets, first, last) = pairs, chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            continue
        if graded:
            query_pairs = weights[a:b], levels[a:b], top, graded
            if second:
                _graded_clip_product(scores[a:b], query_pairs, vector[a:b], clip, result[a:b])
            else:
                values[q] = _graded_clip(scores[a:b], query_pairs, clip, result[a:b])
        elif second:
            _all_clip_product(scores[a:b], weights[a:b], vector[a:b], clip, result[a:b])
        else:
            values[q] = all_clip(scores[a:b], weights[a:b], clip, result[a:b])


@kernel
def logistic_chunk(
    scores: FloatArray,
    vector: FloatArray,
    pairs: Pairs,
    chunk: Chunk,
    second: bool,
    values: FloatArray,
    result: FloatArray,
) -> None:
    """Compute the logistic margin, at any length: no faster way is known."""
    (weights, levels, top, graded), (offsets, first, last) = pairs, chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        powers = np.empty(b - a)
        near = exponentials(scores[a:b], powers)
        if near and not graded:
            if second:
                _all_logistic_product(weights[a:b], vector[a:b], powers, result[a:b])
            else:
                values[q] = _all_logistic(scores[a:b], weights[a:b], powers, result[a:b])
            continue
        query_pairs = weights[a:b], levels[a:b], top, graded
        if second and near:
            _graded_logistic_product(query_pairs, vector[a:b], powers, result[a:b])
        elif second:
            _logistic_far_product(scores[a:b], query_pairs, vector[a:b], result[a:b])
        elif near:
            values[q] = _graded_logistic(scores[a:b], query_pairs, powers, result[a:b])
        else:
            values[q] = _logistic_far(scores[a:b], query_pairs, result[a:b])


@kernel
def shifted_chunk(scores: FloatArray, shift: FloatArray, chunk: Chunk, moved: FloatArray) -> None:
    """Fill scores minus their shift, relative to the list's first score: large levels would cost digits."""
    offsets, first, last = chunk
    for q in range(first, last):
        for i in range(offsets[q], offsets[q + 1]):
            moved[i] = (scores[i] - scores[offsets[q]]) - shift[i]

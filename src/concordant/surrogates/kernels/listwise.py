"""Losses in linear time: centred squares, softmax, Plackett-Luce; each with its Hessian product."""

from __future__ import annotations

import math

import numpy as np

from concordant._segments import kernel
from concordant.types import FloatArray, IntArray

__all__ = [
    "plackett_luce_chunk",
    "plackett_luce_product_chunk",
    "softmax_chunk",
    "softmax_product_chunk",
    "squared_chunk",
    "squared_product_chunk",
]


@kernel
def weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """Mean of the values; 0 where all weights are 0. About the first that counts: large levels cancel."""
    total, share, level = 0.0, 0.0, 0.0
    for i in range(len(values)):
        if weights[i] > 0.0:
            level = level if share > 0.0 else values[i]
            total += weights[i] * (values[i] - level)
            share += weights[i]
    return level + total / share if share > 0.0 else 0.0


@kernel
def squared_chunk(
    scores: FloatArray,
    weights: FloatArray,
    targets: FloatArray,
    centred: bool,
    offsets: IntArray,
    first: int,
    last: int,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Sum of weights * (score - target - their mean difference)^2."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        for i in range(a, b):
            grad[i] = scores[i] - targets[i]
        level, value = weighted_mean(grad[a:b], weights[a:b]) if centred else 0.0, 0.0
        for i in range(a, b):
            off = grad[i] - level
            value += weights[i] * off * off
            grad[i] = 2.0 * weights[i] * off
        values[q] = value


@kernel
def squared_product_chunk(
    weights: FloatArray,
    centred: bool,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    product: FloatArray,
) -> None:
    """Hessian products of the same."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        level = weighted_mean(vector[a:b], weights[a:b]) if centred else 0.0
        for i in range(a, b):
            product[i] = 2.0 * weights[i] * (vector[i] - level)


@kernel
def softmax(scores: FloatArray, shares: FloatArray) -> tuple[float, float]:
    """Fill shares with the softmax; the highest score, and the log of the sum of exp(score - highest)."""
    highest, top, rest = -math.inf, 0, 0.0
    for i in range(len(scores)):
        if scores[i] > highest:
            highest, top = scores[i], i
    for i in range(len(scores)):
        shares[i] = math.exp(scores[i] - highest)
        rest += shares[i] if i != top else 0.0  # log1p keeps the digits of the others
    for i in range(len(scores)):
        shares[i] /= 1.0 + rest
    return highest, math.log1p(rest)


@kernel
def softmax_chunk(
    scores: FloatArray,
    weights: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Sum of weights * (log denominator - score)."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        highest, log_total = softmax(scores[a:b], grad[a:b])
        value, whole = 0.0, 0.0
        for i in range(a, b):
            value += weights[i] * ((highest - scores[i]) + log_total)
            whole += weights[i]
        for i in range(a, b):
            grad[i] = whole * grad[i] - weights[i]
        values[q] = value


@kernel
def softmax_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    product: FloatArray,
) -> None:
    """Hessian products of the same: the spread of the vector under the softmax."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        softmax(scores[a:b], product[a:b])
        mean, whole = weighted_mean(vector[a:b], product[a:b]), 0.0
        for i in range(a, b):
            whole += weights[i]
        for i in range(a, b):
            product[i] *= whole * (vector[i] - mean)


@kernel
def log_add(a: float, b: float) -> float:
    """Log of exp(a) + exp(b), either may be minus infinity."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high)) if low > -math.inf else high


@kernel
def plackett_luce_chunk(
    scores: FloatArray,
    weights: FloatArray,
    order: IntArray,
    offsets: IntArray,
    first: int,
    last: int,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Sum over the places of weight * (log of the sum of exp over the items still there - score).

    `order` lists the rows of each query, best first; `weights` are those of the rows.
    """
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        value, remaining, level = 0.0, -math.inf, scores[order[a]] if a < b else 0.0
        for place in range(b - 1, a - 1, -1):
            row = order[place]
            score = scores[row] - level  # else large levels would cost digits
            ahead = log_add(remaining - score, 0.0)
            remaining = score + ahead
            value += weights[row] * ahead
            grad[row] = remaining  # kept for the second pass
        passed = -math.inf  # log of the sum of weight / denominator over the places so far
        for place in range(a, b):
            row = order[place]
            if weights[row] > 0.0:
                passed = log_add(passed, math.log(weights[row]) - grad[row])
            grad[row] = math.exp(scores[row] - level + passed) - weights[row]
        values[q] = value


@kernel
def plackett_luce_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    order: IntArray,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    product: FloatArray,
) -> None:
    """Hessian products of the same: at each place, the spread of the vector over the items still there."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        logs = np.empty(b - a)
        mean, remaining, level = 0.0, -math.inf, scores[order[a]] if a < b else 0.0
        for place in range(b - 1, a - 1, -1):
            row = order[place]
            score = scores[row] - level
            remaining = log_add(remaining, score)
            mean += math.exp(score - remaining) * (vector[row] - mean)
            logs[place - a], product[row] = remaining, mean
        passed, centre = -math.inf, 0.0  # centre: mean of the means so far, by weight / denominator
        for place in range(a, b):
            row = order[place]
            if weights[row] > 0.0:
                share = math.log(weights[row]) - logs[place - a]
                passed = log_add(passed, share)
                centre += math.exp(share - passed) * (product[row] - centre)
            product[row] = math.exp(scores[row] - level + passed) * (vector[row] - centre)

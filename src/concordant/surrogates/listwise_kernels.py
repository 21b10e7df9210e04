"""Losses in linear time, with Hessian products: centred squares, softmax, Plackett-Luce."""

from __future__ import annotations

import math

import numpy as np

from concordant._base.segments import kernel
from concordant.surrogates.surrogate import Chunk
from concordant.types import FloatArray, IntArray


@kernel
def _weighted_mean(values: FloatArray, weights: FloatArray) -> float:
    """Weighted mean, 0 if all weights are 0; relative to a value, so that large levels cancel."""
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
    chunk: Chunk,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Sum of weights * (score - target - their mean difference)^2."""
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        for i in range(a, b):
            grad[i] = scores[i] - targets[i]
        level, value = _weighted_mean(grad[a:b], weights[a:b]) if centred else 0.0, 0.0
        for i in range(a, b):
            off = grad[i] - level
            value += weights[i] * off * off
            grad[i] = 2.0 * weights[i] * off
        values[q] = value


@kernel
def squared_product_chunk(
    weights: FloatArray, centred: bool, vector: FloatArray, chunk: Chunk, product: FloatArray
) -> None:
    """Hessian products of `squared_chunk`."""
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        level = _weighted_mean(vector[a:b], weights[a:b]) if centred else 0.0
        for i in range(a, b):
            product[i] = 2.0 * weights[i] * (vector[i] - level)


@kernel
def softmax(scores: FloatArray, shares: FloatArray) -> tuple[float, float]:
    """Fill shares with the softmax; return the highest score and log(sum of exp(score - highest))."""
    highest, top, rest = -math.inf, 0, 0.0
    for i in range(len(scores)):
        if scores[i] > highest:
            highest, top = scores[i], i
    for i in range(len(scores)):
        shares[i] = math.exp(scores[i] - highest)
        rest += shares[i] if i != top else 0.0  # log1p keeps the digits of the other terms
    for i in range(len(scores)):
        shares[i] /= 1.0 + rest
    return highest, math.log1p(rest)


@kernel
def softmax_chunk(
    scores: FloatArray, weights: FloatArray, chunk: Chunk, values: FloatArray, grad: FloatArray
) -> None:
    """Sum of weights * (log denominator - score)."""
    offsets, first, last = chunk
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
    scores: FloatArray, weights: FloatArray, vector: FloatArray, chunk: Chunk, product: FloatArray
) -> None:
    """Hessian products of `softmax_chunk`: the spread of the vector under the softmax."""
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        softmax(scores[a:b], product[a:b])
        mean, whole = _weighted_mean(vector[a:b], product[a:b]), 0.0
        for i in range(a, b):
            whole += weights[i]
        for i in range(a, b):
            product[i] *= whole * (vector[i] - mean)


@kernel
def _log_add(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b)); either may be minus infinity."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high)) if low > -math.inf else high


@kernel
def plackett_luce_chunk(
    scores: FloatArray,
    weights: FloatArray,
    order: IntArray,
    chunk: Chunk,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Sum over positions of weight * (log of the sum of exp over the remaining items - score).

    `order` lists the rows of each query, best first; `weights` are by row.
    """
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        value, remaining, level = 0.0, -math.inf, scores[order[a]] if a < b else 0.0
        for k in range(b - 1, a - 1, -1):
            row = order[k]
            score = scores[row] - level  # relative to a level, as large levels would cost digits
            ahead = _log_add(remaining - score, 0.0)
            remaining = score + ahead
            value += weights[row] * ahead
            grad[row] = remaining  # read in the second pass
        passed = -math.inf  # log of the sum of weight / denominator over the positions so far
        for k in range(a, b):
            row = order[k]
            if weights[row] > 0.0:
                passed = _log_add(passed, math.log(weights[row]) - grad[row])
            grad[row] = math.exp(scores[row] - level + passed) - weights[row]
        values[q] = value


@kernel
def plackett_luce_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    order: IntArray,
    vector: FloatArray,
    chunk: Chunk,
    product: FloatArray,
) -> None:
    """Hessian products of `plackett_luce_chunk`: at each position, the spread over the remaining items."""
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        logs = np.empty(b - a)
        mean, remaining, level = 0.0, -math.inf, scores[order[a]] if a < b else 0.0
        for k in range(b - 1, a - 1, -1):
            row = order[k]
            score = scores[row] - level
            remaining = _log_add(remaining, score)
            mean += math.exp(score - remaining) * (vector[row] - mean)
            logs[k - a], product[row] = remaining, mean
        passed, centre = -math.inf, 0.0  # centre: mean of the means so far, by weight / denominator
        for k in range(a, b):
            row = order[k]
            if weights[row] > 0.0:
                share = math.log(weights[row]) - logs[k - a]
                passed = _log_add(passed, share)
                centre += math.exp(share - passed) * (product[row] - centre)
            product[row] = math.exp(scores[row] - level + passed) * (vector[row] - centre)

"""The logistic margin where scores lie so far apart that quotients of exponentials leave the doubles."""

from __future__ import annotations

import math

from concordant._segments import kernel
from concordant.types import FloatArray

__all__ = ["logistic_far", "logistic_far_product"]


@kernel
def pair_weights(
    weights: FloatArray, levels: FloatArray, top: float, graded: bool, i: int, j: int
) -> tuple[float, float]:
    """Weight of "i above j", and of "j above i"."""
    if not graded:
        return weights[i], weights[j]
    gap = levels[i] - levels[j]
    return weights[i] * min(max(gap, 0.0), top), weights[j] * min(max(-gap, 0.0), top)


@kernel
def logistic_far(
    scores: FloatArray, weights: FloatArray, levels: FloatArray, top: float, graded: bool, grad: FloatArray
) -> float:
    """Sum over pairs of weight * log(1 + exp(-t)), one exponential a pair."""
    total = 0.0
    for i in range(len(scores)):
        own, value = 0.0, 0.0 if graded else weights[i] * math.log(2.0)
        for j in range(i):
            upper, lower = pair_weights(weights, levels, top, graded, i, j)
            ahead = scores[i] - scores[j]
            power = math.exp(-abs(ahead))
            behind = (power if ahead > 0.0 else 1.0) / (1.0 + power)  # the logistic function of -ahead
            push = upper * behind - lower * (1.0 if ahead > 0.0 else power) / (1.0 + power)
            value += upper * max(-ahead, 0.0) + lower * max(ahead, 0.0) + (upper + lower) * math.log1p(power)
            own += push
            grad[j] += push
        total += value
        grad[i] = -own
    return total


@kernel
def logistic_far_product(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    graded: bool,
    vector: FloatArray,
    product: FloatArray,
) -> None:
    """Hessian of `logistic_far` times the vector."""
    for i in range(len(scores)):
        own = 0.0
        for j in range(i):
            upper, lower = pair_weights(weights, levels, top, graded, i, j)
            power = math.exp(-abs(scores[i] - scores[j]))
            pull = (upper + lower) * power / (1.0 + power) ** 2 * (vector[i] - vector[j])
            own += pull
            product[j] -= pull
        product[i] = own

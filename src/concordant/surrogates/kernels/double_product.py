"""Short lists: the generalised Hessian of a pairwise loss times a vector, pair by pair.

With m[i, j] the curvature of the pair's terms, the product is sum over j of m[i, j] * (v[i] - v[j]).
"""

from __future__ import annotations

from concordant._segments import vector_kernel
from concordant.types import FloatArray

__all__ = ["all_clip_product", "all_logistic_product", "graded_clip_product", "graded_logistic_product"]


@vector_kernel
def all_clip_product(
    scores: FloatArray,
    weights: FloatArray,
    vector: FloatArray,
    edge: float,
    width: float,
    scale: float,
    product: FloatArray,
) -> None:
    """All pairs, margins of quadratic pieces."""
    for i in range(len(scores)):
        score, weight, move, own = scores[i], weights[i], vector[i], 0.0
        for j in range(i):
            d, e = edge - (score - scores[j]), edge + (score - scores[j])
            bent = weight if d > 0.0 and d <= width else 0.0
            bent += weights[j] if e > 0.0 and e <= width else 0.0
            pull = 2.0 * scale * bent * (move - vector[j])
            own += pull
            product[j] -= pull
        product[i] = own


@vector_kernel
def graded_clip_product(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    vector: FloatArray,
    edge: float,
    width: float,
    scale: float,
    product: FloatArray,
) -> None:
    """Graded pairs, margins of quadratic pieces."""
    for i in range(len(scores)):
        score, weight, level, move, own = scores[i], weights[i], levels[i], vector[i], 0.0
        for j in range(i):
            gap = level - levels[j]
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            d = edge - (1.0 if gap > 0.0 else -1.0) * (score - scores[j])
            pull = 2.0 * scale * (pair if d > 0.0 and d <= width else 0.0) * (move - vector[j])
            own += pull
            product[j] -= pull
        product[i] = own


@vector_kernel
def all_logistic_product(
    weights: FloatArray, vector: FloatArray, powers: FloatArray, product: FloatArray
) -> None:
    """All pairs, logistic margin; `powers` from `exponentials`."""
    for i in range(len(weights)):
        weight, move, power, own = weights[i], vector[i], powers[i], 0.0
        for j in range(i):
            quotient = 1.0 / (power + powers[j])
            pull = (weight + weights[j]) * (power * quotient) * (powers[j] * quotient) * (move - vector[j])
            own += pull
            product[j] -= pull
        product[i] = own


@vector_kernel
def graded_logistic_product(
    weights: FloatArray,
    levels: FloatArray,
    top: float,
    vector: FloatArray,
    powers: FloatArray,
    product: FloatArray,
) -> None:
    """Graded pairs, logistic margin."""
    for i in range(len(weights)):
        weight, level, move, power, own = weights[i], levels[i], vector[i], powers[i], 0.0
        for j in range(i):
            gap, quotient = level - levels[j], 1.0 / (power + powers[j])
            pair = min(abs(gap), top) * (weight if gap > 0.0 else weights[j])
            pull = pair * (power * quotient) * (powers[j] * quotient) * (move - vector[j])
            own += pull
            product[j] -= pull
        product[i] = own

"""Pairwise losses of one long list in O(n log n): all pairs at once, graded pairs by halving the levels.

`shape` is the kind of the margin with its edge, width and scale. The weight of a pair (i above j) is a
product upper[i] * lower[j], or a sum of two such products; each product needs one sweep in which the upper
items collect and one, with scores negated, in which the lower ones do.
"""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.surrogates.kernels.sweep import curve, curve_exponential, fold, sweep
from concordant.surrogates.margins import EXPONENTIAL
from concordant.types import FloatArray, IntArray

__all__ = ["all_long", "all_long_product", "graded_long", "graded_long_product", "mend"]


@kernel
def mirrored(values: FloatArray, turn: float) -> FloatArray:
    """Give turn * values in reverse order; negated sorted scores are sorted again."""
    n = len(values)
    result = np.empty(n)
    for i in range(n):
        result[i] = turn * values[n - 1 - i]
    return result


@kernel
def cross(
    high: FloatArray,
    upper: FloatArray,
    low: FloatArray,
    lower: FloatArray,
    shape: tuple[int, float, float, float],
    high_grad: FloatArray,
    low_grad: FloatArray,
) -> float:
    """Sum over i, j of upper[i] * lower[j] * phi(high[i] - low[j]), and its gradient, added."""
    kind, edge, width, scale = shape
    pushed, pulled = np.zeros(len(high)), np.zeros(len(low))
    mirrored_low, mirrored_high = mirrored(low, -1.0), mirrored(high, -1.0)
    if kind == EXPONENTIAL:
        value = fold(high, upper, low, lower, pushed)
        fold(mirrored_low, mirrored(lower, 1.0), mirrored_high, mirrored(upper, 1.0), pulled)
    else:
        value = sweep(high, upper, low, lower, edge, width, scale, pushed)
        other = mirrored(lower, 1.0), mirrored(upper, 1.0)
        sweep(mirrored_low, other[0], mirrored_high, other[1], edge, width, scale, pulled)
    for i in range(len(high)):
        high_grad[i] -= pushed[i]
    for j in range(len(low)):
        low_grad[j] += pulled[len(low) - 1 - j]
    return value


@kernel
def cross_product(
    high: FloatArray,
    upper: FloatArray,
    high_moves: FloatArray,
    low: FloatArray,
    lower: FloatArray,
    low_moves: FloatArray,
    shape: tuple[int, float, float, float],
    high_product: FloatArray,
    low_product: FloatArray,
) -> None:
    """Add the Hessian of `cross` times the vector (high_moves, low_moves)."""
    kind, edge, width, scale = shape
    pulled = np.zeros(len(low))
    mirrored_low, mirrored_high = mirrored(low, -1.0), mirrored(high, -1.0)
    moves, pulls = mirrored(low_moves, 1.0), mirrored(high_moves, 1.0)
    first, second = mirrored(lower, 1.0), mirrored(upper, 1.0)
    if kind == EXPONENTIAL:
        curve_exponential(high, upper, high_moves, low, lower, low_moves, high_product)
        curve_exponential(mirrored_low, first, moves, mirrored_high, second, pulls, pulled)
    else:
        curve(high, upper, high_moves, low, lower, low_moves, edge, width, scale, high_product)
        curve(mirrored_low, first, moves, mirrored_high, second, pulls, edge, width, scale, pulled)
    for j in range(len(low)):
        low_product[j] += pulled[len(low) - 1 - j]


@kernel
def taken(values: FloatArray, order: IntArray) -> FloatArray:
    """Give the values in this order."""
    result = np.empty(len(order))
    for place in range(len(order)):
        result[place] = values[order[place]]
    return result


@kernel
def all_long(
    scores: FloatArray,
    weights: FloatArray,
    order: IntArray,
    shape: tuple[int, float, float, float],
    grad: FloatArray,
) -> float:
    """Sum over i, j of weights[i] * phi(scores[i] - scores[j]); `order` lists items, highest score first."""
    n = len(order)
    z, upper, lower = taken(scores, order), taken(weights, order), np.ones(n)
    pushed, pulled = np.zeros(n), np.zeros(n)
    value = cross(z, upper, z, lower, shape, pushed, pulled)
    for place in range(n):
        grad[order[place]] = pushed[place] + pulled[place]
    return value


@kernel
def all_long_product(
    scores: FloatArray,
    weights: FloatArray,
    vector: FloatArray,
    order: IntArray,
    shape: tuple[int, float, float, float],
    product: FloatArray,
) -> None:
    """Hessian of `all_long` times the vector."""
    n = len(order)
    z, upper, lower, moves = taken(scores, order), taken(weights, order), np.ones(n), taken(vector, order)
    own, other = np.zeros(n), np.zeros(n)
    cross_product(z, upper, moves, z, lower, moves, shape, own, other)
    for place in range(n):
        product[order[place]] = own[place] + other[place]


@kernel
def halve(order: IntArray, codes: IntArray, bit: int, start: int, spare: IntArray) -> tuple[int, int]:
    """Put the items of one group (codes equal above `bit`) into lower half, then upper, each in order.

    Gives where the upper half starts, and where the group ends.
    """
    group, end, middle, n_upper = codes[order[start]] >> (bit + 1), start, start, 0
    while end < len(order) and codes[order[end]] >> (bit + 1) == group:
        item = order[end]
        if (codes[item] >> bit) & 1:
            spare[n_upper] = item
            n_upper += 1
        else:
            order[middle] = item
            middle += 1
        end += 1
    for place in range(n_upper):
        order[middle + place] = spare[place]
    return middle, end


@kernel
def factors(
    weights: FloatArray, levels: FloatArray, low: IntArray, high: IntArray, top: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the factors of the pair weights weights[i] * min(levels[i] - levels[j], top), top = 1 or infinity.

    Below a finite top: one product, upper = weights, lower = 1. Else upper[i] = weights[i] * (levels[i] - b)
    with lower 1, and weights[i] with b - levels[j], where b is between the halves: nothing is subtracted.
    """
    upper, lower, border = np.empty(len(high)), np.ones(len(low)), np.inf
    for i in range(len(high)):
        border = min(border, levels[high[i]])
    for i in range(len(high)):
        upper[i] = weights[high[i]] * (min(levels[high[i]] - border, top) if top == np.inf else top)
    if top == np.inf:
        for j in range(len(low)):
            lower[j] = border - levels[low[j]]
    return upper, lower, taken(weights, high)


@kernel
def graded_long(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    codes: IntArray,
    top: float,
    ranked: IntArray,
    shape: tuple[int, float, float, float],
    grad: FloatArray,
) -> float:
    """Sum over levels[i] > levels[j] of the pair's weight times phi(scores[i] - scores[j]).

    `codes` numbers the levels from 0; pairs are split by the highest bit in which their codes differ.
    """
    order, spare, value = ranked.copy(), np.empty(len(ranked), np.int64), 0.0
    grad[:] = 0.0
    for bit in range(highest_bit(codes), -1, -1):
        start = 0
        while start < len(order):
            middle, end = halve(order, codes, bit, start, spare)
            low, high, start = order[start:middle], order[middle:end], end
            if len(low) == 0 or len(high) == 0:
                continue
            upper, lower, whole = factors(weights, levels, low, high, top)
            z, y = taken(scores, high), taken(scores, low)
            pushed, pulled, ones = np.zeros(len(high)), np.zeros(len(low)), np.ones(len(low))
            value += cross(z, upper, y, ones, shape, pushed, pulled)
            if top == np.inf:
                value += cross(z, whole, y, lower, shape, pushed, pulled)
            spread(pushed, high, grad)
            spread(pulled, low, grad)
    return value


@kernel
def graded_long_product(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    codes: IntArray,
    top: float,
    vector: FloatArray,
    ranked: IntArray,
    shape: tuple[int, float, float, float],
    product: FloatArray,
) -> None:
    """Hessian of `graded_long` times the vector."""
    order, spare = ranked.copy(), np.empty(len(ranked), np.int64)
    product[:] = 0.0
    for bit in range(highest_bit(codes), -1, -1):
        start = 0
        while start < len(order):
            middle, end = halve(order, codes, bit, start, spare)
            low, high, start = order[start:middle], order[middle:end], end
            if len(low) == 0 or len(high) == 0:
                continue
            upper, lower, whole = factors(weights, levels, low, high, top)
            z, y, a, b = taken(scores, high), taken(scores, low), taken(vector, high), taken(vector, low)
            own, other, ones = np.zeros(len(high)), np.zeros(len(low)), np.ones(len(low))
            cross_product(z, upper, a, y, ones, b, shape, own, other)
            if top == np.inf:
                cross_product(z, whole, a, y, lower, b, shape, own, other)
            spread(own, high, product)
            spread(other, low, product)


@kernel
def highest_bit(codes: IntArray) -> int:
    """Highest bit set in any code; -1 if there is only one level."""
    most, bit = 0, -1
    for i in range(len(codes)):
        most = max(most, codes[i])
    while most >> (bit + 1):
        bit += 1
    return bit


@kernel
def spread(values: FloatArray, places: IntArray, result: FloatArray) -> None:
    """Add values at these places."""
    for i in range(len(places)):
        result[places[i]] += values[i]


@kernel
def mend(order: IntArray, scores: FloatArray, budget: int) -> bool:
    """Sort a nearly sorted order, highest score first, by insertion; False if that takes too many moves."""
    for place in range(1, len(order)):
        item, to = order[place], place
        while to > 0 and scores[order[to - 1]] < scores[item]:
            order[to] = order[to - 1]
            to -= 1
        order[to] = item
        budget -= place - to
        if budget < 0:
            return False
    return True

"""Pairwise losses of one long list over pairs of different levels, in O(n log n): levels are halved.

Pairs are split by the highest bit in which the numbers of their levels differ; at each bit, items stand in
groups, and within a group the upper half meets the lower one as in `long`.
"""

from __future__ import annotations

import numpy as np

from concordant._segments import kernel
from concordant.surrogates.kernels.long import Shape, Space, count, cross, cross_product, listed, taken
from concordant.types import FloatArray, IntArray

__all__ = ["graded_chunk", "graded_product_chunk"]


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
def spread(values: FloatArray, items: IntArray, result: FloatArray) -> None:
    """Add the values to the items'."""
    for place in range(len(items)):
        result[items[place]] += values[place]


@kernel
def factors(
    weights: FloatArray,
    levels: FloatArray,
    high: IntArray,
    low: IntArray,
    top: float,
    number: int,
    upper: FloatArray,
    lower: FloatArray,
) -> None:
    """Fill factors of the pair weights weights[i] * min(levels[i] - levels[j], top), top = 1 or infinity.

    Below a finite top: one product, upper = weights, lower = 1. Else number 0 has upper[i] = weights[i] *
    (levels[i] - b) and lower 1, number 1 has weights[i] and b - levels[j], where b is between the halves:
    nothing is subtracted.
    """
    border = np.inf
    for i in range(len(high)):
        border = min(border, levels[high[i]])
    for i in range(len(high)):
        gap = levels[high[i]] - border if top == np.inf else top
        upper[i] = weights[high[i]] * (gap if number == 0 else 1.0)
    for j in range(len(low)):
        lower[j] = 1.0 if number == 0 else border - levels[low[j]]


@kernel
def graded_long(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    codes: IntArray,
    top: float,
    shape: Shape,
    space: Space,
    grad: FloatArray,
) -> float:
    """Sum over levels[i] > levels[j] of the pair's weight times phi(scores[i] - scores[j]).

    `codes` numbers the levels from 0; pairs are split by the highest bit in which their codes differ.
    """
    order, counts, sums, value = listed(scores, shape[0], space), space.counts, space.sums, 0.0
    z, upper, lower, moved = space.places[0], space.places[1], space.places[2], space.places[3]
    grad[:] = 0.0
    for bit in range(highest_bit(codes), -1, -1):
        end = 0
        while end < len(order):
            start = end
            middle, end = halve(order, codes, bit, start, counts[0])
            if middle in (start, end):
                continue
            low, high = slice(start, middle), slice(middle, end)
            taken(scores, order[start:end], z[start:end])
            moved[start:end] = 0.0
            count(z[high], z[low], shape, counts)
            for number in range(2 if top == np.inf else 1):
                factors(weights, levels, order[high], order[low], top, number, upper[high], lower[low])
                halves = z[high], upper[high], z[low], lower[low]
                value += cross(*halves, shape, counts, sums, moved[high], moved[low])
            spread(moved[start:end], order[start:end], grad)
    return value


@kernel
def graded_long_product(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    codes: IntArray,
    top: float,
    vector: FloatArray,
    shape: Shape,
    space: Space,
    product: FloatArray,
) -> None:
    """Hessian of `graded_long` times the vector."""
    order, counts, sums = listed(scores, shape[0], space), space.counts, space.sums
    z, upper, lower, moved = space.places[0], space.places[1], space.places[2], space.places[3]
    moves = space.places[4]
    product[:] = 0.0
    for bit in range(highest_bit(codes), -1, -1):
        end = 0
        while end < len(order):
            start = end
            middle, end = halve(order, codes, bit, start, counts[0])
            if middle in (start, end):
                continue
            low, high = slice(start, middle), slice(middle, end)
            taken(scores, order[start:end], z[start:end])
            taken(vector, order[start:end], moves[start:end])
            moved[start:end] = 0.0
            count(z[high], z[low], shape, counts)
            for number in range(2 if top == np.inf else 1):
                factors(weights, levels, order[high], order[low], top, number, upper[high], lower[low])
                halves = z[high], upper[high], moves[high], z[low], lower[low], moves[low]
                cross_product(*halves, shape, counts, sums, moved[high], moved[low])
            spread(moved[start:end], order[start:end], product)


@kernel
def graded_chunk(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    codes: IntArray,
    top: float,
    offsets: IntArray,
    first: int,
    last: int,
    limit: int,
    shape: Shape,
    space: Space,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Graded pairs, in queries of more than `limit` rows."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            pairs = weights[a:b], levels[a:b], codes[a:b], top
            values[q] = graded_long(scores[a:b], *pairs, shape, space, grad[a:b])


@kernel
def graded_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    levels: FloatArray,
    codes: IntArray,
    top: float,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    limit: int,
    shape: Shape,
    space: Space,
    product: FloatArray,
) -> None:
    """Hessian products of `graded_chunk`."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            pairs = weights[a:b], levels[a:b], codes[a:b], top
            graded_long_product(scores[a:b], *pairs, vector[a:b], shape, space, product[a:b])

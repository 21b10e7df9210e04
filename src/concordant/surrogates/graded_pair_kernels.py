"""Pairwise losses of a long list over pairs of different levels, in O(n log n) by halving the levels.

Pairs are split by the highest bit in which the numbers of their levels differ; at each bit, items form
groups, and within a group the upper half meets the lower half as in `long_pair_kernels`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from concordant._base.segments import kernel
from concordant.surrogates.long_pair_kernels import (
    Shape,
    Space,
    count_pairs,
    cross,
    gather_values,
    order_items,
)
from concordant.surrogates.surrogate import Chunk
from concordant.types import FloatArray, IntArray

Pairs: TypeAlias = tuple[FloatArray, FloatArray, IntArray, float]
"""Weights, levels, numbers of the levels from 0, and the most that a difference of levels counts."""


@kernel
def _highest_bit(codes: IntArray) -> int:
    """Return the highest bit set in any code; -1 if there is only one level."""
    most, bit = 0, -1
    for i in range(len(codes)):
        most = max(most, codes[i])
    while most >> (bit + 1):
        bit += 1
    return bit


@kernel
def _halve(order: IntArray, codes: IntArray, bit: int, start: int, spare: IntArray) -> tuple[int, int]:
    """Partition the items of a group (codes equal above `bit`) stably into its lower half, then its upper.

    Returns the start of the upper half and the end of the group.
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
    for k in range(n_upper):
        order[middle + k] = spare[k]
    return middle, end


@kernel
def _scatter_add(values: FloatArray, items: IntArray, result: FloatArray) -> None:
    for k in range(len(items)):
        result[items[k]] += values[k]


@kernel
def _factors(
    weights: FloatArray,
    levels: FloatArray,
    high: IntArray,
    low: IntArray,
    top: float,
    number: int,
    upper: FloatArray,
    lower: FloatArray,
) -> None:
    """Fill the factors of the pair weights weights[i] * min(levels[i] - levels[j], top), top = 1 or infinity.

    For a finite top there is one product, upper = weights, lower = 1. Otherwise number 0 has upper[i] =
    weights[i] * (levels[i] - b) and lower 1, number 1 has weights[i] and b - levels[j], where b is between
    the halves, so that nothing is subtracted.
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
def _graded_long(
    scores: FloatArray,
    pairs: Pairs,
    vector: FloatArray,
    shape: Shape,
    second: bool,
    space: Space,
    result: FloatArray,
) -> float:
    """Sum over levels[i] > levels[j] of the pair's weight times phi(scores[i] - scores[j]).

    Fills its gradient; if `second`, its Hessian times the vector, and 0 is returned.
    """
    weights, levels, codes, top = pairs
    order, counts, value = order_items(scores, shape[0], space), space.counts, 0.0
    z, upper, lower = space.places[0], space.places[1], space.places[2]
    moved, moves = space.places[3], space.places[4]
    result[:] = 0.0
    for bit in range(_highest_bit(codes), -1, -1):
        end = 0
        while end < len(order):
            start = end
            middle, end = _halve(order, codes, bit, start, counts[0])
            if middle in (start, end):
                continue
            low, high = slice(start, middle), slice(middle, end)
            gather_values(scores, order[start:end], z[start:end])
            if second:
                gather_values(vector, order[start:end], moves[start:end])
            moved[start:end] = 0.0
            count_pairs(z[high], z[low], shape, counts)
            for number in range(2 if top == np.inf else 1):
                _factors(weights, levels, order[high], order[low], top, number, upper[high], lower[low])
                value += cross(high, low, shape, second, space)
            _scatter_add(moved[start:end], order[start:end], result)
    return value


@kernel
def graded_chunk(
    scores: FloatArray,
    pairs: Pairs,
    vector: FloatArray,
    chunk: Chunk,
    limit: int,
    shape: Shape,
    second: bool,
    space: Space,
    values: FloatArray,
    result: FloatArray,
) -> None:
    """Compute graded pairs in queries of more than `limit` rows, as `all_chunk` does all pairs."""
    (weights, levels, codes, top), (offsets, first, last) = pairs, chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            query_pairs = weights[a:b], levels[a:b], codes[a:b], top
            value = _graded_long(scores[a:b], query_pairs, vector[a:b], shape, second, space, result[a:b])
            if not second:
                values[q] = value

"""Pairwise losses of one long list in O(n log n), all pairs at once; `graded` halves the levels.

`shape` is the kind of the margin with its edge, width and scale. The weight of a pair (i above j) is a
product upper[i] * lower[j], or a sum of two such products; for each product the upper items collect from the
lower ones, and the other way round. Nothing is allocated: a `Space` is lent to each call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from concordant._segments import kernel
from concordant.surrogates.kernels.sort import DIGITS, ranked
from concordant.surrogates.kernels.sweep import collect, curve, curve_exponential, fold, meet
from concordant.surrogates.margins import EXPONENTIAL
from concordant.types import FloatArray, IntArray

__all__ = [
    "Shape",
    "Space",
    "all_chunk",
    "all_product_chunk",
    "count",
    "cross",
    "cross_product",
    "listed",
    "taken",
    "workspace",
]

Shape = tuple[int, float, float, float]


class Space(NamedTuple):
    """Arrays that a list may overwrite: fresh ones would cost as much as the work, page by page."""

    order: IntArray  # items, highest score first
    counts: IntArray  # rows as `meet` fills them; before, what sorting needs
    tally: IntArray  # of digits
    places: FloatArray  # by place in the order: scores, upper and lower factors, result, vector
    sums: FloatArray  # as `run` fills them


def workspace(n: int) -> Space:
    """Give space for lists of up to n items, in one block: many small ones are given back page by page."""
    block = np.empty(14 * n + 4 + DIGITS)
    numbers, rest = block[: 5 * n + DIGITS].view(np.int64), block[5 * n + DIGITS :]
    order, counts, tally = np.split(numbers, (n, 5 * n))
    places, sums = np.split(rest, (5 * n,))
    return Space(order, counts.reshape(4, n), tally, places.reshape(5, n), sums.reshape(n + 1, 4))


@kernel
def listed(scores: FloatArray, kind: int, space: Space) -> IntArray:
    """Give the items, highest score first where the order matters."""
    order = space.order[: len(scores)]
    if kind == EXPONENTIAL:
        for i in range(len(scores)):
            order[i] = i
    else:
        ranked(scores, order, space.counts, space.tally)
    return order


@kernel
def count(high: FloatArray, low: FloatArray, shape: Shape, counts: IntArray) -> None:
    """`meet`, where the order matters."""
    if shape[0] != EXPONENTIAL:
        meet(high, low, shape[1], shape[2], counts)


@kernel
def cross(
    high: FloatArray,
    upper: FloatArray,
    low: FloatArray,
    lower: FloatArray,
    shape: Shape,
    counts: IntArray,
    sums: FloatArray,
    high_grad: FloatArray,
    low_grad: FloatArray,
) -> float:
    """Sum over i, j of upper[i] * lower[j] * phi(high[i] - low[j]), and its gradient, added."""
    kind, edge, width, scale = shape
    for step in (-1, 1):  # the lower items receive, then the upper ones
        own, own_factor, met, beyond, grad = low, lower, counts[2], counts[3], low_grad
        other, other_factor = high, upper
        if step > 0:
            own, own_factor, met, beyond, grad = high, upper, counts[0], counts[1], high_grad
            other, other_factor = low, lower
        if kind == EXPONENTIAL:
            value = fold(step, own, own_factor, other, other_factor, grad)
        else:
            pairs = own, own_factor, met, beyond, other, other_factor
            value = collect(step, *pairs, edge, width, scale, sums, grad)
    return value


@kernel
def cross_product(
    high: FloatArray,
    upper: FloatArray,
    high_moves: FloatArray,
    low: FloatArray,
    lower: FloatArray,
    low_moves: FloatArray,
    shape: Shape,
    counts: IntArray,
    sums: FloatArray,
    high_product: FloatArray,
    low_product: FloatArray,
) -> None:
    """Add the Hessian of `cross` times the vector (high_moves, low_moves)."""
    for step in (-1, 1):
        own, own_factor, moves, met, beyond = low, lower, low_moves, counts[2], counts[3]
        other, other_factor, pulls, product = high, upper, high_moves, low_product
        if step > 0:
            own, own_factor, moves, met, beyond = high, upper, high_moves, counts[0], counts[1]
            other, other_factor, pulls, product = low, lower, low_moves, high_product
        if shape[0] == EXPONENTIAL:
            curve_exponential(step, own, own_factor, moves, other, other_factor, pulls, product)
        else:
            curve(step, own_factor, moves, met, beyond, other_factor, pulls, shape[3], sums, product)


@kernel
def all_long(scores: FloatArray, weights: FloatArray, shape: Shape, space: Space, grad: FloatArray) -> float:
    """Sum over i, j of weights[i] * phi(scores[i] - scores[j])."""
    n, order = len(scores), listed(scores, shape[0], space)
    z, upper, lower, moved = (
        space.places[0, :n],
        space.places[1, :n],
        space.places[2, :n],
        space.places[3, :n],
    )
    for place in range(n):
        z[place], upper[place] = scores[order[place]], weights[order[place]]
        lower[place], moved[place] = 1.0, 0.0
    count(z, z, shape, space.counts)
    value = cross(z, upper, z, lower, shape, space.counts, space.sums, moved, moved)
    for place in range(n):
        grad[order[place]] = moved[place]
    return value


@kernel
def all_long_product(
    scores: FloatArray,
    weights: FloatArray,
    vector: FloatArray,
    shape: Shape,
    space: Space,
    product: FloatArray,
) -> None:
    """Hessian of `all_long` times the vector."""
    n, order = len(scores), listed(scores, shape[0], space)
    z, upper, lower, moved = (
        space.places[0, :n],
        space.places[1, :n],
        space.places[2, :n],
        space.places[3, :n],
    )
    moves = space.places[4, :n]
    for place in range(n):
        z[place], upper[place] = scores[order[place]], weights[order[place]]
        lower[place], moved[place], moves[place] = 1.0, 0.0, vector[order[place]]
    count(z, z, shape, space.counts)
    cross_product(z, upper, moves, z, lower, moves, shape, space.counts, space.sums, moved, moved)
    for place in range(n):
        product[order[place]] = moved[place]


@kernel
def taken(values: FloatArray, items: IntArray, result: FloatArray) -> None:
    """Fill the result with the items' values."""
    for place in range(len(items)):
        result[place] = values[items[place]]


@kernel
def all_chunk(
    scores: FloatArray,
    weights: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    limit: int,
    shape: Shape,
    space: Space,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """All pairs, in queries of more than `limit` rows."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            values[q] = all_long(scores[a:b], weights[a:b], shape, space, grad[a:b])


@kernel
def all_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    limit: int,
    shape: Shape,
    space: Space,
    product: FloatArray,
) -> None:
    """Hessian products of `all_chunk`."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            all_long_product(scores[a:b], weights[a:b], vector[a:b], shape, space, product[a:b])

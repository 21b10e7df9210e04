"""Pairwise losses of a long list in O(n log n), all pairs at once: sort, then sweep.

`shape` is the kind of the margin with its edge, width and scale. The weight of a pair (i above j) is a
product upper[i] * lower[j], or a sum of two such products; for each product the upper items collect from the
lower items, and vice versa. Nothing is allocated: each call uses a `Space` from a pool.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from concordant._base.segments import kernel
from concordant.surrogates.margins import EXPONENTIAL
from concordant.surrogates.surrogate import Chunk
from concordant.types import FloatArray, IntArray

# Sort a list by score in linear time, several times faster than comparing: long lists are always sorted.
#
# Items are counted into cells of equal width, and insertion sorts the few that share a cell. If an outlying
# score leaves too many in the same cell, the bits of the scores are sorted instead.

FEW, DIGIT, LONG_DIGIT = 4096, 8, 11  # bits sorted at a time, below FEW items and from there on
DIGITS = 2**LONG_DIGIT
REPAIR = 8  # moves per item that insertion may take


@kernel
def rank_items(scores: FloatArray, order: IntArray, spare: IntArray, tally: IntArray) -> None:
    """Fill `order` with the items, highest score first; `spare` (three rows) and `tally` are overwritten."""
    n = len(scores)
    items, codes, moved = spare[0, :n], spare[1, :n], spare[2, :n]
    bits = DIGIT if n < FEW else LONG_DIGIT
    for exact in range(2):
        if exact:
            _encode_bits(scores, order, codes)
        else:
            _number_cells(scores, 2 * bits, order, codes)
        for shift in range(0, 64 if exact else 2 * bits, 2 * bits):
            _sort_by_digit(order, codes, shift, bits, items, moved, tally)
            _sort_by_digit(items, moved, shift + bits, bits, order, codes, tally)
        if insertion_sort(order, scores, REPAIR * n):
            return


@kernel
def _number_cells(scores: FloatArray, bits: int, order: IntArray, codes: IntArray) -> None:
    """Fill `codes` with each score's cell among 2^bits cells of equal width, the highest score in cell 0."""
    low, high = math.inf, -math.inf
    for i in range(len(scores)):
        low, high = min(low, scores[i]), max(high, scores[i])
    factor = (2.0**bits - 1.0) / (high - low) if high > low else 0.0
    factor = factor if factor < math.inf else 0.0
    for i in range(len(scores)):
        order[i], codes[i] = i, int((high - scores[i]) * factor)


@kernel
def _encode_bits(scores: FloatArray, order: IntArray, codes: IntArray) -> None:
    """Fill `codes` with 64-bit codes that increase, read as unsigned, as the score decreases."""
    whole = scores.view(codes.dtype)
    for i in range(len(scores)):
        # All bits of a positive double but the sign are flipped; a negative one falls as its magnitude grows.
        order[i], codes[i] = i, whole[i] ^ (~(whole[i] >> 63) & 0x7FFFFFFFFFFFFFFF)


@kernel
def _sort_by_digit(
    items: IntArray,
    codes: IntArray,
    shift: int,
    bits: int,
    sorted_items: IntArray,
    sorted_codes: IntArray,
    tally: IntArray,
) -> None:
    """Sort items and their codes by some bits of the code; the sort is stable."""
    mask, total = (1 << bits) - 1, 0
    tally[: mask + 1] = 0
    for i in range(len(codes)):
        tally[(codes[i] >> shift) & mask] += 1
    for digit in range(mask + 1):
        tally[digit], total = total, total + tally[digit]
    for i in range(len(codes)):
        digit = (codes[i] >> shift) & mask
        slot = tally[digit]
        sorted_items[slot], sorted_codes[slot], tally[digit] = items[i], codes[i], slot + 1


@kernel
def insertion_sort(order: IntArray, scores: FloatArray, budget: int) -> bool:
    """Sort a nearly sorted order, highest score first, by insertion; False if that takes too many moves."""
    for k in range(1, len(order)):
        item, to = order[k], k
        while to > 0 and scores[order[to - 1]] < scores[item]:
            order[to] = order[to - 1]
            to -= 1
        order[to] = item
        budget -= k - to
        if budget < 0:
            return False
    return True


# Long lists: passes over sorted scores sum, for each item, over all others that it meets, in linear time.
#
# A *receiver* r meets the *sources* s with d = z[s] - z[r] + edge > 0, and collects sums of weights[s] * c
# and weights[s] * c * (2 d - c), where c = min(d, width). Those with d > width lie beyond its window: of
# them, sums of weights and of weights * d are enough. Both are sorted, highest first, so that d only grows
# from one receiver to the next: sources are met, pass the window, and stay beyond it. So one merge counts how
# many each receiver meets, another how many lie beyond, and running sums up to these two indices are all that
# it reads. No step waits for a comparison that the processor would have to predict.
#
# Running sums are kept relative to the current source and carried to the next by adding non-negative terms:
# prefix sums of the scores themselves would lose as many digits as the scores are large. The part subtracted,
# for sources that have passed the window, is at most FAR times what they still add beyond it.
#
# Every pass also runs from the other end (step -1, scores negated), where the lower items receive. Receivers
# and sources are slices of the positions in a `Space`, whose factors depend on the step.
# The exponential margin factorises instead: no sorting is needed.

FAR = 16.0  # widths past the window at which running sums restart: differences of them lose one digit
WIDEST = 1e100  # the same if the window has no width, so that nothing is ever lost: squares stay doubles

Shape: TypeAlias = tuple[int, float, float, float]
"""Kind of the margin, its edge, width and scale."""


class Space(NamedTuple):
    """Arrays that a list may overwrite: fresh arrays would cost as much as the work, page by page."""

    order: IntArray  # items, highest score first
    counts: IntArray  # rows as filled by `_count_met`; before that, scratch for sorting
    tally: IntArray  # counts of digits
    places: FloatArray  # by position in the order: scores, upper and lower factors, result, vector
    sums: FloatArray  # as filled by `_fill_running_sums`


def workspace(n: int) -> Space:
    """Allocate a `Space` for lists of up to n items in a single block: small ones are freed page by page."""
    block = np.empty(14 * n + 4 + DIGITS)
    numbers, rest = block[: 5 * n + DIGITS].view(np.int64), block[5 * n + DIGITS :]
    order, counts, tally = np.split(numbers, (n, 5 * n))
    places, sums = np.split(rest, (5 * n,))
    return Space(order, counts.reshape(4, n), tally, places.reshape(5, n), sums.reshape(n + 1, 4))


@kernel
def _count_met(high: FloatArray, low: FloatArray, edge: float, width: float, counts: IntArray) -> None:
    """Count for each of `high` how many of `low` it meets and how many lie beyond: rows 0 and 1 of counts.

    Rows 2 and 3 are the same for each of `low`, counted from the other end.
    """
    n, m = len(high), len(low)
    r, s, q, t = 0, 0, 0, 0
    while max(r, q) < n and max(s, t) < m:  # both merges at once: a single one would stall on its results
        counts[0, r], counts[2, s], counts[1, q], counts[3, t] = s, n - r, t, n - q
        met, passed = low[s] - high[r] > -edge, low[t] - high[q] > width - edge
        s, r, t, q = s + met, r + 1 - met, t + passed, q + 1 - passed
    _merge(high, low, -edge, r, s, counts[0], counts[2])
    _merge(high, low, width - edge, q, t, counts[1], counts[3])


@kernel
def _merge(
    high: FloatArray, low: FloatArray, gap: float, r: int, s: int, above: IntArray, below: IntArray
) -> None:
    """Count from r and s on: for each high score the low ones with low - high > gap, and the reverse."""
    n, m = len(high), len(low)
    while r < n and s < m:
        above[r], below[s] = s, n - r
        met = low[s] - high[r] > gap
        s, r = s + met, r + 1 - met
    above[r:n] = m
    below[s:m] = 0


@kernel
def _collect(step: int, receivers: slice, sources: slice, shape: Shape, space: Space) -> float:
    """Add -step * factor * (sum of weights * |slope|) to the result; return the sum of factor * value.

    Works in blocks of receivers, at the start of which sources beyond the window are removed from the sums.
    """
    (_, edge, width, scale), met, beyond = shape, space.counts[1 - step], space.counts[2 - step]
    scores, coefficients = space.places[0, receivers], _side_factors(step, receivers, space)
    z, weights = space.places[0, sources], _side_factors(-step, sources, space)
    sums, grad = space.sums, space.places[3, receivers]
    n, m, turn, value = len(scores), len(z), float(step), 0.0
    top, first = (0, 0) if step > 0 else (n - 1, m - 1)
    # Of the removed sources: sums of weights and of weights * (z - level), and level, the z of the last.
    gone, away, level = 0.0, 0.0, 0.0
    limit = FAR * width if width - edge > -edge else WIDEST
    start, base = 0, 0
    while start < n:
        for s in range(base, beyond[top + step * start]):
            here = turn * z[first + step * s]
            away, gone, level = away + gone * (level - here), gone + weights[first + step * s], here
        base, stop = beyond[top + step * start], start + 1
        lead = turn * z[first + step * base] if base < m else -math.inf
        while stop < n and not (lead - turn * scores[top + step * stop]) + edge > limit:
            stop += 1
        _fill_running_sums(step, z, weights, base, met[top + step * (stop - 1)], sums)
        block, out = (start, stop), (gone, away, level)
        value += _receive(step, block, scores, coefficients, met, beyond, shape, out, sums, grad)
        start = stop
    return scale * value


@kernel
def _side_factors(step: int, items: slice, space: Space) -> FloatArray:
    """Return the factors of the upper items (step 1) or of the lower ones (step -1)."""
    return space.places[1 if step > 0 else 2, items]


@kernel
def _fill_running_sums(
    step: int, sources: FloatArray, weights: FloatArray, base: int, stop: int, sums: FloatArray
) -> None:
    """Fill row k of the sums: z of source k - 1; over base <= s < k, sums of weights * (z[s] - z)^0, 1, 2."""
    turn, first = float(step), 0 if step > 0 else len(sources) - 1
    last = turn * sources[first + step * base] if base < len(sources) else 0.0
    weight, linear, square = 0.0, 0.0, 0.0
    sums[base, 0], sums[base, 1], sums[base, 2], sums[base, 3] = last, weight, linear, square
    for k in range(base, stop):
        z = turn * sources[first + step * k]
        gap = last - z
        square += gap * (2.0 * linear + weight * gap)
        linear += weight * gap
        weight += weights[first + step * k]
        sums[k + 1, 0], sums[k + 1, 1], sums[k + 1, 2], sums[k + 1, 3] = z, weight, linear, square
        last = z


@kernel
def _receive(
    step: int,
    block: tuple[int, int],
    scores: FloatArray,
    coefficients: FloatArray,
    met: IntArray,
    beyond: IntArray,
    shape: Shape,
    out: tuple[float, float, float],
    sums: FloatArray,
    grad: FloatArray,
) -> float:
    """Compute the last part of `_collect` for a block of receivers."""
    (_, edge, width, scale), (gone, away, level), turn, value = shape, out, float(step), 0.0
    top = 0 if step > 0 else len(scores) - 1
    reach = width if width < math.inf else 0.0  # nothing lies beyond an infinite window
    for r in range(block[0], block[1]):
        i = top + step * r
        here, h, t = turn * scores[i], met[i], beyond[i]
        # Of the sources met, and of those beyond the window: d of the last; sums of weights * d and * d^2.
        near, far = (sums[h, 0] - here) + edge, (sums[t, 0] - here) + edge
        linear, far_linear = sums[h, 2] + near * sums[h, 1], sums[t, 2] + far * sums[t, 1]
        square = sums[h, 3] + near * (sums[h, 2] + linear)
        far_square = sums[t, 3] + far * (sums[t, 2] + far_linear)
        # Of all beyond: sums of weights, and of weights * d.
        weight, total = gone + sums[t, 1], far_linear + (away + gone * ((level - here) + edge))
        grad[i] -= turn * (2.0 * scale * coefficients[i] * ((linear - far_linear) + reach * weight))
        value += coefficients[i] * ((square - far_square) + reach * (2.0 * total - reach * weight))
    return value


@kernel
def _add_curvature(step: int, receivers: slice, sources: slice, scale: float, space: Space) -> None:
    """Add factor * (sum over the window of weight * curvature * (move - the source's)) to the result."""
    weights, pulls, sums = _side_factors(-step, sources, space), space.places[4, sources], space.sums
    first, inside, moved = 0 if step > 0 else len(weights) - 1, 0.0, 0.0
    sums[0, 0], sums[0, 1] = inside, moved
    for s in range(len(weights)):
        weight = weights[first + step * s]
        inside, moved = inside + weight, moved + weight * pulls[first + step * s]
        sums[s + 1, 0], sums[s + 1, 1] = inside, moved
    coefficients, moves = _side_factors(step, receivers, space), space.places[4, receivers]
    met, beyond, products = space.counts[1 - step], space.counts[2 - step], space.places[3, receivers]
    for r in range(len(coefficients)):
        h, t = met[r], beyond[r]
        pull = moves[r] * (sums[h, 0] - sums[t, 0]) - (sums[h, 1] - sums[t, 1])
        products[r] += 2.0 * scale * coefficients[r] * pull


@kernel
def _log_sum(step: int, scores: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the highest z = step * score of positive weight, and log(sum of weights * exp(z - highest)).

    Returned separately, since their sum would lose as many digits as the scores are large.
    """
    highest, total = -math.inf, 0.0
    for i in range(len(scores)):
        if weights[i] > 0.0:
            highest = max(highest, step * scores[i])
    for i in range(len(scores)):
        if weights[i] > 0.0:
            total += weights[i] * math.exp(step * scores[i] - highest)
    return (highest, math.log(total)) if total > 0.0 else (0.0, -math.inf)


@kernel
def _collect_exponential(step: int, receivers: slice, sources: slice, space: Space) -> float:
    """Compute the sums of `_collect` for phi(t) = exp(-t)."""
    highest, log_total = _log_sum(step, space.places[0, sources], _side_factors(-step, sources, space))
    scores, coefficients = space.places[0, receivers], _side_factors(step, receivers, space)
    grad, value = space.places[3, receivers], 0.0
    for r in range(len(scores)):
        if coefficients[r] > 0.0:  # avoids 0 * infinity
            amount = coefficients[r] * math.exp((highest - step * scores[r]) + log_total)
            grad[r] -= step * amount
            value += amount
    return value


@kernel
def _curve_exponential(step: int, receivers: slice, sources: slice, space: Space) -> None:
    """Compute the products of `_add_curvature` for phi(t) = exp(-t)."""
    z, weights, pulls = (
        space.places[0, sources],
        _side_factors(-step, sources, space),
        space.places[4, sources],
    )
    (highest, log_total), mean = _log_sum(step, z, weights), 0.0
    for i in range(len(z)):
        if weights[i] > 0.0:
            mean += weights[i] * math.exp((step * z[i] - highest) - log_total) * pulls[i]
    scores, coefficients = space.places[0, receivers], _side_factors(step, receivers, space)
    products, moves = space.places[3, receivers], space.places[4, receivers]
    for r in range(len(scores)):
        if coefficients[r] > 0.0:
            share = math.exp((highest - step * scores[r]) + log_total)
            products[r] += coefficients[r] * share * (moves[r] - mean)


@kernel
def order_items(scores: FloatArray, kind: int, space: Space) -> IntArray:
    """Return the items, sorted by descending score if the order matters."""
    order = space.order[: len(scores)]
    if kind == EXPONENTIAL:
        for i in range(len(scores)):
            order[i] = i
    else:
        rank_items(scores, order, space.counts, space.tally)
    return order


@kernel
def count_pairs(high: FloatArray, low: FloatArray, shape: Shape, counts: IntArray) -> None:
    """Call `_count_met` if the order matters."""
    if shape[0] != EXPONENTIAL:
        _count_met(high, low, shape[1], shape[2], counts)


@kernel
def cross(high: slice, low: slice, shape: Shape, second: bool, space: Space) -> float:
    """Sum over i in high, j in low of upper factor[i] * lower factor[j] * phi(scores[i] - scores[j]).

    Its gradient is added to the results; if `second`, its Hessian times the vector, and 0 is returned.
    """
    value = 0.0
    for step in (-1, 1):  # the lower items receive, then the upper ones
        receivers, sources = (high, low) if step > 0 else (low, high)
        if second and shape[0] == EXPONENTIAL:
            _curve_exponential(step, receivers, sources, space)
        elif second:
            _add_curvature(step, receivers, sources, shape[3], space)
        elif shape[0] == EXPONENTIAL:
            value = _collect_exponential(step, receivers, sources, space)
        else:
            value = _collect(step, receivers, sources, shape, space)
    return value


@kernel
def _all_long(
    scores: FloatArray,
    weights: FloatArray,
    vector: FloatArray,
    shape: Shape,
    second: bool,
    space: Space,
    result: FloatArray,
) -> float:
    """Sum over i, j of weights[i] * phi(scores[i] - scores[j]), with its gradient, or product if `second`."""
    n, order = len(scores), order_items(scores, shape[0], space)
    z, upper, lower = space.places[0, :n], space.places[1, :n], space.places[2, :n]
    sorted_result, moves = space.places[3, :n], space.places[4, :n]
    for k in range(n):
        z[k], upper[k], moves[k] = scores[order[k]], weights[order[k]], vector[order[k]]
        lower[k], sorted_result[k] = 1.0, 0.0
    count_pairs(z, z, shape, space.counts)
    value = cross(slice(0, n), slice(0, n), shape, second, space)
    for k in range(n):
        result[order[k]] = sorted_result[k]
    return value


@kernel
def gather_values(values: FloatArray, items: IntArray, result: FloatArray) -> None:
    """Fill the result with the values of the items."""
    for k in range(len(items)):
        result[k] = values[items[k]]


@kernel
def all_chunk(
    scores: FloatArray,
    weights: FloatArray,
    vector: FloatArray,
    chunk: Chunk,
    limit: int,
    shape: Shape,
    second: bool,
    space: Space,
    values: FloatArray,
    result: FloatArray,
) -> None:
    """Compute all pairs in queries of more than `limit` rows; products, without values, if `second`."""
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        if b - a > limit:
            value = _all_long(scores[a:b], weights[a:b], vector[a:b], shape, second, space, result[a:b])
            if not second:
                values[q] = value

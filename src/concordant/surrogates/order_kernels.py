"""Listwise hinges: the loss and score of an order relative to the labels, and the worst order of a list."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from concordant._base.combinatorics import assign, interleave
from concordant._base.segments import kernel
from concordant.surrogates.long_pair_kernels import Space, insertion_sort, rank_items
from concordant.surrogates.surrogate import Chunk
from concordant.types import FloatArray, IntArray

ADDITIVE, PRECISION, PAIRS = 0, 1, 2  # kinds of loss
SHORT = 40  # items up to which insertion sort is faster than counting


class Labels(NamedTuple):
    """Labels of all lists: weights and best sums by query; gains, label numbers and gold coefficients by row.

    `gold` is (items of lower labels) - (items of higher labels).
    """

    weights: FloatArray
    gains: FloatArray
    codes: IntArray
    gold: FloatArray
    best: FloatArray
    kind: int
    discounts: FloatArray


class ListLabels(NamedTuple):
    """Labels of one list, without its weight."""

    gains: FloatArray
    codes: IntArray
    gold: FloatArray
    best: float
    kind: int
    discounts: FloatArray


@kernel
def _labels_of(labels: Labels, q: int, a: int, b: int) -> ListLabels:
    gains, codes, gold = labels.gains[a:b], labels.codes[a:b], labels.gold[a:b]
    return ListLabels(gains, codes, gold, labels.best[q], labels.kind, labels.discounts)


@kernel
def _order_loss(
    order: IntArray, gains: FloatArray, codes: IntArray, kind: int, discounts: FloatArray
) -> float:
    """Loss of the order; if additive, without the best order's sum."""
    value, n_found, n_relevant = 0.0, 0, 0
    label_counts, label_gains = np.zeros(len(order), np.int64), np.zeros(len(order))
    for position in range(len(order)):
        item = order[position]
        if kind == ADDITIVE:
            value -= gains[item] * discounts[position]
        elif kind == PRECISION:
            n_found += int(gains[item] > 0.0)
            n_relevant = n_found
            value += n_found / (position + 1.0) if gains[item] > 0.0 else 0.0
        else:
            for level in range(codes[item]):
                value += label_counts[level] * (gains[item] - label_gains[level])
            label_counts[codes[item]] += 1
            label_gains[codes[item]] = gains[item]
    if kind == PRECISION:
        return 1.0 - value / n_relevant if n_relevant else 0.0
    return value


@kernel
def _order_coefficients(
    order: IntArray, codes: IntArray, sizes: IntArray, gold: FloatArray, change: FloatArray
) -> None:
    """Fill each item's coefficient in F(order) - F(gold), over pairs of different labels, times n(n - 1)/2.

    `sizes` counts the items of each label.
    """
    label_counts = np.zeros(len(order), np.int64)
    for position in range(len(order)):
        item = order[position]
        level = codes[item]
        higher = position - label_counts[level]  # items of other labels above it
        label_counts[level] += 1
        change[item] = len(order) - sizes[level] - 2 * higher - gold[item]


@kernel
def _centred_dot(scores: FloatArray, change: FloatArray, scale: float) -> float:
    """Sum of scores * scale * change, which add up to 0; relative to the first, so that levels cancel."""
    total = 0.0
    for i in range(len(scores)):
        total += (scores[i] - scores[0]) * (scale * change[i])
    return total


@kernel
def _is_comparable(scores: FloatArray) -> bool:
    """True if the scores and their differences are finite."""
    low, high, finite = math.inf, -math.inf, True
    for i in range(len(scores)):
        low, high = min(low, scores[i]), max(high, scores[i])
        finite &= math.isfinite(scores[i])
    return finite and high - low < math.inf


@kernel
def _level_sizes(codes: IntArray) -> IntArray:
    sizes = np.zeros(len(codes), np.int64)
    for i in range(len(codes)):
        sizes[codes[i]] += 1
    return sizes


@kernel
def _find_worst_order(
    scores: FloatArray, labels: ListLabels, harmonic: FloatArray, space: Space, order: IntArray
) -> None:
    """Fill the order that maximises loss + F: items of equal label are sorted by score."""
    n, by_score = len(scores), space.order[: len(scores)]
    if n > SHORT:
        rank_items(scores, by_score, space.counts, space.tally)
    else:
        for i in range(n):
            by_score[i] = i
        insertion_sort(by_score, scores, n * n)
    rate = 4.0 / (n * (n - 1.0))
    if labels.kind == ADDITIVE:
        gains, level = labels.gains, scores[by_score[0]]
        slopes, sorted_gains = space.places[0, :n], space.places[1, :n]
        for position in range(n):
            slopes[position] = rate * (scores[by_score[position]] - level)
            sorted_gains[position] = gains[by_score[position]]
        assign(sorted_gains, slopes, labels.discounts, order)
        for position in range(n):
            order[position] = by_score[order[position]]
    else:
        _interleave_labels(scores, labels.gains, by_score, harmonic, rate, space, order)


@kernel
def _interleave_labels(
    scores: FloatArray,
    gains: FloatArray,
    by_score: IntArray,
    harmonic: FloatArray,
    rate: float,
    space: Space,
    order: IntArray,
) -> None:
    """Fill the order that maximises 1 - AP + F."""
    n, level, n_high, n_low = len(scores), scores[by_score[0]], 0, 0
    highs, lows, above = space.counts[0, :n], space.counts[1, :n], space.counts[2, :n]
    high, low = space.places[0, :n], space.places[1, :n]
    for position in range(n):
        item = by_score[position]
        if gains[item] > 0.0:
            highs[n_high], high[n_high], n_high = item, scores[item] - level, n_high + 1
        else:
            lows[n_low], low[n_low], n_low = item, scores[item] - level, n_low + 1
    interleave(high[:n_high], low[:n_low], harmonic, rate, above)
    i, position = 0, 0
    for j in range(n_low):
        while i < above[j]:
            order[position], i, position = highs[i], i + 1, position + 1
        order[position], position = lows[j], position + 1
    while i < n_high:
        order[position], i, position = highs[i], i + 1, position + 1


@kernel
def worst_chunk(
    scores: FloatArray,
    labels: Labels,
    harmonic: FloatArray,
    chunk: Chunk,
    space: Space,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Maximise loss - [F(gold) - F(order)] over the orders of each query, with its slope."""
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        n = b - a
        values[q], grad[a:b] = 0.0, 0.0
        sizes = _level_sizes(labels.codes[a:b])
        if n == 0 or sizes[0] == n:  # a single label: every order is right
            continue
        if not _is_comparable(scores[a:b]):
            values[q], grad[a:b] = math.nan, math.nan
            continue
        order, list_labels = np.empty(n, np.int64), _labels_of(labels, q, a, b)
        _find_worst_order(scores[a:b], list_labels, harmonic, space, order)
        gains, codes, gold, best, kind, discounts = list_labels
        _order_coefficients(order, codes, sizes, gold, grad[a:b])
        scale, weight = 2.0 / (n * (n - 1.0)), labels.weights[q]
        value = best + _order_loss(order, gains, codes, kind, discounts)
        value += _centred_dot(scores[a:b], grad[a:b], scale)
        values[q] = weight * max(value, 0.0)
        for i in range(a, b):
            grad[i] *= scale * weight


# Listwise hinges that enumerate all orders of a short list, or all interleavings of its two labels.


@kernel
def _next_order(order: IntArray) -> bool:
    """Step to the next permutation in lexicographic order; False after the last. Equal entries count once."""
    i = len(order) - 2
    while i >= 0 and order[i] >= order[i + 1]:
        i -= 1
    if i < 0:
        return False
    j = len(order) - 1
    while order[j] <= order[i]:
        j -= 1
    order[i], order[j] = order[j], order[i]
    left, right = i + 1, len(order) - 1
    while left < right:
        order[left], order[right] = order[right], order[left]
        left, right = left + 1, right - 1
    return True


@kernel
def _fill_arrangement(labels: IntArray, codes: IntArray, by_score: IntArray, order: IntArray) -> None:
    """Fill the order with these labels from the top, items of each label sorted by score."""
    taken = np.zeros(2, np.int64)
    for position in range(len(labels)):
        label = labels[position]
        while codes[by_score[taken[label]]] != label:
            taken[label] += 1
        order[position] = by_score[taken[label]]
        taken[label] += 1


@kernel
def _is_inverted(order: IntArray, codes: IntArray) -> bool:
    """True if some item stands below an item of a lower label."""
    has_inversion = False
    for position in range(1, len(order)):
        has_inversion |= codes[order[position]] > codes[order[position - 1]]
    return has_inversion


@kernel
def _add_soft(
    margin: float,
    temperature: float,
    change: FloatArray,
    along: float,
    sums: FloatArray,
    grad: FloatArray,
    product: FloatArray,
) -> None:
    """Add exp(margin/T), all relative to the highest margin so far, sums[1]; sums[2] is of along.

    sums[0] excludes the highest term: log1p keeps the digits of the others.
    """
    lower = margin <= sums[1]
    if not lower:
        fade = math.exp((sums[1] - margin) / temperature)
        sums[0], sums[1], sums[2] = (sums[0] + 1.0) * fade, margin, sums[2] * fade
        for i in range(len(grad)):
            grad[i], product[i] = grad[i] * fade, product[i] * fade
    share = math.exp((margin - sums[1]) / temperature)
    sums[0], sums[2] = sums[0] + (share if lower else 0.0), sums[2] + share * along
    for i in range(len(grad)):
        grad[i] += share * change[i]
        product[i] += share * along * change[i]


@kernel
def _add_positive(margin: float, change: FloatArray, sums: FloatArray, grad: FloatArray) -> None:
    if margin > 0.0:
        sums[0] += margin
        for i in range(len(grad)):
            grad[i] += change[i]


@kernel
def _add_orders(
    scores: FloatArray,
    labels: ListLabels,
    temperature: float,
    by_label: bool,
    vector: FloatArray,
    sums: FloatArray,
    grad: FloatArray,
    product: FloatArray,
) -> None:
    """Sum loss - dF over orders that invert a label; `by_label`: one per arrangement of the labels."""
    gains, codes, gold, best, kind, discounts = labels
    n, sizes = len(scores), _level_sizes(codes)
    scale = 2.0 / (n * (n - 1.0))
    order, change, by_score = np.arange(n), np.empty(n), np.argsort(-scores)
    walk, more = np.sort(codes) if by_label else np.arange(n), True
    while more:
        if by_label:
            _fill_arrangement(walk, codes, by_score, order)
        else:
            for i in range(n):
                order[i] = walk[i]
        more = _next_order(walk)
        if not _is_inverted(order, codes):
            continue
        _order_coefficients(order, codes, sizes, gold, change)
        margin = (
            best + _order_loss(order, gains, codes, kind, discounts) + _centred_dot(scores, change, scale)
        )
        if temperature > 0.0:
            _add_soft(margin, temperature, change, _centred_dot(vector, change, 1.0), sums, grad, product)
        else:
            _add_positive(margin, change, sums, grad)


@kernel
def _sum_orders(
    scores: FloatArray,
    labels: ListLabels,
    temperature: float,
    by_label: bool,
    vector: FloatArray,
    grad: FloatArray,
    product: FloatArray,
) -> float:
    """Sum of (loss - dF)_+, or, if the temperature T is > 0, T log(1 + sum of exp((loss - dF)/T)).

    Fills the gradient and, for the latter, the Hessian times the vector.
    """
    n, sums = len(scores), np.zeros(3)
    grad[:], product[:] = 0.0, 0.0
    if n < 2:
        return 0.0
    _add_orders(scores, labels, temperature, by_label, vector, sums, grad, product)
    scale, whole = 2.0 / (n * (n - 1.0)), 1.0 + sums[0] if temperature > 0.0 else 1.0
    for i in range(n):
        grad[i] *= scale / whole
        if temperature > 0.0:
            product[i] = (scale * scale * product[i] - scale * sums[2] * grad[i]) / (whole * temperature)
    return float(sums[1] + temperature * math.log1p(sums[0]) if temperature > 0.0 else sums[0])


@kernel
def enumerated_chunk(
    scores: FloatArray,
    vector: FloatArray,
    labels: Labels,
    temperature: float,
    by_label: bool,
    chunk: Chunk,
    values: FloatArray,
    grad: FloatArray,
    product: FloatArray,
) -> None:
    """Sum over the orders of each query, with its slope and, of a soft-max, its Hessian times the vector."""
    offsets, first, last = chunk
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        how = _labels_of(labels, q, a, b), temperature, by_label, vector[a:b], grad[a:b], product[a:b]
        values[q] = labels.weights[q] * _sum_orders(scores[a:b], *how)
        for i in range(a, b):
            grad[i] *= labels.weights[q]
            product[i] *= labels.weights[q]

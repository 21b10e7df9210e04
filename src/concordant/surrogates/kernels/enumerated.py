"""Listwise hinges that add up all orders of a short list, or all interleavings of its two labels."""

from __future__ import annotations

import math

import numpy as np

from concordant._segments import kernel
from concordant.surrogates.kernels.orders import centred, lean, level_sizes, lost
from concordant.types import FloatArray, IntArray

__all__ = ["enumerated_chunk", "enumerated_product_chunk"]


@kernel
def next_order(order: IntArray) -> bool:
    """Step to the next arrangement in lexicographic order; False after the last. Equal entries are one."""
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
def arranged(labels: IntArray, codes: IntArray, by_score: IntArray, order: IntArray) -> None:
    """Fill the order whose labels are these from the top, items of each label by score."""
    taken = np.zeros(2, np.int64)
    for place in range(len(labels)):
        label = labels[place]
        while codes[by_score[taken[label]]] != label:
            taken[label] += 1
        order[place] = by_score[taken[label]]
        taken[label] += 1


@kernel
def inverted(order: IntArray, codes: IntArray) -> bool:
    """Whether some item stands below one of a lower label."""
    wrong = False
    for place in range(1, len(order)):
        wrong |= codes[order[place]] > codes[order[place - 1]]
    return wrong


@kernel
def add_soft(
    margin: float,
    temperature: float,
    change: FloatArray,
    along: float,
    sums: FloatArray,
    grad: FloatArray,
    product: FloatArray,
) -> None:
    """Add exp(margin/T), all relative to the highest margin so far, sums[1]; sums[2] is of along.

    sums[0] leaves the highest out: log1p keeps the digits of the others.
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
def add_positive(margin: float, change: FloatArray, sums: FloatArray, grad: FloatArray) -> None:
    """Add what is positive."""
    if margin > 0.0:
        sums[0] += margin
        for i in range(len(grad)):
            grad[i] += change[i]


@kernel
def add_orders(
    scores: FloatArray,
    gains: FloatArray,
    codes: IntArray,
    gold: FloatArray,
    best: float,
    kind: int,
    discounts: FloatArray,
    temperature: float,
    by_label: bool,
    vector: FloatArray,
    sums: FloatArray,
    grad: FloatArray,
    product: FloatArray,
) -> None:
    """Add up loss - dF over orders that invert a label; `by_label`: one for each arrangement of labels."""
    n, sizes = len(scores), level_sizes(codes)
    scale = 2.0 / (n * (n - 1.0))
    order, change, by_score = np.arange(n), np.empty(n), np.argsort(-scores)
    walk, more = np.sort(codes) if by_label else np.arange(n), True
    while more:
        if by_label:
            arranged(walk, codes, by_score, order)
        else:
            order[:] = walk
        more = next_order(walk)
        if not inverted(order, codes):
            continue
        lean(order, codes, sizes, gold, change)
        margin = best + lost(order, gains, codes, kind, discounts) + centred(scores, change, scale)
        if temperature > 0.0:
            add_soft(margin, temperature, change, centred(vector, change, 1.0), sums, grad, product)
        else:
            add_positive(margin, change, sums, grad)


@kernel
def total(
    scores: FloatArray,
    gains: FloatArray,
    codes: IntArray,
    gold: FloatArray,
    best: float,
    kind: int,
    discounts: FloatArray,
    temperature: float,
    by_label: bool,
    vector: FloatArray,
    grad: FloatArray,
    product: FloatArray,
) -> float:
    """Sum of (loss - dF)_+, or, where the temperature T is > 0, T log(1 + sum of exp((loss - dF)/T)).

    Fills the gradient and, of the latter, the Hessian times the vector.
    """
    n, sums = len(scores), np.zeros(3)
    grad[:], product[:] = 0.0, 0.0
    if n < 2:
        return 0.0
    labels = gains, codes, gold, best, kind, discounts, temperature, by_label
    add_orders(scores, *labels, vector, sums, grad, product)
    scale, whole = 2.0 / (n * (n - 1.0)), 1.0 + sums[0] if temperature > 0.0 else 1.0
    for i in range(n):
        grad[i] *= scale / whole
        if temperature > 0.0:
            product[i] = (scale * scale * product[i] - scale * sums[2] * grad[i]) / (whole * temperature)
    return float(sums[1] + temperature * math.log1p(sums[0]) if temperature > 0.0 else sums[0])


@kernel
def enumerated_chunk(
    scores: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    codes: IntArray,
    gold: FloatArray,
    best: FloatArray,
    kind: int,
    discounts: FloatArray,
    temperature: float,
    by_label: bool,
    offsets: IntArray,
    first: int,
    last: int,
    values: FloatArray,
    grad: FloatArray,
) -> None:
    """Sum over the orders of each query, and its slope."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        labels = gains[a:b], codes[a:b], gold[a:b], best[q], kind, discounts, temperature, by_label
        values[q] = weights[q] * total(scores[a:b], *labels, scores[a:b], grad[a:b], np.empty(b - a))
        for i in range(a, b):
            grad[i] *= weights[q]


@kernel
def enumerated_product_chunk(
    scores: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    codes: IntArray,
    gold: FloatArray,
    best: FloatArray,
    kind: int,
    discounts: FloatArray,
    temperature: float,
    by_label: bool,
    vector: FloatArray,
    offsets: IntArray,
    first: int,
    last: int,
    product: FloatArray,
) -> None:
    """Hessian products of the same."""
    for q in range(first, last):
        a, b = offsets[q], offsets[q + 1]
        labels = gains[a:b], codes[a:b], gold[a:b], best[q], kind, discounts, temperature, by_label
        total(scores[a:b], *labels, vector[a:b], np.empty(b - a), product[a:b])
        for i in range(a, b):
            product[i] *= weights[q]

"""Average precision, in expectation over tied scores."""

from __future__ import annotations

import math

from concordant._segments import kernel
from concordant.metrics.gains import BINARY
from concordant.metrics.kernels.head import block_end, gain_of, has_ties, head, scratch
from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["average_precision_chunk"]


@kernel
def precision_sum(relevant: float, block: int, above: float, start: int, slots: int) -> float:
    """Expected sum of precision at the relevant items in the first `slots` places of a tie block.

    Of `block` items `relevant` are relevant; `above` relevant ones stand in the `start` places before.
    """
    total = 0.0
    for i in range(slots):
        others = i * (relevant - 1.0) / (block - 1.0) if block > 1 else 0.0
        total += relevant / block * (above + 1.0 + others) / (start + i + 1.0)
    return total


@kernel
def precision_per_found(
    relevant: int, block: int, above: float, start: int, slots: int, before: float
) -> float:
    """Expected (before + precision sum in the block) / (relevant items found), over a block cut at `slots`.

    Given how many of the relevant items fall into the first `slots` places (hypergeometric), their places
    are uniform, so the sum is that of a block of `slots` items.
    """
    total = 0.0
    for found in range(max(0, relevant - (block - slots)), min(relevant, slots) + 1):
        if above + found == 0:
            continue
        chance = math.exp(
            log_choose(relevant, found)
            + log_choose(block - relevant, slots - found)
            - log_choose(block, slots)
        )
        total += chance * (before + precision_sum(float(found), slots, above, start, slots)) / (above + found)
    return total


@kernel
def log_choose(n: int, k: int) -> float:
    """Logarithm of the binomial coefficient."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


@kernel
def average_precision(
    scores: FloatArray,
    grades: FloatArray,
    order: IntArray,
    size: int,
    k: int,
    strict: bool,
    relevant_from: float,
    per_found: bool,
) -> float:
    """Expected sum of precision at the relevant items of the first k places (McSherry and Najork 2008).

    With `per_found`, the expected quotient of that sum and the number of relevant items found there.
    """
    total, above, start = 0.0, 0.0, 0
    while start < min(size, k):
        end = block_end(scores, order, start, size, strict)
        relevant = 0.0
        for place in range(start, end):
            relevant += gain_of(grades[order[place]], BINARY, relevant_from)
        slots = min(end, k) - start
        if per_found and end >= min(size, k):
            return precision_per_found(int(relevant), end - start, above, start, slots, total)
        if relevant > 0:
            total += precision_sum(relevant, end - start, above, start, slots)
        above += relevant
        start = end
    return total


@kernel
def average_precision_chunk(
    scores: FloatArray,
    grades: FloatArray,
    offsets: IntArray,
    presorted: IntArray,
    first: int,
    last: int,
    k: int,
    values: FloatArray,
    relevant: FloatArray,
    tied: BoolArray,
    strict: bool,
    relevant_from: float,
    per_found: bool,
) -> None:
    """Fill the precision sums and the numbers of relevant items of these queries."""
    order, spare, top = scratch(offsets, first, last)
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        s, y = scores[begin:end], grades[begin:end]
        values[q], relevant[q], tied[q] = 0.0, 0.0, False
        for grade in y:
            relevant[q] += gain_of(grade, BINARY, relevant_from)
        if relevant[q] > 0:
            size = head(s, k, strict, presorted[begin:end], order, spare, top)
            tied[q] = has_ties(s, order, size, k)
            values[q] = average_precision(s, y, order, size, k, strict, relevant_from, per_found)

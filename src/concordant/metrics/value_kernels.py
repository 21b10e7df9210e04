"""Values of the metrics, one query each: gain sums, average precision, the cascade user, discordant pairs."""

from __future__ import annotations

import math

import numpy as np

from concordant._base.segments import kernel
from concordant.metrics.convention import BINARY
from concordant.metrics.list_kernels import (
    SELECT,
    block_end,
    gain_of,
    has_ties,
    head,
    highest,
    scratch,
    select,
    sort_rows,
)
from concordant.types import BoolArray, FloatArray, IntArray

# Sums of gain times discount, and their best value.

WHOLE_GRADES = 32  # whole grades below this are counted rather than sorted


@kernel
def additive(
    scores: FloatArray,
    grades: FloatArray,
    order: IntArray,
    size: int,
    k: int,
    strict: bool,
    kind: int,
    parameter: float,
    discounts: FloatArray,
    cumulated: FloatArray,
) -> float:
    """Sum over the first k places of gain times discount; a tie block shares its mean discount."""
    total, start = 0.0, 0
    while start < min(size, k):
        end = block_end(scores, order, start, size, strict)
        mass = 0.0
        for position in range(start, end):
            mass += gain_of(grades[order[position]], kind, parameter)
        if end - start == 1:
            total += mass * discounts[start]
        else:
            total += mass * (cumulated[min(end, k)] - cumulated[start]) / (end - start)
        start = end
    return total


@kernel
def _count_grades(grades: FloatArray, counts: IntArray) -> bool:
    """Fill the histogram of whole grades below its length; False if a grade is not one of these."""
    counts[:] = 0
    for grade in grades:
        level = int(grade)
        if level >= len(counts) or level != grade:
            return False
        counts[level] += 1
    return True


@kernel
def _ideal_from_counts(counts: IntArray, k: int, kind: int, parameter: float, discounts: FloatArray) -> float:
    """Best additive value of a histogram of grades: the highest first."""
    total, start = 0.0, 0
    for level in range(len(counts) - 1, -1, -1):
        end = min(start + counts[level], k)
        for position in range(start, end):
            total += gain_of(float(level), kind, parameter) * discounts[position]
        start = end
    return total


@kernel
def _ideal(
    grades: FloatArray,
    k: int,
    kind: int,
    parameter: float,
    discounts: FloatArray,
    order: IntArray,
    spare: IntArray,
    top: FloatArray,
) -> float:
    """Best additive value: the k highest grades in descending order; gains rise with the grade."""
    if k < len(grades) and k <= SELECT:
        filled = select(grades, k, top, order)
    else:
        sort_rows(grades, order, spare)
        filled = min(k, len(grades))
    total = 0.0
    for position in range(filled):
        total += gain_of(grades[order[position]], kind, parameter) * discounts[position]
    return total


@kernel
def additive_chunk(
    scores: FloatArray,
    grades: FloatArray,
    offsets: IntArray,
    presorted: IntArray,
    first: int,
    last: int,
    k: int,
    values: FloatArray,
    best: FloatArray,
    tied: BoolArray,
    strict: bool,
    kind: int,
    parameter: float,
    discounts: FloatArray,
    cumulated: FloatArray,
    normalise: bool,
) -> None:
    """Fill `values`, and `best` with the best value (normalise) or the highest gain, of these queries."""
    order, spare, top = scratch(offsets, first, last)
    counts = np.empty(WHOLE_GRADES, np.int64)
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        s, y = scores[begin:end], grades[begin:end]
        values[q], best[q], tied[q] = 0.0, 0.0, False
        if end == begin:
            continue
        size = head(s, k, strict, presorted[begin:end], order, spare, top)
        tied[q] = has_ties(s, order, size, k)
        values[q] = additive(s, y, order, size, k, strict, kind, parameter, discounts, cumulated)
        if not normalise:
            best[q] = gain_of(highest(y), kind, parameter)
        elif _count_grades(y, counts):
            best[q] = _ideal_from_counts(counts, k, kind, parameter, discounts)
        else:
            best[q] = _ideal(y, k, kind, parameter, discounts, order, spare, top)


# Average precision, in expectation over tied scores.


@kernel
def _precision_sum(relevant: float, block: int, above: float, start: int, slots: int) -> float:
    """Expected sum of precision at the relevant items in the first `slots` places of a tie block.

    Of `block` items `relevant` are relevant; `above` relevant ones stand in the `start` places before.
    """
    total = 0.0
    for i in range(slots):
        others = i * (relevant - 1.0) / (block - 1.0) if block > 1 else 0.0
        total += relevant / block * (above + 1.0 + others) / (start + i + 1.0)
    return total


@kernel
def _precision_per_found(
    relevant: int, block: int, above: float, start: int, slots: int, before: float
) -> float:
    """Expected (before + precision sum in the block) / (relevant items found), over a block cut at `slots`.

    Given how many of the relevant items fall into the first `slots` places (hypergeometric), their places
    are uniform, so the sum is that of a block of `slots` items.
    """
    total = 0.0
    for n_found in range(max(0, relevant - (block - slots)), min(relevant, slots) + 1):
        if above + n_found == 0:
            continue
        chance = math.exp(
            _log_choose(relevant, n_found)
            + _log_choose(block - relevant, slots - n_found)
            - _log_choose(block, slots)
        )
        total += (
            chance * (before + _precision_sum(float(n_found), slots, above, start, slots)) / (above + n_found)
        )
    return total


@kernel
def _log_choose(n: int, k: int) -> float:
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
        for position in range(start, end):
            relevant += gain_of(grades[order[position]], BINARY, relevant_from)
        slots = min(end, k) - start
        if per_found and end >= min(size, k):
            return _precision_per_found(int(relevant), end - start, above, start, slots, total)
        if relevant > 0:
            total += _precision_sum(relevant, end - start, above, start, slots)
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


# The cascade user stops at an item with a probability that depends on its grade.

NEGLIGIBLE = -41.5  # log(1e-18): a probability below this cannot be seen in the sum


@kernel
def _passing_means(passing: FloatArray, depth: int, means: FloatArray) -> None:
    """Fill `means[j]` with the mean over j-subsets of the product of `passing` (elementary symmetric mean).

    One item at a time; every term is non-negative, so nothing cancels.
    """
    for j in range(1, depth + 1):
        means[j] = 0.0
    means[0] = 1.0
    for t in range(1, len(passing) + 1):
        for j in range(min(t, depth), 0, -1):
            means[j] = means[j] * (t - j) / t + means[j - 1] * passing[t - 1] * j / t


@kernel
def _cascade_block(passing: FloatArray, block: int, start: int, slots: int) -> float:
    """Expected sum of (probability of stopping at a place)/place, over the first places of a tie block.

    `passing` holds the probability of passing by each item that can stop the user at all; the block's other
    items never do. Walks the places with the distribution of how many stoppers came before.
    """
    stoppers, depth = len(passing), min(len(passing), slots)
    slowest = highest(passing)
    if slowest < 1.0:
        depth = 1 if slowest <= 0.0 else min(depth, int(NEGLIGIBLE / math.log(slowest)) + 1)
    means, before = np.empty(depth + 2), np.zeros(depth + 2)
    means[depth + 1] = 0.0
    _passing_means(passing, depth, means)
    before[0], total = 1.0, 0.0
    for rank in range(1, slots + 1):
        left = block - rank + 1.0
        stop = 0.0
        for j in range(min(depth, rank), -1, -1):
            chance = (stoppers - j) / left
            if j < depth:
                stop += before[j] * chance * (means[j] - means[j + 1])
            arriving = before[j - 1] * (stoppers - j + 1) / left if j > 0 else 0.0
            before[j] = before[j] * (1.0 - chance) + arriving
        total += stop / (start + rank)
    return total


@kernel
def _cascade(
    scores: FloatArray,
    grades: FloatArray,
    order: IntArray,
    size: int,
    k: int,
    strict: bool,
    kind: int,
    parameter: float,
    scale: float,
    passing: FloatArray,
) -> float:
    """Expected reciprocal of the place where the user stops, within k; an item stops with gain * scale."""
    total, reach, start = 0.0, 1.0, 0
    while start < min(size, k) and reach > 0.0:
        end = block_end(scores, order, start, size, strict)
        stoppers, product = 0, 1.0
        for position in range(start, end):
            stop = gain_of(grades[order[position]], kind, parameter) * scale
            if stop > 0.0:
                passing[stoppers] = 1.0 - stop
                product *= 1.0 - stop
                stoppers += 1
        if stoppers > 0 and end - start == 1:
            total += reach * (1.0 - passing[0]) / (start + 1)
        elif stoppers > 0:
            total += reach * _cascade_block(passing[:stoppers], end - start, start, min(end, k) - start)
        reach *= product
        start = end
    return total


@kernel
def cascade_chunk(
    scores: FloatArray,
    grades: FloatArray,
    offsets: IntArray,
    presorted: IntArray,
    first: int,
    last: int,
    k: int,
    values: FloatArray,
    best: FloatArray,
    tied: BoolArray,
    strict: bool,
    kind: int,
    parameter: float,
    scale: float,
) -> None:
    """Fill the cascade value and the highest gain of these queries."""
    order, spare, top = scratch(offsets, first, last)
    passing = np.empty(len(order))
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        s, y = scores[begin:end], grades[begin:end]
        values[q], best[q], tied[q] = 0.0, 0.0, False
        if end > begin:
            best[q] = gain_of(highest(y), kind, parameter)
        if best[q] > 0.0:
            size = head(s, k, strict, presorted[begin:end], order, spare, top)
            tied[q] = has_ties(s, order, size, k)
            values[q] = _cascade(s, y, order, size, k, strict, kind, parameter, scale, passing)


# Pairs of grades that the scores order wrongly.


@kernel
def _sum_below(counts: FloatArray, sums: FloatArray, level: int, gain: float, weighted: bool) -> float:
    """Weight of the items counted so far whose level is below this one (Fenwick tree query)."""
    count, mass = 0.0, 0.0
    while level > 0:
        count += counts[level]
        mass += sums[level]
        level -= level & -level
    return count * gain - mass if weighted else count


@kernel
def _rank_levels(gains: FloatArray, order: IntArray, spare: IntArray, levels: IntArray) -> int:
    """Fill `levels` with the rank of each gain among the distinct gains, 0 lowest; return their number."""
    sort_rows(gains, order, spare)
    level = 0
    for position in range(len(gains) - 1, -1, -1):
        if position + 1 < len(gains) and gains[order[position]] != gains[order[position + 1]]:
            level += 1
        levels[order[position]] = level
    return level + 1


@kernel
def _insert(counts: FloatArray, sums: FloatArray, level: int, gain: float) -> None:
    """Count one more item of this level (Fenwick tree update)."""
    slot = level + 1
    while slot < len(counts):
        counts[slot] += 1.0
        sums[slot] += gain
        slot += slot & -slot


@kernel
def _discordance(
    scores: FloatArray,
    gains: FloatArray,
    order: IntArray,
    levels: IntArray,
    n_levels: int,
    strict: bool,
    weighted: bool,
) -> tuple[float, float]:
    """Weight of the misordered pairs of unequal gain (ties: half), and of all pairs.

    A pair weighs 1, or the difference of its gains. One sort and a Fenwick tree over the levels of gain.
    """
    counts, sums = np.zeros(n_levels + 1), np.zeros(n_levels + 1)
    wrong, start = 0.0, 0
    while start < len(order):
        end = block_end(scores, order, start, len(order), strict)
        for position in range(start, end):
            row = order[position]
            wrong += 0.5 * _sum_below(counts, sums, levels[row], gains[row], weighted)
        for position in range(start, end):
            _insert(counts, sums, levels[order[position]], gains[order[position]])
        for position in range(start, end):
            row = order[position]
            wrong += 0.5 * _sum_below(counts, sums, levels[row], gains[row], weighted)
        start = end
    pairs = 0.0
    for row in range(len(gains)):
        pairs += _sum_below(counts, sums, levels[row], gains[row], weighted)
    return wrong, pairs


@kernel
def discordance_chunk(
    scores: FloatArray,
    grades: FloatArray,
    offsets: IntArray,
    presorted: IntArray,
    first: int,
    last: int,
    k: int,
    values: FloatArray,
    pairs: FloatArray,
    tied: BoolArray,
    strict: bool,
    kind: int,
    parameter: float,
    weighted: bool,
) -> None:
    """Fill the discordance and the weight of all pairs of these queries; k is the longest list."""
    order, spare, top = scratch(offsets, first, last)
    levels, gains = np.empty(len(order), np.int64), np.empty(len(order))
    for q in range(first, last):
        begin, end = offsets[q], offsets[q + 1]
        n = end - begin
        lowest = np.inf
        for i in range(n):
            gains[i] = gain_of(grades[begin + i], kind, parameter)
            lowest = min(lowest, gains[i])
        for i in range(n):
            gains[i] -= lowest  # only differences matter: sums of a common part would cancel
        n_levels = _rank_levels(gains[:n], order, spare, levels)
        head(scores[begin:end], k, strict, presorted[begin:end], order, spare, top)
        tied[q] = has_ties(scores[begin:end], order, n, n)
        values[q], pairs[q] = _discordance(
            scores[begin:end], gains[:n], order[:n], levels, n_levels, strict, weighted
        )

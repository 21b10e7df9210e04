"""Sort a list by score in linear time, several times faster than comparing: long lists are sorted each time.

Items are counted into cells of equal width, and insertion puts the few right that share a cell. Where some
far score leaves too many in one cell, the bits of the scores are sorted instead.
"""

from __future__ import annotations

import math

from concordant._segments import kernel
from concordant.types import FloatArray, IntArray

__all__ = ["DIGITS", "mend", "ranked"]

FEW, DIGIT, LONG_DIGIT = 4096, 8, 11  # bits sorted at a time, below that many items and from there on
DIGITS = 2**LONG_DIGIT
REPAIR = 8  # moves per item that insertion may take


@kernel
def ranked(scores: FloatArray, order: IntArray, spare: IntArray, tally: IntArray) -> None:
    """Fill `order` with the items, highest score first; `spare` (three rows) and `tally` are overwritten."""
    n = len(scores)
    items, codes, moved = spare[0, :n], spare[1, :n], spare[2, :n]
    bits = DIGIT if n < FEW else LONG_DIGIT
    for exact in range(2):
        if exact:
            patterns(scores, order, codes)
        else:
            cells(scores, 2 * bits, order, codes)
        for shift in range(0, 64 if exact else 2 * bits, 2 * bits):
            by_digit(order, codes, shift, bits, items, moved, tally)
            by_digit(items, moved, shift + bits, bits, order, codes, tally)
        if mend(order, scores, REPAIR * n):
            return


@kernel
def cells(scores: FloatArray, bits: int, order: IntArray, codes: IntArray) -> None:
    """Number 2^bits cells of equal width, the one of the highest score 0; items in order as they come."""
    low, high = math.inf, -math.inf
    for i in range(len(scores)):
        low, high = min(low, scores[i]), max(high, scores[i])
    factor = (2.0**bits - 1.0) / (high - low) if high > low else 0.0
    factor = factor if factor < math.inf else 0.0
    for i in range(len(scores)):
        order[i], codes[i] = i, int((high - scores[i]) * factor)


@kernel
def patterns(scores: FloatArray, order: IntArray, codes: IntArray) -> None:
    """Give each score a code of 64 bits, ascending, read without sign, as the score falls."""
    whole = scores.view(codes.dtype)
    for i in range(len(scores)):
        # All but the sign of a positive double are turned; a negative one falls as its magnitude grows.
        order[i], codes[i] = i, whole[i] ^ (~(whole[i] >> 63) & 0x7FFFFFFFFFFFFFFF)


@kernel
def by_digit(
    items: IntArray,
    codes: IntArray,
    shift: int,
    bits: int,
    sorted_items: IntArray,
    sorted_codes: IntArray,
    tally: IntArray,
) -> None:
    """Sort items and their codes by some bits of the code; equal ones stay in order."""
    mask, total = (1 << bits) - 1, 0
    tally[: mask + 1] = 0
    for i in range(len(codes)):
        tally[(codes[i] >> shift) & mask] += 1
    for digit in range(mask + 1):
        tally[digit], total = total, total + tally[digit]
    for i in range(len(codes)):
        digit = (codes[i] >> shift) & mask
        place = tally[digit]
        sorted_items[place], sorted_codes[place], tally[digit] = items[i], codes[i], place + 1


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
